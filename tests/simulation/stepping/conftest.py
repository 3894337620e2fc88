"""States of a hopper."""

import numpy as np
import pytest

import robots


@pytest.fixture(scope="module")
def hopper():
    robot = robots.planar_hopper()
    q = np.repeat(robot.neutral()[None], 11, axis=0)
    q[:, 2] += np.linspace(0.59, 0.7, 11)
    return robot, q
