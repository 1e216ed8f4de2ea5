"""Which role holds up the others, from shares of time."""

from __future__ import annotations

import pytest

from srlhpc.roles.coordinating.bottleneck import Inference, bottleneck

CASES: list[tuple[Inference, dict[str, float], dict[str, float], dict[str, float], str]] = [
    # inference, trainer, policy server, actor, words
    ("server", {"input": 0.43, "computing": 0.57}, {"computing": 0.1}, {"environment": 0.8, "input": 0.2},
     "trainer waits 43 % of its time for batches; actors step 80 % of theirs: the environment is the limit: add"),
    ("server", {"input": 0.43}, {"computing": 0.1}, {"computing": 0.6, "environment": 0.3, "input": 0.1},
     "records and messages 60 % of theirs: raise actors.environments"),
    ("server", {"input": 0.5}, {"computing": 0.9}, {"environment": 0.3, "input": 0.6},
     "actors wait 60 % of theirs for actions and policy servers compute 90 %: add policy servers"),
    ("server", {"input": 0.5}, {"computing": 0.3}, {"environment": 0.3, "input": 0.6},
     "though policy servers compute only 30 %: raise actors.ring or actors.environments"),
    ("inline", {"input": 0.5}, {"computing": 0.6}, {"environment": 0.3, "input": 0.6},
     "which they compute themselves: add actors"),
    ("trainer", {"input": 0.5, "others": 0.3}, {"computing": 0.3}, {"environment": 0.3, "input": 0.6},
     "which trainers compute: use policy servers"),
    ("trainer", {"input": 0.05, "others": 0.3}, {"computing": 0.3}, {"environment": 0.3, "input": 0.6},
     "trainer's rank serves actions 30 % of its time"),
    ("server", {"input": 0.05, "others": 0.3}, {}, {"environment": 0.3, "input": 0.6},
     "trainers wait 30 % of their time for each other"),
    ("server", {"input": 0.02, "computing": 0.98}, {}, {"environment": 0.3, "slot": 0.5},
     "actors wait 50 % of their time for a free slot: the trainer is the limit: add a trainer, or work less "
     "on each batch"),
    ("server", {"input": 0.5, "computing": 0.5}, {}, {"environment": 0.4, "slot": 0.5},
     "they take turns: raise max_policy_lag"),
    ("server", {"input": 0.03, "computing": 0.97}, {}, {"environment": 0.95, "slot": 0.05},
     "trainer computes 97 % of its time and waits little: well balanced"),
]  # fmt: skip


def test_rule_without_epochs_is_not_told_to_train_fewer() -> None:
    line = bottleneck({"trainer": {"computing": 0.95}, "actor": {"slot": 0.5}, "replay": {"computing": 0.05}}, "server")
    assert line is not None
    assert line.endswith("add a trainer, or lower replay.samples_per_insert")


@pytest.mark.parametrize(("inference", "trainer", "server", "actor", "words"), CASES)
def test_line_from_shares_names_the_limit_and_the_remedy(
    inference: Inference, trainer: dict[str, float], server: dict[str, float], actor: dict[str, float], words: str
) -> None:
    line = bottleneck({"trainer": trainer, "policy_server": server, "actor": actor}, inference)  # type: ignore[dict-item]
    assert line is not None
    assert words in line


REPLAY: list[tuple[dict[str, float], dict[str, float], dict[str, float], str]] = [
    # trainer, replay, actor, words
    ({"input": 0.43}, {"others": 0.4}, {"environment": 0.8, "input": 0.2},
     "trainer waits 43 % of its time until more has come in (replay.samples_per_insert); actors step 80 %"),
    ({"computing": 0.97, "input": 0.03}, {"slot": 0.7}, {"environment": 0.3, "slot": 0.7},
     "replay rate: actors wait 70 % of their time until more is learnt from what they sent: the trainer is"),
    ({"computing": 0.5, "input": 0.5}, {"slot": 0.2, "computing": 0.8}, {"slot": 0.7},
     "and replay ranks compute 80 %: raise replay.ranks"),
    ({"computing": 0.5, "input": 0.5}, {"slot": 0.7, "computing": 0.2}, {"slot": 0.7},
     "and the trainer 50 % for windows: raise batch.fragments"),
    ({"computing": 0.97, "input": 0.03}, {"input": 0.9}, {"environment": 0.95, "slot": 0.05}, "well balanced"),
]  # fmt: skip


@pytest.mark.parametrize(("trainer", "replay", "actor", "words"), REPLAY)
def test_line_names_the_rate_of_replay_and_who_waits_for_it(
    trainer: dict[str, float], replay: dict[str, float], actor: dict[str, float], words: str
) -> None:
    line = bottleneck({"trainer": trainer, "replay": replay, "actor": actor}, "inline")  # type: ignore[dict-item]
    assert line is not None
    assert words in line


@pytest.mark.parametrize("shares", [{}, {"trainer": {"input": 1.0}}, {"actor": {"input": 1.0}, "trainer": {}}])
def test_line_without_trainer_or_actor_is_none(shares: dict[str, dict[str, float]]) -> None:
    assert bottleneck(shares, "server") is None  # type: ignore[arg-type]
