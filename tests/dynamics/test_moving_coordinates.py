"""Derivatives of six-dimensional vectors in moving coordinates, and the two accelerations of a rigid body."""

import numpy as np
import pytest

import legged
from legged.errors import ShapeError
from legged.moving_coordinates import cross_motion
from legged.rotations import quaternion_exp, quaternion_matrix
from legged.spatial import Rotation, Transform, Translation, join

SEEDS = range(6)


def moving_robot(seed: int):
    """Return a random robot in motion, and the time step and tolerance of central differences along the motion."""
    robot = legged.random_tree(seed, 5)
    rng = np.random.default_rng(seed)
    q, (v, vdot) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    return robot, q, v, vdot, robot.links[-1].name


def along(robot, q, v, vdot, s):
    """Return q and v after the time s, up to terms of third order in s."""
    return legged.integrate(robot, q, s * v + 0.5 * s * s * vdot), v + s * vdot


@pytest.mark.parametrize("seed", SEEDS)
def test_spatial_acceleration_is_the_rate_of_the_twist_in_body_coordinates(seed):
    robot, q, v, vdot, link = moving_robot(seed)
    s = 1e-5  # [s]; the error of central differences is of order s^2 = 1e-10, their rounding 1e-16 / s
    ends = [legged.frame_twist(robot, *along(robot, q, v, vdot, step), link, "local") for step in (s, -s)]
    twist = legged.frame_twist(robot, q, v, link, "local")
    conventional = legged.frame_acceleration(robot, q, v, vdot, link, "local")
    spatial = legged.spatial_acceleration(twist, conventional)
    assert spatial == pytest.approx((ends[0] - ends[1]) / (2 * s), abs=1e-7 * max(1.0, np.abs(conventional).max()))
    assert legged.conventional_acceleration(twist, spatial) == pytest.approx(conventional, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_conventional_acceleration_is_the_apparent_one_in_a_frame_that_translates_with_the_body(seed):
    """Featherstone 2001: the frame has the velocity of the body's origin, and does not rotate."""
    twist, spatial = np.random.default_rng(seed).normal(size=(2, 6))
    frame_twist = join(np.zeros(3), twist[3:])
    apparent = spatial - cross_motion(frame_twist, twist)
    assert apparent == pytest.approx(legged.conventional_acceleration(twist, spatial), abs=1e-15)
    assert legged.motion_derivative(apparent, twist, frame_twist) == pytest.approx(spatial, abs=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_do_not_depend_on_the_frame(seed):
    """A vector of constant components in world coordinates has derivative zero in any moving frame."""
    rng = np.random.default_rng(seed)
    m, omega, velocity, r = rng.normal(size=6), *rng.normal(size=(3, 3))

    def frame(s):
        return Transform((Translation(r + s * velocity), Rotation(quaternion_matrix(quaternion_exp(s * omega)))))

    s = 1e-5  # [s]
    frame_twist = join(omega, velocity)  # in the frame's axes, which are the world's at s = 0
    motion_rate = (frame(s) @ m - frame(-s) @ m) / (2 * s)
    assert np.abs(legged.motion_derivative(motion_rate, frame(0.0) @ m, frame_twist)).max() < 1e-8

    def force(s):
        return np.linalg.solve(np.array([frame(s).T @ e for e in np.eye(6)]).T, m)

    force_rate = (force(s) - force(-s)) / (2 * s)
    assert np.abs(legged.force_derivative(force_rate, force(0.0), frame_twist)).max() < 1e-8


@pytest.mark.parametrize("seed", SEEDS)
def test_power_has_one_rate_in_all_moving_coordinates(seed):
    m, m_rate, f, f_rate, w = np.random.default_rng(seed).normal(size=(5, 6))
    rate = legged.force_derivative(f_rate, f, w) @ m + f @ legged.motion_derivative(m_rate, m, w)
    assert rate == pytest.approx(f_rate @ m + f @ m_rate, abs=1e-13)


def test_the_momentum_of_a_tumbling_body_without_forces_is_constant():
    body = legged.Link("body", legged.box_inertia(2.0, (0.4, 0.2, 0.1), (0.1, 0.05, 0.0)))
    robot = legged.RobotBuilder("body", body, gravity=(0, 0, 0)).build()
    t = np.array([3.0, 1.0, 2.0, 0.5, -1.0, 0.2])
    M = legged.inertia_matrix(robot, robot.neutral())
    a = legged.forward_dynamics(robot, robot.neutral(), t, np.zeros(6))
    assert np.abs(M @ a).max() > 0.01  # the components of the momentum change
    assert np.abs(legged.force_derivative(M @ a, M @ t, t)).max() < 1e-14


def test_arguments_of_moving_coordinates_are_checked():
    with pytest.raises(ShapeError, match=r"twist must be \(6,\), got shape \(3,\)"):
        legged.conventional_acceleration(np.zeros(3), np.zeros(6))
    with pytest.raises(ShapeError, match=r"force must be \(6,\), got shape \(5,\)"):
        legged.force_derivative(np.zeros(6), np.zeros(5), np.zeros(6))
