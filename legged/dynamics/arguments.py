"""Arguments and results of the dynamics: external wrenches, and the check for singular results.

`legged.robot.configuration.read` checks q, v and other generalized vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from legged.arguments import known_name
from legged.errors import NotFiniteError, ShapeError, SingularError
from legged.robot.configuration import read
from legged.robot.link import PlacedLink
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join

__all__ = ["Wrenches", "body_wrenches", "finite", "link_wrenches", "read"]

Wrenches = Mapping[str, Array] | Array | None


def body_wrenches(robot: Robot, wrenches: Wrenches) -> dict[int, Array]:
    """Return external wrenches [n; f] by body index, each (6,), [N m, N], about the body's origin, body axes.

    Args:
        robot: The robot.
        wrenches: By link name or (n_links, 6), [N m, N], about each link's origin in link axes
            (`docs/reference/conventions.md`); or None.
    """
    total: dict[int, Array] = {}
    for link, moved in link_wrenches(robot, wrenches):
        total[link.body] = total[link.body] + moved if link.body in total else moved
    return total


def link_wrenches(robot: Robot, wrenches: Wrenches) -> list[tuple[PlacedLink, Array]]:
    """Return pairs (link, its external wrench [n; f], (6,), [N m, N], about the origin of its body, body axes).

    Args:
        robot: The robot.
        wrenches: As in `body_wrenches`.
    """
    if wrenches is None:
        return []
    if isinstance(wrenches, Mapping):
        known = {link.name: link for link in robot.links}
        rows = []
        for name, w in wrenches.items():
            known_name("link", name, known)
            rows.append((known[name], _wrench_row(f"the wrench on link {name!r}", w)))
    else:
        array = np.asarray(wrenches)
        if array.shape != (len(robot.links), 6):
            raise ShapeError(
                f"wrenches must be ({len(robot.links)}, 6), one [n; f] per link of robot.links, got shape {array.shape}"
            )
        rows = [(link, _wrench_row("wrenches", array[link.index])) for link in robot.links]
    pairs = []
    for link, w in rows:
        f = link.rotation @ w[3:]
        pairs.append((link, join(link.rotation @ w[:3] + cross(link.position, f), f)))
    return pairs


def _wrench_row(what: str, w: Any) -> Array:
    w = np.asarray(w)
    if w.shape != (6,):
        raise ShapeError(f"{what} must be (6,), [moment; force], got shape {w.shape}")
    if w.dtype != object and not np.isfinite(w.astype(float)).all():
        raise NotFiniteError(f"{what} must be finite, got {w}")
    return w


def finite(robot: Robot, what: str, result: Array) -> Array:
    """Return `result`, or raise SingularError if it contains NaN or infinity. Traced scalars are not checked.

    Args:
        robot: The robot. what: What was computed, for the message. result: An array (n,), [any unit].
    """
    if result.dtype != object and not np.isfinite(result.astype(float)).all():
        raise SingularError(
            f"{what} of robot {robot.name!r} has no finite answer at this configuration: the inertia of some motion is "
            f"zero (a gimbal-locked Euler base or joint, or aligned axes with massless links), for which "
            f"legged.conditioning(robot, q) identifies the module, or constraints depend on each other"
        )
    return result
