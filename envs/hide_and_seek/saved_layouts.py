"""Layouts as arrays, for saved states. Letters: E environments, W wall slots, B boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from envs.hide_and_seek.layout import Layout
from envs.hide_and_seek.settings import Settings
from envs.hide_and_seek.walls import Wall
from srlhpc.environment import SavedState


def save_layouts(layouts: Sequence[Layout], settings: Settings) -> SavedState:
    """What cannot be told from positions: teams, walls, boxes."""
    num_environments = len(layouts)
    most = max((len(layout.walls) for layout in layouts), default=0)
    walls = np.full((num_environments, most, 5), -1, np.int64)
    boxes = np.full((num_environments, settings.scenario.boxes[1], 3), -1.0)
    for env, layout in enumerate(layouts):
        walls[env, : len(layout.walls)] = np.array(layout.walls, np.int64).reshape(-1, 5)
        boxes[env, : len(layout.boxes)] = layout.box_sizes
    teams = np.array([(layout.hiders, layout.seekers) for layout in layouts], np.int64)
    return {"teams": teams, "walls": walls, "box_sizes": boxes}


def load_layouts(state: SavedState, settings: Settings) -> list[Layout]:
    """Layouts of worlds as they were, with everything at the origin."""
    layouts = []
    for teams, walls, sizes in zip(state["teams"].tolist(), state["walls"].tolist(), state["box_sizes"], strict=True):
        there = sizes[sizes[:, 0] > 0.0]
        layouts.append(
            Layout(
                hiders=teams[0],
                seekers=teams[1],
                walls=tuple(
                    Wall(bool(vertical), line, start, end, bool(outer))
                    for vertical, line, start, end, outer in walls
                    if end > start
                ),
                agents=np.zeros((sum(teams), 2)),
                boxes=np.zeros((len(there), 2)),
                box_sizes=there.copy(),
                ramps=np.zeros((settings.scenario.ramps, 2)),
                food=np.zeros((settings.food.sites if settings.food else 0, 3)),
            )
        )
    return layouts
