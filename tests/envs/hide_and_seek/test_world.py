from __future__ import annotations

import mujoco
import numpy as np
import pytest

from envs.hide_and_seek.layout import Layout, draw_layout
from envs.hide_and_seek.model import Structure, compile_model, structure_of
from envs.hide_and_seek.pool import WorldPool
from envs.hide_and_seek.settings import Settings
from envs.hide_and_seek.world import World


def drawn(seed: int) -> Layout:
    return draw_layout(Settings(factory="hide_and_seek"), 2, 2, np.random.default_rng(seed))


def alike(layout: Layout, seed: int) -> Layout:
    """Another layout of the same structure but with other walls."""
    return next(
        other
        for other in map(drawn, range(seed, seed + 20000))
        if structure_of(other, 10, 1.0) == structure_of(layout, 10, 1.0) and len(other.walls) != len(layout.walls)
    )


def trajectory(world: World, steps: int = 60) -> np.ndarray:
    """Positions, velocities and rays under random forces, locks and holds."""
    random, seen = np.random.default_rng(4), []
    rays = np.array([[np.cos(a), np.sin(a), 0.0] for a in np.linspace(0, 6, 20)]).ravel()
    geoms, distances = np.zeros(20, np.int32), np.zeros(20)
    agents, bodies = world.structure.agents, world.structure.bodies
    for step in range(steps):
        world.controls[:] = random.uniform(-0.9, 0.9, world.controls.shape)
        if step == 10:
            world.hold(0, agents, np.array([0.5, 0.0, 0.1]), np.array([1.0, 0.0, 0.0, 0.0]))
            world.lock(bodies - 1, world.positions[-1].copy())
        world.step()
        origin = np.append(world.positions[0, :2] + 0.15, 0.15)
        mujoco.mj_multiRay(
            world.model, world.data, origin, rays, None, True, int(world.body_ids[0]), geoms, distances, None, 20, 1e10
        )
        seen.append(np.concatenate((world.positions.ravel(), world.velocities.ravel(), distances)))
    return np.array(seen)


@pytest.mark.parametrize("seed", [0, 3, 8])
def test_a_world_used_again_behaves_bit_for_bit_as_a_new_one(seed: int) -> None:
    first = drawn(seed)
    second = alike(first, 100)
    used, new = (World(structure_of(second, 10, 1.0)) for _ in range(2))
    used.place(first)
    trajectory(used)
    for world in (used, new):
        world.place(second)
    np.testing.assert_array_equal(trajectory(used), trajectory(new))


@pytest.mark.parametrize("seed", [1, 4])
def test_free_wall_slots_change_nothing(seed: int) -> None:
    layout = drawn(seed)
    with_slots, exact = World(structure_of(layout, 10, 1.0)), World(structure_of(layout, len(layout.walls), 1.0))
    assert with_slots.structure.walls > exact.structure.walls
    for world in (with_slots, exact):
        world.place(layout)
    np.testing.assert_array_equal(trajectory(with_slots), trajectory(exact))


def test_walls_written_into_slots_equal_walls_compiled_in_place() -> None:
    layout = next(layout for layout in map(drawn, range(20)) if len(layout.walls) > 5)
    world = World(structure_of(layout, len(layout.walls), 1.0))
    world.place(layout)
    for slot, wall in enumerate(layout.walls):
        left, lower, right, upper = wall.rectangle()
        half = [(right - left) / 2, (upper - lower) / 2, wall.height / 2]
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(pos=[(left + right) / 2, (lower + upper) / 2, wall.height / 2])
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=half, mass=1.0, friction=[1.0, 0.005, 0.0001])
        compiled = spec.compile()
        geom = world.model.geom(f"wall_{slot}").id
        for name in ("geom_size", "geom_rbound", "geom_aabb", "geom_friction", "geom_contype", "geom_conaffinity"):
            np.testing.assert_array_equal(getattr(world.model, name)[geom], getattr(compiled, name)[0], err_msg=name)
        np.testing.assert_array_equal(world.model.body_pos[1 + slot], compiled.body_pos[1])
        boxes = world.model.bvh_aabb[world.model.body_bvhadr[1 + slot]], compiled.bvh_aabb[compiled.body_bvhadr[1]]
        np.testing.assert_allclose(*boxes, atol=1e-15)


def test_a_pool_hands_out_idle_worlds_of_the_structure_only() -> None:
    small, large = Structure(2, 0, 0, 0, 0, 0, 1.0), Structure(2, 0, 0, 1, 0, 0, 1.0)
    pool = WorldPool(limit=2)
    one = pool.take(small)
    pool.give_back(one)
    assert pool.take(large).structure == large
    assert pool.take(small) is one
    assert pool.compiled == 2


def test_a_pool_forgets_what_has_been_idle_for_longest() -> None:
    structures = [Structure(2, 0, 0, boxes, 0, 0, 1.0) for boxes in range(3)]
    pool = WorldPool(limit=2)
    made = [pool.take(structure) for structure in structures]
    for world in made:
        pool.give_back(world)
    assert pool.take(structures[2]) is made[2]
    assert pool.take(structures[0]) is not made[0]
    assert pool.compiled == 4


def test_the_model_is_that_of_the_rules() -> None:
    model = compile_model(Structure(2, 1, 1, 1, 1, 2, 0.01))
    assert (model.nq, model.nv, model.nu, model.neq) == (24, 24, 6, 2)
    assert model.opt.timestep == 0.005
    assert model.opt.gravity.tolist() == [0, 0, -50]
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
    assert model.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
    assert model.body_mass[-6:].tolist() == [1.0] * 6
    assert model.dof_damping[:4].tolist() == [10, 10, 1, 10]
    assert model.dof_damping[8:12].tolist() == [0.01] * 4
    assert model.dof_damping[-4:].tolist() == [0.1] * 4
    assert (model.actuator_gear[:, 0] == 100).all()
    assert not model.jnt_limited.any()
    assert (model.geom_condim == 3).all()
    friction = {model.geom(geom).name.split("_")[0]: model.geom_friction[geom].tolist() for geom in range(model.ngeom)}
    slides = {name: values[0] for name, values in friction.items()}
    assert slides == {"floor": 0.2, "wall": 0.01, "agent": 0.01, "box": 0.2, "ramp": 0.01}
    assert {tuple(values[1:]) for values in friction.values()} == {(0.005, 0.0001)}


def test_joint_positions_are_those_of_lower_corners() -> None:
    layout = drawn(0)
    world = World(structure_of(layout, 10, 1.0))
    world.place(layout)
    centres = world.data.xpos[world.body_ids]
    np.testing.assert_allclose(centres, world.positions[:, :3] + world.structure.half_sizes, atol=1e-12)


def test_teams_have_their_colours() -> None:
    layout = drawn(0)
    world = World(structure_of(layout, 10, 1.0))
    world.place(layout)
    colors = [world.model.geom(f"agent_{agent}_0").rgba.tolist() for agent in range(4)]
    assert colors[0] == colors[1] != colors[2] == colors[3]
    assert colors[3] == [1.0, 0.0, 0.0, 1.0]


def test_leaving_out_the_last_forward_pass_changes_nothing_that_is_observed() -> None:
    """It only changes where the solver starts from."""
    layout = drawn(2)
    ours, original = (World(structure_of(layout, 10, 1.0)) for _ in range(2))
    for world in (ours, original):
        world.place(layout)
    random = np.random.default_rng(0)
    for step in range(20):
        controls = random.uniform(-0.9, 0.9, ours.controls.shape)
        for world in (ours, original):
            world.controls[:] = controls
            world.step()
        mujoco.mj_forward(original.model, original.data)
        tolerance = 0.0 if step == 0 else 1e-5
        np.testing.assert_allclose(ours.positions, original.positions, rtol=0, atol=tolerance)
        np.testing.assert_allclose(ours.data.geom_xpos, original.data.geom_xpos, rtol=0, atol=tolerance)
