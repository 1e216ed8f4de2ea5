from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
import torch

from srlhpc.rl.policy_lag import PolicyLag, policy_lag, rollout_slots


@dataclass(eq=False)
class Fragment:
    needed: int
    """Version that it was granted at."""
    version: int | None = None
    """Oldest version in it once it has arrived."""


@dataclass
class Simulation:
    """Actors, a late server and a trainer that only obey `rollout_slots`; every choice is random.

    Args:
        in_order: the trainer takes fragments in the order of their starts; otherwise in any order.
        drops_old: the trainer drops what has become too old.
        uses: updates made of each batch.
    """

    batch: int
    max_policy_lag: int
    seed: int
    in_order: bool = False
    drops_old: bool = False
    uses: int = 1
    version: int = 0
    begun: int = 0
    uses_left: int = 0
    batched: list[Fragment] = field(default_factory=list)
    started: int = 0
    lost: int = 0
    open: list[Fragment] = field(default_factory=list)
    """Started, and neither trained nor lost, in the order of their starts."""
    lags: list[int] = field(default_factory=list)

    def run(self, events: int) -> None:
        self.chance = random.Random(self.seed)
        happenings = [self.start, self.start, self.arrive, self.arrive, self.die, self.drop, self.train]
        for _ in range(events):
            self.chance.choice(happenings)()

    def start(self) -> None:
        slots = rollout_slots(
            self.begun, self.started, self.lost, batch=self.batch, max_policy_lag=self.max_policy_lag,
            uses=self.uses, uses_left=self.uses_left,
        )  # fmt: skip
        if slots:
            self.started += 1
            self.open.append(Fragment(self.version))

    def arrive(self) -> None:
        """However late, in any order; the server acted with the needed version or with a newer one."""
        playing = [fragment for fragment in self.open if fragment.version is None]
        if playing:
            fragment = self.chance.choice(playing)
            fragment.version = self.chance.randint(fragment.needed, self.version)

    def die(self) -> None:
        self._lose([fragment for fragment in self.open if fragment.version is None])

    def drop(self) -> None:
        self._lose([fragment for fragment in self.open if fragment.version is not None])

    def train(self) -> None:
        if self.uses_left:
            self._use()
            return
        ready = [fragment for fragment in self.open if fragment.version is not None]
        if self.drops_old:
            old = [f for f in ready if f.version is not None and self.version - f.version > self.max_policy_lag]
            ready = [fragment for fragment in ready if fragment not in old]
            self.open = [fragment for fragment in self.open if fragment not in old]
            self.lost += len(old)
        if not self.in_order:
            self.chance.shuffle(ready)
        elif ready[: self.batch] != self.open[: self.batch]:
            return
        if len(ready) >= self.batch:
            self.batched = ready[: self.batch]
            self.open = [fragment for fragment in self.open if fragment not in self.batched]
            self.begun += 1
            self.uses_left = self.uses
            self._use()

    def _use(self) -> None:
        self.lags += [self.version - fragment.version for fragment in self.batched if fragment.version is not None]
        self.version += 1
        self.uses_left -= 1

    def _lose(self, fragments: list[Fragment]) -> None:
        if fragments and self.chance.random() < 0.3:
            self.open.remove(self.chance.choice(fragments))
            self.lost += 1


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_strict_grants_give_lag_zero_in_whatever_order_fragments_arrive(batch: int) -> None:
    for seed in range(10):
        simulation = Simulation(batch, 0, seed)
        simulation.run(2000)
        assert set(simulation.lags) == {0}


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("max_policy_lag", [1, 3])
def test_fragments_trained_in_order_keep_the_bound_whatever_is_lost(batch: int, max_policy_lag: int) -> None:
    lags = []
    for seed in range(10):
        simulation = Simulation(batch, max_policy_lag, seed, in_order=True)
        simulation.run(2000)
        lags += simulation.lags
    assert max(lags) == max_policy_lag


@pytest.mark.parametrize("uses", [2, 4])
@pytest.mark.parametrize("more", [0, 1, 5])
def test_every_use_of_a_batch_keeps_the_bound(uses: int, more: int) -> None:
    lags = []
    for seed in range(10):
        simulation = Simulation(3, uses - 1 + more, seed, in_order=True, uses=uses)
        simulation.run(2000)
        lags += simulation.lags
        assert simulation.version > 50
    assert uses - 1 <= max(lags) <= uses - 1 + more


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_overtaken_fragments_need_the_trainers_drop(batch: int) -> None:
    simulation = Simulation(batch, 1, seed=0)
    simulation.run(20_000)
    assert max(simulation.lags) > 1
    dropping = Simulation(batch, 1, seed=0, drops_old=True)
    dropping.run(20_000)
    assert max(dropping.lags) == 1


@pytest.mark.parametrize("in_order", [False, True])
def test_training_never_starves_although_fragments_are_lost(in_order: bool) -> None:
    simulation = Simulation(batch=4, max_policy_lag=0, seed=0, in_order=in_order)
    simulation.run(5000)
    assert simulation.version > 100


def test_slots_are_used_up_to_the_bound() -> None:
    assert rollout_slots(0, 0, 0, batch=8, max_policy_lag=0) == 8
    assert rollout_slots(0, 8, 0, batch=8, max_policy_lag=0) == 0
    assert rollout_slots(0, 8, 2, batch=8, max_policy_lag=0) == 2
    assert rollout_slots(1, 8, 0, batch=8, max_policy_lag=1) == 16
    assert rollout_slots(0, 20, 0, batch=8, max_policy_lag=0) == 0


def test_lag_counts_from_the_oldest_valid_record_of_each_fragment() -> None:
    versions = torch.tensor([[5, 7, 0], [6, 8, 0], [1, 9, 0]])
    valid = torch.tensor([[True, True, False], [True, True, False], [False, True, False]])
    assert policy_lag(10, versions, valid) == PolicyLag(min=3, mean=4.0, max=5)


def test_lag_without_valid_records_is_zero() -> None:
    assert policy_lag(10, torch.zeros(2, 2, dtype=torch.int64), torch.zeros(2, 2).bool()) == PolicyLag(0, 0.0, 0)
