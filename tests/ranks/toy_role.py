"""A role that srlhpc does not have, added as docs/architecture.md says: a row, a builder, and the role itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srlhpc.comm.protocol import Command
from srlhpc.plan.plan import RolePlan
from srlhpc.plan.roles import ROLES, RoleRow
from srlhpc.ranks.building import BUILDERS
from srlhpc.ranks.context import RankContext
from srlhpc.roles.role import Role

WATCHER = RoleRow("watcher", section=None, waits_for="nothing", sends=("reports",), answers=False)


class Watcher(Role):
    """Counts its turns until it is told to stop."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._turns, self._restored_turns, self._is_told = 0, 0, False

    def poll(self) -> bool:
        self._turns += 1
        return False

    def counters(self) -> dict[str, float]:
        return {"turns": float(self._turns), "restored_turns": float(self._restored_turns)}

    def obey(self, command: Command) -> None:
        self._is_told |= command.stop

    @property
    def is_done(self) -> bool:
        return self._is_told

    def save_state(self) -> dict[str, Any]:
        return {"turns": self._turns}

    def load_state(self, state: Any) -> None:
        self._restored_turns = int(state["turns"])


def build_watcher(_: RankContext, role: RolePlan) -> Watcher:
    return Watcher(role.label)


def add_watcher(set_item: Callable[[dict[str, Any], str, Any], None]) -> None:
    """Adds the row and the builder; there is nothing else to add."""
    set_item(ROLES, WATCHER.name, WATCHER)
    set_item(BUILDERS, WATCHER.name, "tests.ranks.toy_role:build_watcher")
