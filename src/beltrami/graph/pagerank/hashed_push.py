"""Forward push for graphs of any size: the nodes that a row reaches are kept in a hash table.

:mod:`~beltrami.graph.pagerank.push_numba` has arrays of the length of the graph, which is faster while these fit into
the cache. With ten million nodes a table of the few nodes that a row reaches is faster, and its memory does not
depend on the graph, whose arrays may be memory maps.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from beltrami.graph.ops.numba import jit

Array = NDArray[Any]


def push_top(
    graph: tuple[Array, Array, Array, Array], first: int, columns: Array, values: Array, *, restart: float
) -> int:
    r"""Write the largest entries of P + rho R of the rows from ``first`` on, and return how many nodes they reach.

    P and R are those of push (:mod:`~beltrami.graph.pagerank.push`). Since :math:`K = P + R K \ge P + \rho R`, the
    entries are lower bounds of those of K, closer than the entries of P. Entries descend, ties by node; behind the last
    one of a row come -1 and 0.

    Args:
        graph: ptr (n + 1,), index (m,), the entries of (1 - rho) S (m,), and the thresholds (n,), float32.
        first: the node of the first row.
        columns, values: arrays for the entries, (rows, top), int32 and float32.
    """
    reached: int = _push_top(first, graph, np.float32(restart), columns, values)
    return reached


@jit
def _push_top(first, graph, restart, columns, values):  # type: ignore[no-untyped-def]
    ptr, index, step, threshold = graph
    state, top, total = _new_state(1024), columns.shape[1], 0
    for row in range(len(columns)):
        state, reached = _push_row(first + row, ptr, index, step, threshold, state)
        _, _, cell, slot, node, _, _, _ = state
        best, score, found = columns[row], values[row], 0
        for k in range(reached):
            s, u = cell[slot[k], 0] + cell[slot[k], 3], node[k]
            if s <= 0 or (found == top and (s < score[top - 1] or (s == score[top - 1] and u > best[top - 1]))):
                continue
            place = min(found, top - 1)
            while place > 0 and (s > score[place - 1] or (s == score[place - 1] and u < best[place - 1])):
                best[place], score[place] = best[place - 1], score[place - 1]
                place -= 1
            best[place], score[place] = u, s
            found = min(found + 1, top)
        total += reached
        score[:found] *= restart
        best[found:], score[found:] = -1, 0
    return total


@jit
def _new_state(size):  # type: ignore[no-untyped-def]
    """Return the arrays of :func:`_push_row` for so many nodes: the number of nodes in use; a hash table of nodes, -1
    where it is empty, and r, threshold while not queued, threshold and p of the node in each slot; in the order of
    arrival the slots and the nodes; two queues of nodes; what each queued node passes on."""
    table, cell = np.full(2 * size, -1, np.int32), np.empty((2 * size, 4), np.float32)
    slot, node, moving = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.float32)
    return np.zeros(1, np.int64), table, cell, slot, node, np.empty(size, np.int32), np.empty(size, np.int32), moving


@jit
def _larger_state(state, reached, length):  # type: ignore[no-untyped-def]
    """Return the arrays with room for ``length`` nodes."""
    size = 2 * len(state[4])
    while size < length:
        size *= 2
    new = _new_state(size)
    for k in range(reached):
        place = _slot(new[1], state[4][k])
        new[1][place], new[3][k] = state[4][k], place
        new[2][place] = state[2][state[3][k]]
    new[0][0] = state[0][0]
    for old, copy in ((state[4], new[4]), (state[5], new[5]), (state[6], new[6])):
        copy[: len(old)] = old
    new[7][: len(state[7])] = state[7]
    return new


@jit
def _slot(table, node):  # type: ignore[no-untyped-def]
    """Return the slot of a node in the table, or the empty slot where it belongs."""
    mask = len(table) - 1
    place = (np.int64(node) * 0x1E3779B97F4A7C15 >> 32) & mask
    while table[place] != node and table[place] >= 0:
        place = (place + 1) & mask
    return place


@jit
def _push_row(seed, ptr, index, step, threshold, state):  # type: ignore[no-untyped-def]
    """Push from one node; return the arrays, with r and p of the nodes reached, and the number of these nodes.

    Nodes are looked up in a hash table, so that memory does not depend on the size of the graph.
    """
    in_use, table, cell, slot, node, here, there, moving = state
    for k in range(in_use[0]):  # by the row before
        table[slot[k]] = -1
    place = _slot(table, seed)
    table[place], slot[0], node[0], here[0] = seed, place, seed, seed
    cell[place, 0], cell[place, 1], cell[place, 2], cell[place, 3] = 1, threshold[seed], threshold[seed], 0
    reached, waiting = 1, 1
    while waiting:
        for k in range(waiting):
            place = _slot(table, here[k])
            moving[k] = cell[place, 0]
            cell[place, 3] += cell[place, 0]
            cell[place, 0], cell[place, 1] = 0, cell[place, 2]
        after = 0
        for k in range(waiting):
            u, mass = here[k], moving[k]
            begin, end = ptr[u], ptr[u + 1]
            if reached + end - begin > len(node):
                state = _larger_state(
                    (in_use, table, cell, slot, node, here, there, moving), reached, reached + end - begin
                )
                in_use, table, cell, slot, node, here, there, moving = state
            for e in range(begin, end):
                w = index[e]
                place = _slot(table, w)
                if table[place] < 0:
                    table[place], slot[reached], node[reached] = w, place, w
                    cell[place, 0], cell[place, 1], cell[place, 2], cell[place, 3] = 0, threshold[w], threshold[w], 0
                    reached += 1
                cell[place, 0] += mass * step[e]
                if cell[place, 0] > cell[place, 1]:
                    cell[place, 1], there[after] = np.inf, w
                    after += 1
        here, there, waiting = there, here, after
    in_use[0] = reached
    return (in_use, table, cell, slot, node, here, there, moving), reached
