"""Numbers that a simulator tells of an episode in the info of its last step, such as `is_success`.

Letters: E environments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from envs._returned_values import SimulatorError, one_number
from srlhpc.environment import Episode


class InfoMetrics:
    """Reads some numbers of the infos of episodes that end.

    Args:
        names: in the infos; those of a mapping in it as `episode.r`.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._found: dict[int, dict[str, float]] = {}
        """Environment to what the info of its last step said."""

    def take(self, env: int, info: Mapping[str, Any]) -> None:
        """Reads the info of the step that has ended an episode."""
        if self._names:
            self._found[env] = {name: _number(info, name) for name in self._names}

    def take_of_vector(self, env: int, info: Mapping[str, Any]) -> None:
        """The same of the info of all environments, in which each name has an array `[E]`."""
        if self._names:
            self._found[env] = {name: _number(info, name, env) for name in self._names}

    def of(self, episodes: Sequence[Episode]) -> Sequence[Episode]:
        """The episodes with their numbers."""
        if not self._found:
            return episodes
        found, self._found = self._found, {}
        return [replace(episode, metrics=found.get(episode.environment, {})) for episode in episodes]


def _number(info: Mapping[str, Any], name: str, env: int | None = None) -> float:
    part: Any = info
    for step in name.split("."):
        if not isinstance(part, Mapping) or step not in part:
            had = ", ".join(str(key) for key in info) or "nothing"
            raise SimulatorError(
                f"environment.metrics names '{name}', which is not in the info of an episode's last step; it has {had}"
            )
        part = part[step]
    return float(one_number(part if env is None else part[env], f"'{name}' in the info"))
