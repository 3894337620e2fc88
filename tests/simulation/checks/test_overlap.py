"""Starts with contacts inside of another surface: refused where the law chose them, warned of where they are given."""

import contextlib

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import SimulationError, SimulationWarning, StateError
from legged.ground import Flat, Slope, realistic_ground

TERRAINS = [Slope(np.radians(8.0)), Flat(0.03)]
ROBOT = robots.planar_biped()
LAW = controllers.ComputedTorque(controllers.paper_walk())


def options_on(terrain, rigid):
    ground = legged.Rigid(terrain=terrain) if rigid else realistic_ground(ROBOT, terrain=terrain)
    return {"ground": ground, "integrator": None if rigid else legged.SemiImplicitEuler(1e-4)}


def way(terrain):
    words = "Locomotion" if isinstance(terrain, Slope) else "without overlap"
    return rf"begins [\d.]+ mm inside of .*{words}"


@pytest.mark.parametrize("rigid", [False, True])
@pytest.mark.parametrize("terrain", TERRAINS)
def test_a_start_inside_of_the_ground_that_the_law_has_chosen_is_refused_in_every_door(terrain, rigid):
    options = options_on(terrain, rigid)
    for door in (legged.simulate, legged.rollout):
        with pytest.raises(StateError, match=way(terrain)):
            door(ROBOT, LAW, until=1e-3, **options)
    sim = legged.Simulation(ROBOT, LAW, **options)
    for _ in range(2):
        with pytest.raises(StateError, match=way(terrain)):
            sim.step()
        assert sim.t == 0.0


@pytest.mark.parametrize("rigid", [False, True])
@pytest.mark.parametrize("terrain", TERRAINS)
def test_a_start_inside_of_the_ground_that_is_given_names_what_to_do(terrain, rigid):
    options, (q, _) = options_on(terrain, rigid), LAW.initial_state(ROBOT)
    for door in (legged.simulate, legged.rollout):
        with pytest.warns(SimulationWarning, match=way(terrain)), contextlib.suppress(SimulationError):
            door(ROBOT, LAW, q=q, until=1e-3, **options)
    sim = legged.Simulation(ROBOT, LAW, **options)
    with pytest.warns(SimulationWarning, match=way(terrain)):
        sim.reset(q)
    sim.step()
    assert sim.t > 0.0


def test_a_reset_leaves_no_default_state_unchecked():
    options, (q, _) = options_on(TERRAINS[1], True), LAW.initial_state(ROBOT)
    sim = legged.Simulation(ROBOT, LAW, num=3, **options)
    high = q + 0.1 * (np.arange(ROBOT.nq) == 2)
    sim.reset(np.tile(high, (3, 1)), where=[0, 1])
    with pytest.raises(StateError, match="robot 2: contact"):
        sim.step()
    sim.reset(np.tile(high, (3, 1)), where=[2])
    sim.step()
    sim.reset(where=[1])
    with pytest.raises(StateError, match="robot 1: contact"):
        sim.step()
