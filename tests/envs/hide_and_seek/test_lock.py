from __future__ import annotations

import numpy as np
import pytest

from envs.hide_and_seek.lock import decide
from tests.envs.hide_and_seek.scene import FORWARD_X, IDLE, LOCK, Scene, facing

AHEAD = facing((0, 0), (1, 0))
BACK = facing((0, 0), (-1, 0))
HIDER, SEEKER = 0, 1


def around_a_cube(**more: object) -> Scene:
    """A hider on the left of a cube and a seeker on its right, both facing it, within reach."""
    scene = Scene(hiders=[(0.0, 0.0)], seekers=[(0.9, 0.0)], boxes=[(0.45, 0.0)], **more)  # type: ignore[arg-type]
    scene.put(HIDER, angle=AHEAD)
    scene.put(SEEKER, angle=BACK)
    return scene


def outcome(near: list[int], presses: list[int], locked: int, owners_team: list[int]) -> bool:
    """One object and so many agents."""
    made = decide(
        np.array(near, bool)[None, :, None],
        np.array(presses, bool)[None],
        np.array([[locked]], bool),
        np.array(owners_team, bool)[None, :, None],
    )
    assert (made.fresh & made.freed).sum() == 0
    return bool(made.locked[0, 0])


@pytest.mark.parametrize(
    ("near", "presses", "locked", "after"),
    [
        # The first two agents are of the owner's team, the last two are not.
        ([1, 1, 1, 1], [1, 1, 1, 0], 1, True),
        ([1, 1, 1, 1], [1, 1, 0, 0], 0, True),
        ([1, 0, 0, 0], [1, 0, 0, 0], 0, True),
        ([1, 1, 1, 1], [1, 0, 1, 1], 1, False),
        ([1, 1, 0, 0], [0, 0, 0, 0], 1, False),
        ([1, 0, 1, 0], [0, 0, 1, 0], 0, False),
        ([0, 0, 1, 1], [1, 1, 1, 0], 0, True),
        ([0, 0, 1, 1], [0, 0, 1, 0], 1, True),
        ([0, 0, 1, 1], [1, 1, 0, 0], 1, True),
        ([0, 0, 1, 1], [1, 1, 0, 0], 0, False),
        ([0, 0, 0, 0], [1, 1, 1, 1], 1, True),
        ([0, 0, 0, 0], [1, 1, 1, 1], 0, False),
    ],
)
def test_team_specific_locking_by_its_table(near: list[int], presses: list[int], locked: int, after: bool) -> None:
    assert outcome(near, presses, locked, [1, 1, 0, 0]) == after


def test_pressing_locks_and_standing_by_unlocks() -> None:
    scene = Scene(hiders=[(0.0, 0.0), (0.0, 3.0)], seekers=[(5.0, 5.0)], boxes=[(0.45, 0.0)])
    scene.put(0, angle=AHEAD)
    scene.step(LOCK)
    flags = scene.seen("box_obs")[:, 0, -3:]
    assert flags.tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    scene.step(IDLE)
    assert not scene.seen("box_obs")[:, 0, -3:].any()


def test_a_locked_box_withstands_full_force() -> None:
    locked, free = around_a_cube(), around_a_cube()
    locked.step(LOCK)
    locked.put(HIDER, y=-100.0)
    free.put(HIDER, y=-100.0)
    for scene in (locked, free):
        scene.put(SEEKER, x=0.05)
        scene.step(IDLE, FORWARD_X, times=20)
    assert abs(locked.at(2)[0] - 0.45) < 0.01
    assert free.at(2)[0] - 0.45 > 1.0


def test_an_object_locked_in_mid_air_stays_there() -> None:
    scene = around_a_cube()
    scene.put(2, z=1.25)
    scene.put(HIDER, z=1.15)
    scene.step(LOCK)
    scene.put(HIDER, y=-100.0, z=0.15)
    scene.step(times=40)
    assert abs(scene.at(2)[2] - 1.25) < 0.01


@pytest.mark.parametrize("seekers_action", [IDLE, LOCK])
def test_opponents_never_unlock(seekers_action: tuple[int, ...]) -> None:
    scene = around_a_cube()
    scene.put(SEEKER, x=100.0)
    scene.step(LOCK)
    scene.put(HIDER, x=-100.0)
    scene.put(SEEKER, x=0.9)
    scene.step(IDLE, seekers_action)
    assert scene.game.locks.locked[0, 0]
    assert scene.game.locks.owners[0, 0] == HIDER


def test_an_idle_hider_keeps_seekers_from_locking_a_fresh_box() -> None:
    scene = around_a_cube()
    scene.step(IDLE, LOCK)
    assert not scene.game.locks.locked.any()


def test_an_idle_hider_that_looks_away_keeps_nobody_from_locking() -> None:
    scene = around_a_cube()
    scene.put(HIDER, angle=BACK)
    scene.step(IDLE, LOCK)
    assert scene.game.locks.locked[0, 0]
    assert scene.game.locks.owners[0, 0] == SEEKER


def test_an_idle_seeker_keeps_hiders_from_locking_only_what_seekers_owned() -> None:
    scene = around_a_cube()
    scene.step(LOCK, IDLE)
    assert scene.game.locks.locked[0, 0]
    scene = around_a_cube()
    scene.put(HIDER, angle=BACK)
    scene.step(IDLE, LOCK)
    scene.step(IDLE, IDLE)
    assert not scene.game.locks.locked.any()
    scene.put(HIDER, angle=AHEAD)
    scene.step(LOCK, IDLE)
    assert not scene.game.locks.locked.any()


def test_a_team_locks_only_if_all_of_it_that_are_near_press() -> None:
    scene = Scene(hiders=[(0.0, 0.0), (0.9, 0.0)], boxes=[(0.45, 0.0)])
    scene.put(0, angle=AHEAD)
    scene.put(1, angle=BACK)
    scene.step(LOCK, IDLE)
    assert not scene.game.locks.locked.any()
    scene.step(LOCK, LOCK)
    assert scene.game.locks.locked[0, 0]


def test_owner_is_drawn_among_all_that_press() -> None:
    owners = set()
    for seed in range(20):
        scene = around_a_cube()
        scene.environment._randoms[0] = np.random.default_rng(seed)
        scene.step(LOCK, LOCK)
        owners.add(int(scene.game.locks.owners[0, 0]))
    assert owners == {HIDER, SEEKER}


def test_owner_stays_after_unlocking() -> None:
    scene = around_a_cube()
    scene.put(HIDER, angle=BACK)
    scene.step(IDLE, LOCK)
    scene.step(IDLE, IDLE)
    assert not scene.game.locks.locked.any()
    assert scene.game.locks.owners[0, 0] == SEEKER


@pytest.mark.parametrize("lock_ramps", [True, False])
def test_ramps_are_locked_only_where_that_is_allowed(lock_ramps: bool) -> None:
    scene = Scene(hiders=[(0.0, 0.0)], ramps=[(0.45, 0.0)], scenario={"lock_ramps": lock_ramps})
    scene.put(0, angle=AHEAD)
    scene.step(LOCK)
    assert scene.game.locks.locked[0, 0] == lock_ramps
    assert scene.seen("ramp_obs").shape[-1] == 9 + 3 * lock_ramps + 0


def test_unlocking_frees_the_joints() -> None:
    scene = around_a_cube()
    scene.put(SEEKER, x=100.0)
    scene.step(LOCK)
    scene.step(IDLE)
    scene.step(FORWARD_X, times=10)
    assert scene.at(2)[0] > 2.0
