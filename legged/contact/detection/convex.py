"""Convex shapes: normal and distance of any two, and their lowest points, over any element and without branches.

The Minkowski difference A - B of two shapes contains the origin if the shapes overlap. A ray from one of its interior
points through the origin leaves it at one of its faces, whose normal is that of the contact. Portal refinement finds
the face by a triangle of points of A - B that the ray crosses: each iteration replaces one of them by the point that
lies farthest along the triangle's normal. The sign of the gap is exact. Contact points of whole faces are in
`legged.contact.detection.patches`.

Support points are those of a cylinder, an ellipsoid or a hull that touch a terrain first.

Vectors are in the axes of B and from B's center, unless stated otherwise.

Source: G. Snethen, "XenoCollide: complex collision made simple", Game Programming Gems 7, 2008. Here the first triangle
lies far below the surface, so that no search of a first portal is needed.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from legged.compiler.ir import repeat_while, where
from legged.contact.detection.box_box import FAR, sign_of
from legged.contact.detection.frames import contact_frame
from legged.robot.shapes import MOST_VERTICES, Box, Capsule, Cylinder, Ellipsoid, Hull, Sphere
from legged.spatial import Array, cross

ITERATIONS = 100
"""Largest number of iterations; polytopes take some ten, smooth shapes some forty."""
ACCURACY = 1e-12
"""Distance relative to that of the centers and the size of the shapes at which a triangle is on the surface."""
_COARSE = 4.0
"""A step that rounding loses beside this multiple of the size ends the iterations, for numbers of float32."""
_FACET = 4  # numbers of a face of a hull: its normal, and one for its four corners
_STEEP = 1e4  # depth of the first triangle relative to its size
_ASIDE = np.array([0.0061, -0.0073, 0.0031])  # of the ray's start, relative to the smallest radius: avoids symmetry
_TINY = 1e-300


class Solid(NamedTuple):
    """A convex shape in its own axes.

    Attributes:
        kind: Its class. vertices: Number of vertices of a hull, with those that pad it.
        size: Its dimensions, see `legged.contact.detection.pairs.dimensions`.
    """

    kind: type[Any]
    vertices: int
    size: Array

    def corners(self) -> Array:
        """Return the vertices of a hull, (n, 3), [m]."""
        return self.size[: 3 * self.vertices].reshape(-1, 3)

    def face(self, n: Array) -> tuple[Array, list[Array]]:
        """Return the outward normal, (3,), of the face of a hull that faces a direction most, and four corners, [m].

        Args:
            n: The direction, (3,), unit vector.
        """
        facets = self.size[3 * self.vertices : -2].reshape(-1, _FACET)
        best, face = facets[0, :3] @ n, facets[0]
        for facet in facets[1:]:
            facing = facet[:3] @ n
            better = facing > best
            best, face = where(better, facing, best), where(better, facet, face)
        corners, number = [], face[3]
        for _ in range(4):
            rest = np.floor(number / MOST_VERTICES)
            digit, point = number - MOST_VERTICES * rest, self.corners()[0]
            for k, corner in enumerate(self.corners()[1:], 1):
                point = where(digit == float(k), corner, point)
            corners.append(point)
            number = rest
        return face[:3], corners


class Crossing(NamedTuple):
    """The point at which the ray leaves A - B, as a contact.

    Attributes:
        gap: Separation along the normal, [m], negative for penetration; of shapes apart at most their distance.
        normal: Unit normal from B to A, (3,). point: Midway between the surfaces, (3,), [m].
    """

    gap: Any
    normal: Array
    point: Array


def hull_size(hull: Hull, vertices: int | None = None) -> Array:
    """Return the numbers that define a hull relative to its center as one vector, (d,), link axes; see `Solid`.

    They are its vertices, [m]; the normal of each face and the number of its corners, whose digits to the base
    `MOST_VERTICES` are numbers of vertices; and the radii of balls about the center inside and outside of it, [m].

    Args:
        hull: The hull.
        vertices: Number of vertices n to which it is padded by its center, and to the 2 n - 4 faces that a hull of n
            vertices has at most by repeating a face; this changes no contact. None for no padding.
    """
    points, normals, corners = hull.vertices - hull.center, hull.faces[0], _face_corners(hull)
    inner = (normals * points[corners[:, 0]]).sum(axis=1).min()
    outer = np.sqrt((points**2).sum(axis=1).max())
    facets = np.column_stack([normals, corners @ MOST_VERTICES ** np.arange(4)])
    if vertices is not None:
        facets = facets[np.minimum(np.arange(2 * vertices - 4), len(facets) - 1)]
        points = np.concatenate([points, np.zeros((vertices - len(points), 3))])
    return np.concatenate([points.ravel(), facets.ravel(), [inner, outer]])


_corners_of_faces = WeakKeyDictionary[Hull, Array]()  # of hulls, which do not change


def _face_corners(hull: Hull) -> Array:
    """Return the numbers of four vertices around each face, (f, 4); of a large quadrilateral if it has more corners."""
    if hull not in _corners_of_faces:
        points, normals = hull.vertices - hull.center, hull.faces[0]
        height = normals @ points.T
        on_face = height > (height.max(axis=1) - 1e-7 * np.ptp(height, axis=1))[:, None]
        squared = ((points[:, None] - points) ** 2).sum(axis=2)
        of_pairs = np.where(on_face[:, :, None] & on_face[:, None], squared, -1.0)
        i, j = np.divmod(of_pairs.reshape(len(normals), -1).argmax(axis=1), len(points))
        aside = np.cross(normals, points[j] - points[i])
        beside = ((points - points[i][:, None]) * aside[:, None]).sum(axis=2)
        least, most = (np.where(on_face, beside, limit) for limit in (np.inf, -np.inf))
        _corners_of_faces[hull] = np.column_stack([i, least.argmin(axis=1), j, most.argmax(axis=1)])
    return _corners_of_faces[hull]


def inner_radius(solid: Solid) -> Any:
    """Return the radius of a ball about the center inside of a shape, [m].

    Args:
        solid: The shape.
    """
    if solid.kind in (Sphere, Capsule):
        return solid.size[0]
    if solid.kind is Hull:
        return solid.size[-2]
    return reduce(np.minimum, list(solid.size))


def support(solid: Solid, n: Array) -> Array:
    """Return the point of a shape that lies farthest along a direction, (3,), [m].

    Args:
        solid: The shape. n: The direction, (3,), unit vector, shape axes.
    """
    a = solid.size
    if solid.kind is Sphere:
        return a[0] * n
    if solid.kind is Box:
        return np.array([sign_of(x) * half for x, half in zip(n, a, strict=True)])
    if solid.kind is Capsule:
        return a[0] * n + np.array([0.0, 0.0, 1.0]) * (sign_of(n[2]) * a[1])
    if solid.kind is Ellipsoid:
        scaled = a * n
        return a * scaled / np.sqrt(scaled @ scaled)
    if solid.kind is Cylinder:
        x, y, z = n
        scale = a[0] / np.sqrt(x * x + y * y + _TINY)
        return np.array([x * scale, y * scale, sign_of(z) * a[1]])
    corners = solid.corners()
    best, point = corners[0] @ n, corners[0]
    for corner in corners[1:]:
        reach = corner @ n
        farther = reach > best
        best, point = where(farther, reach, best), where(farther, corner, point)
    return point


def crossing(one: Solid, other: Solid, C: Array, d: Array) -> Crossing:
    """Return where the ray from the difference of the centers through the origin leaves A - B.

    Args:
        one, other: A and B. C: A rotation matrix, (3, 3), from A's axes to B's axes.
        d: B's center to A's center, (3,), [m], B's axes.
    """
    start = d + (inner_radius(one) + inner_radius(other)) * _ASIDE
    distance = np.sqrt(start @ start)
    ray = -start / distance
    reach = distance + _outer(one) + _outer(other)
    E = contact_frame(ray)  # B's axes to ray axes
    lateral = [(1.0, 0.0), (-0.5, np.sqrt(0.75)), (-0.5, -np.sqrt(0.75))]  # counterclockwise about the ray
    first = [reach * np.array([-_STEEP, *direction]) for direction in lateral]
    zero = np.zeros(3)

    def refine(state: Array) -> Array:
        """Return the next [p; a; n; -gap; more], (23,), the state of the loop.

        p are the corners of a triangle on the Minkowski difference A - B, in ray axes from `start`, and a their points
        on A, [m]. n is the unit normal of the previous triangle, and the gap that along n at its support point, [m].
        The loop goes on while `more` is positive.
        """
        p, a = state[:9].reshape(3, 3), state[9:18].reshape(3, 3)
        n = cross(p[1] - p[0], p[2] - p[0])
        n = n / np.sqrt(n @ n + _TINY)
        along = E.T @ n
        of_one = d + C @ support(one, C.T @ along)
        new = E @ (of_one - support(other, -along) - start)
        sides = [_turn(new, point) for point in p]
        is_third = (sides[0] >= 0.0) & (sides[1] <= 0.0)  # which corner the new point replaces
        is_first = (sides[1] >= 0.0) & (sides[2] <= 0.0)
        at_first = where(is_third, 0.0, where(is_first, 1.0, 0.0))
        replaced = [at_first, where(is_third | is_first, 0.0, 1.0), where(is_third, 1.0, 0.0)]
        step = (new - p[0]) @ n
        p_next = [where(k > 0.5, new, point) for k, point in zip(replaced, p, strict=True)]
        a_next = [where(k > 0.5, of_one, point) for k, point in zip(replaced, a, strict=True)]
        more = where(_COARSE * reach + step > _COARSE * reach, step - ACCURACY * reach, 0.0)
        return np.concatenate([*p_next, *a_next, n, np.stack([new @ n - distance * n[0], more])])

    begin = np.concatenate([*first, zero, zero, zero, np.array([1.0, 0.0, 0.0]), np.stack([distance, distance])])
    end = repeat_while(refine, begin, ITERATIONS)
    p, a, n = end[:9].reshape(3, 3), end[9:18].reshape(3, 3), E.T @ end[18:21]
    weights = [_turn(p[(k + 1) % 3], p[(k + 2) % 3]) for k in range(3)]
    total = weights[0] + weights[1] + weights[2]
    at, on_one = (sum((w / total) * x for w, x in zip(weights, points, strict=True)) for points in (p, a))
    return Crossing(-end[21], -n, on_one - 0.5 * (E.T @ at + start))


def _turn(u: Array, w: Array) -> Any:
    """Return (u x w) . ray for vectors in ray axes, whose first axis is the ray."""
    return u[1] * w[2] - u[2] * w[1]


def _outer(solid: Solid) -> Any:
    """Return the radius of a ball about the center that contains a shape, [m]."""
    if solid.kind is Hull:
        return solid.size[-1]
    return reduce(lambda x, y: x + y, list(solid.size))


TILT = 0.05
"""Tangent of the angle by which the normal is tilted in four directions to find the corners of a hull's lowest face."""
_UPRIGHT = 1e-12  # squared sine of the angle between axis and normal below which no point of a rim is the lowest
_COS, _SIN = -0.5, np.sqrt(0.75)
Points = list[tuple[Array, Any]]
"""Points, (3,), [m], each with an addition to its gap, [m]: `FAR` for points that are not used, otherwise 0."""


def support_count(shape: Cylinder | Ellipsoid | Hull) -> int:
    """Return the number of points that `support_points` returns."""
    return 4 if isinstance(shape, Cylinder) else 1 if isinstance(shape, Ellipsoid) else 5


def support_points(solid: Solid, normal: Array) -> Points:
    """Return the lowest points of a cylinder, an ellipsoid or a hull.

    Args:
        solid: The shape. normal: Normal of the ground, (3,), unit vector, shape axes.
    """
    if solid.kind is Cylinder:
        return _cylinder(solid.size[0], solid.size[1], normal)
    if solid.kind is Ellipsoid:
        scaled = solid.size * normal
        return [(-(solid.size * scaled) / np.sqrt(scaled @ scaled), 0.0)]
    return _hull(solid.corners(), normal)


def _cylinder(radius: Any, half: Any, normal: Array) -> Points:
    """Return the lowest point of each rim, and two more of the lower rim, 120 degrees apart."""
    x, y, z = normal
    square = x * x + y * y
    upright = square < _UPRIGHT
    scale = -radius / np.sqrt(where(upright, 1.0, square))
    x, y = where(upright, radius, x * scale), where(upright, 0.0, y * scale)
    end = -sign_of(z) * half
    rim = [(x, y), (_COS * x - _SIN * y, _SIN * x + _COS * y), (_COS * x + _SIN * y, _COS * y - _SIN * x)]
    return [(np.array([*rim[0], -end]), 0.0), *((np.array([*point, end]), 0.0) for point in rim)]


def _hull(vertices: Array, normal: Array) -> Points:
    """Return the lowest vertex, and the lowest vertices along four tilted normals."""
    height, one, other = (vertices @ axis for axis in contact_frame(normal))
    hull: Points = []
    numbers: list[Any] = []
    for p, q in ((0.0, 0.0), (TILT, TILT), (-TILT, TILT), (-TILT, -TILT), (TILT, -TILT)):
        merits = height + p * one + q * other if p else height
        least, number, point = merits[0], 0.0, vertices[0]
        for k in range(1, len(vertices)):
            lower = merits[k] < least
            least, number = where(lower, merits[k], least), where(lower, float(k), number)
            point = where(lower, vertices[k], point)
        extra: Any = 0.0
        for earlier in numbers:
            extra = where(number == earlier, FAR, extra)
        numbers.append(number)
        hull.append((point, extra))
    return hull
