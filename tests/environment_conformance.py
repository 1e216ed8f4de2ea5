"""What every environment must do, whatever it is about: subclass `EnvironmentConformance` in a test file.

class TestCatch(EnvironmentConformance):
    settings = {"factory": "catch"}
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from srlhpc.doctor.random_play import FLAGS, Seen, assert_same, differ, keep, random_actions, spoil_invalid
from srlhpc.environment import Environment, MultiDiscrete, Spaces, Step
from srlhpc.import_path import load_module, missing_packages
from srlhpc.roles.acting.stack_check import StackCheck

SIMULATORS = [
    "gymnasium",
    "gymnasium_robotics",
    "ale_py",
    "mujoco",
    "dm_env",
    "dm_control",
    "envpool",
    "pettingzoo",
    "mpe2",
    "overcooked",
    "pygame",
    "pyspiel",
    "vizdoom",
    "minigrid",
    "crafter",
    "jax",
    "jaxmarl",
]
"""Packages that are loaded where an environment is built, and nowhere else."""


class ContractConformance:
    """The contract for any environment; subclasses say in `build` how to make it."""

    num_environments: ClassVar[int] = 3
    steps: ClassVar[int] = 100
    """Enough for some episodes of random play to end."""
    is_random: ClassVar[bool] = True
    """Whether seeds make a difference."""
    offers_state: ClassVar[bool] = False
    """Whether `save_state` is offered."""
    returns_are_rewards: ClassVar[bool] = True
    """Whether the reported returns are the sums of the rewards that the learner sees."""

    @classmethod
    def build(cls, seed: int = 1) -> Environment:
        raise NotImplementedError

    @classmethod
    def play(cls, environment: Environment, seed: int = 7, steps: int | None = None) -> list[Seen]:
        """The step after the reset and those after `steps` random actions."""
        return list(cls._play(environment, keep(environment.reset(seed)), steps or cls.steps))

    @classmethod
    def _play(cls, environment: Environment, now: Seen, steps: int, *, spoilt: bool = False) -> Iterator[Seen]:
        random = np.random.default_rng(0)
        yield now
        for _ in range(steps):
            actions = random_actions(environment.spaces, now, random)
            now = keep(environment.step(spoil_invalid(environment.spaces, now, actions) if spoilt else actions))
            yield now

    @pytest.fixture(scope="class")
    @classmethod
    def environment(cls) -> Iterator[Environment]:
        environment = cls.build()
        yield environment
        environment.close()

    @pytest.fixture(scope="class")
    @classmethod
    def played(cls, environment: Environment) -> list[Seen]:
        return cls.play(environment)

    def test_spaces_survive_json(self, environment: Environment) -> None:
        assert Spaces.from_json(environment.spaces.to_json()) == environment.spaces

    def test_arrays_have_the_shapes_and_dtypes_of_the_spaces(
        self, environment: Environment, played: list[Seen]
    ) -> None:
        for kind in environment.spaces.kinds:
            rows = (environment.num_environments, len(kind.agents))
            for step in played:
                now = step.kinds[kind.name]
                assert set(now.observations) == set(kind.observations)
                for key, spec in kind.observations.items():
                    assert (now.observations[key].shape, now.observations[key].dtype) == (
                        (*rows, *spec.shape),
                        spec.dtype,
                    )
                assert (now.rewards.shape, now.rewards.dtype) == (rows, np.float32)
                for flag in FLAGS:
                    assert (getattr(now, flag).shape, getattr(now, flag).dtype) == (rows, np.bool_)
                state = None if now.state is None else (now.state.shape[1:], now.state.dtype)
                assert state == (None if kind.state is None else (kind.state.shape, np.dtype(kind.state.dtype)))

    def test_masks_come_with_the_kinds_that_have_them_and_allow_something(
        self, environment: Environment, played: list[Seen]
    ) -> None:
        for kind in environment.spaces.kinds:
            for step in played:
                masks = step.kinds[kind.name].action_masks
                assert (masks is not None) == kind.has_action_masks
                if masks is not None:
                    parts = (
                        kind.actions.choices if isinstance(kind.actions, MultiDiscrete) else (kind.actions.mask_size,)
                    )
                    assert masks.shape == (environment.num_environments, len(kind.agents), kind.actions.mask_size)
                    assert all(part.any(axis=-1).all() for part in np.split(masks, np.cumsum(parts)[:-1], axis=-1))

    def test_reset_begins_an_episode_of_every_agent_in_the_game(self, played: list[Seen]) -> None:
        start = played[0]
        np.testing.assert_array_equal(start.column("first"), start.column("valid"))
        np.testing.assert_array_equal(start.playing, start.column("alive"))
        assert start.column("alive").any(axis=1).all()
        assert not start.column("rewards").any()
        assert not (start.column("terminated") | start.column("truncated")).any()
        assert start.episodes == ()

    def test_flags_of_a_record_agree_with_each_other(self, played: list[Seen]) -> None:
        for step in played:
            assert not (step.column("first") & ~step.column("valid")).any()
            assert not (step.playing & ~step.column("alive")).any()
            for kind in step.kinds.values():
                assert kind.waits is None or not (kind.valid & kind.waits).any()
            assert not (step.column("terminated") & step.column("truncated")).any()
            assert not (step.column("truncated") & ~step.column("alive")).any()

    def test_somebody_acts_while_others_wait(self, played: list[Seen]) -> None:
        for step in played:
            assert (step.column("valid").any(axis=1) | ~step.playing.any(axis=1)).all()

    def test_invalid_records_bring_no_reward_and_no_end(self, played: list[Seen]) -> None:
        for now, after in zip(played, played[1:], strict=False):
            invalid = ~now.playing
            assert not after.column("rewards")[invalid].any()
            assert not (after.column("terminated") | after.column("truncated"))[invalid].any()

    def test_an_agents_record_ends_it_or_is_followed_by_another(self, played: list[Seen]) -> None:
        acted = np.zeros_like(played[0].playing)
        for now, after in zip(played, played[1:], strict=False):
            ended = after.column("terminated") | after.column("truncated")
            goes_on = now.playing & ~ended
            assert not (ended & after.playing).any()
            assert after.playing[goes_on].all()
            # In this episode.
            acted = (acted | now.column("valid")) & goes_on
            np.testing.assert_array_equal(after.column("first"), after.column("valid") & ~acted)

    def test_an_environment_waits_one_record_after_its_end_then_begins_anew(self, played: list[Seen]) -> None:
        waits = 0
        for now, after in zip(played, played[1:], strict=False):
            waiting = ~now.playing.any(axis=1)
            waits += int(waiting.sum())
            assert now.column("alive")[waiting].any(axis=1).all()
            assert after.column("valid")[waiting].any(axis=1).all()
            np.testing.assert_array_equal(after.column("first")[waiting], after.column("valid")[waiting])
            np.testing.assert_array_equal(after.playing[waiting], after.column("alive")[waiting])
        assert waits, "no episode ended: give the test more steps"

    def test_observations_are_the_stacks_that_the_spaces_declare(
        self, environment: Environment, played: list[Seen]
    ) -> None:
        for check in (StackCheck(kind) for kind in environment.spaces.kinds if kind.stacks):
            check.begin(Step(played[0].kinds))
            for step in played[1:]:
                check(Step(step.kinds))

    def test_episodes_are_reported_once_with_their_steps_and_returns(
        self, environment: Environment, played: list[Seen]
    ) -> None:
        agents = [agent for kind in environment.spaces.kinds for agent in kind.agents]
        steps, returns = np.zeros(self.num_environments, int), np.zeros((self.num_environments, len(agents)))
        was_there = np.zeros(returns.shape, bool)
        expected, reported = [], []
        for now, after in zip(played, played[1:], strict=False):
            was_valid = now.playing.any(axis=1)
            was_there |= now.playing
            steps += was_valid
            returns += after.column("rewards")
            for env in np.flatnonzero(was_valid & ~after.playing.any(axis=1)).tolist():
                names = [agent for agent, there in zip(agents, was_there[env], strict=True) if there]
                expected.append((env, int(steps[env]), names, returns[env, was_there[env]].tolist()))
                steps[env], returns[env], was_there[env] = 0, 0.0, False
            for episode in after.episodes:
                reported.append(
                    (episode.environment, episode.steps, list(episode.returns), list(episode.returns.values()))
                )
        assert [entry[:3] for entry in reported] == [entry[:3] for entry in expected]
        if not self.returns_are_rewards:
            return
        for mine, theirs in zip(reported, expected, strict=True):
            np.testing.assert_allclose(mine[3], theirs[3], rtol=1e-5, atol=1e-5)

    def test_actions_of_invalid_records_change_nothing(self, environment: Environment, played: list[Seen]) -> None:
        start = keep(environment.reset(7))
        for step, other in zip(played, self._play(environment, start, self.steps, spoilt=True), strict=True):
            assert_same(step, other)

    def test_equal_seeds_repeat_exactly(self, played: list[Seen]) -> None:
        other = self.build(seed=2)
        for step, again in zip(played, self.play(other), strict=True):
            assert_same(step, again)
        other.close()

    def test_reset_midway_repeats_exactly_and_drops_the_episodes_under_way(
        self, environment: Environment, played: list[Seen]
    ) -> None:
        for step, again in zip(played, self.play(environment), strict=True):
            assert_same(step, again)

    def test_other_seeds_differ(self, environment: Environment, played: list[Seen]) -> None:
        assert differ(played, self.play(environment, seed=8)) == self.is_random

    def test_environments_differ(self, played: list[Seen]) -> None:
        assert any(
            (array != array[:1]).any()
            for step in played
            for kind in step.kinds.values()
            for array in kind.observations.values()
        )

    def test_a_saved_state_goes_on_exactly_if_offered(self, environment: Environment) -> None:
        now = keep(environment.reset(7))
        assert (environment.save_state() is not None) == self.offers_state
        for _ in range(6 if self.offers_state else 0):
            other = self.build(seed=99)
            other.reset(99)
            state = {name: array.copy() for name, array in (environment.save_state() or {}).items()}
            loaded = keep(other.load_state(state))
            assert_same(Seen(now.kinds, ()), loaded)
            saved = Seen(now.kinds, ())
            for step, again in zip(
                self._play(environment, saved, self.steps // 4), self._play(other, loaded, self.steps // 4), strict=True
            ):
                assert_same(step, again)
                now = step
            other.close()

    def test_close_may_be_called_twice(self) -> None:
        environment = self.build()
        environment.close()
        environment.close()


class EnvironmentConformance(ContractConformance):
    """The contract for an environment that specs can name."""

    settings: ClassVar[Mapping[str, Any]] = {}
    """As a spec gives them."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _needs_packages(cls) -> None:
        missing = missing_packages(load_module(cls.settings["factory"], "envs").Settings.requires)
        if missing:
            pytest.skip(f"needs {', '.join(package for package, _ in missing)}")

    @classmethod
    def build(cls, seed: int = 1) -> Environment:
        module = load_module(cls.settings["factory"], "envs")
        environment: Environment = module.build(
            module.Settings.model_validate(cls.settings), cls.num_environments, seed
        )
        return environment

    def test_static_spaces_are_those_of_the_built_environment(self, environment: Environment) -> None:
        static = load_module(self.settings["factory"], "envs").Settings.model_validate(self.settings).spaces()
        assert static is None or static == environment.spaces

    def test_settings_load_neither_torch_nor_a_simulator(self) -> None:
        script = (
            "import sys; from srlhpc.import_path import load_module; "
            f"settings = load_module({self.settings['factory']!r}, 'envs').Settings.model_validate({self.settings!r}); "
            f"settings.spaces(); print([name for name in {['torch', *SIMULATORS]} if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"
