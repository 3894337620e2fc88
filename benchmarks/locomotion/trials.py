"""The trials of each robot: command, gait, terrain, disturbance, and imperfections of sensors and actuators.

Speeds are in units of sqrt(g h) and yaw rates in units of sqrt(g / h), with h the height of the center of mass. Thus
robots of every size get the same trials. Robots with two feet get slower commands, smaller pushes and lower stairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

PLAIN, RATES, DELAYED, ACTUATED = "plain", "rates", "delayed", "actuated"
STAIRS, WAVES, STONES = "stairs", "waves", "stones"
"""Kinds of closed loops. All trials of one kind are members of one rollout of each robot."""
UNKNOWN = "unknown "
"""Begins the kinds of trials of blind robots."""
GAITS = ("trot", "walk", "crawl", "pace", "bound", "gallop", "pronk")
UPHILL = float(np.radians(15.0))
DIRECTIONS, PHASES = 8, 4
_STARTS = (0.0, 0.3, 0.6, 0.9)  # [h], of stairs and stones 0.7 and 1.2 h long and of waves


@dataclass(frozen=True)
class Trial:
    """One simulation in closed loop.

    Attributes:
        row: Row of the table to which it belongs.
        command: Velocity forward and to the left, [sqrt(g h)], and yaw rate, [sqrt(g / h)].
        kind: Kind of closed loop.
        gait: Name of the gait; "" for the usual one.
        slope: Inclination of the ground, [rad], positive if it rises along x.
        friction: Friction coefficient of the ground.
        assumed: Friction coefficient on which the controller counts.
        push: Change of velocity, [sqrt(g h)], by a push on the trunk; 0 for none.
        direction: Direction of the push, [rad], from +x towards +y.
        phase: Time of the push, as a fraction of a cycle of the gait.
        noise: Multiple of the standard deviations of the sensor noise.
        seed: Seed of the noise.
        payload: Mass in the trunk that the controller does not know, as a fraction of the robot's mass.
        rate: Evaluations of the controller per second, [1/s].
        delay: Time from measurement to torque, [s].
        lag: Time constant of the actuators, [s].
        gears: Dry friction of each joint, as a fraction of m g h.
        rise: Height of the steps of stairs, inclination of the steepest part of waves, or width of the gaps between
            stones, [h], [rad], [h].
        start: Distance by which stairs, waves or stones begin later, [h].
    """

    row: str
    command: tuple[float, float, float] = (0.3, 0.0, 0.0)
    kind: str = PLAIN
    gait: str = ""
    slope: float = 0.0
    friction: float = 0.6
    assumed: float = 0.5
    push: float = 0.0
    direction: float = 0.0
    phase: float = 0.0
    noise: float = 0.0
    seed: int = 0
    payload: float = 0.0
    rate: float = 500.0
    delay: float = 0.0
    lag: float = 0.0
    gears: float = 0.0
    rise: float = 0.0
    start: float = 0.0


Slow = Callable[[float], float]
"""A function of a speed of a robot with more than two feet: the speed of this robot."""


def _forward(slow: Slow, feet: int) -> list[Trial]:
    return [Trial("forward", (slow(x), 0.0, 0.0)) for x in (-0.3, 0.15, 0.3, 0.6, 0.9, 1.2)]


def _fast(slow: Slow, feet: int) -> list[Trial]:
    speeds = (0.35, 0.42, 0.49) if feet == 2 else (1.5, 1.8, 2.1)
    return [Trial("fast", (x, 0.0, 0.0)) for x in speeds]


def _sideways(slow: Slow, feet: int) -> list[Trial]:
    return [Trial("sideways", (0.0, slow(y), 0.0)) for y in (0.1, 0.2, 0.35)]


def _turning(slow: Slow, feet: int) -> list[Trial]:
    turns = ((0.0, 0.0, 0.13), (0.0, 0.0, 0.26), (slow(0.3), 0.0, 0.15), (slow(0.15), slow(0.1), -0.1))
    return [Trial("turning", command) for command in turns]


def _gaits(slow: Slow, feet: int) -> list[Trial]:
    if feet == 2:
        return []
    names = (*GAITS, "tripod") if feet == 6 else GAITS
    return [Trial("gaits", (0.05 if name == "crawl" else 0.15, 0.0, 0.0), gait=name) for name in names]


def _slopes(slow: Slow, feet: int) -> list[Trial]:
    ways = ((slow(0.3), 0.0, 0.0), (slow(-0.3), 0.0, 0.0), (0.0, slow(0.15), 0.0))
    return [Trial("slopes of 15 degrees", way, slope=s * UPHILL) for way in ways for s in (1.0, -1.0)]


def _friction(slow: Slow, feet: int) -> list[Trial]:
    command = (slow(0.3), 0.0, 0.0)
    unknown = [Trial("friction 0.3 to 0.8", command, friction=mu) for mu in (0.3, 0.4, 0.6, 0.8)]
    known = [Trial("friction 0.3, 0.4, known", command, friction=mu, assumed=0.8 * mu) for mu in (0.3, 0.4)]
    return unknown + known


def _pushes(slow: Slow, feet: int) -> list[Trial]:
    angles = 2.0 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    phases = np.arange(PHASES) / PHASES
    sizes = (0.05, 0.11) if feet == 2 else (0.29, 0.58)
    return [
        Trial(f"{name} pushes", (slow(0.3), 0.0, 0.0), push=size, direction=float(angle), phase=float(phase))
        for name, size in zip(("small", "large"), sizes, strict=True)
        for angle in angles
        for phase in phases
    ]


def _noise(slow: Slow, feet: int) -> list[Trial]:
    return [Trial("sensor noise", (slow(0.3), 0.0, 0.0), noise=k, seed=seed) for k in (1.0, 2.0) for seed in (1, 2)]


def _payload(slow: Slow, feet: int) -> list[Trial]:
    return [Trial("unknown payload of 20 %", (slow(x), 0.0, 0.0), payload=0.2) for x in (0.15, 0.3, 0.6)]


def _rates(slow: Slow, feet: int) -> list[Trial]:
    command = (slow(0.3), 0.0, 0.0)
    return [Trial(f"control at {rate} Hz", command, kind=RATES, rate=float(rate)) for rate in (50, 100, 200, 500, 1000)]


def _delays(slow: Slow, feet: int) -> list[Trial]:
    return [
        Trial(f"delay of {1e3 * delay:g} ms", (slow(x), 0.0, 0.0), kind=DELAYED, delay=delay)
        for delay in (0.005, 0.01)
        for x in (0.0, 0.15, 0.3)
    ]


def _actuators(slow: Slow, feet: int) -> list[Trial]:
    return [
        Trial(row, (slow(x), 0.0, 0.0), kind=ACTUATED, lag=lag, gears=gears)
        for row, lag, gears in (
            ("lag of 4 ms", 0.004, 0.0),
            ("lag of 10 ms", 0.01, 0.0),
            ("lag of 4 ms, gear friction", 0.004, 0.01),
        )
        for x in (0.0, 0.15, 0.3)
    ]


def _stairs(slow: Slow, feet: int) -> list[Trial]:
    slow_walks, fast_walks = (0.15, 0.2, 0.25, 0.3), (0.4, 0.6, 0.75, 0.9)
    rises = (
        {0.05: slow_walks, 0.1: slow_walks, 0.165: fast_walks} if feet == 2 else {0.15: slow_walks, 0.33: slow_walks}
    )
    return [
        Trial(f"stairs {way}, {rise:g} h", (slow(x), 0.0, 0.0), kind=STAIRS, rise=sign * rise)
        for rise, speeds in rises.items()
        for way, sign in (("up", 1.0), ("down", -1.0))
        for x in speeds
    ]


def _waves(slow: Slow, feet: int) -> list[Trial]:
    return [
        Trial(f"waves, {degrees} degrees", (slow(x), slow(y), 0.0), kind=WAVES, rise=float(np.radians(degrees)))
        for degrees in ((4, 8) if feet == 2 else (8, 15))
        for x, y in ((0.15, 0.0), (0.3, 0.0), (0.5, 0.0), (0.0, 0.15))
    ]


def _stones(slow: Slow, feet: int) -> list[Trial]:
    return [
        Trial(f"stones, gaps of {gap:g} h", (slow(x), 0.0, 0.0), kind=STONES, rise=gap)
        for gap in (0.1, 0.2)
        for x in (0.15, 0.2, 0.25, 0.3)
    ]


def _blind(slow: Slow, feet: int) -> list[Trial]:
    known = [trial for rows in (_slopes, _stairs, _waves, _stones) for trial in rows(slow, feet)]
    unknown = [replace(trial, row=UNKNOWN + trial.row, kind=UNKNOWN + trial.kind) for trial in known]
    return [replace(trial, start=start) for trial in unknown for start in (_STARTS if _is_hard(trial) else (0.0,))]


def _is_hard(trial: Trial) -> bool:
    """Return whether robots on unknown terrain are at their limit: outcomes of such trials depend on details."""
    least = {UNKNOWN + STAIRS: 0.3, UNKNOWN + WAVES: float(np.radians(12.0)), UNKNOWN + STONES: 0.0}
    return trial.kind in least and abs(trial.rise) > least[trial.kind]


def _survey(slow: Slow, feet: int) -> list[Trial]:
    on_two = feet == 2
    share, speeds, size = (0.5, (0.1, 0.2, 0.35), 0.11) if on_two else (1.0, (0.15, 0.3, 0.6), 0.29)
    ways = [(x, 0.0, 0.0) for x in (0.0, *speeds, -0.3 * share)]
    ways += [(0.0, 0.15 * share, 0.0), (0.0, -0.15 * share, 0.0), (0.0, 0.0, 0.26), (0.0, 0.0, -0.26)]
    ways += [(0.3 * share, 0.0, 0.15), (0.15 * share, 0.1 * share, 0.0)]
    forward, angle = (0.3 * share, 0.0, 0.0), float(np.radians(10.0))
    trials = [Trial("survey", way) for way in ways]
    trials += [Trial("survey", forward, push=size, direction=float(0.5 * np.pi * k), phase=0.25 * k) for k in range(4)]
    climbs = (forward, (-0.3 * share, 0.0, 0.0))
    trials += [Trial("survey", way, slope=sign * angle) for way in climbs for sign in (1.0, -1.0)]
    trials += [Trial("survey", (0.0, 0.15 * share, 0.0), slope=angle)]
    return [*trials, Trial("survey", forward, friction=0.25, assumed=0.2)]


ROWS: dict[str, Callable[[Slow, int], list[Trial]]] = {
    "survey": _survey,
    "forward": _forward,
    "fast": _fast,
    "sideways": _sideways,
    "turning": _turning,
    "gaits": _gaits,
    "slopes": _slopes,
    "stairs": _stairs,
    "waves": _waves,
    "stones": _stones,
    "blind": _blind,
    "friction": _friction,
    "pushes": _pushes,
    "delay": _delays,
    "noise": _noise,
    "payload": _payload,
    "actuators": _actuators,
    "rates": _rates,
}
"""Groups of rows by name."""


def trials(feet: int, groups: list[str]) -> list[Trial]:
    """Return the trials of some groups of rows for a robot with a number of feet."""
    share = 0.25 if feet == 2 else 1.0
    return [trial for name in groups for trial in ROWS[name](lambda x: share * x, feet)]
