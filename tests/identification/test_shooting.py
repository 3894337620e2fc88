"""Sensitivities of simulated windows against closed forms and difference quotients."""

import dataclasses

import numpy as np
import pytest
from identification.pendulums import INERTIA, double_pendulum, sweep, turntable

import legged
from legged.identification import Log, Model, Motors, Parameter
from legged.identification.shooting import Window


def _decay(t: np.ndarray, damping: float, armature: float, speed: float, torque: float) -> np.ndarray:
    """Return the angle of (I + a) w' = torque - d w from rest at zero with a first speed, by its closed form."""
    rate = damping / (INERTIA + armature)
    rest = torque / damping
    return rest * t + (speed - rest) / rate * (1.0 - np.exp(-rate * t))


def _sensitivities(period: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (angle and its derivatives by speed, damping and armature at 0.2 s, the closed form), (4,) each."""
    robot, speed, torque = turntable(), 2.0, 0.5
    times = period * np.arange(round(0.2 / period) + 1)
    log = Log(times, ("axis",), np.zeros((len(times), 1)), torques=np.full((len(times), 1), torque))
    model = Model(robot, {f"robot.axis.{name}": Parameter() for name in ("damping", "armature")}, time_step=period)
    shooting = model._shooting(log, [Window(0, len(times) - 1, 0, len(times) - 1)])
    simulated = shooting.simulate(np.zeros((1, 1)), np.full((1, 1), speed), model.parameters.nominal)
    assert simulated.jacobian is not None
    computed = np.array([simulated.q[-1, 0, 0], *simulated.jacobian[0, 0, -1, 0, 1:]])
    exact = [_decay(0.2, 0.3, 0.02, speed, torque)]
    for i, h in ((2, 1e-5), (0, 1e-5), (1, 1e-5)):
        given = np.array([0.3, 0.02, speed])
        step = h * (np.arange(3) == i)
        exact.append((_decay(0.2, *(given + step), torque) - _decay(0.2, *(given - step), torque)) / (2 * h))
    return computed, np.array(exact)


def test_sensitivities_of_a_damped_body_approach_the_closed_form_with_second_order():
    errors = [np.abs(np.subtract(*_sensitivities(period))) for period in (0.01, 0.005)]
    assert (errors[0] < 2e-3 * np.array([1.0, 1.0, 1.0, 10.0])).all()
    np.testing.assert_allclose(errors[0] / errors[1], 4.0, rtol=0.05)  # h^2; the next order is h^4 at h d / J = 0.04


@pytest.fixture(scope="module")
def pendulum() -> Model:
    robot = double_pendulum(damping=0.05, armature=0.01, friction=0.02, effort=6.0, speed=20.0, stiffness=0.5)
    names = ("armature", "damping", "friction", "stiffness", "effort", "speed")
    parameters = {f"robot.upper_joint.{name}": Parameter() for name in names}
    parameters |= {"robot.lower.inertia": Parameter(), "motors.*.delay": Parameter(0.012, 0.0, 0.05)}
    parameters |= {"motors.lower_joint.kp": Parameter(), "motors.lower_joint.kd": Parameter()}
    parameters |= {"sensors.upper_joint.offset": Parameter(0.01), "motors.upper_joint.gain": Parameter(0.9)}
    return Model(robot, parameters, motors=Motors(kp=8.0, kd=0.4))


def test_sensitivities_to_every_kind_of_parameter_are_difference_quotients(pendulum):
    log = sweep(pendulum.robot, 0.3)
    shooting = pendulum._shooting(log, [Window(0, 30, 0, 30), Window(30, 60, 0, 30)])
    p = pendulum.parameters.nominal
    q, v = np.array([[0.3, -0.2], [0.1, 0.4]]), np.array([[1.0, -2.0], [0.5, 1.5]])

    def readings(p: np.ndarray) -> np.ndarray:
        return shooting.simulate(q, v, p, with_derivatives=False).residual

    simulated = shooting.simulate(q, v, p).jacobian
    assert simulated is not None
    J = np.zeros((2, 31, 2, 4 + len(p)))
    J[..., shooting.blocks.column[0]] = simulated[:, 0, :, :, 4:]  # one block, four states
    for i, name in enumerate(pendulum.parameters.names):
        h = 1e-6
        step = h * (np.arange(len(p)) == i)
        expected = ((readings(p + step) - readings(p - step)) / (2 * h)).swapaxes(0, 1)
        # Rounding of a difference quotient 1e-10; a switch of a limit or of a sample within the step changes 1e-5.
        np.testing.assert_allclose(J[..., 4 + i], expected, atol=2e-5 * max(1.0, np.abs(expected).max()), err_msg=name)


def test_legs_on_a_fixed_base_are_separate_blocks():
    builder = legged.RobotBuilder("legs", legged.Link("ground"), base=legged.FixedBase())
    for side in ("left", "right"):
        inertia = legged.Inertia(1.0, (0.0, 0.0, -0.1), np.diag([0.01, 0.01, 0.01]))
        builder.add(legged.Revolute(f"{side}_hip", "y"), legged.Link(side, inertia), to="ground")
    robot = builder.build()
    model = Model(robot, {f"robot.{s}_hip.damping": Parameter(0.1, 0.0, 1.0) for s in ("left", "right")})
    log = sweep(robot, 0.1)
    shooting = model._shooting(dataclasses.replace(log, torques=log.desired, desired=None), [Window(0, 20, 0, 20)])
    assert shooting.blocks.count == 2
    assert shooting.blocks.states == 2 and shooting.blocks.columns == 1


def test_the_error_of_a_step_with_velocity_products_has_second_order():
    robot = double_pendulum(damping=0.05, armature=0.01)
    commands, results = sweep(robot, 0.6, period=0.02, size=2.0), []
    for time_step in (5e-3, 2.5e-3, 3.125e-4):
        model = Model(robot, {"robot.*.damping": Parameter()}, motors=Motors(kp=8.0, kd=0.4), time_step=time_step)
        results.append(model.predict(commands).positions)
    coarse, fine = (np.abs(x - results[2]).max() for x in results[:2])
    assert coarse / fine == pytest.approx(4.0, rel=0.15)  # (1 - 1/256) / (1/4 - 1/256) is 4.05; the next order is h^3
