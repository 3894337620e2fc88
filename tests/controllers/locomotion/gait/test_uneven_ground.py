"""Robots that do not know the terrain: feet rise over obstacles and reach for lower ground."""

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import legged
from controllers import Command, Locomotion
from controllers.locomotion.gait.swing import swing_path
from controllers.locomotion.gait.uneven_ground import adapted_swing, is_obstacle, rises_over_uneven_ground
from legged.ground import Stairs

FILES = all_urdfs()
needs_files = pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")


@pytest.mark.parametrize("friction", [0.3, 0.6, 0.75])
def test_forces_of_the_ground_on_slopes_are_no_obstacles_and_those_of_risers_are(friction):
    up, back = np.array([0.0, 0.0, 1.0]), np.array([-1.0, 0.0, 0.0])
    for slope in np.radians([-15.0, 0.0, 15.0]):
        normal, along = np.cos(slope) * up + np.sin(slope) * back, np.cos(slope) * back - np.sin(slope) * up
        for share in (-1.0, 0.0, 1.0):
            assert not is_obstacle(20.0 * (normal + share * friction * along))
    for share in (-1.0, 0.0, 1.0):
        assert is_obstacle(20.0 * (back + share * friction * up))


def test_a_foot_at_an_obstacle_rises_and_one_over_low_ground_moves_down_while_its_path_stops():
    start, end, dt, speed = np.zeros(3), np.array([0.2, 0.0, 0.0]), 0.002, 0.8
    path = swing_path(0.6, 0.25, start, end, 0.05)
    climb, lift, heights = 0.0301, 0.0, []
    while climb > 0.0:
        before = climb + lift
        adapted, climb, lift = adapted_swing(path, 1.0, climb, lift, 0.0, True, speed, dt)
        assert climb + lift == pytest.approx(before, abs=1e-15)
        assert adapted.velocity[:2] == pytest.approx([0.0, 0.0]) and not adapted.acceleration.any()
        heights.append(adapted.position[2])
    assert heights[-1] == pytest.approx(path.position[2] + 0.0301)
    assert np.diff([path.position[2], *heights])[:-1] == pytest.approx(np.full(len(heights) - 1, speed * dt))
    later, climb, lift = adapted_swing(path, 1.0, 0.0, lift, 0.0, False, speed, dt)
    assert (later.position - path.position)[2] == pytest.approx(0.0301)  # it stays raised
    assert (later.velocity == path.velocity).all() and (later.acceleration == path.acceleration).all()
    down, _, lower = adapted_swing(path, 1.0, 0.0, 0.0, 1.0, True, speed, dt)
    assert down.velocity == pytest.approx([0.0, 0.0, -speed])
    assert lower == pytest.approx(-speed * dt) == (down.position - path.position)[2]
    along, left, lower = adapted_swing(path, 1.0, 0.03, -0.02, 1.0, True, speed, dt)  # at the wall of a gap
    assert along.velocity == pytest.approx([0.0, 0.0, -speed]) and left == 0.0
    assert lower == pytest.approx(-0.02 - speed * dt)
    before, left, lift = adapted_swing(path, 1.0, 0.03, 0.1, 1.0, True, speed, dt)  # at a wall, at the end of its path
    assert before.velocity == pytest.approx([0.0, 0.0, -speed]) and left == 0.0
    assert lift == pytest.approx(0.1 - speed * dt)
    assert adapted_swing(path, 0.0, climb, lift, 0.0, False, speed, dt)[1:] == (0.0, 0.0)  # a foot that stands


def test_feet_rise_by_more_after_a_touchdown_at_another_height_than_expected():
    rises = np.zeros(4)
    h, unit, dt = 0.3, 0.175, 0.002  # [m], [s], [s]
    before, stance = [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]  # the third foot touches down

    def after(error, rises, before=before):
        errors = np.array([0.2, 0.2, error, 0.2])
        return np.array(rises_over_uneven_ground(rises, errors, before, stance, h, unit, dt))

    assert not after(0.01, rises).any()  # an error of less than 0.05 h
    assert (
        after(-0.03, rises) == [0.03, 0.03, 0.03, 0.0]
    ).all()  # below the expected place; the swing of the last foot stays
    raised = after(0.2, rises)
    assert raised == pytest.approx([0.045, 0.045, 0.045, 0.0])  # at most 0.15 h
    for _ in range(round(6.0 * unit / dt)):
        raised = after(0.2, raised, stance)  # no touchdown
    assert raised[:3] == pytest.approx(3 * [0.045 / np.e], rel=2e-3)  # the time constant in stance, at steps of dt


@pytest.mark.slow
@needs_files
def test_go2_trots_up_and_down_stairs_that_it_does_not_know():
    """Feet that lifted off by their schedule left it falling from the first step down, and risers stopped its feet."""
    robot, rises = legged.load(FILES["go2/go2"]), np.array([0.1, 0.05, -0.05, -0.1])  # [m]
    stairs = Stairs(tuple(0.45 + 0.36 * k for k in range(6)), (0.1,) * 6)
    law = Locomotion("trot", Command(vx=0.43))
    q, v = law.initial_state(robot)
    runs = legged.rollout(
        robot,
        law,
        ground=legged.Rigid(friction=0.6, terrain=stairs),
        until=8.0,
        q=np.tile(q, (len(rises), 1)),
        v=v,
        vary={"ground.terrain.rises": np.outer(rises, np.ones(6))},
        integrator=legged.TimeStepping(2e-3),
        progress=False,
    )
    assert not runs.fallen.any()
    assert (runs.q[:, -1, 4] > 0.8 * 8.0 * 0.43).all()  # [m]; obstacles delay it
    assert runs.q[:, -1, 6] - q[6] == pytest.approx(6.0 * rises, abs=0.04)  # [m]


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize("kind", ["up", "down", "stones"])
def test_go2_trots_over_steps_and_gaps_that_it_does_not_know_from_any_place(kind):
    """Feet that meet risers, reach into gaps of 3 cm and start from their ground, 12 cm below the stones."""
    robot = legged.load(FILES["go2/go2"])
    law = Locomotion("trot", Command(vx=0.4))
    q, v = law.initial_state(robot)
    speeds, starts = (grid.ravel() for grid in np.meshgrid([0.26, 0.34, 0.43, 0.51], [0.45, 0.54, 0.63, 0.72]))
    places, rises = 0.36 * np.arange(6), np.full(6, 0.099 if kind == "up" else -0.099)  # [m]
    if kind == "stones":
        places, rises = np.ravel([0.24 * np.arange(8), 0.24 * np.arange(8) + 0.03], "F"), np.tile([-0.12, 0.12], 8)
    edges = starts[:, None] + places
    runs = legged.rollout(
        robot,
        law,
        ground=legged.Rigid(friction=0.6, terrain=Stairs(tuple(edges[0]), tuple(rises))),
        until=8.0,
        q=np.tile(q, (16, 1)),
        v=v,
        vary={"ground.terrain.edges": edges, "controller.command.vx": speeds},
        integrator=legged.TimeStepping(2e-3),
        progress=False,
    )
    arrived = ~runs.fallen & (runs.q[:, -1, 4] > 0.8 * 8.0 * speeds)
    assert arrived.sum() >= 14  # outcomes depend on details of a run


@pytest.mark.slow
@needs_files
def test_a_late_foot_in_front_of_a_riser_moves_down_to_its_tread():
    """It rose along the riser to its largest height while Go2 waited on two feet, and Go2 fell in the second walk."""
    robot, law = legged.load(FILES["go2/go2"]), Locomotion("trot", Command(vx=0.5286))
    q, v = law.initial_state(robot)
    edges = np.array([0.6646, 0.7754])[:, None] + 0.37979 * np.arange(6)  # [m]
    runs = legged.rollout(
        robot,
        law,
        ground=legged.Rigid(friction=0.6, terrain=Stairs(tuple(edges[0]), (0.10444,) * 6)),
        until=8.0,
        q=np.tile(q, (2, 1)),
        v=v,
        vary={"ground.terrain.edges": edges},
        integrator=legged.TimeStepping(2e-3),
        progress=False,
    )
    assert not runs.fallen.any()
    assert (runs.q[:, -1, 6] - q[6] > 0.5).all()  # [m], on the last tread
