"""The zoo: the networks of the paper's Table 1, each a flow on a stencil by a scheme."""

from collections.abc import Callable
from dataclasses import dataclass

from beltrami.model.evolution import Evolution
from beltrami.model.zoo.networks import blend, chebnet, deepset, dgcnn, digl, gat, gcn, grand, monet, transformer


@dataclass(frozen=True)
class ZooEntry:
    """A network of Table 1: its columns there, the function that builds it, and the recipe that trains it."""

    method: str
    build: Callable[..., Evolution]
    recipe: str
    diffusivity: str
    graph: str
    evolution: str = "features X"
    discretisation: str = "explicit, fixed step"


ADAPTIVE_OR_IMPLICIT = "explicit, adaptive step, or implicit"
TABLE = (
    ZooEntry("ChebNet", chebnet, "chebnet-flow", diffusivity="fixed a_ij", graph="fixed E"),
    ZooEntry("GAT", gat, "gat-flow", diffusivity="a(x_i, x_j)", graph="fixed E"),
    ZooEntry("MoNet", monet, "monet-flow", diffusivity="a(u_i, u_j)", graph="fixed E"),
    ZooEntry("Transformer", transformer, "transformer-flow", diffusivity="a(z_i, z_j)", graph="fixed E = V x V"),
    ZooEntry("DeepSet/PointNet", deepset, "deepset-flow", diffusivity="a(x_i)", graph="fixed E = {}"),
    ZooEntry("DIGL", digl, "digl-flow", diffusivity="a(x_i, x_j)", graph="fixed E(U)"),
    ZooEntry("DGCNN/DGM", dgcnn, "dgcnn-flow", diffusivity="a(x_i, x_j)", graph="adaptive E(X)"),
    ZooEntry("GCN (Onsager)", gcn, "gcn-flow", diffusivity="fixed a_ij", graph="fixed E"),
    ZooEntry("GRAND", grand, "grand", "a(x_i, x_j)", "fixed E", discretisation="explicit, adaptive step"),
    ZooEntry("BLEND", blend, "blend", "a(z_i, z_j)", "adaptive E(U)", "positions U + features X", ADAPTIVE_OR_IMPLICIT),
)
"""The networks in the order of Table 1; GCN and GRAND, which it does not list, before BLEND."""

__all__ = ["TABLE", "ZooEntry", "chebnet", "gat", "monet", "transformer", "deepset", "digl", "dgcnn", "gcn", "grand"]
__all__ += ["blend"]
