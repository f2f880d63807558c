"""The file of a training graph beside the weights: features, edges, targets and splits, as safetensors."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from beltrami import file_limits as limits
from beltrami.data.dataset import Split
from beltrami.data.file import write_atomically
from beltrami.data.labelled_graph import NEIGHBOURS, LabelledGraph
from beltrami.data.target import TargetKind, Targets
from beltrami.errors import DataError, check_matrix
from beltrami.graph import Edges


def save_graph(path: Path, graph: LabelledGraph, splits: tuple[Split, ...]) -> None:
    """Write a graph and its splits, the whole file or nothing."""
    assert graph.targets is not None
    facts = {"name": graph.name, "ids": list(graph.ids), "neighbours": graph.neighbours}
    text = json.dumps({**facts, "protocol": splits[0].protocol, "seed": splits[0].seed})
    tensors = {
        "text": torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8),
        "edge_index": torch.stack((graph.edges.j, graph.edges.i)),
        "y": graph.targets.y,
        "shape": torch.tensor(graph.x.shape),
    }
    if graph.edges.weight is not None:
        tensors["weight"] = graph.edges.weight
    if graph.x.layout == torch.strided:
        tensors["x"] = graph.x
    else:
        coo = graph.x.coalesce()
        tensors |= {"x_indices": coo.indices(), "x_values": coo.values()}
    for name in splits[0].masks:
        tensors[f"split_{name}"] = torch.stack([split.masks[name] for split in splits])
    write_atomically(path, save({name: tensor.contiguous() for name, tensor in tensors.items()}))


def load_graph(path: Path, *, names: tuple[str, ...], kind: TargetKind) -> tuple[LabelledGraph, tuple[Split, ...]]:
    """Return the graph and the splits in a file of :func:`save_graph`."""
    try:
        limits.check_safetensors(path)
        tensors = load(path.read_bytes())
        text = json.loads(tensors["text"].numpy().tobytes())
        "".join((text["name"], *text["ids"])).encode()  # a UnicodeEncodeError of characters that are no text
        ids, x = text["ids"], _features(tensors)
        edges = Edges.build(tensors["edge_index"], num_nodes=len(ids), weight=tensors.get("weight"))
        masks = {name.removeprefix("split_"): t for name, t in tensors.items() if name.startswith("split_")}
        splits = tuple(
            Split(**{name: mask[k] for name, mask in masks.items()}, protocol=text["protocol"], seed=text["seed"])
            for k in range(len(masks["train"]))
        )
        targets = Targets(kind, names, tensors["y"])
        neighbours = text["neighbours"] if "neighbours" in text else NEIGHBOURS * text["by_features"]
        graph = LabelledGraph(text["name"], ids, x, edges, targets, int(neighbours))
        check_matrix(graph.x, name="x", rows=len(ids))
        if not len(targets.y) == splits[0].num_nodes == len(ids):
            raise ValueError(f"its {len(ids)} nodes have another number of targets or of places in the splits")
    except (OSError, SafetensorError, RuntimeError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"the graph in {path} cannot be read ({error}): train again.") from None
    return graph, splits


def _features(tensors: dict[str, Tensor]) -> Tensor:
    if "x" in tensors:
        return tensors["x"]
    size = tuple(tensors["shape"].tolist())
    return torch.sparse_coo_tensor(tensors["x_indices"], tensors["x_values"], size, check_invariants=True).coalesce()
