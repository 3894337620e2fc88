"""Report on a robot file: what is unusual, and how the file was converted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from legged.files.description import Tree
from legged.files.feet import Foot
from legged.files.inertias import entry_inertia, fault_of, gyration_radius, is_point, weld_inertia
from legged.files.resolve import massless_ends, without_inertia
from legged.spatial import Array

SEVERITIES = ("singular", "suspicious", "harmless")
POOR = 1e10
"""Condition of a module from which on accelerations have less than six digits."""
FAR = 1.0
"""A radius of gyration, or a center of mass this many sizes of the robot away, is suspicious."""


@dataclass(frozen=True)
class Finding:
    """Something that a person should know.

    Attributes:
        severity: "singular": the dynamics have no answer, and the file is refused. "suspicious": they have one, perhaps
            not of the robot meant. "harmless": the file is strange, the robot is not, once links are fused.
        kind: "massless", "inertia" (no body has it), "point" (mass without rotational inertia), "size" (beyond the
            robot's), "world" (a root that should not float), "condition" (almost singular with all joints at zero) or
            "unanswered" (singular, found only by trying the dynamics).
        where: Which links or joints.
        words: What, and what to do.
        excess: How far off an inertia is, as a part of its largest principal one.
    """

    severity: str
    kind: str
    where: str
    words: str
    excess: float | None = None


def findings_of(tree: Tree, floating: bool) -> tuple[Finding, ...]:
    """Return what is strange, the worst first."""
    found = [*_massless(tree), *_impossible(tree), *_far(tree), *_root(tree, floating)]
    return ordered(found)


def poor_conditions(modules: Sequence[Sequence[str]], conditions: Sequence[float]) -> list[Finding]:
    """Return a finding for each module that is almost singular with all joints at zero."""
    found = []
    for links, condition in zip(modules, conditions, strict=True):
        if condition > POOR:
            words = (
                f"with all joints at zero some motion meets almost no inertia (condition {condition:.0e}); axes line up"
            )
            found.append(Finding("suspicious", "condition", _links(list(links)), words))
    return found


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings, the worst first."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def _massless(tree: Tree) -> Iterator[Finding]:
    nothing = [name for name in tree.order if not tree.link[name].mass and not tree.link[name].tensor.any()]
    heads = {head for head in tree.welds if _weighs_nothing(tree, head)}
    fused = [name for name in nothing if tree.head[name] not in heads]
    if fused:
        yield Finding("harmless", "massless", _links(fused), "no mass; fixed to links that have it")
    dead = without_inertia(tree)
    if dead:
        words = (
            "nothing that they move has mass, so any force accelerates them without bound; give the links mass, fix "
            "the joints, or load with repair='weld', which does so"
        )
        yield Finding("singular", "massless", _joints([tree.joint[head].name for head in dead]), words)
    ends = massless_ends(tree)
    inner = [head for head in tree.welds if head in heads and head in tree.joint and head not in ends]
    if inner:
        words = "no mass between two moving joints; the dynamics are singular wherever their axes line up"
        yield Finding("suspicious", "massless", _links(inner), words)


def _weighs_nothing(tree: Tree, head: str) -> bool:
    inertia = weld_inertia(tree, head)
    return inertia.mass == 0.0 and not np.any(inertia.tensor)


def _impossible(tree: Tree) -> Iterator[Finding]:
    for name in tree.order:
        entry = tree.link[name]
        fault = fault_of(entry_inertia(entry))
        if fault is None:
            continue
        whole = fault_of(weld_inertia(tree, tree.head[name]))
        others = [other for other in tree.welds[tree.head[name]] if other != name]
        if whole and weld_inertia(tree, tree.head[name]).mass < 0:
            yield Finding("singular", "inertia", f"link {name!r}", f"{fault.words}; correct it", fault.excess)
        elif whole is None:
            words = f"{fault.words}; possible as one body with {_few(others)}"
            yield Finding("harmless", "inertia", f"link {name!r}", words, fault.excess)
        else:
            words = f"{fault.words}; no body has this" + (f", nor has it with {_few(others)}" if others else "")
            hint = "; correct it, or load with repair='inertia'" if (entry.mass or 0) > 0 else "; correct it"
            yield Finding("suspicious", "inertia", f"link {name!r}", words + hint, fault.excess)
    points = [name for name in tree.order if is_point(entry_inertia(tree.link[name]))]
    alone = [name for name in points if is_point(weld_inertia(tree, tree.head[name]))]
    fused = [name for name in points if name not in alone]
    if fused:
        yield Finding(
            "harmless", "point", _links(fused), "mass without rotational inertia, a point; fixed to links that have it"
        )
    if alone:
        words = (
            "mass without rotational inertia: a point, which no body is; singular if its joint turns it about itself"
        )
        yield Finding("suspicious", "point", _links(alone), words)


def _far(tree: Tree) -> Iterator[Finding]:
    size = _size(tree)
    for head in tree.welds:
        inertia = weld_inertia(tree, head)
        radius, distance = gyration_radius(inertia), float(np.linalg.norm(inertia.center))
        if radius > FAR * size > 0:
            words = f"its inertia is that of {inertia.mass:g} kg at {radius:.3g} m, and the robot measures {size:.3g} m"
            yield Finding("suspicious", "size", f"link {head!r}", words + "; wrong units?")
        if inertia.mass and distance > FAR * size > 0:
            words = f"its center of mass is {distance:.3g} m away, and the robot measures {size:.3g} m; wrong units?"
            yield Finding("suspicious", "size", f"link {head!r}", words)


def _size(tree: Tree) -> float:
    """Return the diagonal of the box around the links' origins and collision shapes, joints at zero, [m]."""
    points = [pose.position for pose in tree.pose.values()]
    for name, pose in tree.pose.items():
        for shape in tree.link[name].shapes:
            at, reach = pose.rotation @ shape.position + pose.position, max(shape.size, default=0.0)
            points += [at - reach, at + reach]
    return float(np.linalg.norm(np.ptp(np.array(points), axis=0)))


def _root(tree: Tree, floating: bool) -> Iterator[Finding]:
    root = tree.description.root
    if floating and root.lower() in ("world", "map", "odom"):
        words = "the root of the file stands for the world, and floats; load with base='fixed' to bolt the robot down"
        yield Finding("suspicious", "world", f"link {root!r}", words)


def _links(names: list[str]) -> str:
    return f"link {names[0]!r}" if len(names) == 1 else f"{len(names)} links: {_few(names)}"


def _joints(names: list[str]) -> str:
    return f"joint {names[0]!r}" if len(names) == 1 else f"{len(names)} joints: {_few(names)}"


def _few(names: list[str], most: int = 4) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


@dataclass(frozen=True, eq=False)
class Audit:
    """What a file says and what was made of it.

    Attributes:
        source: Path. name: The robot's.
        base: "floating" or "fixed".
        findings: What is strange, the worst first.
        fused: Link -> the links fixed to it, which move as one body with it.
        lost: What the file has and the robot has not.
        decided: What was made of what the file leaves open.
        repaired: What was repaired, as the user asked.
        feet: With their contact points, and how they were found.
        mass: Total, [kg]. center: Center of mass with all joints at zero, (3,), [m], axes and origin of the root link.
        joints: Names in the order of v; followers: those that follow others.
        modules: Names of links, module by module. alike: Groups of numbers of modules that are alike.
        conditions: Of the modules' articulated inertias with all joints at zero, units taken out; see
            `legged.conditioning`.

    What follows from the built robot is empty for a file that is refused.
    """

    source: str
    name: str
    base: str
    findings: tuple[Finding, ...]
    fused: Mapping[str, tuple[str, ...]]
    lost: tuple[str, ...]
    decided: tuple[str, ...]
    repaired: tuple[str, ...]
    feet: tuple[Foot, ...]
    mass: float
    center: Array
    joints: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    modules: tuple[tuple[str, ...], ...] = ()
    alike: tuple[tuple[int, ...], ...] = ()
    conditions: tuple[float, ...] = ()

    @property
    def singular(self) -> tuple[Finding, ...]:
        """The findings for which the file is refused."""
        return self.of("singular")

    def of(self, severity: str) -> tuple[Finding, ...]:
        """Return the findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def __str__(self) -> str:
        lines = [f"{self.name} ({self.source}), {self.mass:.4g} kg, {len(self.joints)} joints, {self.base} base"]
        lines += [f"{f.severity}: {f.where}: {f.words}" for f in self.findings]
        lines += [f"repaired: {words}" for words in self.repaired]
        lines += [f"decided: {words}" for words in self.decided]
        lines += [f"fused with {head!r}: {', '.join(others)}" for head, others in self.fused.items()]
        lines += [f"lost: {words}" for words in self.lost]
        lines += [f"foot {foot.link!r}: {foot.how}" for foot in self.feet]
        return "\n".join(lines)
