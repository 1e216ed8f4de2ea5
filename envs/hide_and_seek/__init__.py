"""Hide-and-seek on MuJoCo: hiders and seekers among walls, boxes and ramps (Baker et al. 2019, arXiv:1909.07528)."""

from __future__ import annotations

from envs.hide_and_seek.settings import Settings
from srlhpc.environment import Environment

__all__ = ["Settings", "build"]


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    from envs.hide_and_seek.environment import HideAndSeek

    return HideAndSeek(settings, num_environments, seed, render)
