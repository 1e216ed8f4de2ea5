"""Runs a module with the batch system's signals held until there is a handler for them.

`python -m srlhpc.launch.hold_signals MODULE ARGUMENTS...`: the batch script starts the foreman so, since a signal that
comes while Python and submitit are loading would kill it. `JobSignals.catch` lets them through.
"""

from __future__ import annotations

import runpy
import signal
import sys

HELD = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    # The batch script ignores them; what is ignored is not held but lost.
    for number in HELD:
        signal.signal(number, signal.SIG_DFL)
    module, *sys.argv[1:] = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
