"""Runs that the tests of the viewer share."""

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.ground import paper_ground


@pytest.fixture(scope="session")
def trot():
    """A trot of the quadruped of the paper, 0.6 s."""
    law = controllers.ComputedTorque(controllers.Trot(period=1.0, stride=0.3, clearance=0.08))
    robot = robots.spatial_quadruped()
    return legged.simulate(robot, law, ground=paper_ground(robot), until=0.6)


@pytest.fixture(scope="session")
def walk():
    """A walk of the planar biped of the paper, 0.3 s."""
    law = controllers.ComputedTorque(controllers.Walk())
    robot = robots.planar_biped()
    return legged.simulate(robot, law, ground=paper_ground(robot), until=0.3)


class Planner:
    """A controller without torques that plans one foot's place, which moves at 1 m/s, beside a foot that stands."""

    def start(self, robot, ground, q, v):
        return self, np.array([0.5])

    def torque(self, t, phase, q, v, wrenches, memory):
        return 0.0 * v

    def rate(self, t, phase, q, v, wrenches, memory):
        return 1.0 + 0.0 * memory

    def planned_footsteps(self, memory):
        return np.array([[memory[0], 0.1, 0.0], [np.nan, np.nan, np.nan]])


@pytest.fixture(scope="session")
def planned():
    """A chain whose controller plans footsteps, behind a wrapper, 0.1 s."""
    law = controllers.ActuatorLag(Planner(), time_constant=0.01)
    return legged.simulate(robots.chain(1, base=legged.FixedBase()), law, until=0.1)


@pytest.fixture(scope="session")
def drop():
    """A plate and a ball that fall on rigid ground beside a fixed box, 0.1 s."""
    plate = legged.Link("plate", legged.box_inertia(1.0, (0.2, 0.2, 0.05)), shapes=[legged.Box((0.2, 0.2, 0.05))])
    robot = legged.RobotBuilder("plate", plate).build()
    ball = legged.FreeBody("ball", legged.sphere_inertia(1.0, 0.1), [legged.Sphere(0.1)], position=(0.0, 0.5, 0.12))
    box = legged.Box((0.3, 0.3, 0.2), center=(0.0, -0.5, 0.1))
    ground = legged.Rigid(obstacles=(("box", box),), pairs=(("ball", "terrain"),))
    q = robot.neutral()
    q[6] = 0.3
    return legged.simulate(robot, ground=ground, bodies=[ball], q=q, until=0.1, fall=False)
