"""Forward push compiled by numba: row by row, each in time proportional to the nodes it reaches, in several threads."""

import numpy as np
import torch

from beltrami.graph.ops.numba import jit
from beltrami.graph.pagerank.push import Entries, Estimate, Walk

MARGIN = 1e-4  # relative, larger than the rounding error of a score


def push(walk: Walk, first: int, last: int) -> Entries:
    """Rows [first, last) of P, entries in descending order: the entries of each row, their columns, their values."""
    ptr, index, step, threshold = (a.numpy() for a in (walk.ptr, walk.index, walk.step, walk.threshold))
    count, column, value = _push(first, last, ptr, index, step, threshold)
    return torch.from_numpy(count), torch.from_numpy(column), walk.restart * torch.from_numpy(value)


def refine(walk: Walk, estimate: Estimate, first: int, last: int, *, candidates: int, least: float) -> Entries:
    """P + R P^T + ell ell^T at the candidates of rows [first, last), rows and columns ascending.

    Candidates are the ``candidates`` largest entries of P + ell v^T + (R - ell v^T) diag(P) that are at least
    ``least``: the formula itself with P^T replaced by its diagonal for the part of R off v.
    """
    graph = tuple(a.numpy() for a in (walk.ptr, walk.index, walk.step, walk.v))
    rows = tuple(a.numpy() for a in (estimate.ptr, estimate.index, estimate.value, estimate.diagonal, estimate.left))
    count, column, value = _refine(first, last, graph, rows, np.float32(walk.restart), candidates, np.float32(least))
    row = torch.repeat_interleave(torch.arange(first, last), torch.from_numpy(count))
    return row, torch.from_numpy(column).long(), torch.from_numpy(value)


@jit
def _enlarged(array, length):  # type: ignore[no-untyped-def]
    """Return the array, enlarged to one and a half times ``length`` if it is shorter than ``length``."""
    if length <= len(array):
        return array
    larger = np.empty(length + length // 2, array.dtype)
    larger[: len(array)] = array
    return larger


@jit
def _push(first, last, ptr, index, step, threshold):  # type: ignore[no-untyped-def]
    n, used = len(threshold), 0
    p, r = np.zeros(n, np.float32), np.zeros(n, np.float32)
    seen, queued = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    touched, here, there = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    moving = np.empty(n, np.float32)
    count = np.zeros(last - first, np.int64)
    column, value = np.empty(1024, np.int32), np.empty(1024, np.float32)
    for seed in range(first, last):
        r[seed], seen[seed], touched[0], here[0] = 1, True, seed, seed
        reached, waiting = 1, 1
        while waiting:
            for k in range(waiting):
                u = here[k]
                moving[k], queued[u] = r[u], False
                p[u] += r[u]
                r[u] = 0
            after = 0
            for k in range(waiting):
                u = here[k]
                for e in range(ptr[u], ptr[u + 1]):
                    w = index[e]
                    r[w] += moving[k] * step[e]
                    if not seen[w]:
                        seen[w], touched[reached] = True, w
                        reached += 1
                    if r[w] > threshold[w] and not queued[w]:
                        queued[w], there[after] = True, w
                        after += 1
            here, there, waiting = there, here, after
        kept = 0
        for k in range(reached):
            u = touched[k]
            if p[u] > 0:
                here[kept], moving[kept] = u, p[u]
                kept += 1
            p[u], r[u], seen[u] = 0, 0, False
        column, value = _enlarged(column, used + kept), _enlarged(value, used + kept)
        for k in np.argsort(-moving[:kept]):
            column[used], value[used] = here[k], moving[k]
            used += 1
        count[seed - first] = kept
    return count, column[:used].copy(), value[:used].copy()


@jit
def _refine(first, last, graph, rows, restart, candidates, least):  # type: ignore[no-untyped-def]
    ptr, index, step, v = graph
    begin, node, entry, diagonal, left = rows
    n, used = len(left), 0
    p, r, seen = np.zeros(n, np.float32), np.zeros(n, np.float32), np.zeros(n, np.bool_)
    touched, place, score = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float32)
    count = np.zeros(last - first, np.int64)
    column, value = np.empty(1024, np.int32), np.empty(1024, np.float32)
    for seed in range(first, last):
        reached = 0
        for k in range(begin[seed], begin[seed + 1]):
            u = node[k]
            p[u], seen[u], touched[reached] = entry[k], True, u
            r[u] = -entry[k] / restart
            reached += 1
        r[seed] += 1
        for k in range(begin[seed], begin[seed + 1]):
            u, moving = node[k], entry[k] / restart
            for e in range(ptr[u], ptr[u + 1]):
                w = index[e]
                r[w] += moving * step[e]
                if not seen[w]:
                    seen[w], touched[reached] = True, w
                    reached += 1
        # R and ell are positive up to rounding: entries below so many of P are no candidates.
        cut = begin[seed] + candidates - 1
        floor = (1 - MARGIN) * entry[cut] if cut < begin[seed + 1] else least
        found = 0
        for k in range(reached):
            u = touched[k]
            even = left[seed] * v[u]
            s = p[u] + even + (r[u] - even) * diagonal[u]
            if s >= floor:
                place[found], score[found] = u, s
                found += 1
        chosen = place[:found]
        if found > candidates:
            chosen = chosen[np.argsort(-score[:found], kind="mergesort")[:candidates]]
        chosen = np.sort(chosen)
        column, value = _enlarged(column, used + len(chosen)), _enlarged(value, used + len(chosen))
        for u in chosen:
            total = p[u] + left[seed] * left[u]
            for k in range(begin[u], begin[u + 1]):
                total += entry[k] * r[node[k]]
            column[used], value[used] = u, total
            used += 1
        count[seed - first] = len(chosen)
        for k in range(reached):
            u = touched[k]
            p[u], r[u], seen[u] = 0, 0, False
    return count, column[:used].copy(), value[:used].copy()
