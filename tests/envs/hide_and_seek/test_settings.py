from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from envs.hide_and_seek.settings import Settings


def refused(**changes: Any) -> str:
    with pytest.raises(ValidationError) as error:
        Settings.model_validate({"factory": "hide_and_seek", **changes})
    return str(error.value)


def test_ranges_are_refused_the_wrong_way_round() -> None:
    assert "hiders" in refused(hiders=[3, 1])
    assert "the lowest number comes first" in refused(seekers=[2, 1])
    assert "scenario.boxes" in refused(scenario={"kind": "quadrant", "boxes": [3, 2]})
    assert "scenario.rooms" in refused(scenario={"kind": "random_walls", "rooms": [3, 2]})


def test_more_elongated_boxes_than_boxes_are_refused() -> None:
    assert "there may be only 2 boxes" in refused(scenario={"kind": "random_walls", "boxes": [2, 9]})


def test_a_floor_too_small_is_refused() -> None:
    assert "at least 0.4" in refused(map_scale=0.2)


def test_settings_of_the_other_scenario_are_refused() -> None:
    assert "rooms" in refused(scenario={"kind": "quadrant", "rooms": [1, 2]})


def test_the_rectangle_grows_with_the_map() -> None:
    settings = Settings(factory="hide_and_seek", map_scale=1.5)
    assert settings.restrict == (-9.0, -9.0, 18.0, 18.0)
    assert settings.floor == 9.0


def test_agents_are_named_by_their_teams_so_that_specs_can_tell_them_apart() -> None:
    assert Settings(factory="hide_and_seek", hiders=(1, 2), seekers=(1, 1)).agents == ("hider_0", "hider_1", "seeker_0")


def test_the_scenarios_have_their_own_defaults() -> None:
    quadrant = Settings.model_validate({"factory": "hide_and_seek", "scenario": {"kind": "quadrant"}})
    walls = Settings(factory="hide_and_seek")
    assert (quadrant.horizon, walls.horizon) == (80, 240)
    assert quadrant.restrict == (0.1, 0.1, 5.9, 5.9)
    assert (quadrant.scenario.penalize_objects_out, walls.scenario.penalize_objects_out) == (True, False)
    assert (quadrant.scenario.lock_ramps, walls.scenario.lock_ramps) == (False, True)
    assert (quadrant.scenario.boxes, walls.scenario.boxes) == ((2, 2), (3, 9))
    assert (quadrant.scenario.ramps, walls.scenario.ramps) == (1, 2)


@pytest.mark.parametrize(
    ("changes", "titles"),
    [
        ({}, ["Return", "Box movement", "Ramp movement", "Box locks", "Ramp locks"]),
        ({"scenario": {"kind": "quadrant"}}, ["Return", "Box movement", "Ramp movement", "Box locks"]),
        (
            {"scenario": {"kind": "random_walls", "boxes": [0, 0], "elongated": [0, 0], "ramps": 0}, "food": {}},
            ["Return", "Food"],
        ),
    ],
)
def test_stages_have_panels_for_the_objects_that_there_are(changes: dict[str, Any], titles: list[str]) -> None:
    assert [panel.title for panel in Settings(factory="hide_and_seek", **changes).statistics()] == titles


def test_former_word_for_team_sizes_is_understood() -> None:
    assert Settings(factory="hide_and_seek", team_sizes="per_copy").team_sizes == "per_environment"  # type: ignore[arg-type]
