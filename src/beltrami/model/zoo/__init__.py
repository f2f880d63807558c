"""The zoo: the networks of the paper's Table 1, each a flow on a stencil by a scheme."""

from beltrami.model.zoo.attention import DGCNN, DIGL, GAT, dgcnn, digl, gat
from beltrami.model.zoo.convolution import CHEBNET, GCN, chebnet, gcn
from beltrami.model.zoo.diffusion import BLEND, GRAND, blend, grand, hyperbolic_blend
from beltrami.model.zoo.pointwise import DEEPSET, deepset
from beltrami.model.zoo.position import MONET, TRANSFORMER, monet, transformer
from beltrami.model.zoo.row import LAYERS, ZooEntry

TABLE = (CHEBNET, GAT, MONET, TRANSFORMER, DEEPSET, DIGL, DGCNN, GCN, GRAND, BLEND)
"""In the order of Table 1; GCN and GRAND, which it does not have, before BLEND."""

__all__ = [
    "TABLE",
    "ZooEntry",
    "LAYERS",
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
