"""One group of an actor's ring: the environments that are stepped as one vector, and a recorder for each policy.

    start --(open fragments, ask)--> waiting --(all replied, step the environment)--> start

Free of torch: an actor with remote inference must stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from srlhpc.comm.acquisition import holding, in_order
from srlhpc.environment import Environment, Step, zero_actions
from srlhpc.roles.acting.matches import GroupMatches
from srlhpc.roles.acting.record_check import RecordCheck
from srlhpc.roles.acting.recorder import SeatRecorder
from srlhpc.roles.acting.stack_check import StackCheck
from srlhpc.roles.acting.step_check import StepCheck
from srlhpc.roles.acting.turns import Turns
from srlhpc.roles.time_use import TimeUse


class Group:
    """E environments with a recorder per policy."""

    def __init__(
        self,
        number: int,
        environment: Environment,
        seats: Mapping[str, tuple[str, SeatRecorder]],
        seed: Callable[[int], int],
        matches: GroupMatches | None = None,
        first: Collection[str] = (),
    ) -> None:
        """Makes the group.

        Args:
            number: of the group.
            environment: what is played.
            seats: name of a seat to (kind, recorder), in matches in the order of sides.
            seed: gives the seed of the start-th fresh start.
            matches: who plays each side; None: every policy plays as it is now.
            first: names of seats whose fragments are opened before all others (comm/acquisition.py).
        """
        self.number = number
        self.environment = environment
        self.steps = 0
        self._recorders = [(kind, recorder) for kind, recorder in seats.values()]
        lengths = {seat: recorder.fragment_steps for seat, (_, recorder) in seats.items()}
        self._to_open = [(seat, seats[seat][1]) for seat in in_order(lengths, first)]
        self._seed, self._matches = seed, matches
        self._check = StepCheck(environment.spaces, environment.num_environments)
        kinds = environment.spaces.kinds
        self._checks: list[RecordCheck | StackCheck] = [RecordCheck(kind) for kind in kinds if not kind.takes_turns]
        self._turns = {kind.name: Turns(kind, environment.num_environments) for kind in kinds if kind.takes_turns}
        self._checks += [StackCheck(kind) for kind in kinds if kind.stacks]
        self._step: Step | None = None
        self._waiting = False
        self._drops_replies = False
        self._actions = zero_actions(environment.spaces, environment.num_environments)

    def begin(self, start: int) -> None:
        """New episodes in all environments. Actions that are on their way are not played."""
        self._drops_replies = self._waiting
        for _, recorder in self._recorders:
            recorder.start_over()
        self._step = self.environment.reset(self._seed(start))
        self._check(self._step)
        for check in self._checks:
            check.begin(self._step)
        for kind, turns in self._turns.items():
            turns.begin(self._step.kinds[kind])

    @property
    def is_waiting(self) -> bool:
        """Whether actions are on their way."""
        return self._waiting

    def ask(self) -> bool:
        """Opens fragments where needed and asks for actions; false while a grant or a free slot is missing."""
        if not self._open() or (self._matches is not None and not self._matches.are_ready()):
            return False
        assert self._step is not None
        for side, (kind, recorder) in enumerate(self._recorders):
            recorder.ask(self._step.kinds[kind], None if self._matches is None else self._matches.players[side])
        self._waiting = True
        return True

    def _open(self) -> bool:
        """One policy after the other, in the run's order of policies, so that groups never wait in a circle."""
        for place, (_, recorder) in enumerate(self._to_open):
            if recorder.is_ready:
                continue
            if not recorder.open(holding(place, [each.holds for _, each in self._to_open])):
                return False
        return True

    @property
    def lacks_match(self) -> bool:
        """Whether all that it waits for is a match."""
        return self._matches is not None and not self._waiting and self._unready() is None

    def _unready(self) -> tuple[str, SeatRecorder] | None:
        """The first policy with a recorder that lacks a grant or a slot."""
        return next(((policy, recorder) for policy, recorder in self._to_open if not recorder.is_ready), None)

    def waits_for(self) -> str:
        """What the group waits for, in words."""
        if self._waiting:
            asked = [policy for policy, recorder in self._to_open if not recorder.replied()]
            return f"actions of {' and '.join(asked)}" if asked else ""
        missing = self._unready()
        if missing is None:
            return "a match" if self.lacks_match else ""
        held = [policy for policy, recorder in self._to_open if recorder.holds]
        what = "a free slot" if missing[1].is_granted else "a grant"
        return f"{what} of {missing[0]}" + (f" while it holds {' and '.join(held)}" if held else "")

    def has_replies(self) -> bool:
        replied = [recorder.replied() for _, recorder in self._recorders]
        return all(replied)

    def dropped_replies(self) -> bool:
        """Whether the replies answer what was seen before the group began anew; they are dropped then."""
        if not self._drops_replies:
            return False
        for _, recorder in self._recorders:
            recorder.drop_reply()
        self._waiting = self._drops_replies = False
        return True

    def step(self, time_use: TimeUse) -> Step:
        """Plays the replied actions."""
        for kind, recorder in self._recorders:
            recorder.act(self._actions[kind])
        time_use.spent("computing")
        self._step = step = self.environment.step(self._actions)
        time_use.spent("environment")
        self._check(step)
        for check in self._checks:
            check(step)
        earned = {**step.kinds, **{kind: turns.follow(step.kinds[kind]) for kind, turns in self._turns.items()}}
        for kind, recorder in self._recorders:
            recorder.finish_record(earned[kind])
        if self._matches is not None and step.episodes:
            self._matches.ended(step.episodes)
        self.steps += 1
        self._waiting = False
        return step

    def end(self) -> bool:
        """Drops open fragments and says LAST on every link; false while one of them has no room for it."""
        said = [recorder.end() for _, recorder in self._recorders]
        if self._matches is not None:
            said.append(self._matches.end())
        return all(said)

    @property
    def can_save(self) -> bool:
        """Whether the environment can be saved."""
        return self.environment.save_state() is not None

    def save_state(self) -> dict[str, Any]:
        """The group's state; without `environment` if that cannot be saved: then `begin` follows, here and there."""
        recorders = {str(i): recorder.save_state() for i, (_, recorder) in enumerate(self._recorders)}
        state: dict[str, Any] = {"recorders": recorders, "waiting": self._waiting}
        if self._matches is not None:
            state["matches"] = self._matches.save_state()
        if (saved := self.environment.save_state()) is not None:
            state["environment"] = dict(saved)
            if self._turns:
                state["turns"] = {kind: turns.save_state() for kind, turns in self._turns.items()}
        return state

    def load_state(self, state: Mapping[str, Any]) -> None:
        for i, (_, recorder) in enumerate(self._recorders):
            recorder.load_state(state["recorders"][str(i)])
        self._waiting = bool(state.get("waiting", False))
        if self._matches is not None:
            self._matches.load_state(state["matches"])
        if "environment" not in state:
            return
        self._step = self.environment.load_state(state["environment"])
        self._check(self._step)
        for check in self._checks:
            check.continues(self._step)
        for kind, turns in self._turns.items():
            turns.load_state(state["turns"][kind])
        if self._waiting:
            for kind, recorder in self._recorders:
                recorder.see(self._step.kinds[kind])
