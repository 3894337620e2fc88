"""Joint servos whose gains fixed time steps integrate implicitly."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import legged
import robots
from controllers import JointPD, Posture, Stand, ZeroOrderHold
from legged.contact import Rigid
from legged.errors import DivergenceError
from legged.ground import realistic_ground

M, L = 2.0, 0.5
"""Mass [kg] and length [m] of a pendulum without gravity, a point mass; its inertia is M L^2."""


def pendulum(**physics):
    trunk = legged.Link("post", legged.point_mass(1.0))
    builder = legged.RobotBuilder("pendulum", trunk, base=legged.FixedBase(), gravity=(0, 0, 0))
    joint = legged.Revolute("hinge", "y", physics=legged.JointPhysics(**physics))
    return builder.add(joint, legged.Link("arm", legged.point_mass(M, (0, 0, -L))), to="post").build()


def servo(kp, kd, at=0.0):
    return JointPD(Posture(np.array([at])), kp=kp, kd=kd)


INTEGRATORS = {
    "semi-implicit": ({}, legged.SemiImplicitEuler),
    "time stepping": ({"ground": Rigid()}, legged.TimeStepping),
}


def test_a_step_solves_the_linear_equation_of_the_servo_at_its_end():
    """(I + h K_d + h^2 K_p) v' = I v - h K_p q, and q' = q + h v'."""
    kp, kd, h, q, v, inertia = 3e3, 40.0, 1e-2, 0.3, -0.7, M * L**2
    run = legged.simulate(
        pendulum(), servo(kp, kd), q=[q], v=[v], until=h, sample=h, integrator=legged.SemiImplicitEuler(h)
    )
    after = (inertia * v - h * kp * q) / (inertia + h * kd + h**2 * kp)
    np.testing.assert_allclose([run.v[-1, 0], run.q[-1, 0]], [after, q + h * after], rtol=1e-12)


@pytest.mark.parametrize("kind", INTEGRATORS)
def test_no_gain_is_too_stiff_for_a_step(kind):
    options, integrator = INTEGRATORS[kind]
    run = legged.simulate(
        pendulum(), servo(1e7, 1e4), q=[0.5], until=0.5, sample=0.01, integrator=integrator(0.01), **options
    )
    assert np.abs(run.q[-1]).max() < 1e-6 and np.abs(run.v[-1]).max() < 1e-6
    assert run.warnings == ()


@pytest.mark.parametrize("kind", INTEGRATORS)
def test_the_solution_converges_to_the_exact_one_with_its_order(kind):
    """The exact motion is a damped oscillation; the error of both rules is of first order in the step."""
    options, integrator = INTEGRATORS[kind]
    kp, kd, inertia = 50.0, 1.0, M * L**2
    rate, omega = kd / (2 * inertia), np.sqrt(kp / inertia - (kd / (2 * inertia)) ** 2)
    exact = np.exp(-rate) * (np.cos(omega) + rate / omega * np.sin(omega)) * 0.2
    errors = []
    for h in (2e-3, 1e-3):
        run = legged.simulate(
            pendulum(), servo(kp, kd), q=[0.2], until=1.0, sample=0.1, integrator=integrator(h), **options
        )
        errors.append(run.q[-1, 0] - exact)
    assert abs(errors[1]) < 0.01 and errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("kind", INTEGRATORS)
def test_a_motor_at_its_limit_gives_the_limit(kind):
    options, integrator = INTEGRATORS[kind]
    run = legged.simulate(
        pendulum(effort=3.0), servo(1e5, 1e2), q=[1.0], until=0.1, sample=0.01, integrator=integrator(1e-3), **options
    )
    np.testing.assert_allclose(run.v[:, 0], -3.0 / (M * L**2) * run.times, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", INTEGRATORS)
def test_a_motor_at_its_limit_stops_a_light_link(kind):
    """In a step the limit of 35 N m changes the velocity of this link, an ankle of a humanoid, by 175 rad/s."""
    options, integrator = INTEGRATORS[kind]
    ankle = pendulum(effort=35.0).edit().change_link("arm", inertia=legged.point_mass(5e-4, (0, 0, -1.0))).build()
    run = legged.simulate(
        ankle, servo(140.0, 2.8), q=[0.0], v=[87.5], until=0.3, sample=0.1, integrator=integrator(2.5e-3), **options
    )
    assert np.abs(run.v[-1]).max() < 1e-3 and np.abs(run.q[-1]).max() < 1e-3


def test_a_reference_that_moves_is_followed():
    """The gains act on the error: a constant velocity of the reference is reached without lag."""

    class Ramp:
        implicit_gains = np.array([1e6]), np.array([1e3])

        def torque(self, t, phase, q, v, wrenches, memory):
            return 1e6 * (0.4 * t - q) + 1e3 * (0.4 - v)

    run = legged.simulate(pendulum(), Ramp(), q=[0.0], v=[0.0], until=0.5, integrator=legged.SemiImplicitEuler(5e-3))
    np.testing.assert_allclose(run.q[-1], 0.2, atol=1e-6)
    np.testing.assert_allclose(run.v[-1], 0.4, atol=1e-6)


def test_a_sampled_servo_states_no_gains():
    """Between its samples a held torque does not react, so that the same stiff gains diverge."""
    held = ZeroOrderHold(servo(1e5, 10.0), rate=100.0)
    with pytest.raises(DivergenceError):
        legged.simulate(pendulum(), held, q=[0.1], until=2.0, integrator=legged.SemiImplicitEuler(1e-3))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("rigid", [False, True])
def test_stiff_servos_hold_a_quadruped_on_both_grounds_at_rest(rigid, compiled):
    robot = robots.spatial_quadruped()
    ground = Rigid(0.8) if rigid else realistic_ground(robot)
    integrator = legged.TimeStepping(2e-3) if rigid else legged.SemiImplicitEuler(2.5e-4)
    law = JointPD(Stand(hip_height=0.5), kp=2e4, kd=300.0)
    run = legged.simulate(robot, law, ground=ground, until=0.2, integrator=integrator, compiled=compiled)
    assert np.abs(run.v[-1]).max() < 2e-3 and run.warnings == ()
    weight = run.contacts.forces[-1, :, 2].sum()
    assert weight == pytest.approx(robot.mass * 9.81, rel=0.02)


@pytest.mark.parametrize("rigid", [False, True])
def test_rollouts_and_stepping_move_alike(rigid):
    robot = robots.spatial_quadruped()
    ground = Rigid(0.8) if rigid else realistic_ground(robot)
    integrator = legged.TimeStepping(1e-3) if rigid else legged.SemiImplicitEuler(2.5e-4)
    law = JointPD(Stand(hip_height=0.5), kp=5e3, kd=100.0)
    options = {"ground": ground, "integrator": integrator}
    until = 20 * integrator.step
    run = legged.simulate(robot, law, until=until, sample=until, **options)
    members = legged.rollout(robot, law, until=until, sample=until, vary={"controller.kp": [4e3, 5e3]}, **options)
    sim = legged.Simulation(robot, law, ground=ground, integrator=integrator)
    sim.reset(run.q[0], run.v[0])
    sim.step(n=20)
    close = partial(np.testing.assert_allclose, rtol=0.0, atol=1e-11)
    close(members.v[1, -1], run.v[-1])
    close(sim.v, run.v[-1])
