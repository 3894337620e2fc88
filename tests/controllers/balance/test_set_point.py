"""Algorithm 4 of workspace balance: desired acceleration of the trunk from its set point and gains."""

from functools import partial

import numpy as np
import pytest
from oracles.standing import held_acceleration, standing_cases

import legged
from controllers import WorkspaceBalance
from controllers.balance.workspace.set_point import (
    BodyMotion,
    FeedbackGains,
    desired_acceleration,
    desired_motion,
)
from legged.rotations import (
    euler_matrix,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
)

CASES = standing_cases()


ZERO = np.zeros(3)


def at_rest(quaternion):
    return BodyMotion(ZERO, ZERO, ZERO, quaternion, ZERO, ZERO)


def gains(**changed):
    return FeedbackGains(**{"p": np.eye(3), "v": np.eye(3), "R": np.eye(3), "omega": np.eye(3)} | changed)


def test_both_quaternions_of_one_attitude_ask_for_one_acceleration():
    rng = np.random.default_rng(0)
    for _ in range(20):
        now, wanted = (x / np.linalg.norm(x) for x in rng.normal(size=(2, 4)))
        R = quaternion_matrix(now)
        asked = [
            desired_acceleration(
                BodyMotion(*[ZERO] * 3, a * now, ZERO, ZERO),
                BodyMotion(*[ZERO] * 3, b * wanted, ZERO, ZERO),
                gains(),
                R,
                ZERO,
            )
            for a in (1.0, -1.0)
            for b in (1.0, -1.0)
        ]
        assert np.ptp(asked, axis=0).max() < 1e-15


@pytest.mark.parametrize("angle", [0.3, 2.0, 3.1, 3.2, 5.0, -0.4])
def test_the_trunk_turns_back_the_short_way_by_the_sine_of_half_the_angle(angle):
    axis = np.array([1.0, 2.0, -2.0]) / 3.0
    now = quaternion_exp(angle * axis)
    still = at_rest(now)
    wanted = still._replace(quaternion=np.array([1.0, 0.0, 0.0, 0.0]))
    R = quaternion_matrix(now)
    asked = R @ desired_acceleration(still, wanted, gains(R=50.0 * np.eye(3)), R, ZERO)[:3]
    short = (angle + np.pi) % (2 * np.pi) - np.pi
    assert asked == pytest.approx(-50.0 * np.sin(short / 2) * axis, abs=1e-13)


def test_a_trunk_on_its_moving_set_point_is_asked_for_the_set_points_acceleration():
    def place(t):
        return np.array([0.1 * np.sin(3 * t), t * t, 1.0 + 0.0 * t])

    def turn(t):
        return np.array([0.2 * t, np.sin(t), 0.3 * t * t])

    wanted = desired_motion(place, turn, 0.7)
    h = 1e-5
    before, after = (desired_motion(place, turn, 0.7 + s) for s in (-h, h))
    R = quaternion_matrix(wanted.quaternion)
    W = (quaternion_matrix(after.quaternion) - quaternion_matrix(before.quaternion)) / (2 * h) @ R.T
    assert wanted.omega == pytest.approx([W[2, 1], W[0, 2], W[1, 0]], abs=1e-8)
    assert wanted.omegad == pytest.approx((after.omega - before.omega) / (2 * h), abs=1e-8)
    assert wanted.pdd == pytest.approx((after.pd - before.pd) / (2 * h), abs=1e-8)
    td = desired_acceleration(wanted, wanted, gains(), R, ZERO)
    assert R @ td[:3] == pytest.approx(wanted.omegad, abs=1e-14)
    assert R @ td[3:] == pytest.approx(wanted.pdd, abs=1e-14)


def test_errors_from_a_moving_set_point_obey_the_gains():
    """edd + K_v ed + K_p e = 0, omega_e' + K_v omega_e + K_p q_e's vector = 0; R_e = R R_d^T is far from 1.

    Both errors are differentiated along a motion with the demanded accelerations. A rotation by the rotation vector
    s omega + s^2 omegad / 2 has the velocity omega and the acceleration omegad at s = 0.
    """
    rng = np.random.default_rng(4)
    K = gains(**{name: rng.normal(size=(3, 3)) for name in ("p", "v", "R", "omega")})
    wanted = partial(desired_motion, lambda t: np.stack([np.sin(3 * t), t * t, 1 + t]), spinning)
    p, pd, omega, center = rng.normal(size=(4, 3))
    attitude = quaternion_product(quaternion_exp(np.array([0.9, -0.4, 0.6])), wanted(0.7).quaternion)
    actual, R, now = BodyMotion(p, pd, ZERO, attitude, omega, ZERO), quaternion_matrix(attitude), wanted(0.7)
    td = desired_acceleration(actual, now, K, R, center)
    omegad, w = R @ td[:3], R.T @ omega
    pdd = R @ (td[3:] + np.cross(td[:3], center) + np.cross(w, np.cross(w, center)))
    e, ed = p - now.p, pd - now.pd
    assert pdd - now.pdd == pytest.approx(-K.v @ ed - K.p @ e, abs=1e-12)

    def attitude_error(s):
        actual = quaternion_product(quaternion_exp(s * omega + 0.5 * s * s * omegad), attitude)
        return quaternion_product(actual, quaternion_conjugate(wanted(0.7 + s).quaternion))

    h, q_e = 1e-4, attitude_error(0.0)
    ahead, behind = (quaternion_log(quaternion_product(attitude_error(s), quaternion_conjugate(q_e))) for s in (h, -h))
    omega_e, omegad_e = (ahead - behind) / (2 * h), (ahead + behind) / h**2
    assert q_e[0] > 0.5 and np.linalg.norm(q_e[1:]) > 0.5  # neither near zero nor beyond half a turn
    demanded = -K.omega @ omega_e - K.R @ q_e[1:]
    assert omegad_e == pytest.approx(demanded, abs=3e-7)  # h^2 of a rate, and rounding / h^2


def spinning(t):
    return np.stack([0.2 * t, np.sin(t), 0.3 * t * t])


def test_a_robot_starts_with_the_point_of_its_set_point_in_place_and_level_soles():
    place, point = np.array([0.02, 0.01, 1.1]), np.array([0.05, 0.02, 0.1])
    robot = CASES["biped"][0]
    law = WorkspaceBalance(position=place, orientation=(0.0, 0.2, 0.1), point=point)
    q, _ = law.initial_state(robot)
    assert legged.point_positions(robot, q, [(0, point)])[0] == pytest.approx(place, abs=1e-12)
    R = legged.link_poses(robot, q)[0][0]
    assert pytest.approx(euler_matrix("zyx", np.array([0.1, 0.2, 0.0])), abs=1e-12) == R
    heights = [legged.frame_pose(robot, q, contact.name).position[2] for contact in robot.contacts]
    assert heights == pytest.approx(np.zeros(len(heights)), abs=1e-8)


def test_the_point_of_the_set_point_accelerates_as_wanted():
    """The trunk's center of mass off its origin, and a point that the user names, not the origin."""
    robot, q, v = CASES["random 1"]
    for point in (None, (0.2, -0.1, 0.3)):
        law = WorkspaceBalance(position=(1.0, 2.0, 3.0), kp=7.0, kv=0.0, exact=True, point=point)
        law, _ = law.start(robot, None, q, v)
        vdot = held_acceleration(robot, law.feet, q, v, law.plan(0.0, q, v).tau)
        place = robot.links[0].inertia.center if point is None else np.array(point)
        at = legged.point_positions(robot, q, [(0, place)])[0]
        felt = legged.point_accelerations(robot, q, v, vdot, [(0, place)])[0]
        assert felt == pytest.approx(7.0 * (np.array([1.0, 2.0, 3.0]) - at), abs=1e-6)
