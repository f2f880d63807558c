"""``python -m beltrami``."""

from beltrami.cli import main

if __name__ == "__main__":
    main()
