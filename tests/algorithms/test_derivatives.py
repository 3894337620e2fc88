"""Derivatives equal those of the recursions and Pinocchio's; inertial parameters enter linearly; A v is the momentum.

Exact derivatives are those of truncated Taylor series, run through the modular recursions: rounding alone is between.
"""

import numpy as np
import pytest
from oracles.cases import random_case

import legged
import robots
from legged.algorithms import centroidal, derivatives, newton_euler
from legged.robot.construction.random_tree import ALL_JOINTS, JOINTS
from legged.taylor import derivatives as parts
from legged.taylor import moving

SEEDS = range(300)
DISPLACED = {"floating": slice(3, 6), "planar": slice(1, 3), "euler": slice(3, 6), "fixed": slice(0, 0)}


def case(seed: int, physics: bool | None = None):
    """Return a random robot in a state: every second one with joint physics, every fifth with joints that follow
    others, constant-velocity and free joints."""
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(
        seed,
        int(rng.integers(1, 6)) if seed < 8 else int(rng.integers(1, 16)),
        physics=seed % 2 == 1 if physics is None else physics,
        shuffled=seed % 3 == 0,
        coupled=seed % 5 == 4,
        joints=ALL_JOINTS if seed % 5 == 4 else JOINTS,
    )
    q = legged.random_configuration(robot, rng)
    v, vdot, tau = rng.normal(size=(3, robot.nv))
    return robot, q, v, vdot, tau, {robot.links[-1].name: rng.normal(size=6)}


def apart(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max(initial=0.0) / max(np.abs(theirs).max(initial=0.0), 1e-300))


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_are_exact(seed):
    """Inverse dynamics to rounding; forward dynamics up to the condition number of the inertia matrix, at most 1e6."""
    robot, q, v, vdot, tau, wrenches = case(seed)
    errors = derivatives.check(robot, q, v, vdot, tau, wrenches)
    assert max(errors[:3]) < 1e-13 and max(errors[3:]) < 1e-9, errors


def test_derivatives_with_gyroscopic_rotors_are_exact():
    robot, q, v, vdot, tau, wrenches = case(0, physics=True)
    assert sum(body.has_gyroscopic_rotor for body in robot.bodies) == 1
    errors = derivatives.check(robot, q, v, vdot, tau, wrenches)
    assert max(errors[:3]) < 1e-13 and max(errors[3:]) < 1e-9, errors


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_equal_pinocchios(seed):
    """Of forward dynamics as forces, M dvdot/dx = -dtau/dx, with its derivatives of inverse dynamics.

    Its own derivatives of forward dynamics obey that to 1e-9 only, and to 5e-8 where the condition is 1e6.
    """
    pin = pytest.importorskip("pinocchio")
    from oracles.programs.pinocchio_model import pinocchio_twin

    given = random_case(seed)
    robot, twin = given.robot, pinocchio_twin(given.robot)
    if not robot.nv:
        return
    q, v, x = twin.q(given.q), twin.v(given.v), twin.forces(robot, given.wrenches)
    signs, order = np.outer(twin.v_sign, twin.v_sign), np.ix_(twin.v_index, twin.v_index)

    def theirs(function, drive):
        by_q, by_v, third = function(twin.model, twin.data, q, v, twin.v(drive), x)
        return [d[order] * signs for d in (by_q, by_v, symmetric(third))]

    state = robot, given.q, given.v
    inverse = derivatives.of_inverse_dynamics(*state, given.vdot, given.wrenches)
    for a, b in zip(inverse, theirs(pin.computeRNEADerivatives, given.vdot), strict=True):
        assert apart(a, b) < 1e-11
    forward = derivatives.of_forward_dynamics(*state, given.tau, given.wrenches)
    direct = theirs(pin.computeABADerivatives, given.tau)
    vdot = legged.forward_dynamics(*state, given.tau, given.wrenches)
    by_q, by_v, M = theirs(pin.computeRNEADerivatives, vdot)
    for a, b, force in zip(forward, direct, (-by_q, -by_v, np.eye(robot.nv)), strict=True):
        assert apart(M @ a, force) < 1e-9
        assert apart(M @ a, M @ b) < max(1e-9, 2.0 * apart(M @ b, force))


def symmetric(upper):
    """Return a matrix of which Pinocchio promises the upper triangle alone."""
    return np.triu(upper) + np.triu(upper, 1).T


def test_derivatives_convert_to_pinocchios_tangents(tmp_path):
    """By `legged.conversions`: with v' = T v for both velocities and displacements, and tau = T^T tau'."""
    pin = pytest.importorskip("pinocchio")
    robot = robots.spatial_quadruped()
    model = pin.buildModelFromUrdf(str(legged.save_urdf(robot, tmp_path / "robot.urdf")), pin.JointModelFreeFlyer())
    their, data = legged.conversions.pinocchio(robot, model), model.createData()
    q = legged.random_configuration(robot, np.random.default_rng(1))
    v, tau = np.random.default_rng(2).normal(size=(2, robot.nv))
    T = np.stack([their.to_velocity(q, e) for e in np.eye(robot.nv)], axis=1)
    matrices = derivatives.of_forward_dynamics(robot, q, v, tau)
    at = their.to_configuration(q), their.to_velocity(q, v), their.to_force(q, tau)
    by_q, by_v, inverse = pin.computeABADerivatives(model, data, *at)
    assert apart(T @ matrices.q, by_q @ T) < 1e-9 and apart(T @ matrices.v, by_v @ T) < 1e-9
    assert apart(T @ matrices.tau @ T.T, symmetric(inverse)) < 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_position_in_the_world_changes_no_force(seed):
    robot, q, v, vdot, tau, wrenches = case(seed)
    where = DISPLACED[robot.base.kind]
    assert not derivatives.of_inverse_dynamics(robot, q, v, vdot, wrenches).q[:, where].any()
    assert not derivatives.of_forward_dynamics(robot, q, v, tau, wrenches).q[:, where].any()


@pytest.mark.parametrize("seed", range(6))
def test_inverse_inertia_times_inertia_matrix_is_the_identity(seed):
    robot, q, *_ = case(seed)
    M, inverse = legged.inertia_matrix(robot, q), derivatives.inverse_inertia(robot, q)
    assert np.abs(inverse @ M - np.eye(robot.nv)).max() < 1e-15 * np.linalg.cond(M) * robot.nv
    assert np.array_equal(inverse, inverse.T)


def test_rotation_vector_rate_matrix_is_continuous_where_its_series_ends():
    from legged.algorithms.derivatives.inverse import rotation_vector_rate_matrix

    phi = np.array([0.6, -0.8, 0.0])
    below, above = (rotation_vector_rate_matrix(size * phi) for size in (0.01 * (1 - 1e-12), 0.01 * (1 + 1e-12)))
    assert np.abs(below - above).max() < 1e-13
    assert np.array_equal(rotation_vector_rate_matrix(0.0 * phi), np.eye(3))


def test_compiled_derivatives_equal_plain_ones():
    robot = robots.planar_biped()
    q, v, tau = np.random.default_rng(0).normal(size=(3, robot.nv))
    kernel = legged.compile(derivatives.of_forward_dynamics, robot)
    for ours, plain in zip(kernel(q, v, tau), derivatives.of_forward_dynamics(robot, q, v, tau), strict=True):
        assert apart(ours, plain) < 1e-11


def test_derivatives_cost_less_than_one_evaluation_per_direction():
    robot = robots.spatial_quadruped()
    counts = [legged.count(f, robot) for f in (legged.inverse_dynamics, derivatives.of_inverse_dynamics)]
    run, all_of_them = (c.M + c.A for c in counts)
    assert all_of_them < 2 * robot.nv * run / 4


@pytest.mark.parametrize("seed", range(6))
def test_frame_derivatives_are_exact(seed):
    robot, q, v, vdot, *_ = case(seed)
    frame = legged.Frame(robot.links[-1].name, at=np.array([0.1, -0.2, 0.3]), rotation=legged.rpy(0.3, 0.2, 0.1))
    derivative = derivatives.of_frame_motion(robot, q, v, vdot, frame)
    by = derivatives.exact_derivatives
    twist = by(lambda q, v, _: legged.frame_twist(robot, q, v, frame, "local"), robot, q, v, vdot)
    rate = by(lambda q, v, x: legged.frame_acceleration(robot, q, v, x, frame, "local"), robot, q, v, vdot)
    expected = (twist[0], rate[0], rate[1], twist[1])
    for ours, exact in zip(derivative, expected, strict=True):
        assert np.abs(ours - exact).max() < 1e-12 * max(1.0, np.abs(exact).max())
    assert np.abs(derivative.jacobian - rate[2]).max() < 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_jacobian_rate_is_the_rate_of_the_jacobian(seed):
    robot, q, v, *_ = case(seed)
    way = moving(q, legged.configuration_rate(robot, q, v), 0.0 * q)
    _, exact, _ = parts(legged.frame_jacobian(robot, way, robot.links[-1].name))
    derivative = derivatives.jacobian_rate(robot, q, v, robot.links[-1].name)
    assert np.abs(derivative - exact).max() < 1e-13 * max(1.0, np.abs(exact).max())


@pytest.mark.parametrize("seed", range(6))
def test_inverse_dynamics_are_linear_in_the_inertial_parameters(seed):
    robot, q, v, vdot, *_ = case(seed, physics=False)
    Y, parameters = newton_euler.inverse_dynamics_regressor(robot, q, v, vdot), newton_euler.inertial_parameters(robot)
    assert apart(Y @ parameters, legged.inverse_dynamics(robot, q, v, vdot)) < 1e-12


def test_inertial_parameters_have_pinocchios_order():
    pin = pytest.importorskip("pinocchio")
    robot = random_case(3).robot
    ours = newton_euler.inertial_parameters(robot).reshape(-1, len(newton_euler.INERTIAL_PARAMETERS))
    for link, row in zip(robot.links, ours, strict=True):
        body = pin.Inertia(link.inertia.mass, np.asarray(link.inertia.center), np.asarray(link.inertia.tensor))
        assert row == pytest.approx(body.toDynamicParameters(), abs=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_centroidal_matrix_gives_momentum_and_its_rate(seed):
    robot, q, v, vdot, *_ = case(seed)
    momentum_terms = centroidal.dynamics(robot, q, v)
    scale = max(np.abs(momentum_terms.rate).max(), np.abs(momentum_terms.matrix).max(), robot.mass)
    assert np.abs(centroidal.momentum_matrix(robot, q) - momentum_terms.matrix).max() < 1e-13 * scale
    assert apart(momentum_terms.momentum, legged.momentum(robot, q, v)) < 1e-12
    way = moving(q, legged.configuration_rate(robot, q, v), 0.0 * q)
    _, exact, _ = parts(centroidal.momentum_matrix(robot, way))
    assert np.abs(momentum_terms.rate - exact).max() < 1e-12 * scale
    rate = momentum_terms.matrix @ vdot + momentum_terms.bias
    assert np.abs(rate - legged.momentum_rate(robot, q, v, vdot)).max() < 1e-12 * scale * robot.nv


def test_in_flight_only_gravity_changes_the_momentum():
    robot = robots.spatial_quadruped()
    rng = np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    tau[:6] = 0.0
    momentum_terms = centroidal.dynamics(robot, q, v)
    rate = momentum_terms.matrix @ legged.forward_dynamics(robot, q, v, tau) + momentum_terms.bias
    assert rate == pytest.approx(np.concatenate([np.zeros(3), robot.mass * robot.gravity]), abs=1e-10)
