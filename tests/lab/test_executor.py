"""Every executor runs jobs alike: it passes on reports, stops jobs, and survives the death of a process."""

import os
import time
from pathlib import Path
from typing import Any

import counting_worker
import pytest
import torch
from counting_worker import CountingWorker, ForeignWorker

from beltrami.errors import DataError, UnknownName
from beltrami.lab.executor import Executor, Finished, Local, Processes, WorkerProcess, data_folders
from beltrami.lab.ray_cluster import Ray, Resources

QUIET = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")


def interrupt(job: Any, value: Any) -> bool:
    raise KeyboardInterrupt


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def outcomes(executor: Executor, *jobs: Any, stop_at: int = 99) -> list[tuple[Any, Any]]:
    """Run jobs; the outcomes in the order of the jobs."""
    waiting, found = list(jobs), []
    while waiting or executor.busy:
        while waiting and executor.has_room:
            executor.submit(waiting.pop(0))
        found.append(executor.wait(lambda job, value: value < stop_at))
    return sorted(found, key=lambda each: jobs.index(each[0]))


def check_jobs(executor: Executor) -> None:
    """Jobs report and finish, end where they are stopped, and raise the worker's errors."""
    assert outcomes(executor, 3, 0, 2, 4) == [(n, Finished(n)) for n in (3, 0, 2, 4)]
    assert not executor.busy
    assert executor.has_room
    assert outcomes(executor, 9, 1, 10**9, stop_at=2) == [(9, Finished(2)), (1, Finished(1)), (10**9, Finished(2))]
    executor.submit("raise")
    with pytest.raises((UnknownName, RuntimeError), match=r"unknown thing 'that'"):
        executor.wait(lambda job, value: True)
    assert outcomes(executor, 1) == [(1, Finished(1))]


def test_local_jobs_report_finish_and_are_stopped() -> None:
    with Local(CountingWorker()) as executor:
        check_jobs(executor)
        executor.submit(3)
        epochs: list[int] = []
        executor.wait(lambda job, value: True, lambda number: epochs.append(number))
        assert epochs == [0, 1, 2]
        executor.submit(9)
    assert not executor.busy


@QUIET
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["processes", "ray"])
def test_remote_jobs_run_at_once_and_a_process_that_dies_is_replaced(kind: str, tmp_path: Path) -> None:
    make: Executor = Processes(CountingWorker(), 2)
    if kind == "ray":
        ray = pytest.importorskip("ray")
        ray.cloudpickle.register_pickle_by_value(counting_worker)
        make = Ray(CountingWorker(), Resources("batch", "cpu", cpus=0.5, gpus=0.0))
    with make as executor:
        check_jobs(executor)
        pids = {outcome.value for _, outcome in outcomes(executor, tmp_path, tmp_path)}
        assert len(pids) == 2  # each waited for the other
        assert os.getpid() not in pids
        assert outcomes(executor, 1, "die", 2) == [(1, Finished(1)), ("die", None), (2, Finished(2))]
        ((_, unclean),) = outcomes(executor, "unclean")
        ((_, last),) = outcomes(executor, "environment")
        assert last.value[1:] == (1, os.environ["BELTRAMI_CACHE"])
        assert last.value[0] != unclean.value
        if isinstance(executor, Ray):
            check_foreign(executor)
        executor.submit(10**9)
        with pytest.raises(KeyboardInterrupt):
            executor.wait(interrupt)
    end = time.monotonic() + 20
    while any(map(alive, [*pids, last.value[0]])) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, [*pids, last.value[0]]))


def check_foreign(executor: Ray) -> None:
    """A machine that does not have the worker's module is one clear error."""
    executor.abandon()
    executor.worker = ForeignWorker()
    executor.submit(1)
    why = r"a machine of the cluster cannot run jobs \(.*No module named 'beltrami.of_tomorrow'\)"
    with pytest.raises(DataError, match=why):
        executor.wait(lambda job, value: True)
    executor.worker = CountingWorker()


def test_no_processes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Processes needs a `size` of at least 1; got 0"):
        Processes(CountingWorker(), 0)


def test_the_environment_is_that_of_the_process_that_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BELTRAMI_DATA", "graphs")
    monkeypatch.setenv("BELTRAMI_CACHE", "")
    folders = data_folders()
    assert folders == {"BELTRAMI_DATA": str(tmp_path / "graphs")}
    threads = torch.get_num_threads()
    try:
        WorkerProcess(CountingWorker(), 2, folders)
        assert torch.get_num_threads() == 2
        assert os.environ["BELTRAMI_DATA"] == str(tmp_path / "graphs")
    finally:
        torch.set_num_threads(threads)
