"""Which versions of the past may be met, how often each is, and what came of it. Free of torch.

    version written --> may be met --(newer ones: its policy keeps no more)--> no longer drawn

Versions that are met at the same time by the groups of one policy server are few, since each is a network there. Where
the rule chooses among no more, each match is drawn by it. Else there is a *hand*: its places are drawn by the rule, one
is drawn anew with every lot, and a match takes any place of the hand, so in the end all are met as often as the rule
says.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srlhpc.errors import UserError, counted
from srlhpc.league.past_results import PastResults
from srlhpc.league.payoffs import FloatArray, IntArray


@dataclass(frozen=True)
class MatchSide:
    """A side of the game."""

    name: str
    """Its name for people."""
    policy: str
    has_versions: bool
    """Whether its policy is trained; else its side is always played by the policy as it is."""


def checked_chances(chances: FloatArray, count: int) -> FloatArray:
    """What a match rule gave, if it is how often each of so many versions shall be met.

    Raises:
        UserError: it is not, which is the rule's fault.
    """
    found = np.array(chances, np.float64)
    if found.shape != (count,) or not (found >= 0).all() or not math.isclose(float(found.sum()), 1.0, abs_tol=1e-6):
        raise UserError(
            f"matches.rule: gave {found.tolist()} for {counted(count, 'version')}; chances are {count} numbers that "
            "are not negative and sum to 1: correct the rule's module"
        )
    found /= found.sum()
    return found


_Hand = tuple[int, int, int]
"""Address of a policy server, the side that learns, and the side that versions play."""


class Opponents:
    """Versions by policy, drawn by a rule.

    Args:
        sides: in the order of seats.
        chances: win rates `[N]` against N versions, oldest first, to how often each shall be met.
        mixture: side and N of its versions to how often each shall be met, `[N]`, in place of `chances`; None: there
            is no table of payoffs.
        decay: what a game counts in win rates after one more against the same version.
        resident: places of a hand.
        kept: updates of all versions of a policy to those that are kept.
        seed: of what is drawn.
    """

    def __init__(
        self,
        sides: Sequence[MatchSide],
        *,
        chances: Callable[[FloatArray], FloatArray] | None,
        mixture: Callable[[int, Sequence[int]], FloatArray] | None = None,
        decay: float,
        resident: int,
        kept: Callable[[Collection[int]], Collection[int]],
        seed: int,
    ) -> None:
        assert (chances is None) == (mixture is not None), "either decides"
        self._sides, self._chances, self._mixture, self._decay = sides, chances, mixture, decay
        self._resident, self._kept = resident, kept
        self._generator = np.random.default_rng(seed)
        self._pools: dict[str, list[int]] = {side.policy: [] for side in sides}
        """Policy to the updates of the versions that may be met, fewest first."""
        self._hands: dict[_Hand, deque[int]] = {}
        self._results: dict[tuple[int, int], PastResults] = {}
        """Side that learns and side that versions play, to what came of it."""

    # --- versions ------------------------------------------------------------------------------------------------

    def begin(self, policy: str, versions: Collection[int]) -> None:
        """These versions are there at the start."""
        self._limit(policy, sorted(versions))

    def coming(self, policy: str, updates: int) -> Collection[int]:
        """A version is about to be written; what is not kept beside it is drawn no more, but for the last one.

        Returns:
            Those that are still drawn.
        """
        pool = self._pools[policy]
        kept = {*self._kept({*pool, updates})}
        self._limit(policy, [version for version in pool if version in kept] or pool[-1:])
        return self._pools[policy]

    def written(self, policy: str, updates: int) -> None:
        """A version may be met from now on."""
        pool = sorted({*self._pools[policy], updates})
        kept = {*self._kept(pool)}
        self._limit(policy, [version for version in pool if version in kept])

    def _limit(self, policy: str, pool: list[int]) -> None:
        """Only these versions are drawn from now on."""
        self._pools[policy] = pool
        for key, hand in self._hands.items():
            if self._sides[key[2]].policy == policy:
                self._hands[key] = deque(version for version in hand if version in pool)
        for (_, side), results in self._results.items():
            if self._sides[side].policy == policy:
                results.forget([version for version in results.scores.opponents if version not in pool])

    # --- drawing -------------------------------------------------------------------------------------------------

    def past_sides(self, learner: int | None) -> list[int]:
        """Sides that versions play where this side learns; None: all learn, so there are none."""
        if learner is None:
            return []
        return [place for place, side in enumerate(self._sides) if place != learner and side.has_versions]

    def are_there(self, learner: int | None) -> bool:
        """Whether there is a version for each of those sides."""
        return all(self._pools[self._sides[side].policy] for side in self.past_sides(learner))

    def draw(self, learner: int, side: int, server: int, matches: int) -> IntArray:
        """Who plays a side in so many matches that one server acts for: updates `[matches]`."""
        pool = self._pools[self._sides[side].policy]
        chances = self._chances_of(learner, side, pool)
        if np.count_nonzero(chances) <= self._resident:
            self._hands.pop((server, learner, side), None)
            return self._generator.choice(np.array(pool, np.int64), matches, p=chances)
        hand = self._renewed((server, learner, side), pool, chances)
        return self._generator.choice(np.array(hand, np.int64), matches)

    def _chances_of(self, learner: int, side: int, pool: Sequence[int]) -> FloatArray:
        if self._mixture is not None:
            return self._mixture(side, pool)
        assert self._chances is not None
        return checked_chances(self._chances(self.between(learner, side).scores.win_rates(pool)), len(pool))

    def _renewed(self, key: _Hand, pool: Sequence[int], chances: FloatArray) -> deque[int]:
        """The hand with one place drawn anew, and those that are empty."""
        met = {version for version, chance in zip(pool, chances, strict=True) if chance}
        hand = self._hands[key] = deque(version for version in self._hands.get(key, ()) if version in met)
        if len(hand) == self._resident:
            hand.popleft()
        hand.extend(self._generator.choice(pool, self._resident - len(hand), p=chances).tolist())
        return hand

    # --- results -------------------------------------------------------------------------------------------------

    def between(self, learner: int, side: int) -> PastResults:
        """What one side did, while it learnt, against the versions of another."""
        return self._results.setdefault((learner, side), PastResults(self._decay))

    def summary(self) -> list[dict[str, Any]]:
        """What `status` says of each pair of sides."""
        return [
            {
                "learner": self._sides[learner].name,
                "opponent": self._sides[side].name,
                "games": results.games,
                "win_rate": results.win_rate,
                "versions": len(self._pools[self._sides[side].policy]),
            }
            for (learner, side), results in sorted(self._results.items())
        ]

    # --- states --------------------------------------------------------------------------------------------------

    def results_state(self) -> dict[str, Any]:
        """Results, and the generator."""
        results = {f"{learner}-{side}": found.save_state() for (learner, side), found in self._results.items()}
        return {"results": results, "generator": json.dumps(self._generator.bit_generator.state)}

    def load_results(self, state: Mapping[str, Any]) -> None:
        """Takes back what `results_state` gave, also of a run with more sides."""
        for name, saved in state.get("results", {}).items():
            learner, side = map(int, name.split("-"))
            if max(learner, side) < len(self._sides):
                self.between(learner, side).load_state(saved)
        self._generator.bit_generator.state = json.loads(state["generator"])

    def save_state(self) -> dict[str, Any]:
        """The same with versions and hands."""
        return self.results_state() | {
            "hands": {"-".join(map(str, key)): np.array(hand, np.int64) for key, hand in self._hands.items()},
            "pools": {policy: np.array(pool, np.int64) for policy, pool in self._pools.items()},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.load_results(state)
        for name, hand in state.get("hands", {}).items():
            server, learner, side = map(int, name.split("-"))
            self._hands[server, learner, side] = deque(hand.tolist())
        self._pools |= {policy: pool.tolist() for policy, pool in state["pools"].items()}
