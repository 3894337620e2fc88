"""Starts with contacts inside of another surface are warned of, with the way out of it."""

import contextlib

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import SimulationError, SimulationWarning
from legged.ground import Flat, Slope, realistic_ground


@pytest.mark.parametrize("rigid", [False, True])
@pytest.mark.parametrize("terrain", [Slope(np.radians(8.0)), Flat(0.03)])
def test_a_start_inside_of_the_ground_names_what_to_do(terrain, rigid):
    robot = robots.planar_biped()
    ground = legged.Rigid(terrain=terrain) if rigid else realistic_ground(robot, terrain=terrain)
    words = "Locomotion" if isinstance(terrain, Slope) else "without overlap"
    warned = pytest.warns(SimulationWarning, match=rf"begins [\d.]+ mm inside of .*{words}")
    with warned, contextlib.suppress(SimulationError):
        legged.simulate(robot, controllers.ComputedTorque(controllers.paper_walk()), ground=ground, until=1e-3)
