"""Inertias of links and of groups of links fixed to each other: sums and physical consistency."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from legged.dynamics.inertia import inertia_matrix
from legged.errors import FileError
from legged.files.description import LinkEntry, Tree
from legged.robot.configuration import random_configuration
from legged.robot.inertia import Inertia
from legged.robot.placement import Placement
from legged.robot.robot import Robot


def entry_inertia(entry: LinkEntry) -> Inertia:
    """Return the inertia of a link, unchecked; zero if the file gives none."""
    return Inertia() if entry.mass is None else Inertia(entry.mass, entry.center, entry.tensor, checked=False)


def group_inertia(tree: Tree, head: str) -> Inertia:
    """Return the inertia of a group of links fixed to each other, in the frame of its head, unchecked."""
    if head not in tree.inertias:
        tree.inertias[head] = _sum(tree, {name: tree.place[name] for name in tree.groups[head]})
    return tree.inertias[head]


def total_inertia(tree: Tree) -> Inertia:
    """Return the inertia of the whole robot with all joints at zero, in the frame of the root link, unchecked."""
    return _sum(tree, tree.pose)


def _sum(tree: Tree, places: dict[str, Placement]) -> Inertia:
    parts = (entry_inertia(tree.link[name]).moved(x.rotation, x.position) for name, x in places.items())
    return reduce(operator.add, parts)


POINT = 1e-6
"""Radius of gyration, [m], up to which a body counts as a point mass; smaller values are rounding errors of zero."""
ROUNDING = 1e-6
"""Relative excess allowed for the rounding of numbers in files: thin rods and plates lie exactly on the limit."""


@dataclass(frozen=True)
class InertiaFault:
    """Violation of physical consistency by an inertia.

    Attributes:
        message: Description with numbers.
        excess: Size of the violation relative to the largest principal inertia, dimensionless; 1 if mass and inertia
            contradict each other.
        indefinite: Whether some motion has negative kinetic energy, which makes the dynamics diverge.
    """

    message: str
    excess: float
    indefinite: bool


def inertia_fault(inertia: Inertia) -> InertiaFault | None:
    """Return the violation of physical consistency by an inertia, or None.

    An inertia is physically consistent if its mass and the second moments of mass about its center, the eigenvalues of
    J = tr(I)/2 - I, are not negative. The latter is the triangle inequality of the principal inertias.
    """
    if is_point_mass(inertia):
        return None
    a, b, c = np.linalg.eigvalsh(np.asarray(inertia.tensor))
    moments = f"principal inertias {a:.4g}, {b:.4g}, {c:.4g} kg m^2"
    size = max(abs(a), abs(c))
    if inertia.mass < 0:
        return InertiaFault(f"mass {inertia.mass:g} kg is negative", 1.0, True)
    if a < -ROUNDING * size:
        return InertiaFault(f"{moments}: one is negative", float(-a / size), True)
    if inertia.mass == 0.0:
        return InertiaFault(f"no mass, but {moments}", 1.0, False) if size else None
    if c - a - b > ROUNDING * size:
        excess = (c - a - b) / size
        return InertiaFault(
            f"{moments}: the largest exceeds the sum of the others by {excess:.1%} of it", excess, False
        )
    return None


def is_point_mass(inertia: Inertia) -> bool:
    """Return whether a body has mass but no rotational inertia."""
    return inertia.mass > 0 and gyration_radius(inertia) <= POINT


def nearest_consistent(inertia: Inertia) -> Inertia:
    """Return the physically consistent inertia with the same mass and center and the nearest second moments.

    The second moments about the center of mass form a positive semidefinite matrix. The nearest such matrix in the
    Frobenius norm results from replacing negative eigenvalues by zero.
    """
    tensor = np.asarray(inertia.tensor)
    moments, axes = np.linalg.eigh(np.trace(tensor) / 2 * np.eye(3) - tensor)
    J = (axes * np.maximum(moments, 0.0)) @ axes.T
    fixed = np.trace(J) * np.eye(3) - J
    return Inertia(inertia.mass, inertia.center, (fixed + fixed.T) / 2)


def gyration_radius(inertia: Inertia) -> float:
    """Return the largest radius of gyration about an axis through the center of mass, [m]; 0 without mass."""
    largest = float(np.abs(np.linalg.eigvalsh(np.asarray(inertia.tensor))).max())
    return float(np.sqrt(largest / abs(inertia.mass))) if inertia.mass else 0.0


CONFIGURATIONS = 20
"""Number of random configurations at which `check_positive_definite` evaluates the inertia matrix."""


def check_positive_definite(robot: Robot, tree: Tree) -> None:
    """Raise FileError if the inertia matrix is not positive definite at one of `CONFIGURATIONS` random configurations.

    Only a negative mass or principal inertia can cause this, so robots without one are not tested. A robot that has one
    and passes may still fail at other configurations; the audit reports it as suspicious.
    """
    culprits = [
        head for head in tree.groups if (fault := inertia_fault(group_inertia(tree, head))) and fault.indefinite
    ]
    if not culprits or not robot.nv:
        return
    rng = np.random.default_rng(0)
    for _ in range(CONFIGURATIONS):
        inertia = inertia_matrix(robot, random_configuration(robot, rng))
        if np.linalg.eigvalsh(inertia)[0] <= 0.0:
            names = ", ".join(map(repr, culprits))
            raise FileError(
                tree.description.source,
                f"negative inertias of the links {names} make the inertia matrix indefinite; "
                f"correct them, or load with repair='inertia'",
            )
