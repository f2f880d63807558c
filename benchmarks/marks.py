"""Marks: the places in pages that tables go to, and tables as Markdown."""

from collections.abc import Mapping, Sequence


def filled(text: str, tables: Mapping[str, str], *, page: str) -> str:
    """The text with each table between ``<!-- name -->`` and ``<!-- /name -->`` made anew."""
    for name, made in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"\n<!-- /{name} -->")
        if not (mark and end):
            raise ValueError(f"{page} has no place for the table {name!r}: put <!-- {name} --> and its end there.")
        text = before + mark + made + end + after
    return text


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
