"""The bookkeeping of E environments with one agent each: buffers, flags of the next-step auto-reset, episodes.

An environment writes observations (and masks) to `now`, after a step also `now.rewards`, `now.terminated` and
`now.truncated`, then returns `start()` or `finish()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from srlhpc.environment import (
    ActionSpace,
    ArraySpec,
    BoolArray,
    Episode,
    EpisodeTracker,
    Kind,
    SavedState,
    Spaces,
    Stack,
    Step,
    empty_kind_step,
)

AGENT = "agent"
"""Name of the only agent and of its kind."""


def single_agent_spaces(
    observations: dict[str, ArraySpec],
    actions: ActionSpace,
    *,
    has_action_masks: bool = False,
    frames_per_step: int = 1,
    stacks: Mapping[str, Stack] | None = None,
) -> Spaces:
    """Spaces with one kind of one agent, both called `agent`."""
    kind = Kind(AGENT, (AGENT,), observations, actions, has_action_masks, stacks or {})
    return Spaces((kind,), frames_per_step)


class SingleAgentRecords:
    """The current step of E environments.

    Attributes:
        now: buffers of the current step, overwritten by the next one.
        ended: `[E]`, whether the last record ended the environment's episode: the record that starts now is invalid and
            the next step resets the environment.
    """

    def __init__(self, spaces: Spaces, num_environments: int) -> None:
        kind = spaces.kinds[0]
        self.now = empty_kind_step(kind, num_environments)
        self.now.alive[:] = True
        self._kinds = {AGENT: self.now}
        self.ended: BoolArray = np.zeros(num_environments, np.bool_)
        # Views of one column, made once: making them costs as much as working on them.
        self._first, self._valid = self.now.first[:, 0], self.now.valid[:, 0]
        self._terminated, self._truncated = self.now.terminated[:, 0], self.now.truncated[:, 0]
        self._was_valid: BoolArray = np.ones(num_environments, np.bool_)
        self._episodes = EpisodeTracker(num_environments, kind.agents)

    def start(self) -> Step:
        """The step after a reset of all environments."""
        now = self.now
        now.rewards[:] = 0.0
        now.terminated[:] = now.truncated[:] = False
        now.first[:] = now.valid[:] = True
        self.ended[:] = False
        self._episodes.reset()
        return Step(self._kinds)

    def finish(self, episodes: Sequence[Episode] | None = None) -> Step:
        """The step after an action; works out all flags but the end flags.

        Where a simulator reports termination and truncation at once, the termination counts.

        Args:
            episodes: those that ended, where they are not simply what the rewards and end flags say.
        """
        ended = self.ended
        np.greater(self._truncated, self._terminated, out=self._truncated)
        self._first[:] = ended
        np.logical_not(ended, out=self._was_valid)
        np.logical_or(self._terminated, self._truncated, out=ended)
        np.logical_not(ended, out=self._valid)
        if episodes is None:
            episodes = self._episodes.record(self.now.rewards, self._was_valid, ended)
        return Step(self._kinds, episodes)

    def save_state(self) -> SavedState:
        now = self.now
        observations = {f"observations.{key}": array.copy() for key, array in now.observations.items()}
        flags = {name: getattr(now, name).copy() for name in _FLAGS}
        return {**observations, **flags, **self._episodes.save_state()}

    def load_state(self, state: SavedState) -> Step:
        for key, array in self.now.observations.items():
            array[:] = state[f"observations.{key}"]
        for name in _FLAGS:
            getattr(self.now, name)[:] = state[name]
        np.logical_not(self.now.valid[:, 0], out=self.ended)
        self._episodes.load_state(state)
        return Step(self._kinds)


_FLAGS = ("first", "valid", "rewards", "terminated", "truncated")
