"""`--set path=value`."""

from __future__ import annotations

import pytest

from srlhpc.errors import UserError
from srlhpc.specs.load import load_text, parse_job
from tests.specs.jobs import JOB


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("actors.ring=0", "--set actors.ring=0: actors.ring: is 0; it must be at least 1."),
        ("actors.rank=2", "--set actors.rank=2: actors.rank: unknown key; did you mean 'ranks'?"),
        ("actor.ranks=2", "--set actor.ranks=2: actor: unknown key; did you mean 'actors'?"),
        (
            "trainers.precison=float32",
            "--set trainers.precison=float32: trainers.precison: unknown key; did you mean 'precision'?",
        ),
        (
            "policies.defualt.batch.fragments=4",
            "--set policies.defualt.batch.fragments=4: no policy 'defualt'; did you mean 'default'?",
        ),
        ("seed.x=3", "--set seed.x=3: seed is 1, which has no 'x'"),
        (
            "agents.0.policy=x",
            "--set agents.0.policy=x: agents is not set, so there is no '0' in it; set the whole list",
        ),
        ("seed=", "--set seed=: seed: is null; it must be a whole number."),
        (
            "seed={",
            "--set seed={: is no YAML: expected the node content, but found '<stream end>'; "
            "correct it there or just above",
        ),
        ("seed", "--set seed: is no override; write --set path=value, for example --set actors.ranks=2"),
        ("=3", "--set =3: is no override; write --set path=value, for example --set actors.ranks=2"),
        (
            "a..b=3",
            "--set a..b=3: a: unknown key; known keys: seed, environment, policies, agents, actors, "
            "policy_servers, trainers, evaluators, stop, checkpoint, versions, matches",
        ),
        (
            "policies.default.network.recurrent.size=8",
            "--set policies.default.network.recurrent.size=8: policies.default.network.recurrent.kind: is missing.",
        ),
    ],
)
def test_wrong_override_is_named_with_a_suggestion(override: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        load_text(JOB, "job.yaml", [override])
    assert str(caught.value) == message


def test_last_of_several_overrides_counts() -> None:
    assert load_text(JOB, "job.yaml", ["seed=2", "seed=3"]).seed == 3


def test_override_makes_a_missing_section() -> None:
    assert load_text(JOB, "job.yaml", ["evaluators.ranks=2"]).evaluators.ranks == 2


def test_equals_signs_belong_to_the_value_of_an_override() -> None:
    assert load_text(JOB, "job.yaml", ["agents=[{match: 'a=b'}]"]).agents[0].match == "a=b"


def test_override_of_a_list_element_changes_only_that() -> None:
    spec = load_text(JOB + "agents: [{match: a}, {match: b}]\n", "job.yaml", ["agents.1.train=false"])
    assert [(entry.match, entry.train) for entry in spec.agents] == [("a", True), ("b", False)]


def test_override_of_a_missing_list_element_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        load_text(JOB + "agents: [{match: a}]\n", "job.yaml", ["agents.1.train=false"])
    assert str(caught.value) == "--set agents.1.train=false: agents has 1 entry, numbered from 0; there is no '1'"


def test_override_of_a_factory_drops_its_other_keys_and_says_so() -> None:
    text = JOB.replace("factory: catch", "factory: gymnasium, id: CartPole-v1")
    job = parse_job(text, "job.yaml", ["environment.factory=catch"])
    assert job.spec.environment.factory == "catch"
    assert job.notes == (
        "--set environment.factory=catch: environment names another module or variant; dropped its id",
    )


def test_override_by_the_same_factory_keeps_its_other_keys() -> None:
    text = JOB.replace("factory: catch", "factory: gymnasium, id: CartPole-v1")
    job = parse_job(text, "job.yaml", ["environment.factory=gymnasium"])
    assert (job.spec.environment.model_dump()["id"], job.notes) == ("CartPole-v1", ())


def test_overrides_after_that_of_a_kind_count() -> None:
    spec = load_text(
        JOB, "job.yaml", ["policies.default.network.recurrent.kind=gru", "policies.default.network.recurrent.size=8"]
    )
    assert spec.policies["default"].network.model_dump()["recurrent"] == {"kind": "gru", "size": 8}
