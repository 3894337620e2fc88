"""Contact points of two boxes by the separating axis theorem, over any element and without branches.

Of the 15 candidate axes, six face normals and nine cross products of edges, the one with the largest separation gives
the contact normal. For a face normal, the contact points are corners of the overlap of both faces, with their own
gaps. For a pair of edges, one point is in contact and three are far apart; for parallel edges, two points and two.
Without overlap, the gaps are the separation, which does not exceed the distance of the boxes.

In this file, a and b are the half edges of the boxes A and B, C (3, 3) has B's axes as columns, and d is B's center, in
A's axes and from A's center.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array, sum_of

FAR = 1.0
"""Additional gap of unused points, [m]."""
PARALLEL = 1e-3
"""Squared sine below which edges count as parallel; a face then separates as well."""
FACE_PREFERENCE = 0.02
"""Separation by which an edge pair must exceed a face, relative to the shortest half edge."""
_INCLINED = 3.9  # square of the sum of two unit normals that differ by 18 degrees
_COS, _SIN = np.cos(0.3), np.sin(0.3)  # direction of the first corner, which is no axis of symmetry
_ABSENT = -1e9  # [m], merit of a corner that does not exist
_DEPTH_WEIGHT = 10.0  # weight of depth against distance, so that the deepest corner is selected
_TINY = 1e-12  # [m], edges shorter than this cross no line
_ON_EDGE = 1e-9  # relative distance up to which corners on an edge of the other face count as inside


class BoxContact(NamedTuple):
    """The contact points of two boxes, in A's axes from A's center.

    Attributes:
        separation: Separation along the normal, [m].
        n: Unit normal from A to B, (3,).
        gaps, points: Of each contact point, [m] and (3,), [m], half way between the surfaces.
    """

    separation: Any
    n: Array
    gaps: list[Any]
    points: list[Array]


def box_box(a: Array, b: Array, C: Array, d: Array) -> BoxContact:
    """Return four contact points of two boxes.

    Args:
        a, b: Half edges of A and B, (3,), [m], along the axes of each box.
        C: Rotation from B's axes to A's axes, (3, 3). d: A's center to B's center, (3,), [m], A's axes.
    """
    face, edge = _faces(a, b, C, d), _edges(a, b, C, d)
    tolerance = FACE_PREFERENCE * _shortest(a, b)
    crossed = edge.separation > face.separation + tolerance
    gaps = [where(crossed, edge.separation + (FAR if k else 0.0), gap) for k, gap in enumerate(face.gaps)]
    points = [where(crossed, edge.points[0], point) for point in face.points]
    contact = BoxContact(where(crossed, edge.separation, face.separation), where(crossed, edge.n, face.n), gaps, points)
    is_parallel, along = _parallel_edges(a, b, C, d)
    meets = is_parallel & (along.separation > contact.separation - tolerance)
    gaps = [where(meets, own, gap) for own, gap in zip(along.gaps, gaps, strict=True)]
    points = [where(meets, own, point) for own, point in zip(along.points, points, strict=True)]
    separation = where(meets, along.separation, contact.separation)
    return BoxContact(separation, where(meets, along.n, contact.n), gaps, points)


def _parallel_edges(a: Array, b: Array, C: Array, d: Array) -> tuple[Any, BoxContact]:
    """Return whether two parallel edges face each other, and their contact: both ends of the part that they share.

    Such edges have no common normal: each direction between the normals of the faces at both edges separates the boxes
    alike. The normal is the mean of the two best face normals, which for cards that lean on each other is horizontal.
    """
    e, size = C.T @ d, np.abs(C)
    (first, second), _ = largest(np.abs(d) - a - size @ b)
    (first_b, second_b), _ = largest(np.abs(e) - b - size.T @ a)
    choice = _selector(first, second)
    total = np.array([sign_of(x) * own for x, own in zip(d, choice, strict=True)])
    choice = _selector(first_b, second_b)
    total = total + C @ np.array([sign_of(x) * own for x, own in zip(e, choice, strict=True)])
    square = total @ total
    n = total / np.sqrt(where(square > 1.0, square, 1.0))
    m = C.T @ n
    (u, on_a), (w, on_b) = _facing_edge(a, n), _facing_edge(b, m)
    apart = d - C @ on_b - on_a
    axis, shift = apart @ n, apart @ u
    half, half_b = u @ a, w @ b
    low, high = np.maximum(-half, shift - half_b), np.minimum(half, shift + half_b)
    cosine = u @ C @ w
    is_parallel = (cosine * cosine > 1.0 - PARALLEL) & (square > 1.0) & (square < _INCLINED) & (low < high)
    points = [on_a + 0.5 * axis * n + s * u for s in (low, high)]
    return is_parallel, BoxContact(axis, n, [axis, axis, axis + FAR, axis + FAR], points + points)


def _selector(first: Any, second: Any) -> list[Any]:
    """Return a one at the largest of three numbers, and zeros, from the conditions of `largest`."""
    x = where(first, 1.0, 0.0)
    y = where(first, 0.0, where(second, 1.0, 0.0))
    return [x, y, 1.0 - x - y]


def _facing_edge(half: Array, n: Array) -> tuple[Array, Array]:
    """Return the direction of the edge that lies farthest along n, and its middle, (3,) each, box axes."""
    (first, second), _ = largest(-np.abs(n))
    u = np.array(_selector(first, second))
    return u, np.array([(1.0 - u[k]) * sign_of(n[k]) * half[k] for k in range(3)])


def _faces(a: Array, b: Array, C: Array, d: Array) -> BoxContact:
    """Return the contact points for the best face normal: corners of its overlap with the opposite face."""
    e, size = C.T @ d, np.abs(C)
    of_a, of_b = np.abs(d) - a - size @ b, np.abs(e) - b - size.T @ a
    by_b = largest(of_b)[1] > largest(of_a)[1] + FACE_PREFERENCE * _shortest(a, b)
    r, own, D = where(by_b, b, a), where(by_b, a, b), where(by_b, C.T, C)
    x, separations = where(by_b, -e, d), where(by_b, of_b, of_a)
    first, best = largest(separations)
    r, x, D = bring_to_front(first, r), bring_to_front(first, x), bring_to_front(first, D)
    facing, _ = largest(np.abs(D[0]))
    own, D = bring_to_front(facing, own), bring_to_front(facing, D.T).T
    s = sign_of(x[0])
    f = x - (s * sign_of(D[0, 0]) * own[0]) * D[:, 0]
    up = np.array([s, 1.0, 1.0])  # heights increase from the face towards the other box
    raised = [up * vector for vector in (f, own[1] * D[:, 1], own[2] * D[:, 2])]
    corners = overlap_corners(r[1:], raised[0] - np.array([1.0, 0.0, 0.0]) * r[0], raised[1], raised[2], best)
    points = [_undo(first, np.array([s * (r[0] + 0.5 * c.height), c.y, c.z])) for c in corners]
    normal = _undo(first, np.array([s, 0.0, 0.0]))
    return BoxContact(
        best,
        where(by_b, -(C @ normal), normal),
        [c.height for c in corners],
        [where(by_b, d + C @ point, point) for point in points],
    )


def _edges(a: Array, b: Array, C: Array, d: Array) -> BoxContact:
    """Return the contact point for the best pair of edges, e_i of A and C_j of B, half way between them."""
    best: Any = -np.inf
    n, u, w = np.array([0.0, 0.0, 1.0]), np.eye(3)[0], np.eye(3)[0]
    for i in range(3):
        for j in range(3):
            separation, normal = _edge_axis(a, b, C, d, i, j)
            better = separation > best
            best = where(better, separation, best)
            n, u, w = where(better, normal, n), where(better, np.eye(3)[i], u), where(better, np.eye(3)[j], w)
    m, v = C.T @ n, C @ w
    on_a = np.array([(1.0 - u[k]) * sign_of(n[k]) * a[k] for k in range(3)])
    on_b = d - C @ np.array([(1.0 - w[k]) * sign_of(m[k]) * b[k] for k in range(3)])
    apart, c = on_b - on_a, u @ v
    s = (apart @ u - c * (apart @ v)) / np.maximum(1.0 - c * c, PARALLEL)
    half = u @ a
    point = on_a + np.minimum(np.maximum(s, -half), half) * u + 0.5 * best * n
    return BoxContact(best, n, [best], [point])


def _edge_axis(a: Array, b: Array, C: Array, d: Array, i: int, j: int) -> tuple[Any, Array]:
    """Return (separation, unit vector from A to B) along e_i x C_j; a separation of -1e9 if they are parallel."""
    i1, i2, j1, j2 = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
    square = C[i1, j] * C[i1, j] + C[i2, j] * C[i2, j]
    skewed = square > PARALLEL
    scale = 1.0 / np.sqrt(where(skewed, square, 1.0))
    along = d[i2] * C[i1, j] - d[i1] * C[i2, j]
    size = sum_of([a[i1] * np.abs(C[i2, j]), a[i2] * np.abs(C[i1, j])])
    size = size + sum_of([b[j1] * np.abs(C[i, j2]), b[j2] * np.abs(C[i, j1])])
    n: list[Any] = [0.0, 0.0, 0.0]
    scale_n = sign_of(along) * scale
    n[i1], n[i2] = -C[i2, j] * scale_n, C[i1, j] * scale_n
    return where(skewed, (np.abs(along) - size) * scale, -1e9), np.array(n)


def _shortest(a: Array, b: Array) -> Any:
    return reduce(np.minimum, [*a, *b])


def sign_of(z: Any) -> Any:
    """Return 1.0 for z >= 0 and -1.0 for z < 0."""
    return where(z < 0.0, -1.0, 1.0)


def largest(x: Array) -> tuple[tuple[Any, Any], Any]:
    """Return ((x[0] is the largest, x[1] is the largest of the others), the largest entry).

    Args:
        x: Three numbers, (3,), any unit.
    """
    first = (x[0] >= x[1]) & (x[0] >= x[2])
    return (first, x[1] >= x[2]), np.maximum(np.maximum(x[0], x[1]), x[2])


def bring_to_front(selected: tuple[Any, Any], x: Array) -> Array:
    """Return x with its three rows cyclically permuted such that the selected row comes first.

    Args:
        selected: Conditions of `largest`. x: (3,) or (3, n), any unit.
    """
    return where(selected[0], x, where(selected[1], np.roll(x, -1, axis=0), np.roll(x, -2, axis=0)))


def _undo(selected: tuple[Any, Any], x: Array) -> Array:
    """Return the inverse of `bring_to_front`."""
    return where(selected[0], x, where(selected[1], np.roll(x, 1, axis=0), np.roll(x, 2, axis=0)))


class Corner(NamedTuple):
    """A corner of the overlap: whether it exists, its position in the plane of the face, and its height, [m]."""

    exists: Any
    y: Any
    z: Any
    height: Any


def overlap_corners(r: Array, f: Array, e_1: Array, e_2: Array, empty: Any) -> list[Corner]:
    """Return four corners of the overlap of a parallelogram with a rectangle.

    They are a corner that is extreme in some direction, the corner farthest from it, and those farthest to both sides
    of the line between them; for parallel faces they differ. Depth has a higher weight than distance: for faces
    inclined by more than a few degrees, some of the corners coincide.

    Vectors are (height over the rectangle's plane, y, z) from the rectangle's center. Without overlap, the corners are
    its center, at the height `empty`.

    Args:
        r: Half edges of the rectangle, (2,), [m], along its axes.
        f: Center of the parallelogram, (3,), [m], rectangle's frame.
        e_1, e_2: Half its edges, (3,), [m], rectangle's frame, not perpendicular to the rectangle.
        empty: Height to report without overlap, [m].
    """
    corners = [*_clipped_edges(r, f, e_1, e_2), *_clipped_edges(r, f, e_2, e_1), *_covered_corners(r, f, e_1, e_2)]
    return extreme_corners(corners, 1.0 / (r[0] + r[1]), empty)


def extreme_corners(corners: list[Corner], per_size: Any, empty: Any) -> list[Corner]:
    """Return four of the given corners; see `overlap_corners`.

    Args:
        corners: The corners. per_size: 1 over the size of the faces, [1/m]. empty: Height without corners, [m].
    """
    one = _extreme_corner(corners, [_COS * c.y + _SIN * c.z for c in corners], empty)
    off = [(c.y - one.y, c.z - one.z) for c in corners]
    two = _extreme_corner(corners, [per_size * (y * y + z * z) for y, z in off], empty)
    dy, dz = per_size * (two.y - one.y), per_size * (two.z - one.z)
    beside = [dy * z - dz * y for y, z in off]
    return [
        one,
        two,
        _extreme_corner(corners, beside, empty),
        _extreme_corner(corners, [-x for x in beside], empty),
    ]


def _extreme_corner(corners: list[Corner], merits: list[Any], empty: Any) -> Corner:
    """Return the corner with the largest merit [m] less weighted height; the rectangle's center if there is none."""
    best, reach = Corner(False, 0.0, 0.0, empty), _ABSENT
    for corner, merit in zip(corners, merits, strict=True):
        own = where(corner.exists, merit - _DEPTH_WEIGHT * corner.height, _ABSENT)
        farther = own > reach
        best = Corner(False, *(where(farther, x, y) for x, y in zip(corner[1:], best[1:], strict=True)))
        reach = where(farther, own, reach)
    return best


def _clipped_edges(r: Array, f: Array, along: Array, across: Array) -> list[Corner]:
    """Return the ends of the two edges f +- across + t along, -1 <= t <= 1, inside the rectangle."""
    rates = [1.0 / where(np.abs(x) < _TINY, _TINY, x) for x in along[1:]]
    points = []
    for middle in (f - across, f + across):
        low, high = -1.0, 1.0
        for half, rate, x in zip((1.0 + _ON_EDGE) * r, rates, middle[1:], strict=True):
            one, other = (-half - x) * rate, (half - x) * rate
            low, high = np.maximum(low, np.minimum(one, other)), np.minimum(high, np.maximum(one, other))
        for t in (low, high):
            height, y, z = middle + t * along
            points.append(Corner(low <= high, y, z, height))
    return points


def _covered_corners(r: Array, f: Array, e_1: Array, e_2: Array) -> list[Corner]:
    """Return the corners of the rectangle that lie inside the parallelogram."""
    inverse = 1.0 / (e_1[1] * e_2[2] - e_1[2] * e_2[1])
    corners = []
    for y, z in ((r[0], r[1]), (r[0], -r[1]), (-r[0], r[1]), (-r[0], -r[1])):
        alpha = ((y - f[1]) * e_2[2] - (z - f[2]) * e_2[1]) * inverse
        beta = ((z - f[2]) * e_1[1] - (y - f[1]) * e_1[2]) * inverse
        corners.append(
            Corner(
                np.maximum(np.abs(alpha), np.abs(beta)) <= 1.0 + _ON_EDGE, y, z, f[0] + alpha * e_1[0] + beta * e_2[0]
            )
        )
    return corners
