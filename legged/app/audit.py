"""The audit of a robot's file as tables, for a terminal."""

from __future__ import annotations

from textwrap import wrap

from legged.app.info import conditioning_table, module_table
from legged.files.audit import Audit
from legged.robot.robot import Robot
from legged.table import Table

WIDTH = 100
"""Letters of a line of words."""


def headline(audit: Audit) -> str:
    """Return one line: name, mass, center of mass, and what is to be read first."""
    x, y, z = audit.center
    counts = ", ".join(f"{len(audit.of(severity))} {severity}" for severity in ("singular", "suspicious", "harmless"))
    return (
        f"{audit.name} ({audit.source}), {audit.base} base\n{audit.mass:.4g} kg, center of mass ({x:.4g}, {y:.4g}, "
        f"{z:.4g}) m in the root's axes with all joints at zero\nFindings: {counts}"
    )


def audit_tables(audit: Audit) -> list[Table]:
    """Return what the file says and what was made of it; empty tables are left out."""
    tables = [
        _table("Findings", ("severity", "what"), [(f.severity, f"{f.where}: {f.words}") for f in audit.findings]),
        _table("Repaired, as asked", ("what",), [(words,) for words in audit.repaired]),
        _table("Decided", ("what",), [(words,) for words in audit.decided]),
        _table("Lost: the file has it, the robot has not", ("what",), [(words,) for words in audit.lost]),
        _table("Fused", ("link", "moves as one with"), [(link, ", ".join(o)) for link, o in audit.fused.items()]),
        _table(
            "Feet",
            ("link", "how, and contact points"),
            [(f.link, f"{f.how}: {', '.join(f.points)}") for f in audit.feet],
        ),
    ]
    return [table for table in tables if table.rows]


def robot_tables(robot: Robot) -> list[Table]:
    """Return the joints in the order of v, the modules and their conditioning at zero."""
    q = robot.neutral()
    return [joint_table(robot), module_table(robot), conditioning_table(robot, q, "all joints at zero")]


def joint_table(robot: Robot) -> Table:
    """Return the joints in the order of v, with their physics, and after them those that follow others."""
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


def _table(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    """Return a table whose last column is wrapped."""
    wrapped = []
    for *first, last in rows:
        lines = wrap(last, WIDTH) or [""]
        wrapped += [(*first, lines[0]), *((*[""] * len(first), line) for line in lines[1:])]
    return Table(title, header, tuple(wrapped), left=len(header))


def _slice(v: slice) -> str:
    return str(v.start) if v.stop - v.start == 1 else f"{v.start}-{v.stop - 1}"


def _number(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return "-" if text in ("inf", "-inf") else text
