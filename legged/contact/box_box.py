"""Where two boxes touch: the axis that separates them best, and four points, over any element and without branches.

Of the 15 axes that can separate two boxes, six face normals and nine cross products of edges, the one with the largest
separation gives the normal. If it is a face's, the points are corners of the overlap of both faces, with their own
gaps; if it is an edge pair's, one point touches and three lie far off. Where nothing overlaps, gaps are the separation,
which is no more than the distance of the boxes.

In kernels, a and b are half edges of the boxes A and B; C (3, 3) has B's axes as columns and d is B's center, in A's
axes and from A's center.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.contact.frames import sign_of
from legged.contact.overlap import corners_of_overlap
from legged.spatial import Array, sum_of

FAR = 1.0  # [m], gap of points that are not in use, beyond that of the one that is
PARALLEL = 1e-3  # square of the sine below which edges count as parallel: some face separates as well
FACES_FIRST = 0.02  # of the shortest half edge: by how much an edge pair must separate better than a face


class Spots(NamedTuple):
    """Where two boxes touch, in A's axes from A's center.

    Attributes:
        axis: Separation along the normal, [m].
        n: Unit normal from A to B, (3,).
        gaps, points: Of each spot, [m] and (3,), [m], half way between the surfaces.
    """

    axis: Any
    n: Array
    gaps: list[Any]
    points: list[Array]


def box_box(a: Array, b: Array, C: Array, d: Array) -> Spots:
    """Return four spots where two boxes touch; see the module.

    Args:
        a, b: Half edges, (3,), [m]. C: (3, 3). d: (3,), [m].
    """
    face, edge = _faces(a, b, C, d), _edges(a, b, C, d)
    crossed = edge.axis > face.axis + FACES_FIRST * _shortest(a, b)
    gaps = [where(crossed, edge.axis + (FAR if k else 0.0), gap) for k, gap in enumerate(face.gaps)]
    points = [where(crossed, edge.points[0], point) for point in face.points]
    return Spots(where(crossed, edge.axis, face.axis), where(crossed, edge.n, face.n), gaps, points)


def _faces(a: Array, b: Array, C: Array, d: Array) -> Spots:
    """Return the spots for the best face normal: corners of the overlap of the face and the one turned to it."""
    e, size = C.T @ d, np.abs(C)
    of_a, of_b = np.abs(d) - a - size @ b, np.abs(e) - b - size.T @ a
    by_b = largest(of_b)[1] > largest(of_a)[1] + FACES_FIRST * _shortest(a, b)
    r, own, D = where(by_b, b, a), where(by_b, a, b), where(by_b, C.T, C)
    x, separations = where(by_b, -e, d), where(by_b, of_b, of_a)
    first, best = largest(separations)
    r, x, D = turned(first, r), turned(first, x), turned(first, D)
    facing, _ = largest(np.abs(D[0]))
    own, D = turned(facing, own), turned(facing, D.T).T
    s = sign_of(x[0])
    f = x - (s * sign_of(D[0, 0]) * own[0]) * D[:, 0]
    up = np.array([s, 1.0, 1.0])  # heights grow from the face towards the other box
    raised = [up * vector for vector in (f, own[1] * D[:, 1], own[2] * D[:, 2])]
    corners = corners_of_overlap(r[1:], raised[0] - np.array([1.0, 0.0, 0.0]) * r[0], raised[1], raised[2], best)
    points = [_back(first, np.array([s * (r[0] + 0.5 * c.height), c.y, c.z])) for c in corners]
    normal = _back(first, np.array([s, 0.0, 0.0]))
    return Spots(
        best,
        where(by_b, -(C @ normal), normal),
        [c.height for c in corners],
        [where(by_b, d + C @ point, point) for point in points],
    )


def _edges(a: Array, b: Array, C: Array, d: Array) -> Spots:
    """Return the spot for the best pair of edges, e_i of A and C_j of B: half way between them."""
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
    return Spots(best, n, [best], [point])


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


def largest(x: Array) -> tuple[tuple[Any, Any], Any]:
    """Return ((whether the first of three is the largest, whether the second is and not the first), the largest)."""
    first = (x[0] >= x[1]) & (x[0] >= x[2])
    return (first, x[1] >= x[2]), np.maximum(np.maximum(x[0], x[1]), x[2])


def turned(first: tuple[Any, Any], x: Array) -> Array:
    """Return x with its rows in a turn that brings the chosen one to the front."""
    return where(first[0], x, where(first[1], np.roll(x, -1, axis=0), np.roll(x, -2, axis=0)))


def _back(first: tuple[Any, Any], x: Array) -> Array:
    return where(first[0], x, where(first[1], np.roll(x, 1, axis=0), np.roll(x, 2, axis=0)))
