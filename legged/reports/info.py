"""What a robot is made of: its modules, links, joints and masses."""

from __future__ import annotations

from legged.reports.table import Table
from legged.robot.robot import Robot


def headline(robot: Robot) -> str:
    """Return a few lines on the robot as a whole."""
    coordinates = ", ".join(robot.base.coordinates)
    base = f"{robot.base.kind} base" + (f" ({coordinates})" if coordinates else "")
    contacts = ", ".join(contact.name for contact in robot.contacts) or "none"
    return "\n".join(
        [
            f"{robot.name}: {len(robot.links)} links, {robot.nv} degrees of freedom, {robot.mass:g} kg",
            f"  {base}; q has {robot.nq} entries, v has {robot.nv}",
            f"  contact points: {contacts}",
        ]
    )


def module_table(robot: Robot) -> Table:
    """Return the modules: parents, links, joints, masses, and which are alike."""
    letter = {m: chr(ord("A") + k) for k, group in enumerate(robot.alike_modules) for m in group}
    joints = {joint.child: joint.kind for joint in robot.joints}
    rows = []
    for module in robot.modules:
        kinds = ", ".join(joints[link] for link in module.links if link in joints)
        rows.append(
            (
                module.name,
                f"M{module.parent}" if module.parent >= 0 else "-",
                ", ".join(module.links),
                kinds or f"{robot.base.kind} base",
                str(module.v.stop - module.v.start),
                f"{sum(robot.link(link).inertia.mass for link in module.links):g}",
                letter.get(module.index, "-"),
            )
        )
    header = ("module", "parent", "links", "joints", "DoF", "mass [kg]", "kind")
    notes = ("Modules of one kind have the same joints in the same order and repeat each other's computations.",)
    return Table("Kinematic modules", header, tuple(rows), notes, left=4)


def link_table(robot: Robot) -> Table:
    """Return the links: joints, parents, masses, centres of mass."""
    rows = []
    for link in robot.links:
        above = next(iter(robot.graph.in_edges(link.name, data=True)), None)
        joint = f"{above[2]['joint']} ({above[2]['kind']})" if above else "-"
        mass, d = link.inertia.mass, link.inertia.center
        place = ", ".join(f"{x:g}" for x in d) if mass else "-"
        rows.append((link.name, above[0] if above else "-", joint, f"{mass:g}", place))
    header = ("link", "parent", "joint (kind)", "mass [kg]", "centre of mass [m]")
    return Table(
        "Links", header, tuple(rows), ("Centres of mass are in the link's own axes, from its origin.",), left=3
    )
