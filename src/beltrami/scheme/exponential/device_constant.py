"""Constants: small tensors that depend on nothing but numbers, made once for a device and kept."""

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

import torch
from torch import Tensor

P = ParamSpec("P")
MOST = 64  # kept by each function


def kept(build: Callable[Concatenate[torch.device, P], Tensor]) -> Callable[Concatenate[torch.device, P], Tensor]:
    """A function of a device and hashable arguments that remembers its results; nobody may write to them.

    What is made while a CUDA graph is being recorded exists only when that is replayed, so it is not kept. Warm-up
    runs come before, and leave everything here.
    """
    known: OrderedDict[object, Tensor] = OrderedDict()

    @wraps(build)
    def get(device: torch.device, /, *args: P.args, **options: P.kwargs) -> Tensor:
        key = (device, args, tuple(sorted(options.items())))
        found = known.get(key)
        if found is None:
            with torch.inference_mode(False), torch.no_grad():
                found = build(device, *args, **options)
            if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
                return found
            known[key] = found
            if len(known) > MOST:
                known.popitem(last=False)
        return found

    return get
