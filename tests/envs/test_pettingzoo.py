from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from envs.pettingzoo import Settings, build, from_simulators
from srlhpc.environment import Environment
from srlhpc.objects import UserError
from tests.environment_conformance import ContractConformance, EnvironmentConformance
from tests.environment_play import Seen, keep
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


class TestComingsAndGoings(ContractConformance):
    is_random = False
    quirks: Sequence[str] = ()

    @classmethod
    def build(cls, seed: int = 1) -> Environment:
        simulators = [ScriptedParallel(COMINGS_AND_GOINGS[copy:], AGENTS, cls.quirks) for copy in range(cls.copies)]
        return from_simulators(simulators, seed, "scripted")


class TestSilentExits(TestComingsAndGoings):
    quirks = ("silent_exit",)


class TestEndedAgentsThatStayListed(TestComingsAndGoings):
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
        ("mpe2.simple_spred_v3", r"cannot import 'mpe2.simple_spred_v3'.*srlhpc\[pettingzoo\]"),
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
