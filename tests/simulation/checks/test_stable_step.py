"""Laws of the choice of integrator and step on compliant ground."""

import warnings

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers import Delay, SensorNoise, SwitchedLaw, ZeroOrderHold
from legged.errors import DivergenceError, SimulationWarning
from legged.ground import paper_ground, realistic_ground
from legged.simulation.checks.stable_step import largest_stable_step


def hold(t, q, v, wrenches):
    return -100.0 * (q[7:] - 0.1) - v[6:]


def upright(t, q, v, wrenches):
    """A servo for the planar hopper."""
    return np.stack([-40.0 * q[3] - 2.0 * v[3], -2000.0 * q[4] - 60.0 * v[4]])


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
    assert final_speed(4.0 * h) > 5.0 * rest


@pytest.mark.parametrize(("stiffness", "damping"), [(5e4, 300.0), (1.0, 0.0)])  # [N/m], [N s/m]
def test_point_mass_has_the_limit_of_its_spring_and_damper(stiffness, damping):
    """One point with spring and damper at the center of a mass: h^2 k / m + 2 h d / m = 4."""
    link = legged.Link("m", legged.box_inertia(2.0, (0.1, 0.1, 0.1)), contacts={"p": (0.0, 0.0, 0.0)})
    robot = legged.RobotBuilder("point", link).build()
    ground = legged.ground.Ground(legged.ground.KelvinVoigt(stiffness, damping), legged.ground.Frictionless())
    h = largest_stable_step(robot, ground, robot.neutral(), legged.SemiImplicitEuler)
    assert h * h * stiffness / 2.0 + 2.0 * h * damping / 2.0 == pytest.approx(4.0, rel=1e-6)
    assert largest_stable_step(robot, None, robot.neutral(), legged.SemiImplicitEuler) == np.inf


def test_a_mass_on_a_spring_oscillates_without_end_where_steps_are_warned_about():
    """The limit is the solution of h^2 k / m + 2 h d / m = 4: steps below it let the mass come to rest, others do not.

    The warning comes from a fifth beyond the limit on, as the motion near it grows so slowly that it settles elsewhere.
    """
    mass, k, d = 2.0, 5e4, 300.0  # [kg], [N/m], [N s/m]
    link = legged.Link("m", legged.box_inertia(mass, (0.1, 0.1, 0.1)), contacts={"p": (0.0, 0.0, 0.0)})
    robot = legged.RobotBuilder("point", link).build()
    ground = legged.ground.Ground(legged.ground.KelvinVoigt(k, d), legged.ground.Frictionless())
    h = (np.sqrt(d * d + 4.0 * k * mass) - d) / k
    depth = 9.81 * mass / k

    def last_speed(step):
        q = robot.neutral()
        q[6] = -1.01 * depth  # the spring presses all the time
        sim = legged.Simulation(robot, ground=ground, q=q, integrator=legged.SemiImplicitEuler(step))
        sim.step(n=2000)
        return abs(sim.v[5])

    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        assert last_speed(0.97 * h) < 1e-12  # [m/s]
        assert legged.Simulation(robot, ground=ground, integrator=legged.SemiImplicitEuler(1.15 * h)).warnings == ()
    for factor in (1.25, 1.6):
        with pytest.warns(SimulationWarning, match="is too long for this ground"):
            assert last_speed(factor * h) > 1e-3  # [m/s]


def test_coarse_steps_are_warned_about():
    robot, q = standing()
    options = {"q": q, "until": 0.01, "ground": realistic_ground(robot)}
    with pytest.warns(SimulationWarning, match=r"a step of 0\.002 s is too long for this ground.* take 0\.000"):
        legged.simulate(robot, hold, integrator=legged.SemiImplicitEuler(2e-3), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        legged.simulate(robot, hold, integrator=legged.SemiImplicitEuler(1e-4), **options)


def test_reaction_of_the_controller_to_contact_forces_counts():
    """Computed torque compensates the contact forces at the joints: only the base yields, and longer steps are stable.

    Without the reaction the light feet of the biped would limit the step to 0.06 ms. Energy lost or gained in 0.3 s
    stays below 1 % of the work of the actuators up to the limit.
    """
    robot = robots.planar_biped()
    law, ground = controllers.ComputedTorque(controllers.Walk(period=0.5)), realistic_ground(robot)
    assert largest_stable_step(robot, ground, law.initial_state(robot)[0], legged.SemiImplicitEuler) < 1e-4
    options = {"ground": ground, "until": 0.3, "fall": False}
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        run = legged.simulate(robot, law, integrator=legged.SemiImplicitEuler(7e-4), **options)
    assert run.energy_drift < 0.01 * np.abs(run.energy.actuator_work).max()
    with pytest.warns(SimulationWarning, match="feet in contact are stable up to"):
        legged.simulate(robot, law, integrator=legged.SemiImplicitEuler(4e-3), **options)


def test_a_standing_robot_without_reaction_is_warned_about_in_every_function():
    """The step of 0.5 ms, at which a quadruped under a servo does not come to rest on the default realistic ground."""
    robot, q = standing()
    options = {"q": q, "ground": realistic_ground(robot), "integrator": legged.SemiImplicitEuler(5e-4)}
    words = r"a step of 0\.0005 s is too long for this ground: feet in contact are stable up to 0\.00039 s"
    with pytest.warns(SimulationWarning, match=words) as caught:
        run = legged.simulate(robot, hold, until=0.02, **options)
        runs = legged.rollout(robot, hold, until=0.02, **options)
        sim = legged.Simulation(robot, hold, **options)
        sim.step(n=40)
    assert len(caught) == 3 and {w.filename for w in caught} == {__file__}
    assert run.warnings == runs.warnings == sim.warnings == runs.run(0).warnings == (str(caught[0].message),)


@pytest.mark.parametrize(
    "law",
    [
        Delay(upright, 0.004),
        SensorNoise(upright, velocity=1e-3),
        ZeroOrderHold(upright, 500.0),
        SwitchedLaw([upright, upright], lambda now, t, q, v, w: np.maximum(now, legged.where(t > 0.005, 1.0, 0.0))),
        SwitchedLaw([upright, Delay(upright, 0.004)], [0.005]),
    ],
    ids=["delay", "noise", "hold", "switched by state", "switched by time"],
)
def test_controllers_with_an_update_have_fixed_steps_by_default(law):
    robot = robots.planar_hopper()
    q = robot.neutral()
    q[2] = 0.62  # [m]
    for ground in (None, paper_ground(robot), legged.Rigid()):
        run = legged.simulate(robot, law, q=q, until=0.01, ground=ground)
        kind = "TimeStepping(step=0.001) (chosen for rigid ground)"
        if not isinstance(ground, legged.Rigid):
            kind = "SemiImplicitEuler(step=0.0001) (chosen for a controller with a discrete update)"
        assert run.integrator == kind and run.duration == 0.01 and run.warnings == ()


def test_run_tells_which_integrator_was_chosen_and_why():
    robot, q = standing()
    options = {"q": q, "until": 0.01, "ground": realistic_ground(robot)}
    assert "BDF(" in (words := legged.simulate(robot, hold, **options).integrator)
    assert words.endswith("(chosen for compliant ground and a continuous controller)")
    held = legged.simulate(robot, ZeroOrderHold(hold, 500.0), **options).integrator
    assert held == "SemiImplicitEuler(step=0.0001) (chosen for a controller with a discrete update)"
    given = legged.SemiImplicitEuler(1e-4)
    assert legged.simulate(robot, hold, integrator=given, **options).integrator == str(given)
