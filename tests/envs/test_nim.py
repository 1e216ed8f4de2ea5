from __future__ import annotations

from typing import ClassVar

import numpy as np

from envs.nim import Settings, build
from tests.environment_conformance import EnvironmentConformance


class TestNim(EnvironmentConformance):
    settings: ClassVar = {"factory": "nim", "stones": 7}
    num_environments = 4
    is_random = False
    offers_state = True


class TestNimOfThree(EnvironmentConformance):
    settings: ClassVar = {"factory": "nim", "stones": 5, "most": 2, "players": 3}
    num_environments = 2
    is_random = False
    offers_state = True


def test_who_takes_the_last_stone_wins_and_the_others_share_the_loss() -> None:
    environment = build(Settings(factory="nim", stones=4, most=2, players=3), 1, 0)
    environment.reset(0)
    for mover, chosen in enumerate((0, 1)):
        actions = np.full((1, 3), 1)
        actions[0, mover] = chosen
        now = environment.step({"player": actions}).kinds["player"]
        assert now.waits is not None
        assert (now.rewards == 0).all()
        assert now.valid.tolist() == [[place == mover + 1 for place in range(3)]]
        assert now.waits.tolist() == [[place != mover + 1 for place in range(3)]]
        assert now.first.tolist() == now.valid.tolist()
    assert now.observations["heap"][0, 0].argmax() == 1
    assert now.action_masks is not None
    assert now.action_masks[0, 2].tolist() == [True, False]
    end = environment.step({"player": np.array([[0, 0, 0]])})
    assert end.kinds["player"].rewards.tolist() == [[-0.5, -0.5, 1.0]]
    assert end.kinds["player"].terminated.all()
    assert [episode.steps for episode in end.episodes] == [3]
