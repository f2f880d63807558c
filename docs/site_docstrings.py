"""Extension of griffe, the reader of docstrings: the first paragraph is one line, as summaries show one line."""

from typing import Any

from griffe import Extension, Object


class FirstParagraph(Extension):
    """Join the lines of the first paragraph of every docstring."""

    def on_object(self, *, obj: Object, **details: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = joined(obj.docstring.value)


def joined(text: str) -> str:
    """Return a docstring with its first paragraph on one line, unless that paragraph has indented lines.

    >>> joined("Return the\\nenergy.\\n\\nMore.")
    'Return the energy.\\n\\nMore.'
    """
    first, gap, rest = text.partition("\n\n")
    indented = any(line.startswith(" ") for line in first.splitlines())
    return text if indented else first.replace("\n", " ") + gap + rest
