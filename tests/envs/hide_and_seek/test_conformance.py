from __future__ import annotations

from tests.environment_conformance import EnvironmentConformance

SMALL = {"kind": "random_walls", "boxes": [1, 4], "elongated": [0, 2], "ramps": 1, "horizon": 12}


class TestQuadrant(EnvironmentConformance):
    settings = {
        "factory": "hide_and_seek",
        "scenario": {"kind": "quadrant", "horizon": 20},
        "hiders": [2, 2],
        "seekers": [2, 2],
    }
    steps = 60
    offers_state = True


class TestRandomWalls(EnvironmentConformance):
    settings = {"factory": "hide_and_seek", "scenario": SMALL, "team_sizes": "per_episode"}
    steps = 60
    offers_state = True


class TestFoodOnALargerMap(EnvironmentConformance):
    settings = {
        "factory": "hide_and_seek",
        "scenario": {**SMALL, "horizon": 10, "lock_ramps": False},
        "map_scale": 1.5,
        "food": {"sites": 2, "radius": 3.0, "respawn_steps": 2},
        "deterministic": True,
    }
    steps = 60
    offers_state = True


class TestNothingToHideBehind(EnvironmentConformance):
    settings = {
        "factory": "hide_and_seek",
        "scenario": {"kind": "random_walls", "boxes": [0, 0], "elongated": [0, 0], "ramps": 0, "horizon": 6},
        "hiders": [1, 1],
        "seekers": [1, 1],
        "prep_fraction": 0.0,
    }
    steps = 20
    offers_state = True
