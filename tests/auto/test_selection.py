"""The portfolio tries the flow whose neighbours may repel where neighbours differ, and leaves it out elsewhere."""

import pytest

from beltrami.auto.baselines import run_baselines
from beltrami.auto.portfolio import COUPLED, MEMBERS, Member
from beltrami.auto.selection import Selection, select
from beltrami.data import make_split
from beltrami.data.block_model import BlockModel
from beltrami.data.labelled_graph import LabelledGraph
from beltrami.graph import Edges
from beltrami.train import Classification

TRIED: dict[str, Member] = {
    name: Member(MEMBERS[name].says, (*MEMBERS[name].settings, "train.epochs=60")) for name in ("network", COUPLED)
}


def selected(homophily: float) -> Selection:
    """Return the selection among a network without the graph and the coupled flow on a graph of a block model."""
    data = BlockModel(300, homophily, 5.0, 1.0).draw(seed=0)
    split = make_split(data, protocol="shchur", seed=0)
    edges = Edges.build(data.edge_index, num_nodes=data.num_nodes)
    graph = LabelledGraph("blocks", [str(k) for k in range(data.num_nodes)], data.x, edges)
    task = Classification(2)
    _, linear = run_baselines(data.x, edges, data.y, [split], task=task)
    return select(graph, data.y, [split], linear, task=task, budget=60.0, members=TRIED)


@pytest.mark.slow
def test_a_coupled_flow_is_chosen_where_neighbours_differ() -> None:
    found = selected(0.02)
    metrics = {attempt.name: attempt.metric or 0.0 for attempt in found.attempts}
    assert found.name == COUPLED
    assert metrics[COUPLED] > metrics["network"] + 0.1


@pytest.mark.slow
def test_a_coupled_flow_is_left_out_where_neighbours_are_alike() -> None:
    attempt = selected(0.9).attempts[-1]
    assert (attempt.name, attempt.metric) == (COUPLED, None)
    assert attempt.note == "left out: neighbours do not tend to differ in class"
