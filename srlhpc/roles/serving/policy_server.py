"""The policy server: the policies of one rank that act for many groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from srlhpc.roles.role import Role
from srlhpc.roles.serving.served_policy import ServedPolicy
from srlhpc.roles.time_use import TimeUse


class PolicyServer(Role):
    """Serves one or several policies, each with batches of its own."""

    def __init__(
        self, label: str, policies: Mapping[str, ServedPolicy], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.label = label
        self._policies = policies
        self._time = TimeUse(clock)

    def poll(self) -> bool:
        self._time.spent("input")
        busy = False
        for served in self._policies.values():
            busy |= served.refresh()
            busy |= served.serve()
        if busy:
            self._time.spent("computing")
        return busy

    def counters(self) -> dict[str, float]:
        served = self._policies.values()
        return {
            "steps_inferred": sum(policy.rows_inferred for policy in served),
            "batches": sum(policy.batches for policy in served),
            **self._time.counters(),
        }

    @property
    def moves(self) -> int:
        return sum(policy.batches + policy.version for policy in self._policies.values())

    def waits_for(self) -> str:
        return ", ".join(f"{name} waits for {served.waits_for}" for name, served in self._policies.items())

    @property
    def is_done(self) -> bool:
        return all(served.is_finished for served in self._policies.values())

    def forget(self, addresses: Collection[int]) -> None:
        for served in self._policies.values():
            served.forget(addresses)

    def save_state(self) -> dict[str, Any]:
        return {name: served.save_state() for name, served in self._policies.items()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        for name, served in self._policies.items():
            served.load_state(state[name])

    def close(self) -> None:
        for served in self._policies.values():
            served.close()
