"""What roles spend their time on, in words."""

from __future__ import annotations

from srlhpc.runs.progress import timing_lines


def test_shares_are_told_largest_first_in_the_roles_own_words() -> None:
    state = {
        "timing": {
            "trainer": {"input": 0.43, "computing": 0.566, "moving": 0.004},
            "policy_server": {"input": 1.0},
            "actor": {"environment": 0.9, "slot": 0.1},
        },
        "bottleneck": "trainer waits",
    }
    assert timing_lines(state) == [
        "  trainer: 57 % computing, 43 % waiting for batches",
        "  policy server: 100 % waiting for requests",
        "  actor: 90 % in the environment, 10 % waiting for a free slot",
        "  limit: trainer waits",
    ]


def test_replay_says_whom_its_rate_makes_wait() -> None:
    state = {"timing": {"replay": {"slot": 0.5, "others": 0.3, "input": 0.2}}}
    assert timing_lines(state) == [
        "  replay: 50 % letting actors wait, 30 % letting the trainer wait, 20 % waiting for blocks"
    ]


def test_run_that_has_not_trained_or_was_written_before_says_nothing() -> None:
    assert timing_lines({"timing": {}, "bottleneck": None}) == []
    assert timing_lines({}) == []
