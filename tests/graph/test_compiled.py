"""Every kernel compiles for the GPU it is meant for, also where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
HERE = Path(__file__).parent


@pytest.mark.slow
def test_every_kernel_compiles_for_hopper(tmp_path: Path) -> None:
    paths = os.pathsep.join((str(HERE.parent), str(HERE.parents[1] / "src")))
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": paths, "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, str(HERE / "compiled.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    compiled = {line.split()[0] for line in done.stdout.splitlines()}
    assert compiled == {
        "_spmm", "_sddmm", "_row_sums", "_attend_rows", "_join_rows", "_weighted_sum", "_moments", "_pull",
        "_spread", "_mask", "_step", "_join_step", "_combine", "_dots",
    }  # fmt: skip
