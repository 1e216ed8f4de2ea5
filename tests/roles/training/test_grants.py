"""Who may start a fragment, and when."""

from __future__ import annotations

import random

from srlhpc.comm.acquisition import Holding
from srlhpc.comm.channel import Link, Message, Outbox, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.protocol import HEADER_ONLY, GrantHeader
from srlhpc.roles.training.grants import LagLimiter

TRAINER = 100
FRAGMENTS = 4


class Groups:
    """Groups (one per actor, addresses 0, 1, ...) that ask a lag_limiter; a batch is two blocks of four fragments."""

    def __init__(self, groups: int = 3, *, batch: int = 8, max_policy_lag: int = 0, version: int = 0) -> None:
        transport = self.transport = InProcessTransport()
        asks = [Link(Stream.GRANT_REQUESTS, group, TRAINER) for group in range(groups)]
        answers = [Link(Stream.GRANTS, TRAINER, group) for group in range(groups)]
        self._asking: list[Outbox] = [transport.outbox(link, HEADER_ONLY, slots=1) for link in asks]
        self._answers = [transport.inbox([link], HEADER_ONLY) for link in answers]
        self.lag_limiter = LagLimiter(
            transport.inbox(asks, HEADER_ONLY),
            {place: transport.outbox(link, HEADER_ONLY, slots=2) for place, link in enumerate(answers)},
            fragments=FRAGMENTS,
            batch=batch,
            max_policy_lag=max_policy_lag,
            uses=1,
        )
        self._first_version = version

    def ask(self, *groups: int, held: Holding = Holding.NOTHING, blocks: int = 1) -> None:
        for group in groups:
            message = self._asking[group].acquire()
            assert message is not None
            message.header[GrantHeader.GROUP] = group
            message.header[GrantHeader.HOLDING] = held
            message.header[GrantHeader.BLOCKS] = blocks
            self._asking[group].send(message)
            self.lag_limiter.listen()

    def granted(self, version: int) -> dict[int, int]:
        """Group to the version that its grant needs."""
        self.lag_limiter.grant(version, version - self._first_version, 0)
        found = {}
        for group, inbox in enumerate(self._answers):
            inbox.poll()
            if (grant := inbox.take()) is not None:
                found[group] = self._needs(grant)
                inbox.release(grant)
        return found

    def _needs(self, grant: Message) -> int:
        return int(grant.header[GrantHeader.NEEDS_VERSION])


def test_grants_are_given_in_order_of_asking_until_a_batch_is_started() -> None:
    groups = Groups()
    groups.ask(2, 0, 1)
    assert groups.granted(version=0) == {2: 0, 0: 0}


def test_parked_group_is_granted_after_the_update_and_needs_its_version() -> None:
    groups = Groups()
    groups.ask(0, 1, 2)
    groups.granted(version=0)
    assert groups.granted(version=0) == {}
    assert groups.granted(version=1) == {2: 1}


def test_lag_of_one_lets_two_batches_start() -> None:
    groups = Groups(5, max_policy_lag=1)
    groups.ask(0, 1, 2, 3, 4)
    assert len(groups.granted(version=0)) == 4


def test_resumed_trainer_counts_from_its_version() -> None:
    groups = Groups(version=1000)
    groups.ask(0, 1, 2)
    assert groups.granted(version=1000) == {0: 1000, 1: 1000}


def test_dropped_fragments_may_be_started_again() -> None:
    groups = Groups()
    groups.ask(0, 1, 2)
    groups.granted(version=0)
    groups.lag_limiter.received(0)
    groups.lag_limiter.lose(FRAGMENTS)
    assert groups.granted(version=0) == {2: 0}


def test_open_fragments_of_a_dead_actor_may_be_started_by_others() -> None:
    groups = Groups()
    groups.ask(0, 1, 2)
    groups.granted(version=0)
    groups.lag_limiter.forget([0])
    assert groups.granted(version=0) == {2: 0}


def test_death_is_counted_once() -> None:
    groups = Groups()
    groups.ask(0)
    groups.granted(version=0)
    groups.lag_limiter.forget([0])
    groups.lag_limiter.forget([0])
    assert groups.lag_limiter.lost == FRAGMENTS


def test_fragments_that_came_before_the_death_are_not_lost() -> None:
    groups = Groups()
    groups.ask(0)
    groups.granted(version=0)
    groups.lag_limiter.received(0)
    groups.lag_limiter.forget([0])
    assert groups.lag_limiter.lost == 0


def test_block_that_is_taken_after_its_actors_death_is_not_lost() -> None:
    groups = Groups()
    groups.ask(0)
    groups.granted(version=0)
    groups.lag_limiter.forget([0])
    groups.lag_limiter.received(0)
    assert groups.lag_limiter.lost == 0


def test_dead_actor_that_had_asked_gets_no_grant() -> None:
    groups = Groups()
    groups.ask(0, 1)
    groups.lag_limiter.forget([0])
    assert groups.granted(version=0) == {1: 0}
    assert groups.lag_limiter.started == FRAGMENTS


def resumed(before: Groups) -> Groups:
    """The same groups, in another run that goes on from the state."""
    after = Groups()
    after.transport.load_state(before.transport.save_state())
    after.lag_limiter.load_state(before.lag_limiter.save_state())
    after.lag_limiter.listen()
    return after


def test_counts_and_the_order_of_asking_are_the_saved_ones_after_a_resume() -> None:
    before = Groups()
    before.ask(1)
    before.granted(version=0)
    before.ask(2, 0, 1)
    after = resumed(before)
    assert (after.lag_limiter.started, after.lag_limiter.asking) == (FRAGMENTS, 3)
    assert [list(after.granted(version)) for version in range(3)] == [[2], [0, 1], []]


def test_dead_actor_loses_after_a_resume_what_it_had_started_before() -> None:
    before = Groups()
    before.ask(0, 1)
    before.granted(version=0)
    before.lag_limiter.received(1)
    after = resumed(before)
    after.lag_limiter.forget([0, 1])
    assert after.lag_limiter.lost == FRAGMENTS


def test_group_that_must_not_wait_is_granted_beyond_the_limit_and_others_wait_longer() -> None:
    groups = Groups(4)
    groups.ask(0, 1)
    groups.granted(version=0)
    groups.ask(2, held=Holding.EARLIER)
    groups.ask(3, held=Holding.LATER)
    assert groups.granted(version=0) == {3: 0}
    groups.ask(0)
    assert groups.granted(version=1) == {2: 1}
    assert groups.granted(version=2) == {0: 2}


def test_grant_that_was_not_taken_yet_can_be_taken_after_a_resume() -> None:
    before = Groups()
    before.ask(2, held=Holding.EARLIER)
    before.ask(0, 1)
    before.lag_limiter.grant(0, 0, 0)
    after = resumed(before)
    # What a group holds is saved, too, so its turn is that of its asking.
    assert list(after.granted(version=0)) == [0, 2]
    assert after.lag_limiter.asking == 1


def test_grants_never_exceed_what_the_version_allows_whatever_happens() -> None:
    random_source = random.Random(1)
    for max_policy_lag in (0, 1, 3):
        groups, asked, open_blocks = Groups(6, max_policy_lag=max_policy_lag), set[int](), list[int]()
        version, trained = 0, 0
        for _ in range(400):
            free = [group for group in range(6) if group not in asked and group not in open_blocks]
            if free and random_source.random() < 0.6:
                group = random_source.choice(free)
                groups.ask(group)
                asked.add(group)
            for group in groups.granted(version):
                asked.discard(group)
                open_blocks.append(group)
            if open_blocks and random_source.random() < 0.6:
                groups.lag_limiter.received(open_blocks.pop(random_source.randrange(len(open_blocks))))
                if random_source.random() < 0.2:
                    groups.lag_limiter.lose(FRAGMENTS)
                else:
                    trained += FRAGMENTS
                version = trained // 8
            bound = (version + 1 + max_policy_lag) * 8
            assert groups.lag_limiter.started - groups.lag_limiter.lost <= bound
        assert version > 10
