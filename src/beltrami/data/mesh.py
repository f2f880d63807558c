"""Graphs kept on disk, so that a stencil that takes its time looks at the same points once."""

import hashlib
import warnings
from pathlib import Path

from torch import Tensor

from beltrami.data.digest import tensor_digest
from beltrami.data.source import cache_folder
from beltrami.data.store import STENCIL, Made, graph_digest, load_stencil, save_stencil
from beltrami.errors import DataError
from beltrami.graph import Edges
from beltrami.stencil import Stencil


def kept(stencil: Stencil, z: Tensor, edges: Edges, *, by: str, folder: Path | None = None) -> Edges:
    """``stencil(z, edges)``, from its file where there is one.

    The file is named by a digest of the points, the graph, the kind of device and ``by``. One that is damaged is made
    anew; one that cannot be written costs a warning.

    Args:
        stencil: what to ask.
        z: the points it looks at.
        edges: the input graph; the answer comes on its device.
        by: the stencil with its parameters, in words that change when its answer may.
        folder: where the files are; ``graphs`` below the cache folder by default.
    """
    asked = [tensor_digest({"z": z}, name=by), graph_digest(edges), str(edges.num_nodes), edges.device.type]
    folder = cache_folder() / "graphs" if folder is None else folder
    path = folder / f"{hashlib.sha256(' '.join(asked).encode()).hexdigest()}.safetensors"
    try:
        return load_stencil(path, edges.to("cpu")).to(edges.device)
    except DataError:
        found = stencil(z, edges)
    try:
        save_stencil(path, found.to("cpu"), edges.to("cpu"), Made(STENCIL, "", "", by))
    except OSError as error:
        warnings.warn(
            f"a graph could not be kept at {path} ({error.strerror or error}) and will be made again: name another "
            "folder in BELTRAMI_CACHE.",
            stacklevel=2,
        )
    return found
