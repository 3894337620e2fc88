"""Forces on feet, and switches that tell which feet touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.dynamics.arguments import Wrenches, body_wrenches, read
from legged.dynamics.frames import frame_pose, resolve_frame
from legged.dynamics.kinematics import motion
from legged.errors import ShapeError
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join


def contact_force(robot: Robot, q: Array, wrenches: Array, foot: str) -> Array:
    """Return the force of the ground on a foot, (3,), [N], world axes, over any element.

    Args:
        robot: The robot. q: Configuration, (nq,).
        wrenches: Of the ground on all links, (n_links, 6), as a controller gets them.
        foot: Name of the foot's link, or of a contact point on it; the force is that on the whole link.
    """
    (q,) = read(robot, q=q)
    return frame_pose(robot, q, foot).rotation @ np.asarray(wrenches)[resolve_frame(robot, foot).link, 3:]


def ground_wrench(robot: Robot, q: Array, wrenches: Wrenches) -> Array:
    """Return the sum of wrenches on links as one wrench [n; f] about the world's origin, (6,), world axes.

    Args:
        robot: The robot. q: Configuration, (nq,).
        wrenches: On links, by name or (n_links, 6), as in `inverse_dynamics`.
    """
    (q,) = read(robot, q=q)
    at, total = motion(robot, q), np.zeros(6)
    for body, w in body_wrenches(robot, wrenches).items():
        R, f = at.rotation[body], at.rotation[body] @ w[3:]
        total = total + join(R @ w[:3] + cross(at.origin[body], f), f)
    return total


def contact_switches(loads: Any, on: float, off: float | None = None) -> Array:
    """Return which feet touch at each time, bool, shaped as `loads`: closed from `on` newtons, open again below `off`.

    Args:
        loads: Normal forces, (T,) or (T, n), [N].
        on: Load that closes a switch, [N]. off: Load below which it opens, [N], half of `on` by default.

    Raises:
        ShapeError: for thresholds that are not 0 <= off <= on.
    """
    loads = np.asarray(loads, float)
    off = on / 2 if off is None else off
    if not 0.0 <= off <= on:
        raise ShapeError(f"a switch closes at `on` and opens at `off`, 0 <= off <= on; got on {on} N, off {off} N")
    closed = np.zeros(loads.shape, bool)
    for k, load in enumerate(loads):
        before = closed[k - 1] if k else np.zeros(loads.shape[1:], bool)
        closed[k] = np.where(before, load >= off, load >= on)
    return closed
