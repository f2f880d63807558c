"""A process of a training by parts on the toy graph; writes its losses and weights, for tests/distributed."""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from toy import two_cliques

import beltrami
from beltrami.diffusivity import ScaledDot
from beltrami.distributed import PartedModel, Workers, join_workers, partition_nodes
from beltrami.errors import DataError, NotFinite, SolverError
from beltrami.flow import BeltramiFlow, Coupling, LinearFlow, Rate, Source
from beltrami.graph import Columns, Rows
from beltrami.model import BLEND, Decoder, Encoder, Evolution
from beltrami.scheme import PID, Bosh3, Exponential, Scheme
from beltrami.stencil import Loops
from beltrami.train import Consistency, Epoch, TimeGrid, Training, fit, seeded

TOY = two_cliques(12)
PARTS = 5
KINDS = ("frozen", "live")
TRAINING = Training(
    epochs=2,
    optimiser=lambda groups: torch.optim.Adam(groups, lr=0.03),
    time_grid=TimeGrid(2.0, 2),
    validate_every=2,
    ema=0.5,
    consistency=Consistency(weight=0.5, passes=2),
    self_training=1,
)


PORTS = iter(os.environ.get("PORTS", "").split(","))


@contextmanager
def meeting() -> Iterator[Workers]:
    """Meet the other processes at a port that no earlier meeting used: one of them may not have left that one yet."""
    if "RANK" in os.environ:
        os.environ["MASTER_PORT"] = next(PORTS)
    with join_workers(timeout=120.0) as workers:
        yield workers


def network(kind: str) -> BLEND:
    """Return a network with dropout, batch norm, a coupling and positions: frozen by columns, or live by parts."""
    with seeded(0):
        over = Columns() if kind == "frozen" else Rows()
        diffusivity = ScaledDot(12, 8, heads=2, normalise=over)
        equation = {"frozen": LinearFlow, "live": BeltramiFlow}[kind]
        flow = equation(diffusivity, rate=Rate(), source=Source(0.3), coupling=Coupling(-0.3))
        scheme = Exponential(1e-6, 1e-6) if kind == "frozen" else Scheme(Bosh3(), PID(1e-4, 1e-4))
        return BLEND.from_parts(
            Encoder(6, 8, dropout=0.3, hidden=5),
            Evolution(flow, scheme=scheme, time=2.0, stencil=Loops(0.7)),
            Decoder(12, 2, dropout=0.4),
            phi=Encoder(3, 4, dropout=0.2),
            batch_norm=True,
            node_dropout=0.1,
        ).double()


def train(kind: str, *, parted: bool = True) -> dict[str, list[float]]:
    """Return the losses, the scores and the weights of a training, by parts in the processes that there are."""
    model, losses, scores = network(kind), list[float](), list[float]()

    def keep(epoch: Epoch) -> None:
        losses.extend(epoch.losses)
        scores.extend((epoch.scores[0].metric, epoch.scores[0].minus_loss, epoch.scores[0].time))

    inputs = model.prepare(TOY.x, TOY.edge_index, pos=TOY.pos)
    with meeting() as workers:
        trained = PartedModel(model, inputs, partition_nodes(inputs.edges, PARTS), workers) if parted else model
        fit(trained, inputs, TOY.y, TOY.split, TRAINING, callbacks=[keep])
    weights = torch.cat([weight.detach().flatten() for weight in model.parameters()])
    return {"losses": losses, "scores": scores, "weights": weights.tolist()}


def sentence(work: Callable[[Workers], object]) -> str:
    """Return the error of some work in a meeting of the workers; empty if there is none."""
    try:
        with meeting() as workers:
            work(workers)
    except (ValueError, DataError, SolverError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def full_disk(workers: Workers) -> None:
    """Write to a disk of the second worker that is full."""
    with workers.together():
        if workers.rank == 1:
            raise OSError(errno.ENOSPC, "No space left on device")


def refusals() -> dict[str, str]:
    """Return the errors of workers that cannot train together."""
    rank, found = int(os.environ["RANK"]), {"disk": sentence(full_disk)}
    found["settings"] = sentence(lambda workers: workers.check_equal("settings", f"{workers.rank}"))
    found["solve"] = sentence(lambda workers: workers.fail_together(NotFinite("it is NaN") if rank else None))
    found["file"] = sentence(lambda workers: json.loads(workers.send_file(b"" if rank else b"[1, 2]")))
    version, beltrami.__version__ = beltrami.__version__, f"0.{rank}"
    found["versions"] = sentence(lambda workers: None)
    beltrami.__version__ = version
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    Path(sys.argv[1]).write_text(json.dumps({kind: train(kind) for kind in KINDS} | {"refusals": refusals()}))
