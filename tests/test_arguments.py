"""Arguments of public functions and constructors: what fits passes, and all else is refused in one sentence."""

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from toy import small_blend, two_cliques

import beltrami
from beltrami import KNN, PID, Dopri5, Edges, Joint, LinearFlow
from beltrami.arguments import as_name, checked

lib: Any = beltrami  # without types, so that wrong arguments can be tried
data, image, train = (importlib.import_module(f"beltrami.{name}") for name in ("data", "image", "train"))
TOY = two_cliques()
EDGES = Edges.build(TOY.edge_index, num_nodes=20)
INPUTS = small_blend().prepare(TOY.x, TOY.edge_index)
STEPS = PID(rtol=1e-3, atol=1e-3)
ADAM = partial(torch.optim.Adam, lr=0.01)


def any_call(function: Any) -> Any:
    """Hide the types of a function, so that wrong arguments can be tried."""
    return function


WRONG: list[tuple[str, Callable[[], object], str]] = [
    ("dirichlet of a vector", lambda: lib.dirichlet(TOY.x[:, 0], EDGES), r"`z` must be a dense .* \(20, channels\)"),
    ("an evolution of other nodes", lambda: small_blend().evolution(TOY.x[:3], EDGES), r"matrix \(20, channels\); got"),
    # One row per case: a name, the call, and a part of the sentence.
    (
        "BLEND(numpy)",
        lambda: lib.BLEND(numpy.ones((3, 2))),
        "BLEND needs `in_channels` to be a whole number; got an ndarray",
    ),
    ("BLEND of a tensor", lambda: lib.BLEND.from_parts(TOY.x), "from_parts needs `psi` to be an Encoder; got"),
    ("PPR()(tensor)", lambda: lib.PPR()(TOY.edge_index), "PPR needs `edges` to be an Edges; .*`Edges.build"),
    (
        "Scheme(PID, Dopri5)",
        lambda: lib.Scheme(STEPS, lib.Dopri5()),
        "`solver` to be a Solver; .*fits `controller`.*order",
    ),
    (
        "Scheme of classes",
        lambda: lib.Scheme(Dopri5, STEPS),
        r"got the class Dopri5: pass an object, such as `Dopri5\(",
    ),
    (
        "Training(2, 'adam')",
        lambda: lib.Training(2, "adam"),
        "`optimiser` to be a function; got 'adam', such as partial",
    ),
    ("KNN(1.5)", lambda: lib.KNN(1.5), "KNN needs `k` to be a whole number; got 1.5"),
    ("KNN('3')", lambda: lib.KNN("3"), "KNN needs `k` to be a whole number; got '3'"),
    ("KNN(True)", lambda: lib.KNN(True), "KNN needs `k` to be a whole number; got True"),
    (
        "KNN of a list",
        lambda: lib.KNN(3)([1, 2], EDGES),
        "`z` to be a torch.Tensor; .*make it a tensor with `torch.tensor`",
    ),
    ("Loops without edges", lambda: lib.Loops()(TOY.x, TOY.edge_index), "Loops needs `edges` to be an Edges"),
    ("Radius(None)", lambda: lib.Radius(None), "Radius needs `r` to be a number; got None"),
    ("TopK, a name", lambda: lib.TopK(3, restart="small"), "TopK needs `restart` to be a number; got 'small'"),
    ("Heat(time=True)", lambda: lib.Heat(time=True), "Heat needs `time` to be a number; got True"),
    ("Joint of floats", lambda: lib.Joint(2.0, 3), "Joint needs `pos` to be a whole number; got 2.0"),
    (
        "Joint.join of numpy and text",
        lambda: lib.Joint(3, 6).join(TOY.pos.numpy(), "x"),
        "Joint.join needs `x` to be a",
    ),
    ("Joint.join, other rows", lambda: lib.Joint(3, 6).join(TOY.pos[:4], TOY.x), r"joins .*got \(4, 3\) and \(20, 6\)"),
    ("Encoder of no channels", lambda: lib.Encoder(0, 2), "Encoder needs `channels` at least 1 and below"),
    ("Encoder too wide", lambda: lib.Encoder(3, 10**30), "Encoder needs `out_channels` at least 1 and below"),
    ("ScaledDot(-1)", lambda: lib.ScaledDot(-1, 4), "ScaledDot needs `channels` at least 1 and below .*; got -1"),
    ("ScaledDot of no width", lambda: lib.ScaledDot(5, 0), "ScaledDot needs `width` at least 1"),
    ("RandomWalk('rows')", lambda: lib.RandomWalk("rows"), "RandomWalk needs `normalise` to be a Normaliser or None"),
    ("Evolution of a class", lambda: lib.Evolution(LinearFlow, scheme=STEPS, time=1.0), "`flow` .*`LinearFlow"),
    ("PID(inf)", lambda: lib.PID(rtol=math.inf, atol=0.0), "PID needs non-negative, finite `rtol` and `atol`"),
    ("PID, NaN", lambda: lib.PID(rtol=1e-3, atol=1e-3, pcoeff=math.nan), "PID needs `pcoeff` finite; got nan"),
    ("Exponential(None)", lambda: lib.Exponential(None, 1e-3), "Exponential needs `rtol` to be a number; got None"),
    ("Surface('1')", lambda: image.Surface("1"), "Surface needs `alpha` to be a number; got '1'"),
    ("psnr(None)", lambda: image.psnr(None, TOY.x), "psnr needs `x` to be a torch.Tensor; got None"),
    ("TimeGrid(resolution=1.5)", lambda: train.TimeGrid(resolution=1.5), "TimeGrid needs `resolution` to be a whole"),
    (
        "Training, NaN",
        lambda: lib.Training(2, ADAM, weight_decay=math.nan),
        "`weight_decay` at least 0 and finite; got nan",
    ),
    ("Classification(0)", lambda: train.Classification(0), "Classification needs `num_outputs` at least 1"),
    ("seeded(-1)", lambda: train.seeded(-1), r"seeded needs `seed` from 0 to 2\*\*32 - 1; got -1"),
    (
        "make_split(-1)",
        lambda: lib.make_split(None, protocol="digl", seed=-1),
        "make_split needs `dataset` to be a Dataset",
    ),
    (
        "Split of node numbers",
        lambda: lib.Split(*[TOY.y] * 3, "x", 0),
        r"boolean masks .*For node numbers, use .*mask\(",
    ),
    ("Split of numbers", lambda: lib.Split(*[torch.tensor(True)] * 3, "x", 0), r"boolean masks .*shape \(\)"),
    (
        "Edges of a list",
        lambda: lib.Edges.build([[0, 1], [1, 0]], num_nodes=2),
        "build needs `edge_index` to be a torch",
    ),
    ("Edges of too many", lambda: lib.Edges.build(TOY.edge_index, num_nodes=10**30), r"below 2\*\*31"),
    (
        "undirected of floats",
        lambda: data.undirected(TOY.edge_index.float(), num_nodes=20),
        "`edge_index` must hold integers",
    ),
    (
        "solve of no tensor",
        lambda: lib.solve(lambda t, y: y, 1.0, [0.0, 1.0], lib.Scheme(lib.Dopri5(), STEPS)),
        "solve needs `y0`",
    ),
    (
        "accuracy of other rows",
        lambda: train.accuracy(torch.ones(3, 2), TOY.y),
        r"`logits` must have shape \(20, outputs\)",
    ),
    (
        "accuracy of integers",
        lambda: train.accuracy(torch.ones(20, 2).int(), TOY.y),
        "`logits` must be dense and floating",
    ),
    (
        "read_test, other rows",
        lambda: train.read_test(torch.ones(20, 2), TOY.y[:9], TOY.split),
        "`y` has 9 entries where",
    ),
    (
        "predict at -1",
        lambda: train.predict(small_blend(), INPUTS, time=-1.0),
        "predict needs `time` at least 0 and finite",
    ),
    (
        "predict of features",
        lambda: train.predict(small_blend(), TOY.x, time=1.0),
        "`inputs` to be an Inputs.*`model.prepare",
    ),
    (
        "fit_graph of a path",
        lambda: lib.fit_graph("graph.csv"),
        "`table` to be a GraphTable; .*read it with `read_graph`",
    ),
]


@pytest.mark.parametrize(("call", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_argument_is_refused_in_one_sentence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


BUILT_BY_THE_LIBRARY = {
    "WorkerLost",
    # Results, which the library returns.
    "LinearFit", "Propagation", "BaselineResult", "Facts", "Output", "Trajectory", "Solution", "Stats", "Fit", "Epoch",
    "ValidationScore", "Guarantee", "ClassPredictions", "NumberPredictions", "RunResult", "Availability",
    # Parts of a training step, made by the objects that checked their own arguments.
    "FunctionField", "BeltramiField", "LinearField", "PolyakovField", "Costed", "PairScore", "LossStep", "PixelGraph",
    "Fitting",  # made by start_fit
    "Predictor",  # made by fit_graph and Predictor.load
    "BeltramiClassifier", "BeltramiRegressor",  # checked by their `fit`, as scikit-learn requires
    "Edges", "SparseMatrix",  # made by Edges.build and SparseMatrix.of
    "RunConfig",  # checked by parse and check_settings, by the names of settings
    "SparsityPattern",  # a protocol
    "Fitted", "TrainingState",  # made by a training
    "DataError", "DirectedGraphWarning", "OtherGraphWarning", "SolverError", "TrainingWarning", "UnknownName",
}  # fmt: skip


def exported_classes() -> Iterator[type]:
    """Every concrete class that the package or one of its subpackages exports."""
    found: dict[int, type] = {}
    modules = [beltrami.__name__, *(each.name for each in pkgutil.walk_packages(beltrami.__path__, "beltrami."))]
    for name in modules:
        if "triton" in name or name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if str(missing.name).startswith("beltrami"):
                raise
            continue  # an optional package is not installed
        for each in getattr(module, "__all__", ()):
            value = getattr(module, each)
            if inspect.isclass(value) and not inspect.isabstract(value):
                found[id(value)] = value
    yield from found.values()


CLASSES = [each for each in exported_classes() if each.__name__ not in BUILT_BY_THE_LIBRARY]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_argument_of_an_exported_class_is_refused_by_its_name(kind: Callable[..., object]) -> None:
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            if name in ("args", "kwargs"):  # of torch's Module: the class has no arguments
                continue
            with pytest.raises(ValueError, match=f"`{name}`"):
                kind(object())
            continue
        with pytest.raises(ValueError, match=f"`{name}`"):
            kind(**{name: object()})


def test_classes_are_found_and_exceptions_exist() -> None:
    names = {each.__name__ for each in exported_classes()}
    assert len(CLASSES) > 100
    assert names >= BUILT_BY_THE_LIBRARY - {"PolyakovField", "SparsityPattern"}


def test_numbers_and_arrays_of_numpy_become_those_of_python_and_torch() -> None:
    stencil = KNN(numpy.int64(3), approximate=numpy.bool_(False))
    assert (stencil.k, type(stencil.k), stencil.approximate) == (3, int, False)
    array = numpy.array([[0, 1], [1, 0]], dtype=numpy.int32)
    edges = Edges.build(array, num_nodes=2)
    assert edges.edge_index.dtype == torch.int64
    array[:] = 7
    assert edges.num_edges == 2
    assert int(edges.j.max()) == 1
    with pytest.raises(ValueError, match="as numbers that torch knows; got an array of <U1"):
        Edges.build(numpy.array([["a"], ["b"]]), num_nodes=2)


def test_a_checked_function_keeps_its_name_and_signature() -> None:
    @checked
    def scale(x: float, *rest: int, by: "Joint | None" = None) -> float:
        """Return it."""
        return x

    assert scale.__name__ == "scale"
    assert str(inspect.signature(scale)) == "(x: float, *rest: int, by: 'Joint | None' = None) -> float"
    assert scale(2, 3, by=Joint(1, 1)) == 2
    with pytest.raises(ValueError, match=r"scale needs `rest` to be a whole number; got 0\.5"):
        any_call(scale)(1.0, 2, 0.5)
    with pytest.raises(ValueError, match="scale needs `by` to be a Joint or None; got 4"):
        any_call(scale)(1.0, by=4)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        any_call(scale)(1.0, z=1)


@pytest.mark.parametrize(
    ("text", "name"),
    [("cora", "cora"), ("my graph (2).csv", "my-graph-2-.csv"), ("../x", "-x"), ("été", "été"), ("a" * 200, "a" * 100)],
)
def test_texts_become_names_that_can_be_part_of_a_path(text: str, name: str, tmp_path: Path) -> None:
    assert as_name(text) == name
    assert (tmp_path / name).parent == tmp_path
