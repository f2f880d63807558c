"""Preprocess a generated graph of 10^7 nodes and 10^8 directed edges in bounded memory; record time, memory, overlap.

The graph and vectors of 16 channels are written to folders under `--work` and preprocessed by `--threads` threads with
at most 16 GiB of private memory (`RLIMIT_DATA`): the 32 largest entries of every row of personalised PageRank by push,
and the 16 nearest rows of every row by faiss. Push takes the smallest tolerance of a list that a sample of 10^4 rows
predicts to end in `--push-minutes`. The results are compared with exact ones at 1,000 nodes. Each stage is recorded in
`results/preprocess_large.json` when it ends.
"""

import argparse
import json
import os
import resource
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from large_graph import write_large_graph, write_vectors
from numpy.typing import NDArray
from scipy.sparse import csr_array

from beltrami.data.array_file import new_array, open_array
from beltrami.data.graph_folder import GraphFolder
from beltrami.external.nearest_rows import INDEX, LISTS, write_nearest_rows
from beltrami.external.pagerank_rows import check_symmetric, push_rows, walk_arrays
from beltrami.graph.pagerank.hashed_push import push_top

Walk = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
GIB = 2**30
STAGES = ("graph", "nearest", "push", "power")
RESTART, TOP = 0.15, 32
TOLERANCES = (1e-2, 5e-3, 3e-3, 2e-3, 1.5e-3, 1e-3, 7e-4, 5e-4, 3e-4, 2e-4, 1e-4)
REFERENCE = 5e-6  # tolerance of the reference rows
SAMPLE, COMPARED, POWER_SOURCES = 10_000, 1_000, 8
NEIGHBOURS, CHANNELS = 16, 16
SORT_MEMORY = 2 * GIB  # budget of the stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--edges-per-node", type=float, default=5.75)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit-gib", type=float, default=16.0)
    parser.add_argument("--push-minutes", type=float, default=20.0)
    parser.add_argument("--probe", type=int, default=8)
    parser.add_argument(
        "--work", type=Path, required=True, help="a folder for the graph and the results; 6 GB are used"
    )
    parser.add_argument("--out", type=Path, default=Path("results/preprocess_large.json"))
    parser.add_argument("--only", nargs="*", choices=STAGES, help="run these stages again and keep the others' records")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    limit = int(options.limit_gib * GIB)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    record: dict[str, Any] = {
        "nodes": options.nodes,
        "threads": options.threads,
        "limit_of_private_memory_gib": options.limit_gib,
        "cores": os.cpu_count(),
        "note": "Other programs shared the machine: `load` is the mean number of running programs in a stage, "
        "`seconds_of_computing` the sum over the threads. Private memory is limited; pages of mapped files are not.",
        "stages": {},
    }
    if options.only and options.out.exists():
        record = json.loads(options.out.read_text())
    chosen = options.only or STAGES
    graph = generate(record, options) if "graph" in chosen else GraphFolder.open(options.work / "graph")
    if "nearest" in chosen:
        nearest(record, options)
        compare_nearest(record, options)
    if not {"push", "power"} & {*chosen}:
        return
    with ExitStack() as stack:
        with measured(record, options, "check that the graph is undirected"):
            check_symmetric(graph, needed_by="push")
        with measured(record, options, "entries of S"):
            settings: dict[str, Any] = {"restart": RESTART, "tolerance": 1.0, "loops": 0.0}
            arrays = stack.enter_context(walk_arrays(graph, options.work, memory=SORT_MEMORY, **settings))
        if "push" in chosen:
            push(record, options, arrays)
            compare_push(record, options, arrays)
        if "power" in chosen:
            power_rows(record, options, arrays)


def generate(record: dict[str, Any], options: argparse.Namespace) -> GraphFolder:
    with measured(record, options, "generate") as stage:
        graph = write_large_graph(
            options.work / "graph",
            num_nodes=options.nodes,
            edges_per_node=options.edges_per_node,
            memory=SORT_MEMORY,
        )
        write_vectors(options.work / "vectors.npy", num_nodes=options.nodes, channels=CHANNELS)
        degrees = np.diff(graph.ptr)
        record["directed_edges"] = graph.num_edges
        stage["degrees"] = {
            "least": int(degrees.min()),
            "median": float(np.median(degrees)),
            "mean": float(degrees.mean()),
            "99.9 percent": float(np.percentile(degrees, 99.9)),
            "largest": int(degrees.max()),
        }
    return graph


def push(record: dict[str, Any], options: argparse.Namespace, arrays: Walk) -> None:
    """Push from all rows in blocks, or from as many as the time allows."""
    seconds = 60 * options.push_minutes
    with measured(record, options, "choose the tolerance of push") as stage:
        sampled = {}
        for tolerance in TOLERANCES:
            sampled[tolerance] = sample_seconds(at(tolerance, arrays), options.nodes)
            if sampled[tolerance] / SAMPLE * options.nodes > 0.6 * seconds:
                break
        fits = [each for each in sampled if sampled[each] / SAMPLE * options.nodes <= 0.6 * seconds]
        tolerance = min(fits, default=TOLERANCES[0])
        stage["seconds_of_10000_rows_by_tolerance"] = {f"{each:g}": sampled[each] for each in sampled}
        stage["tolerance"] = tolerance
    with measured(record, options, "push") as stage:
        arrays = at(tolerance, arrays)
        stage |= {"restart": RESTART, "top": TOP, "tolerance": tolerance}
        start, rows, reached = time.perf_counter(), 0, 0
        shape, block = (options.nodes, TOP), max(1, options.nodes // 64)
        with (
            new_array(options.work / "ppr-index.npy", shape=shape, dtype=np.int32) as index,
            new_array(options.work / "ppr-value.npy", shape=shape, dtype=np.float32) as value,
        ):
            while rows < options.nodes and time.perf_counter() - start < seconds:
                part = slice(rows, rows + block)
                reached += push_rows(arrays, index[part], value[part], restart=RESTART, first=rows)
                rows = min(rows + block, options.nodes)
                print(f"push: {rows:,} rows, {time.perf_counter() - start:.0f} s", flush=True)
        spent = time.perf_counter() - start
        stage |= {"rows": rows, "rows_per_second": rows / spent, "nodes_reached_by_a_row": reached / rows}
        if rows < options.nodes:
            stage["extrapolated_seconds_of_all_rows"] = spent * options.nodes / rows


def sample_seconds(arrays: Walk, nodes: int) -> float:
    """Return the time of 10^4 rows, from ten places of the graph, by torch's number of threads."""
    count = min(SAMPLE, nodes) // 10

    def place(first: float) -> int:
        index, value = np.empty((count, TOP), np.int32), np.empty((count, TOP), np.float32)
        return push_top(arrays, int(first), index, value, restart=RESTART)

    place(0)  # compiles
    start = time.perf_counter()
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(place, np.linspace(0, nodes - count, 10)))
    return (time.perf_counter() - start) * SAMPLE / (10 * count)


def compare_push(record: dict[str, Any], options: argparse.Namespace, arrays: Walk) -> None:
    """Compare with rows that push guarantees to be exact to ``REFERENCE`` times the root of the degree."""
    index, value = (open_array(options.work / f"ppr-{name}.npy") for name in ("index", "value"))
    rows = record["stages"]["push"]["rows"]
    nodes = np.random.default_rng(1).choice(rows, min(COMPARED, rows), replace=False)
    exact, entries = np.full((len(nodes), TOP), -1, np.int32), np.zeros((len(nodes), TOP), np.float32)
    with measured(record, options, "exact rows of PageRank") as stage:
        arrays, start = at(REFERENCE, arrays), time.perf_counter()

        def exact_row(k: int) -> bool:
            if time.perf_counter() - start > 30 * options.push_minutes:
                return False
            push_top(arrays, int(nodes[k]), exact[k : k + 1], entries[k : k + 1], restart=RESTART)
            return True

        with ThreadPoolExecutor(options.threads) as pool:
            done = sum(pool.map(exact_row, range(len(nodes))))
        nodes, exact, entries = nodes[:done], exact[:done], entries[:done]
        np.savez(options.work / "reference.npz", nodes=nodes, index=exact, value=entries)
        stage |= {
            "rows": done,
            "error_of_the_reference": f"at most {REFERENCE:g} times the root of the degree of the column",
            "median_of_the_last_entry": float(np.median(entries[:, -1])),
            "overlap_of_the_top_32": overlap(index[nodes], exact),
            "share_of_the_mass_of_the_exact_top_32": float(mass(index[nodes], exact, entries).mean()),
            "largest_error_of_an_entry": largest_error(index[nodes], value[nodes], exact, entries),
        }


def power_rows(record: dict[str, Any], options: argparse.Namespace, arrays: Walk) -> None:
    """Compare the rows of a few sources with power iteration on the whole graph, to 1e-8."""
    reference = np.load(options.work / "reference.npz")
    nodes, index, value = (reference[name][:POWER_SOURCES] for name in ("nodes", "index", "value"))
    with measured(record, options, "power iteration") as stage:
        ptr, columns, step, _ = arrays
        s = csr_array((step, columns, ptr.astype(np.int32)), shape=(options.nodes, options.nodes))
        term = np.zeros((options.nodes, len(nodes)), np.float32)
        term[nodes, np.arange(len(nodes))] = RESTART
        total, products = term.copy(), 0
        while term.max() > 1e-8:
            term = s @ term
            total += term
            products += 1
        top = np.argpartition(-total, TOP, axis=0)[:TOP].T
        found = np.take_along_axis(total.T, index.astype(np.int64), axis=1)
        stage |= {
            "sources": len(nodes),
            "products": products,
            "overlap_of_the_reference": overlap(index, top),
            "largest_difference_of_the_reference": float(np.abs(found - value).max()),
        }


def nearest(record: dict[str, Any], options: argparse.Namespace) -> None:
    vectors = open_array(options.work / "vectors.npy")
    with measured(record, options, "nearest rows") as stage:
        stage |= {"k": NEIGHBOURS, "channels": CHANNELS, "lists_at_most": LISTS, "lists_searched": options.probe}
        start, shown = time.perf_counter(), [0.0]

        def progress(task: str, done: int, total: int | None) -> None:
            if time.perf_counter() - shown[0] > 30:
                shown[0] = time.perf_counter()
                print(f"{task}: {done:,} of {total:,}, {shown[0] - start:.0f} s", flush=True)

        write_nearest_rows(
            vectors, options.work, k=NEIGHBOURS, memory=SORT_MEMORY, probe=options.probe, progress=progress
        )
        stage["rows_per_second"] = options.nodes / (time.perf_counter() - start)


def compare_nearest(record: dict[str, Any], options: argparse.Namespace) -> None:
    """Compare with all distances of 1,000 rows: candidates in single precision, ranked in double precision."""
    vectors, found = open_array(options.work / "vectors.npy"), open_array(options.work / INDEX)
    nodes = np.sort(np.random.default_rng(2).choice(options.nodes, min(COMPARED, options.nodes), replace=False))
    points = torch.from_numpy(vectors[nodes])
    best, place = torch.full((len(nodes), 0), torch.inf), torch.empty(len(nodes), 0, dtype=torch.int64)
    with measured(record, options, "exact nearest rows") as stage:
        for start in range(0, options.nodes, 1 << 17):
            part = torch.from_numpy(np.array(vectors[start : start + (1 << 17)]))
            distance, near = torch.cdist(points, part).topk(min(2 * NEIGHBOURS, len(part)), largest=False)
            best, place = torch.cat((best, distance), 1), torch.cat((place, near + start), 1)
            best, order = best.topk(min(2 * NEIGHBOURS, best.shape[1]), largest=False)
            place = place.gather(1, order)
        candidates = vectors[place.numpy().ravel()].reshape(*place.shape, -1).astype(np.float64)
        exact = ((candidates - vectors[nodes][:, None]) ** 2).sum(-1)
        exact[place.numpy() == nodes[:, None]] = np.inf
        order = exact.argsort(1)[:, :NEIGHBOURS]
        stage |= {"rows": len(nodes), "recall": overlap(found[nodes], np.take_along_axis(place.numpy(), order, 1))}


def overlap(found: NDArray[Any], exact: NDArray[Any]) -> float:
    """Return the mean share of the exact entries of a row that are found."""
    pairs = zip(found.tolist(), exact.tolist(), strict=True)
    return float(np.mean([len({*a} & {*b} - {-1}) / len({*b} - {-1}) for a, b in pairs]))


def mass(found: NDArray[Any], exact: NDArray[Any], entries: NDArray[Any]) -> NDArray[np.float64]:
    kept = (exact[:, :, None] == found[:, None, :]).any(2)
    return np.asarray((entries * kept).sum(1) / entries.sum(1), dtype=np.float64)


def largest_error(found: NDArray[Any], value: NDArray[Any], exact: NDArray[Any], entries: NDArray[Any]) -> float:
    same = exact[:, :, None] == found[:, None, :]
    return float(np.abs(np.where(same, entries[:, :, None] - value[:, None, :], 0)).max())


def at(tolerance: float, arrays: Walk) -> Walk:
    """Return the arrays of push, which are for a tolerance of 1, for another."""
    ptr, index, step, threshold = arrays
    return ptr, index, step, np.float32(tolerance) * threshold


@contextmanager
def measured(record: dict[str, Any], options: argparse.Namespace, name: str) -> Iterator[dict[str, Any]]:
    """Record the seconds, the peaks of private and of file memory, and the load of a stage."""
    stage: dict[str, Any] = {}
    peaks, loads, ended = {"RssAnon": 0, "RssFile": 0, "VmRSS": 0}, [], threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
            for key in peaks:
                peaks[key] = max(peaks[key], int(status[key].split()[0]))
            loads.append(os.getloadavg()[0])

    watcher, start, computed = threading.Thread(target=watch, daemon=True), time.perf_counter(), time.process_time()
    watcher.start()
    try:
        yield stage
    finally:
        ended.set()
        watcher.join()
    record["stages"][name] = {
        "seconds": time.perf_counter() - start,
        "seconds_of_computing": time.process_time() - computed,
        "peak_private_memory_gib": peaks["RssAnon"] / 2**20,
        "peak_mapped_files_gib": peaks["RssFile"] / 2**20,
        "peak_of_both_gib": peaks["VmRSS"] / 2**20,
        "load": float(np.mean(loads)) if loads else os.getloadavg()[0],
        **stage,
    }
    save(record, options)
    print(json.dumps({name: record["stages"][name]}, indent=2), flush=True)


def save(record: dict[str, Any], options: argparse.Namespace) -> None:
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
