"""What a robot is made of: its modules, links, joints and masses."""

from __future__ import annotations

import numpy as np

from legged.denoc import conditioning
from legged.dynamics.inertia import inertia_matrix
from legged.robot.robot import Robot
from legged.table import Table


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
    notes = ("Modules of one kind have the same joints in the same order and repeat each other's computations.",)
    return Table("Kinematic modules", header, tuple(rows), notes, left=4)


def conditioning_table(robot: Robot, q: np.ndarray, where: str) -> Table:
    """Return the condition numbers of the articulated modules at q, (nq,), and of the whole inertia matrix.

    Args:
        robot: The robot. q: Configuration. where: What that configuration is, in words.
    """
    plain, scaled = conditioning(robot, q), conditioning(robot, q, scaled=True)
    rows = [
        (module.name, ", ".join(module.links), f"{a:.3g}", f"{b:.3g}")
        for module, a, b in zip(robot.modules, plain, scaled, strict=True)
    ]
    whole = np.linalg.cond(inertia_matrix(robot, q)) if robot.nv else 1.0
    rows.append(("all", "whole inertia matrix", f"{whole:.3g}", "-"))
    notes = (
        "Forward dynamics divides by these inertias and loses about log10 of the number in digits.",
        "Scaled: units taken out, as they are mixed where a module has angles and lengths.",
    )
    header = ("module", "links", "condition", "scaled")
    return Table(f"Conditioning of the articulated modules, {where}", header, tuple(rows), notes, left=2)


def link_table(robot: Robot) -> Table:
    """Return the links: joints, parents, masses, centers of mass."""
    rows = []
    for link in robot.links:
        above = next(iter(robot.graph.in_edges(link.name, data=True)), None)
        joint = f"{above[2]['joint']} ({above[2]['kind']})" if above else "-"
        mass, d = link.inertia.mass, link.inertia.center
        place = ", ".join(f"{x:g}" for x in d) if mass else "-"
        rows.append((link.name, above[0] if above else "-", joint, f"{mass:g}", place))
    header = ("link", "parent", "joint (kind)", "mass [kg]", "center of mass [m]")
    return Table(
        "Links", header, tuple(rows), ("Centers of mass are in the link's own axes, from its origin.",), left=3
    )
