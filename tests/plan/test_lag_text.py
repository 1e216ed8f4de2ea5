"""The limit of the policy lag: what `auto` stands for, what a plan and a status say of it."""

from __future__ import annotations

from typing import Any

import pytest

from srlhpc.plan.lag_advice import lag_advice, lag_plan
from srlhpc.plan.lag_limits import lag_of_busy_actors, lag_of_slots, max_policy_lag, needs_grants, oldest_trained
from srlhpc.plan.lag_text import lag_hints, lag_lines, lag_part
from srlhpc.plan.plan import Plan
from srlhpc.plan.planner import make_plan
from srlhpc.rl.policy_lag import rollout_slots
from srlhpc.specs.load import load_text
from tests.scripted import scripted_spaces


def planned(
    lag: str | None = None, *, fragments: int = 16, ranks: int = 2, serial: bool = False, batch: str = ""
) -> Plan:
    """Actors with a ring of two groups of four environments: eight fragments in play each. No lag: the default."""
    limit = "" if lag is None else f"max_policy_lag: {lag}"
    text = f"""
environment: {{factory: tests.scripted}}
policies:
  default:
    network: {{kind: mlp}}
    algorithm: {{kind: ppo, minibatches: 1}}
    batch: {{fragments: {fragments}, fragment_steps: 5{batch}}}
    {limit}
actors: {{ranks: {ranks}, ring: 2, environments: 4}}
stop: {{steps: 1000}}
"""
    return make_plan(load_text(text, "job.yaml"), scripted_spaces({"agent": ("agent",)}), serial=serial)


@pytest.mark.parametrize("uses", [1, 2, 4])
@pytest.mark.parametrize(("in_play", "batch"), [(8, 8), (4, 8), (12, 8), (32, 8)])
def test_auto_is_the_least_limit_at_which_nobody_waits_while_a_batch_is_trained(
    in_play: int, batch: int, uses: int
) -> None:
    def slots(limit: int) -> int:
        return rollout_slots(1, batch, 0, batch=batch, max_policy_lag=limit, uses=uses, uses_left=uses)

    limit = lag_of_busy_actors(in_play, batch, uses)
    assert slots(limit) >= in_play > slots(limit - 1)


def test_auto_grows_with_the_actors_and_shrinks_with_the_batch() -> None:
    assert [max_policy_lag(planned(ranks=ranks), "default") for ranks in (2, 4, 5)] == [1, 2, 3]
    assert max_policy_lag(planned(ranks=4, fragments=32), "default") == 1


def test_auto_is_the_default_and_null_is_no_limit() -> None:
    assert needs_grants(planned(), "default")
    assert not needs_grants(planned("null"), "default")
    assert max_policy_lag(planned("null"), "default") is None


def test_auto_is_no_limit_for_batches_that_are_kept() -> None:
    assert max_policy_lag(planned(batch=", uses: 2, queue: 4"), "default") is None


def test_auto_is_no_limit_where_groups_must_not_wait_for_fragments() -> None:
    policy = "network: {kind: mlp}, algorithm: {kind: ppo, minibatches: 1}, batch: {fragments: 16, fragment_steps: %d}"
    text = f"""
environment: {{factory: tests.scripted}}
policies: {{long: {{{policy % 6}}}, short: {{{policy % 4}}}}}
agents: [{{match: a, policy: long}}, {{match: b, policy: short}}]
actors: {{ranks: 2, ring: 2, environments: 4}}
stop: {{steps: 1000}}
"""
    plan = make_plan(load_text(text, "job.yaml"), scripted_spaces({"agent": ("a", "b")}))
    assert {policy: max_policy_lag(plan, policy) for policy in ("long", "short")} == {"long": None, "short": 1}


def test_auto_follows_the_uses_of_a_batch() -> None:
    assert max_policy_lag(planned(batch=", uses: 4"), "default") == 7


def test_serial_run_starts_fragments_as_they_are_needed_and_drops_none_by_default() -> None:
    serial = planned(serial=True)
    assert (max_policy_lag(serial, "default"), oldest_trained(serial, "default")) == (0, None)
    assert oldest_trained(planned("3", serial=True), "default") == 3


def test_lag_without_a_limit_is_the_batches_before_a_new_fragment() -> None:
    # Of jobs/cartpole.yaml and jobs/pong.yaml, where 3.0 and 9.0 were measured.
    assert lag_of_slots(8, 8, 32, 1) == 3
    assert lag_of_slots(8, 8, 8, 1) == 9


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (planned(), "at most 1 update (max_policy_lag: auto); 16 fragments in play, batches of 16"),
        (planned(ranks=4), "at most 2 updates (max_policy_lag: auto); 32 fragments in play, batches of 16"),
        (planned("3"), "at most 3 updates (max_policy_lag: 3); 16 fragments in play, batches of 16"),
        (planned("0"), "at most 0 updates (max_policy_lag: 0); actors wait during updates, which they would not at 1"),
        (planned("null"), "no limit (max_policy_lag: null); about 3 where the trainer is slower than the actors"),
        (planned(batch=", uses: 2, queue: 4"), "no limit (max_policy_lag: auto); batches are kept and used again"),
        (planned(serial=True), "policy lag: 0 updates, as in every serial run"),
    ],
)
def test_plan_says_the_limit_and_what_follows(of: Plan, said: str) -> None:
    assert said in lag_plan(of, "default")


def state(plan: Plan, mean: float) -> dict[str, Any]:
    lag = {"min": 0, "mean": mean, "max": 9, "limit": max_policy_lag(plan, "default")}
    return {"policy_lag": {"default": lag | {"advice": lag_advice(plan, "default")}}}


def test_status_says_how_old_data_was() -> None:
    assert lag_lines(state(planned("null"), 3.25)) == ["policy lag of default: 0 to 9 updates, mean 3.2 (no limit)"]
    assert lag_lines(state(planned(), 0.5)) == ["policy lag of default: 0 to 9 updates, mean 0.5 (at most 1)"]
    assert lag_lines({}) == []


def test_old_data_is_told_with_the_setting_that_makes_it_newer() -> None:
    (hint,) = lag_hints(state(planned("null"), 3.0))
    assert hint == (
        "data of default is 3 updates old when it is trained, which costs steps: "
        "policies.default.max_policy_lag: auto limits it to 1"
    )
    (hint,) = lag_hints(state(planned(ranks=8), 4.0))
    assert "policies.default.batch.fragments: 64 holds all fragments in play" in hint


@pytest.mark.parametrize(
    ("of", "mean"),
    [(planned("null"), 1.0), (planned("9"), 8.0), (planned("null", batch=", uses: 2, queue: 4"), 8.0)],
    ids=["new data", "a limit that was chosen", "batches that are kept"],
)
def test_nothing_is_advised_where_data_is_new_or_its_age_was_chosen(of: Plan, mean: float) -> None:
    assert list(lag_hints(state(of, mean))) == []


def test_status_says_one_number_where_all_data_is_equally_old() -> None:
    lag = {"min": 1, "max": 1, "mean": 1.0, "limit": 1, "advice": None}
    assert lag_lines({"policy_lag": {"default": lag}}) == ["policy lag of default: 1 update (at most 1)"]


def test_status_of_replay_says_that_the_lag_is_the_age_of_what_was_drawn() -> None:
    lag = {"min": 12, "max": 35216, "mean": 2897.6, "limit": None, "advice": None, "is_drawn": True}
    status = {"policy_lag_mean": 2897.6, "policy_lag": {"default": lag}}
    assert lag_lines(status) == ["age of what default drew from replay: 12 to 35,216 updates, mean 2,898"]
    assert lag_part(status) == "drawn data 2,898 updates old"
    assert lag_part({"policy_lag_mean": 0.4}) == "lag 0.4"
    assert lag_part({}) is None
