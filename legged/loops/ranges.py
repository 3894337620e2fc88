"""Configurations with closed loops within the ranges of the joints."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from legged.errors import LoopError
from legged.loops.assembly import assemble
from legged.loops.closed_robot import ClosedRobot, Loop
from legged.loops.redundancy import loop_bodies, looped_entries
from legged.robot.configuration import random_configuration
from legged.robot.joint import PlacedJoint
from legged.robot.robot import Robot
from legged.spatial import Array

_ATTEMPTS = 50  # starts from which loops are closed
_STEP = 0.1  # [rad] or [m], of a joint that moves into its range
_BEYOND = 1e-9  # [rad] or [m], rounding of a position at the end of a range


def configuration_within_ranges(closed: ClosedRobot, hold: Sequence[str]) -> Array:
    """Return a configuration with closed loops and with no joint beyond its range, (nq,).

    Loops may close in several ways. Those that share joints are closed near zero, where robot files often close them;
    then each joint outside its range moves into it, one at a time, with the loops closed. If this fails, the start has
    joints whose ranges exclude zero in the middle of their ranges, and after that random positions.

    Args:
        closed: The robot. hold: Names of joints that keep their positions.

    Raises:
        LoopError: No such configuration was found.
    """
    robot, rng = closed.robot, np.random.default_rng(0)
    lower, upper = _ranges(robot)
    q = robot.neutral()
    looped = looped_entries(closed)
    for joint in robot.joints:
        if looped.isdisjoint(range(joint.v.start, joint.v.stop)):
            q[joint.q] = _inside(q[joint.q], lower[joint.q], upper[joint.q])
    for loops in _groups(closed):
        part = replace(closed, loops=loops, rows=tuple(range(sum(len(loop.constraints) for loop in loops))))
        entries = looped_entries(part)
        joints = [joint for joint in robot.joints if not entries.isdisjoint(range(joint.v.start, joint.v.stop))]
        held, start = [joint.name for joint in joints if joint.name in hold], q
        free = [joint for joint in joints if joint.name not in hold]
        for k in range(_ATTEMPTS):
            with suppress(LoopError):
                found = _moved_inside(part, assemble(part, start, hold=held, hold_base=True), free, held)
                own = [e for joint in joints for e in range(joint.q.start, joint.q.stop)]
                if np.all((found >= lower - _BEYOND) & (found <= upper + _BEYOND), where=np.isin(range(robot.nq), own)):
                    q = found
                    break
            drawn, start = random_configuration(robot, rng), q.copy()
            for joint in free:
                low, high = lower[joint.q], upper[joint.q]
                if k == 0:
                    start[joint.q] = _inside(q[joint.q], low, high)
                else:
                    start[joint.q] = rng.uniform(low, high) if np.isfinite(high - low).all() else drawn[joint.q]
        else:
            raise LoopError(
                f"no configuration was found in which the loops of {closed.name!r} with the joints "
                f"{', '.join(repr(joint.name) for joint in joints)} are closed within the ranges of these joints; "
                f"give one near it",
                np.nan,
            )
    return q


def _moved_inside(part: ClosedRobot, q: Array, joints: Sequence[PlacedJoint], held: Sequence[str]) -> Array:
    """Return a configuration after joints beyond their ranges have moved into them, (nq,).

    Args:
        part: The robot with the loops of these joints alone. q: Configuration with closed loops, (nq,).
        joints: The joints. held: Names of joints that keep their positions.

    Raises:
        LoopError: The loops cannot be closed on the way.
    """
    lower, upper = _ranges(part.robot)
    for joint in joints:
        start, end = q[joint.q].copy(), _inside(q[joint.q], lower[joint.q], upper[joint.q])
        steps = int(np.ceil(np.abs(end - start).max(initial=0.0) / _STEP))
        for k in range(1, steps + 1):
            q = q.copy()
            q[joint.q] = start + k / steps * (end - start)
            q = assemble(part, q, hold=[joint.name, *held], hold_base=True)
    return q


def _inside(q: Array, lower: Array, upper: Array) -> Array:
    """Return positions within ranges, (n,): those outside move to the middle, or to the end of a range with one end."""
    is_limited = np.isfinite(lower) & np.isfinite(upper)
    middle = 0.5 * (np.where(is_limited, lower, 0.0) + np.where(is_limited, upper, 0.0))
    return np.where(is_limited & ((q < lower) | (q > upper)), middle, np.clip(q, lower, upper))


def _ranges(robot: Robot) -> tuple[Array, Array]:
    """Return the ends of the ranges of the entries of q, (nq,) each; infinite for the base and for ball joints."""
    lower, upper = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    for joint in robot.joints:
        if joint.nq == joint.nv:
            lower[joint.q], upper[joint.q] = joint.definition.physics.lower, joint.definition.physics.upper
    return lower, upper


def _groups(closed: ClosedRobot) -> list[tuple[Loop, ...]]:
    """Return the loops in groups that share joints."""
    groups: list[tuple[set[int], tuple[Loop, ...]]] = []
    for loop in closed.loops:
        bodies, loops = loop_bodies(closed.robot, loop), (loop,)
        for group in [group for group in groups if group[0] & bodies]:
            groups.remove(group)
            bodies, loops = bodies | group[0], (*group[1], *loops)
        groups.append((bodies, loops))
    return [loops for _, loops in groups]
