from __future__ import annotations


def draw(game, copy, settings):
    return None
