"""The standing posture of locomotion: the height of the hips, the place of the body over the soles, and its torques."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from controllers.locomotion.gait.feet import feet_of, foot_jacobian
from controllers.locomotion.torques.tasks import WholeBodyModel
from controllers.locomotion.torques.whole_body import JointLimits
from legged.algorithms.legs.standing import Home, home_of, standing_torques
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import center_of_mass, link_poses
from legged.dynamics.passive import friction_slopes, without_dry_friction
from legged.errors import DefinitionError
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array

_BIPED_HIPS, _SLOW_HIPS = 0.82, 0.87
"""Heights of the hips of standing robots with two legs, and with two legs with slow joints, relative to their length. A
leg that is almost straight moves its foot with slower joints; fast ones reach further from lower hips."""
_HIGHER_HIPS, _HIGHEST_HIPS = (0.86, 0.9, 0.92, 0.94), (0.95, 0.97)
"""Heights at which they stand if an ankle would be nearer than `BENDS` to the end of its range, or if joints could not
hold the robot on one leg; and heights that are tried if joints could not at any of these, since straighter legs need
faster hips to raise a foot."""
BENDS = 0.18
"""Least distance of the ankle, the third pitch joint, of a standing leg of two from the end of its range, [rad]."""
_HOLDS, _ALIKE = 0.35, 1.05
"""Largest share of a joint's torque that standing on two legs takes, since a walk on one of them takes about the double
and more: otherwise hips are as high as the joints need it; and ratio of shares that count as equal."""
_PASSES = 0.3
"""Speed of a flat foot past the body in the slow walks of two legs, forward and to the side, [sqrt(g h)] with the
height h of the center of mass. Hips are as high as the joints need it."""
_HEAVY = 0.3
"""Share of a joint's torque for an acceleration g of a foot above which legs are heavy: 0.19 at most for 16 robots with
four legs; 0.36 and 0.9 for two hexapods and 3 for Bittle, which fall or are slower than commanded."""
_SLOW, _VERY_SLOW = 3.0, 1.4
"""Largest speeds of a pitch joint, [sqrt(g / h)] with the length h of the leg, below which it is slow and very slow."""
_TURNED = 0.2
"""Increase of the sine of the angle of a sole over its least value with lower hips, above which the sole counts as
turned: the leg is too short to keep it level."""
_AHEAD = 1e-3
"""Distance of the places that weak ankles hold from the middle of the soles, over the length of a leg, from which on
the robot stands over them."""


def standing_posture(robot: Robot) -> Home:
    """Return the default standing posture of a robot; of one with more than two legs that of `home_of`.

    Args:
        robot: The robot.
    """
    home = home_of(robot)
    if len(home.legs) > 2:
        return home
    length = min(leg.length for leg in home.legs)
    is_slow = has_slow_legs(robot, home) and not has_very_slow_legs(robot, home)
    lowest = _SLOW_HIPS if is_slow else _BIPED_HIPS
    first, bent, loads, least = None, [], [], np.inf
    for share in (lowest, *(share for share in (*_HIGHER_HIPS, *_HIGHEST_HIPS) if share > lowest)):
        if share in _HIGHEST_HIPS and min(loads, default=0.0) <= _ALIKE:
            break
        posture = _over_held_places(robot, share * length)
        first = first or posture
        turn = _turn_of_soles(robot, posture)
        least = min(least, turn)
        if turn > least + _TURNED:
            continue
        if _ankle_margin(robot, posture) > BENDS:
            load = _load(robot, posture)
            if not bent and load <= 1.0:
                return posture
            bent.append(posture)
            loads.append(load)
    if not bent:
        assert first is not None
        return first
    return next(posture for posture, load in zip(bent, loads, strict=True) if load <= _ALIKE * min(loads))


def _turn_of_soles(robot: Robot, home: Home) -> float:
    """Return the sine of the largest angle by which a sole is turned relative to the robot with all joints at zero."""
    at_zero = replace(home, angles=np.zeros(robot.nj))
    before, after = (link_poses(robot, _configuration(robot, posture))[0] for posture in (at_zero, home))
    soles = [leg.link for leg in home.legs if len(leg.contacts) > 1]
    return max((float(np.linalg.norm(rotation_error(before[k].T @ after[k]))) for k in soles), default=0.0)


def _configuration(robot: Robot, home: Home) -> Array:
    """Return the configuration in a standing posture, (nq,)."""
    return np.concatenate([robot.base.configuration(np.array([0.0, 0.0, home.base_height]), np.eye(3)), home.angles])


def _load(robot: Robot, home: Home) -> float:
    """Return the larger one of the share of joint torques over `_HOLDS` and of the share of joint speeds."""
    return max(held_torques(robot, home)[1] / _HOLDS, _share_of_speeds(robot, home))


def _share_of_speeds(robot: Robot, home: Home) -> float:
    """Return the largest speed of a joint over its limit while a flat foot moves at `_PASSES` without turning.

    The axis of an ankle that rolls is inclined with the shank. A foot that moves to the side under a bent knee and is
    kept level therefore turns about the vertical axis, which the hip yaw has to cancel: less on straighter legs.
    """
    q = _configuration(robot, home)
    model, most = WholeBodyModel(robot, q, np.zeros(robot.nv)), 0.0
    speeds = np.minimum(JointLimits.of(robot).speed, damped_speeds(robot))
    unit = _PASSES * float(np.sqrt(np.linalg.norm(robot.gravity) * center_of_mass(robot, q)[2]))
    for foot in feet_of(robot, home, q)[0]:
        if foot.is_flat:
            J = foot_jacobian(model, foot)
            rates = np.abs(np.linalg.lstsq(J, np.eye(len(J))[:, -3:-1], rcond=1e-6)[0])
            most = max(most, unit * float(np.max(rates.T / speeds[list(foot.columns)])))
    return most


def _over_held_places(robot: Robot, hip_height: float) -> Home:
    """Return the posture with the center of mass over the part of the soles where ankle torques suffice.

    Args:
        robot: The robot. hip_height: [m].
    """
    home = home_of(robot, hip_height, nearest=True)
    q = _configuration(robot, home)
    ahead = -float(np.mean([foot.outline.mean(axis=0)[0] for foot in feet_of(robot, home, q)[0]]))
    if abs(ahead) < _AHEAD * hip_height:
        return home
    return home_of(robot, hip_height, nearest=True, ahead=ahead)


@lru_cache(maxsize=8)
def held_torques(robot: Robot, home: Home) -> tuple[Array, float, int]:
    """Return the result of `standing_torques`: torques, (nj,), [N m] or [N], their ratio, and its joint coordinate.

    Args:
        robot: The robot. home: Its standing posture.
    """
    return standing_torques(robot, home)


def check_torques(robot: Robot, home: Home) -> None:
    """Raise an error if the largest torques of the joints cannot hold a posture.

    Args:
        robot: The robot. home: Its standing posture.

    Raises:
        DefinitionError: They cannot.
    """
    if (ratio := held_torques(robot, home)[1]) > 1.0:
        raise DefinitionError(
            f"robot {robot.name!r} cannot stand: its joints need {ratio:.3g} times their largest torques, "
            f"{_weakest_joint(robot, home)}; correct the limits of its file (limits of motors before their gears?), "
            f"couple the joints that a linkage drives, or pass a posture that they hold, Locomotion(home=...)"
        )


def weakness(robot: Robot, home: Home) -> str:
    """Return the words of a warning of a weak joint, to stand on one of two legs, or to swing one of more legs, or "".

    Args:
        robot: The robot. home: Its standing posture.
    """
    if len(home.legs) > 2:
        return _heaviness(robot, home)
    _, ratio, worst = held_torques(robot, home)
    if ratio <= _HOLDS * _ALIKE or not any(worst in leg.columns for leg in home.legs):
        return ""
    return (
        f"standing on two legs takes {ratio:.2g} of the largest torques of its joints, {_weakest_joint(robot, home)}, "
        f"and walking, which loads one leg at a time, takes more than twice as much"
    )


def _heaviness(robot: Robot, home: Home) -> str:
    """Return the words of a warning that a joint hardly accelerates a leg, or ""."""
    q = _configuration(robot, home)
    model, torques = WholeBodyModel(robot, q, np.zeros(robot.nv)), JointLimits.of(robot).torque
    gravity, M, most, worst = float(np.linalg.norm(robot.gravity)), inertia_matrix(robot, q), 0.0, 0
    for foot in feet_of(robot, home, q)[0]:
        J, own = foot_jacobian(model, foot), np.array(foot.columns)
        rates, rows = np.linalg.lstsq(J, np.eye(len(J))[:, -3:], rcond=1e-6)[0], robot.base.nv + own
        shares = gravity * np.abs(M[np.ix_(rows, rows)] @ rates).max(axis=1) / np.maximum(torques[own], 1e-9)
        most, worst = max((most, worst), (float(shares.max()), int(own[np.argmax(shares)])))
    if most <= _HEAVY:
        return ""
    return (
        f"accelerating a foot by {gravity:.3g} m/s^2 takes {most:.2g} of the largest torque of joint "
        f"{joint_name(robot, worst)!r}, too much to swing legs in time; check inertias and armatures in the file of "
        f"the robot by `legged audit`"
    )


def _weakest_joint(robot: Robot, home: Home) -> str:
    """Return name, torque and limit of the joint that takes the largest share of its torque in a posture, as text."""
    torques, _, worst = held_torques(robot, home)
    limit = JointLimits.of(robot).torque[worst]
    return f"joint {joint_name(robot, worst)!r} {abs(torques[worst]):.3g} of {limit:.3g}"


def joint_name(robot: Robot, column: int) -> str:
    """Return the name of the joint of a joint coordinate.

    Args:
        robot: The robot. column: Index of the coordinate.
    """
    return next(x.name for x in robot.joints if x.v.start <= robot.base.nv + column < x.v.stop)


def _ankle_margin(robot: Robot, home: Home) -> float:
    """Return the least distance of the third pitch joint of a leg from its stops, [rad]; infinite without it."""
    limits, columns = JointLimits.of(robot), [leg.pitch_columns[2] for leg in home.legs if len(leg.pitch_columns) > 2]
    return float(np.minimum(home.angles - limits.lower, limits.upper - home.angles)[columns].min(initial=np.inf))


def has_slow_legs(robot: Robot, home: Home) -> bool:
    """Return whether a pitch joint of a leg has a largest speed below 3 sqrt(g / h), with the length h of a leg.

    Its largest speed is at most the one at which viscous friction takes all its torque: files of robots with servos
    have the back electromotive force of their motors in the damping of the joints.

    Args:
        robot: The robot. home: Its standing posture.
    """
    return _is_slow(robot, home, _SLOW)


def has_very_slow_legs(robot: Robot, home: Home) -> bool:
    """Return whether this speed of a pitch joint is below 1.4 sqrt(g / h), too slow for long steps.

    Args:
        robot: The robot. home: Its standing posture.
    """
    return _is_slow(robot, home, _VERY_SLOW)


def damped_speeds(robot: Robot) -> Array:
    """Return the speeds at which viscous friction takes all torque of the joints, (nj,), [rad/s] or [m/s].

    Args:
        robot: The robot.
    """
    slopes = [friction_slopes(body, np.zeros(robot.nv)) for body in without_dry_friction(robot).bodies]
    damping, speeds = scatter_add(robot, slopes)[robot.base.nv :], np.full(robot.nj, np.inf)
    np.divide(JointLimits.of(robot).torque, damping, out=speeds, where=damping > 0.0)
    return speeds


def _is_slow(robot: Robot, home: Home, most: float) -> bool:
    """Return whether a pitch joint of a leg has a largest speed below `most`, [sqrt(g / h)], see `has_slow_legs`."""
    speeds = np.minimum(JointLimits.of(robot).speed, damped_speeds(robot))
    least = speeds[[column for leg in home.legs for column in leg.pitch_columns]].min()
    length = float(np.mean([leg.length for leg in home.legs]))
    return bool(least < most * np.sqrt(np.linalg.norm(robot.gravity) / length))
