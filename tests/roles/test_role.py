"""The loop that polls roles."""

from __future__ import annotations

import pytest

from srlhpc.roles.role import START_POLLS, Backoff, run_roles
from tests.roles.test_reporter import FakeRole

BACKOFF = Backoff(2, 1.0, 2.0, usual_seconds=3.0, slow_growth=1.5, longest_seconds=5.0, starting_seconds=8.0)


class Working(FakeRole):
    """Busy in the polls of the given numbers."""

    def __init__(self, busy: set[int]) -> None:
        super().__init__()
        self.polls = 0
        self._busy = busy

    def poll(self) -> bool:
        self.polls += 1
        return self.polls in self._busy


def pauses(polls: int, busy: set[int]) -> list[float]:
    role, slept = Working(busy), list[float]()
    run_roles([role], BACKOFF, keep_going=lambda: role.polls < polls, sleep=slept.append)
    return slept


def test_idle_loop_yields_first_and_then_sleeps_longer_and_longer_up_to_a_limit() -> None:
    assert pauses(8, set()) == [1.0, 2.0, 4.0, 6.0, 8.0, 8.0]


def test_once_there_was_work_the_limit_is_lower() -> None:
    work = set(range(1, START_POLLS + 1))
    assert pauses(START_POLLS + 8, work) == [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]


def test_work_starts_the_pauses_over() -> None:
    assert pauses(7, {4}) == [1.0, 1.0]


@pytest.mark.parametrize("busy", [{1, 2, 3, 4, 5}])
def test_busy_loop_never_sleeps(busy: set[int]) -> None:
    assert pauses(5, busy) == []


def test_every_role_is_polled_in_every_round() -> None:
    roles = [Working({1, 2, 3}), Working(set())]
    run_roles(roles, BACKOFF, keep_going=lambda: roles[0].polls < 3)
    assert [role.polls for role in roles] == [3, 3]
