"""Laws of the choice of integrator and step on compliant ground."""

import warnings

import numpy as np
import pytest

import legged
import robots
from controllers import ZeroOrderHold
from legged.errors import DivergenceError, SimulationWarning
from legged.ground import paper_ground, realistic_ground
from legged.simulation.stable_step import largest_stable_step


def hold(t, q, v, wrenches):
    return -100.0 * (q[7:] - 0.1) - v[6:]


def standing():
    robot = robots.spatial_quadruped()
    q = robot.neutral()
    q[6], q[7:] = 0.597, 0.1
    return robot, q


@pytest.mark.parametrize("make", [paper_ground, realistic_ground])
def test_largest_stable_step_separates_rest_from_oscillation(make):
    """Below the step the robot comes to rest on its feet; well above it the contacts oscillate or diverge."""
    robot, q = standing()
    ground = make(robot)
    h = largest_stable_step(robot, ground, q, legged.SemiImplicitEuler)
    assert 1e-4 < h < 1e-3

    def final_speed(step):
        options = {"integrator": legged.SemiImplicitEuler(step), "until": 0.4, "fall": False}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SimulationWarning)
                return np.abs(legged.simulate(robot, hold, q=q, ground=ground, **options).v[-5:]).max()
        except DivergenceError:
            return np.inf

    rest = final_speed(0.2 * h)
    assert final_speed(0.8 * h) == pytest.approx(rest, rel=0.1, abs=0.01)
    assert final_speed(3.0 * h) > 5.0 * rest


def test_point_mass_has_the_limit_of_its_spring_and_damper():
    """One point with spring and damper at the center of a mass: h^2 k / m + 2 h d / m = 4."""
    link = legged.Link("m", legged.box_inertia(2.0, (0.1, 0.1, 0.1)), contacts={"p": (0.0, 0.0, 0.0)})
    robot = legged.RobotBuilder("point", link).build()
    ground = legged.ground.Ground(legged.ground.KelvinVoigt(5e4, 300.0), legged.ground.Frictionless())
    h = largest_stable_step(robot, ground, robot.neutral(), legged.SemiImplicitEuler)
    assert h * h * 5e4 / 2.0 + 2.0 * h * 300.0 / 2.0 == pytest.approx(4.0, rel=1e-6)
    assert largest_stable_step(robot, None, robot.neutral(), legged.SemiImplicitEuler) == np.inf


def test_coarse_steps_are_warned_about():
    robot, q = standing()
    options = {"q": q, "until": 0.01, "ground": realistic_ground(robot)}
    with pytest.warns(SimulationWarning, match=r"a step of 0\.002 s is too long for this ground.* take 0\.000"):
        legged.simulate(robot, hold, integrator=legged.SemiImplicitEuler(2e-3), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        legged.simulate(robot, hold, integrator=legged.SemiImplicitEuler(1e-4), **options)


def test_run_tells_which_integrator_was_chosen_and_why():
    robot, q = standing()
    options = {"q": q, "until": 0.01, "ground": realistic_ground(robot)}
    assert "BDF(" in (words := legged.simulate(robot, hold, **options).integrator)
    assert words.endswith("(chosen for compliant ground and a continuous controller)")
    held = legged.simulate(robot, ZeroOrderHold(hold, 500.0), **options).integrator
    assert held == "SemiImplicitEuler(step=0.0001) (chosen for a controller with a discrete update)"
    given = legged.SemiImplicitEuler(1e-4)
    assert legged.simulate(robot, hold, integrator=given, **options).integrator == str(given)
