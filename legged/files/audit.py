"""Audit of a robot file: problems of its masses and inertias, and a report on how the file was converted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np

from legged.arguments import known_name
from legged.files.description import Tree
from legged.files.feet.detection import FootEntry, shape_points
from legged.files.inertias import entry_inertia, group_inertia, gyration_radius, inertia_fault, is_point_mass
from legged.files.resolve import joints_without_inertia, massless_subtrees
from legged.output import visible
from legged.spatial import Array
from legged.table import Table

SEVERITIES = ("singular", "suspicious", "harmless")
ILL_CONDITIONED = 1e10
"""Condition number of an articulated module above which accelerations have fewer than six correct digits."""
SIZE_RATIO = 1.0
"""A radius of gyration or a distance of the center of mass above this multiple of the robot's size is suspicious."""
_EXAMINED = 0.2
"""A radius of gyration above this multiple of the robot's size is compared with the extent of its link, so that few
meshes are read."""
_WITHIN = float(np.sqrt(3.0 / 8.0))
"""Largest radius of gyration of masses whose distances are at most 1: a ball of this radius encloses them (Jung)."""

_WIDTH = 100  # characters per line of a table


@dataclass(frozen=True)
class Finding:
    """A problem found in a robot file.

    Attributes:
        severity: "singular": the dynamics are singular, and `load` rejects the file. "suspicious": the file loads, but
            probably does not describe the intended robot. "harmless": the problem disappears when links fixed to each
            other are treated as one body.
        kind: "massless", "inertia" (physically inconsistent), "point" (mass without rotational inertia), "size"
            (larger than the robot or its link), "world" (a root that should not float), "repeated" (an element stated
            more than once), "up" (z does not point up), "forward" (x does not point forward), "feet" (feet that were
            not measured), "condition" (nearly singular with all joints at zero) or "unanswered" (singular, found by
            evaluating the dynamics).
        where: The links or joints concerned.
        words: Description of the problem and how to correct it.
        excess: Violation of physical consistency relative to the largest principal inertia; see `InertiaFault`.
    """

    severity: str
    kind: str
    where: str
    words: str
    excess: float | None = None


def find_all(tree: Tree, floating: bool) -> tuple[Finding, ...]:
    """Return the problems of a description, the most severe first."""
    findings = [
        *_massless_findings(tree),
        *_inertia_findings(tree),
        *_size_findings(tree),
        *_root_findings(tree, floating),
        *_repeated_findings(tree),
        *_gravity_findings(tree),
    ]
    return by_severity(findings)


def ill_conditioned_modules(modules: Sequence[Sequence[str]], conditions: Sequence[float]) -> list[Finding]:
    """Return a finding for each module that is nearly singular with all joints at zero."""
    findings = []
    for links, condition in zip(modules, conditions, strict=True):
        if condition > ILL_CONDITIONED:
            words = (
                f"nearly singular with all joints at zero (condition number {condition:.0e}); joint axes are aligned"
            )
            findings.append(Finding("suspicious", "condition", links_text(list(links)), words))
    return findings


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings sorted by severity, the most severe first."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def _massless_findings(tree: Tree) -> Iterator[Finding]:
    massless = [name for name in tree.order if not tree.link[name].mass and not tree.link[name].tensor.any()]
    heads = {head for head in tree.groups if _is_massless(tree, head)}
    combined = [name for name in massless if tree.head[name] not in heads]
    if combined:
        yield Finding("harmless", "massless", links_text(combined), "no mass; fixed to links with mass")
    without_inertia = joints_without_inertia(tree)
    if without_inertia:
        words = (
            "they move no mass, so the inertia matrix is singular; give the links mass, fix the joints, or load with "
            "repair='weld', which fixes them"
        )
        yield Finding("singular", "massless", _joints([tree.joint[head].name for head in without_inertia]), words)
    ends = massless_subtrees(tree)
    inner = [head for head in tree.groups if head in heads and head in tree.joint and head not in ends]
    if inner:
        words = "no mass between two moving joints; the dynamics are singular where the joint axes are aligned"
        yield Finding("suspicious", "massless", links_text(inner), words)


def _is_massless(tree: Tree, head: str) -> bool:
    inertia = group_inertia(tree, head)
    return inertia.mass == 0.0 and not np.any(inertia.tensor)


def _inertia_findings(tree: Tree) -> Iterator[Finding]:
    inertias = {head: group_inertia(tree, head) for head in tree.groups}
    for name in tree.order:
        entry = tree.link[name]
        fault = inertia_fault(entry_inertia(entry))
        if fault is None:
            continue
        whole = inertia_fault(inertias[tree.head[name]])
        others = [other for other in tree.groups[tree.head[name]] if other != name]
        if whole and inertias[tree.head[name]].mass < 0:
            yield Finding("singular", "inertia", f"link {name!r}", f"{fault.message}; correct it", fault.excess)
        elif whole is None:
            words = f"{fault.message}; physically consistent as one body with {_abbreviated(others)}"
            yield Finding("harmless", "inertia", f"link {name!r}", words, fault.excess)
        else:
            as_group = f", also as one body with {_abbreviated(others)}" if others else ""
            words = f"{fault.message}; physically inconsistent{as_group}"
            hint = "; correct it, or load with repair='inertia'" if (entry.mass or 0) > 0 else "; correct it"
            yield Finding("suspicious", "inertia", f"link {name!r}", words + hint, fault.excess)
    points = [name for name in tree.order if is_point_mass(entry_inertia(tree.link[name]))]
    alone = [name for name in points if is_point_mass(inertias[tree.head[name]])]
    combined = [name for name in points if name not in alone]
    if combined:
        yield Finding(
            "harmless", "point", links_text(combined), "mass without rotational inertia; fixed to links with inertia"
        )
    if alone:
        words = "mass without rotational inertia (point mass); singular if the joint axis passes through the point"
        yield Finding("suspicious", "point", links_text(alone), words)


def _size_findings(tree: Tree) -> Iterator[Finding]:
    size, ratios = _size(tree), {}
    for head in tree.groups:
        inertia = group_inertia(tree, head)
        radius, distance = gyration_radius(inertia), float(np.linalg.norm(inertia.center))
        if radius > SIZE_RATIO * size > 0:
            words = f"radius of gyration {radius:.3g} m, larger than the robot, {size:.3g} m"
            yield Finding("suspicious", "size", f"link {head!r}", words + "; check the units")
        elif radius > _EXAMINED * size and radius > _WITHIN * (extent := _extent(tree, head)) > 0.0:
            ratios[head] = radius / extent, radius, extent
        if inertia.mass and distance > SIZE_RATIO * size > 0:
            words = f"center of mass {distance:.3g} m from the origin, the robot measures {size:.3g} m; check the units"
            yield Finding("suspicious", "size", f"link {head!r}", words)
    if ratios:
        _, radius, extent = ratios[worst := max(ratios, key=ratios.__getitem__)]
        words = (
            f"radius of gyration too large for shapes and joints, {radius:.3g} m for {worst!r}, whose bounding box has "
            f"a diagonal of {extent:.3g} m; check mass and inertia"
        )
        yield Finding("suspicious", "size", links_text(list(ratios)), words)


def _size(tree: Tree) -> float:
    """Return the diagonal of the bounding box of link origins and collision shapes, all joints at zero, [m]."""
    points = [pose.position for pose in tree.pose.values()]
    for name, pose in tree.pose.items():
        for shape in tree.link[name].shapes:
            at, reach = pose.rotation @ shape.position + pose.position, max(shape.size, default=0.0)
            points += [at - reach, at + reach]
    return float(np.linalg.norm(np.ptp(np.array(points), axis=0)))


def _extent(tree: Tree, head: str) -> float:
    """Return the diagonal of the bounding box of the shapes and joints of fixed links, [m]; 0 without shapes."""
    if not any(tree.link[name].shapes or tree.link[name].visuals for name in tree.groups[head]):
        return 0.0
    points = [tree.pose[child].position[None] for name in tree.groups[head] for child in tree.children[name]]
    for places, radius in (entry for name in tree.groups[head] for entry in shape_points(tree, name)):
        points += [places - radius, places + radius]
    return float(np.linalg.norm(np.ptp(np.concatenate(points), axis=0)))


def _root_findings(tree: Tree, floating: bool) -> Iterator[Finding]:
    root = tree.description.root
    if floating and root.lower() in ("world", "map", "odom"):
        words = "the root link represents the world, but the base floats; load with base='fixed' for a fixed robot"
        yield Finding("suspicious", "world", f"link {root!r}", words)


def _repeated_findings(tree: Tree) -> Iterator[Finding]:
    repeated = tree.description.repeated
    for kind, tag in dict.fromkeys((kind, tag) for kind, _, tag in repeated):
        names = [name for of, name, element in repeated if (of, element) == (kind, tag)]
        words = f"more than one <{tag}>; the first is used, as in the parser of ROS; remove the others"
        yield Finding("suspicious", "repeated", links_text(names) if kind == "link" else _joints(names), words)


def _gravity_findings(tree: Tree) -> Iterator[Finding]:
    """Yield a finding if the gravity of the file is not along z."""
    gravity = tree.description.gravity
    if gravity is not None and np.abs(gravity[:2]).max() > abs(gravity[2]):
        words = (
            f"gravity is {gravity}, not along -z, and z points up in legged: load with gravity=(0, 0, -9.81), and with "
            f"axes=(forward, up) if the axes of the robot differ as well"
        )
        yield Finding("suspicious", "up", "gravity", words)


def links_text(names: list[str]) -> str:
    """Return the names of links as words."""
    return f"link {names[0]!r}" if len(names) == 1 else f"{len(names)} links: {_abbreviated(names)}"


def _joints(names: list[str]) -> str:
    return f"joint {names[0]!r}" if len(names) == 1 else f"{len(names)} joints: {_abbreviated(names)}"


def _abbreviated(names: list[str], most: int = 4) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


@dataclass(frozen=True, eq=False)
class Audit:
    """Report on a robot file and its conversion to a Robot.

    Attributes:
        source: Path of the file.
        name: Name of the robot.
        base: "floating", "planar" or "fixed".
        findings: Problems, the most severe first.
        fused: Link -> the links fixed to it, which form one body with it.
        lost: Elements of the file that the robot does not represent, one sentence each.
        decided: Choices made where the file is ambiguous, one sentence each.
        repaired: Repairs made on request, one sentence each.
        feet: Feet with their contact points, and how they were found.
        mass: Total mass, [kg].
        center: Center of mass with all joints at zero, (3,), [m], from the origin of the root link in its axes.
        joints: Names of the joints in the order of v.
        followers: Names of the joints that follow others.
        modules: Names of links, module by module.
        alike: Groups of indices of modules with equal structure.
        conditions: Scaled condition numbers of the articulated modules with all joints at zero, dimensionless; see
            `legged.conditioning`.

    The last five are empty for a file that `load` rejects.
    """

    source: str
    name: str
    base: str
    findings: tuple[Finding, ...]
    fused: Mapping[str, tuple[str, ...]]
    lost: tuple[str, ...]
    decided: tuple[str, ...]
    repaired: tuple[str, ...]
    feet: tuple[FootEntry, ...]
    mass: float
    center: Array
    joints: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    modules: tuple[tuple[str, ...], ...] = ()
    alike: tuple[tuple[int, ...], ...] = ()
    conditions: tuple[float, ...] = ()

    @property
    def singular(self) -> tuple[Finding, ...]:
        """The findings for which `load` rejects the file."""
        return self.of("singular")

    def of(self, severity: str) -> tuple[Finding, ...]:
        """Return the findings of one severity; raise UnknownNameError if it is none of `SEVERITIES`."""
        known_name("severity", severity, SEVERITIES)
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def __str__(self) -> str:
        lines = [f"{self.name} ({self.source}), {self.mass:.4g} kg, {len(self.joints)} joints, {self.base} base"]
        lines += [f"{f.severity}: {f.where}: {f.words}" for f in self.findings]
        lines += [f"repaired: {words}" for words in self.repaired]
        lines += [f"decided: {words}" for words in self.decided]
        lines += [f"fixed to {head!r}: {', '.join(others)}" for head, others in self.fused.items()]
        lines += [f"not converted: {words}" for words in self.lost]
        lines += [f"foot {foot.link!r}: {foot.how}" for foot in self.feet]
        return "\n".join(lines)


def audit_headline(audit: Audit) -> str:
    """Return a summary of an audit: name, mass, center of mass and number of findings."""
    x, y, z = audit.center
    counts = ", ".join(f"{len(audit.of(severity))} {severity}" for severity in ("singular", "suspicious", "harmless"))
    return (
        f"{visible(audit.name)} ({visible(audit.source)}), {audit.base} base\n"
        f"{audit.mass:.4g} kg, center of mass ({x:.4g}, {y:.4g}, {z:.4g}) m in axes of the root link "
        f"with all joints at zero\nFindings: {counts}"
    )


def audit_tables(audit: Audit) -> list[Table]:
    """Return the tables of an audit; empty ones are left out."""
    findings = [(f.severity, f"{f.where}: {f.words}") for f in audit.findings]
    fused = [(link, ", ".join(others)) for link, others in audit.fused.items()]
    feet = [(f.link, f"{f.how}: {', '.join(f.points)}") for f in audit.feet]
    tables = [
        _wrapped_table("Findings", ("severity", "what"), findings),
        _wrapped_table("Repaired on request", ("what",), [(words,) for words in audit.repaired]),
        _wrapped_table("Decided", ("what",), [(words,) for words in audit.decided]),
        _wrapped_table(
            "Not converted: in the file but not in the robot", ("what",), [(words,) for words in audit.lost]
        ),
        _wrapped_table("Fused", ("link", "moves as one with"), fused),
        _wrapped_table("Feet", ("link", "found by, and contact points"), feet),
    ]
    return [table for table in tables if table.rows]


def _wrapped_table(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    """Return a table with line breaks in the last column."""
    wrapped = []
    for *first, last in rows:
        lines = wrap(last, _WIDTH) or [""]
        wrapped += [(*first, lines[0]), *((*[""] * len(first), line) for line in lines[1:])]
    return Table(title, header, tuple(wrapped), left=len(header))
