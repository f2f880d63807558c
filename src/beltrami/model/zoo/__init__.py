"""The zoo: the networks of the paper's Table 1, each a flow on a stencil by a scheme."""

from beltrami.model.zoo.feature_networks import chebnet, deepset, dgcnn, digl, gat, gcn, grand
from beltrami.model.zoo.position_networks import blend, hyperbolic_blend, monet, transformer
from beltrami.model.zoo.zoo_entry import EULER_LAYERS, ZooEntry

TABLE = (
    ZooEntry("ChebNet", chebnet, "chebnet-flow", diffusivity="fixed a_ij", graph="fixed E"),
    ZooEntry("GAT", gat, "gat-flow", diffusivity="a(x_i, x_j)", graph="fixed E"),
    ZooEntry("MoNet", monet, "monet-flow", diffusivity="a(u_i, u_j)", graph="fixed E"),
    ZooEntry("Transformer", transformer, "transformer-flow", diffusivity="a(z_i, z_j)", graph="fixed E = V x V"),
    ZooEntry("DeepSet/PointNet", deepset, "deepset-flow", diffusivity="a(x_i)", graph="fixed E = {}"),
    ZooEntry("DIGL", digl, "digl-flow", diffusivity="a(x_i, x_j)", graph="fixed E(U)"),
    ZooEntry("DGCNN/DGM", dgcnn, "dgcnn-flow", diffusivity="a(x_i, x_j)", graph="adaptive E(X)"),
    ZooEntry("GCN (Onsager)", gcn, "gcn-flow", diffusivity="fixed a_ij", graph="fixed E"),
    ZooEntry(
        "GRAND", grand, "grand", diffusivity="a(x_i, x_j)", graph="fixed E", discretisation="explicit, adaptive step"
    ),
    ZooEntry(
        "BLEND",
        blend,
        "blend",
        evolution="positions U + features X",
        diffusivity="a(z_i, z_j)",
        graph="adaptive E(U)",
        discretisation="explicit, adaptive step, or implicit",
    ),
)
"""The networks in the order of Table 1; GCN and GRAND, which it does not list, before BLEND."""

__all__ = [
    "TABLE",
    "ZooEntry",
    "EULER_LAYERS",
    "chebnet",
    "gat",
    "monet",
    "transformer",
    "deepset",
    "digl",
    "dgcnn",
    "gcn",
    "grand",
    "blend",
    "hyperbolic_blend",
]
