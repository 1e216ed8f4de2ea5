"""A small system of groups and granting trainers, every interleaving of which is looked at.

One block is one fragment. A state is plain data: for each group and policy (in the run's order) `None`, `(ASKED, what
the group held)` or `(OPEN, steps, age)`, and `None` for a dead group; for each trainer the fragments that are started
and not in a batch that has begun, the blocks gathered, and the ages of blocks that wait. Ages are in updates since the
grant. Messages are not modelled: they delay what is modelled, and who gets what in which order is free here anyhow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from srlhpc.comm.acquisition import Holding, holding, in_order
from srlhpc.rl.policy_lag import rollout_slots

ASKED, OPEN = "asked", "open"
ROOM = 1
"""Blocks that wait at a trainer until senders of a policy without a limit must wait."""
State = Any


@dataclass(frozen=True)
class System:
    """Groups with a seat for each policy; group g feeds trainer g % trainers of each.

    Attributes:
        lengths: policy to its fragments' steps.
        lags: policy to its limit; None: fragments need no grant, but room at the trainer.
        batch: blocks of one trainer's batch.
        groups: how many.
        trainers: of each policy.
        has_order: groups get policies one after the other; otherwise they ask for all at once and always wait.
        deaths: groups that may die at any time, the last one of each trainer excepted.
        relieves: where nothing moves, all trainers grant all that is asked and drop what a full batch has no room for.
    """

    lengths: Mapping[str, int]
    lags: Mapping[str, int | None]
    batch: Mapping[str, int]
    groups: int
    trainers: int = 1
    has_order: bool = True
    deaths: int = 0
    relieves: bool = False

    def __post_init__(self) -> None:
        assert set(self.lengths) == set(self.lags) == set(self.batch)

    @property
    def policies(self) -> tuple[str, ...]:
        return in_order(self.lengths)

    def first(self) -> State:
        groups = tuple(self._asking((None,) * len(self.policies)) for _ in range(self.groups))
        return groups, ((0, 0, ()),) * (len(self.policies) * self.trainers)

    # --- what may happen -------------------------------------------------------------------------------------------

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        """Everything that can happen next, and what it is called."""
        found = [found for group in range(self.groups) for found in self._of_group(state, group)]
        found += self._of_trainers(state)
        yield from found
        if self.relieves and not any(name != "death" for name, _ in found):
            yield "relief", self._relieved(state)

    def _of_group(self, state: State, group: int) -> Iterator[tuple[str, State]]:
        if state[0][group] is None:
            return
        yield from self._granted(state, group)
        if all(seat is not None and seat[0] == OPEN for seat in state[0][group]):
            yield "step", self._stepped(state, group)
        if self._may_die(state[0], group):
            yield "death", self._died(state, group)

    def _of_trainers(self, state: State) -> Iterator[tuple[str, State]]:
        trainers = state[1]
        for place, policy in enumerate(self.policies):
            own = range(place * self.trainers, (place + 1) * self.trainers)
            for trainer in own:
                _, gathered, waiting = trainers[trainer]
                if waiting and gathered < self.batch[policy]:
                    yield "take", self._taken(state, trainer, policy)
            if all(trainers[trainer][1] == self.batch[policy] for trainer in own):
                yield f"update {policy}", self._updated(state, place, policy)

    def _granted(self, state: State, group: int) -> Iterator[tuple[str, State]]:
        groups, trainers = state
        for place, policy in enumerate(self.policies):
            seat = groups[group][place]
            if seat is None or seat[0] != ASKED:
                continue
            trainer = self._trainer(place, group)
            started, gathered, waiting = trainers[trainer]
            if self._may_start(seat[1], policy, trainers[trainer]):
                seats = self._asking(_put(groups[group], place, (OPEN, 0, 0)))
                after = _put(trainers, trainer, (started + 1, gathered, waiting))
                yield "grant", (_put(groups, group, seats), after)

    def _may_start(self, held: Holding, policy: str, trainer: State) -> bool:
        started, _, waiting = trainer
        lag = self.lags[policy]
        if lag is None:
            return len(waiting) < ROOM
        return held == Holding.LATER or rollout_slots(0, started, 0, batch=self.batch[policy], max_policy_lag=lag) > 0

    def _trainer(self, place: int, group: int) -> int:
        return place * self.trainers + group % self.trainers

    def _asking(self, seats: State) -> State:
        """The seats after the group has asked for what it may ask for now."""
        for place, seat in enumerate(seats):
            if seat is None:
                held = self._holding(place, seats) if self.has_order else Holding.NOTHING
                seats = _put(seats, place, (ASKED, held))
            if self.has_order and seats[place][0] == ASKED:
                break
        return seats

    def _holding(self, place: int, seats: State) -> Holding:
        limited = [self.lags[policy] is not None for policy in self.policies]
        held = [needs and seat is not None and seat[0] == OPEN for needs, seat in zip(limited, seats, strict=True)]
        return holding(place, held)

    def _stepped(self, state: State, group: int) -> State:
        groups, trainers = state
        seats = groups[group]
        for place, policy in enumerate(self.policies):
            _, steps, age = seats[place]
            if steps + 1 < self.lengths[policy]:
                seats = _put(seats, place, (OPEN, steps + 1, age))
                continue
            seats = _put(seats, place, None)
            trainer = self._trainer(place, group)
            started, gathered, waiting = trainers[trainer]
            trainers = _put(trainers, trainer, (started, gathered, (*waiting, age)))
        return _put(groups, group, self._asking(seats)), trainers

    def _taken(self, state: State, trainer: int, policy: str) -> State:
        groups, trainers = state
        started, gathered, (age, *waiting) = trainers[trainer]
        lag = self.lags[policy]
        is_late = lag is not None and age > lag
        after = (started - 1, gathered, tuple(waiting)) if is_late else (started, gathered + 1, tuple(waiting))
        return groups, _put(trainers, trainer, after)

    def _updated(self, state: State, place: int, policy: str) -> State:
        groups, trainers = state
        most = 1 + (self.lags[policy] or 0)
        for trainer in range(place * self.trainers, (place + 1) * self.trainers):
            started, _, waiting = trainers[trainer]
            waiting = tuple(min(age + 1, most) for age in waiting)
            trainers = _put(trainers, trainer, (started - self.batch[policy], 0, waiting))
        for group, seats in enumerate(groups):
            if seats is not None and seats[place] is not None and seats[place][0] == OPEN:
                _, steps, age = seats[place]
                groups = _put(groups, group, _put(seats, place, (OPEN, steps, min(age + 1, most))))
        return groups, trainers

    def _relieved(self, state: State) -> State:
        groups, trainers = state
        for place, policy in enumerate(self.policies):
            for trainer in range(place * self.trainers, (place + 1) * self.trainers):
                started, gathered, waiting = trainers[trainer]
                if gathered == self.batch[policy]:
                    trainers = _put(trainers, trainer, (started - len(waiting), gathered, ()))
            for group, seats in enumerate(groups):
                if seats is None or seats[place] is None or seats[place][0] != ASKED:
                    continue
                trainer = self._trainer(place, group)
                started, gathered, waiting = trainers[trainer]
                trainers = _put(trainers, trainer, (started + 1, gathered, waiting))
                groups = _put(groups, group, _put(seats, place, (OPEN, 0, 0)))
        return tuple(seats and self._asking(seats) for seats in groups), trainers

    def _may_die(self, groups: State, group: int) -> bool:
        left = [seats is not None for seats in groups]
        return left.count(False) < self.deaths and sum(left[group % self.trainers :: self.trainers]) > 1

    def _died(self, state: State, group: int) -> State:
        groups, trainers = state
        for place, seat in enumerate(groups[group]):
            if seat is not None and seat[0] == OPEN:
                trainer = self._trainer(place, group)
                started, gathered, waiting = trainers[trainer]
                trainers = _put(trainers, trainer, (started - 1, gathered, waiting))
        return _put(groups, group, None), trainers


def _put(values: Any, place: int, value: Any) -> Any:
    return (*values[:place], value, *values[place + 1 :])


@dataclass
class Explored:
    """All states that can be reached."""

    states: int
    stuck: list[State]
    """Where nothing can happen."""
    starving: dict[str, int]
    """Policy to the number of states from which it is never updated again."""


def explore(system: System) -> Explored:
    """Looks at every state, breadth first."""
    before: dict[State, list[State]] = {system.first(): []}
    updating: dict[str, list[State]] = {policy: [] for policy in system.policies}
    stuck = []
    queue = deque(before)
    while queue:
        state = queue.popleft()
        is_stuck = True
        for name, following in system.successors(state):
            is_stuck = is_stuck and name == "death"
            if name.startswith("update "):
                updating[name.removeprefix("update ")].append(state)
            if following not in before:
                before[following] = []
                queue.append(following)
            before[following].append(state)
        if is_stuck:
            stuck.append(state)
    starving = {policy: len(before) - len(_reaching(states, before)) for policy, states in updating.items()}
    return Explored(len(before), stuck, starving)


def _reaching(states: list[State], before: Mapping[State, list[State]]) -> set[State]:
    """States from which one of the given can be reached."""
    found, queue = set(states), deque(states)
    while queue:
        for earlier in before[queue.popleft()]:
            if earlier not in found:
                found.add(earlier)
                queue.append(earlier)
    return found
