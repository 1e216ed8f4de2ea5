"""When a rank reports, and what it passes on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

import pytest

from srlhpc.comm.channel import Link, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.protocol import TEXT, TEXT_BYTES, Command, Report, read_text, write_text
from srlhpc.roles.reporter import CoordinatorSilentError, Reporter
from srlhpc.roles.role import Role


class FakeRole(Role):
    def __init__(self, label: str = "actor-0") -> None:
        self.label = label
        self.news = self.done = False
        self.heard: list[Command] = []
        self.forgotten: list[int] = []
        self.moved = 0

    @property
    def moves(self) -> int:
        return self.moved

    def waits_for(self) -> str:
        return "waits for a miracle"

    def poll(self) -> bool:
        return False

    def counters(self) -> dict[str, float]:
        return {"steps_acted": 3}

    @property
    def is_done(self) -> bool:
        return self.done

    @property
    def has_news(self) -> bool:
        return self.news

    def obey(self, command: Command) -> None:
        self.heard.append(command)

    def forget(self, addresses: Collection[int]) -> None:
        self.forgotten.extend(addresses)

    def fill(self, report: Report) -> None:
        report.episodes.append({"return": 1.0})


class Rank:
    """A reporter of rank 2 with one role, and the coordinator's ends."""

    def __init__(self, interval_seconds: float | None = 1.0, notes: Sequence[str] = ()) -> None:
        self.now = 0.0
        self.stacks: list[float] = []
        self.role = FakeRole()
        transport = InProcessTransport()
        reports, commands = Link(Stream.REPORTS, 4, 0), Link(Stream.COMMANDS, 0, 4)
        self._reports = transport.inbox([reports], TEXT, pool=2)
        self._commands = transport.outbox(commands, TEXT, slots=2)
        self.reporter = Reporter(
            2,
            [self.role],
            transport.outbox(reports, TEXT, slots=1),
            transport.inbox([commands], TEXT),
            addresses={1: (1, 2), 3: (5,)},
            interval_seconds=interval_seconds,
            silence_seconds=60.0,
            clock=lambda: self.now,
            stacks=lambda: self.stacks.append(self.now),
            notes=notes,
        )

    def poll(self) -> dict[str, Any] | None:
        """The report that comes of one poll."""
        self.reporter.poll()
        self._reports.poll()
        message = self._reports.take()
        if message is None:
            return None
        report = dict(read_text(message))
        self._reports.release(message)
        return report

    def answer(self, **command: Any) -> None:
        message = self._commands.acquire()
        assert message is not None
        self._commands.send(message, write_text(message, Command(**command)))
        self.reporter.poll()


def test_report_names_rank_counters_and_events() -> None:
    report = Rank().poll()
    assert report is not None
    assert report["rank"] == 2
    assert report["counters"] == {"actor-0": {"steps_acted": 3}}
    assert report["episodes"] == [{"return": 1.0}]
    assert report["done"] is False


def test_notes_are_in_the_first_report_once() -> None:
    rank = Rank(notes=("slow", "slow", "old"))
    report = rank.poll()
    assert report is not None
    assert report["notes"] == ["slow", "old"]
    rank.answer()
    rank.now = 2.0
    report = rank.poll()
    assert report is not None
    assert report["notes"] == []


def test_one_report_is_outstanding_at_most() -> None:
    rank = Rank()
    assert rank.poll() is not None
    rank.now, rank.role.news = 10.0, True
    assert rank.poll() is None
    rank.answer()
    assert rank.poll() is not None


def test_next_report_without_news_waits_for_the_interval() -> None:
    rank = Rank(interval_seconds=1.0)
    rank.poll()
    rank.answer()
    rank.now = 0.9
    assert rank.poll() is None
    rank.now = 1.0
    assert rank.poll() is not None


def test_without_an_interval_only_news_are_reported() -> None:
    rank = Rank(interval_seconds=None)
    rank.now = 1000.0
    assert rank.poll() is None
    rank.role.news = True
    assert rank.poll() is not None


def test_end_of_all_roles_is_reported_at_once() -> None:
    rank = Rank(interval_seconds=None)
    rank.role.done = True
    report = rank.poll()
    assert report is not None
    assert report["done"] is True


def test_command_reaches_every_role() -> None:
    rank = Rank()
    rank.poll()
    rank.answer(stop=True, checkpoint=3)
    assert rank.role.heard == [Command(stop=True, checkpoint=3)]
    assert not rank.reporter.may_exit


def test_addresses_of_dead_ranks_are_forgotten_once() -> None:
    rank = Rank()
    for dead in ([1], [1, 3]):
        rank.now += 10
        rank.poll()
        rank.answer(dead=dead)
    assert rank.role.forgotten == [1, 2, 5]


def test_rank_may_exit_when_it_is_told() -> None:
    rank = Rank()
    rank.poll()
    rank.answer(exit=True)
    assert rank.reporter.may_exit


def test_silent_coordinator_ends_the_rank() -> None:
    rank = Rank()
    rank.poll()
    for second in range(1, 61):
        rank.now = float(second)
        rank.poll()
    rank.now = 60.1
    with pytest.raises(CoordinatorSilentError, match="has not answered for 60 s"):
        rank.poll()


def test_silence_counts_only_while_an_answer_is_due() -> None:
    rank = Rank(interval_seconds=None)
    rank.now = 1e6
    assert rank.poll() is None


def test_answer_that_came_during_a_long_piece_of_work_is_found_by_the_next_poll() -> None:
    rank = Rank()
    rank.poll()
    rank.now = 600.0
    assert rank.poll() is None
    rank.answer()
    rank.now += 1.0
    assert rank.poll() is not None


def test_coordinator_that_was_suspended_with_the_rank_has_its_time_to_answer() -> None:
    rank = Rank()
    rank.poll()
    for now in (5000.0, 5000.1, 5059.0):
        rank.now = now
        assert rank.poll() is None


def reports(rank: Rank, seconds: int) -> dict[str, Any]:
    """The last of the reports of so many seconds."""
    found: dict[str, Any] | None = None
    for _ in range(seconds):
        rank.now += 1.0
        found = rank.poll()
        rank.answer()
    assert found is not None
    return found


def test_report_says_how_long_nothing_has_moved_and_what_is_waited_for() -> None:
    rank = Rank()
    reports(rank, 1)
    rank.role.moved = 1
    report = reports(rank, 1)
    assert (report["idle_seconds"], report["waits"]) == (0.0, {})
    report = reports(rank, 7)
    assert (report["idle_seconds"], report["waits"]) == (7.0, {"actor-0": "waits for a miracle"})
    rank.role.moved = 2
    assert reports(rank, 1)["idle_seconds"] == 0.0


def test_time_in_which_the_rank_was_stopped_is_no_idle_time() -> None:
    rank = Rank()
    reports(rank, 3)
    rank.now += 1000.0
    assert reports(rank, 1)["idle_seconds"] < 10.0


def test_stacks_are_written_once_when_they_are_asked_for() -> None:
    rank = Rank()
    for _ in range(3):
        rank.now += 1.0
        rank.poll()
        rank.answer(stacks=True)
    assert rank.stacks == [1.0]


def test_report_that_does_not_fit_is_refused() -> None:
    transport, link = InProcessTransport(), Link(Stream.REPORTS, 1, 0)
    message = transport.outbox(link, TEXT, slots=1).acquire()
    assert message is not None
    with pytest.raises(OverflowError, match="Report of"):
        write_text(message, Report(1, "x" * TEXT_BYTES, 1))


def test_text_comes_back() -> None:
    transport, link = InProcessTransport(), Link(Stream.REPORTS, 1, 0)
    message = transport.outbox(link, TEXT, slots=1).acquire()
    assert message is not None
    report = Report(1, "hôte", 2, episodes=[{"return": 0.1}])
    write_text(message, report)
    assert read_text(message) == asdict(report)
