"""Commands that look at runs: status, why, logs, cancel, plot."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from srlhpc.cli.main import run_command_line
from srlhpc.cli.status import table
from srlhpc.cli.why import shortened
from srlhpc.data.atomic import read_json, write_json
from srlhpc.runs.state import run_state
from srlhpc.slurm.commands import SlurmSilent
from tests.launch.staged import staged_run
from tests.launch.written_runs import STATUS, dead, end, hold, last, write_metrics, written_run

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command on the runs of this test; gives exit code, output, error."""
    monkeypatch.setenv("SRLHPC_ROOT", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = run_command_line(arguments)
        except SystemExit as error:
            code = int(error.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_status_without_runs_says_so(call: Call) -> None:
    code, out, err = call("status")
    assert (code, out) == (0, "")
    assert "no runs in" in err
    assert call("status", "--json")[1] == "[]\n"


def test_status_of_a_living_run_names_its_dead_rank(tmp_path: Path, call: Call) -> None:
    hold(written_run(tmp_path, "mine"))
    _, out, _ = call("status")
    assert "running" in out
    assert "4,096" in out
    assert "2/3" in out
    assert "mine: actor-0 (rank 2, here) is dead" in out


STATISTICS = {f"statistic_{number}": number / 3 for number in range(8)}


def test_status_of_one_run_has_the_statistics_of_its_episodes(tmp_path: Path) -> None:
    states = [
        run_state(written_run(tmp_path, name, status={**STATUS, "episode": STATISTICS, "episodes": 250}))
        for name in ("mine", "other")
    ]
    first, second = (line for line in table(states[:1], 100) if "statistic" in line)
    assert first.startswith("  last 100 episodes: statistic_0 0, statistic_1 0.3333, ")
    assert second.endswith(", statistic_7 2.333")
    assert max(len(first), len(second)) <= 100
    assert not [line for line in table(states) if "statistic" in line]


def test_json_of_status_has_the_statistics_of_episodes(tmp_path: Path, call: Call) -> None:
    written_run(tmp_path, "mine", status={**STATUS, "episode": STATISTICS})
    written_run(tmp_path, "early")
    states = json.loads(call("status", "--json", "mine", "early")[1])
    assert [state["episode"] for state in states] == [STATISTICS, {}]


def test_status_drops_less_important_columns_on_a_narrow_terminal(tmp_path: Path) -> None:
    states = [run_state(written_run(tmp_path, name)) for name in ("mine", "a-run-with-a-rather-long-name")]
    wide, narrow = table(states), table(states, 72)
    assert [word in wide[0] for word in ("lag", "checkpoint", "state")] == [True, True, True]
    assert [word in narrow[0] for word in ("lag", "checkpoint", "state")] == [False, False, True]
    assert max(len(line) for line in narrow[:3]) <= 72


def test_status_of_thousands_of_ranks_is_few_lines(tmp_path: Path, call: Call) -> None:
    ranks = [{"rank": n, "label": f"actor-{n}", "host": "h", "alive": n % 2 == 0} for n in range(15_000)]
    hold(written_run(tmp_path, "mine", status={**STATUS, "ranks": ranks}))
    lines = call("status")[1].splitlines()
    assert len(lines) == 8
    assert lines[-1] == "mine: 7495 more are dead"


def test_nan_is_null_in_the_json_of_status(tmp_path: Path, call: Call) -> None:
    written_run(tmp_path, "mine", status={"attempt": 1, "return_mean": float("nan"), "steps": 5})
    (state,) = json.loads(call("status", "--json", "mine")[1], parse_constant=lambda name: pytest.fail(name))
    assert (state["name"], state["return_mean"], state["steps"]) == ("mine", None, 5)


def test_status_shows_only_named_runs(tmp_path: Path, call: Call) -> None:
    for name in ("a", "b", "c"):
        written_run(tmp_path, name)
    assert [state["name"] for state in json.loads(call("status", "--json", "c", "a")[1])] == ["c", "a"]


def test_status_refuses_a_missing_run(tmp_path: Path, call: Call) -> None:
    written_run(tmp_path, "mine")
    code, _, err = call("status", "mime")
    assert code == 2
    assert "did you mean 'mine'?" in err


def test_why_says_that_nothing_failed(tmp_path: Path, call: Call) -> None:
    end(written_run(tmp_path, "mine"), "finished", "steps")
    code, out, _ = call("why", "mine")
    assert code == 0
    assert "finished (steps)" in out
    assert "nothing failed" in out


def test_why_says_who_came_late_and_not_who_was_killed_for_it(tmp_path: Path, call: Call) -> None:
    paths = written_run(tmp_path, "mine")
    last(paths).exit(1).write_text("137 5.0\n")
    end(paths, "failed", "start", "not all ranks were up after 1 s; missing: actor-0 (rank 2)")
    out = call("why", "mine")[1]
    assert "not all ranks were up after 1 s; missing: actor-0 (rank 2)" in out
    assert "first failure" not in out


def test_why_names_role_host_signal_and_log_of_a_killed_rank(tmp_path: Path, call: Call) -> None:
    paths = written_run(tmp_path, "mine")
    last(paths).exit(1).write_text("137 5.0\n")
    end(paths, "failed", "killed", "a trainer is gone")
    out = call("why", "mine")[1]
    assert "first failure: trainer-default-0 (rank 1, host here) was killed by signal 9 (SIGKILL)" in out
    assert "  | hello from trainer-default-0" in out
    assert "out of" in out or "memory" in out
    assert "srlhpc resume mine" in out


def test_why_of_a_standstill_names_who_waited(tmp_path: Path, call: Call) -> None:
    paths = written_run(tmp_path, "mine")
    message = "nothing has moved for 45 s although all ranks report: actor-0: group 0 waits for a grant of a"
    end(paths, "failed", "standstill", message)
    last(paths).exit(2).write_text("143 1.0")
    out = call("why", "mine")[1]
    assert "group 0 waits for a grant of a" in out
    assert "what to do: Roles waited for each other" in out
    assert "SIGTERM" not in out


def test_why_shows_the_end_of_a_traceback(tmp_path: Path, call: Call) -> None:
    paths = written_run(tmp_path, "mine")
    lines = [f"line {number}" for number in range(40)]
    content = {"rank": 2, "role": "actor", "label": "actor-0", "host": "h", "time": 1.0, "kind": "environment"}
    write_json(last(paths).failure(2), content | {"message": "step 3 of environment 1", "traceback": "\n".join(lines)})
    end(paths, "failed", "environment", "x")
    out = call("why", "mine")[1]
    assert "step 3 of environment 1" in out
    assert "line 39" in out
    assert "line 5\n" not in out
    assert "The environment raised this" in out


def test_why_shows_both_ends_of_a_chain_of_exceptions() -> None:
    chain = "\n\nThe above exception was the direct cause of the following exception:\n\n"
    text = chain.join(["Traceback\n  my_env.py, line 7\nValueError: ball", "Traceback\n  ours\nStepError: step 3"])
    assert shortened(text) == ["Traceback", "  my_env.py, line 7", "ValueError: ball", "...", "StepError: step 3"]


def test_why_explains_a_kill_of_everything(tmp_path: Path, call: Call) -> None:
    paths = written_run(tmp_path, "mine")
    hold(paths, dead())
    out = call("why", "mine")[1]
    assert "failed (killed)" in out
    assert "kill -9" in out


def test_why_of_a_silent_end_of_a_serial_run_names_the_environment_too(tmp_path: Path, call: Call) -> None:
    paths = written_run(tmp_path, "mine")
    write_json(last(paths).attempt, {"serial": True, "ranks": 1, "checkpoint": None})
    hold(paths, dead())
    out = call("why", "mine")[1]
    assert "its process ended without a word after 4 updates" in out
    assert all(cause in out for cause in ("os._exit", "native code", "kill -9", "memory"))


def test_all_logs_have_their_names(tmp_path: Path, call: Call) -> None:
    written_run(tmp_path, "mine")
    out = call("logs", "mine")[1]
    assert (
        out.index("==> coordinator-0 <==") < out.index("hello from trainer-default-0") < out.index("hello from actor")
    )


@pytest.mark.parametrize("choice", [["--role", "actor"], ["--rank", "2"], ["--role", "actor", "--rank", "2"]])
def test_chosen_log_comes_alone(tmp_path: Path, call: Call, choice: list[str]) -> None:
    written_run(tmp_path, "mine")
    assert call("logs", "mine", *choice)[1] == "hello from actor-0\n"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (["--role", "actr"], "no log of role 'actr'; did you mean 'actor'?"),
        (["--rank", "9"], "no log of rank 9; there are the ranks 0, 1, 2"),
        (["--attempt", "4"], "has no attempt 4; it has 1"),
    ],
)
def test_missing_log_is_refused(tmp_path: Path, call: Call, choice: list[str], message: str) -> None:
    written_run(tmp_path, "mine")
    code, _, err = call("logs", "mine", *choice)
    assert code == 2
    assert message in err


def test_followed_logs_name_the_rank_of_every_line(tmp_path: Path, call: Call) -> None:
    written_run(tmp_path, "mine")
    assert "actor-0           | hello from actor-0\n" in call("logs", "mine", "-f")[1]


def test_cancel_posts_into_the_mailbox(tmp_path: Path, call: Call) -> None:
    paths = written_run(tmp_path, "mine")
    hold(paths)
    assert call("cancel", "mine")[0] == 0
    assert last(paths).stop.exists()


def test_cancel_posts_into_the_mailbox_where_slurm_is_silent(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object, **__: object) -> None:
        raise SlurmSilent("Slurm does not answer.\nTry later")

    monkeypatch.setattr("srlhpc.slurm.jobs.run_slurm", silent)
    paths = written_run(tmp_path, "mine")
    write_json(paths.slurm, {"jobs": [{"id": "7", "submitted": 0.0}]})
    assert call("cancel", "mine")[0] == 3
    hold(paths)
    lease = read_json(paths.lease) or {}
    write_json(paths.lease, lease | {"renewed": time.time(), "job": "7"})
    code, _, err = call("cancel", "mine")
    assert (code, "jobs that wait stay queued" in err) == (0, True)
    assert last(paths).stop.exists()


def test_cancel_of_an_idle_run_says_so(tmp_path: Path, call: Call) -> None:
    paths = written_run(tmp_path, "mine")
    end(paths, "finished", "steps")
    assert "it is finished" in call("cancel", "mine")[2]
    assert not last(paths).stop.exists()


def test_plot_is_a_picture(tmp_path: Path, call: Call) -> None:
    for seed in (1, 2):
        write_metrics(written_run(tmp_path, f"run{seed}", seed=seed), [(10, 1.0), (20, float(seed))])
    code, _, err = call("plot", "run1", "run2", "--out", str(tmp_path / "out.png"), "--x", "seconds")
    assert (code, "catch (2 runs)" in err) == (0, True)
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["mine"], "mine.png"),
        (["mine", "other", "third"], "mine_and_2_more.png"),
        (["mine", "--statistics"], "mine_statistics.png"),
    ],
)
def test_plot_without_a_name_is_in_this_folder_and_named_after_its_runs(
    arguments: list[str], name: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in ("mine", "other", "third"):
        staged_run(tmp_path, [{"box_move": 0.5}] * 3, name=run)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    code, _, err = call("plot", *arguments)
    assert (code, f"wrote {here / name}: " in err) == (0, True)
    assert [file.name for file in here.iterdir()] == [name]


@pytest.mark.parametrize("runs", [["mine"], ["mine", "its-twin"], ["mine", "its-twin", "other"]])
@pytest.mark.parametrize("axis", [[], ["--x", "seconds"]])
def test_plot_of_statistics_is_a_picture(tmp_path: Path, call: Call, runs: list[str], axis: list[str]) -> None:
    for seed, name in enumerate(["mine", "its-twin"]):
        staged_run(tmp_path, [{"box_move": 0.5, "box_lock": 1.0}] * 3, name=name, seed=seed)
    staged_run(tmp_path, [{"ramp_move": 0.5}] * 3, name="other", panels={"Ramps": ["ramp_move"]})
    code, _, err = call("plot", *runs, "--statistics", "--out", str(tmp_path / "out.png"), *axis)
    assert (code, "job (" in err) == (0, True)
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_former_option_of_plot_draws_statistics_and_names_the_new_word(tmp_path: Path, call: Call) -> None:
    staged_run(tmp_path, [{"box_move": 0.5}] * 3, name="mine")
    code, _, err = call("plot", "mine", "--stages", "--out", str(tmp_path / "out.png"))
    assert (code, "--stages is called --statistics now" in err) == (0, True)


def test_plot_of_missing_statistics_is_refused(tmp_path: Path, call: Call) -> None:
    write_metrics(written_run(tmp_path, "mine"), [(10, 1.0)])
    code, _, err = call("plot", "mine", "--statistics", "--out", str(tmp_path / "out.png"))
    assert code == 2
    assert "leave out --statistics" in err


def test_plot_refuses_an_unknown_format(tmp_path: Path, call: Call) -> None:
    write_metrics(written_run(tmp_path, "mine"), [(10, 1.0), (20, 2.0)])
    code, _, err = call("plot", "mine", "--out", str(tmp_path / "out.xyz"))
    assert code == 2
    assert "'.xyz' is no format of pictures; use one of" in err


def test_plot_without_matplotlib_names_the_extra(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    written_run(tmp_path, "mine")
    monkeypatch.setattr("srlhpc.pictures.figures.missing_packages", lambda needed: list(needed.items()))
    code, _, err = call("plot", "mine", "--out", str(tmp_path / "out.png"))
    assert code == 2
    assert "pip install 'srlhpc[plot]'" in err


def test_root_that_is_a_file_is_refused(tmp_path: Path, call: Call) -> None:
    (tmp_path / "file").touch()
    code, _, err = call("status", "--root", str(tmp_path / "file"))
    assert (code, "--root: " in err, "is no folder" in err) == (2, True, True)
