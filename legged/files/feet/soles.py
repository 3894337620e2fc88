"""Measure the part of a foot that touches the ground, from the convex hull of its shapes and meshes.

The direction down is that of the robot with all joints at zero. Flat soles get the corners of their largest
quadrilateral, narrow ones the two ends of their line, round feet a sphere, and all others their lowest point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from legged.robot.shapes import Capsule, Sphere, convex_hull, hull_vertices, outermost_points, spiral
from legged.robot.shapes import Shape as LinkShape
from legged.spatial import Array

_TILT = 0.75
"""Least cosine between the normal of a sole and the vertical, all joints at zero: feet of bent legs are inclined."""
_DEPTH = 0.02
"""Thickness of the layer above the lowest plane that belongs to a flat sole, as a part of the foot's length: treads and
rounded edges."""
_THICKEST = 3e-3
"""Largest thickness of that layer, [m]."""
_FLAT = 0.25
"""Least area of a flat sole, as a part of the area of the whole foot seen from below. A sphere of 20 mm has 0.1."""
_AS_LARGE = 0.8
"""A level sole is preferred to an inclined one if it has at least this part of its area."""
_NARROW = 0.2
"""Largest width of a sole that counts as a line, as a part of its length."""
_ROUND = 0.03
"""Largest mean deviation of the lower half of a foot from a sphere, as a part of the radius, if the foot is round."""
_ANGLES = 0.05
"""[rad], steps between the directions in which the width of a sole is measured."""
_LEVEL = 0.5
"""Largest cosine of the angles of a level shank, and of the axis of its knee, to the vertical, all joints at zero."""
_FARTHEST = 0.95
"""Points of a shank beyond this fraction of the largest distance from the knee are its end."""
_BEHIND = 0.25
"""Extent of a shank behind its knee relative to that in front of it; a foot reaches further behind its ankle."""


@dataclass(frozen=True, eq=False)
class Sole:
    """The measured part of a foot that touches the ground.

    Attributes:
        contacts: Corners of a flat sole, ends of a narrow one, one point or one sphere, (3,), [m], axes of the link.
        form: Its form and dimensions in words, for the audit.
        normal: Unit vector, (3,), from the foot to the ground, axes of the link.
        size: Length and width of the sole, or diameter of a sphere, (2,), [m]; zeros of a point.
    """

    contacts: tuple[Array | Sphere, ...]
    form: str
    normal: Array
    size: tuple[float, float]

    def words(self, down: Array) -> str:
        """Return the form and the inclination of the sole as text for the audit.

        Args:
            down: Unit vector downward with all joints at zero, (3,), dimensionless, axes of the link.
        """
        tilt = np.degrees(np.arccos(np.clip(self.normal @ down, -1.0, 1.0)))
        return f"{self.form}, inclined by {tilt:.0f} degrees" if tilt >= 0.5 else self.form


def _ball(sphere: Sphere, down: Array) -> Sole:
    """Return the sole of a foot that is a sphere in the axes of its link."""
    form = f"round, with a radius of {1e3 * sphere.radius:.0f} mm"
    return Sole((sphere,), form, down, (2 * sphere.radius, 2 * sphere.radius))


def measure(shapes: Sequence[LinkShape | Array], down: Array) -> Sole:
    """Return the sole of a foot.

    Args:
        shapes: All shapes of the foot, at least one, axes of its link; of a mesh its vertices, (n, 3), [m].
        down: Unit vector downward with all joints at zero, (3,), dimensionless, in the same axes.

    Raises:
        DefinitionError: The shapes have no volume.
    """
    if len(shapes) == 1 and isinstance(shapes[0], Sphere):
        return _ball(shapes[0], down)
    points = hull_vertices("the shapes of a foot", np.concatenate([_surface(shape) for shape in shapes]))
    return _flat(points, down) or _round(points, down) or _lowest(points, down)


def shank_direction(points: Array, axis: Array, down: Array) -> Array | None:
    """Return the unit vector from a knee to the end of a level shank, (3,), dimensionless; None for all others.

    Args:
        points: Places on the last link of a leg relative to its joint, (n, 3), [m].
        axis: Axis of this joint, (3,), dimensionless. down: Unit vector downward, (3,), dimensionless, same axes.
    """
    across = points - np.outer(points @ axis, axis)
    lengths = np.linalg.norm(across, axis=1)
    length = float(lengths.max())
    if not length:
        return None
    farthest = across[np.argmax(lengths)]
    middle = across[across @ farthest > _FARTHEST * length**2].mean(axis=0)
    direction = middle / np.linalg.norm(middle)
    is_level = max(abs(axis @ down), abs(direction @ down)) < _LEVEL
    lies = is_level and -(across @ direction).min() < _BEHIND * length
    return direction if lies else None


def _surface(shape: LinkShape | Array) -> Array:
    """Return points on the surface of a shape, (n, 3), [m]: the vertices of a polyhedron, else 1200 of a sphere."""
    if isinstance(shape, np.ndarray):
        return shape
    points, radius = outermost_points(shape)
    if not radius:
        return points
    directions = spiral(np.linspace(-1.0, 1.0, 600 if isinstance(shape, Capsule) else 1200))
    return np.concatenate([point + radius * directions for point in points])


def _flat(points: Array, down: Array) -> Sole | None:
    """Return the flat or narrow sole whose area is largest; None without one."""
    normals = np.unique(np.round(convex_hull(points).equations[:, :3], 4), axis=0)
    normals = normals / np.linalg.norm(normals, axis=1)[:, None]
    layers = [(*_layer(points, normal), normal) for normal in normals[normals @ down > _TILT]]
    straight = (*_layer(points, down), down)
    area, corners, normal = max([*layers, straight], key=lambda layer: layer[0])
    if straight[0] > _AS_LARGE * area:
        area, corners, normal = straight
    axes = _across(normal)
    if area < _FLAT * float(convex_hull(points @ axes.T).volume):
        return None
    flat = corners @ axes.T
    size, along = _extents(flat)
    if size[1] >= _NARROW * size[0]:
        chosen = corners[_quadrilateral(flat)]
        level = chosen + np.outer((points @ normal).max() - chosen @ normal, normal)
        form = f"flat sole of {1e3 * size[0]:.0f} mm x {1e3 * size[1]:.0f} mm"
        return Sole(tuple(level), form, normal, size)
    places, across = flat @ along, np.array([-along[1], along[0]])
    middle = float((flat @ across).min() + (flat @ across).max()) / 2
    ends = np.array([places.min() * along + middle * across, places.max() * along + middle * across])
    ends_on_sole = ends @ axes + float((points @ normal).max()) * normal
    return Sole(tuple(ends_on_sole), f"narrow sole of {1e3 * size[0]:.0f} mm", normal, size)


def _layer(points: Array, normal: Array) -> tuple[float, Array]:
    """Return (area, corners) of the lowest layer of a foot, [m^2] and (n, 3), [m]."""
    depth, flat = points @ normal, points @ _across(normal).T
    thickness = min(_DEPTH * float(np.ptp(flat, axis=0).max()), _THICKEST)
    low = depth >= depth.max() - thickness
    if low.sum() < 3 or np.linalg.matrix_rank(flat[low] - flat[low][0], tol=1e-6) < 2:
        return 0.0, points[low]
    outline = convex_hull(flat[low])
    return float(outline.volume), points[low][outline.vertices]


def _across(normal: Array) -> Array:
    """Return two unit vectors, (2, 3), perpendicular to a normal and to each other."""
    first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    first = first / np.linalg.norm(first)
    return np.stack([first, np.cross(normal, first)])


def _extents(corners: Array) -> tuple[tuple[float, float], Array]:
    """Return (length and width, direction of the length) of the narrowest strip around points, (n, 2), [m]."""
    angles = np.arange(0.0, np.pi, _ANGLES)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    spans = np.ptp(corners @ directions.T, axis=0)
    along = directions[int(np.argmin(spans))] @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    return (float(np.ptp(corners @ along)), float(spans.min())), along


def _quadrilateral(corners: Array) -> list[int]:
    """Return the indices of the largest quadrilateral inside a convex polygon, (n, 2), n >= 3, in its order."""
    if len(corners) <= 4:
        return list(range(len(corners)))
    best, chosen = -1.0, [0, 1, 2, 3]
    for i, k in combinations(range(len(corners)), 2):  # a diagonal, and the farthest corner on each side of it
        edge = corners[k] - corners[i]
        side = edge[0] * (corners[:, 1] - corners[i, 1]) - edge[1] * (corners[:, 0] - corners[i, 0])
        if side.max() - side.min() > best:
            best, chosen = float(side.max() - side.min()), [i, int(np.argmin(side)), k, int(np.argmax(side))]
    return chosen


def _round(points: Array, down: Array) -> Sole | None:
    """Return the sphere of a round foot; None if its lower half is no part of a sphere."""
    depth = points @ down
    low = points[depth > depth.max() - 0.5 * min(np.ptp(points, axis=0))]
    if len(low) < 8:
        return None
    solution = np.linalg.lstsq(np.column_stack([2 * low, np.ones(len(low))]), (low**2).sum(axis=1), rcond=None)[0]
    center, radius = solution[:3], float(np.sqrt(max(solution[3] + solution[:3] @ solution[:3], 0.0)))
    deviation = np.abs(np.linalg.norm(low - center, axis=1) - radius).mean()
    if not 0.0 < radius < np.ptp(points, axis=0).max() or deviation > _ROUND * radius:
        return None
    return _ball(Sphere(radius, center), down)


def _lowest(points: Array, down: Array) -> Sole:
    """Return the lowest point of a foot: the middle of those within a tenth of a millimeter."""
    depth = points @ down
    return Sole((points[depth > depth.max() - 1e-4].mean(axis=0),), "lowest point", down, (0.0, 0.0))
