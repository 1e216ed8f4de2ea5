"""The actor: steps a ring of groups, one while the others wait for their actions, and sends blocks of fragments.

    group:  start --(open fragments, ask)--> waiting --(all replied, step the environment)--> start

Free of torch: an actor with remote inference must stay small.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srlhpc.comm.protocol import TEXT_BYTES, Command, Report, move_events
from srlhpc.environment import Episode
from srlhpc.errors import KnownError
from srlhpc.roles.acting.closing import close, raised
from srlhpc.roles.acting.group import Group
from srlhpc.roles.role import Role
from srlhpc.roles.time_use import Part, TimeUse

Array = NDArray[Any]

EPISODES_BYTES = TEXT_BYTES // 2
"""Bytes of a report for the episodes of all its actors; the rest waits for the next."""
MANY_EPISODES = 200
"""Episodes that are reported at once, lest they pile up."""


class StepError(KnownError, RuntimeError):
    """An environment raised an exception."""

    kind = "environment"


class Actor(Role):
    """The ring of groups of one actor."""

    def __init__(
        self,
        label: str,
        groups: Sequence[Group],
        *,
        where: str,
        episode_summary: Callable[[int, Episode], dict[str, Any] | None],
        many_episodes: int = MANY_EPISODES,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`where` names rank and environment in errors; `many_episodes` are news.

        `episode_summary` says of a group's number and an episode what is reported; None: nothing.
        """
        self.label = label
        self._groups = groups
        self._turns = deque(groups)
        """Who has waited longest comes first, so that no group takes every free slot before another gets one."""
        self._where = where
        self._summary, self._many_episodes = episode_summary, many_episodes
        self._time = TimeUse(clock)
        self._idle: Part = "input"
        self._episodes: deque[dict[str, Any]] = deque()
        self._stopping = False
        self._last_said = False
        self._steps_acted = 0

    def start(self, start: int) -> None:
        """Begins new episodes in all groups; not needed after `load_state`."""
        for group in self._groups:
            try:
                group.begin(start)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise StepError(f"{self._where}, group {group.number}, reset: {raised(error)}") from error

    def poll(self) -> bool:
        if self._stopping:
            return self._end()
        self._time.spent(self._idle)
        busy, blocked = False, 0
        for group in list(self._turns):
            if group.is_waiting and group.has_replies():
                if not group.dropped_replies():
                    self._step(group)
                busy = True
            if group.is_waiting:
                continue
            if group.ask():
                self._turns.remove(group)
                self._turns.append(group)
                busy = True
            elif not group.lacks_match:
                blocked += 1
        # A group that waits for its actions would go on with faster actions: so only if there is none, slots are short.
        self._idle = "slot" if blocked == len(self._groups) else "input"
        self._time.spent("computing" if busy else self._idle)
        return busy

    def _step(self, group: Group) -> None:
        try:
            step = group.step(self._time)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            where = f"{self._where}, group {group.number}, step {group.steps + 1}"
            raise StepError(f"{where}: {raised(error)}") from error
        self._steps_acted += group.environment.num_environments
        summaries = (self._summary(group.number, episode) for episode in step.episodes)
        self._episodes.extend(summary for summary in summaries if summary is not None)

    def _end(self) -> bool:
        """Says LAST on every link; open fragments are dropped."""
        if self._last_said:
            return False
        said = [group.end() for group in self._groups]
        self._last_said = all(said)
        return self._last_said

    # --- role ----------------------------------------------------------------------------------------------------

    def obey(self, command: Command) -> None:
        self._stopping |= command.stop

    @property
    def is_done(self) -> bool:
        return self._last_said

    def counters(self) -> dict[str, float]:
        return {"steps_acted": self._steps_acted, **self._time.counters()}

    @property
    def moves(self) -> int:
        return self._steps_acted + self._last_said

    def waits_for(self) -> str:
        waits = {text: group.number for group in reversed(self._groups) if (text := group.waits_for())}
        return ", ".join(f"group {number} waits for {text}" for text, number in waits.items())

    def fill(self, report: Report) -> None:
        move_events(self._episodes, report.episodes, EPISODES_BYTES)

    @property
    def has_news(self) -> bool:
        return len(self._episodes) >= self._many_episodes

    def save_state(self) -> dict[str, Any]:
        """All groups, whose turn it is, and the episodes that are still to be reported."""
        groups = {str(group.number): group.save_state() for group in self._groups}
        turns = np.array([group.number for group in self._turns], np.int64)
        return {"groups": groups, "turns": turns, "episodes": json.dumps(list(self._episodes))}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._episodes = deque(json.loads(state["episodes"]))
        saved, turns = state.get("groups", {}), [int(number) for number in state.get("turns", ())]
        by_number = {group.number: group for group in self._groups}
        if set(turns) == set(by_number):
            self._turns = deque(by_number[number] for number in turns)
        for group in self._groups:
            if str(group.number) in saved:
                group.load_state(saved[str(group.number)])

    @property
    def can_save(self) -> bool:
        """Whether an exact resume of the environments is possible."""
        return all(group.can_save for group in self._groups)

    def close(self) -> None:
        self.close_environments()

    def close_environments(self) -> None:
        for group in self._groups:
            close(group.environment, f"{self._where}, group {group.number}")
