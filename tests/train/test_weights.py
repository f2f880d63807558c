"""Weights are read from safetensors alone; any other file is refused and never unpickled."""

import pickle
from pathlib import Path

import pytest
import torch
from toy import scaled_dot, small_blend, two_cliques

from beltrami.errors import DataError
from beltrami.model import BLEND
from beltrami.train import load_weights, save_weights

TOY = two_cliques()


def other_weights(*, batch_norm: bool = False) -> BLEND:
    """The same kind of model with every number at zero."""
    model = small_blend(batch_norm=batch_norm)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.zero_()
    return model


@pytest.mark.parametrize("batch_norm", [False, True], ids=["plain", "batch norm"])
def test_weights_come_back_bit_by_bit(tmp_path: Path, batch_norm: bool) -> None:
    model, again = small_blend(batch_norm=batch_norm), other_weights(batch_norm=batch_norm)
    model(TOY.x, TOY.edge_index)  # so that batch norm has something to remember
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(again, tmp_path / "model.safetensors")
    expected = model.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in again.state_dict().items())
    assert torch.equal(again.eval()(TOY.x, TOY.edge_index), model.eval()(TOY.x, TOY.edge_index))


def test_missing_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no weights at .*: was the run finished\?"):
        load_weights(small_blend(), tmp_path / "model.safetensors")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.7])
def test_truncated_weights_are_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(small_blend(), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match=r"the weights in .* cannot be read \(.*\): train the run again"):
        load_weights(small_blend(), path)


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def test_pickle_is_refused_and_never_unpickled(tmp_path: Path) -> None:
    sprung, path = tmp_path / "sprung", tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(DataError, match=r"cannot be read"):
        load_weights(small_blend(), path)
    assert not sprung.exists()
    pickle.loads(path.read_bytes())
    assert sprung.exists(), "the trap works: it is the loader that did not unpickle it"


def test_torch_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    torch.save(small_blend().state_dict(), path)
    with pytest.raises(DataError, match=r"cannot be read"):
        load_weights(small_blend(), path)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(small_blend(positions=True, diffusivity=scaled_dot(positions=True)), path)
    with pytest.raises(DataError, match=r"are of another model \(.*\): check its configuration"):
        load_weights(small_blend(), path)


def test_saving_again_replaces_the_old_weights(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_weights(other_weights(), path)
    save_weights(small_blend(), path)
    again = other_weights()
    load_weights(again, path)
    assert torch.equal(again.xi.linear.weight, small_blend().xi.linear.weight)
    assert list(tmp_path.iterdir()) == [path]


def test_paths_may_be_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_weights(small_blend(), "m.safetensors")
    model = small_blend()
    load_weights(model, "m.safetensors")
    with pytest.raises(ValueError, match="save_weights needs `path` not to be empty; got ''"):
        save_weights(model, "")
    with pytest.raises(ValueError, match="load_weights needs `path` to be a string or a PathLike; got 3"):
        load_weights(model, 3)  # type: ignore[arg-type]
