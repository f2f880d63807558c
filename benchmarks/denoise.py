"""Compare the Beltrami flow with scikit-image's filters on noisy images, every method at its best settings.

python benchmarks/denoise.py            measure, into results/image/denoise.json
python benchmarks/denoise.py --speed    measure the speed of the command line again, on an idle machine
python benchmarks/denoise.py --write    put the tables into docs/images.md
"""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage
import torch
from marks import filled, markdown
from numpy.typing import NDArray
from torch import Tensor

from beltrami.image import (
    Explicit,
    ImageFlow,
    InverseMetric,
    LaplaceBeltrami,
    Projected,
    Surface,
    bilateral,
    evolve,
    matched_alpha,
    psnr,
    ssim,
)
from beltrami.train import write_atomically

ROOT = Path(__file__).parents[1]
OUT, PAGE = ROOT / "results" / "image" / "denoise.json", ROOT / "docs" / "images.md"
IMAGES = ("camera", "coins", "astronaut")  # all three come inside scikit-image
SIGMA, SEED = 0.1, 0
HOLD = 0.5  # time for which the flows freeze their metric in the search
ALPHAS, PATCHES = (7.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0), (1, 3, 5, 7)
Array = NDArray[np.float64]


class Trial(NamedTuple):
    """The result of a method at some settings."""

    method: str
    settings: dict[str, float]
    y: Tensor
    seconds: float


def main() -> None:
    with ProcessPoolExecutor(len(IMAGES), mp_context=get_context("spawn")) as pool:
        rows = [row for found in pool.map(measure, IMAGES) for row in found]
    result: dict[str, Any] = {
        "command": "python benchmarks/denoise.py",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: version(name) for name in ("torch", "numpy", "scipy", "scikit-image", "pillow")},
        "noise": f"normal, sigma {SIGMA}, numpy's default_rng({SEED}), not clipped; every result is clipped to [0, 1]",
        "choice": "of each method the settings of largest PSNR on its grid, found with the clean image",
        "impulse": impulse(),
        "megapixel": megapixel(),
        "rows": rows,
    }
    save(result)


def save(result: dict[str, Any]) -> None:
    write_atomically(OUT, (json.dumps(result, indent=2) + "\n").encode())


def measure(name: str) -> list[dict[str, Any]]:
    """Return one row per method for one image."""
    from skimage import data

    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    rows = []
    clean = np.atleast_3d(getattr(data, name)().astype(np.float64) / 255)
    noisy = clean + SIGMA * np.random.default_rng(SEED).standard_normal(clean.shape)
    truth, x = tensor(clean), tensor(noisy)
    searches = [[Trial("noisy", {}, x, 0.0)], *(filter_trials(noisy, *each) for each in filters())]
    searches += [flow_trials(x, kind) for kind in (LaplaceBeltrami, InverseMetric, Projected)]
    for trials in (*searches, [default_trial(x)]):
        best = max(((psnr(t.y.clamp(0, 1), truth), t) for t in trials), key=lambda pair: pair[0])
        row = {"image": name, "method": best[1].method, "settings": best[1].settings, "psnr": round(best[0], 3)}
        row |= {"ssim": round(ssim(best[1].y.clamp(0, 1), truth), 4), "seconds": round(best[1].seconds, 2)}
        print(row, flush=True)
        rows.append(row)
    return rows


def filter_trials(
    x: Array, method: str, run: Callable[..., Array], settings: list[dict[str, float]]
) -> Iterator[Trial]:
    """Yield a filter's results at all of its settings."""
    for chosen in settings:
        start = time.perf_counter()
        y = np.atleast_3d(run(x, **chosen))
        yield Trial(method, chosen, tensor(y), time.perf_counter() - start)


def flow_trials(x: Tensor, kind: type[LaplaceBeltrami | InverseMetric | Projected]) -> Iterator[Trial]:
    """Yield a flow's results for every surface and time, until the noise is gone."""
    for alpha, patch in product(ALPHAS, PATCHES):
        flow: ImageFlow = kind(Surface(alpha, patch))
        y, start, steps = x, time.perf_counter(), round(min(20.0, 2.0 + 0.005 * alpha**2 * len(x)) / HOLD)
        for k in range(1, steps + 1):
            y = evolve(y, flow, time=HOLD, stepping=Explicit(HOLD))
            settings = {"alpha": alpha, "patch": patch, "time": k * HOLD, "hold": HOLD}
            yield Trial(type(flow).__name__, settings, y, time.perf_counter() - start)


def default_trial(x: Tensor) -> Trial:
    """Return the result of `beltrami denoise` at its default settings, chosen without a clean image."""
    start = time.perf_counter()
    surface = Surface(matched_alpha(x), 5)
    y = evolve(x, LaplaceBeltrami(surface), time=6.0, stepping=Explicit())
    settings = {"alpha": round(surface.alpha, 2), "patch": 5, "time": 6.0, "hold": 1.0}
    return Trial("LaplaceBeltrami, no search", settings, y, time.perf_counter() - start)


def filters() -> list[tuple[str, Callable[..., Array], list[dict[str, float]]]]:
    """Return the filters that are not flows, each with the settings to search."""
    from skimage.restoration import denoise_nl_means, denoise_tv_chambolle

    def gaussian(x: Array, sigma: float) -> Array:
        return np.asarray(scipy.ndimage.gaussian_filter(x, (sigma, sigma, 0.0), mode="reflect"))

    def tv(x: Array, weight: float) -> Array:
        return np.asarray(denoise_tv_chambolle(x, weight=weight, eps=1e-5, max_num_iter=500, channel_axis=-1))

    def non_local_means(x: Array, h: float, patch_size: int) -> Array:
        options = {"patch_size": patch_size, "patch_distance": 7, "fast_mode": True, "sigma": SIGMA}
        return np.asarray(denoise_nl_means(x, h=h, channel_axis=-1, **options))

    def eq6_bilateral(x: Array, colour: float, plane: float) -> Array:
        y = bilateral(tensor(x), time=plane**2 / 2, alpha=plane / colour, radius=int(3 * plane))
        return y.permute(1, 2, 0).double().numpy()

    colours, planes = (0.04, 0.06, 0.08, 0.15, 0.2, 0.3, 0.4), (1.0, 1.5, 2.0, 2.5)
    return [
        ("Gaussian", gaussian, grid(sigma=(0.7, 0.8, 0.9, 1.0, 1.1, 1.2))),
        ("bilateral, scikit-image", scikit_bilateral, grid(colour=colours, plane=planes)),
        ("bilateral, eq. (6)", eq6_bilateral, grid(colour=colours, plane=planes)),
        ("total variation", tv, grid(weight=(0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12))),
        ("non-local means", non_local_means, grid(h=(0.04, 0.05, 0.06, 0.07, 0.08), patch_size=(3, 5, 7))),
    ]


def scikit_bilateral(x: Array, colour: float, plane: float) -> Array:
    """Apply scikit-image's bilateral filter; its colour table starts at 0, so values are shifted by one."""
    from skimage.restoration import denoise_bilateral

    options = {"sigma_color": colour, "sigma_spatial": plane, "bins": 100_000, "mode": "symmetric"}
    y = denoise_bilateral(x + 1.0 if x.shape[-1] > 1 else x[..., 0] + 1.0, channel_axis=_channels(x), **options)
    return np.asarray(y) - 1.0


def impulse() -> dict[str, list[float]]:
    """Return both bilateral filters' responses to one bright pixel, colours ignored; a Gaussian is expected."""
    x = np.full((15, 15, 1), 0.5)
    x[7, 7] = 0.6
    one = np.atleast_3d(scikit_bilateral(x, 100.0, 1.0))[7, 4:11, 0]
    other = bilateral(tensor(x), time=0.5, alpha=0.01, radius=3)[0, 7, 4:11].double().numpy()
    made = {"bilateral, scikit-image": one, "bilateral, eq. (6)": other}
    return {name: [round(float(value), 4) for value in (row - 0.5) / 0.1] for name, row in made.items()}


def megapixel() -> dict[str, Any]:
    """Time the whole process of the command line on a 1024 x 1024 colour image, on one thread and on two."""
    from PIL import Image
    from skimage import data

    clean = np.tile(data.astronaut(), (2, 2, 1))
    noisy = clean / 255 + SIGMA * np.random.default_rng(SEED).standard_normal(clean.shape)
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.png", Path(folder) / "out.png"
        Image.fromarray(np.rint(255 * noisy.clip(0, 1)).astype(np.uint8)).save(source)
        for threads in (1, 2, 1, 2):
            environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            command = [sys.executable, "-m", "beltrami", "denoise", str(source), str(out)]
            subprocess.run(command, env=environment, check=True, capture_output=True)
            seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            took = {"threads": threads, "seconds": round(seconds, 2), "cpu_seconds": round(used, 2)}
            runs.append({**took, "load": round(os.getloadavg()[0], 1)})
    return {"command": "beltrami denoise in.png out.png", "runs": runs}


def grid(**values: Sequence[float]) -> list[dict[str, float]]:
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def tensor(x: Array) -> Tensor:
    """(h, w, c) -> (c, h, w), single precision."""
    return torch.from_numpy(x.astype(np.float32)).permute(2, 0, 1).contiguous()


def tables() -> tuple[str, str]:
    """Return two tables: PSNR and SSIM of every method on every image, and the settings used."""
    rows = json.loads(OUT.read_text())["rows"]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    found = {(row["method"], row["image"]): row for row in rows}
    head = ("method", *IMAGES)
    quality = [(m, *(f"{found[m, i]['psnr']:.2f} / {found[m, i]['ssim']:.3f}" for i in IMAGES)) for m in methods]
    settings = [(m, *(_settings(found[m, i]["settings"]) for i in IMAGES)) for m in methods[1:]]
    return markdown(head, quality), markdown(head, settings)


def _settings(chosen: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in chosen.items() if name != "hold")


def _channels(x: Array) -> int | None:
    return -1 if x.shape[-1] > 1 else None


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        made = dict(zip(("quality", "settings"), tables(), strict=True))
        PAGE.write_text(filled(PAGE.read_text(), made, page=PAGE.name))
    elif "--speed" in sys.argv[1:]:
        save({**json.loads(OUT.read_text()), "megapixel": megapixel()})
    else:
        main()
