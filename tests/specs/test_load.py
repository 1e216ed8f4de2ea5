"""Job files: what they become, and what a user is told about a wrong one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from srlhpc.errors import UserError
from srlhpc.specs.load import dump_experiment, load_experiment, load_text, parse_job
from srlhpc.specs.named_modules import Gru
from srlhpc.specs.role_sections import InlineInference
from srlhpc.specs.schedule import LinearSchedule
from tests.specs.jobs import JOB, write

JOBS = sorted((Path(__file__).parents[2] / "jobs").glob("*.yaml"))


def complaint(text: str, *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        load_text(text, "jobs/pong.yaml", overrides)
    return str(caught.value)


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_shipped_job_survives_dump_and_load(path: Path) -> None:
    spec = load_experiment(path)
    assert load_text(dump_experiment(spec), "dump.yaml") == spec


def test_numbers_of_yaml_1_2_are_numbers() -> None:
    spec = load_text(JOB, "job.yaml")
    assert spec.stop.steps == 1_000_000
    assert spec.policies["default"].algorithm.learning_rate == 3e-4  # type: ignore[attr-defined]


def test_schedule_survives_dump_and_load() -> None:
    spec = load_text(JOB, "job.yaml", ["policies.default.algorithm.learning_rate={start: 1e-3, end: 0, steps: 1e6}"])
    again = load_text(dump_experiment(spec), "dump.yaml")
    assert again == spec
    assert again.policies["default"].algorithm.learning_rate == LinearSchedule(  # type: ignore[attr-defined]
        start=1e-3, end=0, steps=1e6
    )


def test_kind_alone_makes_a_complete_inference() -> None:
    assert load_text(JOB, "job.yaml", ["actors.inference.kind=inline"]).actors.inference == InlineInference()


def test_recurrent_null_gives_no_memory() -> None:
    assert (
        load_text(JOB.replace("kind: mlp", "kind: mlp\n      recurrent: null"), "j")
        .policies["default"]
        .network.recurrent
        is None
    )


def test_recurrent_mapping_gives_that_memory() -> None:
    spec = load_text(JOB, "job.yaml", ["policies.default.network.recurrent={kind: gru, size: 32}"])
    assert spec.policies["default"].network.recurrent == Gru(size=32)


def test_one_checkpoint_setting_leaves_the_others_at_their_defaults() -> None:
    assert load_text(JOB, "job.yaml", ["checkpoint.keep=7"]).checkpoint.every_seconds == 600.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ranks: 2", "rank: 2", "jobs/pong.yaml:14: actors.rank: unknown key; did you mean 'ranks'?"),
        (
            "fragments: 8",
            "batch_size: 8",
            "jobs/pong.yaml:10: policies.default.batch.fragments: is missing.\n"
            "jobs/pong.yaml:11: policies.default.batch.batch_size: unknown key; here it is fragments, of "
            "fragment_steps records each",
        ),
        (
            "ranks: 2",
            "ranks: 2\n  inference: inline",
            "jobs/pong.yaml:15: actors.inference: is 'inline'; it must be a mapping (such as {kind: inline}).",
        ),
        ("ranks: 2", "ranks: 2\n  ring: 0", "jobs/pong.yaml:15: actors.ring: is 0; it must be at least 1."),
        ("ranks: 2", "ranks: -3", "jobs/pong.yaml:14: actors.ranks: is -3; it must be at least 0."),
        ("ranks: 2", "ranks: two", "jobs/pong.yaml:14: actors.ranks: is 'two'; it must be a whole number."),
        ("ranks: 2", "ranks: 2.5", "jobs/pong.yaml:14: actors.ranks: is 2.5; it must be a whole number."),
        ("ranks: 2", "ranks: true", "jobs/pong.yaml:14: actors.ranks: is true; it must be a whole number."),
        ("ranks: 2", "ranks: null", "jobs/pong.yaml:14: actors.ranks: is null; it must be a whole number."),
        ("ranks: 2", "ranks: [2]", "jobs/pong.yaml:14: actors.ranks: is a list; it must be a whole number."),
        ("ranks: 2", "ring: 2", "jobs/pong.yaml:13: actors.ranks: is missing."),
        (
            "steps: 1_000_000",
            "steps: 1e6",
            "jobs/pong.yaml:16: stop.steps: is 1000000.0; it must be a whole number (write 1_000_000).",
        ),
        (
            "steps: 1_000_000",
            "steps: null",
            "jobs/pong.yaml:15: stop: sets no limit; set at least one of steps, updates, return_mean, hours",
        ),
        (
            "steps: 1_000_000",
            "return_mean: .nan",
            "jobs/pong.yaml:16: stop.return_mean: is nan; it must be a finite number.",
        ),
        (
            "steps: 1_000_000",
            "hours: 0",
            "jobs/pong.yaml:16: stop.hours: is 0; it must be above 0.",
        ),
        (
            "factory: catch",
            "factory: cach",
            "jobs/pong.yaml:2: environment.factory: no module 'envs.cach'; did you mean 'catch'?",
        ),
        ("factory: catch", "factory: 3", "jobs/pong.yaml:2: environment.factory: is 3; it must name a module."),
        ("factory: catch", "", "jobs/pong.yaml:2: environment.factory: is missing."),
        (
            "kind: ppo",
            "kind: ppoo",
            "jobs/pong.yaml:8: policies.default.algorithm.kind: no module 'srlhpc.algorithms.ppoo'; "
            "did you mean 'ppo'?",
        ),
        (
            "kind: ppo",
            "kind: srlhpc.policies.mlp",
            "jobs/pong.yaml:8: policies.default.algorithm.kind: srlhpc.policies.mlp is no algorithm module",
        ),
        (
            "learning_rate: 3e-4",
            "learning_rte: 3e-4",
            "jobs/pong.yaml:9: policies.default.algorithm.learning_rte: unknown key; did you mean 'learning_rate'?",
        ),
        (
            "learning_rate: 3e-4",
            "learning_rate: fast",
            "jobs/pong.yaml:9: policies.default.algorithm.learning_rate: is 'fast'; it must be a number or a mapping.",
        ),
        (
            "learning_rate: 3e-4",
            "learning_rate: {start: 1, ent: 0, steps: 9}",
            "jobs/pong.yaml:9: policies.default.algorithm.learning_rate.ent: unknown key; did you mean 'end'?",
        ),
        (
            "kind: mlp",
            "kind: mlp\n      recurrent: {kind: rnn}",
            "jobs/pong.yaml:7: policies.default.network.recurrent.kind: is 'rnn'; known are: gru, lstm",
        ),
        (
            "kind: mlp",
            "kind: mlp\n      recurrent: {size: 8}",
            "jobs/pong.yaml:7: policies.default.network.recurrent.kind: is missing.",
        ),
        (
            "ranks: 2",
            "ranks: 2\n  inference: {kind: servr}",
            "jobs/pong.yaml:15: actors.inference.kind: is 'servr'; did you mean 'server'?",
        ),
        (
            "fragment_steps: 16",
            "fragment_steps: 16\n    replay:\n      capacity: 9\n      samples_per_insert: 1\n      draw:\n"
            "        kind: prioritized\n        beta: 2",
            "jobs/pong.yaml:18: policies.default.replay.draw.beta: goes to 2; it must stay in [0, 1]",
        ),
        (
            "ranks: 2",
            "ranks: 2\ntrainers: {device: gpu}",
            "jobs/pong.yaml:15: trainers.device: is 'gpu'; it must be 'auto', 'cpu' or 'cuda'.",
        ),
        (
            "ranks: 2",
            "ranks: 2\ntrainers: {prefetch: yes}",
            "jobs/pong.yaml:15: trainers.prefetch: 'yes' is true in old YAML and text in new; write true, or quote it "
            "if it is text",
        ),
        (
            "ranks: 2",
            "ranks: 2\nagents: {policy: default}",
            "jobs/pong.yaml:15: agents: is a mapping; it must be a list.",
        ),
        (
            "ranks: 2",
            "ranks: 2\nagents:\n- policy: default\n- policy: defualt",
            "jobs/pong.yaml:17: agents.1.policy: 'defualt' is not in policies; did you mean 'default'?",
        ),
        (
            "ranks: 2",
            "ranks: 2\nagents:\n- match: 7",
            "jobs/pong.yaml:16: agents.0.match: is 7; it must be text (write '7').",
        ),
        (
            "fragments: 8",
            "fragments: 8\n      burn_in_steps: 4",
            "jobs/pong.yaml:12: policies.default.batch.burn_in_steps: is 4 but network.recurrent is null; burn-in "
            "warms up a recurrent state: set network.recurrent, or burn_in_steps to 0",
        ),
        (
            "fragments: 8",
            "fragments: 8\n      chunk_steps: 4",
            "jobs/pong.yaml:12: policies.default.batch.chunk_steps: is 4 but network.recurrent is null; chunks bound "
            "the steps through which gradients reach a recurrent state: set network.recurrent, or chunk_steps to null",
        ),
        (
            "    batch:\n",
            "    max_policy_lag: 2\n    batch:\n      uses: 4\n",
            "jobs/pong.yaml:10: policies.default.max_policy_lag: is 2 but batch.uses is 4: the last use of a batch "
            "comes at least 3 updates late; set max_policy_lag to 3 or more, or to auto",
        ),
        (
            "  default:\n",
            "  my policy:\n",
            "jobs/pong.yaml:4: policies.my policy: a policy's name may only have letters, digits, '_' and '-'",
        ),
        (
            "learning_rate: 3e-4",
            "minibatches: 3",
            "jobs/pong.yaml:4: policies.default: algorithm.minibatches is 3, which does not divide a trainer's batch "
            "of 128 records (batch.fragments * batch.fragment_steps)",
        ),
        ("seed: 1", "seed: 1\nseed: 2", "jobs/pong.yaml:2: duplicate key 'seed'; it is also in line 1: leave one out"),
        (
            "seed: 1",
            "seed: !!python/name:os.system",
            "jobs/pong.yaml:1: seed: unknown tag 'tag:yaml.org,2002:python/name:os.system'; "
            "leave it out, or quote text that begins with '!'",
        ),
        ("seed: 1", "1: seed", "jobs/pong.yaml:1: key 1 must be text; quote it"),
        (
            "ranks: 2",
            "ranks: [2",
            "jobs/pong.yaml:15: is no YAML: expected ',' or ']', but got ':'; correct it there or just above",
        ),
        (
            "ranks: 2",
            "\tranks: 2",
            "jobs/pong.yaml:14: is no YAML: found character '\\t' that cannot start any token; "
            "indent by spaces, not by tabs",
        ),
        ("seed: 1", "seed: &loop [*loop]", "jobs/pong.yaml:1: an alias holds itself; write its value out"),
    ],
)
def test_fault_of_a_job_is_named_with_place_and_remedy(old: str, new: str, message: str) -> None:
    assert JOB.count(old) == 1
    assert complaint(JOB.replace(old, new)) == message


def test_all_faults_of_a_job_are_listed_by_line() -> None:
    text = JOB.replace("fragments: 8", "fragments: 0").replace("seed: 1", "sed: 1").replace("  ranks: 2", "  rank: 2")
    text = text.replace("kind: mlp", "kind: mlpp")
    assert complaint(text).splitlines() == [
        "jobs/pong.yaml:1: sed: unknown key; did you mean 'seed'?",
        "jobs/pong.yaml:6: policies.default.network.kind: no module 'srlhpc.policies.mlpp'; did you mean 'mlp'?",
        "jobs/pong.yaml:11: policies.default.batch.fragments: is 0; it must be at least 1.",
        "jobs/pong.yaml:14: actors.rank: unknown key; did you mean 'ranks'?",
    ]


def test_missing_sections_of_a_job_are_all_named() -> None:
    assert complaint("seed: 1\nactors: {ranks: 1}\n").splitlines() == [
        "jobs/pong.yaml:1: environment: is missing.",
        "jobs/pong.yaml:1: policies: is missing.",
        "jobs/pong.yaml:1: stop: is missing.",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; it needs environment, policies, actors and stop; write a job file, or name another"),
        (
            b"# nothing\n",
            "is empty; it needs environment, policies, actors and stop; write a job file, or name another",
        ),
        (b"\n- 1\n", "1: is a list; a job file is a mapping of sections; name another, or write one"),
        (b"hello", "1: is 'hello'; a job file is a mapping of sections; name another, or write one"),
        (b"\x80\x81", "is no text (byte 0 is not UTF-8); it must be YAML"),
        (
            b"seed: 1\n--- \nseed: 2\n",
            "2: is no YAML: but found another document; write each job or profile into a file of its own",
        ),
        (b"[" * 3000, "is nested too deeply; is it the right file?"),
    ],
    ids=["empty", "only a comment", "list", "text", "binary", "two documents", "nested"],
)
def test_file_without_a_mapping_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_experiment(path)
    assert str(caught.value) == f"{path}:{'' if message[0].isdigit() else ' '}{message}"


def test_file_with_nul_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"seed: \0")
    with pytest.raises(UserError, match=r"job\.yaml: is no YAML: unacceptable character #x0000"):
        load_experiment(path)


def test_missing_file_gets_a_suggestion(tmp_path: Path) -> None:
    near = write(tmp_path, JOB, "pong.yaml")
    with pytest.raises(UserError) as caught:
        load_experiment(tmp_path / "pnog.yaml")
    assert str(caught.value) == f"{tmp_path}/pnog.yaml: no such file; did you mean '{near}'?"


def test_directory_is_refused_as_a_file(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load_experiment(tmp_path)
    assert str(caught.value) == f"{tmp_path}: is a directory; name a file in it"


def test_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_args: object, **_kwargs: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(UserError) as caught:
        load_experiment(tmp_path / "job.yaml")
    assert (
        str(caught.value)
        == f"{tmp_path}/job.yaml: cannot be read (Permission denied); name a YAML file that you may read"
    )


@pytest.mark.parametrize("word", ["yes", "off", "3e-4x", "2024-01-01", "1:30", "=", "<<"])
def test_dumped_text_stays_text(word: str) -> None:
    spec = load_text(JOB, "job.yaml", [f"agents=[{{match: '{word}'}}]"])
    assert load_text(dump_experiment(spec), "dump.yaml").agents[0].match == word


@pytest.mark.parametrize(
    "word", ["1e3", "0o17", "1_000", "null", "True", ".5", "~", "010", "off", "None", "inf", "0b1", "-0x1"]
)
def test_text_that_looks_like_something_else_is_dumped_quoted(word: str) -> None:
    spec = load_text(JOB, "job.yaml", [f"agents=[{{match: '{word}'}}]"])
    assert load_text(dump_experiment(spec), "dump.yaml").agents[0].match == word


@pytest.mark.parametrize("number", [".inf", "-.inf"])
def test_infinity_in_free_settings_stays_a_number(number: str) -> None:
    job = JOB.replace("factory: catch", "factory: gymnasium, id: CartPole-v1")
    spec = load_text(job, "job.yaml", [f"environment={{factory: gymnasium, id: X-v0, kwargs: {{limit: {number}}}}}"])
    again = load_text(dump_experiment(spec), "dump.yaml")
    assert again.model_dump()["environment"]["kwargs"] == {"limit": float(number.replace(".", ""))}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("1e6", "seed: is 1000000.0; it must be a whole number (write 1_000_000)"),
        ("1,000", "seed: is '1,000'; it must be a whole number (write 1_000)"),
        (
            "12:30:00",
            "seed: is '12:30:00'; it must be a whole number "
            "(750 minutes, 45000 seconds, if it is hours:minutes:seconds)",
        ),
        (
            "+010",
            "'+010' has a leading zero, which is octal to some and decimal to others; write 10, or 0o10 for octal",
        ),
        ("~", "seed: is null; it must be a whole number"),
        ("10k", "seed: is '10k'; it must be a whole number"),
    ],
)
def test_misspelt_number_gets_the_right_spelling(value: str, told: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"--set seed={value}: {told}")):
        load_text(JOB, "job.yaml", [f"seed={value}"])


@pytest.mark.parametrize(
    ("found_later", "told"),
    [
        ("policies.default.batch.fragments: is 8; why?", "job.yaml:11: policies.default.batch.fragments: is 8; why?"),
        ("policies.default: no agent uses it", "job.yaml:4: policies.default: no agent uses it"),
        ("trainers.ranks: is 1", "job.yaml:1: trainers.ranks: is 1"),
        ("actors.ring: is 9", "--set actors.ring=9: actors.ring: is 9"),
        ("network nature_cnn needs an image", "job.yaml: network nature_cnn needs an image"),
        ("torch: is missing", "job.yaml: torch: is missing"),
    ],
)
def test_problem_found_after_reading_has_its_place(found_later: str, told: str) -> None:
    job = parse_job(JOB, "job.yaml", ["actors.ring=9"])
    with pytest.raises(UserError) as caught, job.naming_places():
        raise UserError(found_later)
    assert str(caught.value) == told
