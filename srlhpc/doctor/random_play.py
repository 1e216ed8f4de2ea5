"""Playing environments at random, and comparing what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from srlhpc.environment import Array, Continuous, Discrete, Episode, Kind, KindStep, MultiDiscrete, Spaces, Step

FLAGS = ("first", "valid", "alive", "terminated", "truncated")


@dataclass(frozen=True)
class Seen:
    """A step that stays as it was."""

    kinds: dict[str, KindStep]
    episodes: tuple[Episode, ...]

    def column(self, name: str) -> Array:
        """`[E, A]` of all kinds side by side."""
        return np.concatenate([getattr(kind, name) for kind in self.kinds.values()], axis=1)

    @property
    def playing(self) -> Array:
        """`[E, N]` of all kinds side by side: agents that act or wait for their turn."""
        playing = [kind.valid if kind.waits is None else kind.valid | kind.waits for kind in self.kinds.values()]
        return np.concatenate(playing, axis=1)


def keep(step: Step) -> Seen:
    """Copies a step, whose arrays the next one may use again."""
    kinds = {
        name: KindStep(
            observations={key: array.copy() for key, array in kind.observations.items()},
            rewards=kind.rewards.copy(),
            **{flag: getattr(kind, flag).copy() for flag in FLAGS},
            action_masks=None if kind.action_masks is None else kind.action_masks.copy(),
            stacks_begin=None if kind.stacks_begin is None else kind.stacks_begin.copy(),
            state=None if kind.state is None else kind.state.copy(),
            waits=None if kind.waits is None else kind.waits.copy(),
        )
        for name, kind in step.kinds.items()
    }
    return Seen(kinds, tuple(step.episodes))


def random_actions(spaces: Spaces, step: Step | Seen, random: np.random.Generator) -> dict[str, Array]:
    """Uniformly random allowed actions, `[E, A, ...]` for each kind."""
    return {kind.name: _random_kind_actions(kind, step.kinds[kind.name], random) for kind in spaces.kinds}


def _random_kind_actions(kind: Kind, now: KindStep, random: np.random.Generator) -> Array:
    rows = now.valid.shape
    match kind.actions:
        case Continuous(size=size):
            return random.uniform(-1.5, 1.5, (*rows, size)).astype(np.float32)
        case Discrete(choices=choices):
            parts: tuple[int, ...] = (choices,)
        case MultiDiscrete(choices=many):
            parts = many
    weights = random.uniform(size=(*rows, kind.actions.mask_size))
    if now.action_masks is not None:
        weights = weights * now.action_masks
    pieces = np.split(weights, np.cumsum(parts)[:-1], axis=-1)
    chosen = np.stack([piece.argmax(axis=-1) for piece in pieces], axis=-1)
    return chosen[..., 0] if isinstance(kind.actions, Discrete) else chosen


def spoil_invalid(spaces: Spaces, step: Step | Seen, actions: Mapping[str, Array]) -> dict[str, Array]:
    """The same actions with nonsense wherever the record is invalid."""
    spoilt = {}
    for kind in spaces.kinds:
        nonsense = np.nan if isinstance(kind.actions, Continuous) else 10**6
        spoilt[kind.name] = actions[kind.name].copy()
        spoilt[kind.name][~step.kinds[kind.name].valid] = nonsense
    return spoilt


def same(left: Seen, right: Seen) -> bool:
    """Whether two steps are equal to the bit."""
    try:
        assert_same(left, right)
    except AssertionError:
        return False
    return True


def assert_same(left: Seen, right: Seen) -> None:
    """Raises AssertionError: two steps differ."""
    for name, kind in left.kinds.items():
        other = right.kinds[name]
        for key, array in kind.observations.items():
            np.testing.assert_array_equal(array, other.observations[key], err_msg=f"{name}.{key}")
        for field in (*FLAGS, "rewards", "action_masks", "state", "waits"):
            np.testing.assert_array_equal(getattr(kind, field), getattr(other, field), err_msg=f"{name}.{field}")
    if left.episodes != right.episodes:
        raise AssertionError(f"episodes differ: {left.episodes} and {right.episodes}")


def differ(left: Sequence[Seen], right: Sequence[Seen]) -> bool:
    """Whether some observation of two plays differs."""
    return any(
        not np.array_equal(array, after.kinds[name].observations[key])
        for before, after in zip(left, right, strict=True)
        for name, kind in before.kinds.items()
        for key, array in kind.observations.items()
    )
