"""Extension of griffe, the reader of docstrings: the first paragraph is one line, as summaries show one line;
docstrings of estimators, in the style of numpy that scikit-learn asks for, are recognised."""

from typing import Any

from griffe import Extension, Object, Parser

NUMPY = "\nParameters\n----------\n"


class FirstParagraph(Extension):
    """Join the lines of the first paragraph of every docstring, and recognise its style."""

    def on_object(self, *, obj: Object, **details: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = joined(obj.docstring.value)
            if NUMPY in obj.docstring.value:
                obj.docstring.parser, obj.docstring.parser_options = Parser.numpy, {}


def joined(text: str) -> str:
    """Return a docstring with its first paragraph on one line, unless that paragraph has indented lines.

    >>> joined("Return the\\nenergy.\\n\\nMore.")
    'Return the energy.\\n\\nMore.'
    """
    first, gap, rest = text.partition("\n\n")
    indented = any(line.startswith(" ") for line in first.splitlines())
    return text if indented else first.replace("\n", " ") + gap + rest
