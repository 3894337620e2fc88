"""Tables that describe a robot: modules, links, joints, closed loops and conditioning."""

from __future__ import annotations

import numpy as np

from legged import loops
from legged.algorithms.legs.leg_chains import legs_text
from legged.denoc import conditioning
from legged.dynamics.inertia import inertia_matrix
from legged.errors import DefinitionError
from legged.loops import ClosedRobot
from legged.output import visible
from legged.robot.robot import Robot
from legged.spatial import Array
from legged.table import Table


def headline(robot: Robot) -> str:
    """Return a summary of a robot: size, mass, base and contact points."""
    coordinates = ", ".join(robot.base.coordinates)
    base = f"{robot.base.kind} base" + (f" ({coordinates})" if coordinates else "")
    contacts = ", ".join(visible(contact.name) for contact in robot.contacts) or "none"
    try:
        legs = "".join(f"\n  {visible(line)}" for line in legs_text(robot).splitlines())
    except DefinitionError:  # a robot without legs
        legs = ""
    return (
        f"{visible(robot.name)}: {len(robot.links)} links, {robot.nv} degrees of freedom, {robot.mass:g} kg\n"
        f"  {base}; q has {robot.nq} entries, v has {robot.nv}\n  contact points: {contacts}{legs}"
    )


def module_table(robot: Robot) -> Table:
    """Return the modules with parents, links, joints, masses and type."""
    letter = {m: chr(ord("A") + k) for k, group in enumerate(robot.alike_modules) for m in group}
    joints = {joint.child: joint.kind for joint in robot.joints}
    joints |= {joint.child: f"{joint.kind} (follows {joint.master})" for joint in robot.followers}
    rows = []
    for module in robot.modules:
        kinds = ", ".join(joints[link] for link in module.links if link in joints)
        rows.append(
            (
                module.name,
                f"M{module.parent}" if module.parent >= 0 else "-",
                ", ".join(module.links),
                kinds or f"{robot.base.kind} base",
                str(len(set(module.v.tolist()))),
                f"{sum(robot.link(link).inertia.mass for link in module.links):g}",
                letter.get(module.index, "-"),
            )
        )
    header = ("module", "parent", "links", "joints", "DoF", "mass [kg]", "kind")
    notes = ("Modules of one kind have the same joints in the same order, so their computations are alike.",)
    return Table("Kinematic modules", header, tuple(rows), notes, left=4)


def conditioning_table(robot: Robot, q: np.ndarray, where: str) -> Table:
    """Return the condition numbers of the articulated modules at q, (nq,), and of the whole inertia matrix.

    Args:
        robot: The robot.
        q: Configuration, (nq,).
        where: Description of the configuration.
    """
    plain, scaled = conditioning(robot, q), conditioning(robot, q, scaled=True)
    rows = [
        (module.name, ", ".join(module.links), f"{a:.3g}", f"{b:.3g}")
        for module, a, b in zip(robot.modules, plain, scaled, strict=True)
    ]
    whole = np.linalg.cond(inertia_matrix(robot, q)) if robot.nv else 1.0
    rows.append(("all", "whole inertia matrix", f"{whole:.3g}", "-"))
    notes = (
        "Forward dynamics inverts these inertias and loses about log10(condition) digits.",
        "Scaled: to unit diagonal, which removes the units of modules with both angles and lengths.",
    )
    header = ("module", "links", "condition", "scaled")
    return Table(f"Conditioning of the articulated modules, {where}", header, tuple(rows), notes, left=2)


def link_table(robot: Robot) -> Table:
    """Return the links with parents, joints, masses and centers of mass."""
    rows, graph = [], robot.graph
    for link in robot.links:
        above = next(iter(graph.in_edges(link.name, data=True)), None)
        joint = f"{above[2]['joint']} ({above[2]['kind']})" if above else "-"
        mass, d = link.inertia.mass, link.inertia.center
        place = ", ".join(f"{x:g}" for x in d) if mass else "-"
        rows.append((link.name, above[0] if above else "-", joint, f"{mass:g}", place))
    header = ("link", "parent", "joint (kind)", "mass [kg]", "center of mass [m]")
    return Table("Links", header, tuple(rows), ("Centers of mass are in link axes, from the link origin.",), left=3)


def loop_table(closed: ClosedRobot, q: Array) -> Table:
    """Return the loop joints with the links of each loop, and the mobility.

    Args:
        closed: The robot.
        q: Configuration with closed loops, (nq,).
    """
    rows = []
    for loop in closed.loops:
        kind = type(loop.joint).__name__.lower()
        around = ", ".join(closed.cycle(loop.name))
        rows.append((loop.name, kind, loop.parent or "world", loop.child, around, str(len(loop.constraints))))
    header = ("joint", "kind", "parent", "child", "links around", "constraints")
    notes = (
        f"{loops.mobility(closed, q)}.",
        "The tables above describe the spanning tree, which defines q and v.",
    )
    return Table("Joints that close loops", header, tuple(rows), notes, left=5)


def robot_tables(robot: Robot) -> list[Table]:
    """Return tables of the joints in the order of v, of the modules and of their conditioning at zero."""
    q = robot.neutral()
    return [joint_table(robot), module_table(robot), conditioning_table(robot, q, "all joints at zero")]


def joint_table(robot: Robot) -> Table:
    """Return the joints in the order of v with their physics, followed by the mimic joints."""
    rows = []
    for joint in (*robot.joints, *robot.followers):
        p = joint.definition.physics
        numbers = (p.lower, p.upper, p.effort, p.speed, p.damping, p.friction, p.armature)
        rows.append((joint.name, joint.kind, joint.parent, joint.child, _slice(joint.v), *map(_number, numbers)))
    header = (
        "joint", "kind", "parent", "child", "v", "lower", "upper", "effort", "speed", "damping", "friction", "armature"
    )  # fmt: skip
    followers = [f"{j.name} = {j.ratio:g} {j.master} + {j.offset:g}" for j in robot.followers]
    return Table("Joints in the order of v, SI units", header, tuple(rows), tuple(followers), left=4)


def _slice(v: slice) -> str:
    return str(v.start) if v.stop - v.start == 1 else f"{v.start}-{v.stop - 1}"


def _number(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return "-" if text in ("inf", "-inf") else text
