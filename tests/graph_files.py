"""Small tables as files, and graphs read from them as plain lists, for the tests of the readers."""

from pathlib import Path

from beltrami.data.graph_table import GraphTable
from beltrami.data.table import Words

NODES = "id,age,job,class\nb,1,x,u\na,2,y,\nc,3,x,v\n"
EDGES = "source,target\na,b\nb,c\n"


def write(folder: Path, **texts: str) -> None:
    """Write each text to the CSV file of its name."""
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)


def listed(column: object) -> list[str | None]:
    """Return the words of a column, None where one is missing."""
    assert isinstance(column, Words)
    return [None if code < 0 else column.names[code] for code in column.codes]


def edges_of(graph: GraphTable) -> set[tuple[str, str]]:
    """Return the edges as pairs of ids, each once."""
    assert graph.edge_index is not None
    return {(graph.ids[j], graph.ids[i]) for j, i in graph.edge_index.T.tolist() if graph.ids[j] < graph.ids[i]}
