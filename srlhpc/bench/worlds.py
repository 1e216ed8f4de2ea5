"""Starting a small MPI world that measures something, from outside it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srlhpc.errors import ClusterError
from srlhpc.launch.mpiexec import start_mpiexec
from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.processes import kill_processes_of


def measured_in_world(module: str, ranks: int, case: Mapping[str, Any], *, limit_seconds: float) -> Any:
    """What `python -m module` on so many ranks finds out (see `in_world.rank_main`).

    Args:
        module: of this package.
        ranks: size of the world.
        case: plain data for every rank.
        limit_seconds: for all of it.

    Raises:
        UserError: there is no mpiexec.
        ClusterError: the world failed or took too long.
    """
    with tempfile.TemporaryDirectory(prefix="srlhpc-bench-") as name:
        attempt = AttemptPaths(Path(name))
        (attempt.folder / "case.json").write_text(json.dumps(case))
        script = attempt.folder / "rank.sh"
        script.write_text(f"trap '' USR1\nexec {shlex.join([sys.executable, '-m', module, name, str(ranks)])}\n")
        output = attempt.folder / "output"
        process = start_mpiexec(attempt, ranks, script, output)
        try:
            process.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
            kill_processes_of(attempt.folder)
        result = attempt.folder / "result.json"
        if not result.exists():
            text = output.read_text(errors="replace").strip()[-2000:]
            raise ClusterError(
                f"{module} gave no result within {limit_seconds:.0f} s on {ranks} ranks. It printed: {text}"
            )
        return json.loads(result.read_text())
