from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from envs._pettingzoo_names import what_to_do
from envs._returned_values import SimulatorError
from envs.pettingzoo import Settings, build, from_simulators
from srlhpc.doctor.random_play import Seen, keep
from srlhpc.environment import Environment
from srlhpc.errors import UserError
from tests.environment_conformance import ContractConformance, EnvironmentConformance
from tests.scripted import Script, ScriptedParallel

pytest.importorskip("pettingzoo")

AGENTS = ("agent_0", "agent_1", "agent_2")
COMINGS_AND_GOINGS = [
    Script(5, "truncated", {"agent_1": [(0, 2)], "agent_2": [(1, 3), (4, 5)]}),
    Script(1),
    Script(3, "terminated", {"agent_0": [(0, 1)], "agent_1": [(2, 3)]}),
]


class TestSimpleSpread(EnvironmentConformance):
    settings = {"factory": "pettingzoo", "env": "mpe2.simple_spread_v3"}


class TestSimpleTag(EnvironmentConformance):
    settings = {"factory": "pettingzoo", "env": "mpe2.simple_tag_v3", "kwargs": {"continuous_actions": True}}


class TestSpreadWithState(EnvironmentConformance):
    settings = {"factory": "pettingzoo", "env": "mpe2.simple_spread_v3", "state": True}


def test_state_is_the_environments_own_for_every_kind() -> None:
    settings = Settings.model_validate({"factory": "pettingzoo", "env": "mpe2.simple_tag_v3", "state": True})
    environment = build(settings, 2, 0)
    now = keep(environment.reset(3))
    for _ in range(3):
        own = [simulator.simulator.state() for simulator in environment._simulators]  # type: ignore[attr-defined]
        for kind in environment.spaces.kinds:
            state = now.kinds[kind.name].state
            assert state is not None
            np.testing.assert_array_equal(state, np.stack(own))
        actions = {k.name: np.ones((2, len(k.agents)), np.int64) for k in environment.spaces.kinds}
        now = keep(environment.step(actions))


def test_environment_without_a_state_says_what_to_do() -> None:
    simulator = ScriptedParallel([Script(1)], AGENTS)
    with pytest.raises(UserError, match=r"^scripted, reset: it has no state\(\); leave environment\.state out$"):
        from_simulators([simulator], 0, "scripted", gives_state=True)


class TestComingsAndGoings(ContractConformance):
    is_random = False
    quirks: Sequence[str] = ()

    @classmethod
    def build(cls, seed: int = 1) -> Environment:
        simulators = [
            ScriptedParallel(COMINGS_AND_GOINGS[env:], AGENTS, cls.quirks) for env in range(cls.num_environments)
        ]
        return from_simulators(simulators, seed, "scripted")


class TestSilentExits(TestComingsAndGoings):
    quirks = ("silent_exit",)


class TestEndedAgentsThatStayListed(TestComingsAndGoings):
    quirks = ("keeps_ended",)


class TestCutsOfOneAgent(TestComingsAndGoings):
    @classmethod
    def build(cls, seed: int = 1) -> Environment:
        scripts = [replace(script, cut=AGENTS[1:]) for script in COMINGS_AND_GOINGS]
        simulators = [ScriptedParallel(scripts[env:], AGENTS, cls.quirks) for env in range(cls.num_environments)]
        return from_simulators(simulators, seed, "scripted")


class TestCutAgentsThatStayListed(TestCutsOfOneAgent):
    quirks = ("keeps_ended",)


class TestMissingObservations(TestComingsAndGoings):
    quirks = ("no_observation",)


def play(script: Script, steps: int, *quirks: str, action: int = 0) -> tuple[list[Seen], ScriptedParallel]:
    simulator = ScriptedParallel([script], AGENTS, quirks)
    environment = from_simulators([simulator], 0, "scripted")
    seen = [keep(environment.reset(0))]
    seen += [keep(environment.step({"agent": np.full((1, 3), action)})) for _ in range(steps)]
    return seen, simulator


def table(seen: Sequence[Seen], flag: str) -> list[str]:
    """One string an agent, one character a record."""
    rows = np.array([getattr(step.kinds["agent"], flag)[0] for step in seen], int)
    return ["".join(str(value) for value in column) for column in rows.T]


def test_agent_that_leaves_is_terminated_then_neither_alive_nor_valid() -> None:
    seen, _ = play(Script(4, "truncated", {"agent_1": [(0, 2)]}), 5)
    assert table(seen, "valid") == ["111101", "110001", "111101"]
    assert table(seen, "alive") == ["111111", "110001", "111111"]
    assert table(seen, "terminated") == ["000000", "001000", "000000"]
    assert table(seen, "truncated") == ["000010", "000000", "000010"]
    assert table(seen, "first") == ["100001", "100001", "100001"]


def test_agent_that_is_cut_alone_is_there_for_one_more_record_with_its_last_observation() -> None:
    seen, _ = play(Script(4, "terminated", {"agent_1": [(0, 2)]}, cut=["agent_1"]), 5)
    assert table(seen, "valid") == ["111101", "110001", "111101"]
    assert table(seen, "alive") == ["111111", "111001", "111111"]
    assert table(seen, "truncated") == ["000000", "001000", "000000"]
    assert table(seen, "terminated") == ["000010", "000000", "000010"]
    observations = [step.kinds["agent"].observations["obs"][0, 1].tolist() for step in seen]
    assert observations == [[1, 1, 2], [1, 2, 2], [1, 3, 2], [0, 0, 0], [0, 0, 0], [2, 1, 2]]


def test_agent_that_comes_back_right_after_its_cut_has_a_first_record() -> None:
    seen, _ = play(Script(5, "terminated", {"agent_1": [(0, 2), (3, 5)]}, cut=["agent_1"]), 5)
    assert table(seen, "valid")[1] == "110110"
    assert table(seen, "alive")[1] == "111111"
    assert table(seen, "first")[1] == "100100"
    assert table(seen, "truncated")[1] == "001000"


def test_cut_agent_without_a_last_observation_keeps_the_one_before(caplog: pytest.LogCaptureFixture) -> None:
    class Forgetful(ScriptedParallel):
        def step(self, actions: Any) -> Any:
            observations, *rest = super().step(actions)
            return {agent: seen for agent, seen in observations.items() if agent in self.agents}, *rest

    script = Script(4, "terminated", {"agent_1": [(0, 2)]}, cut=["agent_1"])
    environment = from_simulators([Forgetful([script], AGENTS)], 0, "scripted")
    seen = [keep(environment.reset(0)), *(keep(environment.step({"agent": np.zeros((1, 3), int)})) for _ in range(3))]
    assert [step.kinds["agent"].observations["obs"][0, 1].tolist() for step in seen[1:]] == [[1, 2, 2]] * 2 + [[0] * 3]
    assert "agent 'agent_1' was truncated without a last observation" in caplog.text


def test_agent_that_appears_again_has_a_first_record() -> None:
    seen, _ = play(Script(6, "terminated", {"agent_2": [(1, 2), (4, 6)]}), 7)
    assert table(seen, "first") == ["10000001", "10000001", "01001000"]
    assert table(seen, "valid") == ["11111101", "11111101", "01001100"]
    assert table(seen, "terminated") == ["00000010", "00000010", "00100010"]


def test_episode_of_one_record_ends_at_its_first() -> None:
    seen, _ = play(Script(1), 4)
    assert table(seen, "valid")[0] == "10101"
    assert table(seen, "first")[0] == "10101"
    assert table(seen, "terminated")[0] == "01010"
    assert [len(step.episodes) for step in seen] == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("quirk", ["silent_exit", "keeps_ended"])
def test_exits_are_seen_however_the_simulator_tells_them(quirk: str) -> None:
    script = Script(4, "terminated", {"agent_1": [(0, 2)]})
    plain, quirky = play(script, 10)[0], play(script, 10, quirk)[0]
    for flag in ("first", "valid", "alive", "terminated", "truncated"):
        assert table(plain, flag) == table(quirky, flag)


def test_observations_are_the_last_ones_after_an_end_and_zero_for_absent_agents() -> None:
    seen, _ = play(Script(3, "truncated", {"agent_1": [(0, 1)]}), 4)
    observations = [step.kinds["agent"].observations["obs"][0].tolist() for step in seen]
    assert [rows[0] for rows in observations] == [[1, 1, 1], [1, 2, 1], [1, 3, 1], [1, 4, 1], [2, 1, 1]]
    assert [rows[1] for rows in observations] == [[1, 1, 2], [1, 2, 2], [0, 0, 0], [0, 0, 0], [2, 1, 2]]


def test_missing_observation_of_a_living_agent_is_zero() -> None:
    seen, _ = play(Script(3), 2, "no_observation")
    assert table(seen, "valid")[0] == "111"
    assert not any(step.kinds["agent"].observations["obs"][0, 0].any() for step in seen)


def test_simulator_gets_the_actions_of_its_living_agents_only() -> None:
    _, simulator = play(Script(3, "terminated", {"agent_1": [(0, 1)], "agent_2": [(1, 3)]}), 3, action=3)
    assert simulator.received == [
        (0, 0, "agent_0", 3),
        (0, 0, "agent_1", 3),
        (0, 1, "agent_0", 3),
        (0, 1, "agent_2", 3),
        (0, 2, "agent_0", 3),
        (0, 2, "agent_2", 3),
    ]


def test_returns_are_per_agent() -> None:
    seen, _ = play(Script(3, "terminated", {"agent_1": [(0, 1)]}), 3)
    (episode,) = seen[-1].episodes
    assert dict(episode.returns) == {"agent_0": 6.0, "agent_1": 1.0, "agent_2": 6.0}
    assert episode.steps == 3


def test_agents_of_equal_spaces_form_a_kind_with_their_common_name() -> None:
    environment = build(Settings(factory="pettingzoo", env="mpe2.simple_tag_v3"), 1, 0)
    assert [(kind.name, kind.agents) for kind in environment.spaces.kinds] == [
        ("adversary", ("adversary_0", "adversary_1", "adversary_2")),
        ("agent", ("agent_0",)),
    ]


def test_kind_of_differently_named_agents_is_called_agents() -> None:
    environment = from_simulators([ScriptedParallel([Script(1)], ("red_0", "blue_0"))], 0, "scripted")
    assert [kind.name for kind in environment.spaces.kinds] == ["agents"]


def test_mask_within_the_observation_is_taken_out_of_it() -> None:
    environment = from_simulators([MaskedParallel()], 0, "masked")
    (kind,) = environment.spaces.kinds
    assert (list(kind.observations), kind.has_action_masks) == (["observation"], True)
    assert environment.reset(0).kinds["player"].action_masks.tolist() == [[[True, False, True]]]  # type: ignore[union-attr]


def test_render_gives_a_picture_only_when_asked() -> None:
    settings = Settings(factory="pettingzoo", env="mpe2.simple_spread_v3")
    quiet, drawing = build(settings, 1, 0), build(settings, 1, 0, render=True)
    quiet.reset(0)
    drawing.reset(0)
    picture = drawing.render()
    assert quiet.render() is None
    assert picture is not None
    assert (picture.ndim, picture.shape[2], picture.dtype) == (3, 3, np.uint8)
    drawing.close()


def parallel_without_render_mode() -> ScriptedParallel:
    return ScriptedParallel([Script(1)], ("agent_0",))


def test_environment_without_a_render_mode_is_refused_where_pictures_are_wanted() -> None:
    settings = Settings(factory="pettingzoo", env=f"{__name__}:parallel_without_render_mode")
    build(settings, 1, 0).close()
    with pytest.raises(UserError, match="--video: .* takes no render_mode, so it draws no pictures; let it take one"):
        build(settings, 1, 0, render=True)


class MaskedParallel(ScriptedParallel):
    def __init__(self) -> None:
        super().__init__([Script(2)], ("player_0",))

    def observation_space(self, agent: str) -> Any:
        from gymnasium.spaces import Box, Dict

        return Dict({"observation": super().observation_space(agent), "action_mask": Box(0, 1, (3,), np.int8)})

    def action_space(self, agent: str) -> Any:  # noqa: ARG002
        from gymnasium.spaces import Discrete

        return Discrete(3)

    def _seen_by(self, agents: Sequence[str]) -> dict[str, Any]:
        mask = np.array([1, 0, 1], np.int8)
        return {agent: {"observation": raw, "action_mask": mask} for agent, raw in super()._seen_by(agents).items()}


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        ("mpe2.simple_spred_v3", r"cannot import 'mpe2.simple_spred_v3'.*; did you mean 'mpe2.simple_spread_v3'"),
        ("mpe2.simple_spread_v1", r"; did you mean 'mpe2.simple_spread_v3'"),
        ("pettingzoo.mpe.simple_spread_v3", r"; write it as mpe2.simple_spread_v3$"),
        ("no_such_package.arena", "cannot import 'no_such_package.arena'"),
        ("mpe2.simple_spread_v3:make", "'mpe2.simple_spread_v3' has no 'make'"),
    ],
)
def test_environment_that_is_not_there_is_refused(env: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        build(Settings(factory="pettingzoo", env=env), 1, 0)


def test_unknown_argument_is_named() -> None:
    with pytest.raises(UserError, match="environment.kwargs of 'mpe2.simple_spread_v3'.*'M'"):
        build(Settings(factory="pettingzoo", env="mpe2.simple_spread_v3", kwargs={"M": 3}), 1, 0)


class Numbered(ScriptedParallel):
    """Calls its agents by numbers."""

    def __init__(self, names: Sequence[Any] = (0, 1, 10)) -> None:
        super().__init__([Script(3, "terminated", {"1": [(0, 2)]})], [str(name) for name in names])
        self._numbers = dict(zip(self.possible_agents, names, strict=True))
        self.possible_agents = list(names)
        self.called: list[Any] = []
        """Names under which the last step's actions came."""

    def _renamed(self, played: Any) -> Any:
        self.possible_agents = list(self._numbers.values())
        self.agents = [self._numbers[agent] for agent in self.agents]
        return tuple({self._numbers[agent]: value for agent, value in part.items()} for part in played)

    def reset(self, seed: int | None = None) -> Any:
        self.possible_agents = list(self._numbers)
        return self._renamed(super().reset(seed))

    def step(self, actions: Any) -> Any:
        self.called = list(actions)
        self.possible_agents, self.agents = list(self._numbers), [str(agent) for agent in self.agents]
        return self._renamed(super().step({str(agent): action for agent, action in actions.items()}))


NAMES = pytest.mark.parametrize("names", [(0, 1, 10), (("a", 0), ("a", 1), ("b", 0))])


@NAMES
def test_simulator_gets_actions_under_its_own_names_of_agents(names: Sequence[Any]) -> None:
    simulator = Numbered(names)
    environment = from_simulators([simulator], 0, "numbered")
    environment.reset(0)
    environment.step({environment.spaces.kinds[0].name: np.zeros((1, 3), int)})
    assert simulator.called == list(names)


@NAMES
def test_agents_that_are_not_called_by_text_play_under_their_text(names: Sequence[Any]) -> None:
    environment = from_simulators([Numbered(names)], 0, "numbered")
    (kind,) = environment.spaces.kinds
    assert kind.agents == tuple(str(name) for name in names)
    environment.reset(0)
    for _ in range(3):
        step = environment.step({kind.name: np.zeros((1, 3), int)})
    assert list(step.episodes[0].returns) == list(kind.agents)


def test_agents_whose_names_are_equal_as_text_are_refused() -> None:
    simulator = Numbered()
    simulator.possible_agents = [0, "0"]
    with pytest.raises(UserError, match="two of its possible_agents are called '0'"):
        from_simulators([simulator], 0, "numbered")


def test_agent_by_agent_environment_is_converted_where_it_says_so() -> None:
    aec = from_simulators([mpe_aec()], 0, "environment 'x'")
    parallel = build(Settings(factory="pettingzoo", env="mpe2.simple_spread_v3"), 1, 0)
    ours, theirs = keep(aec.reset(3)), keep(parallel.reset(3))
    for _ in range(30):
        for key, array in ours.kinds["agent"].observations.items():
            np.testing.assert_allclose(array, theirs.kinds["agent"].observations[key], atol=1e-6)
        action = {"agent": np.full((1, 3), 2)}
        ours, theirs = keep(aec.step(action)), keep(parallel.step(action))


def mpe_aec() -> Any:
    from mpe2 import simple_spread_v3

    return simple_spread_v3.env()


class Wrong(ScriptedParallel):
    """Changes what `method` returns."""

    def __init__(self, method: str, change: Any) -> None:
        super().__init__([Script(3)], ("a_0", "a_1"))
        self._method, self._change = method, change

    def reset(self, seed: int | None = None) -> Any:
        returned = super().reset(seed)
        return self._change(self, returned) if self._method == "reset" else returned

    def step(self, actions: Any) -> Any:
        returned = super().step(actions)
        return self._change(self, returned) if self._method == "step" else returned


def instead(place: int, value: Any) -> Any:
    return lambda _, returned: tuple(value if i == place else part for i, part in enumerate(returned))


def names_a_stranger(simulator: Wrong, returned: Any) -> Any:
    simulator.agents = [*simulator.agents, "b_7"]
    return returned


def empties(simulator: Wrong, returned: Any) -> Any:
    simulator.agents = []
    return returned


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda _, returned: returned[0], r"reset\(\) returned dict, expected 2: observations, infos"),
        (lambda *_: None, r"reset\(\) returned NoneType, expected 2"),
        (lambda _, returned: (*returned, {}), r"reset\(\) returned 3 values, expected 2"),
        (instead(0, [np.zeros(3)] * 2), r"reset\(\)'s observations are no dict by agent but list"),
        (
            instead(0, {"b_7": np.zeros(3)}),
            "observations has agent 'b_7', which is not in possible_agents: 'a_0', 'a_1'",
        ),
        (
            instead(0, {"a_0": np.zeros(2), "a_1": np.zeros(3)}),
            "agent 'a_0', reset: the observation is of another shape",
        ),
        (names_a_stranger, "agents has agent 'b_7', which is not in possible_agents"),
        (empties, r"reset\(\) has left no agent in the game"),
    ],
)
def test_wrong_return_of_reset_is_refused_before_the_start(change: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=f"environment 'x'.*{complaint}"):
        from_simulators([Wrong("reset", change)], 0, "environment 'x'")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            lambda _, returned: returned[:4],
            r"step\(\) returned 4 values, expected 5: observations, rewards, terminations",
        ),
        (instead(1, 1.0), r"step\(\)'s rewards are no dict by agent but float"),
        (instead(2, False), r"step\(\)'s terminations are no dict by agent but bool"),
        (instead(1, {"b_7": 1.0}), "rewards has agent 'b_7'"),
        (instead(1, {"a_0": None}), "the reward of 'a_0' is None"),
        (instead(1, {"a_0": np.zeros(2)}), r"the reward of 'a_0' is of shape \(2,\) float64"),
        (instead(3, {"a_1": "no"}), "truncation of 'a_1' is 'no'"),
        (instead(0, {"a_1": np.zeros((1, 3))}), r"agent 'a_1': the observation is of another shape: \(1, 3\)"),
        (instead(1, {"a_0": 10**400}), "the reward of 'a_0' is a whole number, too large for float32"),
        (instead(4, {"a_1": ["text"]}), r"agent 'a_1': its info is \['text'\] \(list\), expected a mapping"),
        (names_a_stranger, "agents has agent 'b_7'"),
    ],
)
def test_wrong_return_of_step_names_the_environment(change: Any, complaint: str) -> None:
    right = ScriptedParallel([Script(3)], ("a_0", "a_1"))
    environment = from_simulators([right, Wrong("step", change)], 0, "environment 'x'")
    environment.reset(0)
    with pytest.raises(SimulatorError, match=f"environment 1: .*{complaint}"):
        environment.step({"a": np.zeros((2, 2), int)})


@pytest.mark.filterwarnings("ignore:Your environment should override")
def test_missing_space_is_told_with_the_class_of_the_user() -> None:
    from pettingzoo import ParallelEnv

    class Spaceless(ParallelEnv[str, Any, Any]):
        agents = possible_agents = ["a_0"]  # noqa: RUF012

        def reset(self, seed: int | None = None, options: Any = None) -> Any:  # noqa: ARG002
            return {"a_0": np.zeros(3)}, {"a_0": {}}

    with pytest.raises(
        UserError, match=r"'x': .*Spaceless \(.*test_pettingzoo.py:\d+\) has no observation_spaces; give"
    ):
        from_simulators([Spaceless()], 0, "environment 'x'")


def test_reward_of_one_number_is_taken_whatever_its_shape() -> None:
    change = instead(1, {"a_0": np.array([2.0]), "a_1": np.array([[3]])})
    environment = from_simulators([Wrong("step", change)], 0, "environment 'x'")
    environment.reset(0)
    assert environment.step({"a": np.zeros((1, 2), int)}).kinds["a"].rewards.tolist() == [[2.0, 3.0]]


def test_package_that_an_installed_family_lacks_is_answered_by_the_extra_of_pettingzoo() -> None:
    lacking = ModuleNotFoundError("No module named 'no_such_chess'", name="no_such_chess")
    assert what_to_do("pettingzoo.classic.chess_v6", lacking) == "; pip install 'pettingzoo[classic]'"
    assert what_to_do("mpe2.simple_spread_v3", lacking) == ""
    assert what_to_do("no_such_package.arena", lacking) == ""


def test_extra_is_advised_only_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = ModuleNotFoundError("No module named 'mpe2'", name="mpe2")
    monkeypatch.setattr("envs._pettingzoo_names._is_installed", lambda package: package != "mpe2")
    assert what_to_do("mpe2.simple_spread_v3", lacking) == "; pip install 'srlhpc[pettingzoo]'"
    assert what_to_do("pettingzoo.mpe.simple_v3", lacking).endswith("mpe2.simple_v3 (pip install 'srlhpc[pettingzoo]')")
