"""Bending and swiveling of a spatial robot on a point: plants, decoupling, laws of momentum, commands followed."""

from functools import cache

import numpy as np
import pytest

import legged
from controllers import BendSwivelBalance, BendSwivelControl
from controllers.balance.planar import PlanarBalance, PlanarBalanceControl, StepCommand
from legged.errors import ArgumentError, DefinitionError, NotFiniteError
from robots import bend_swivel_robot

ROBOT = bend_swivel_robot()
MODEL = BendSwivelBalance(ROBOT)
STEPS = legged.RungeKutta4(2e-3)
CROUCH = StepCommand((0.5, 2.5), (1.5, 0.0))


def planar_robot():
    """Return the robot with hinges about y in place of its two joints."""
    builder = legged.RobotBuilder("planar", legged.Link("ground"), base=legged.FixedBase())
    builder.add(legged.Revolute("pivot", "y"), link("leg"), to="ground")
    return builder.add(legged.Revolute("hip", "y"), link("trunk"), to="leg", at=(0.0, 0.0, 0.5)).build()


def link(name):
    return legged.Link(name, ROBOT.link(name).inertia)


def asymmetric_robot():
    """Return the robot with a load on one side of the trunk."""
    editor = ROBOT.edit()
    load = legged.Link("load", legged.point_mass(0.3))
    return editor.add(legged.Fixed("strap"), load, to="trunk", at=(0.1, 0.05, 0.4)).build()


def random_state(model, seed, size=0.3):
    rng = np.random.default_rng(seed)
    q = model.balanced(rng.uniform(0.3, 2.0), rng.uniform(-np.pi, np.pi))
    return legged.integrate(model.robot, q, size * rng.normal(size=5)), rng.normal(size=5), rng


@pytest.mark.parametrize("bend", [0.0, 0.5, 1.5, 2.4])
@pytest.mark.parametrize("direction", [0.0, 2.0])
def test_bending_is_the_planar_balance_of_the_robot_with_hinges(bend, direction):
    planar = PlanarBalance(planar_robot(), {"hip": 1.0})
    expected = planar.state(planar.balanced(np.array([bend])), np.zeros(2))
    state = MODEL.state(MODEL.balanced(bend, direction), np.zeros(5), direction)
    for name in ("Y1", "Y2", "gain", "time_constant"):
        assert getattr(state.bend, name) == pytest.approx(getattr(expected, name), rel=1e-12)
    assert (state.bend.q2, state.swivel.q2) == pytest.approx((bend, direction), abs=1e-4 if bend else 1e-12)


def test_a_straight_robot_has_the_same_plant_in_every_direction():
    plants = [MODEL.state(MODEL.balanced(0.0), np.zeros(5), direction) for direction in (0.0, 1.0)]
    for state in plants:
        assert state.swivel.gain == pytest.approx(state.bend.gain, rel=1e-12)
        assert state.swivel.time_constant == pytest.approx(plants[0].bend.time_constant, rel=1e-12)


@pytest.mark.parametrize("robot", [ROBOT, asymmetric_robot()], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("seed", range(3))
def test_momentum_its_derivatives_and_both_plants_along_a_driven_motion(robot, seed):
    model = BendSwivelBalance(robot)
    q, v, rng = random_state(model, seed)
    tau, h = np.concatenate([np.zeros(3), rng.normal(size=2)]), 1e-5
    vdot = legged.forward_dynamics(robot, q, v, tau)
    direction = float(model.state(q, v).swivel.q2)
    at = model.state(q, v, direction)
    moved = [(legged.integrate(robot, q, s * (v + s / 2 * vdot)), v + s * vdot) for s in (h, -h)]
    ahead, behind = (model.state(*state, direction) for state in moved)
    weight, up, tolerance = model.weight, np.array([0.0, 0.0, 1.0]), 1e-7 * model.weight  # central differences
    slope = (ahead.momentum - behind.momentum) / (2 * h)
    assert at.axes @ up == pytest.approx([0.0, 0.0], abs=1e-12)  # both axes are level
    assert at.axes @ at.axes.T == pytest.approx(np.eye(2), abs=1e-12)
    assert slope == pytest.approx(weight * np.cross(up, model.center(q)), abs=tolerance)  # the moment of gravity
    c_rate = (model.center(moved[0][0]) - model.center(moved[1][0])) / (2 * h)
    for axis, state in zip(at.axes, (at.bend, at.swivel), strict=True):
        assert axis @ at.momentum == pytest.approx(state.L, abs=1e-12)
        assert axis @ slope == pytest.approx(state.L1, abs=tolerance)
        assert weight * axis @ np.cross(up, c_rate) == pytest.approx(state.L2, abs=tolerance)
        plant = state.Y1 * state.L + state.Y2 * state.L2 + state.Y3
        assert state.q2_rate == pytest.approx(plant, abs=1e-10 * (1.0 + abs(state.Y1 * state.L)))
    bend_rate = (ahead.bend.q2 - behind.bend.q2) / (2 * h)
    swivel_rate = 2.0 * np.sin(at.bend.q2 / 2.0) * (ahead.swivel.q2 - behind.swivel.q2) / (2 * h)
    assert at.bend.q2_rate == pytest.approx(bend_rate, abs=1e-6)
    assert at.swivel.q2_rate == pytest.approx(swivel_rate, rel=1e-3)  # the share of the given direction is 6e-4 at most


@pytest.mark.parametrize("direction", [0.3, 0.9])
def test_bending_and_swiveling_do_not_disturb_each_other_if_the_links_are_symmetric(direction):
    state = MODEL.state(MODEL.balanced(1.2, direction), np.zeros(5), direction)
    assert np.abs(state.coupling).max() < 1e-15
    assert min(abs(state.bend.gain), abs(state.swivel.gain)) > 0.01


def test_the_mass_of_the_ground_changes_nothing():
    ground = legged.Link("ground", legged.point_mass(2.0, (0.4, -0.3, 0.2)))
    heavy = legged.RobotBuilder("on a heavy ground", ground, base=legged.FixedBase())
    heavy.add(legged.Spherical("support"), link("leg"), to="ground")
    heavy.add(legged.ConstantVelocity("hip"), link("trunk"), to="leg", at=(0.0, 0.0, 0.5))
    model = BendSwivelBalance(heavy.build())
    q, v, _ = random_state(MODEL, 1)
    assert model.mass == pytest.approx(1.5) and model.center(q) == pytest.approx(MODEL.center(q), abs=1e-14)
    one, other = (each.state(q, v, 0.3) for each in (model, MODEL))
    assert one.momentum == pytest.approx(other.momentum, abs=1e-12)
    for pair in zip((one.bend, one.swivel), (other.bend, other.swivel), strict=True):
        assert pair[0] == pytest.approx(pair[1], rel=1e-10, abs=1e-12)
    assert model.balanced(1.2, 0.3) == pytest.approx(MODEL.balanced(1.2, 0.3), abs=1e-14)


def test_a_load_on_one_side_couples_bending_and_swiveling():
    model = BendSwivelBalance(asymmetric_robot())
    assert np.abs(model.state(model.balanced(1.2, 0.3), np.zeros(5), 0.3).coupling).max() > 1e-3


@pytest.mark.parametrize("bend", [0.6, 1.5, 2.2])
def test_steady_swiveling_turns_the_bending_plane_by_the_ratio_of_the_inertias(bend):
    """L about the vertical is zero: I_zz psi' = -(J_leg e_leg,z + J_trunk e_trunk,z) spin, with equal spins of both."""
    q, spin = MODEL.balanced(bend, 0.4), 1.3
    R, _ = legged.link_poses(ROBOT, q)
    leg, trunk = R[1][:, 2], R[2][:, 2]
    inertia = legged.inertia_matrix(ROBOT, q)[:3, :3]
    vertical = R[1].T @ [0.0, 0.0, 1.0]
    J = [0.5 * 0.5 * 0.04**2, 0.5 * 1.0 * 0.15**2]  # m r^2 / 2
    turning = -(J[0] * leg[2] + J[1] * trunk[2]) * spin / (vertical @ inertia @ vertical)
    at = MODEL.equations(q, np.zeros(5))
    rates = np.linalg.solve(MODEL.bending(q, at, 0.4).rates, [0.0, -2.0 * np.sin(bend / 2.0) * spin])
    v = np.concatenate([turning * vertical + spin * np.array([0.0, 0.0, 1.0]), rates])
    state = MODEL.state(q, v, 0.4)
    assert state.momentum[2] == pytest.approx(0.0, abs=1e-14)
    assert legged.link_twists(ROBOT, q, v)[2, 2] == pytest.approx(turning * trunk[2] + spin, abs=1e-12)
    assert pytest.approx((0.0, 0.0), abs=1e-12) == (state.bend.L2, state.swivel.L2)  # c' = 0
    assert state.swivel.q2_rate == pytest.approx(state.swivel.Y1 * state.swivel.L + state.swivel.Y3, abs=1e-12)


@cache
def kernel():
    def measured(robot, q, v, direction):
        state = MODEL.state(q, v, direction)
        return np.stack([state.bend.q2, state.swivel.q2, *state.momentum, *MODEL.center(q)])

    return legged.compile(measured, ROBOT, direction=())


def measured(run, direction):
    """Return (bend (T,), swivel (T,), momentum about the support (T, 3), center of mass (T, 3)) of a run."""
    rows = kernel()(run.q, run.v, np.full(len(run), direction))
    return rows[:, 0], rows[:, 1], rows[:, 2:5], rows[:, 5:]


@pytest.fixture(scope="module")
def crouch():
    """Return the run of a crouch and a straightening in the direction 0.4 rad."""
    control = BendSwivelControl(MODEL, CROUCH, 0.4)
    return legged.simulate(ROBOT, control, until=5.0, q=MODEL.balanced(0.0), integrator=STEPS, sample=0.02)


def test_crouching_and_straightening_are_the_planar_motion_and_keep_the_direction(crouch):
    planar = PlanarBalance(planar_robot(), {"hip": 1.0})
    control = PlanarBalanceControl(planar, CROUCH)
    q = planar.balanced(np.zeros(1))
    expected = legged.simulate(planar.robot, control, until=5.0, q=q, integrator=STEPS, sample=0.02)
    bend, swivel, _, _ = measured(crouch, 0.4)
    assert bend == pytest.approx(expected.q[:, 1], abs=1e-9)  # rounding grows while it topples
    assert bend.max() > 1.4
    assert np.abs(np.sin(bend / 2.0) * (swivel - 0.4)).max() < 1e-9


def test_the_default_command_is_to_stand_upright():
    torque = BendSwivelControl(MODEL)(0.0, MODEL.balanced(0.0), np.zeros(5))
    assert torque == pytest.approx(np.zeros(len(torque)), abs=1e-9)  # [N m]


def test_a_start_that_is_symmetric_about_a_plane_of_the_axes_keeps_the_swivel_exactly_zero():
    control = BendSwivelControl(MODEL, StepCommand((0.5,), (1.5,)))
    run = legged.simulate(ROBOT, control, until=2.0, q=MODEL.balanced(0.0), integrator=STEPS)
    assert run.q[-1, 4] > 0.5
    assert not run.q[:, [2, 3, 5]].any() and not run.v[:, [1, 2, 4]].any()


def test_a_turn_by_more_than_a_quarter_goes_through_the_straight_posture():
    control = BendSwivelControl(MODEL, 1.0, StepCommand((1.0,), (2.5,)))
    run = legged.simulate(ROBOT, control, until=6.0, q=MODEL.balanced(1.0), integrator=STEPS)
    state = MODEL.state(run.q[-1], run.v[-1], 2.5)
    assert (state.bend.q2, state.swivel.q2) == pytest.approx((1.0, 2.5), abs=5e-3)
    assert np.abs(run.q[:, 4:]).sum(axis=1).min() < 0.2  # [rad]


def test_gravity_alone_changes_the_momentum_and_never_about_the_vertical(crouch):
    _, _, L, c = measured(crouch, 0.4)
    moment = MODEL.weight * np.cross([0.0, 0.0, 1.0], c)
    assert np.abs(L).max() > 0.04 and np.abs(L[:, 2]).max() < 1e-11
    work = np.concatenate([np.zeros((1, 3)), np.cumsum((moment[1:] + moment[:-1]) * 0.01, axis=0)])
    assert np.abs(L - work).max() < 1e-3 * np.abs(L).max()  # trapezoids of 20 ms


@pytest.fixture(scope="module")
def turn():
    """Return the run in which the crouched robot swivels by 1.2 rad."""
    control = BendSwivelControl(MODEL, 1.5, StepCommand((1.0,), (1.2,)))
    return legged.simulate(ROBOT, control, until=4.0, q=MODEL.balanced(1.5), integrator=STEPS, sample=0.02)


def test_a_crouched_robot_swivels_as_the_third_order_lag_and_stays_bent(turn):
    bend, swivel, L, _ = measured(turn, 0.5)
    x = np.maximum(turn.times - 1.0, 0.0) / MODEL.state(turn.q[0], turn.v[0]).swivel.time_constant
    lag = 1.2 * (1.0 - np.exp(-x) * (1.0 + x + 0.5 * x * x))
    assert np.abs(swivel - lag).max() < 0.008  # velocity products and the momentum about the vertical disturb it
    assert abs(swivel[-1] - 1.2) < 1e-3
    assert np.abs(bend - 1.5).max() < 0.02
    assert np.abs(L[:, 2]).max() < 1e-11


def test_both_motions_at_once_and_a_push_across_them_end_in_balance():
    control = BendSwivelControl(MODEL, StepCommand((0.3,), (1.5,)), StepCommand((0.8,), (1.0,)), limit=8.0)
    push = legged.Push("trunk", (0.0, 0.03, 0.0), at=0.1, point=(0.0, 0.0, 0.6))
    q = MODEL.balanced(0.0)
    run = legged.simulate(ROBOT, control, until=4.5, q=q, integrator=STEPS, pushes=[push], sample=0.02)
    state = MODEL.state(run.q[-1], run.v[-1], 1.0)
    assert (state.bend.q2, state.swivel.q2) == pytest.approx((1.5, 1.0), abs=5e-3)
    assert np.abs(MODEL.center(run.q[-1])[:2]).max() < 1e-3
    assert 4.0 < np.abs(run.tau[:, 3:]).max() <= 8.0


@pytest.mark.parametrize("seed", range(3))
def test_the_torques_produce_the_law(seed):
    """L''' is that of the acceleration of the center of mass, for an asymmetric robot in any posture."""
    robot = asymmetric_robot()
    model = BendSwivelBalance(robot)
    q, v, _ = random_state(model, seed, size=0.1)
    control = BendSwivelControl(model, 1.1, 0.3, pole=4.0)
    tau = control(0.0, q, v)
    vdot = legged.forward_dynamics(robot, q, v, tau)
    state, at = model.state(q, v, 0.3), model.equations(q, v)
    L3 = state.axes @ (model.weight * np.cross([0.0, 0.0, 1.0], at.X @ vdot + at.X_rate))
    lag = (state.swivel.q2 - 0.3 + np.pi) % (2.0 * np.pi) - np.pi
    errors = state.bend.q2 - 1.1, 2.0 * np.sin(0.55) * lag + state.across
    for actual, part, error in zip(L3, (state.bend, state.swivel), errors, strict=True):
        k_q = 4.0**4 / part.Y1
        expected = (
            -16.0 * part.L2 - (96.0 - k_q * part.Y2) * part.L1 - 256.0 * (part.L + part.Y3 / part.Y1) - k_q * error
        )
        assert actual == pytest.approx(expected, rel=1e-9)
    assert not tau[:3].any()


def test_robots_and_settings_that_do_not_fit_raise_errors():
    with pytest.raises(
        DefinitionError, match="robot 'planar' must have a fixed base and two joints, a quaternion ball"
    ):
        BendSwivelBalance(planar_robot())
    with pytest.raises(DefinitionError, match="robot 'bend-swivel robot' has no gravity"):
        BendSwivelBalance(ROBOT.edit().change_robot(gravity=(0, 0, 0)).build())
    with pytest.raises(ArgumentError, match="pole must be"):
        BendSwivelControl(MODEL, pole=0.0)
    with pytest.raises(ArgumentError, match="limit must be"):
        BendSwivelControl(MODEL, limit=-1.0)
    with pytest.raises(NotFiniteError, match="bend must be finite"):
        BendSwivelControl(MODEL, bend=np.inf)
