"""What a user names: links, and where the definition places them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from legged.errors import DefinitionError
from legged.robot.inertia import Inertia, Vector
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid part of a robot.

    Attributes:
        name: Unique in the robot.
        inertia: What it weighs; a link without one is massless.
        contacts: Points that may touch the ground, name -> position (3,), [m], link axes. A limb's prefix is put
            before the names when it is attached.
    """

    name: str
    inertia: Inertia = field(default_factory=Inertia)
    contacts: Mapping[str, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            raise DefinitionError("a link needs a name")
        points = {
            name: vector3(f"contact point {name!r} of link {self.name!r}", p) for name, p in self.contacts.items()
        }
        object.__setattr__(self, "contacts", points)

    def prefixed(self, prefix: str) -> Link:
        return Link(prefix + self.name, self.inertia, {prefix + k: p for k, p in self.contacts.items()})


@dataclass(frozen=True, eq=False)
class PlacedLink:
    """A link of a finished robot, and where it sits in its computational body.

    Attributes:
        name, inertia: As defined, in the link's own axes.
        index: Its place in `robot.links`.
        body: Index of the body that carries it in `robot.bodies`; links joined by fixed joints share one.
        rotation: (3, 3), turns link components into body components.
        position: Body origin to link origin, (3,), [m], body axes.
    """

    name: str
    inertia: Inertia
    index: int
    body: int
    rotation: Array
    position: Array


@dataclass(frozen=True, eq=False)
class ContactPoint:
    """A point of a link that may touch the ground: position (3,), [m], in the axes of link `link` (an index)."""

    name: str
    link: int
    position: Array


def vector3(what: str, value: Vector) -> Array:
    """Return value as a finite (3,) array, or raise DefinitionError naming it."""
    array = np.asarray(value, float)
    if array.shape != (3,):
        raise DefinitionError(f"{what} must be three numbers, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise DefinitionError(f"{what} must be finite, got {array}")
    return array


def rotation3(what: str, value: Array | None) -> Array:
    """Return value as a (3, 3) rotation matrix (identity for None), or raise DefinitionError naming it.

    A matrix that is one to nine digits is brought to all digits, R (3 - R^T R) / 2.
    """
    if value is None:
        return np.eye(3)
    R = np.asarray(value, float)
    if R.shape != (3, 3) or not np.isfinite(R).all():
        raise DefinitionError(f"{what} must be a finite (3, 3) matrix, got {value}")
    missed = np.abs(R.T @ R - np.eye(3)).max()
    if missed > 1e-9 or np.linalg.det(R) < 0:
        raise DefinitionError(f"{what} is not a rotation: its columns must be orthonormal and right-handed, got\n{R}")
    return R @ (3 * np.eye(3) - R.T @ R) / 2 if missed > 1e-15 else R
