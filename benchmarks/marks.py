"""Tables in Markdown pages, each between two HTML comments with its name."""

from collections.abc import Mapping, Sequence


def filled(text: str, tables: Mapping[str, str], *, page: str) -> str:
    """Return the text of a page with every table between ``<!-- name -->`` and ``<!-- /name -->`` replaced."""
    for name, made in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"\n<!-- /{name} -->")
        if not (mark and end):
            raise ValueError(
                f"{page} has no place for the table {name!r}: add the lines <!-- {name} --> and <!-- /{name} -->."
            )
        text = before + mark + made + end + after
    return text


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
