from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from envs.dm_control import Settings, build
from srlhpc.doctor.random_play import assert_same, keep, random_actions
from srlhpc.environment import ArraySpec, Continuous, Environment
from srlhpc.errors import UserError
from tests.environment_conformance import EnvironmentConformance

suite = pytest.importorskip("dm_control.suite")


class TestCheetahRun(EnvironmentConformance):
    settings = {"factory": "dm_control", "domain": "cheetah", "task": "run", "task_kwargs": {"time_limit": 0.3}}
    offers_state = True


class TestCartpoleSwingup(EnvironmentConformance):
    settings = {"factory": "dm_control", "domain": "cartpole", "task": "swingup", "task_kwargs": {"time_limit": 0.4}}
    offers_state = True


def make(domain: str, task: str, num_environments: int = 1, **chosen: Any) -> Environment:
    return build(Settings(factory="dm_control", domain=domain, task=task, **chosen), num_environments, 0)


def physics_of(environment: Any) -> Any:
    """The physics of the first environment."""
    return environment._simulators._simulators[0].environment.physics


# Tasks that write into their models where a target is or what an actuator does, and one whose model is drawn at random.
CHANGING = [
    ("finger", "turn_hard"),
    ("fish", "swim"),
    ("lqr", "lqr_2_1"),
    ("manipulator", "insert_peg"),
    ("point_mass", "hard"),
]


@pytest.mark.parametrize(("domain", "task"), CHANGING)
def test_saved_state_goes_on_bit_by_bit_whatever_the_task_changes(domain: str, task: str) -> None:
    ours, other = (make(domain, task, 2, task_kwargs={"time_limit": 1.0}) for _ in range(2))
    random = np.random.default_rng(0)
    now = keep(ours.reset(3))
    for _ in range(70):
        now = keep(ours.step(random_actions(ours.spaces, now, random)))
    state = ours.save_state()
    assert state is not None
    other.load_state({name: array.copy() for name, array in state.items()})
    for _ in range(70):
        actions = random_actions(ours.spaces, now, random)
        now, theirs = keep(ours.step(actions)), keep(other.step(actions))
        assert_same(now, theirs)


def test_steps_are_those_of_the_suite_alone() -> None:
    ours, alone = make("cheetah", "run"), suite.load("cheetah", "run")
    alone.task.random.seed(int(np.random.SeedSequence(5).generate_state(1)[0]))
    now, theirs = ours.reset(5).kinds["agent"], alone.reset()
    for action in np.random.default_rng(0).uniform(-1, 1, (20, 6)).astype(np.float32):
        for key, array in theirs.observation.items():
            np.testing.assert_array_equal(now.observations[key][0, 0], array.astype(np.float32))
        now, theirs = ours.step({"agent": action[None, None]}).kinds["agent"], alone.step(action)
        assert now.rewards.item() == np.float32(theirs.reward)


def test_limit_of_time_truncates_and_an_end_of_its_own_terminates() -> None:
    cheetah = make("cheetah", "run", task_kwargs={"time_limit": 0.05})
    cheetah.reset(0)
    steps = [keep(cheetah.step({"agent": np.zeros((1, 1, 6))})).kinds["agent"] for _ in range(5)]
    assert [(step.truncated.item(), step.terminated.item()) for step in steps][3:] == [(False, False), (True, False)]
    lqr = make("lqr", "lqr_2_1")
    lqr.reset(0)
    physics_of(lqr).reset()
    now = lqr.step({"agent": np.zeros((1, 1, 1))}).kinds["agent"]
    assert (now.truncated.item(), now.terminated.item()) == (False, True)


def test_spaces_are_those_of_the_task_and_its_arguments() -> None:
    (kind,) = make("finger", "turn_easy").spaces.kinds
    assert kind.actions == Continuous(2)
    assert kind.observations["dist_to_target"] == ArraySpec((), "float32")
    (flat,) = make("cheetah", "run", environment_kwargs={"flat_observation": True}).spaces.kinds
    assert flat.observations == {"observations": ArraySpec((17,), "float32")}


def test_actions_without_bounds_are_taken_as_they_are() -> None:
    environment = make("lqr", "lqr_2_1")
    environment.reset(0)
    environment.step({"agent": np.full((1, 1, 1), 7.5, np.float32)})
    assert physics_of(environment).control().tolist() == [7.5]


def test_model_drawn_at_random_is_that_of_its_own_seed() -> None:
    def stiffness(seed: int, **chosen: Any) -> list[float]:
        settings = Settings(factory="dm_control", domain="lqr", task="lqr_2_1", **chosen)
        return physics_of(build(settings, 1, seed)).model.jnt_stiffness.tolist()

    assert stiffness(1) == stiffness(2)
    assert stiffness(1) != stiffness(1, task_kwargs={"random": 3})


@pytest.mark.parametrize(
    ("chosen", "complaint"),
    [
        ({"domain": "cheeta", "task": "run"}, "environment.domain: there is no 'cheeta'; did you mean 'cheetah'"),
        ({"domain": "cheetah", "task": "walk"}, "environment.task: cheetah has no 'walk'; known are: run"),
        ({"domain": "walker", "task": "wlak"}, "environment.task: walker has no 'wlak'; did you mean 'walk'"),
        ({"domain": "cheetah", "task": "run", "task_kwargs": {"speed": 3}}, "do not fit: .*'speed'"),
        ({"domain": "cheetah", "task": "run", "environment_kwargs": {"fps": 3}}, "do not fit: .*'fps'"),
        (
            {"domain": "cheetah", "task": "run", "environment_kwargs": {"n_sub_steps": 1, "control_timestep": 0.1}},
            "do not fit: Both n_sub_steps and control_timestep",
        ),
    ],
)
def test_task_or_argument_that_there_is_not_is_refused(chosen: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        make(**chosen)


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own: how MuJoCo draws is chosen when the package is imported."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY")}
    command = [sys.executable, "-W", "error", "-c", script]
    return subprocess.run(command, env=inherited | environment, capture_output=True, text=True)


BUILD = (
    "from envs.dm_control import Settings, build; build(Settings(factory='dm_control', domain={!r}, task={!r}), 1, 0)"
)


def test_environment_that_is_not_drawn_looks_for_no_screen_and_leaves_no_trace() -> None:
    script = (
        BUILD.format("cartpole", "balance")
        + "; import os, sys; print('glfw' in sys.modules, 'MUJOCO_GL' in os.environ)"
    )
    done = run(script)
    assert (done.returncode, done.stdout.strip()) == (0, "False False"), done.stderr


def test_task_that_draws_as_it_starts_says_what_it_lacks() -> None:
    done = run(BUILD.format("quadruped", "escape"))
    assert "'quadruped/escape' prepares pictures as it starts" in done.stderr
    assert "MUJOCO_GL=egl" in done.stderr


def test_pictures_without_a_screen_are_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    settings = Settings(factory="dm_control", domain="cheetah", task="run")
    with pytest.raises(UserError, match="--video: dm_control draws on a screen.* MUJOCO_GL=egl"):
        build(settings, 1, 0, render=True)
