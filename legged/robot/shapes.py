"""Collision shapes of links and free bodies, from spheres to convex hulls, and the materials of their surfaces."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, TypeAlias

import numpy as np

from legged.arguments import number, rounded_array, text
from legged.checked import checked
from legged.errors import DefinitionError
from legged.robot.placement import Vector, rotation3, vector3
from legged.spatial import Array


@checked
@dataclass(frozen=True)
class Material:
    """The material of a surface; `legged.contact.Rigid.combination` says how two materials are combined.

    On compliant ground its friction counts alike, see `legged.ground.Ground.under`; the ground's normal law determines
    the rebound.

    Attributes:
        name: For tables of pairs of materials, such as "rubber".
        friction: Coulomb friction coefficient mu on a surface of the same material.
        restitution: Newton's coefficient of restitution, from 0 to 1, on a surface of the same material.
        priority: Of two materials the one with the higher priority determines the coefficients, as in MJCF; for equal
            priorities they are combined. The ground has priority 0.
    """

    name: str
    friction: float
    restitution: float = 0.0
    priority: int = 0

    def __post_init__(self) -> None:
        if not text("the name of a material", self.name):
            raise DefinitionError("a material needs a name")
        for key, value in coefficients(f"material {self.name!r}", self.friction, self.restitution).items():
            object.__setattr__(self, key, value)


def coefficients(what: str, friction: float, restitution: float) -> dict[str, float]:
    """Return friction and restitution as floats by name, or raise an error if they are out of range.

    Args:
        what: Name of the surface in messages. friction: Coefficient mu. restitution: From 0 to 1.
    """
    return {
        "friction": number(f"friction of {what}", friction, least=0.0),
        "restitution": number(f"restitution of {what}", restitution, least=0.0, most=1.0),
    }


MOST_VERTICES = 32
"""Largest number of vertices of a `Hull`; the cost of its contacts grows with them."""
_FLAT = 1e-9
"""Smallest thickness of a hull relative to its diameter."""
DIAGONALS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
"""Directions from the center of a cube to its corners, (8, 3)."""


def _length(what: str, value: Any) -> float:
    """Return a length, [m]; raise DefinitionError unless it is finite and positive."""
    length = float(value)
    if not (np.isfinite(length) and length > 0.0):
        raise DefinitionError(f"{what} must be a length above 0 m, got {value}")
    return length


def _set_pose(shape: Any, kind: str) -> None:
    """Read center and, if the shape has one, rotation of a shape."""
    object.__setattr__(shape, "center", vector3(f"{kind}'s center", shape.center))
    if hasattr(shape, "rotation"):
        object.__setattr__(shape, "rotation", rotation3(f"{kind}'s rotation", shape.rotation))


@checked
class _Placed:
    """A shape with a center and a rotation."""

    center: Vector
    rotation: Array

    def moved(self, rotation: Annotated[Array, (3, 3)], position: Annotated[Array, (3,)]) -> Any:
        """Return the shape in an outer frame.

        Args:
            rotation: A rotation matrix, (3, 3), from this frame to the outer frame.
            position: Origin of this frame, (3,), [m], outer axes.
        """
        return replace(self, center=rotation @ self.center + position, rotation=rotation @ self.rotation)  # type: ignore[type-var]


@checked
@dataclass(frozen=True, eq=False)
class Sphere:
    """A sphere.

    Attributes:
        radius: [m].
        center: Link origin to the sphere's center, (3,), [m], link axes.
        material: Material of the surface; None for that of the link.
    """

    radius: float
    center: Vector = field(default_factory=lambda: np.zeros(3))
    material: Material | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _length("a sphere's radius", self.radius))
        _set_pose(self, "a sphere")

    def moved(self, rotation: Annotated[Array, (3, 3)], position: Annotated[Array, (3,)]) -> Sphere:
        """Return the sphere in an outer frame.

        Args:
            rotation: A rotation matrix, (3, 3), from this frame to the outer frame.
            position: Origin of this frame, (3,), [m], outer axes.
        """
        return replace(self, center=rotation @ self.center + position)


@checked
@dataclass(frozen=True, eq=False)
class Box(_Placed):
    """A box (cuboid).

    Attributes:
        size: Edge lengths along the box's own axes, (3,), [m].
        center: Link origin to the box's center, (3,), [m], link axes.
        rotation: A rotation matrix, (3, 3), box axes to link axes; the identity by default.
        material: Material of the surface; None for that of the link.
    """

    size: Vector
    center: Vector = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    material: Material | None = None

    def __post_init__(self) -> None:
        size = vector3("a box's size", self.size)
        if not (size > 0.0).all():
            raise DefinitionError(f"a box's edges must be longer than 0 m, got {self.size}")
        object.__setattr__(self, "size", size)
        _set_pose(self, "a box")

    @property
    def half(self) -> Array:
        """Half the edge lengths, (3,), [m], box axes."""
        return np.asarray(self.size) / 2.0

    @property
    def corners(self) -> Array:
        """Positions of the corners, (8, 3), [m], link axes."""
        return np.asarray(self.center) + (DIAGONALS * self.half) @ self.rotation.T


class _Axial(_Placed):
    """A shape around its own z axis."""

    radius: float
    length: float

    @property
    def ends(self) -> Array:
        """Ends of the axis, (2, 3), [m], link axes: at -length / 2 and at +length / 2."""
        along = 0.5 * self.length * np.asarray(self.rotation)[:, 2]
        return np.asarray(self.center) + np.array([-along, along])

    def _read(self, kind: str) -> None:
        for name in ("radius", "length"):
            object.__setattr__(self, name, _length(f"{kind}'s {name}", getattr(self, name)))
        _set_pose(self, kind)


@checked
@dataclass(frozen=True, eq=False)
class Capsule(_Axial):
    """A cylinder with half a sphere on each end: all points within `radius` of a segment.

    Attributes:
        radius: [m].
        length: Distance of the centers of the two spheres, [m]; the capsule is longer by two radii.
        center: Link origin to the middle, (3,), [m], link axes.
        rotation: A rotation matrix, (3, 3), capsule axes to link axes; the segment lies along the capsule's z axis.
        material: Material of the surface; None for that of the link.
    """

    radius: float
    length: float
    center: Vector = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    material: Material | None = None

    def __post_init__(self) -> None:
        self._read("a capsule")


@checked
@dataclass(frozen=True, eq=False)
class Cylinder(_Axial):
    """A circular cylinder.

    Attributes:
        radius, length: [m].
        center: Link origin to the middle, (3,), [m], link axes.
        rotation: A rotation matrix, (3, 3), cylinder axes to link axes; its axis is the cylinder's z axis.
        material: Material of the surface; None for that of the link.
    """

    radius: float
    length: float
    center: Vector = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    material: Material | None = None

    def __post_init__(self) -> None:
        self._read("a cylinder")


@checked
@dataclass(frozen=True, eq=False)
class Ellipsoid(_Placed):
    """An ellipsoid.

    Attributes:
        radii: Half axes along the ellipsoid's own axes, (3,), [m].
        center: Link origin to the ellipsoid's center, (3,), [m], link axes.
        rotation: A rotation matrix, (3, 3), ellipsoid axes to link axes.
        material: Material of the surface; None for that of the link.
    """

    radii: Vector
    center: Vector = field(default_factory=lambda: np.zeros(3))
    rotation: Array = field(default_factory=lambda: np.eye(3))
    material: Material | None = None

    def __post_init__(self) -> None:
        radii = vector3("an ellipsoid's radii", self.radii)
        if not (radii > 0.0).all():
            raise DefinitionError(f"an ellipsoid's radii must be longer than 0 m, got {self.radii}")
        object.__setattr__(self, "radii", radii)
        _set_pose(self, "an ellipsoid")


@checked
@dataclass(frozen=True, eq=False)
class Hull:
    """The convex hull of points, such as the vertices of a mesh; see `hull_of` for meshes with many vertices.

    Attributes:
        vertices: (n, 3), [m], link axes, at most `MOST_VERTICES`. Points inside of the hull are removed.
        material: Material of the surface; None for that of the link.
    """

    vertices: Array
    material: Material | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "vertices", hull_vertices("a hull", self.vertices))
        if len(self.vertices) > MOST_VERTICES:
            raise DefinitionError(
                f"a hull has at most {MOST_VERTICES} vertices, got {len(self.vertices)}; `hull_of` returns a hull with "
                f"fewer"
            )

    @cached_property
    def center(self) -> Array:
        """Mean of the vertices, (3,), [m], link axes."""
        return self.vertices.mean(axis=0)

    @cached_property
    def radius(self) -> float:
        """Radius of the smallest sphere about the center that contains the hull, [m]."""
        return float(np.linalg.norm(self.vertices - self.center, axis=1).max())

    @cached_property
    def faces(self) -> tuple[Array, Array]:
        """Outward unit normals (f, 3) and offsets (f,), [m], of the faces: normal . x <= offset inside; link axes."""
        equations = np.unique(np.round(convex_hull(self.vertices).equations, 9), axis=0)
        return equations[:, :3], -equations[:, 3]

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs of vertices that are joined by an edge between two faces of different normals."""
        hull = convex_hull(self.vertices)
        normals: dict[tuple[int, int], list[Array]] = {}
        for corners, equation in zip(hull.simplices, hull.equations, strict=True):
            for a, b in ((0, 1), (1, 2), (0, 2)):
                first, second = sorted((int(corners[a]), int(corners[b])))
                normals.setdefault((first, second), []).append(equation[:3])
        return tuple(pair for pair, (m, n) in normals.items() if m @ n < 1.0 - 1e-9)

    def moved(self, rotation: Annotated[Array, (3, 3)], position: Annotated[Array, (3,)]) -> Hull:
        """Return the hull in an outer frame.

        Args:
            rotation: A rotation matrix, (3, 3), from this frame to the outer frame.
            position: Origin of this frame, (3,), [m], outer axes.
        """
        return replace(self, vertices=self.vertices @ rotation.T + position)


Shape: TypeAlias = Sphere | Box | Capsule | Cylinder | Ellipsoid | Hull
SHAPES: dict[str, type[Any]] = {
    kind.__name__.lower(): kind for kind in (Sphere, Box, Capsule, Cylinder, Ellipsoid, Hull)
}
"""Classes of shapes by the names that `Robot.describe` uses."""


def convex_hull(points: Array) -> Any:
    """Return `scipy.spatial.ConvexHull` of points; importing SciPy takes time.

    Args:
        points: (n, 3), [m], any axes; or (n, 2), of which the `volume` of the result is the area, [m^2].
    """
    from scipy.spatial import ConvexHull

    return ConvexHull(points)


def hull_vertices(what: str, points: Any) -> Array:
    """Return those of the given points that are vertices of their convex hull, (n, 3), [m].

    Args:
        what: Name of the points in messages. points: (m, 3), [m].

    Raises:
        DefinitionError: Fewer than four points, or all in a plane.
    """
    points = np.unique(rounded_array(f"the vertices of {what}", points, (None, 3)), axis=0)
    flat = f"the vertices of {what} lie in a plane; a body has a volume, so use a thin Box, or remove the shape"
    if len(points) < 4:
        raise DefinitionError(f"{what} needs four different vertices or more, got {len(points)}")
    thickness = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    if thickness[2] < _FLAT * thickness[0]:
        raise DefinitionError(flat)
    try:
        return points[np.sort(convex_hull(points).vertices)]
    except RuntimeError as error:  # of which Qhull's error is a subclass
        raise DefinitionError(flat) from error


def spiral(heights: Array) -> Array:
    """Return unit vectors on a spiral around a sphere, Fibonacci's lattice, (n, 3), dimensionless, in any axes.

    Args:
        heights: Their components along z, evenly spaced from -1 to 1 or from 1 to -1, (n,), dimensionless.
    """
    around, radii = np.pi * (1.0 + 5.0**0.5) * np.arange(len(heights)), np.sqrt(1.0 - heights**2)
    return np.column_stack([radii * np.cos(around), radii * np.sin(around), heights])


def outermost_points(shape: Shape) -> tuple[Array, float]:
    """Return points, (n, 3), [m], link axes, and a radius, [m], whose spheres enclose the shape closely.

    The convex hull of the spheres is the shape for spheres, boxes, capsules and hulls. It is the inscribed prism with
    sixteen sides for a cylinder, and the enclosing box for an ellipsoid.
    """
    if isinstance(shape, Sphere):
        return np.array([shape.center]), shape.radius
    if isinstance(shape, Capsule):
        return np.array(shape.ends), shape.radius
    if isinstance(shape, Hull):
        return np.array(shape.vertices), 0.0
    if isinstance(shape, Box):
        return np.array(shape.corners), 0.0
    if isinstance(shape, Ellipsoid):
        return np.asarray(shape.center) + (DIAGONALS * np.asarray(shape.radii)) @ np.asarray(shape.rotation).T, 0.0
    angles = 2 * np.pi * np.arange(16) / 16
    rim = [(shape.radius * np.cos(a), shape.radius * np.sin(a), z) for a in angles for z in (-1, 1)]
    half = np.array([1.0, 1.0, shape.length / 2])
    return np.asarray(shape.center) + (np.array(rim) * half) @ np.asarray(shape.rotation).T, 0.0


def shape_with(shape: Shape, material: Material | None) -> Any:
    """Return a shape with the given material, unless it has a material of its own.

    Args:
        shape: The shape. material: Material of the link that carries it, or None.
    """
    return shape if material is None or shape.material is not None else replace(shape, material=material)
