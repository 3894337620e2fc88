"""Mass, center of mass and inertia tensor of a link, and those of uniform solids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from legged.arguments import number
from legged.checked import checked
from legged.errors import InertiaError
from legged.robot.placement import Vector
from legged.spatial import Array, skew


@checked
@dataclass(frozen=True, eq=False)
class Inertia:
    """Inertial parameters of a link.

    Attributes:
        mass: [kg].
        center: Link origin to center of mass, (3,), [m], link axes.
        tensor: Inertia about the center of mass, (3, 3), [kg m^2], link axes.
        checked: Whether the parameters must be physically possible. `legged.files` switches this off, since robot files
            contain impossible parameters, which it reports; they must be finite and the tensor symmetric in any case.

    Raises:
        InertiaError: For physically impossible parameters. Points, thin rods and thin plates are allowed limits.
    """

    mass: float = 0.0
    center: Vector = field(default_factory=lambda: np.zeros(3))
    tensor: Annotated[Sequence[float] | Array | Sequence[Sequence[float]], np.ndarray] = field(
        default_factory=lambda: np.zeros((3, 3))
    )
    checked: bool = True

    def __post_init__(self) -> None:
        tensor = np.asarray(self.tensor, float)
        object.__setattr__(self, "mass", float(self.mass))
        object.__setattr__(self, "center", np.asarray(self.center, float))
        object.__setattr__(self, "tensor", np.diag(tensor) if tensor.shape == (3,) else tensor)
        _check(self)

    @property
    def about_origin(self) -> Array:
        """Inertia tensor about the link's origin, (3, 3), [kg m^2], link axes."""
        d = skew(np.asarray(self.center))
        return np.asarray(self.tensor) - self.mass * d @ d

    @property
    def is_massless(self) -> bool:
        return self.mass == 0.0

    def moved(self, rotation: Annotated[Array, (3, 3)], position: Annotated[Array, (3,)]) -> Inertia:
        """Return the inertial parameters in an outer frame.

        Args:
            rotation: A rotation matrix, (3, 3), from this frame to the outer frame.
            position: Origin of this frame, (3,), [m], outer axes.
        """
        tensor = rotation @ self.tensor @ rotation.T
        return Inertia(self.mass, rotation @ self.center + position, (tensor + tensor.T) / 2, self.checked)

    def __add__(self, other: Inertia) -> Inertia:
        """Return the inertial parameters of two bodies joined rigidly, all in one frame."""
        mass, checked = self.mass + other.mass, self.checked and other.checked
        if mass == 0.0 and checked:
            return Inertia()
        first = self.mass * np.asarray(self.center) + other.mass * np.asarray(other.center)
        center = first / mass if mass else np.zeros(3)
        tensor = np.zeros((3, 3))
        for part in (self, other):
            d = skew(np.asarray(part.center) - center)
            tensor += part.tensor - part.mass * d @ d
        return Inertia(mass, center, tensor, checked)


def _check(body: Inertia) -> None:
    mass, center, tensor = body.mass, np.asarray(body.center), np.asarray(body.tensor)
    if center.shape != (3,) or tensor.shape != (3, 3):
        raise InertiaError(
            f"an inertia needs a center (3,) and a tensor (3, 3) or its diagonal (3,), got {center.shape} and "
            f"{tensor.shape}"
        )
    if not (np.isfinite(mass) and np.isfinite(center).all() and np.isfinite(tensor).all()):
        raise InertiaError(f"mass, center and inertia must be finite, got mass {mass}, center {center}, {tensor}")
    scale = np.abs(tensor).max()
    if np.abs(tensor - tensor.T).max() > 1e-9 * scale:
        raise InertiaError(f"the inertia tensor is not symmetric:\n{tensor}")
    if not body.checked:
        return
    if mass < 0:
        raise InertiaError(f"mass {mass} kg is negative; a massless link has mass 0")
    if mass == 0 and scale > 0:
        raise InertiaError("a link of zero mass has a rotational inertia; no body has that, give it a mass")
    a, b, c = np.linalg.eigvalsh(tensor)
    moments = f"principal inertias {a:.6g}, {b:.6g}, {c:.6g} kg m^2"
    if a < -1e-9 * scale:
        raise InertiaError(f"{moments}: the tensor is not positive definite; about its center of mass no body has this")
    if c > (a + b) * (1 + 1e-9):
        raise InertiaError(f"{moments}; no body has these, since the largest must not exceed the sum of the other two")


@checked
def point_mass(mass: float, at: Vector = (0.0, 0.0, 0.0)) -> Inertia:
    """Return the inertia of a point of the given mass [kg] at a position (3,) [m], link axes."""
    return Inertia(mass, at)


@checked
def rod_inertia(mass: float, start: Vector, end: Vector) -> Inertia:
    """Return the inertia of a uniform thin rod of a mass [kg] from `start` to `end`, (3,) each, [m], link axes.

    Its moment of inertia is m l^2 / 12 about axes normal to the rod and zero about the rod.
    """
    start, end = np.asarray(start, float), np.asarray(end, float)
    along = end - start
    tensor = mass / 12 * (along @ along * np.eye(3) - np.outer(along, along))
    return Inertia(mass, (start + end) / 2, tensor)


@checked
def box_inertia(mass: float, size: Vector, center: Vector = (0.0, 0.0, 0.0)) -> Inertia:
    """Return the inertia of a uniform box of a mass [kg]; an edge of zero length gives a plate.

    Args:
        mass: [kg].
        size: Edge lengths along the link's axes, (3,), [m].
        center: Center of the box, (3,), [m], link axes.
    """
    x, y, z = np.square([number("an edge of a box", edge, "m", least=0) for edge in size])
    return Inertia(mass, center, mass / 12 * np.array([y + z, x + z, x + y]))


@checked
def cylinder_inertia(mass: float, radius: float, start: Vector, end: Vector) -> Inertia:
    """Return the inertia of a uniform solid cylinder.

    Args:
        mass: [kg]. radius: [m].
        start, end: End points of the cylinder's axis, (3,), [m], link axes.

    Raises:
        InertiaError: For equal end points, which leave the direction of the axis open.
    """
    number("radius", radius, "m", least=0)
    thin = rod_inertia(mass, start, end)
    along = np.asarray(end, float) - np.asarray(start, float)
    if not along.any():
        raise InertiaError(f"the axis of a cylinder has no direction: it starts and ends at {end}")
    axis = along / np.linalg.norm(along)
    across = mass * radius**2 / 4 * (np.eye(3) + np.outer(axis, axis))
    return Inertia(mass, thin.center, np.asarray(thin.tensor) + across)


@checked
def sphere_inertia(mass: float, radius: float, center: Vector = (0.0, 0.0, 0.0)) -> Inertia:
    """Return the inertia of a uniform solid sphere.

    Args:
        mass: [kg]. radius: [m].
        center: Center of the sphere, (3,), [m], link axes.
    """
    number("radius", radius, "m", least=0)
    return Inertia(mass, center, np.full(3, 0.4 * mass * radius**2))
