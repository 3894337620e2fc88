"""Base parameters, physically possible least squares, and excitations."""

import numpy as np
import pytest
from identification.pendulums import double_pendulum

import legged
from legged.algorithms.newton_euler import inertial_parameters, inverse_dynamics_regressor
from legged.errors import ArgumentError, InertiaError, ShapeError
from legged.identification import base_parameters, excitation, fit_inertias, inertia_of, pseudo_inertia
from legged.identification.linear import _pseudo_inertia_basis
from legged.identification.parameter import inertia_change

LIMITS = {"lower": -1.5, "upper": 1.5, "effort": 5.0, "speed": 6.0}


@pytest.fixture(scope="module")
def robot() -> legged.Robot:
    return double_pendulum(damping=0.1, friction=0.05, armature=0.01, **LIMITS)


@pytest.fixture(scope="module")
def motion(robot):
    return excitation(robot, duration=5.0)


def test_a_planar_double_pendulum_has_six_base_parameters(robot):
    grouped = base_parameters(robot)
    # By hand: mx, mz, and Iyy of each link, with m2 l of the second in the first.
    assert grouped.names == ("upper.mx", "upper.mz", "upper.Iyy", "lower.mx", "lower.mz", "lower.Iyy")
    upper, lower = (robot.link(name).inertia for name in ("upper", "lower"))
    length = 0.3
    expected = [
        upper.mass * upper.center[0],
        upper.mass * upper.center[2] - lower.mass * length,
        upper.about_origin[1, 1] + lower.mass * length**2,
        lower.mass * lower.center[0],
        lower.mass * lower.center[2],
        lower.about_origin[1, 1],
    ]
    np.testing.assert_allclose(grouped.values, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_base_parameters_give_all_forces(seed):
    robot = legged.random_tree(seed, 4)
    grouped, rng = base_parameters(robot), np.random.default_rng(seed)
    q = legged.random_configuration(robot, rng)
    v, vdot = rng.normal(size=(2, robot.nv))
    Y = inverse_dynamics_regressor(robot, q, v, vdot)
    forces = Y @ inertial_parameters(robot)
    np.testing.assert_allclose(Y[:, grouped.independent] @ grouped.values, forces, atol=1e-9 * np.abs(forces).max())


def test_pseudo_inertias_hold_the_inertia():
    inertia = double_pendulum().link("lower").inertia
    back = inertia_of(pseudo_inertia(inertia))
    assert back.mass == pytest.approx(inertia.mass)
    np.testing.assert_allclose(back.center, inertia.center, atol=1e-14)
    np.testing.assert_allclose(back.tensor, inertia.tensor, atol=1e-14)
    parameters = inertial_parameters(double_pendulum())[-10:]
    np.testing.assert_allclose(np.einsum("p,pij->ij", parameters, _pseudo_inertia_basis()), pseudo_inertia(inertia))
    with pytest.raises(InertiaError):
        inertia_of(-np.eye(4))


@pytest.mark.parametrize("seed", range(5))
def test_any_change_of_log_cholesky_parameters_is_a_body(seed):
    inertia = double_pendulum().link("lower").inertia
    mass, center, tensor = inertia_change(inertia, np.random.default_rng(seed).normal(size=10))
    legged.Inertia(float(mass), center, tensor)  # raises InertiaError otherwise
    same = inertia_change(inertia, np.zeros(10))
    np.testing.assert_allclose(same[2], inertia.tensor, atol=1e-14)


def _forces(robot, motion, noise: float):
    tau = legged.compile(legged.inverse_dynamics, robot)(motion.q, motion.v, motion.vdot)
    return tau + np.random.default_rng(0).normal(0.0, noise, tau.shape)


def test_base_parameters_and_friction_are_recovered_from_a_wrong_start(robot, motion):
    pytest.importorskip("clarabel")
    wrong = robot.edit().change_link("lower", mass=2.5).build()
    fit = fit_inertias(wrong, motion.q, motion.v, motion.vdot, _forces(robot, motion, 0.02))
    base = base_parameters(robot)
    estimated = base.grouping @ fit.parameters
    # 1001 samples of 0.02 N m; the excitation has a condition of about 20.
    np.testing.assert_allclose(estimated, base.values, atol=3e-3)
    np.testing.assert_allclose(fit.damping, 0.1, atol=5e-3)
    np.testing.assert_allclose(fit.friction, 0.05, atol=5e-3)
    assert fit.error == pytest.approx(0.02, rel=0.1)
    for link in fit.robot.links:
        if link.inertia.mass:
            assert np.linalg.eigvalsh(pseudo_inertia(link.inertia))[0] > 0.0


def test_a_known_mass_is_kept_and_noise_gives_no_impossible_body(robot, motion):
    pytest.importorskip("clarabel")
    fit = fit_inertias(robot, motion.q, motion.v, motion.vdot, _forces(robot, motion, 5.0), total_mass=1.6)
    assert fit.robot.mass == pytest.approx(1.6, abs=1e-6)
    for link in fit.robot.links:
        if link.inertia.mass:
            assert np.linalg.eigvalsh(pseudo_inertia(link.inertia))[0] > 0.0
    assert (fit.damping >= 0.0).all() and (fit.friction >= 0.0).all()


def test_an_excitation_keeps_its_limits_and_begins_at_rest(robot, motion):
    assert np.abs(motion.q).max() <= 0.9 * 1.5 and np.abs(motion.v).max() <= 6.0
    np.testing.assert_allclose(motion.v[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(motion.vdot[[0, -1]], 0.0, atol=1e-8)
    np.testing.assert_allclose(np.gradient(motion.q, motion.times, axis=0)[1:-1], motion.v[1:-1], atol=0.02)


def test_an_excitation_tells_more_than_random_motions(robot, motion):
    assert motion.log_determinant > motion.first_log_determinant + 3.0
    assert len(motion.names) == 6 + 2 + 2
    slower = excitation(robot, duration=5.0, speed=2.0, acceleration=10.0, iterations=10)
    assert np.abs(slower.v).max() <= 2.0 and np.abs(slower.vdot).max() <= 10.0
    assert slower.log_determinant < motion.log_determinant


def test_bad_arguments_are_refused(robot, motion):
    with pytest.raises(ArgumentError, match="lower"):
        excitation(double_pendulum())
    with pytest.raises(ArgumentError, match="upper"):
        excitation(robot, lower=1.0, upper=-1.0)
    for name in ("speed", "acceleration"):
        for least in (0.0, -1.0):
            with pytest.raises(ArgumentError, match=f"limits of {name} must be positive"):
                excitation(robot, **{"speed": 6.0, name: [1.0, least]})
    pytest.importorskip("clarabel")
    with pytest.raises(ShapeError, match="tau"):
        fit_inertias(robot, motion.q, motion.v, motion.vdot, motion.v[:5])
