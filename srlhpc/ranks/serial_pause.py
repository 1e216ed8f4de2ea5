"""The sleep of a serial run's loop, which finds that nothing moves any more."""

from __future__ import annotations

import time
from collections.abc import Sequence

from srlhpc.roles.role import Role
from srlhpc.roles.stillness import StandstillError, Stillness, who_waits, write_stacks
from srlhpc.runs.paths import AttemptPaths

STANDSTILL_SECONDS = 20.0
"""How long the loop may find nothing to do, which nobody else can change."""


class SerialPause:
    """Called for each pause; ends a run whose roles wait for each other, since nothing comes from outside.

    Args:
        roles: all but coordinator and reporter.
        attempt: the stack goes into its logs.
    """

    def __init__(self, roles: Sequence[Role], attempt: AttemptPaths) -> None:
        self._stillness, self._attempt = Stillness(roles, time.monotonic), attempt

    def __call__(self, seconds: float) -> None:
        if self._stillness.look() >= STANDSTILL_SECONDS:
            write_stacks(self._attempt.stacks)
            waits = who_waits(self._stillness.waits().items())
            raise StandstillError(f"nothing has moved for {STANDSTILL_SECONDS:.0f} s: {waits}")
        time.sleep(seconds)
