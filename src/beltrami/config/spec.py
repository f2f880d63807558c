"""RunConfig: everything that makes a run, as a typed, frozen tree of plain values."""

import json
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class DataConfig:
    """Which nodes, how their features are scaled, and which of them train.

    ``component``: ``largest``, or ``all`` for the whole graph. ``features``: ``raw``, or ``rows`` for rows
    scaled to one sum of absolute values, their mean. ``protocol``: the split's; ``split_seed``: which one.
    """

    component: str = "largest"
    features: str = "raw"
    protocol: str = "digl"
    split_seed: int = 0


@dataclass(frozen=True)
class PositionConfig:
    """Positions from the graph.

    ``encoding``: none; ppr (``restart``, ``top``); heat (``time``, ``top``); laplacian (``channels``); walk, return
    probabilities (``channels`` steps); deepwalk (``channels``, ``walk_length``, or ``tuned``); hyperbolic
    (``channels``), given as logarithms at the origin. ``top``: entries a row, null for all. ``seed``: of the encoding's
    own randomness, so that runs of all seeds share one. ``file``: positions that ``beltrami encode`` wrote, in place of
    the encoding. ``digest``: what that file must hold; a run writes it down.
    """

    encoding: str = "none"
    restart: float = 0.05
    top: int | None = 64
    time: float = 5.0
    channels: int = 16
    walk_length: int = 80
    tuned: bool = False
    seed: int = 0
    file: str | None = None
    digest: str | None = None


@dataclass(frozen=True)
class ModelConfig:
    """Widths of the joint coordinates, ``pos`` = d' and ``feat`` = d, and the regularisation around the flow.

    ``kind``: blend, a network of Table 1 as a flow, such as gat-flow, or the name of a competitor.

    Of a network of the table ``scheme.time`` is the number of layers; its graph and its equation are its own. What else
    counts are this group, ``position`` where it looks at positions, ``train``, and where they mean something to it
    ``stencil.k``, ``stencil.restart``, ``diffusivity.width``, ``diffusivity.heads``, ``baseline.kernels`` (monet-flow),
    ``baseline.steps`` (the terms of chebnet-flow) and ``baseline.width`` (deepset-flow).

    Of a competitor the settings ``baseline``, ``dropout`` and ``input_dropout`` count, ``position`` (positions stand
    beside the features), ``stencil`` where it sees the graph alone, and ``scheme`` where it is an equation; not the
    rest of this group, ``diffusivity`` and ``flow``.
    """

    pos: int = 16
    feat: int = 64
    hidden: int | None = None
    dropout: float = 0.0
    input_dropout: float = 0.5
    node_dropout: float = 0.0
    batch_norm: bool = False
    kind: str = "blend"


@dataclass(frozen=True)
class BaselineConfig:
    """The network of a competitor: hidden channels ``width``, of all heads together, and ``depth`` layers.

    ``heads``, ``out_heads``, ``attention_dropout``: of gat. ``kernels``: of monet. ``steps``: dimension of the Krylov
    space of lanczosnet and adalanczosnet. ``mixing``: whether cgnn mixes channels.
    """

    width: int = 64
    depth: int = 2
    heads: int = 8
    out_heads: int = 1
    attention_dropout: float = 0.6
    kernels: int = 2
    steps: int = 20
    mixing: bool = False


@dataclass(frozen=True)
class DiffusivityConfig:
    """The weights a.

    ``score``: uniform, scaled-dot, cosine, pearson, exp-kernel, gaussian, additive or angle. ``link``: softmax or
    squareplus. ``over``: rows, columns or both. ``start``: xavier, or constant at ``start_value``. ``d_k``: null for
    the head's width.
    """

    score: str = "scaled-dot"
    width: int = 32
    heads: int = 2
    d_k: float | None = None
    link: str = "softmax"
    over: str = "rows"
    start: str = "xavier"
    start_value: float = 1e-5


@dataclass(frozen=True)
class FlowConfig:
    """The equation.

    ``positions``: flat, or hyperbolic for the live flow in the Poincaré ball. ``frozen``: attention at z(0), or live
    at z(t). ``storage``: null, or bfloat16 or float16 for what a live flow gathers along edges on a GPU. ``rate``:
    learnable alpha. ``source``: learnable beta z(0). ``kinetic``, ``jacobian``: the weights of the running costs.
    ``psi``: null, or a family of Theorem 1 (constant, gauss, perona-malik, roughness) whose length begins at
    ``length``. Then the flow goes down that family's action and is live; ``source`` is a learnable attachment
    lambda (z(0) - z), and ``diffusivity`` and ``frozen`` do not count.
    """

    positions: str = "flat"
    frozen: bool = True
    storage: str | None = None
    rate: bool = True
    source: bool = False
    kinetic: float = 0.0
    jacobian: float = 0.0
    psi: str | None = None
    length: float = 1.0


@dataclass(frozen=True)
class StencilConfig:
    """The graph that the flow is discretised on.

    ``kind``: keep; knn (``k`` nearest nodes); radius (all nodes within ``radius``); digl (the ``k`` largest entries of
    personalised PageRank at ``restart``); threshold (its entries of at least ``least``); complete; isolated. knn and
    radius look ``on`` the channels u, x or z of the encoded state; u has the metric of ``flow.positions``. Then:
    ``symmetric``: every edge in both directions. ``weighted``: keep the kernel's values as the edges' measure, or let
    all edges count alike. ``loops``: the weight of a self-loop on every node, in place of any it has; 0 for none added.
    ``remesh``: time between two meshes, null for the one of z(0). ``strongest``: share of the edges, those of largest
    weight, that are kept while training; null for all.

    Before all that, the input graph may be altered by what the input features say, their columns counted by rarity:
    ``alike``: edges between nodes that are alike count more, e to this power a standard
    deviation (``FeatureSimilarity``).
    ``near``: edges to this many most alike nodes are added, in both directions, each of weight ``near_weight``.

    ``file``: a graph that ``beltrami rewire`` wrote, in place of
    the kind. ``digest``: what that file must hold; a run writes it down.
    """

    kind: str = "keep"
    k: int = 64
    radius: float = 1.0
    least: float = 1e-3
    restart: float = 0.05
    on: str = "z"
    symmetric: bool = False
    weighted: bool = True
    loops: float = 1.0
    remesh: float | None = None
    strongest: float | None = None
    alike: float = 0.0
    near: int = 0
    near_weight: float = 0.5
    file: str | None = None
    digest: str | None = None


@dataclass(frozen=True)
class SchemeConfig:
    """Time stepping to ``time``: constant steps of ``dt``, or adaptive by ``rtol`` and ``atol`` where ``dt`` is null.

    ``adjoint``: direct, checkpointed or continuous, the last by ``backward`` (a solver, with ``backward_dt`` or the
    same tolerances; null for the forward scheme). ``solver`` may also be ``torchdiffeq:METHOD``, or ``exponential`` for
    frozen flows without costs, by the tolerances and with ``dt`` null. Implicit solvers solve their equations to a
    tenth of the tolerances. ``descends``: take no step along which the energy grows, for flows with ``flow.psi``.
    """

    solver: str = "dopri5"
    time: float = 4.0
    dt: float | None = None
    rtol: float = 1e-3
    atol: float = 1e-3
    adjoint: str = "direct"
    backward: str | None = None
    backward_dt: float | None = None
    max_steps: int = 10_000
    descends: bool = False


@dataclass(frozen=True)
class TrainConfig:
    """How to train; see ``beltrami.train.Training``, ``TimeGrid``, and ``Consistency`` of weight ``consistency``.

    ``adopt``: how many nodes of each class, those a first fit is most certain of, train a second one; 0 for one fit.
    """

    epochs: int = 100
    optimiser: str = "adam"
    lr: float = 0.01
    weight_decay: float = 5e-3
    attention_decay: float = 1e-3
    patience: int = 100
    time_multiple: float = 3.0
    time_resolution: int = 8
    time_patience: int = 12
    look_every: int = 5
    average: float = 0.0
    consistency: float = 0.0
    passes: int = 1
    temperature: float = 0.5
    ramp: int = 0
    adopt: int = 0
    record: bool | None = None


@dataclass(frozen=True)
class RunConfig:
    """One run, from the dataset to the last epoch.

    ``tried``: how many configurations were tried on validation before this one was settled on; null where nobody
    counted. It says what a result is worth and alters none.
    """

    dataset: str
    recipe: str
    seed: int = 0
    data: DataConfig = field(default_factory=DataConfig)
    position: PositionConfig = field(default_factory=PositionConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    baseline: BaselineConfig = field(default_factory=BaselineConfig)
    diffusivity: DiffusivityConfig = field(default_factory=DiffusivityConfig)
    flow: FlowConfig = field(default_factory=FlowConfig)
    stencil: StencilConfig = field(default_factory=StencilConfig)
    scheme: SchemeConfig = field(default_factory=SchemeConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    tried: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)
