"""The loop of a serial run: all roles in turn, and a world that stands still after each batch.

    round: actors, servers, trainers, evaluators --(a trainer has used a batch up)--> frozen
    frozen: updates under way end -> all is reported -> the checkpoint that is wanted is written -> the trainers go on

Frozen, trainers, reporter and coordinator are polled alone. That happens after every batch, whether a checkpoint is due
or not, so one that is asked for at any time changes nothing of what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from srlhpc.ranks.guarded_signals import restore as restore_signals
from srlhpc.roles.coordinating.coordinator import Coordinator
from srlhpc.roles.reporter import Reporter
from srlhpc.roles.role import IDLE, INFERENCE, Role, run_roles
from srlhpc.roles.training.trainer import Trainer


class LockStep:
    """Polls until the run has ended.

    Args:
        roles: in the order of their turns, all but the following two.
        trainers: those among them.
        reporter: of all of them; it reports while the world stands still, and at the end.
        coordinator: polled after each round, too: it writes the status.
        sleep: while no role has anything to do.
    """

    def __init__(
        self,
        roles: Sequence[Role],
        trainers: Sequence[Trainer],
        reporter: Reporter,
        coordinator: Coordinator,
        sleep: Callable[[float], None],
    ) -> None:
        self._roles, self._trainers = roles, trainers
        self._reporter, self._coordinator = reporter, coordinator
        self._sleep = sleep

    def run(self) -> None:
        """Begins in a world that stands still, as a run that was stopped there has ended."""
        self._stand_still()
        run_roles([*self._roles, self._coordinator], INFERENCE, keep_going=self._goes_on, sleep=self._sleep)
        everyone = [self._reporter, *self._roles, self._coordinator]
        run_roles(everyone, INFERENCE, keep_going=self._is_ending, sleep=self._sleep)

    def _goes_on(self) -> bool:
        # Native code of an environment may have put its own handlers in their place.
        restore_signals()
        if any(trainer.is_pausing for trainer in self._trainers):
            self._reporter.speak()
            self._stand_still()
        return not self._reporter.heard.stop

    def _is_ending(self) -> bool:
        restore_signals()
        return not self._coordinator.is_done

    def _stand_still(self) -> None:
        for trainer in self._trainers:
            trainer.freeze()
        self._poll(self._trainers, lambda: any(trainer.is_updating for trainer in self._trainers))
        self._tell()
        # Another may be asked for while one is written.
        while self._coordinator.checkpoint_asked > self._coordinator.checkpoint_written:
            self._reporter.speak()
            self._tell()
            self._poll(self._trainers, lambda: self._coordinator.checkpoint_written < self._reporter.heard.checkpoint)
        for trainer in self._trainers:
            trainer.go_on()

    def _tell(self) -> None:
        self._poll([self._reporter], lambda: not self._reporter.is_quiet)

    def _poll(self, roles: Sequence[Role], while_: Callable[[], bool]) -> None:
        run_roles([*roles, self._coordinator], IDLE, keep_going=while_)
