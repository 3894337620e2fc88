"""A summary of a robot in words, and tables of its joints, modules and conditioning."""

from __future__ import annotations

import numpy as np

from legged.algorithms.legs.leg_chains import legs_text
from legged.denoc import conditioning
from legged.dynamics.inertia import inertia_matrix
from legged.errors import DefinitionError
from legged.output import visible
from legged.robot.diagram.tables import joint_table, module_table
from legged.robot.robot import Robot
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


def conditioning_table(robot: Robot, q: np.ndarray, where: str) -> Table:
    """Return the condition numbers of the articulated modules, and of the whole inertia matrix.

    Args:
        robot: The robot. q: Configuration, (nq,). where: Description of the configuration.
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


def robot_tables(robot: Robot) -> list[Table]:
    """Return tables of the joints in the order of v, of the modules and of their conditioning at zero."""
    q = robot.neutral()
    return [joint_table(robot), module_table(robot), conditioning_table(robot, q, "all joints at zero")]
