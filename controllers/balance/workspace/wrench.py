"""Algorithm 4: the wrench that takes the central body to its set point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged import taylor
from legged.compiler.ir import where
from legged.compiler.ir.annotations import stage
from legged.errors import DefinitionError, NotFiniteError, ShapeError
from legged.rotations import euler_quaternion, quaternion_conjugate, quaternion_matrix, quaternion_product
from legged.spatial import Array, angular_acceleration_tensor, cross, join

STAGE_4 = "4 desired wrench"
Path = Callable[[Any], Any]
Gain = float | Array | tuple[Any, ...] | list[Any]


class Pose(NamedTuple):
    """Where the central body is, or should be, with its two rates; world axes.

    Attributes:
        p, pd, pdd: Place, velocity and acceleration of its point, (3,) each.
        quaternion: Of its axes, (4,), w first. omega, omegad: Angular velocity and acceleration, (3,) each.
    """

    p: Array
    pd: Array
    pdd: Array
    quaternion: Array
    omega: Array
    omegad: Array


@dataclass(frozen=True, eq=False)
class Gains:
    """K of algorithm 4, (3, 3) each, world axes: of position [1/s^2], velocity [1/s], attitude and angular velocity."""

    p: Array
    v: Array
    R: Array
    omega: Array


def gain_matrix(name: str, gain: Gain) -> Array:
    """Return a gain as a (3, 3) matrix: of one number, of three on the diagonal, or of the whole.

    Raises:
        ShapeError, NotFiniteError. DefinitionError: if it would push away from the set point.
    """
    array = np.asarray(gain, dtype=float)
    if array.shape not in ((), (3,), (3, 3)):
        raise ShapeError(f"{name} must be a number, (3,) or (3, 3), world axes, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{name} must be finite, got {array}")
    matrix = array if array.ndim == 2 else np.diag(np.broadcast_to(array, 3))
    least = float(np.linalg.eigvalsh(matrix + matrix.T).min()) / 2.0
    if least < 0.0:
        raise DefinitionError(f"{name} must not push away from the set point; the least it pulls with is {least}")
    return matrix


def wanted_pose(position: Array | Path, orientation: Array | Path, t: Any) -> Pose:
    """Return the set point at a time.

    Args:
        position: (3,), [m], world; or a formula of time, whose rates `legged.taylor` finds.
        orientation: A quaternion, w first, (4,), or roll, pitch and yaw about fixed axes, (3,), [rad]; or a formula of
            time for either. Quaternions are brought to length one.
        t: [s].
    """
    clock = taylor.time(t)
    place = taylor.derivatives(np.asarray(position(clock) if callable(position) else position))
    turn = np.asarray(orientation(clock) if callable(orientation) else orientation)
    unit = turn / np.sqrt(turn @ turn) if len(turn) == 4 else euler_quaternion("zyx", turn[::-1])
    e, ed, edd = taylor.derivatives(unit)
    back = quaternion_conjugate(e)
    return Pose(*place, e, 2.0 * quaternion_product(ed, back)[1:], 2.0 * quaternion_product(edd, back)[1:])


def desired_acceleration(now: Pose, wanted: Pose, gains: Gains, R: Array, center: Array) -> Array:
    """Return td of the central body, (6,): the wanted [omega dot; acceleration of its origin], in its axes.

        e = p - p_d,                     X_c = pdd_d - K_v ed - K_p e
        q_et = q * conj(q_d),            q_e = q_et if its scalar is not negative, else -q_et
        omega_e = omega - R_e omega_d,   X_R = R_e omegad_d + omega x R_e omega_d - K_v omega_e - K_p q_e's vector

    The paper's wanted rate of the body velocity's components is X_c - omega x pd; ours is the acceleration itself, and
    that of the origin instead of the center of mass. The error of a turn by theta is sin(theta / 2): a small turn is
    pulled back with K_p / 2.

    Args:
        now, wanted: The central body's motion and set point; `now` needs no accelerations.
        gains: K. R: Body axes to world axes, (3, 3). center: Origin to the set point's point, (3,), [m], body axes.

    Source: Wendlandt 1997, algorithm 4.
    """
    with stage(STAGE_4):
        X_c = wanted.pdd - gains.v @ (now.pd - wanted.pd) - gains.p @ (now.p - wanted.p)
        q_et = quaternion_product(now.quaternion, quaternion_conjugate(wanted.quaternion))
        q_e = where(q_et[0] >= 0.0, 1.0, -1.0) * q_et
        R_e = quaternion_matrix(q_e)
        omega_d, omegad_d = R_e @ wanted.omega, R_e @ wanted.omegad
        omega_e = now.omega - omega_d
        X_R = omegad_d + cross(now.omega, omega_d) - gains.omega @ omega_e - gains.R @ q_e[1:]
        omega, omegad = R.T @ now.omega, R.T @ X_R
        return join(omegad, R.T @ X_c - angular_acceleration_tensor(omega, omegad) @ center)
