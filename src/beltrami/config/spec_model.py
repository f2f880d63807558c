"""Settings of models, diffusivities and flows: a small frozen type for each kind, or for kinds of the same fields."""

from typing import Annotated, Literal

from beltrami.arguments import Count, Finite, Fraction, NotNegative, Positive, Range, Share
from beltrami.config.spec_graph import NoneSpec, Spec

Over = Literal["rows", "columns", "both"]


class FlowModelSpec(Spec):  # base of the models that are an encoder, a flow and a decoder
    feat: Count = 64
    hidden: Count | None = None
    dropout: Share = 0.0
    input_dropout: Share = 0.5
    node_dropout: Share = 0.0
    batch_norm: bool = False


class BlendSpec(FlowModelSpec):
    kind: Literal["blend"] = "blend"
    pos: Count = 16


class GCNFlowSpec(FlowModelSpec):
    kind: Literal["gcn-flow"] = "gcn-flow"


class ChebNetFlowSpec(FlowModelSpec):
    kind: Literal["chebnet-flow"] = "chebnet-flow"
    terms: Annotated[int, Range("at least 2 and below 2**31", lambda x: 2 <= x < 2**31)] = 3


class DeepSetFlowSpec(FlowModelSpec):
    kind: Literal["deepset-flow"] = "deepset-flow"
    width: Count = 64


class GATFlowSpec(FlowModelSpec):
    kind: Literal["gat-flow"] = "gat-flow"
    width: Count = 64
    heads: Count = 8


class DGCNNFlowSpec(FlowModelSpec):
    kind: Literal["dgcnn-flow"] = "dgcnn-flow"
    k: Count = 64
    width: Count = 64
    heads: Count = 8


class DIGLFlowSpec(FlowModelSpec):
    kind: Literal["digl-flow"] = "digl-flow"
    k: Count = 64
    restart: Fraction = 0.05
    width: Count = 64
    heads: Count = 8


class MoNetFlowSpec(FlowModelSpec):
    kind: Literal["monet-flow"] = "monet-flow"
    pos: Count = 16
    kernels: Count = 2


class TransformerFlowSpec(FlowModelSpec):
    kind: Literal["transformer-flow"] = "transformer-flow"
    pos: Count = 16
    width: Count = 64
    heads: Count = 8


class BaselineSpec(Spec):  # base of the networks trained beside ours: ``width`` hidden channels, of all heads together
    width: Count = 64
    dropout: Share = 0.0
    input_dropout: Share = 0.5


class LayeredSpec(BaselineSpec):
    kind: Literal["gcn", "sage-mean", "sage-maxpool"] = "gcn"
    depth: Count = 2


class GATSpec(BaselineSpec):
    kind: Literal["gat"] = "gat"
    depth: Count = 2
    heads: Count = 8
    out_heads: Count = 1
    attention_dropout: Share = 0.6


class MoNetSpec(BaselineSpec):
    kind: Literal["monet"] = "monet"
    depth: Count = 2
    kernels: Count = 2


class LanczosSpec(BaselineSpec):
    kind: Literal["lanczosnet", "adalanczosnet"] = "lanczosnet"
    depth: Count = 2
    steps: Count = 20


class CGNNSpec(BaselineSpec):
    kind: Literal["cgnn"] = "cgnn"
    mixing: bool = False


class GDESpec(BaselineSpec):
    kind: Literal["gde"] = "gde"


class GODESpec(BaselineSpec):
    kind: Literal["gode"] = "gode"
    depth: Count = 2


class LinearSpec(Spec):
    kind: Literal["linear"] = "linear"
    input_dropout: Share = 0.0


FeatureFlowSpec = GCNFlowSpec | ChebNetFlowSpec | DeepSetFlowSpec | GATFlowSpec | DGCNNFlowSpec | DIGLFlowSpec
ZooSpec = FeatureFlowSpec | MoNetFlowSpec | TransformerFlowSpec
"""The networks of Table 1 as flows. Their equation and graph are their own; ``scheme.time`` is the number of layers."""

PositionedSpec = BlendSpec | MoNetFlowSpec | TransformerFlowSpec  # models with an encoder of positions
ContinuousSpec = CGNNSpec | GDESpec | GODESpec
BaselineModelSpec = LayeredSpec | GATSpec | MoNetSpec | LanczosSpec | ContinuousSpec
ModelSpec = BlendSpec | ZooSpec | BaselineModelSpec | LinearSpec
"""BLEND, a network of Table 1 as a flow, a baseline, or linear diffusion, which has its own equation and graph and, for
``scheme.time=0``, neither. ``pos`` = d' and ``feat`` = d are the channels of positions, where there are any, and of
features; ``hidden``, the width of a further layer of the encoder, null for none. ``width`` is that of all heads
together; ``steps``, the dimension of LanczosNet's Krylov space; ``mixing``, whether CGNN mixes channels."""


class XavierSpec(Spec):
    kind: Literal["xavier"] = "xavier"


class ConstantStartSpec(Spec):
    kind: Literal["constant"] = "constant"
    value: Finite = 1e-5


class UniformSpec(Spec):
    kind: Literal["uniform"] = "uniform"
    over: Over = "rows"


class HeadsSpec(Spec):  # base of the diffusivities with heads
    heads: Count = 2
    link: Literal["softmax", "squareplus"] = "softmax"
    over: Over = "rows"


class AttentionSpec(HeadsSpec):
    kind: Literal["gaussian", "scalar-cosine"] = "scalar-cosine"


class AdditiveSpec(HeadsSpec):
    kind: Literal["additive"] = "additive"
    width: Count = 32
    start: XavierSpec | ConstantStartSpec = XavierSpec()


class ProjectedSpec(HeadsSpec):
    kind: Literal["cosine", "pearson", "exp-kernel"] = "cosine"
    width: Count = 32
    start: XavierSpec | ConstantStartSpec = XavierSpec()
    bias: bool = False


class ScaledDotSpec(HeadsSpec):
    kind: Literal["scaled-dot"] = "scaled-dot"
    width: Count = 32
    d_k: Positive | None = None
    start: XavierSpec | ConstantStartSpec = XavierSpec()
    bias: bool = False


DiffusivitySpec = NoneSpec | UniformSpec | AttentionSpec | AdditiveSpec | ProjectedSpec | ScaledDotSpec
"""The weights a. ``over``: rows, columns or both, over which they are normalised. ``link``: from scores to positive
weights. ``width``: of the projections, all heads together, which begin at ``start`` and have a ``bias`` if true.
``d_k``: null for the width of a head."""


class EquationSpec(Spec):  # base of the flows
    rate: bool = True
    kinetic: NotNegative = 0.0
    jacobian: NotNegative = 0.0


class FrozenSpec(EquationSpec):
    kind: Literal["frozen"] = "frozen"
    source: bool = False
    coupling: bool = False


class HyperbolicSpec(EquationSpec):
    kind: Literal["hyperbolic"] = "hyperbolic"
    source: bool = False


class LiveSpec(EquationSpec):
    kind: Literal["live"] = "live"
    source: bool = False
    coupling: bool = False
    storage: Literal["bfloat16", "float16"] | None = None


class ConstantPsiSpec(Spec):
    kind: Literal["constant"] = "constant"


class PsiSpec(Spec):
    kind: Literal["gauss", "perona-malik", "roughness"] = "gauss"
    length: Positive = 1.0


class PolyakovSpec(EquationSpec):
    kind: Literal["polyakov"] = "polyakov"
    psi: ConstantPsiSpec | PsiSpec
    attachment: bool = False


FlowSpec = NoneSpec | FrozenSpec | HyperbolicSpec | LiveSpec | PolyakovSpec
"""The equation: attention frozen at z(0), live at z(t), live with positions in the Poincaré ball (hyperbolic), or the
gradient flow of the Polyakov action of ``psi``, whose learned length begins at ``length``. ``rate``: learn alpha.
``source``: learn beta z(0). ``coupling``: learn kappa in (-1, 1), the sign and strength of the neighbours' influence.
``attachment``: learn lambda (z(0) - z). ``kinetic``, ``jacobian``: weights of the running costs, 0 for none.
``storage``: type of the values that a GPU gathers along edges, null for that of z."""
