"""Checks of models and graphs that are to be computed in blocks."""

from beltrami.data.graph_folder import GraphFolder
from beltrami.diffusivity import Paired, RandomWalk
from beltrami.errors import DataError
from beltrami.flow import LinearFlow
from beltrami.graph import PairScore, Rows
from beltrami.model import BLEND
from beltrami.scheme import Exponential
from beltrami.stencil import Keep, Loops


def check_streamable(model: BLEND) -> None:
    """Refuse a model that cannot be computed in blocks."""
    evolution, flow = model.evolution, model.evolution.flow
    diffusivity = flow.diffusivity
    pair = pair_of(model)
    reasons = {
        "a frozen flow without `storage` (flow.kind=frozen)": isinstance(flow, LinearFlow) and flow.storage is None,
        "no learned coupling (flow.coupling=false)": getattr(flow, "coupling", None) is None,
        "the exponential scheme (scheme.kind=exponential)": isinstance(evolution.scheme, Exponential),
        "the input graph, with or without loops (stencil.kind=keep)": isinstance(evolution.stencil, Keep | Loops)
        and evolution.remesh is None,
        "no running costs": not evolution.costs,
        "no batch norm (model.batch_norm=false)": model.norm is None,
        "weights from a dot product or uniform ones (such as diffusivity.kind=scaled-dot)": pair is not None
        or isinstance(diffusivity, RandomWalk),
        "weights normalised over rows (diffusivity.over=rows)": isinstance(
            getattr(diffusivity, "normalise", None), Rows
        ),
    }
    for needed, there in reasons.items():
        if not there:
            raise ValueError(f"a model that is computed in blocks needs {needed}.")


def check_folder_inputs(model: BLEND, folder: GraphFolder) -> None:
    """Refuse a graph folder without the features and positions that a model takes, or with edge weights."""
    if folder.weight is not None:
        raise DataError(f"{folder.path} has edge weights, which training in blocks does not use: remove weight.npy.")
    for name, array, columns in (("x", folder.x, model.features), ("pos", folder.pos, model.positions)):
        found = 0 if array is None else array.shape[1]
        if found != columns:
            raise DataError(f"{name} of {folder.path} has {found} columns where the model takes {columns}.")


def pair_of(model: BLEND) -> PairScore | None:
    """Return the projections of the attention at a single node, None for weights of another form."""
    diffusivity = model.evolution.flow.diffusivity
    if not isinstance(diffusivity, Paired):
        return None
    return diffusivity.pair(next(model.parameters()).new_zeros(1, model.xi.linear.in_features))
