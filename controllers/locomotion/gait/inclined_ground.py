"""Walks of two feet on ground that rises ahead: higher hips, a trunk nearer to the vertical, and a shorter period.

On such ground the ankles bend more by its slope. Hips that rise keep their distance from the end of the range. Where
steps keep the robot upright, as with heavy legs, ankles with little room left make steps wider and wider: the sole of
the leg behind the body leaves the ground early, and the robot turns. With a shorter period this leg is less far behind,
and with an upright trunk the hips are further back. A trunk that leans as the ground does also loads the joints of the
waist; one that they hardly hold leans less.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.gait.posture import BENDS
from controllers.locomotion.torques.whole_body import JointLimits
from legged.algorithms.legs.leg_chains import joint_axes
from legged.algorithms.legs.standing import Home, home_of
from legged.dynamics.inverse import inverse_dynamics
from legged.dynamics.kinematics import link_poses
from legged.robot.robot import Robot
from legged.spatial import Array

_UPRIGHT_HIPS = 0.94
"""Largest height of the hips on ground that rises ahead, where the ankle bends by the slope more, of their length."""
_STEEPEST = 0.5
"""Slope from which on feet slide at the assumed friction: ankles with room for it have enough."""
_NEAR, _SHORT = 0.07, 0.03
"""Slope before that at which the hips are at their largest height from which on ankles and knees have little room, and
more slope over which a walk changes."""
_TRAVEL = 0.15
"""Way of the body in a stance, [h], from which on it changes so: legs are then further behind the body, or ahead."""
_QUICKER = 0.32
"""Share of the period by which it is then shorter."""
_WAIST = 0.2
"""Least share of the mass that a joint outside the legs carries if it belongs to the waist."""
_TIPS = 1.0
"""Inclination at which the largest torque of a joint of the waist holds what it carries, [rad], below which it is weak:
inclined by as much of it as the trunk accelerates relative to g."""
_LOAD = 0.2
"""Largest share of the torque of a weak waist that the inclination of the trunk takes."""


class InclinedWalk(NamedTuple):
    """Adjustments of hip height, gait period and trunk pitch of a biped to slopes; none by default.

    Attributes:
        begin: Slope ahead from which on the hips rise, dimensionless.
        rate: Rise of the hips per slope, [m]. most: Largest rise, [m].
        ankles: Slope ahead from which on the period is shorter and the trunk upright; infinite if soles keep the robot
            upright or the ankles have room on all slopes.
        trunk: Least and largest inclination of the trunk, (2,), [rad], positive with the nose down; infinite if the
            waist is not weak.
    """

    begin: float = 0.0
    rate: float = 0.0
    most: float = 0.0
    ankles: float = np.inf
    trunk: tuple[float, float] = (-np.inf, np.inf)

    @property
    def has_weak_waist(self) -> bool:
        """Whether joints of the waist hold the upper body at small inclinations alone."""
        return bool(np.isfinite(self.trunk).any())

    @property
    def turns_trunk(self) -> bool:
        """Whether the inclination of the trunk changes at all."""
        return self.has_weak_waist or bool(np.isfinite(self.ankles))

    def rise(self, slope: Any) -> Any:
        """Return how much higher than in the posture the base is, [m].

        Args:
            slope: Of the ground ahead, dimensionless, positive uphill.
        """
        return np.minimum(np.maximum(self.rate * (slope - self.begin), 0.0), self.most) if self.most else 0.0

    def shortage(self, slope: Any, travel: Any) -> Any:
        """Return how much of the room of the ankles is missing, from 0 to 1; 0.0 for a walk that does not change.

        Args:
            slope: As in `rise`. travel: Way of the body in a stance, [h], negative backward.
        """
        if not np.isfinite(self.ankles):
            return 0.0
        share = np.minimum(np.maximum((slope - self.ankles) / _SHORT, 0.0), 1.0)
        return share * np.minimum(np.abs(travel) / _TRAVEL, 1.0)

    def released(self, slope: Any, travel: Any, progress: Any) -> Any:
        """Return the share of its orientation that a swinging sole does not keep, from 0 to 1.

        The sole gives up its orientation where the ankle would leave its range, see `JointLimits.within_range`.
        Backward, down the slope, the foot lands behind the body, where the ankle has no room. Forward, the toe of a
        sole that hangs down early in the swing meets the slope, so that the share increases with its progress.

        Args:
            slope: As in `rise`. travel: As in `shortage`. progress: Fraction of the swing that has passed.
        """
        first, last = self.shortage(slope, np.minimum(travel, 0.0)), self.shortage(slope, travel)
        return first + progress * (last - first) if np.isfinite(self.ankles) else 0.0

    def period(self, slope: Any, travel: Any) -> Any:
        """Return the factor of the period, dimensionless; 1.0 for a walk that does not change.

        Args:
            slope: As in `rise`. travel: As in `shortage`.
        """
        return 1.0 - _QUICKER * self.shortage(slope, travel)

    def pitch(self, slope: Any, travel: Any, lean: Any) -> Any:
        """Return the pitch of the trunk from the inclination that it would have, [rad].

        Args:
            slope: As in `rise`. travel: As in `shortage`. lean: Inclination with which it would lean back, [rad].
        """
        upright = self.shortage(slope, travel) * lean
        if not self.has_weak_waist:
            return upright
        return np.minimum(np.maximum(upright - lean, self.trunk[0]), self.trunk[1]) + lean


def inclined_walk(robot: Robot, home: Home, q: Array, balances_by_steps: bool) -> InclinedWalk:
    """Return the adjustments of the walk of a robot to slopes.

    On ground that rises ahead, the ankle, the third pitch joint, is nearer to the end of its range by the slope. Over
    feet at the same places it is further from it with higher hips.

    Args:
        robot: The robot. home: Its standing posture. q: Its configuration in this posture, (nq,).
        balances_by_steps: Whether steps keep it upright, see `FootstepLaw.narrow`.
    """
    if len(home.legs) > 2:
        return InclinedWalk()
    trunk = _held_inclinations(robot, home)
    if any(len(leg.pitch_columns) < 3 for leg in home.legs):
        return InclinedWalk(trunk=trunk)
    limits, length = JointLimits.of(robot), min(leg.length for leg in home.legs)
    most = max(_UPRIGHT_HIPS * length - home.hip_height, 0.0)
    upright = home_of(robot, home.hip_height + most, nearest=True) if most else home
    rotations, origins = link_poses(robot, q)
    margins = []
    for leg in home.legs:
        k = leg.pitch_columns[2]
        axis = next(axis for axis in joint_axes(robot, leg.link, rotations, origins) if axis.column == k)
        end, sign = (limits.lower[k], 1.0) if axis.direction[1] > 0.0 else (limits.upper[k], -1.0)
        margins.append([sign * (x.angles[k] - end) for x in (home, upright)])
    low, high = np.min(margins, axis=0)
    begin, rises = float(low - BENDS), bool(np.isfinite(low) and high > low)
    rate = float((upright.hip_height - home.hip_height) / (high - low)) if rises else 0.0
    ankles = max(begin, begin + most / rate - _NEAR) if rises else begin
    if not balances_by_steps or ankles > _STEEPEST:
        ankles = np.inf
    return InclinedWalk(begin, rate, most, ankles, trunk) if rises else InclinedWalk(ankles=ankles, trunk=trunk)


def _held_inclinations(robot: Robot, home: Home) -> tuple[float, float]:
    """Return `InclinedWalk.trunk`: the inclinations forward at which no weak joint of the waist is loaded too much.

    The torque of a joint that no ground force loads is that of the weight that it carries; it changes by an inclination
    as by the same acceleration over g.
    """
    nb, legs = robot.base.nv, {k for leg in home.legs for k in leg.columns}
    limits, zero = JointLimits.of(robot).torque, np.zeros(robot.nv)
    moved = [{robot.bodies[k].v.start - nb for k in robot.ancestors(link.body)} for link in robot.links]
    waist = []
    for k in set(range(robot.nj)) - legs:
        carried = [(link.inertia.mass, own) for link, own in zip(robot.links, moved, strict=True) if k in own]
        is_heavy = sum(mass for mass, _ in carried) > _WAIST * robot.mass
        if is_heavy and 0.0 < limits[k] < np.inf and not any(legs & own for _, own in carried):
            waist.append(k)
    if not waist:
        return -np.inf, np.inf

    def shares(angle: float, side: bool) -> Array:
        c, s = np.cos(angle), np.sin(angle)
        R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]] if side else [[c, 0, s], [0, 1, 0], [-s, 0, c]])
        base = robot.base.configuration(np.array([0.0, 0.0, home.base_height]), R)
        tau = inverse_dynamics(robot, np.concatenate([base, home.angles]), zero, zero)
        return tau[nb:][waist] / limits[waist]

    level, angle = shares(0.0, False), 0.1
    forward, sideways = ((shares(angle, side) - shares(-angle, side)) / (2.0 * angle) for side in (False, True))
    weak = np.maximum(np.abs(forward), np.abs(sideways)) > 1.0 / _TIPS
    if not weak.any():
        return -np.inf, np.inf
    least, most = -np.inf, np.inf
    for share, rate in zip(level[weak], forward[weak], strict=True):
        if abs(rate) * _STEEPEST > _LOAD:
            ends = sorted(((-_LOAD - share) / rate, (_LOAD - share) / rate))
            least, most = max(least, float(ends[0])), min(most, float(ends[1]))
    return (least, most) if least <= most else (0.5 * (least + most), 0.5 * (least + most))
