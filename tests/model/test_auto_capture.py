"""A model in the user's own loop gives the same numbers whether or not its passes are captured as CUDA graphs."""

import copy
import io
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from toy import small_blend, two_cliques

from beltrami.diffusivity import ScaledDot
from beltrami.graph import Edges
from beltrami.model import BLEND, BeltramiConv, Inputs
from beltrami.model.auto_capture import FIRST_CALLS, AutoCapture
from beltrami.scheme import RK4, ConstantSteps, Exponential, Scheme, TimeStepping
from beltrami.train import seeded

TOY = two_cliques()
STEPS = FIRST_CALLS + 6
CONSTANT = Scheme(RK4(), ConstantSteps(0.5))


def make(*, capture: bool | None = None, scheme: TimeStepping = CONSTANT, frozen: bool = True) -> BLEND:
    # A bias before a batch norm has no gradient but round-off, which Adam turns into steps of full length.
    with seeded(0):
        model = small_blend(frozen=frozen, scheme=scheme, dropout=0.5, batch_norm=scheme is CONSTANT)
    model.capture = capture
    return model


def train(
    model: BLEND, *, passes: int = 1, set_to_none: bool = True, before: Callable[[int], object] = id
) -> list[float]:
    """Return the losses of a plain loop."""
    model, x, edge_index, y = model.cuda(), TOY.x.cuda(), TOY.edge_index.cuda(), TOY.y.cuda()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(STEPS):
        before(step)
        optimiser.zero_grad(set_to_none=set_to_none)
        loss = torch.stack([F.cross_entropy(model(x, edge_index), y) for _ in range(passes)]).sum()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


def is_captured(model: BLEND) -> bool:
    return any(mode.captured is not None for mode in model._auto_capture._modes.values())


def test_inputs_are_prepared_again_only_if_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = make(), []
    prepare = model.prepare

    def counted(*args: object) -> Inputs:
        calls.append(1)
        return prepare(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(model, "prepare", counted)
    x, edge_index = TOY.x.clone(), TOY.edge_index
    for _ in range(5):
        model(x, edge_index)
    assert len(calls) == 2  # inputs are kept from the second call on
    model(x.clone(), edge_index)
    assert len(calls) == 3
    for _ in range(3):
        model(x, edge_index)
    assert len(calls) == 5
    x.mul_(2)
    model(x, edge_index)
    assert len(calls) == 6


def test_a_change_of_the_features_in_place_is_noticed() -> None:
    model, x = make().eval(), TOY.x.clone()
    for _ in range(4):
        model(x, TOY.edge_index)
    x.mul_(3)
    torch.testing.assert_close(model(x, TOY.edge_index), model(x.clone(), TOY.edge_index), rtol=0, atol=0)


def test_inputs_follow_the_type_of_the_weights() -> None:
    model = make().eval()
    for _ in range(3):
        model(TOY.x, TOY.edge_index)
    assert model.double()(TOY.x, TOY.edge_index).dtype == torch.float64


def test_nothing_is_captured_on_a_cpu_and_copies_begin_empty() -> None:
    model = make()
    for _ in range(STEPS):
        model(TOY.x, TOY.edge_index)
    assert not is_captured(model)
    twin = copy.deepcopy(model)
    assert twin._last_inputs is not model._last_inputs
    assert twin._last_inputs._inputs is None
    torch.save(model, file := io.BytesIO())
    file.seek(0)
    again = torch.load(file, weights_only=False)
    torch.testing.assert_close(again.eval()(TOY.x, TOY.edge_index), model.eval()(TOY.x, TOY.edge_index))


class Replay:
    """Stands for a captured pass."""

    is_waiting = False

    def __call__(self, x: Tensor) -> Tensor:
        return x + 1


@pytest.mark.parametrize("captured", [Replay(), None], ids=["captured", "failed"])
def test_a_capture_is_tried_once_after_the_first_calls_and_replayed(
    monkeypatch: pytest.MonkeyPatch, captured: Replay | None
) -> None:
    tried, graph, layer, x = [], TOY, nn.Linear(2, 2), torch.zeros(1)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)

    def attempt(*_: object) -> Replay | None:
        tried.append(1)
        return captured

    monkeypatch.setattr(AutoCapture, "_captured", staticmethod(attempt))
    capture = AutoCapture()
    found = [float(capture(layer, lambda x: x, x, graph=graph, force=False)) for _ in range(FIRST_CALLS + 3)]
    assert found == [0.0] * FIRST_CALLS + [0.0 if captured is None else 1.0] * 3
    assert len(tried) == 1
    layer.in_features = 3  # an attribute changes: the calls are counted again
    assert float(capture(layer, lambda x: x, x, graph=graph, force=False)) == 0.0


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["frozen", "live", "exponential"])
def test_losses_of_a_plain_loop_are_those_without_a_capture(kind: str) -> None:
    scheme = Exponential(1e-7, 1e-7) if kind == "exponential" else CONSTANT
    plain, captured = (make(capture=capture, scheme=scheme, frozen=kind != "live") for capture in (False, None))
    expected, losses = train(plain), train(captured)
    assert losses == pytest.approx(expected, abs=1e-4)
    assert len(set(losses)) == STEPS
    assert is_captured(captured)
    assert not is_captured(plain)
    for one, other in zip(plain.buffers(), captured.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize(("passes", "set_to_none"), [(2, True), (1, False)])
def test_several_passes_and_kept_gradients_are_right(passes: int, set_to_none: bool) -> None:
    expected = train(make(capture=False), passes=passes, set_to_none=set_to_none)
    assert train(make(), passes=passes, set_to_none=set_to_none) == pytest.approx(expected, abs=1e-4)


@pytest.mark.gpu
def test_changed_attributes_and_weights_are_noticed() -> None:
    def loop(capture: bool | None) -> list[float]:
        model = make(capture=capture)

        def change(step: int) -> None:
            if step == FIRST_CALLS + 3:
                model.xi.dropout.p = 0.1
            if step == FIRST_CALLS + 5:
                with torch.no_grad():
                    model.xi.linear.weight = nn.Parameter(model.xi.linear.weight * 2)

        return train(model, before=change)

    assert loop(None) == pytest.approx(loop(False), abs=1e-4)


@pytest.mark.gpu
def test_evaluation_between_steps_is_right() -> None:
    plain, captured = make(capture=False).cuda(), make().cuda()
    x, edge_index = TOY.x.cuda(), TOY.edge_index.cuda()
    for _ in range(STEPS):
        outs = []
        for model in (plain, captured):
            model.train()(x, edge_index).square().sum().backward()
            with torch.no_grad():
                outs.append(model.eval()(x, edge_index))
        torch.testing.assert_close(*outs, rtol=1e-4, atol=1e-5)
    x.mul_(2)
    with torch.no_grad():
        torch.testing.assert_close(plain.eval()(x, edge_index), captured.eval()(x, edge_index), rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
def test_backward_after_a_change_of_the_weights_is_refused() -> None:
    model, x, edge_index = make().cuda(), TOY.x.cuda(), TOY.edge_index.cuda()
    for _ in range(STEPS):
        model(x, edge_index).sum().backward()
    loss = model(x, edge_index).sum()
    with torch.no_grad():
        model.xi.linear.weight.mul_(2)
    with pytest.raises(RuntimeError, match="values that have been overwritten"):
        loss.backward()


@pytest.mark.gpu
def test_a_pass_that_waits_for_its_gradient_survives_the_capture() -> None:
    x, edge_index = TOY.x.cuda(), TOY.edge_index.cuda()
    gradients = []
    for capture in (False, None):
        model = make(capture=capture).cuda()
        waiting = [model(x, edge_index) for _ in range(FIRST_CALLS + 3)]
        torch.stack(waiting).square().sum().backward()
        gradients.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
def test_hooks_see_every_call() -> None:
    model, x, edge_index, seen = make().cuda(), TOY.x.cuda(), TOY.edge_index.cuda(), []
    model.xi.register_forward_hook(lambda *_: seen.append(1))
    for _ in range(STEPS):
        model(x, edge_index).sum().backward()
    assert len(seen) == STEPS


class Synchronising(ScaledDot):
    """A diffusivity of a user that reads a value from the device."""

    def forward(self, z: Tensor, edges: Edges) -> Tensor:
        return super().forward(z, edges) * (1.0 if z.sum().item() < 1e30 else 0.0)


@pytest.mark.gpu
def test_parts_of_a_user_are_captured_on_demand_only_and_failures_are_told() -> None:
    model, x, edge_index = make().cuda(), TOY.x.cuda(), TOY.edge_index.cuda()
    width = model.xi.linear.in_features
    model.evolution.flow.diffusivity = Synchronising(width, 4, heads=1).cuda()
    for _ in range(STEPS):
        model(x, edge_index).sum().backward()
    assert not is_captured(model)
    expected = model.eval()(x, edge_index)
    model.capture = True
    for _ in range(FIRST_CALLS):
        model(x, edge_index)
    with pytest.warns(UserWarning, match="BLEND cannot be captured as a CUDA graph"):
        out = model(x, edge_index)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(model(x, edge_index), expected)
    assert not is_captured(model)


class Layers(nn.Module):
    """A hand-written network, whose second layer has an input that needs a gradient."""

    def __init__(self, *, capture: bool | None) -> None:
        super().__init__()
        self.start, self.end = nn.Linear(TOY.x.shape[1], 8), nn.Linear(8, 2)
        self.one, self.two = (BeltramiConv(8, heads=2, scheme=CONSTANT, capture=capture) for _ in range(2))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.end(self.two(torch.relu(self.one(self.start(x), edge_index)), edge_index))
        return out


@pytest.mark.gpu
def test_layers_of_a_users_network_are_captured_and_give_the_same_losses() -> None:
    found, x, edge_index, y = [], TOY.x.cuda(), TOY.edge_index.cuda(), TOY.y.cuda()
    for capture in (False, None):
        with seeded(0):
            model = Layers(capture=capture).cuda()
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        losses = []
        for _ in range(STEPS):
            optimiser.zero_grad()
            loss = F.cross_entropy(model(x, edge_index), y)
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
        modes = [mode for layer in (model.one, model.two) for mode in layer._auto_capture._modes.values()]
        assert any(mode.captured is not None for mode in modes) == (capture is None)
        found.append(losses)
    assert found[1] == pytest.approx(found[0], abs=1e-4)
    assert len(set(found[0])) == STEPS
