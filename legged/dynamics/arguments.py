"""Reading what users pass: shapes and finiteness checked once, wrenches brought to the bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from legged.errors import NotFiniteError, ShapeError, SingularError, UnknownNameError
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join

Wrenches = Mapping[str, Array] | Array | None


def read(robot: Robot, **arrays: Any) -> tuple[Array, ...]:
    """Return the arguments as arrays of the right length, or raise ShapeError or NotFiniteError naming the argument.

    `q` has robot.nq entries, `joint_accelerations` and `joint_torques` robot.nj, every other robot.nv. An array of
    `Expression` (dtype object) passes for its shape alone.
    """
    return tuple(_read_one(robot, name, value) for name, value in arrays.items())


def _read_one(robot: Robot, name: str, value: Any) -> Array:
    array = np.asarray(value)
    size, meaning = _size(robot, name)
    if array.shape != (size,):
        raise ShapeError(f"{name} must be ({size},), {meaning}, got shape {array.shape}")
    if array.dtype == object:
        return array
    array = array.astype(float)
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{name} must be finite, got {array[~np.isfinite(array)][0]} at {_first_bad(array)}")
    if name == "q":
        _check_quaternions(robot, array)
    return array


def _size(robot: Robot, name: str) -> tuple[int, str]:
    if name == "q":
        return robot.nq, "one entry per configuration coordinate"
    if name.startswith("joint_"):
        return robot.nj, "one entry per joint degree of freedom, base not counted"
    return robot.nv, "one entry per degree of freedom"


def _first_bad(array: Array) -> str:
    return f"entry {int(np.flatnonzero(~np.isfinite(array))[0])}"


def _check_quaternions(robot: Robot, q: Array) -> None:
    places = [(body.name, body.q) for body in robot.bodies if body.kind == "ball"]
    if robot.base.kind == "floating":
        places.append(("the base", slice(0, 4)))
    for name, where in places:
        norm = float(np.linalg.norm(q[where]))
        if abs(norm - 1.0) > 1e-6:
            raise ShapeError(
                f"q[{where.start}:{where.stop}], the quaternion of {name}, must have norm 1 (w first), got {norm:.9g}; "
                f"divide it by its norm"
            )


def body_wrenches(robot: Robot, wrenches: Wrenches) -> dict[int, Array]:
    """Return external wrenches by body index, each (6,), [n; f] about the body's origin, in body axes.

    Args:
        wrenches: As users give them (`docs/conventions.md`): by link name or (n_links, 6), about each link's origin
            in that link's axes; or None.
    """
    if wrenches is None:
        return {}
    if isinstance(wrenches, Mapping):
        known = {link.name: link for link in robot.links}
        rows = []
        for name, w in wrenches.items():
            if name not in known:
                raise UnknownNameError("link", name, known)
            rows.append((known[name], _wrench_row(f"the wrench on link {name!r}", w)))
    else:
        array = np.asarray(wrenches)
        if array.shape != (len(robot.links), 6):
            raise ShapeError(
                f"wrenches must be ({len(robot.links)}, 6), one [n; f] per link of robot.links, got shape {array.shape}"
            )
        rows = [(link, _wrench_row("wrenches", array[link.index])) for link in robot.links]
    total: dict[int, Array] = {}
    for link, w in rows:
        f = link.rotation @ w[3:]
        moved = join(link.rotation @ w[:3] + cross(link.position, f), f)
        total[link.body] = total[link.body] + moved if link.body in total else moved
    return total


def _wrench_row(what: str, w: Any) -> Array:
    w = np.asarray(w)
    if w.shape != (6,):
        raise ShapeError(f"{what} must be (6,), [moment; force], got shape {w.shape}")
    if w.dtype != object and not np.isfinite(w.astype(float)).all():
        raise NotFiniteError(f"{what} must be finite, got {w}")
    return w


def finite(robot: Robot, what: str, result: Array) -> Array:
    """Return result, or raise SingularError when it holds NaN or infinity (plain numbers only)."""
    if result.dtype != object and not np.isfinite(result.astype(float)).all():
        raise SingularError(
            f"{what} of robot {robot.name!r} has no finite answer at this configuration: some motion meets no inertia "
            f"(a gimbal-locked Euler base or joint, or aligned axes with massless links); "
            f"legged.conditioning(robot, q) tells which module"
        )
    return result
