"""The largest speed that a robot can follow now: the commanded speed rises while body and motors keep up with it.

The largest speed of a robot depends on the torques and speeds of its joints along the whole gait, and no static
estimate of it is better than a fifth. Four loads show that a robot is near it before it falls: the share of the time in
which a motor gives all torque that it has at its speed, the inclination of the trunk, the distance by which the body
sinks or rises, and that by which its speed stays behind the command. Each is relative to the value at which robots are
at their limit. The load s of the robot is the largest of them forward, and the root of the sum of their squares, with
1.44 times that of the motors, backward, sideways and in turns, where robots fall when several of them are below their
limit; between, with the fourth power f of the share of forward vx in the speed, it is f times the first plus 1 - f
times the second. In paces, bounds, gallops and pronks, whose trunk moves in all directions in each cycle, f is zero, in
a walk it is 0.7 times this power. The second is multiplied by 1.2 in a trot, by 1 in those gaits. The speed limit u
has the rate

    du/dt = a (1 - s) / 0.5,    between -(3 - 2 f) 0.05 g and a.

The acceleration a is 0.05 g. Forward and backward it is up to 0.15 g at speeds up to 0.8 sqrt(g h), with a transition
until 1.3 sqrt(g h), as long as no motor is at its limit: motors of a robot that is near its largest speed are at theirs
before. In paces, bounds, gallops and pronks, whose loads have peaks in each cycle, it increases more slowly, by the
factor 0.4.

In these gaits the trunk inclines, rises and lags in each cycle at all speeds. The tolerances of the first three loads
are therefore 1 + 4 U times as large, with the unevenness U of the gait (`GaitChoice.unevenness`): once in a trot, and
about twice in these gaits. In a pronk, whose feet stand together, that of the inclination is 1 + U times as large.
The weight f has the factor 1 - 4 U, at least zero.

Thus the robot accelerates less near its limit, stays at the speed at which its load is 1, and slows down above. In
curves, friction bounds the speed in addition: the centripetal acceleration is at most 0.6 of the friction coefficient
times g.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.gait.choice import GaitChoice
from controllers.locomotion.gait.footsteps import GroundPlane, plane_of
from controllers.locomotion.memory import LocomotionMemory
from controllers.locomotion.motion import BodyState, desired_rotation
from controllers.locomotion.motion_plan import MotionPlanner
from controllers.locomotion.velocity_command import velocity_text
from legged.compiler.ir import where
from legged.spatial import Array, cross, is_finite, join

_TILT = 0.3  # [rad], inclination of the trunk
_SINK, _LIFT = 0.2, 0.15  # [h], distance of the center of mass below and above its height
_LAG = 0.1  # [sqrt(g h)], commanded minus actual speed
_UNEVEN = 4.0  # factor of the unevenness of a gait by which these tolerances increase
_TOGETHER = 0.25  # weight of the changing number of standing feet in that of the inclination
_ASIDE = 1.2  # factor of the load backward, sideways and in turns in even gaits
_UNEVEN_GROWTH = 0.4  # factor of the growth of the limit in uneven gaits
_SATURATED = 0.6  # share of the time in which a motor gives all torque that it has at its speed
_ALL = 0.98  # of this torque, from which on it is all
_RISE, _FALL, _MEAN = 0.3, 3.0, 3.0
"""Time constants, [sqrt(h / g)]: of the first three loads when they rise and when they fall, and of the last load."""
_GROWTH = 0.05  # [g], largest change of the speed limit
_DECREASE = 3.0  # factor of a decrease backward, sideways and in turns
_SUM = np.array([1.0, 1.0, 1.0, 1.44])  # weights of the squares of loads that are added there
_CENTRIPETAL = 0.6  # of friction coefficient times g: largest centripetal acceleration
_WIDTH = 0.5  # difference of the load from 1 at which the limit changes at this rate
_GROWTH_IF_SLOW = 0.15  # [g], the same of an increase at low speeds
_SLOW, _FAST = 0.8, 1.3  # [sqrt(g h)], largest speed with this increase, and least one with the other
_SPARE = 0.03  # share of time with a motor at its limit at which the limit increases at the lower rate
_MARGIN = 0.1  # [sqrt(g h)], largest distance of the limit above the present speed
_HELD = 0.97  # load from which on the limit counts as reached; Go2 has 0.94 while it accelerates sideways to 0.4 m/s


class SpeedLimit(NamedTuple):
    """Loads of a robot and the largest speed that it is to follow.

    Attributes:
        loads: Low-pass filtered inclination, error of the height, lag and share of time at the limits of motors, each
            relative to the largest value at which the robot can go on, (4,), dimensionless.
        most: The largest speed, as `GaitChoice.speed`, [m/s].
        held: 1 once the load or friction, not the acceleration, has kept the robot below the commanded speed, until it
            reaches it.
    """

    loads: Array
    most: Any
    held: Any

    @classmethod
    def of(cls, flat: Array) -> SpeedLimit:
        """Return the limit from its vector.

        Args:
            flat: As the method `flat` returns it, (6,), mixed units.
        """
        return cls(flat[:4], flat[4], flat[5])

    def flat(self) -> Array:
        """Return the limit as a vector, (6,), mixed units."""
        return np.concatenate([self.loads, np.stack([self.most, self.held])])

    def after(
        self,
        loads: Array,
        wanted: Any,
        last: Any,
        free: Any,
        along: Any,
        height: float,
        gravity: float,
        dt: float,
        even: Any = 1.0,
    ) -> SpeedLimit:
        """Return the limit a time step later.

        Args:
            loads: The present loads before filtering, from `loads_of`, (4,), dimensionless.
            wanted: Commanded speed, [m/s]. last: Speed of the command that the robot follows, [m/s].
            free: Speed up to which it follows commands whatever its loads, [m/s].
            along: Fourth power of the share of vx in the commanded speed with the sign of vx, from -1 to 1.
            height: h, of the center of mass of the standing robot, [m]. gravity: Magnitude g, [m/s^2].
            dt: Time step, [s].
            even: Weight of the rule of forward motion in this gait: 1 in a trot, 0 in a pace, dimensionless.
        """
        unit, time = float(np.sqrt(gravity * height)), float(np.sqrt(height / gravity))
        rises = [where(a > b, _RISE, _FALL) for a, b in zip(loads[:3], self.loads[:3], strict=True)]
        shares = np.stack([*(np.minimum(1.0, dt / (x * time)) for x in rises), np.minimum(1.0, dt / (_MEAN * time))])
        filtered = self.loads + shares * (loads - self.loads)
        positive = np.maximum(filtered, 0.0)
        forward = even * np.maximum(along, 0.0)
        largest = np.maximum(np.maximum(positive[0], positive[1]), np.maximum(positive[2], positive[3]))
        aside = 1.0 + (_ASIDE - 1.0) * even
        load = forward * largest + (1.0 - forward) * aside * np.sqrt(positive @ (_SUM * positive) + 1e-12)
        slow = np.minimum(np.maximum((_FAST - self.most / unit) / (_FAST - _SLOW), 0.0), 1.0)
        slow = slow * np.abs(along) * np.maximum(1.0 - filtered[3] * _SATURATED / _SPARE, 0.0)
        share = _UNEVEN_GROWTH + (1.0 - _UNEVEN_GROWTH) * even
        growth = where(load < 1.0, share * (_GROWTH + (_GROWTH_IF_SLOW - _GROWTH) * slow), _GROWTH)
        fall = 1.0 + (_DECREASE - 1.0) * (1.0 - forward)
        rate = growth * gravity * np.minimum(np.maximum((1.0 - load) / _WIDTH, -fall), 1.0)
        most = np.maximum(np.minimum(self.most + dt * rate, last + _MARGIN * unit), free)
        held = where(wanted > most, where(load > _HELD, 1.0, self.held), 0.0)
        return SpeedLimit(filtered, most, held)


def followed_command(
    wanted: Array,
    memory: LocomotionMemory,
    body: BodyState,
    v: Array,
    planner: MotionPlanner,
    gaits: GaitChoice,
    dt: float,
) -> tuple[Array, Array]:
    """Return the new speed limit, (6,), as `SpeedLimit.flat`, and the command within it, (7,), units of `Command`.

    The velocity is that of the command times one factor, so that it keeps its direction.

    Args:
        wanted: The command of this time, (7,), units of `Command`. memory: At the last evaluation.
        body: The present motion. v: Velocity, (nv,). planner: The robot. gaits: Its gaits.
        dt: Time between two evaluations, [s].
    """
    gait = gaits.target(memory.chosen, memory.target)
    speed, free = gaits.speed(wanted), gaits.free_speed(gait)
    tolerance, tilt = (1.0 + _UNEVEN * gaits.unevenness(gait, together) for together in (1.0, _TOGETHER))
    even = np.maximum(2.0 - tolerance, 0.0)
    loads = _present_loads(memory, body, v, planner, gaits.radius) / np.stack([tilt, tolerance, tolerance, 1.0])
    share = wanted[0] / np.maximum(speed, 1e-9)
    last, along = gaits.speed(memory.command), share * np.abs(share) ** 3
    limit = SpeedLimit.of(memory.speed).after(
        loads, speed, last, free, along, planner.height, planner.gravity, dt, even
    )
    inward = np.sqrt(wanted[:2] @ wanted[:2]) * np.abs(wanted[2])
    curve = np.sqrt(np.maximum(inward / (_CENTRIPETAL * memory.friction * planner.gravity), 1.0))
    slips = curve > 1.0
    most = where(slips, np.minimum(limit.most, speed / curve), limit.most)
    limit = limit._replace(most=most, held=where(slips, 1.0, limit.held))
    share = np.minimum(1.0, limit.most / np.maximum(speed, 1e-9))
    return limit.flat(), join(share * wanted[:3], wanted[3:])


def speed_notice(robot: str, t: float, memory: LocomotionMemory, wanted: Array) -> str:
    """Return a notice that a robot cannot follow its command, "" if it can.

    Args:
        robot: Its name. t: Time, [s]. memory: Its memory then.
        wanted: Commanded velocity, (3,), [m/s], [m/s], [rad/s], heading axes; NaN if it is not known.
    """
    if SpeedLimit.of(memory.speed).held < 0.5:
        return ""
    command = "its command"
    if np.isfinite(wanted).all():
        command = f"the command {velocity_text(wanted)}"
    return (
        f"robot {robot!r} cannot follow {command}: at t = {t:.4g} s it is to move at "
        f"{velocity_text(memory.command)}, since at higher speeds its motors are at their limits, its body leans, "
        f"sinks or rises, it lags behind, or its feet would slip"
    )


def _present_loads(memory: LocomotionMemory, body: BodyState, v: Array, planner: MotionPlanner, radius: float) -> Array:
    """Return the loads before filtering, (4,), dimensionless, as in `SpeedLimit`; zero in a jump.

    Args:
        memory: At the last evaluation. body: The present motion. v: Velocity, (nv,). planner: The robot.
        radius: Largest distance of a foot from the center of mass, [m].
    """
    h, last, n0 = planner.height, memory.command, planner.robot.base.nv
    plane = GroundPlane(plane_of(list(memory.places), h).point, memory.slope)
    leaning = cross(desired_rotation(memory.path[2], last, plane)[:, 2], body.rotation[:, 2])
    above = body.position[2] - plane.height(body.position[:2]) - h  # while the commanded height changes, it lags behind
    height = np.maximum((np.minimum(last[3], 0.0) - above) / _SINK, (above - np.maximum(last[3], 0.0)) / _LIFT) / h
    units = np.array([1.0, 1.0, radius])
    followed, actual = units * last[:3], units * join(body.heading @ body.velocity[:2], body.angular_velocity[2:])
    speed = np.sqrt(followed @ followed + 1e-12)
    lag = (speed - followed @ actual / speed) / np.sqrt(planner.gravity * h)
    least, most = planner.limits.torque_bounds(v[n0:])
    legs = [k for foot in planner.feet for k in foot.columns]
    full = _is_saturated(memory.tau[n0:][legs], planner.limits.torque[legs], least[legs], most[legs])
    loads = np.stack([np.sqrt(leaning @ leaning) / _TILT, height, lag / _LAG, full / _SATURATED])
    return where(memory.jump * memory.jump > 0.0, 0.0, 1.0) * loads


def _is_saturated(tau: Array, efforts: Array, least: Array, most: Array) -> Any:
    """Return 1 if one of k joints has all torque that its motor gives at its speed, 0 otherwise.

    Args:
        tau: Joint torques, (k,), [N m] or [N]. efforts: Largest ones at rest, (k,), infinite without a limit.
        least: Least torques at the present speeds, (k,), [N m] or [N]. most: Largest ones, (k,), [N m] or [N].
    """
    full: Any = 0.0
    for torque, effort, low, high in zip(tau, efforts, least, most, strict=True):
        if is_finite(effort):
            full = np.maximum(full, where((torque > _ALL * high) | (torque < _ALL * low), 1.0, 0.0))
    return full
