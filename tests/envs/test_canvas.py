from __future__ import annotations

import numpy as np
import pytest

from envs._canvas import Canvas

WHITE, RED, BLUE = (255, 255, 255), (255, 0, 0), (0, 0, 255)


@pytest.fixture
def canvas() -> Canvas:
    """Ten pixels a unit, x from 0 to 4 and y from 0 to 2."""
    return Canvas((0.0, 0.0, 4.0, 2.0), 40, WHITE)


def at(canvas: Canvas, x: float, y: float) -> tuple[int, ...]:
    return tuple(canvas.picture()[int((2.0 - y) * 10), int(x * 10)].tolist())


def test_a_picture_has_the_shape_of_the_view(canvas: Canvas) -> None:
    picture = canvas.picture()
    assert (picture.shape, picture.dtype) == ((20, 40, 3), np.uint8)
    assert (picture == 255).all()


def test_a_disc_covers_its_circle_with_y_upwards(canvas: Canvas) -> None:
    canvas.disc(1.0, 1.5, 0.3, RED)
    assert at(canvas, 1.05, 1.55) == RED
    assert at(canvas, 1.05, 0.55) == WHITE
    assert at(canvas, 1.35, 1.85) == WHITE


def test_edges_are_mixed(canvas: Canvas) -> None:
    canvas.disc(1.0, 1.0, 0.3, RED)
    assert len(np.unique(canvas.picture()[..., 1])) > 2


def test_a_box_is_turned_about_its_centre(canvas: Canvas) -> None:
    canvas.box(2.0, 1.0, (0.8, 0.1), np.pi / 2, RED)
    assert at(canvas, 2.05, 1.65) == RED
    assert at(canvas, 2.65, 1.05) == WHITE


def test_a_line_joins_two_points(canvas: Canvas) -> None:
    canvas.line((0.5, 0.5), (1.5, 1.5), 0.3, RED)
    assert at(canvas, 1.05, 1.05) == RED
    assert at(canvas, 0.55, 1.55) == WHITE


def test_a_slope_goes_from_one_colour_to_the_other(canvas: Canvas) -> None:
    canvas.slope(2.0, 1.0, 0.5, 0.0, RED, BLUE)
    reds = [at(canvas, 2.05, y)[0] for y in (1.45, 1.05, 0.55)]
    assert reds[0] > reds[1] > reds[2]


def test_a_fan_ends_where_its_rays_end(canvas: Canvas) -> None:
    canvas.fan(2.0, 1.0, 0.0, 0.5, np.array([0.3, 1.5, 1.5]), RED, 0.5)
    assert at(canvas, 3.05, 1.05) == (255, 128, 128)
    assert at(canvas, 1.55, 1.05) == WHITE
    assert at(canvas, 2.55, 0.75) == WHITE
    assert at(canvas, 2.55, 1.25) == (255, 128, 128)


def test_what_is_off_the_picture_is_not_drawn(canvas: Canvas) -> None:
    canvas.disc(-5.0, 9.0, 1.0, RED)
    canvas.box(9.0, -5.0, (1.0, 1.0), 0.3, RED)
    assert (canvas.picture() == 255).all()
