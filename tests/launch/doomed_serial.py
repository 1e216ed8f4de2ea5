"""A serial run that kills itself in mid-fragment: `python -m tests.launch.doomed_serial RUN ATTEMPT UPDATES STEPS`.

It dies at the STEPS-th step of a group after the checkpoint of UPDATES updates is there.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from srlhpc.environment import Step
from srlhpc.ranks.serial import run_serial
from srlhpc.roles.acting.group import Group
from srlhpc.roles.time_use import TimeUse
from srlhpc.runs.paths import RunPaths
from tests.launch.making_runs import checkpoint


def main() -> None:
    folder, attempt, updates, steps = sys.argv[1:]
    paths = RunPaths(Path(folder))
    file, left = checkpoint(paths, int(updates)), int(steps)
    step = Group.step

    def step_or_die(group: Group, time_use: TimeUse) -> Step:
        nonlocal left
        left -= file.exists()
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(group, time_use)

    Group.step = step_or_die  # type: ignore[method-assign]
    run_serial(paths, paths.attempt(int(attempt)))


if __name__ == "__main__":
    main()
