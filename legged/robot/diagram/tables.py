"""Tables of the modules, links and joints of a robot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legged.table import Table

if TYPE_CHECKING:
    from legged.robot.robot import Robot


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
