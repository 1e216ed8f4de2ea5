from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek import build
from envs.hide_and_seek.layout import ALONG_X, ALONG_Y
from envs.hide_and_seek.observations import others
from envs.hide_and_seek.settings import Settings
from srlhpc.environment import ArraySpec
from tests.envs.hide_and_seek.scene import LOCK, Scene, facing


def test_others_are_seen_in_falling_order_around_the_agents_in_the_game() -> None:
    assert others(1, 2, 1, 2).tolist() == [[2, 1], [0, 2], [1, 0]]
    assert others(2, 2, 2, 2).tolist() == [[3, 2, 1], [0, 3, 2], [1, 0, 3], [2, 1, 0]]


def test_agents_that_are_not_in_the_game_are_left_out_of_the_order() -> None:
    assert others(1, 2, 2, 3).tolist() == [
        [3, 2, -1, -1],
        [-1, -1, -1, -1],
        [0, 3, -1, -1],
        [2, 0, -1, -1],
        [-1, -1, -1, -1],
    ]


def test_shapes_of_random_walls() -> None:
    shapes = {key: spec.shape for key, spec in Settings(factory="hide_and_seek").spaces().kinds[0].observations.items()}
    assert shapes == {
        "observation_self": (10,),
        "agent_qpos_qvel": (5, 10),
        "box_obs": (9, 15),
        "ramp_obs": (2, 15),
        "lidar": (1, 30),
        "mask_aa_obs": (5,),
        "mask_ab_obs": (9,),
        "mask_ar_obs": (2,),
        "mask_aa_obs_spoof": (5,),
        "mask_ab_obs_spoof": (9,),
        "mask_ar_obs_spoof": (2,),
    }


def test_shapes_of_the_quadrant_have_no_sizes_and_no_locks_of_ramps_and_are_not_padded() -> None:
    settings = Settings.model_validate(
        {"factory": "hide_and_seek", "scenario": {"kind": "quadrant"}, "hiders": [2, 2], "seekers": [2, 2]}
    )
    observations = settings.spaces().kinds[0].observations
    assert observations["box_obs"] == ArraySpec((2, 12), "float32")
    assert observations["ramp_obs"] == ArraySpec((1, 9), "float32")
    assert observations["agent_qpos_qvel"] == ArraySpec((3, 10), "float32")
    assert observations["mask_aa_obs"] == ArraySpec((3,), "bool")


@pytest.fixture(scope="module")
def many() -> tuple[Settings, list[dict[str, np.ndarray]], np.ndarray, np.ndarray]:
    """Settings, the observations of every environment after a few random steps, who is alive, and numbers of boxes."""
    settings = Settings(factory="hide_and_seek")
    environment = build(settings, 80, 0)
    environment.reset(3)
    random = np.random.default_rng(0)
    for _ in range(4):
        step = environment.step({"agent": random.integers(0, (11, 11, 11, 2, 2), (80, 6, 5))})
    now = step.kinds["agent"]
    seen = [{key: array[env] for key, array in now.observations.items()} for env in range(80)]
    return settings, seen, now.alive, environment._game.bodies.exists[:, 6:15].sum(axis=1)  # type: ignore[attr-defined]


def test_every_team_size_and_number_of_boxes_comes_up(many: tuple) -> None:
    _, _, alive, boxes = many
    teams = {(hiders, seekers) for hiders, seekers in zip(alive[:, :3].sum(1), alive[:, 3:].sum(1), strict=True)}
    assert len(teams) == 9
    assert set(boxes.tolist()) == set(range(3, 10))


def test_existence_masks_count_others_boxes_and_ramps(many: tuple) -> None:
    _, environments, alive, boxes = many
    for seen, there, number in zip(environments, alive, boxes, strict=True):
        assert (seen["mask_aa_obs_spoof"].sum(axis=1) == there * (there.sum() - 1)).all()
        assert (seen["mask_ab_obs_spoof"].sum(axis=1) == there * number).all()
        assert (seen["mask_ar_obs_spoof"].sum(axis=1) == there * 2).all()


def test_padding_is_zero_and_invisible(many: tuple) -> None:
    _, environments, _, _ = many
    for seen in environments:
        for entity, mask in (("agent_qpos_qvel", "aa"), ("box_obs", "ab"), ("ramp_obs", "ar")):
            absent = ~seen[f"mask_{mask}_obs_spoof"]
            assert not seen[entity][absent].any()
            assert not seen[f"mask_{mask}_obs"][absent].any()


def test_absent_agents_observe_zeros(many: tuple) -> None:
    _, environments, alive, _ = many
    for seen, there in zip(environments, alive, strict=True):
        assert not any(array[~there].any() for array in seen.values())
        assert seen["lidar"][there].all()


def test_invisible_entities_keep_their_true_features(many: tuple) -> None:
    _, environments, alive, _ = many
    for seen, there in zip(environments, alive, strict=True):
        unseen = seen["mask_ab_obs_spoof"] & ~seen["mask_ab_obs"]
        # Lower corner, cosine and sine of every box are the same for all agents that are there.
        boxes = seen["box_obs"][there][..., :9]
        assert (boxes == boxes[:1]).all()
        assert np.allclose(np.square(seen["box_obs"][unseen][:, 3:5]).sum(axis=-1), 1.0)


def test_rows_and_masks_of_others_are_in_the_same_order() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], seekers=[(2.0, 0.0), (0.0, 2.0)])
    scene.put(0, angle=facing((0, 0), (1, 0), off=-0.8))
    corners = scene.seen("agent_qpos_qvel")[:, :, :2] + 0.15
    np.testing.assert_allclose(corners, [[[0, 2], [2, 0]], [[0, 0], [0, 2]], [[2, 0], [0, 0]]], atol=1e-6)
    assert scene.seen("mask_aa_obs")[0].tolist() == [False, True]


def test_own_element_has_the_layout_of_the_others() -> None:
    scene = Scene(hiders=[(1.0, 2.0)], seekers=[(3.0, 4.0)])
    scene.put(0, angle=9.0)
    scene.step((10, 5, 5, 0, 0))
    own, other = scene.seen("observation_self"), scene.seen("agent_qpos_qvel")
    np.testing.assert_array_equal(own[0], other[1, 0])
    np.testing.assert_array_equal(own[1], other[0, 0])
    assert own[:, 8].tolist() == [1, 0]
    assert own[:, 9].tolist() == [1, 1]
    assert own[0, 4] > 0.0


def test_positions_are_lower_corners_and_angles_of_agents_are_not_wrapped() -> None:
    scene = Scene(hiders=[(1.0, 2.0)], boxes=[(4.0, 4.0)], ramps=[(5.0, 5.0)])
    scene.put(0, angle=9.0)
    np.testing.assert_allclose(scene.seen("observation_self")[0, :4], [0.85, 1.85, 0.0, 9.0], rtol=1e-6)
    np.testing.assert_allclose(scene.seen("box_obs")[0, 0, :3], [3.75, 3.75, 0.0], atol=1e-6)
    np.testing.assert_allclose(scene.seen("ramp_obs")[0, 0, :3], [4.75, 4.75, 0.0], atol=1e-6)


def test_a_box_is_position_angle_velocity_size_and_locks_in_this_order() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(9.0, 9.0), (0.3, 0.0)], sizes=[ALONG_X, ALONG_Y])
    scene.put(3, angle=0.5)
    scene.put(0, angle=facing((0, 0), (1, 0)))
    scene.game.worlds[0].velocities[3] = [0.0, 0.0, 0.0, 0.3]
    scene.step(LOCK)
    row = scene.seen("box_obs")[0, 1]
    np.testing.assert_allclose(row[3:5], [np.cos(scene.at(3)[3]), np.sin(scene.at(3)[3])], atol=1e-6)
    np.testing.assert_allclose(row[5:9], scene.game.bodies.velocities[0, 3], atol=1e-6)
    np.testing.assert_allclose(row[9:12], ALONG_Y, rtol=1e-6)
    assert row[12:].tolist() == [1, 1, 1]
    np.testing.assert_allclose(scene.seen("box_obs")[0, 0, 9:12], ALONG_X, rtol=1e-6)


def test_a_ramp_is_padded_where_boxes_have_sizes() -> None:
    scene = Scene(hiders=[(0.0, 0.0)], boxes=[(4.0, 4.0)], ramps=[(0.45, 0.0)])
    scene.put(0, angle=facing((0, 0), (1, 0)))
    scene.step(LOCK)
    row = scene.seen("ramp_obs")[0, 0]
    assert row.shape == (15,)
    assert row[9:].tolist() == [0, 0, 0, 1, 1, 1]
