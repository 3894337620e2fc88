"""Robots with two point or line feet, which walk by steps that also keep the body upright."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import legged
from controllers import Locomotion
from controllers.locomotion.fitting import carrying_places

FILES = all_urdfs()


def test_soles_carry_a_robot_where_the_leg_keeps_them_at_rest():
    sole = np.array([[0.1, 0.03, 0.0], [0.1, -0.03, 0.0], [-0.1, 0.03, 0.0], [-0.1, -0.03, 0.0]])  # [m]
    roll, pitch, yaw = np.eye(3)
    assert carrying_places(sole, np.eye(3)) is sole  # six joints
    np.testing.assert_allclose(carrying_places(sole, np.array([pitch, yaw])), [[0.1, 0.0, 0.0], [-0.1, 0.0, 0.0]])
    np.testing.assert_allclose(carrying_places(sole, np.array([roll])), [[0.0, 0.03, 0.0], [0.0, -0.03, 0.0]])
    np.testing.assert_allclose(carrying_places(sole, np.zeros((0, 3))), [[0.0, 0.0, 0.0]])  # three joints


@pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")
def test_a_robot_with_two_point_feet_steps_in_place_walks_and_recovers_from_a_push():
    robot, walk = legged.load(FILES["bolt/bolt"]), Locomotion("walk", None)
    state = walk.initial_state(robot)
    step, ground = legged.TimeStepping(2e-3), legged.Rigid(friction=0.6)
    sim = legged.Simulation(robot, walk, ground=ground, q=state[0], v=state[1], integrator=step)
    law, _ = Locomotion("walk").start(robot, None, *state)
    assert law.steps.narrow == (True, True) and not law.planner.on_soles
    speed = float(np.sqrt(9.81 * law.height))
    for vx, push in ((0.0, 0.0), (0.35, 0.0), (-0.15, 0.0), (0.15, 0.11)):  # [sqrt(g h)]
        sim.reset(*state)
        for n, kick in ((1000, push), (1000, 0.0)):
            sim.step(np.array([vx * speed, 0.0, 0.0, 0.0, 0.0]), n=n)
            before, start = sim.state, sim.q[4]
            v = before.v.copy()
            v[4] += kick * speed
            sim.state = replace(before, v=v)
        sim.step(np.array([vx * speed, 0.0, 0.0, 0.0, 0.0]), n=500)
        assert not sim.fallen, f"fell at {sim.t:.2f} s with {vx} and a push of {push}: {sim.reasons}"
        assert sim.q[4] - start == pytest.approx(vx * speed, abs=0.03 * speed + 0.03)
        R, _ = robot.base.pose(sim.q[:7])
        assert R[2, 2] > np.cos(0.25)
