"""The command of locomotion: values, functions of time, or live input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from controllers.locomotion.gait.schedule import GaitState
from legged import arguments
from legged.checked import checked
from legged.compiler.ir import where
from legged.errors import ShapeError
from legged.spatial import Array, join, sum_of

ACCELERATION = 0.15
"""Largest change of the commanded velocity, [g]."""
_ON_TWO, _SLOWLY_ON_TWO, _SLOW = 0.08, 0.04, 0.25
"""Accelerations of `acceleration_on_two`, [g], and the commanded speed below which the first one holds, [sqrt(g h)]."""
_YAW_ACCELERATION = 0.2  # [g / h]
_LEAST_SHARE = 0.05  # of a change of the velocity, at which a robot starts although a foot is too far behind
_CLIMB, _PITCH = 0.2, 0.3  # [sqrt(g h)], [sqrt(g / h)], largest rates of the commanded height, and of pitch and roll

_SAME = 1e-6
"""Relative difference of velocities that are the same."""
LEAST_ENTRIES, ENTRIES = 5, 7
"""Number of entries of a command without roll and jump, and with them."""
JUMP = 6
"""Entry of the jump."""

Source = float | Callable[[Any], Any]


@checked
@dataclass(frozen=True, eq=False)
class Command:
    """Desired motion of a walking robot. Each entry is a number or a function of time [s].

        Command(vx=0.8, yaw_rate=0.3)
        Command(vx=lambda t: 0.5 * np.minimum(t, 2.0))

    Attributes:
        vx: Velocity forward along the heading, [m/s].
        vy: Velocity to the left, [m/s].
        yaw_rate: Rate of the heading, [rad/s], positive to the left.
        height: Height of the base over that of the standing posture, [m].
        pitch: Pitch of the base from the slope of the ground, [rad], positive with the nose down.
        roll: Roll of the base from the slope of the ground, [rad], positive with the left side up.
        jump: Rise of the center of mass in a jump, [m]. Where it is positive, the robot stops, jumps from all feet with
            the commanded velocity, and lands; it jumps again as long as it is positive.
    """

    vx: Source = 0.0
    vy: Source = 0.0
    yaw_rate: Source = 0.0
    height: Source = 0.0
    pitch: Source = 0.0
    roll: Source = 0.0
    jump: Source = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not callable(getattr(self, field.name)):
                arguments.number(field.name, getattr(self, field.name))

    @property
    def is_constant(self) -> bool:
        """Whether all entries are numbers."""
        return not any(callable(getattr(self, field.name)) for field in fields(self))

    def __call__(self, t: Any) -> Array:
        """Return [vx, vy, yaw_rate, height, pitch, roll, jump] at a time t, [s], (7,)."""
        parts: list[Any] = [getattr(self, field.name) for field in fields(self)]
        values: list[Any] = [part(t) if callable(part) else part + 0.0 * t for part in parts]
        return np.stack(values)

    def switches(self, until: float) -> Array:
        """Return the times before `until` at which an entry jumps, (n,), [s]."""
        parts = (getattr(self, field.name) for field in fields(self))
        known = [np.asarray(part.switches(until)) for part in parts if hasattr(part, "switches")]
        return np.unique(np.concatenate([np.zeros(0), *known]))


def read_command(command: Any) -> Array:
    """Return the entries of a command at one time, (7,), mixed units as in `Command`.

    Args:
        command: (5,), (6,) or (7,) numbers or traced expressions; roll and jump are zero by default.

    Raises:
        ShapeError: There are fewer or more.
    """
    command = np.asanyarray(command)
    if command.ndim != 1 or not LEAST_ENTRIES <= len(command) <= ENTRIES:
        raise ShapeError(
            f"a command must be (5,) to (7,): vx, vy, yaw rate, height, pitch, roll and jump, got shape {command.shape}"
        )
    return join(command, np.zeros(ENTRIES - len(command))) if len(command) < ENTRIES else command


def limited_command(
    wanted: Array,
    last: Array,
    height: float,
    gravity: float,
    dt: float,
    acceleration: float = ACCELERATION,
    turning: Any = 1.0,
) -> Array:
    """Return a command with bounded rates, (7,), units of `Command`; jumps are not bounded.

    Args:
        wanted: The command, (7,), units of `Command`.
        last: The command a time step before, with bounded rates, (7,), units of `Command`.
        height: Height h of the center of mass of the standing robot, [m].
        gravity: Magnitude g, [m/s^2].
        dt: Time step, [s].
        acceleration: Largest change of the velocity away from zero, [g]; towards zero it is `ACCELERATION`.
        turning: Factor of the largest change of the yaw rate.
    """
    g, h = gravity, height
    rates = [
        where((a - b) * b < 0.0, ACCELERATION, acceleration) * g for a, b in zip(wanted[:2], last[:2], strict=True)
    ]
    pitching = _PITCH * np.sqrt(g / h)
    rates += [turning * _YAW_ACCELERATION * g / h, _CLIMB * np.sqrt(g * h), pitching, pitching]
    pairs = zip(wanted[:JUMP], last[:JUMP], rates, strict=True)
    return np.stack([*(b + np.minimum(np.maximum(a - b, -r * dt), r * dt) for a, b, r in pairs), wanted[JUMP]])


def acceleration_on_two(wanted: Array, state: GaitState, height: float, gravity: float) -> Any:
    """Return the largest rate of a commanded velocity that increases, of a robot with two feet, [g].

    It is 0.04 g until the first foot lifts off: a standing robot accelerates only as far as its center of pressure can
    move back under its soles. A walking robot also accelerates by its foot placement: the rate is then 0.08 g for
    commands below 0.25 sqrt(g h), and 0.04 g for faster ones, with which some robots fall at 0.08 g.

    Args:
        wanted: The command, (7,), units of `Command`.
        state: State of the gait. height: As in `limited_command`, [m]. gravity: Magnitude g, [m/s^2].
    """
    is_slow = wanted[:2] @ wanted[:2] < _SLOW**2 * gravity * height
    return where(is_slow & (state.walking > 0.5) & (state.starts < 0.5), _ON_TWO, _SLOWLY_ON_TWO)


def slowed(velocity: Array, fastest: Array, on_two: bool) -> Array:
    """Return a commanded velocity in the same direction within the largest ones, (3,), units of `Command`.

    The root of the sum of the squares of the components over the largest ones is at most 1. On two feet it is their
    sum: G1 falls in curves and diagonally at a sum of 1.07 to 1.4.

    Args:
        velocity: Forward, to the left, and yaw rate, (3,), [m/s], [m/s], [rad/s], heading axes.
        fastest: Largest magnitude of each, (3,), [m/s], [m/s], [rad/s], heading axes.
        on_two: Whether the robot has two feet.
    """
    ratios = velocity / fastest
    size = sum_of(np.abs(ratios)) if on_two else np.sqrt(ratios @ ratios)
    return velocity / np.maximum(size, 1.0)


def bound_notice(robot: str, t: float, wanted: Array, followed: Array, fastest: Array, on_two: bool) -> str:
    """Return a notice that a command is beyond the largest velocities of a robot, "" if it is not.

    A velocity that is not known counts as beyond if the robot follows the largest one in its direction.

    Args:
        robot: Its name. t: Time, [s].
        wanted: Commanded velocity, (3,), [m/s], [m/s], [rad/s], heading axes; NaN if it is not known.
        followed: That which it follows then, as `wanted`. fastest: As in `slowed`. on_two: As in `slowed`.
    """
    is_known = bool(np.isfinite(wanted).all())
    velocity = wanted if is_known else (1.0 + 2.0 * _SAME) * followed
    reached = slowed(velocity, fastest, on_two)
    if np.abs(reached - velocity).max() <= _SAME * np.abs(velocity).max():
        return ""
    command = f"the command {velocity_text(wanted)}" if is_known else "its command"
    return (
        f"robot {robot!r} cannot follow {command}: at t = {t:.4g} s it is to move at {velocity_text(reached)}, since "
        f"its largest velocities are {fastest[0]:.3g} m/s forward, {fastest[1]:.3g} m/s to the left and "
        f"{fastest[2]:.3g} rad/s, by the speeds of its joints, its height and the distance of its feet"
    )


def velocity_text(velocity: Array) -> str:
    """Return the words of a velocity.

    Args:
        velocity: (3,), [m/s], [m/s], [rad/s], heading axes.
    """
    return ", ".join(f"{name}={x:.3g}" for name, x in zip(("vx", "vy", "yaw_rate"), velocity[:3], strict=True))


def command_within_reach(
    wanted: Array, last: Array, places: Array, feet: Array, state: GaitState, most: float, dt: float
) -> Array:
    """Return a command with a velocity that changes slowly enough for the feet that stand, (7,), units of `Command`.

    If the velocity went on to change at the returned rate, each foot that stands would lift off before it is too far
    behind its place under the body. A robot that starts to walk stands for longer on its last foot than in a cycle, on
    a foot that was not ahead; in a start at full acceleration this leg would be stretched, and the gait too fast. If a
    foot is out of reach already, 0.05 of the change remains, so that the robot starts and lifts it.

    Args:
        wanted: The command with bounded rates, (7,), units of `Command`.
        last: The command a time step before, (7,), units of `Command`.
        places: Places of the feet under the body, (n, 2), [m], from the center of mass, heading axes.
        feet: Positions of the feet, (n, 2), [m], from the center of mass, heading axes.
        state: State of the gait.
        most: Largest distance of a foot behind its place, [m].
        dt: Time step, [s].
    """
    change, share = wanted[:3] - last[:3], 1.0
    rows = zip(places, feet, state.stance, state._replace(walking=1.0).time_to_lift_off, strict=True)
    for place, foot, stands, left in rows:
        turn = np.array([-place[1], place[0]])
        velocity, more = last[:2] + last[2] * turn, change[:2] + change[2] * turn
        along = (velocity + more) / np.sqrt((velocity + more) @ (velocity + more) + 1e-12)
        room = np.maximum(most - (place - foot + left * velocity) @ along, 0.0)
        needed = 0.5 * left * left * (more @ along) / dt
        share = np.minimum(share, where((stands > 0.5) & (needed > room), room / np.maximum(needed, 1e-9), 1.0))
    return join(last[:3] + np.maximum(share, _LEAST_SHARE) * change, wanted[3:])
