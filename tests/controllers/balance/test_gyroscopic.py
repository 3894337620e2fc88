"""Gyroscopic balance: closed forms by hand, derivatives of the momentum, poles, pushes, and robots that it needs."""

import numpy as np
import pytest

import legged
import robots
from controllers import GyroscopicBalance
from controllers.balance.planar import PlanarBalance, PlanarBalanceControl
from legged.errors import DefinitionError, SingularError

ROBOT, SPIN = robots.gyroscopic_pendulum(), 600.0  # [rad/s]
AXIAL = 0.5 * 0.5 * 0.05**2  # m r^2 / 2 of the wheel
STEPS = legged.RungeKutta4(step=1e-3)


def simulated(control, q, v, until=3.0, **options):
    run = legged.simulate(control.robot, control, until=until, q=q, v=v, integrator=STEPS, sample=0.01, **options)
    assert run.ended == ""
    return run


def test_momentum_and_time_constant_by_hand():
    """The moving parts: a rod of 1 kg and 0.5 m, a gimbal of 0.1 kg and a wheel of 0.5 kg at 0.4 m."""
    control, angle, rate = GyroscopicBalance(ROBOT), 0.3, 0.7
    across = 0.5 * (0.05**2 / 4 + 0.02**2 / 12)  # m (r^2 / 4 + w^2 / 12) of the wheel
    gimbal = 0.1 * (0.12**2 + 0.02**2) / 12
    wheel = AXIAL * np.sin(angle) ** 2 + across * np.cos(angle) ** 2
    H11 = 1.0 * 0.5**2 / 3 + gimbal + 0.6 * 0.4**2 + wheel
    q, v = np.array([0.0, angle, 0.2]), np.array([rate, 0.0, SPIN])
    expected = H11 * rate + AXIAL * SPIN * np.sin(angle)
    assert control.momentum(q, v)[0] == pytest.approx(expected, rel=1e-12)
    moment = 9.81 * (1.0 * 0.25 + 0.6 * 0.4)
    assert control.time_constant(q) == pytest.approx(np.sqrt(H11 / moment), rel=1e-12)
    assert control.wheel_momentum(q, v) == pytest.approx(AXIAL * (SPIN + rate * np.sin(angle)), rel=1e-12)


@pytest.mark.parametrize("pivot", ["y", "-y"])
def test_the_momentum_and_its_derivatives_along_a_motion_with_a_free_gimbal(pivot):
    builder, parent = legged.RobotBuilder("turned", legged.Link("ground"), base=legged.FixedBase()), "ground"
    for name, link, axis, at in (
        ("pivot", "pole", pivot, 0.0),
        ("gimbal", "gimbal", "z", 0.4),
        ("wheel", "wheel", "x", 0),
    ):
        body = legged.Link(link, ROBOT.link(link).inertia)
        builder.add(legged.Revolute(name, axis), body, to=parent, at=(0.2 * (name == "pivot"), 0.0, at))
        parent = link
    robot = builder.build()
    control, h = GyroscopicBalance(robot), 1e-4
    q, v = np.array([0.2, 0.4, 0.0]), np.array([0.3, -0.5, 50.0])
    ends = []
    for sign in (1, -1):
        steps = legged.RungeKutta4(step=h / 10)
        back = v if sign > 0 else -v  # time runs backward with the velocities
        run = legged.simulate(robot, lambda t, q, v, w: 0.0 * v, until=h, q=q, v=back, integrator=steps, sample=h)
        ends.append(control.momentum(run.q[-1], sign * run.v[-1]))
    slopes = (ends[0] - ends[1]) / (2 * h)
    assert slopes[:3] == pytest.approx(control.momentum(q, v)[1:], rel=1e-5)  # differences: h^2


def test_the_plant_is_that_of_planar_balance_with_the_momentum_of_the_wheel_for_the_motion():
    """Upright, s h sin(gamma) = L - T_c^2 L'': the center of mass moves by -c_z h sin(gamma) / H11 where L is zero."""
    control, q = GyroscopicBalance(ROBOT), np.array([0.0, 0.4, 0.0])
    v = np.array([0.3, 0.0, SPIN])
    L, _, L2, _ = control.momentum(q, v)
    wheel = AXIAL * SPIN * np.sin(0.4)
    assert wheel == pytest.approx(L - control.time_constant(q) ** 2 * L2, rel=1e-10)
    gains = legged.velocity_gains(ROBOT, q, action={"gimbal": 1.0}, passive=["pivot", "wheel"])
    assert gains.linear[:, 0] == pytest.approx([0.0, 0.0, 0.0], abs=1e-15)  # the rate of the gimbal has no gain
    H11 = legged.inertia_matrix(ROBOT, q)[0, 0]
    v[0] = -wheel / H11
    c_z = (1.0 * 0.25 + 0.6 * 0.4) / 1.6
    assert control.momentum(q, v)[2] / control.weight == pytest.approx(-c_z * wheel / H11, rel=1e-10)


@pytest.mark.parametrize("angle", [0.0, 0.5])
def test_the_momentum_returns_with_four_equal_poles(angle):
    control, pole = GyroscopicBalance(ROBOT, command=angle, pole=5.0), 5.0
    run = simulated(control, np.array([0.04, 0.2, 0.0]), np.array([-0.1, 0.3, SPIN]))
    L = np.array([control.momentum(q, v)[0] for q, v in zip(run.q, run.v, strict=True)])
    L -= AXIAL * SPIN * np.sin(angle)
    t = run.times
    modes = np.exp(-pole * t)[:, None] * t[:, None] ** np.arange(4)
    fit = modes @ np.linalg.lstsq(modes, L, rcond=None)[0]
    # The wheel's momentum at the command changes with the turning body: AXIAL q1' sin(gamma), 1e-3 of L.
    assert np.abs(fit - L).max() < (1e-6 if angle == 0.0 else 2e-3) * np.abs(L).max()
    assert run.q[-1, :2] == pytest.approx([0.0, angle], abs=1e-4)
    assert np.abs(run.tau[:, [0, 2]]).max() == 0.0  # only the gimbal has a motor


def test_a_push_is_balanced_by_the_gyroscope_and_not_without_it():
    push = legged.Push("pole", (0.05, 0.0, 0.0), 0.5, point=(0.0, 0.0, 0.5))
    q, v = np.zeros(3), np.array([0.0, 0.0, SPIN])
    run = simulated(GyroscopicBalance(ROBOT), q, v, until=4.0, pushes=[push])
    assert np.abs(run.q[:, 0]).max() > 0.01
    assert run.q[-1, :2] == pytest.approx([0.0, 0.0], abs=1e-4)
    free = legged.simulate(
        ROBOT, lambda t, q, v, w: 0.0 * v, until=2.0, q=q, v=np.zeros(3), integrator=STEPS, pushes=[push]
    )
    assert abs(free.q[-1, 0]) > 1.0  # it topples


def test_a_reaction_wheel_is_a_balancing_motion():
    """Its gain is -c_z J / H11 by hand; the four-term law returns the wheel to its angle after a push."""
    robot = robots.reaction_wheel_pendulum()
    model = PlanarBalance(robot, {"wheel": 1.0})
    H11 = 1.0 * 0.5**2 / 3 + 0.1 * (0.12**2 + 0.02**2) / 12 + 0.6 * 0.4**2 + AXIAL
    c_z = (1.0 * 0.25 + 0.6 * 0.4) / 1.6
    at = model.state(np.zeros(2), np.zeros(2))
    assert at.gain == pytest.approx(-c_z * AXIAL / H11, rel=1e-12)
    push = legged.Push("pole", (0.05, 0.0, 0.0), 0.5, point=(0.0, 0.0, 0.5))
    run = legged.simulate(robot, PlanarBalanceControl(model), until=6.0, integrator=STEPS, pushes=[push])
    assert np.abs(run.v[:, 1]).max() > 20.0  # [rad/s]
    assert run.q[-1] == pytest.approx([0.0, 0.0], abs=1e-2)


def test_robots_that_it_cannot_balance_are_named():
    with pytest.raises(DefinitionError, match="three joints in a chain"):
        GyroscopicBalance(robots.reaction_wheel_pendulum())
    weightless = ROBOT.edit().change_robot(gravity=(0.0, 0.0, 0.0)).build()
    with pytest.raises(DefinitionError, match="has no gravity"):
        GyroscopicBalance(weightless)
    load = legged.Link("load", legged.point_mass(0.2))
    loaded = ROBOT.edit().add(legged.Fixed("clamp"), load, to="gimbal", at=(0.05, 0.0, 0.05)).build()
    with pytest.raises(DefinitionError, match="is not balanced"):
        GyroscopicBalance(loaded)
    builder = legged.RobotBuilder("parallel", legged.Link("ground"), base=legged.FixedBase())
    for parent, name in (("ground", "a"), ("a", "b"), ("b", "c")):
        builder.add(
            legged.Revolute(name + "_joint", "y"), legged.Link(name, legged.box_inertia(1, (1, 1, 1))), to=parent
        )
    with pytest.raises(DefinitionError, match="axes normal"):
        GyroscopicBalance(builder.build())
    with pytest.raises(SingularError, match="wheel does not spin"):
        GyroscopicBalance(ROBOT)(0.0, np.zeros(3), np.zeros(3))
