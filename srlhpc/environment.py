"""The environment contract: E environments stepped as one vector, agents grouped in kinds.

Letters: E environments of a group, A agents of a kind (a fixed maximum), D action size.

Time: `reset` and `step` return what every agent sees *now* (observations, `first`, `valid`, `alive`, action masks)
together with what its *last* action brought (rewards, `terminated`, `truncated`). A record t is
(obs_t, action_t, reward_t, terminated_t, truncated_t, first_t, valid_t, alive_t): the first half is known before the
action, the second half comes with the next step.

Next-step auto-reset: when an environment's episode ends at record t, the observation of t + 1 is the episode's real
last observation (for bootstrapping) and record t + 1 is invalid: its action is ignored, its reward is 0, both end flags
are false, and it ends with the reset. Record t + 2 is the first of the next episode (`first` true).

    record        t-1     t      t+1        t+2
    observation   s8      s9     s10(last)  s0'
    first         0       0      0          1
    valid         1       1      0          1
    terminated    0       1      0          0

Agents that were in the game until its end are still `alive` in the record after it.

An agent that leaves before its environment ends is `terminated` at its last record; from the next on it is not `alive`
and so not `valid`. An agent that is cut alone, while others go on, is `truncated` at its last record; the next shows
its real last observation and is `alive` but not `valid`, so that its value is asked for; from then on it is not
`alive`:

    record        t-1     t      t+1        t+2
    observation   s8      s9     s10(last)  0
    alive         1       1      1          0
    valid         1       1      0          0
    truncated     0       1      0          0

An agent that appears (again) within an episode has `first` true at its first record. An agent whose observation is
missing has zeros there.

A record is invalid in these two cases only: after an end, and while the agent is not in the game. It brings no reward
and no end, and estimators (rl/returns.py) need nothing else: the successor of a valid record that ended nothing is the
next record, and it is valid. Actors refuse steps that say otherwise (roles/acting/record_check.py).

Turns: agents of a kind that declares more than one `turn_steps` may wait while others act (`waits`). Who waits is
alive, and its record is not valid: its action is ignored, nothing of it is computed, its memory stays. What it may get
all the same is a reward, which its last action has earned, and the end of its episode. `first` is its first turn of an
episode, whenever that comes; a reward from before is its first action's. Two agents, of which the second wins:

    record        0       1      2      3(last)  4
    agent 0       acts    waits  acts   -        acts
      first       1       0      0      0        1
      rewards                           -1
      terminated  0       0      1      0        0
    agent 1       waits   acts   waits  -        waits
      first       0       1      0      0        0
      rewards                           +1
      terminated  0       0      1      0        0

What is learnt from an agent is the sequence of its turns (rl/turns.py): discounts count these alone. In other kinds,
who has no turn for a while stays valid: its action mask allows one choice, to do nothing, from which nothing is learnt
but the value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

MOST_FRAMES = 255
"""Longest stack of frames."""

Array = NDArray[Any]
FloatArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class ArraySpec:
    """Shape and dtype of one array, without leading time, environment or agent axes."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Discrete:
    """One choice of `choices`. Actions are int64 `[E, A]`; masks bool `[E, A, choices]`."""

    choices: int
    kind: Literal["discrete"] = "discrete"

    @property
    def array(self) -> ArraySpec:
        return ArraySpec((), "int64")

    @property
    def mask_size(self) -> int:
        return self.choices


@dataclass(frozen=True)
class MultiDiscrete:
    """Several choices at once. Actions are int64 `[E, A, len(choices)]`; masks bool `[E, A, sum(choices)]`."""

    choices: tuple[int, ...]
    kind: Literal["multi_discrete"] = "multi_discrete"

    @property
    def array(self) -> ArraySpec:
        return ArraySpec((len(self.choices),), "int64")

    @property
    def mask_size(self) -> int:
        return sum(self.choices)


@dataclass(frozen=True)
class Continuous:
    """A real vector. Actions are float32 `[E, A, size]`, unbounded as the policy drew them.

    The environment clips them to [-1, 1] and scales that to its own bounds, where integers get equal shares; a
    dimension without bounds is taken as it is. What is recorded is what was drawn, with its log-density.
    """

    size: int
    kind: Literal["continuous"] = "continuous"

    @property
    def array(self) -> ArraySpec:
        return ArraySpec((self.size,), "float32")

    @property
    def mask_size(self) -> int:
        return 0


ActionSpace = Discrete | MultiDiscrete | Continuous


@dataclass(frozen=True)
class Stack:
    """Says of an observation that its first axis holds the last frames that its agent saw, the newest last.

    Frames that were seen before are then neither stored nor sent again. So the stack of every record is that of the
    record before without its oldest frame and with a new one behind it, also in the invalid record after an end. Where
    it begins anew (`KindStep.stacks_begin`), all frames but the newest are what the beginning is filled with.
    """

    frames: int
    """Length of the first axis: 2 to `MOST_FRAMES`."""
    filled_with: Literal["zeros", "newest"]
    """What stands for frames from before the beginning: zeros, or the newest frame again."""


@dataclass(frozen=True)
class Kind:
    """Agents of equal observation and action spaces."""

    name: str
    agents: tuple[str, ...]
    """Names of the kind's agents in one environment; their order is the agent axis."""
    observations: Mapping[str, ArraySpec]
    """Observation key to shape and dtype of one agent's array."""
    actions: ActionSpace
    has_action_masks: bool = False
    """Whether every step says which choices are allowed (true = allowed)."""
    stacks: Mapping[str, Stack] = field(default_factory=dict)
    """Keys of those observations that are stacks of frames."""
    state: ArraySpec | None = None
    """State of a whole environment, which nobody acts on; rules that learn from all its agents together may look at it.
    None: the environment gives none, and their observations stand for it."""
    turn_steps: int = 1
    """Most steps, as a rule, from one turn of an agent to its next; 1: all act at every step. Windows of replay are so
    long that they hold the next turn: one that comes later leaves the turn before it untrained, unless an end comes
    within the window, so too small a number shows ends too often (metric `turns_left_out`). Fragments that are shorter
    are refused; nothing else depends on how many."""

    @property
    def takes_turns(self) -> bool:
        """Whether agents may wait while others act."""
        return self.turn_steps > 1


@dataclass(frozen=True)
class Spaces:
    """What an environment shows and takes."""

    kinds: tuple[Kind, ...]
    frames_per_step: int = 1
    """Simulator frames of one step."""

    def kind(self, name: str) -> Kind:
        return next(kind for kind in self.kinds if kind.name == name)

    def to_json(self) -> dict[str, Any]:
        """Gives plain data, so that spaces travel between processes without pickle."""
        return {
            "frames_per_step": self.frames_per_step,
            "kinds": [
                {
                    "name": kind.name,
                    "agents": list(kind.agents),
                    "observations": {key: _array_to_json(spec) for key, spec in kind.observations.items()},
                    "actions": _action_space_to_json(kind.actions),
                    "has_action_masks": kind.has_action_masks,
                    "stacks": {
                        key: {"frames": stack.frames, "filled_with": stack.filled_with}
                        for key, stack in kind.stacks.items()
                    },
                    "state": None if kind.state is None else _array_to_json(kind.state),
                    "turn_steps": kind.turn_steps,
                }
                for kind in self.kinds
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spaces:
        kinds = tuple(
            Kind(
                name=kind["name"],
                agents=tuple(kind["agents"]),
                observations={key: _array_from_json(spec) for key, spec in kind["observations"].items()},
                actions=_action_space_from_json(kind["actions"]),
                has_action_masks=kind["has_action_masks"],
                # Runs from before there were any lack these.
                stacks={key: Stack(**stack) for key, stack in kind.get("stacks", {}).items()},
                state=None if kind.get("state") is None else _array_from_json(kind["state"]),
                turn_steps=kind.get("turn_steps", 1),
            )
            for kind in data["kinds"]
        )
        return cls(kinds, data["frames_per_step"])


def _array_to_json(array: ArraySpec) -> dict[str, Any]:
    return {"shape": list(array.shape), "dtype": array.dtype}


def _array_from_json(data: Mapping[str, Any]) -> ArraySpec:
    return ArraySpec(tuple(data["shape"]), data["dtype"])


def _action_space_to_json(space: ActionSpace) -> dict[str, Any]:
    match space:
        case Discrete():
            return {"kind": space.kind, "choices": space.choices}
        case MultiDiscrete():
            return {"kind": space.kind, "choices": list(space.choices)}
        case Continuous():
            return {"kind": space.kind, "size": space.size}


def _action_space_from_json(data: Mapping[str, Any]) -> ActionSpace:
    match data["kind"]:
        case "discrete":
            return Discrete(data["choices"])
        case "multi_discrete":
            return MultiDiscrete(tuple(data["choices"]))
        case "continuous":
            return Continuous(data["size"])
    raise ValueError(f"unknown action space {data['kind']!r}")


@dataclass
class KindStep:
    """One kind at one moment. The arrays may be reused by the next `step`: copy what you keep."""

    observations: dict[str, Array]
    """Key to `[E, A, ...]`: what each agent sees now."""
    first: BoolArray
    """`[E, A]`: the agent's first record of an episode starts now."""
    valid: BoolArray
    """`[E, A]`: the record that starts now will count: alive, and not the record after an end."""
    alive: BoolArray
    """`[E, A]`: the agent is in the game now, or was until the end or cut that the last record brought: rows of others
    are not computed."""
    rewards: FloatArray
    """`[E, A]`: what the last action brought (zeros after `reset`)."""
    terminated: BoolArray
    """`[E, A]`: the last record ended the agent's episode in the MDP (no bootstrap)."""
    truncated: BoolArray
    """`[E, A]`: the last record was cut by a limit (bootstrap from the observation now, so the agent is `alive`)."""
    action_masks: BoolArray | None = None
    """`[E, A, mask_size]`, true = allowed, at least one per choice; only for kinds with `has_action_masks`."""
    stacks_begin: BoolArray | None = None
    """`[E, A]`: stacks of frames begin anew now; None: where `first`. They always do where an agent is not `alive`."""
    state: Array | None = None
    """`[E, ...]`: the whole environment now; only for kinds with a `state`."""
    waits: BoolArray | None = None
    """`[E, A]`: the agent is in the game, and others act in the record that starts now; only for kinds that take
    turns."""

    @property
    def asked(self) -> BoolArray:
        """`[E, A]`: whose row is computed now: agents that act, and those whose last observation is shown."""
        return self.alive if self.waits is None else self.alive & ~self.waits

    @property
    def new_stacks(self) -> BoolArray:
        """`[E, A]`: where stacks of frames begin anew now."""
        begin = self.first if self.stacks_begin is None else self.stacks_begin
        return begin | ~self.alive


@dataclass(frozen=True)
class Episode:
    """A finished episode of one environment."""

    environment: int
    steps: int
    returns: Mapping[str, float]
    """Undiscounted return of every agent that was in the game, by name; agents without a valid record are left out, so
    that they count in no mean. The true score where the learner sees clipped rewards."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Anything else worth a curve; means are reported."""


@dataclass
class Step:
    """All kinds at one moment, and the episodes that ended with the last action."""

    kinds: Mapping[str, KindStep]
    episodes: Sequence[Episode] = ()


def empty_kind_step(kind: Kind, num_environments: int) -> KindStep:
    """Buffers for one kind: zeros and false, masks all true."""
    rows = (num_environments, len(kind.agents))
    return KindStep(
        observations={key: np.zeros((*rows, *spec.shape), spec.dtype) for key, spec in kind.observations.items()},
        first=np.zeros(rows, np.bool_),
        valid=np.zeros(rows, np.bool_),
        alive=np.zeros(rows, np.bool_),
        rewards=np.zeros(rows, np.float32),
        terminated=np.zeros(rows, np.bool_),
        truncated=np.zeros(rows, np.bool_),
        action_masks=np.ones((*rows, kind.actions.mask_size), np.bool_) if kind.has_action_masks else None,
        state=None if kind.state is None else np.zeros((num_environments, *kind.state.shape), kind.state.dtype),
        waits=np.zeros(rows, np.bool_) if kind.takes_turns else None,
    )


class EpisodeTracker:
    """Adds up the episodes of E environments with N agents, of all kinds together."""

    def __init__(self, num_environments: int, agents: Sequence[str]) -> None:
        self._agents = tuple(agents)
        self._returns = np.zeros((num_environments, len(agents)), np.float64)
        self._steps = np.zeros(num_environments, np.int64)
        self._was_there = np.zeros((num_environments, len(agents)), np.bool_)

    def reset(self) -> None:
        """Forgets the episodes under way."""
        self._forget(slice(None))

    def _forget(self, which: slice | BoolArray) -> None:
        self._returns[which] = 0.0
        self._steps[which] = 0
        self._was_there[which] = False

    def record(self, rewards: Array, valid: BoolArray, ended: BoolArray) -> Sequence[Episode]:
        """Adds the last record of every environment.

        Args:
            rewards: `[E, N]` of the last action, 0 where the record was invalid.
            valid: whether the last record counted: `[E, N]`, or `[E]` where it counts for all agents or for none.
            ended: `[E]`, whether the environment's episode ended with it.

        Returns:
            The episodes that ended.
        """
        by_agent = valid if valid.ndim == 2 else valid[:, None]
        self._returns += rewards
        self._steps += by_agent.any(axis=1)
        self._was_there |= by_agent
        if not np.count_nonzero(ended):
            return ()
        episodes = [self._episode(env) for env in np.flatnonzero(ended).tolist()]
        self._forget(ended)
        return episodes

    def _episode(self, env: int) -> Episode:
        rows = zip(self._agents, self._returns[env].tolist(), self._was_there[env].tolist(), strict=True)
        return Episode(env, int(self._steps[env]), {agent: total for agent, total, was_there in rows if was_there})

    def save_state(self) -> SavedState:
        return {
            "episode_returns": self._returns.copy(),
            "episode_steps": self._steps.copy(),
            "episode_was_there": self._was_there.copy(),
        }

    def load_state(self, state: SavedState) -> None:
        self._returns[:] = state["episode_returns"]
        self._steps[:] = state["episode_steps"]
        # In checkpoints from before it was kept, everybody counts.
        self._was_there[:] = state.get("episode_was_there", True)


SavedState = Mapping[str, Array]
"""A whole environment as named arrays (no objects): what `save_state` gives and `load_state` takes."""


def zero_actions(spaces: Spaces, num_environments: int) -> dict[str, Array]:
    """Kind name to zeroed actions `[E, A, ...]`, to be filled and given to `Environment.step`."""
    return {
        kind.name: np.zeros((num_environments, len(kind.agents), *kind.actions.array.shape), kind.actions.array.dtype)
        for kind in spaces.kinds
    }


class Environment(ABC):
    """E equal environments, stepped together.

    Errors raised inside `reset` or `step` end the run with a message that names environment, rank and step.
    """

    spaces: Spaces
    num_environments: int

    @abstractmethod
    def reset(self, seed: int) -> Step:
        """Starts new episodes in all environments; everything random afterwards follows from `seed`.

        May be called at any time; episodes under way are dropped and not reported.
        """

    @abstractmethod
    def step(self, actions: Mapping[str, Array]) -> Step:
        """Plays one step in all environments.

        Args:
            actions: kind name to `[E, A, ...]` (see the action spaces). Actions of invalid records are ignored.
        """

    def save_state(self) -> SavedState | None:
        """Everything that `load_state` needs to go on exactly, random generators included; None if not offered.

        Whether it is offered is asked before the first `reset` too, and stays so; what it gives then is not used.
        """
        return None

    def load_state(self, state: SavedState) -> Step:
        """Goes on from a saved state. Returns the step that was current when it was saved."""
        raise NotImplementedError(f"{type(self).__name__} offers no save_state")

    def render(self) -> Array | None:
        """A picture of environment 0 now, uint8 `[height, width, 3]`; None if the environment draws none."""
        return None

    @property
    def render_fps(self) -> float | None:
        """Pictures of one second of play; None if the environment does not say."""
        return None

    def close(self) -> None:  # noqa: B027
        """Frees what the simulator holds. May be called twice."""
