"""The commands that write files: positions of nodes, rewired graphs and denoised images."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Annotated

from typer import Argument, Option

from beltrami.cli.folder_commands import (
    FolderOptions,
    Memory,
    Tolerance,
    encode_graph_folder,
    is_folder,
    rewire_graph_folder,
)
from beltrami.cli.graph_options import refuse_for_dataset, refuse_for_datasets_only
from beltrami.cli.option import Device, Settings, check_device, check_file, check_seed
from beltrami.errors import UnknownName

COMPARISON, PAGE = "-compare.png", ".html"  # replace the suffix of OUT
Component = Annotated[
    str | None, Option(help="Of a dataset: largest, the default, or all. A run needs the same `data.component`.")
]
Dataset = Annotated[str, Argument(help="A dataset's name; `beltrami datasets` lists them. Or a graph folder.")]
Out = Annotated[Path, Option(help="The file to write, in safetensors; for a graph folder the folder to write.")]


def encode(
    dataset: Dataset,
    encoding: Annotated[str, Option(help="How: ppr, heat, laplacian, walk, deepwalk or hyperbolic.")],
    out: Out,
    component: Component = None,
    seed: Annotated[
        int | None, Option(help="Seed of deepwalk and hyperbolic; 0 by default.", callback=check_seed)
    ] = None,
    settings: Settings = None,
    memory: Memory = None,
    tolerance: Tolerance = None,
    device: Device = "cpu",
) -> None:
    """Write positions of a dataset's nodes to a file.

    Settings: `position.restart` and `top` (ppr), `time` and `top` (heat), `channels` (laplacian, walk, deepwalk,
    hyperbolic), `walk_length` (deepwalk; null for the best of several). Positions are cached.

    A run takes the positions with `--set position.kind=file --set position.path=FILE`, and checks that they are those
    of its graph.

    A graph folder, which `beltrami convert` writes, has ppr and deepwalk in bounded memory: npy arrays in the folder of
    `--out`, which may be the same.

    Examples:
    - `beltrami encode cora --encoding deepwalk --set position.channels=64 --out cora-deepwalk.safetensors`
    - `beltrami train cora --set position.kind=file --set position.path=cora-deepwalk.safetensors`
    - `beltrami encode my-graph --encoding ppr --set position.top=32 --tolerance 1e-3 --memory 16GiB --out my-rows`
    """
    options = FolderOptions(memory, tolerance)
    if is_folder(dataset):
        refuse_for_datasets_only({"--component": component, "--device": None if device == "cpu" else device})
        encode_graph_folder(Path(dataset), encoding, out, seed=seed, settings=settings or [], options=options)
        return
    refuse_for_dataset(dataset, vars(options))
    component = component or "largest"
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
    component: Component = None,
    settings: Settings = None,
    memory: Memory = None,
    tolerance: Tolerance = None,
    device: Device = "cpu",
) -> None:
    """Write the graph that a stencil makes of a dataset's graph, and compare the two.

    knn and radius look at the positions of `--positions`, else at the features as they are. Settings: `stencil.k` (knn,
    digl), `radius` (radius), `restart` (digl, threshold), `least` (threshold), `symmetric`, `weighted`, `loops`.

    Homophily is computed from the labels of all nodes: do not choose a graph by it.

    A run takes the graph with `--set stencil.kind=file --set stencil.path=FILE`, and checks that it was made of its
    own.

    Of a graph folder, which `beltrami convert` writes, digl and knn make a new graph folder in bounded memory;
    `--positions` then names an array file, such as `pos.npy`.

    Examples:
    - `beltrami rewire cora --stencil digl --set stencil.k=64 --out cora-digl.safetensors`
    - `beltrami rewire cora --stencil knn --positions cora-deepwalk.safetensors --out cora-knn.safetensors`
    - `beltrami train cora --set stencil.kind=file --set stencil.path=cora-digl.safetensors --set stencil.loops=0`
    - `beltrami rewire my-graph --stencil knn --set stencil.k=16 --memory 16GiB --out my-neighbours`
    """
    options = FolderOptions(memory, tolerance)
    if is_folder(dataset):
        refuse_for_datasets_only({"--component": component, "--device": None if device == "cpu" else device})
        rewire_graph_folder(Path(dataset), stencil, out, positions=positions, settings=settings or [], options=options)
        return
    refuse_for_dataset(dataset, vars(options))
    component = component or "largest"
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


def denoise(
    source: Annotated[Path, Argument(help="The noisy image: PNG, JPEG or TIFF.", metavar="IN")],
    out: Annotated[Path, Argument(help="The file to write; not IN.", metavar="OUT")],
    alpha: Annotated[float | None, Option(help="Keep edges above 1/alpha; by default matched to the noise.")] = None,
    time: Annotated[float, Option(help="Time to evolve.")] = 6.0,
    patch: Annotated[int, Option(help="Side of the patches that find edges, odd; 1 for none.")] = 5,
    scheme: Annotated[str, Option(help="Time stepping: explicit or implicit.")] = "explicit",
    compare: Annotated[bool, Option("--compare", help="Also write input, output and edges side by side.")] = False,
    page: Annotated[bool, Option("--page", help="Also write a page: before, after, the flow over time.")] = False,
    clean: Annotated[Path | None, Option(help="The image without noise: prints PSNR and SSIM.")] = None,
    device: Device = "cpu",
) -> None:
    """Remove noise from an image by the Beltrami flow, which keeps edges.

    Grey and colour, 8 and 16 bits per sample. OUT has the mode and depth of IN; an alpha channel is copied unchanged.
    `--compare` writes a second image, `OUT-compare.png`, and `--page` a page, `OUT.html` without the image's suffix.

    Examples:
    - `beltrami denoise noisy.png smooth.png`
    - `beltrami denoise noisy.tif smooth.tif --alpha 20 --time 8 --compare`
    - `beltrami denoise noisy.png smooth.png --page --clean original.png`
    """
    import torch

    from beltrami.image import Explicit, Implicit, LaplaceBeltrami, Surface, matched_alpha, states
    from beltrami.image.image_file import check_format, comparison, encode_image, read_image
    from beltrami.report.image_page import ImageFlowData, image_page
    from beltrami.report.progress import display
    from beltrami.report.terminal import print_denoising
    from beltrami.train import write_atomically

    torch_device = check_device(device)
    paths = [out, out.with_name(out.stem + COMPARISON)] if compare else [out]
    _check_paths(paths, [source] if clean is None else [source, clean])
    if page:
        check_file(out.with_suffix(PAGE))
    steppings = {"explicit": Explicit(), "implicit": Implicit()}
    if scheme not in steppings:
        raise UnknownName("scheme", scheme, steppings)
    picture = read_image(source)
    check_format(picture, out)
    clean_x = None if clean is None else read_image(clean).x
    if clean_x is not None and clean_x.shape != picture.x.shape:
        (c, h, w), (channels, height, width) = clean_x.shape, picture.x.shape
        raise ValueError(
            f"{clean} has {w} x {h} pixels of {c} colours and {source} {width} x {height} of {channels}: "
            "`--clean` needs the same image without its noise."
        )
    start = perf_counter()
    with torch.no_grad(), display("denoising") as shown:
        x = picture.x.to(torch_device)
        surface = Surface(matched_alpha(x) if alpha is None else alpha, patch)
        along = ImageFlowData(f"{source.name} and {out.name}", surface, clean_x)
        for t, y in states(x, LaplaceBeltrami(surface), time=time, stepping=steppings[scheme]):
            shown.status(f"denoising: t = {t:.3g} of {time:g}")
            if page:
                along.add(t, y.clamp(0.0, 1.0).cpu())
        y = y.clamp(0.0, 1.0)
        pictures = [replace(picture, x=y)] + ([comparison(x, y, surface)] if compare else [])
    seconds = perf_counter() - start
    for path, content in zip(paths, pictures, strict=True):
        write_atomically(path, encode_image(content, path))
    if page:
        paths.append(out.with_suffix(PAGE))
        write_atomically(paths[-1], image_page(along).encode())
    print_denoising(picture.x, y.cpu(), surface, clean=clean_x, seconds=seconds, paths=paths)


def _check_paths(outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse, before any work, suffixes of no image, outputs that cannot be written, and outputs over an input."""
    from beltrami.image.image_file import image_format

    for path in (*inputs, *outputs):
        image_format(path)
    for path in outputs:
        if path.is_dir():
            raise OSError(f"{path} is a folder: name a file in it.")
        if path.resolve() in [other.resolve() for other in inputs]:
            raise ValueError(f"{path} would overwrite an input: give OUT another name.")
        if not os.access(path.parent, os.W_OK):
            raise OSError(f"cannot write to the folder {path.parent}: choose another folder for OUT.")
