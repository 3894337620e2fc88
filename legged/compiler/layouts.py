"""Layouts of arrays: which joint each entry of a configuration, velocity, force or table of wrenches belongs to.

The headers of exported C functions state them. Robots are read by their attributes `base`, `joints`, `bodies`, `links`.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class _Quantity(NamedTuple):
    """Suffixes of units for angles and displacements, and for the base [angular, linear, and of a quaternion base]."""

    of_q: bool
    angle: str
    length: str
    words: str


_QUANTITIES = {
    "q": _Quantity(True, "rad", "m", "configuration"),
    "v": _Quantity(False, "rad/s", "m/s", "velocity"),
    "vdot": _Quantity(False, "rad/s^2", "m/s^2", "acceleration"),
    "tau": _Quantity(False, "N m", "N", "generalized forces"),
    "dq": _Quantity(False, "rad", "m", "step of the configuration"),
}
QUANTITY_OF_ARGUMENT = {
    **dict.fromkeys(("q", "start", "end"), "q"),
    **dict.fromkeys(("v", "qd"), "v"),
    **dict.fromkeys(("vdot", "qdd", "acceleration"), "vdot"),
    **dict.fromkeys(("tau", "force", "forces"), "tau"),
    "dq": "dq",
    "joint_positions": "joint q",
    "joint_rates": "joint v",
    "joint_accelerations": "joint vdot",
    "joint_torques": "joint tau",
    "wrenches": "wrenches",
}
"""Quantity of the arguments with conventional names; "joint" stands for the entries without those of the base."""
QUANTITY_OF_RESULT = {"forward_dynamics": "vdot", "inverse_dynamics": "tau", "integrate": "q", "difference": "dq"}
"""Quantity of the result of functions of the toolkit."""


def layout(robot: Any, quantity: str) -> str:
    """Return the layout of an array, a line for each entry or range of entries.

    Args:
        robot: The robot. quantity: "q", "v", "vdot", "tau", "dq", the same after "joint ", or "wrenches".
    """
    robot = getattr(robot, "robot", robot)  # the spanning tree of a robot with closed loops
    if quantity == "wrenches":
        rows = [f"[{i}] link {link.name}" for i, link in enumerate(robot.links)]
        return "\n".join(
            ["one row per link: moment x y z, N m, and force x y z, N, about its origin, link axes", *rows]
        )
    without_base = quantity.startswith("joint ")
    of_q, angle, length, words = _QUANTITIES[quantity.removeprefix("joint ")]
    first = (robot.base.nq if of_q else robot.base.nv) if without_base else 0
    lines = [words + (" of the joints" if without_base else "")]
    if not without_base:
        lines += _base_lines(robot.base, of_q, angle, length)
    bodies: dict[int, list[Any]] = {}  # by their first entry; coupled joints share entries
    for body in robot.bodies:
        part = body.q if of_q else body.v
        if not body.is_base and part.start < part.stop:
            bodies.setdefault(part.start, []).append(body)
    for joint in robot.joints:
        own = joint.q if of_q else joint.v
        for body in [body for start in range(own.start, own.stop) for body in bodies.get(start, ())]:
            part = body.q if of_q else body.v
            name = f"joint {joint.name}"
            if own.stop - own.start > 1:
                name += f", coordinate {_range(part.start - own.start, part.stop - own.start)}"
            lines.append(
                f"[{_range(part.start - first, part.stop - first)}] {name}, {_unit(body, of_q, angle, length)}"
            )
    return "\n".join(dict.fromkeys(lines))


def layouts(robot: Any, function: str, arguments: list[str], results: int) -> dict[str, str]:
    """Return the layouts of arguments, and of the result of a function of the toolkit as "result".

    Args:
        robot: The robot, or None. function: Name of the function. arguments: Names of its arguments.
        results: Number of its results.
    """
    if not hasattr(getattr(robot, "robot", robot), "bodies"):
        return {}
    known = {name: layout(robot, QUANTITY_OF_ARGUMENT[name]) for name in arguments if name in QUANTITY_OF_ARGUMENT}
    if results == 1 and function in QUANTITY_OF_RESULT:
        known["result"] = layout(robot, QUANTITY_OF_RESULT[function])
    return known


def _base_lines(base: Any, of_q: bool, angle: str, length: str) -> list[str]:
    if base.nq == 7:
        if of_q:
            return [
                "[0..3] base: quaternion w x y z from base to world axes",
                "[4..6] base: position x y z, m, world axes",
            ]
        return [f"[0..2] base: rotation about x y z, {angle}, base axes", f"[3..5] base: x y z, {length}, base axes"]
    if base.nq == 6:
        angles = getattr(base, "sequence", "")
        return [f"[0..2] base: angles {' '.join(angles)}, {angle}", f"[3..5] base: x y z, {length}, world axes"]
    if base.nq == 3:
        return [f"[0] base: angle about y, {angle}", f"[1..2] base: x z, {length}, world axes"]
    return []


def _range(start: int, stop: int) -> str:
    return str(start) if stop - start == 1 else f"{start}..{stop - 1}"


def _unit(body: Any, of_q: bool, angle: str, length: str) -> str:
    if body.motion.has_quaternion:
        return "quaternion w x y z from child to parent axes" if of_q else f"about x y z, {angle}, child axes"
    return length if body.motion.unit == "m" else angle
