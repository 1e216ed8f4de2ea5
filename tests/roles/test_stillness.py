"""What is said of a run that stands still."""

from __future__ import annotations

from pathlib import Path

from srlhpc.roles.stillness import who_waits, write_stacks
from tests.roles.playing import Play
from tests.scripted import Script, Scripted


def test_roles_that_wait_for_the_same_are_named_together() -> None:
    waits = [(f"actor-{i}", "waits for a grant of a") for i in range(9)] + [("trainer-a-0", "waits for blocks")]
    text = "actor-0, actor-1, actor-2 and 6 others: waits for a grant of a; trainer-a-0: waits for blocks"
    assert who_waits(waits) == text


def test_many_different_words_are_cut() -> None:
    assert who_waits((f"role-{i}", f"waits for {i}") for i in range(20)).endswith("; and 12 more")


def test_stacks_name_the_function_that_runs(tmp_path: Path) -> None:
    write_stacks(tmp_path / "stacks")
    assert "test_stacks_name_the_function_that_runs" in (tmp_path / "stacks").read_text()


def test_actor_says_which_policys_grant_slot_or_actions_it_waits_for() -> None:
    seats = {"a": {"agents": (0,), "records": 2, "strict": True}, "b": {"agents": (1,), "records": 4, "strict": True}}
    play = Play(Scripted([[Script(50)]], {"agent": ("one", "two")}), **seats)
    play.actor.poll()
    assert play.actor.waits_for() == "group 7 waits for a grant of b"
    play.seats["b"].grant(0)
    play.actor.poll()
    assert play.actor.waits_for() == "group 7 waits for a grant of a while it holds b"
    play.seats["a"].grant(0)
    play.actor.poll()
    assert play.actor.waits_for() == "group 7 waits for actions of b and a"
    before = play.actor.moves
    for seat in play.seats.values():
        seat.serve()
    play.actor.poll()
    assert play.actor.moves == before + 1
