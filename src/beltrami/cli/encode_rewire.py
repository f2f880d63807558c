"""The commands that write positions of nodes and rewired graphs to files."""

from pathlib import Path
from typing import Annotated

from typer import Option

from beltrami.cli.option import Component, Dataset, Device, Settings, check_device, check_file

Out = Annotated[Path, Option(help="The file to write, in safetensors.")]


def encode(
    dataset: Dataset,
    encoding: Annotated[str, Option(help="How: ppr, heat, laplacian, walk, deepwalk or hyperbolic.")],
    out: Out,
    component: Component = "largest",
    seed: Annotated[int | None, Option(help="Seed of deepwalk and hyperbolic; 0 by default.")] = None,
    settings: Settings = None,
    device: Device = "cpu",
) -> None:
    """Write positions of a dataset's nodes to a file.

    Settings: `position.restart` and `top` (ppr), `time` and `top` (heat), `channels` (laplacian, walk, deepwalk,
    hyperbolic), `walk_length` (deepwalk; null for the best of several). Positions are cached.

    A run takes the positions with `--set position.kind=file --set position.path=FILE`, and checks that they are those
    of its graph.

    Examples:

    - `beltrami encode cora --encoding deepwalk --set position.channels=64 --out cora-deepwalk.safetensors`

    - `beltrami train cora --set position.kind=file --set position.path=cora-deepwalk.safetensors`
    """
    from beltrami import precompute
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_positions

    spec = precompute.position_settings(encoding, seed=seed, settings=settings or [])
    precompute.check_dataset(dataset, component=component)
    where = check_device(device)
    check_file(out)
    with display(f"{dataset} / {encoding}") as shown:
        found = precompute.encode(dataset, spec, out, component=component, device=where, progress=shown.update)
    print_positions(found.positions, seconds=found.seconds, from_cache=found.from_cache, path=out)


def rewire(
    dataset: Dataset,
    stencil: Annotated[str, Option(help="How: knn, radius, digl, threshold, complete, isolated or keep.")],
    out: Out,
    positions: Annotated[Path | None, Option(help="Positions for knn and radius, as `encode` wrote them.")] = None,
    component: Component = "largest",
    settings: Settings = None,
    device: Device = "cpu",
) -> None:
    """Write the graph that a stencil makes of a dataset's graph, and compare the two.

    knn and radius look at the positions of `--positions`, else at the features as they are. Settings: `stencil.k` (knn,
    digl), `radius` (radius), `restart` (digl, threshold), `least` (threshold), `symmetric`, `weighted`, `loops`.

    Homophily is computed from the labels of all nodes: do not choose a graph by it.

    A run takes the graph with `--set stencil.kind=file --set stencil.path=FILE`, and checks that it was made of its
    own.

    Examples:

    - `beltrami rewire cora --stencil digl --set stencil.k=64 --out cora-digl.safetensors`

    - `beltrami rewire cora --stencil knn --positions cora-deepwalk.safetensors --out cora-knn.safetensors`

    - `beltrami train cora --set stencil.kind=file --set stencil.path=cora-digl.safetensors --set stencil.loops=0`
    """
    from beltrami import precompute
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_rewiring

    spec = precompute.stencil_settings(stencil, positions=positions, settings=settings or [])
    precompute.check_dataset(dataset, component=component)
    where = check_device(device)
    check_file(out)
    with display(f"{dataset} / {stencil}") as shown:
        found = precompute.rewire(
            dataset, spec, out, positions=positions, component=component, device=where, progress=shown.update
        )
    print_rewiring(found.rewiring, seconds=found.seconds, path=out)
