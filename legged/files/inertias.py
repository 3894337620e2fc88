"""Inertias of links and of links that are fixed to each other: sums, physical consistency, positive definiteness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.dynamics.inertia import inertia_matrix
from legged.errors import FileError
from legged.files.description import LinkEntry, Tree
from legged.robot.configuration import random_configuration
from legged.robot.inertia import Inertia
from legged.robot.placement import Placement
from legged.robot.robot import Robot


def entry_inertia(entry: LinkEntry) -> Inertia:
    """Return a link's inertia, unchecked; nothing where the file gives none."""
    return Inertia() if entry.mass is None else Inertia(entry.mass, entry.center, entry.tensor, checked=False)


def weld_inertia(tree: Tree, head: str) -> Inertia:
    """Return the inertia of a group of welded links, in the axes of its head, unchecked."""
    return _sum(tree, {name: tree.place[name] for name in tree.welds[head]})


def total_inertia(tree: Tree) -> Inertia:
    """Return the inertia of the whole robot with all joints at zero, in the axes of its root, unchecked."""
    return _sum(tree, tree.pose)


def _sum(tree: Tree, places: dict[str, Placement]) -> Inertia:
    total = Inertia()
    for name, place in places.items():
        total = total + entry_inertia(tree.link[name]).moved(place.rotation, place.position)
    return total


POINT = 1e-6
"""Radius of gyration, [m], up to which a body is a point: what is left of its inertia is rounding of a zero."""
ROUNDING = 1e-6
"""Excess, relative, that the digits of a file explain: thin rods and plates are limits which bodies do reach."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with an inertia.

    Attributes:
        words: What, with numbers.
        excess: How far off, as a part of the largest principal inertia; 1 where mass and inertia contradict each other.
        loses_energy: Whether some motion has negative kinetic energy, which makes the dynamics diverge, and not only an
            impossible distribution of mass.
    """

    words: str
    excess: float
    loses_energy: bool


def fault_of(inertia: Inertia) -> Fault | None:
    """Return what keeps any body from having this inertia, or None.

    A body's mass is not negative, and neither are the second moments of its mass about its center along any axes: the
    eigenvalues of J = tr(I)/2 - I, which is the triangle inequality of the principal inertias.
    """
    if is_point(inertia):
        return None
    a, b, c = np.linalg.eigvalsh(np.asarray(inertia.tensor))
    moments = f"principal inertias {a:.4g}, {b:.4g}, {c:.4g} kg m^2"
    size = max(abs(a), abs(c))
    if inertia.mass < 0:
        return Fault(f"mass {inertia.mass:g} kg is negative", 1.0, True)
    if a < -ROUNDING * size:
        return Fault(f"{moments}: one is negative", float(-a / size), True)
    if inertia.mass == 0.0:
        return Fault(f"no mass, but {moments}", 1.0, False) if size else None
    if c - a - b > ROUNDING * size:
        excess = (c - a - b) / size
        return Fault(f"{moments}: the largest exceeds the sum of the others by {excess:.1%} of it", excess, False)
    return None


def is_point(inertia: Inertia) -> bool:
    """Return whether a body has mass and no rotational inertia."""
    return inertia.mass > 0 and gyration_radius(inertia) <= POINT


def nearest(inertia: Inertia) -> Inertia:
    """Return the same mass and center with the possible tensor whose second moments are nearest (Frobenius norm).

    The second moments about the center of mass are positive semidefinite, and the nearest such matrix has their
    negative eigenvalues replaced by zero.
    """
    tensor = np.asarray(inertia.tensor)
    moments, axes = np.linalg.eigh(np.trace(tensor) / 2 * np.eye(3) - tensor)
    J = (axes * np.maximum(moments, 0.0)) @ axes.T
    fixed = np.trace(J) * np.eye(3) - J
    return Inertia(inertia.mass, inertia.center, (fixed + fixed.T) / 2)


def gyration_radius(inertia: Inertia) -> float:
    """Return the largest distance from an axis through the center at which all the mass would weigh the same, [m]."""
    largest = float(np.abs(np.linalg.eigvalsh(np.asarray(inertia.tensor))).max())
    return float(np.sqrt(largest / abs(inertia.mass))) if inertia.mass else 0.0


CONFIGURATIONS = 20


def refuse_indefinite(robot: Robot, tree: Tree) -> None:
    """Raise FileError if the inertia matrix is not positive definite at some of 20 random configurations.

    Only bodies with a negative mass or principal inertia can do that, so a robot without any passes unlooked at. One
    that has some and passes may still fail where no configuration was tried; the audit calls it suspicious.
    """
    culprits = [head for head in tree.welds if (fault := fault_of(weld_inertia(tree, head))) and fault.loses_energy]
    if not culprits or not robot.nv:
        return
    rng = np.random.default_rng(0)
    for _ in range(CONFIGURATIONS):
        inertia = inertia_matrix(robot, random_configuration(robot, rng))
        if np.linalg.eigvalsh(inertia)[0] <= 0.0:
            names = ", ".join(map(repr, culprits))
            raise FileError(
                tree.description.source,
                f"negative inertias of the links {names} let some motion gain energy, so that the dynamics diverge; "
                f"correct them, or load with repair='inertia'",
            )
