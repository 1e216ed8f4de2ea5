"""A simulator of copies as a user would write it, with each convention of what happens where an episode ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
LIMIT = 7
"""Steps after which an episode is cut."""


class Walk:
    """Each copy walks on a line from a random place until it leaves it or has made so many steps."""

    autoreset = "disabled"
    observation_space = spaces.Dict(
        {"place": spaces.Box(-np.inf, np.inf, (1,), np.float32), "time": spaces.Box(0, 100, (2,), np.uint8)}
    )
    action_space: spaces.Space[Any] = spaces.Discrete(2)

    def __init__(self, num_environments: int, width: float = 3.0) -> None:
        self.width = width
        self.place = np.zeros(num_environments, np.float32)
        self.time = np.zeros(num_environments, np.int64)
        self.random = np.random.default_rng(0)

    def reset(self, seed: int) -> dict[str, NDArray[Any]]:
        self.random = np.random.default_rng(seed)
        self.begin(np.ones(len(self.place), bool))
        return self.seen()

    def begin(self, which: Flags) -> None:
        self.place[which] = self.random.uniform(-1, 1, int(which.sum()))
        self.time[which] = 0

    def seen(self) -> dict[str, NDArray[Any]]:
        clock = np.clip(self.time, 0, 100).astype(np.uint8)
        return {"place": self.place[:, None].copy(), "time": np.stack([clock, clock], 1)}

    def move(self, actions: NDArray[np.int64]) -> tuple[NDArray[Any], Flags, Flags]:
        assert actions.shape == self.place.shape
        assert actions.dtype == np.int64
        self.place += 2 * actions - 1
        self.time += 1
        fell = np.abs(self.place) > self.width
        return np.where(fell, -1.0, 0.5), fell, (self.time >= LIMIT) & ~fell

    def step(self, actions: NDArray[np.int64]) -> tuple[Any, ...]:
        rewards, fell, late = self.move(actions)
        return self.seen(), rewards, fell, late, {"metrics": {"success": late.astype(np.float32)}}

    def reset_some(self, which: Flags) -> dict[str, NDArray[Any]]:
        self.begin(which)
        return self.seen()


class WalkThatBeginsAnewAtOnce(Walk):
    """Shows the next episode where one has ended."""

    autoreset = "same_step"

    def step(self, actions: NDArray[np.int64]) -> tuple[Any, ...]:
        rewards, fell, late = self.move(actions)
        final = self.seen()
        self.begin(fell | late)
        return self.seen(), rewards, fell, late, {"final_observations": final}


class WalkThatBeginsAnewLater(Walk):
    """Begins anew in the step after an end, and has no reset for some copies."""

    autoreset = "next_step"

    def __init__(self, num_environments: int, width: float = 3.0) -> None:
        super().__init__(num_environments, width)
        self.ended = np.zeros(num_environments, bool)

    def reset(self, seed: int) -> dict[str, NDArray[Any]]:
        self.ended[:] = False
        return super().reset(seed)

    def step(self, actions: NDArray[np.int64]) -> tuple[Any, ...]:
        waited = self.ended.copy()
        rewards, fell, late = self.move(actions)
        fell, late = fell & ~waited, late & ~waited
        self.begin(waited)
        self.ended = fell | late
        return self.seen(), np.where(waited, 0.0, rewards), fell, late


class SavedWalk(Walk):
    """Saves its state."""

    def save_state(self) -> dict[str, NDArray[Any]]:
        state = self.random.bit_generator.state["state"]
        words = [state[name] >> shift & (2**64 - 1) for name in ("state", "inc") for shift in (0, 64)]
        return {"place": self.place, "time": self.time, "random": np.array(words, np.uint64)}

    def load_state(self, state: dict[str, NDArray[Any]]) -> None:
        self.place[:], self.time[:] = state["place"], state["time"]
        words = [int(word) for word in state["random"]]
        inner = {"state": words[0] | words[1] << 64, "inc": words[2] | words[3] << 64}
        self.random = np.random.default_rng()
        own = self.random.bit_generator.state
        self.random.bit_generator.state = {**own, "state": inner, "has_uint32": 0, "uinteger": 0}


class MaskedWalk(Walk):
    """Says among what it shows what may be done."""

    observation_space = spaces.Dict({"place": Walk.observation_space["place"], "action_mask": spaces.MultiBinary(2)})

    def seen(self) -> dict[str, NDArray[Any]]:
        free = np.stack([self.place > -1, self.place < 1], 1)
        return {"place": self.place[:, None].copy(), "action_mask": (free | ~free.any(1)[:, None]).astype(np.int8)}
