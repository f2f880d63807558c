"""Shared fixtures: a separate cache, the Triton kernels, the command line, datasets, a web server."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from shell import Beltrami, Outcome

from beltrami.data import Availability, Dataset, available, load, undirected
from beltrami.graph import ops, row_chunks
from beltrami.scheme.exponential import recurrence_sum

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is first imported: kernels are interpreted on the CPU


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``gpu`` where there is no CUDA device."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("BELTRAMI_CACHE")
    os.environ["BELTRAMI_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["BELTRAMI_CACHE"]
    else:
        os.environ["BELTRAMI_CACHE"] = before


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Select the Triton kernels, on a CUDA device or interpreted on the CPU, and return the device.

    Chunks and tiles are so short that rows of a few edges are split.
    """
    sparse_product = pytest.importorskip("beltrami.graph.ops.triton.sparse_product")
    if (request.param == "cuda") != torch.cuda.is_available():
        pytest.skip("kernels run on the CUDA device" if torch.cuda.is_available() else "there is no CUDA device")
    monkeypatch.setattr(row_chunks, "LONG", 4)
    monkeypatch.setattr(sparse_product, "TILE", 16)
    monkeypatch.setattr("beltrami.graph.ops.triton.attention_score.TILE", 16)
    monkeypatch.setattr("beltrami.graph.ops.triton.attention_forward.ONE_PASS", 4)  # one head of four channels
    monkeypatch.setattr("beltrami.graph.ops.attention.MAX_STORED", 0)  # attention without stored weights
    monkeypatch.setattr("beltrami.scheme.exponential.linear_combination_triton.TILE", 16)
    interpreted = not torch.cuda.is_available()
    monkeypatch.setattr(recurrence_sum, "uses_triton", lambda tensor: tensor.is_cuda or interpreted)
    with ops.use("triton"):
        yield request.param


@pytest.fixture
def beltrami(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Beltrami:
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("BELTRAMI_TRACEBACK", raising=False)
    monkeypatch.setattr("beltrami.report.progress.FIRST_LINE", 600.0)  # however slow the machine is

    from beltrami.cli import main

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["beltrami", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        return Outcome(code if isinstance(code, int) else 0, *capsys.readouterr())

    return call


@pytest.fixture
def empty_house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Unset BELTRAMI_DATA and proxies, set an empty cache folder, and return it."""
    cache = tmp_path / "cache"
    monkeypatch.delenv("BELTRAMI_DATA", raising=False)
    monkeypatch.setenv("BELTRAMI_CACHE", str(cache))
    monkeypatch.setenv("no_proxy", "*")
    return cache


@pytest.fixture
def real() -> Callable[[str], Dataset]:
    """Return a function that loads a dataset from the folder in BELTRAMI_DATA, or skips the test."""

    def load_or_skip(name: str) -> Dataset:
        if not os.environ.get("BELTRAMI_DATA"):
            pytest.skip("BELTRAMI_DATA is not set")
        if available(name) is not Availability.FOLDER:
            pytest.skip(f"the folder in BELTRAMI_DATA lacks {name}")
        return load(name)

    return load_or_skip


class QuietHandler(SimpleHTTPRequestHandler):
    """Serve a folder; the content of a file whose name begins with ``short`` is truncated to one half."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def copyfile(self, source: object, outputfile: object) -> None:
        body = source.read()  # type: ignore[attr-defined]
        half = len(body) // 2 if "/short" in self.path else len(body)
        outputfile.write(body[:half])  # type: ignore[attr-defined]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Return a folder, and the local address under which a server publishes it."""
    folder = tmp_path / "web"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def ring() -> Callable[..., Dataset]:
    """Return a function that makes a ring of ``nodes`` nodes, with classes 0, 1, 2, 0, 1, ..."""

    def make(nodes: int, *, classes: int = 3, name: str = "ring") -> Dataset:
        j = torch.arange(nodes)
        edge_index = undirected(torch.stack((j, (j + 1) % nodes)), num_nodes=nodes)
        return Dataset(name, torch.ones(nodes, 2), edge_index, j % classes)

    return make
