"""A run of a standing quadruped."""

import pytest

import robots
from legged.ground import (
    realistic_ground,
)
from legged.simulation import simulate
from tests.simulation.servo import Servo, standing


@pytest.fixture(scope="module")
def robot():
    return robots.spatial_quadruped()


@pytest.fixture(scope="module")
def run(robot):
    return simulate(robot, Servo(), until=0.3, q=standing(robot), ground=realistic_ground(robot))
