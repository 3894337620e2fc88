"""Terms that compare a robot with a `Reference`; the task needs the memory `start`, the sample of its first step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.compiler.ir import where
from legged.dynamics.kinematics import point_positions
from legged.environments.state import State

if TYPE_CHECKING:
    from legged.environments.tasks.reference import Reference

Array = np.ndarray
Term = Callable[[State], Any]


def motion_phase(reference: Reference) -> Callable[[State], Array]:
    """Return an observation: cosine and sine of the phase of the reference, (2,), dimensionless.

    Args:
        reference: The motion.

    Formula: (cos 2 pi k / n, sin 2 pi k / n)
    """

    def phase(s: State) -> Array:
        angle = 2.0 * np.pi * reference.phase(s)
        return np.stack([np.cos(angle), np.sin(angle)])

    return phase


def motion_joints(reference: Reference) -> Callable[[State], Array]:
    """Return an observation: joint positions of the reference from the posture of a zero action, (nj,), [rad] or [m].

    Args:
        reference: The motion.

    Formula: q_ref - q_0
    Peers: -, `generated_commands`
    """
    return lambda s: reference.at(s)[0][-s.task.robot.nj :] - s.task.posture


def motion_joint_positions(reference: Reference, sharpness: float = 2.0) -> Term:
    """Return a reward: exp(-sharpness * sum of squared errors of the joint positions).

    Args:
        reference: The motion. sharpness: [1/rad^2].

    Formula: exp(-k sum (q - q_ref)^2)
    """

    def reward(s: State) -> Any:
        e = s.joint_positions - reference.at(s)[0][-s.task.robot.nj :]
        return np.exp((e @ e) * -sharpness)

    return reward


def motion_joint_velocities(reference: Reference, sharpness: float = 0.1) -> Term:
    """Return a reward: exp(-sharpness * sum of squared errors of the joint velocities).

    Args:
        reference: The motion. sharpness: [s^2/rad^2].

    Formula: exp(-k sum (qd - qd_ref)^2)
    """

    def reward(s: State) -> Any:
        e = s.joint_velocities - reference.at(s)[1][-s.task.robot.nj :]
        return np.exp((e @ e) * -sharpness)

    return reward


def motion_position(reference: Reference, sharpness: float = 20.0) -> Term:
    """Return a reward: exp(-sharpness * squared distance of the base from that of the reference).

    Args:
        reference: The motion. sharpness: [1/m^2].

    Formula: exp(-k |p - p_ref|^2)
    Peers: -, `motion_global_anchor_position_error_exp`
    """

    def reward(s: State) -> Any:
        e = s.position - reference.at(s)[0][4:7]
        return np.exp((e @ e) * -sharpness)

    return reward


def motion_orientation(reference: Reference, sharpness: float = 10.0) -> Term:
    """Return a reward: exp(-sharpness * squared error of the rotation of the base).

    Args:
        reference: The motion. sharpness: [1/rad^2].

    Formula: exp(-4 k sin^2(angle / 2)), with the angle between base and reference
    Peers: -, `motion_global_anchor_orientation_error_exp`
    """
    return lambda s: np.exp(_half_sine_squared(s, reference) * (-4.0 * sharpness))


def motion_base_velocity(reference: Reference, sharpness: float = 1.0) -> Term:
    """Return a reward: exp(-sharpness * squared error of the velocity of the base, with 0.1 of its angular one).

    Args:
        reference: The motion. sharpness: [s^2/m^2].

    Formula: exp(-k (|v - v_ref|^2 + 0.1 |omega - omega_ref|^2))
    Peers: -, `motion_global_body_linear_velocity_error_exp`
    """

    def reward(s: State) -> Any:
        e = s.v[:6] - reference.at(s)[1][:6]
        return np.exp((e[3:] @ e[3:] + 0.1 * (e[:3] @ e[:3])) * -sharpness)

    return reward


def motion_feet(reference: Reference, sharpness: float = 40.0) -> Term:
    """Return a reward: exp(-sharpness * sum of squared distances of the contact points from those of the reference).

    Args:
        reference: The motion. sharpness: [1/m^2].

    Formula: exp(-k sum |p_foot - p_foot_ref|^2), relative to the base
    Peers: -, `motion_relative_body_position_error_exp`
    """

    def reward(s: State) -> Any:
        robot = s.task.robot
        points = [(contact.link, contact.position) for contact in robot.contacts]
        level = np.concatenate([np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3)])
        here, there = (
            point_positions(robot, np.concatenate([level, q[7:]]), points) for q in (s.q, reference.at(s)[0])
        )
        e = (here - there).reshape(-1)
        return np.exp((e @ e) * -sharpness)

    return reward


def motion_lost(reference: Reference, height: float, angle: float = 0.8) -> Term:
    """Return a termination: the base is too far from the height or the rotation of the reference.

    Args:
        reference: The motion. height: Largest error of the height, [m]. angle: Largest error of the rotation, [rad].

    Formula: abs(z - z_ref) > height or error of the rotation > angle
    Peers: -, `bad_anchor_pos_z_only`
    """
    bound = np.sin(0.5 * angle) ** 2

    def termination(s: State) -> Any:
        far = where(np.abs(s.position[2] - reference.at(s)[0][6]) > height, 1.0, 0.0)
        return where(_half_sine_squared(s, reference) > bound, 1.0, far)

    return termination


def _half_sine_squared(s: State, reference: Reference) -> Any:
    """Return sin^2(angle / 2) with the angle of the rotation between the base and that of the reference."""
    cosine = s.q[:4] @ reference.at(s)[0][:4]
    return 1.0 - cosine * cosine
