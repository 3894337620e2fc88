"""What happened in a run of the experiment: when the block hit, which feet rose and landed, how far they slid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.app.balance import BLOCK, Experiment
from legged.robot.robot import Robot
from legged.simulation import Run
from legged.simulation.run import GROUND

Array = np.ndarray
RISEN = 1e-3  # [m], height over the ground at which a point of a foot has risen
NEAR, UPRIGHT = 0.01, float(np.radians(1.0))  # [m], [rad]: errors of a robot that has settled
STOOD = 0.05  # [s], by when the feet have landed that start slightly above the ground
LATE = 1.0  # [s], how long before the end the drift of the feet is measured, if the run is as long


class Hit(NamedTuple):
    """How the block met the robot.

    Attributes:
        time: Of the first touch, [s]. touches: In how many steps they touched within a tenth of a second.
        impulse: On the robot in that time, (3,), [N s], world.
    """

    time: float
    touches: int
    impulse: Array


class Foot(NamedTuple):
    """What a foot did.

    Attributes:
        name: Of its link.
        rises, lands: Times at which a first point of it rose, after the hit, and the last was down again, [s].
        highest: The largest height of any of its points then, [m].
        front: The largest height of its lowest point then, [m]: 0 for a foot that tips and never leaves the ground.
        slip: From where it first stood to where it is in the end, [m], of the mean of its points.
        drift: Speed of that mean over the end of the run, [m/s].
    """

    name: str
    rises: tuple[float, ...]
    lands: tuple[float, ...]
    highest: float
    front: float
    slip: float
    drift: float


def hit(run: Run, mass: float, gravity: Array) -> Hit | None:
    """Return how the block of that mass, [kg], met the robot, or None if it missed; gravity: (3,), [m/s^2], world."""
    if BLOCK not in run.bodies:
        return None
    sides = zip(run.contact_on, run.contact_against, strict=True)
    between = [k for k, pair in enumerate(sides) if BLOCK in pair and GROUND not in pair]
    touching = np.flatnonzero((run.contact_forces[:, between] != 0.0).any(axis=(1, 2)))
    if not len(touching):
        return None
    first = int(touching[0])
    near = touching[run.times[touching] < run.times[first] + 0.1]
    velocity = run.body(BLOCK).velocity
    flown = run.times[near[-1]] - run.times[first - 1]
    change = velocity[near[-1]] - velocity[first - 1] - gravity * flown
    return Hit(float(run.times[first]), len(near), -mass * change)


def feet(robot: Robot, run: Run, since: float) -> list[Foot]:
    """Return what the feet did after a time, [s]."""
    return [_foot(run, name, since) for name in dict.fromkeys(robot.links[c.link].name for c in robot.contacts)]


def _foot(run: Run, name: str, since: float) -> Foot:
    sides = zip(run.contact_on, run.contact_against, strict=True)
    own = [k for k, pair in enumerate(sides) if pair == (name, GROUND)]
    points = run.contact_points[:, own]
    height, middle = points[:, :, 2], points.mean(axis=1)[:, :2]
    up = (height.max(axis=1) > RISEN) & (run.times > since)
    changes = np.diff(up.astype(int))
    after = height[run.times > since]
    late = run.at(run.times[-1] - LATE)
    drift = np.linalg.norm(middle[-1] - middle[late]) / max(run.times[-1] - run.times[late], 1e-9)
    return Foot(
        name,
        tuple(run.times[1:][changes > 0].tolist()),
        tuple(run.times[1:][changes < 0].tolist()),
        float(after.max(initial=0.0)),
        float(after.min(axis=1).max(initial=0.0)),
        float(np.linalg.norm(middle[-1] - middle[run.at(STOOD)])),
        float(drift),
    )


def errors(experiment: Experiment) -> tuple[Array, Array]:
    """Return the distance of the base from its set point, (T,), [m], and its angle from it, (T,), [rad]."""
    run, (place, R) = experiment.run, experiment.wanted
    turn = np.einsum("tij,ij->t", run.base_rotation, R)
    away = np.linalg.norm(run.base_position - place, axis=1)
    return away, np.arccos(np.clip(0.5 * (turn - 1.0), -1.0, 1.0))


def settled(experiment: Experiment) -> float:
    """Return when the base was near its set point for good, within `NEAR` and `UPRIGHT`, [s]; infinity for never."""
    away, angle = errors(experiment)
    off = np.flatnonzero((away > NEAR) | (angle > UPRIGHT))
    times = experiment.run.times
    if not len(off):
        return float(times[0])
    return float(times[off[-1] + 1]) if off[-1] + 1 < len(times) else np.inf
