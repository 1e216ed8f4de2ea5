"""What lies in a fragment, record by record, through the real actor and its links."""

from __future__ import annotations

import numpy as np
import pytest

from srlhpc.comm.acquisition import Holding
from srlhpc.comm.protocol import Command, Report
from srlhpc.data.blocks import BlockHeader, RequestHeader
from srlhpc.roles.acting.actor import StepError
from tests.roles.playing import Play, column, times
from tests.scripted import Script, Scripted
from tests.stacked import Stacked

T, F = True, False


def one_environment(*scripts: Script) -> Scripted:
    return Scripted([scripts])


def test_fragment_without_an_end_holds_its_records_and_the_bootstrap() -> None:
    play = Play(one_environment(Script(10)), default={})
    play.run(4)
    (block,) = play.only.blocks
    assert times(block) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]
    assert column(block["rewards"]) == [1, 2, 3, 4]
    assert column(block["first"]) == [T, F, F, F, F]
    assert column(block["valid"]) == column(block["alive"]) == [T, T, T, T]
    assert not block["terminated"].any()
    assert not block["truncated"].any()


def test_next_fragment_starts_with_the_bootstrap_of_the_one_before() -> None:
    play = Play(one_environment(Script(10)), default={})
    play.run(8)
    first, second = play.only.blocks
    assert times(first)[-1] == times(second)[0] == (0, 4)
    assert column(second["first"]) == [F] * 5


def test_end_at_the_last_record_leaves_the_invalid_record_to_the_next_fragment() -> None:
    play = Play(one_environment(Script(4), Script(10)), default={})
    play.run(8)
    first, second = play.only.blocks
    assert column(first["terminated"]) == [F, F, F, T]
    assert column(first["valid"]) == [T, T, T, T]
    assert times(first)[-1] == (0, 4)
    assert times(second) == [(0, 4), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert column(second["valid"]) == [F, T, T, T]
    assert column(second["first"]) == [F, T, F, F, F]
    assert column(second["rewards"]) == [0, 1, 2, 3]
    assert not second["terminated"].any()


def test_end_at_the_first_record_of_a_fragment_is_followed_by_its_invalid_record() -> None:
    play = Play(one_environment(Script(5), Script(10)), default={})
    play.run(8)
    block = play.only.blocks[1]
    assert times(block) == [(0, 4), (0, 5), (1, 0), (1, 1), (1, 2)]
    assert column(block["terminated"]) == [T, F, F, F]
    assert column(block["valid"]) == [T, F, T, T]
    assert column(block["first"]) == [F, F, T, F, F]


def test_truncation_is_no_termination() -> None:
    play = Play(one_environment(Script(2, end="truncated")), default={})
    play.run(4)
    (block,) = play.only.blocks
    assert column(block["truncated"]) == [F, T, F, F]
    assert not block["terminated"].any()


def test_new_episode_at_the_bootstrap_is_marked_as_first() -> None:
    play = Play(one_environment(Script(3)), default={})
    play.run(4)
    (block,) = play.only.blocks
    assert times(block)[-1] == (1, 0)
    assert column(block["first"]) == [T, F, F, F, T]


def test_episodes_of_one_record_alternate_with_invalid_records() -> None:
    play = Play(one_environment(Script(1)), default={})
    play.run(4)
    (block,) = play.only.blocks
    assert column(block["valid"]) == [T, F, T, F]
    assert column(block["terminated"]) == [T, F, T, F]
    assert column(block["first"]) == [T, F, T, F, T]


def test_environments_of_a_group_end_independently() -> None:
    play = Play(Scripted([[Script(2)], [Script(10)]]), default={})
    play.run(4)
    (block,) = play.only.blocks
    assert column(block["valid"], env=0) == [T, T, F, T]
    assert column(block["valid"], env=1) == [T, T, T, T]
    assert block.header[BlockHeader.VALID] == 7
    assert block.header[BlockHeader.STEPS] == 7


def test_agent_that_leaves_and_comes_back_is_invalid_meanwhile_and_first_again() -> None:
    script = Script(10, presence={"b": ((0, 1), (3, 10))})
    play = Play(Scripted([[script]], {"agent": ("a", "b")}), default={"agents": (0, 1)})
    play.run(4)
    (block,) = play.only.blocks
    assert column(block["valid"], agent=1) == [T, F, F, T]
    assert column(block["alive"], agent=1) == [T, F, F, T]
    assert column(block["terminated"], agent=1) == [T, F, F, F]
    assert column(block["first"], agent=1) == [T, F, F, T, F]
    assert column(block["valid"], agent=0) == [T, T, T, T]


def test_step_counts_once_however_many_agents_are_trained() -> None:
    script = Script(10, presence={"b": ((0, 1),), "a": ((0, 3),)})
    play = Play(Scripted([[script]], {"agent": ("a", "b")}), default={"agents": (0, 1)})
    play.run(4)
    header = play.only.blocks[0].header
    assert header[BlockHeader.VALID] == 4
    assert header[BlockHeader.STEPS] == 3


def test_only_trained_agents_are_in_the_block_and_all_are_asked_for() -> None:
    play = Play(Scripted([[Script(10)]], {"agent": ("a", "b", "c")}), default={"agents": (0, 2), "trained": (1,)})
    play.run(4)
    (block,) = play.only.blocks
    assert block["obs.obs"][..., 2].tolist() == [[[3.0]]] * 5
    assert play.only.seen[0]["obs.obs"][0, :, 2].tolist() == [1.0, 3.0]


def test_actions_of_each_policy_go_to_its_own_agents() -> None:
    environment = Scripted([[Script(10)]], {"agent": ("a", "b", "c")})
    play = Play(environment, left={"agents": (0, 2)}, right={"agents": (1,)})
    play.seats["right"].served = 2
    play.run(1)
    assert environment.received == [(0, 0, 0, "a", 0), (0, 0, 0, "b", 2), (0, 0, 0, "c", 0)]


def test_untrained_policy_acts_and_sends_no_blocks() -> None:
    environment = Scripted([[Script(10)]], {"agent": ("a", "b")})
    play = Play(environment, learner={"agents": (0,)}, opponent={"agents": (1,), "trained": ()})
    play.run(4)
    assert len(play.seats["learner"].blocks) == 1
    assert play.seats["opponent"].served == 4


def test_two_policies_of_one_group_may_have_fragments_of_different_lengths() -> None:
    environment = Scripted([[Script(20)]], {"agent": ("a", "b")})
    play = Play(environment, short={"agents": (0,), "records": 2}, long={"agents": (1,), "records": 3})
    play.run(6)
    assert [times(block)[0][1] for block in play.seats["short"].blocks] == [0, 2, 4]
    assert [times(block)[0][1] for block in play.seats["long"].blocks] == [0, 3]


def test_policies_of_different_kinds_see_their_own_kind() -> None:
    environment = Scripted([[Script(10)]], {"cat": ("tom",), "mouse": ("jerry",)})
    play = Play(environment, cats={"kind": "cat"}, mice={"kind": "mouse"})
    play.run(4)
    assert times(play.seats["mice"].blocks[0]) == times(play.seats["cats"].blocks[0])
    assert {agent for _, _, _, agent, _ in environment.received} == {"tom", "jerry"}


def test_what_the_server_said_is_kept_with_its_record() -> None:
    play = Play(one_environment(Script(10)), default={})
    play.run(4)
    (block,) = play.only.blocks
    assert column(block["actions"]) == [0, 1, 2, 3]
    assert column(block["log_probs"]) == [0, -1, -2, -3]
    assert column(block["out.value"]) == [0, 1, 2, 3]


def test_version_is_kept_per_record_and_the_header_names_the_oldest() -> None:
    play = Play(one_environment(Script(10)), default={})
    play.only.version = 5
    play.run(2)
    play.only.version = 6
    play.run(2)
    (block,) = play.only.blocks
    assert block["versions"].tolist() == [5, 5, 6, 6]
    assert block.header[BlockHeader.OLDEST_VERSION] == 5


def test_header_numbers_the_fragments_of_its_group() -> None:
    play = Play(one_environment(Script(10)), default={})
    play.run(8)
    headers = [block.header for block in play.only.blocks]
    assert [header[BlockHeader.GROUP] for header in headers] == [7, 7]
    assert [header[BlockHeader.SEQUENCE] for header in headers] == [0, 1]
    assert [header[BlockHeader.TRAINED_FROM] for header in headers] == [0, 0]


def test_new_episodes_skip_a_number_if_a_fragment_came_before() -> None:
    play = Play(one_environment(Script(20)), default={"records": 3})
    play.run(4)
    play.actor.start(1)
    play.actor.start(2)
    play.run(7)
    assert [block.header[BlockHeader.SEQUENCE] for block in play.only.blocks] == [0, 3, 4]


# --- recurrent state and burn-in -----------------------------------------------------------------------------------


def test_state_is_that_before_the_first_record_and_final_state_that_before_the_bootstrap() -> None:
    play = Play(one_environment(Script(20)), default={"recurrent": True})
    play.run(8)
    first, second = play.only.blocks
    assert first["state.h"].item() == 0
    assert first["final_state.h"].item() == 4
    assert second["state.h"].item() == 4
    assert second["final_state.h"].item() == 8


def test_states_before_the_later_chunks_are_stored_and_wanted() -> None:
    play = Play(one_environment(Script(20)), default={"recurrent": True, "records": 6, "chunks": 3})
    play.run(12)
    first, second = play.only.blocks
    assert [first["state.h"].item(), *column(first["chunk_state.h"])] == [0, [2], [4]]
    assert first["final_state.h"].item() == 6
    assert [second["state.h"].item(), *column(second["chunk_state.h"])] == [6, [8], [10]]
    assert [header[RequestHeader.WANT_STATE] for header in play.only.headers] == 2 * [0, 1, 0, 1, 0, 1]


def test_state_counts_from_the_reset_inside_a_fragment() -> None:
    play = Play(one_environment(Script(2)), default={"recurrent": True})
    play.run(4)
    assert play.only.blocks[0]["final_state.h"].item() == 1


def test_state_is_wanted_only_where_it_is_kept() -> None:
    play = Play(one_environment(Script(20)), default={"recurrent": True, "records": 5, "burn_in": 2})
    play.run(6)
    assert [header[RequestHeader.WANT_STATE] for header in play.only.headers] == [1, 0, 1, 1, 0, 1]


def test_first_fragment_has_zeros_where_the_burn_in_would_be() -> None:
    play = Play(one_environment(Script(20)), default={"recurrent": True, "records": 5, "burn_in": 2})
    play.run(3)
    (block,) = play.only.blocks
    assert column(block["valid"]) == [F, F, T, T, T]
    assert column(block["first"]) == [F, F, T, F, F, F]
    assert times(block) == [(-1, -1), (-1, -1), (0, 0), (0, 1), (0, 2), (0, 3)]
    assert block["state.h"].item() == 0
    assert block["final_state.h"].item() == 3
    assert block.header[BlockHeader.TRAINED_FROM] == 2
    assert block.header[BlockHeader.VALID] == block.header[BlockHeader.STEPS] == 3


def test_later_fragment_repeats_the_tail_of_the_one_before_as_invalid_burn_in() -> None:
    play = Play(one_environment(Script(20)), default={"recurrent": True, "records": 5, "burn_in": 2})
    play.run(6)
    second = play.only.blocks[1]
    assert times(second) == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6)]
    assert column(second["valid"]) == [F, F, T, T, T]
    assert column(second["actions"]) == [1, 2, 3, 0, 1]
    assert column(second["rewards"]) == [2, 3, 4, 5, 6]
    assert second["state.h"].item() == 1
    assert second["final_state.h"].item() == 6
    assert second.header[BlockHeader.STEPS] == 3


def test_reset_inside_the_burn_in_is_repeated_too() -> None:
    play = Play(one_environment(Script(1)), default={"recurrent": True, "records": 5, "burn_in": 2})
    play.run(6)
    first, second = play.only.blocks
    assert column(first["first"]) == [F, F, T, F, T, F]
    assert column(second["first"]) == [F, T, F, T, F, T]
    assert column(second["valid"]) == [F, F, F, T, F]


def test_oldest_version_does_not_count_the_burn_in() -> None:
    play = Play(one_environment(Script(20)), default={"recurrent": True, "records": 5, "burn_in": 2})
    play.only.version = 1
    play.run(3)
    play.only.version = 2
    play.run(3)
    second = play.only.blocks[1]
    assert second["versions"].tolist() == [1, 1, 2, 2, 2]
    assert second.header[BlockHeader.OLDEST_VERSION] == 2


def test_new_episodes_everywhere_drop_the_burn_in_of_before() -> None:
    play = Play(one_environment(Script(20)), default={"recurrent": True, "records": 5, "burn_in": 2, "strict": True})
    play.actor.poll()
    play.only.grant(0)
    play.run(3)
    play.actor.start(1)
    play.actor.poll()
    play.only.grant(0)
    play.run(3)
    second = play.only.blocks[1]
    assert times(second)[:3] == [(-1, -1), (-1, -1), (0, 0)]
    assert second["state.h"].item() == 0


# --- strict mode ---------------------------------------------------------------------------------------------------


def granting(*lengths: int) -> Play:
    """A group of policies a, b, ..., whose fragments have so many records and need grants."""
    agents = "abc"[: len(lengths)]
    seats = {name: {"agents": (i,), "records": lengths[i], "strict": True} for i, name in enumerate(agents)}
    return Play(Scripted([[Script(50)]], {"agent": tuple(agents)}), **seats)


def test_group_asks_for_the_longest_fragment_first_and_for_one_at_a_time() -> None:
    play = granting(2, 4)
    play.actor.poll()
    assert not play.seats["a"].grant(0)
    assert play.seats["b"].grant(0)
    play.actor.poll()
    assert play.seats["a"].grant(0)
    play.run(2)
    play.actor.poll()
    assert not play.seats["b"].grant(0)
    assert play.seats["a"].grant(0)
    assert (play.seats["a"].held, play.seats["b"].held) == ([Holding.EARLIER] * 2, [Holding.NOTHING])


def test_group_whose_long_fragment_ends_within_a_short_one_says_that_it_must_not_wait() -> None:
    play = granting(2, 3)
    for _ in range(60):
        play.actor.poll()
        for seat in play.seats.values():
            seat.serve()
            seat.grant(0)
            seat.collect()
    # The fragments of 3 start at 0, 3, 6, 9; those of 2 are open at 3 and 9.
    assert play.seats["b"].held[:4] == [Holding.NOTHING, Holding.LATER, Holding.NOTHING, Holding.LATER]
    assert set(play.seats["a"].held) == {Holding.EARLIER}


def test_no_record_is_written_before_the_grant() -> None:
    play = Play(one_environment(Script(20)), default={"strict": True})
    for _ in range(5):
        play.actor.poll()
    assert not play.only.serve()
    assert not play.group.is_waiting
    assert not play.only.recorder.is_ready


def test_grant_is_good_for_one_fragment() -> None:
    play = Play(one_environment(Script(20)), default={"strict": True})
    play.actor.poll()
    assert play.only.grant(version=3)
    play.run(4)
    for _ in range(5):
        play.actor.poll()
    assert not play.only.serve()
    assert play.only.grant(version=4)
    play.run(4)
    assert len(play.only.blocks) == 2


def test_requests_carry_the_version_that_the_grant_needs() -> None:
    play = Play(one_environment(Script(20)), default={"strict": True})
    play.actor.poll()
    play.only.grant(version=3)
    play.run(4)
    assert {header[RequestHeader.NEEDS_VERSION] for header in play.only.headers} == {3}


def test_group_waits_while_no_slot_for_the_next_block_is_free() -> None:
    play = Play(one_environment(Script(40)), default={})
    with pytest.raises(AssertionError, match="made 8 steps"):
        play.run(16, collects=False)
    play.only.collect()
    play.run(4)


# --- the actor -----------------------------------------------------------------------------------------------------


def test_error_in_an_environment_names_environment_rank_group_and_step() -> None:
    class Broken(Scripted):
        def step(self, actions):  # type: ignore[no-untyped-def]
            raise ValueError("no such lever")

    play = Play(Broken([[Script(3)]]), default={})
    with pytest.raises(StepError, match=r"environment x on rank 3 \(actor-0\), group 7, step 1: ValueError: no such"):
        play.run(1)


def test_ended_actor_says_last_on_every_link_and_drops_the_open_fragment() -> None:
    play = Play(one_environment(Script(20)), default={})
    play.run(2)
    play.actor.obey(Command(stop=True))
    play.actor.poll()
    seat = play.only
    seat.serve()
    seat.collect()
    assert play.actor.is_done
    assert seat.blocks == []
    assert seat.blocks_inbox is not None
    assert seat.blocks_inbox.is_finished
    seat.requests.poll()
    assert seat.requests.is_finished


def test_episodes_are_reported_once_with_their_steps() -> None:
    play = Play(one_environment(Script(2), Script(3)), default={})
    play.run(6)
    report = Report(1, "here", 1)
    play.actor.fill(report)
    assert [(e["steps"], e["return"]) for e in report.episodes] == [(2, 3.0), (3, 6.0)]
    again = Report(1, "here", 1)
    play.actor.fill(again)
    assert again.episodes == []


def test_many_episodes_are_news_and_fill_no_more_than_a_report_holds() -> None:
    play = Play(Scripted([[Script(1)]] * 50), default={"records": 60})
    play.run(60)
    assert play.actor.has_news
    reports = [Report(1, "here", 1, episodes=[{"filler": "x" * 100_000}]) for _ in range(30)]
    for report in reports:
        play.actor.fill(report)
    assert sum(len(report.episodes) - 1 for report in reports) == 50 * 30
    assert max(len(str(report.episodes)) for report in reports) < 140_000
    assert not play.actor.has_news


@pytest.mark.parametrize("steps", range(1, 9))
def test_group_that_was_saved_after_any_step_goes_on_with_the_same_fragments(steps: int) -> None:
    settings = {"recurrent": True, "records": 5, "burn_in": 2}
    whole, saved, other = (Play(one_environment(Script(7)), default=settings) for _ in range(3))
    whole.run(12)
    saved.run(steps)
    resume(saved, other)
    other.run(12 - steps)
    same_blocks(whole, saved, other)


@pytest.mark.parametrize("steps", range(1, 15))
@pytest.mark.parametrize("burn_in", [0, 2])
def test_group_that_was_saved_after_any_step_goes_on_with_the_same_frames_of_stacks(steps: int, burn_in: int) -> None:
    settings = {"records": 5, "burn_in": burn_in}
    whole, saved, other = (
        Play(Stacked(one_environment(Script(3), Script(7)), 3, "newest", every=2), default=settings) for _ in range(3)
    )
    whole.run(17)
    saved.run(steps)
    resume(saved, other)
    other.run(17 - steps)
    same_blocks(whole, saved, other)


@pytest.mark.parametrize("moves", range(0, 36))
def test_group_that_was_saved_while_it_waits_for_anything_goes_on_with_the_same_fragments(moves: int) -> None:
    settings = {"recurrent": True, "records": 6, "chunks": 2, "strict": True}
    whole, saved, other = (Play(one_environment(Script(7)), default=settings) for _ in range(3))
    for number in range(80):
        move(whole, number)
        if number == moves:
            resume(saved, other)
        move(saved if number < moves else other, number)
    same_blocks(whole, saved, other)


def move(play: Play, number: int) -> None:
    """Actor, server and trainer in turn."""
    match number % 4:
        case 0:
            play.actor.poll()
        case 1:
            play.only.grant(version=3)
        case 2:
            play.only.serve()
        case 3:
            play.only.collect()


def resume(saved: Play, other: Play) -> None:
    """Lets the other play, and its server, go on from the state of the first."""
    other.transport.load_state(saved.transport.save_state())
    other.actor.load_state(saved.actor.save_state())
    other.only.served, other.only.state = saved.only.served, saved.only.state


def same_blocks(whole: Play, saved: Play, other: Play) -> None:
    found = [*saved.only.blocks, *other.only.blocks]
    assert len(found) == len(whole.only.blocks) > 1
    for block, expected in zip(found, whole.only.blocks, strict=True):
        assert block.header == expected.header
        for name, array in expected.fields.items():
            np.testing.assert_array_equal(block[name], array, err_msg=name)


def test_fragment_that_is_open_begins_anew_with_new_episodes_and_drops_the_reply_on_its_way() -> None:
    play = Play(one_environment(Script(9), Script(20)), default={"records": 4, "strict": True})
    play.actor.poll()
    play.only.grant(5)
    play.run(2)
    assert play.group.is_waiting
    play.actor.start(1)
    play.run(4)
    (block,) = play.only.blocks
    assert times(block) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]
    # The server had answered two requests, and then the one whose answer was dropped.
    assert column(block["out.value"]) == [3, 4, 5, 6]
    assert len(play.only.held) == 1, "the fragment went on with the grant that it had"


def test_waiting_actor_polls_the_blocks_that_it_has_sent() -> None:
    play = Play(one_environment(Script(10)), default={})
    play.run(4)
    play.actor.poll()
    assert play.only.recorder.channels.blocks is not None
    assert not play.only.recorder.channels.blocks.poll(), "the slot that the trainer freed was found by the actor"
