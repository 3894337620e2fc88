"""Values of the usual terms at random states, beside closed forms and finite differences, and their errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import legged
import legged.optimization as oc
import robots
from legged.errors import ArgumentError, DefinitionError, ShapeError
from legged.optimization import terms

ROBOT = robots.spatial_quadruped()
TOE = ROBOT.contacts[0].name
RNG = np.random.default_rng(3)
Q = legged.integrate(ROBOT, ROBOT.neutral(), RNG.normal(size=ROBOT.nv))
V, U = RNG.normal(size=ROBOT.nv), RNG.normal(size=ROBOT.nj)
WRENCH = np.array([1.0, -2.0, 0.5, 3.0, -4.0, 50.0])
AT = oc.Point(0.3, Q, V, U, {TOE: WRENCH})
TURN = Rotation.from_rotvec([0.3, -0.4, 0.2])
STEP = 1e-6  # of differences, whose error is about 1e-9


def moved(h: float) -> np.ndarray:
    """Return the configuration a time h later, [s]."""
    return legged.integrate(ROBOT, Q, h * V)


def pose(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    at = legged.frame_pose(ROBOT, q, TOE)
    return at.rotation, at.position


def test_differences_from_targets_vanish_at_the_target_and_are_linear_in_it():
    R, p = pose(Q)
    target = RNG.normal(size=3)
    assert terms.frame_translation(ROBOT, AT, TOE, target) == pytest.approx(p - target)
    assert terms.base_position(ROBOT, AT, target) == pytest.approx(Q[4:7] - target)
    assert terms.clearance(ROBOT, AT, TOE, 0.2) == pytest.approx([p[2] - 0.2])
    assert terms.velocity(ROBOT, AT, 0.5) == pytest.approx(V - 0.5)
    assert terms.control(ROBOT, AT, U) == pytest.approx(np.zeros(ROBOT.nj))
    assert terms.joint_positions(ROBOT, AT, Q[7:]) == pytest.approx(np.zeros(ROBOT.nj))
    assert terms.contact_force(ROBOT, AT, TOE, WRENCH) == pytest.approx(np.zeros(6))
    whole = terms.frame_placement(ROBOT, AT, TOE, R, target)
    assert whole == pytest.approx(np.concatenate([np.zeros(3), p - target]), abs=1e-12)
    assert terms.state(ROBOT, AT, Q, V) == pytest.approx(np.zeros(2 * ROBOT.nv), abs=1e-12)


def test_rotations_are_vectors_in_the_axes_of_the_target():
    """R = target times a known rotation."""
    vector = TURN.as_rotvec()
    sine = np.sin(np.linalg.norm(vector)) * vector / np.linalg.norm(vector)
    target = pose(Q)[0] @ TURN.as_matrix().T
    assert terms.frame_rotation(ROBOT, AT, TOE, target) == pytest.approx(sine, abs=1e-12)
    base = Rotation.from_quat(Q[:4], scalar_first=True) * TURN.inv()
    for sign in (1.0, -1.0):  # a quaternion and its negative are one rotation
        quaternion = sign * base.as_quat(scalar_first=True)
        assert terms.base_rotation(ROBOT, AT, quaternion) == pytest.approx(vector, abs=1e-12)


def test_velocities_are_derivatives_of_poses():
    (R, p), (S, s) = pose(moved(-STEP)), pose(moved(STEP))
    omega = Rotation.from_matrix(S @ R.T).as_rotvec() / (2 * STEP)
    twist = np.concatenate([omega, (s - p) / (2 * STEP)])
    assert terms.frame_velocity(ROBOT, AT, TOE, np.zeros(6)) == pytest.approx(twist, abs=1e-7)
    local = np.concatenate([pose(Q)[0].T @ part for part in np.split(twist, 2)])
    assert terms.frame_velocity(ROBOT, AT, TOE, local, "local") == pytest.approx(np.zeros(6), abs=1e-7)


def test_the_momentum_about_the_center_of_mass_is_that_of_the_links():
    """The linear one is m times the velocity of the center; the angular one is summed over links about it."""
    zero = np.zeros(3)
    center = terms.center_of_mass(ROBOT, AT, zero)
    rate = (terms.center_of_mass(ROBOT, AT._replace(q=moved(STEP)), zero) - center) / STEP
    momentum = terms.centroidal_momentum(ROBOT, AT, np.zeros(6))
    assert momentum[3:] == pytest.approx(ROBOT.mass * rate, abs=1e-4)
    angular = np.zeros(3)
    for link in ROBOT.links:
        at, twist = legged.frame_pose(ROBOT, Q, link.name), legged.frame_twist(ROBOT, Q, V, link.name)
        own = link.inertia
        arm, inertia = at.rotation @ own.center, at.rotation @ own.tensor @ at.rotation.T
        velocity = twist[3:] + np.cross(twist[:3], arm)
        angular += inertia @ twist[:3] + own.mass * np.cross(at.position + arm - center, velocity)
    assert momentum[:3] == pytest.approx(angular, abs=1e-10)


def test_margins_of_forces_are_zero_at_the_edges():
    n, f = WRENCH[:3], WRENCH[3:]
    R, _ = pose(Q)
    (nx, ny, _), (_, _, fz) = R.T @ n, R.T @ f
    x, y = -ny / fz, nx / fz  # the point of the sole about which the horizontal moment vanishes
    margins = terms.center_of_pressure(ROBOT, AT, TOE, abs(x), abs(y))
    assert sorted(abs(margins[:2])) == pytest.approx([0.0, 2 * abs(x * fz)], abs=1e-12)
    assert sorted(abs(margins[2:])) == pytest.approx([0.0, 2 * abs(y * fz)], abs=1e-12)
    cone = terms.friction_cone(ROBOT, AT, TOE, 4.0 / 50.0)
    assert cone == pytest.approx([7.0, 1.0, 0.0, 8.0, 50.0])


def test_margins_of_joints_and_motors():
    joints, rates = Q[7:], V[6:]
    assert terms.joint_limits(ROBOT, AT, joints - 1.0, joints + 2.0) == pytest.approx(np.repeat([1.0, 2.0], ROBOT.nj))
    assert terms.velocity_limits(ROBOT, AT, abs(rates)).min() == pytest.approx(0.0, abs=1e-15)
    assert terms.torque_limits(ROBOT, AT, abs(U)).min() == pytest.approx(0.0, abs=1e-15)
    effort = abs(U) / (1.0 - np.sign(U) * rates / 10.0)  # of motors that give their largest torques now
    margins = np.minimum(*np.split(terms.motor_limits(ROBOT, AT, effort, np.full(ROBOT.nj, 10.0)), 2))
    assert margins == pytest.approx(np.zeros(ROBOT.nj), abs=1e-12)


def test_impossible_parameters_are_refused_when_a_term_is_defined():
    for value in (np.zeros((3, 3)), np.diag([1.0, 1.0, -1.0]), 2.0 * np.eye(3)):
        with pytest.raises(ArgumentError, match=r"rotation of frame_rotation\(x\) must be a rotation matrix"):
            oc.Cost(terms.frame_rotation, frame="x", rotation=value)
    with pytest.raises(ShapeError, match=r"quaternion of base_rotation, must have norm 1"):
        oc.Cost(terms.base_rotation, quaternion=np.array([2.0, 0.0, 0.0, 0.0]))
    with pytest.raises(ShapeError, match=r"twist of frame_velocity\(x\) must be \(6,\)"):
        oc.Constraint(terms.frame_velocity, frame="x", twist=np.zeros(3))
    with pytest.raises(ArgumentError, match="speed of motor_limits must be more than 0"):
        oc.Cost(terms.motor_limits, effort=1.0, speed=np.zeros(8))
    own = oc.Cost(lambda robot, at, rotation: rotation[:1], rotation=np.zeros(4))  # of a user, whose names are free
    assert own.parameters["rotation"].shape == (4,)


def test_terms_that_do_not_fit_the_robot_say_so():
    pendulum = robots.gyroscopic_pendulum()
    at = oc.Point(0.0, pendulum.neutral(), np.zeros(pendulum.nv), np.zeros(pendulum.nj), {})
    with pytest.raises(DefinitionError, match="'gyroscopic pendulum' has no floating base"):
        terms.base_position(pendulum, at, np.zeros(3))
    point = AT._replace(forces={TOE: np.zeros(3)})
    with pytest.raises(ShapeError, match="is a point, which has no center of pressure"):
        terms.center_of_pressure(ROBOT, point, TOE, 0.1, 0.1)
    with pytest.raises(ShapeError, match=rf"controls must be a number or \({ROBOT.nj},\)"):
        terms.motor_limits(ROBOT, AT._replace(u=np.zeros(2)), 1.0, 1.0)
    with pytest.raises(ShapeError, match="lower must be a number"):
        terms.joint_limits(ROBOT, AT, np.zeros(1), np.ones(ROBOT.nj))
