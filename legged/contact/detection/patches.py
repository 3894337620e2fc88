"""Contact points where the faces of two convex shapes overlap, over any element and without branches.

Each shape contributes the face whose normal is closest to the contact normal: a face of a box or a hull, an end disc or
a line on the mantle of a cylinder, a line of a capsule. The contact points are corners of the overlap of both faces in
the plane of contact, each with its own gap, and the point of deepest penetration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.contact.detection.box_box import FAR, Corner, bring_to_front, extreme_corners, largest, sign_of
from legged.contact.detection.convex import Solid, crossing
from legged.contact.detection.frames import contact_frame
from legged.robot.shapes import Box, Capsule, Cylinder, Ellipsoid, Sphere
from legged.spatial import Array

_FACE_CORNERS = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))
_TINY = 1e-12
_EDGE = 1e-7  # distance relative to the face by which a corner may lie outside of the other face
_SAME = 1e-3  # distance relative to the face below which two corners are one
_STEEPEST = 0.1  # least cosine between the normals of a face and of the contact
_PARALLEL = 1e-8  # squared sine of the angle between two edges below which they do not cross

ContactPoint = tuple[Any, Array]
"""Gap, [m], and point half way between the surfaces, (3,), [m]."""


class _Face(NamedTuple):
    """Corners (k, 3), [m], two for a line, and outward normal (3,) of a face."""

    corners: list[Array]
    normal: Array


def convex_contacts(one: Solid, other: Solid, C: Array, d: Array, count: int) -> tuple[Array, list[ContactPoint]]:
    """Return the normal from B to A, (3,), unit vector, and the contact points of two convex shapes, in B's axes.

    Args:
        one, other: A and B. C: A rotation matrix, (3, 3), from A's axes to B's axes.
        d: B's center to A's center, (3,), [m], B's axes.
        count: Number of contact points: 1, 2 or 4.
    """
    crossed = crossing(one, other, C, d)
    n = crossed.normal
    if count == 1:
        return n, [(crossed.gap, crossed.point)]
    frame = contact_frame(n)
    upper, lower = _face(one, -(C.T @ n)), _face(other, n)
    upper = _Face([frame @ (d + C @ corner) for corner in upper.corners], frame @ (C @ upper.normal))
    lower = _Face([frame @ corner for corner in lower.corners], frame @ lower.normal)
    scale = np.minimum(_diameter(upper), _diameter(lower)) + _TINY
    deepest = frame @ crossed.point
    corners = [
        Corner(True, deepest[1], deepest[2], crossed.gap),
        *_covered(upper, lower, scale, 1.0),
        *_covered(lower, upper, scale, -1.0),
        *_crossings(upper, lower),
    ]
    contacts: list[ContactPoint] = []
    used: list[Corner] = []
    for corner in extreme_corners(corners, 1.0 / scale, crossed.gap)[:count]:
        gap = corner.height
        for earlier in used:
            apart = (corner.y - earlier.y) ** 2 + (corner.z - earlier.z) ** 2
            gap = where(apart < (_SAME * scale) ** 2, corner.height + FAR, gap)
        used.append(corner)
        contacts.append((gap, frame.T @ np.array([deepest[0], corner.y, corner.z])))
    return n, contacts


def contact_count(one: type[Any], other: type[Any]) -> int:
    """Return the number of contact points of two classes of shapes for `convex_contacts`."""
    if not {Sphere, Ellipsoid}.isdisjoint((one, other)):
        return 1
    return 2 if Capsule in (one, other) else 4


def _face(solid: Solid, n: Array) -> _Face:
    """Return the face of a shape whose normal is closest to a direction n, (3,), unit vector, shape axes."""
    a = solid.size
    if solid.kind is Box:
        front, _ = largest(np.abs(n))
        (h, p, q), axes = bring_to_front(front, a), bring_to_front(front, np.eye(3))
        normal = sign_of(bring_to_front(front, n)[0]) * axes[0]
        return _Face([h * normal + s * p * axes[1] + t * q * axes[2] for s, t in _FACE_CORNERS], normal)
    x, y, z = n
    if solid.kind is Capsule:
        up = np.array([0.0, 0.0, a[1]])
        return _Face([a[0] * n + up, a[0] * n - up], n)
    if solid.kind is Cylinder:
        square = x * x + y * y
        upright = square < _TINY
        scale = a[0] / np.sqrt(where(upright, 1.0, square))
        x, y = where(upright, a[0], x * scale), where(upright, 0.0, y * scale)
        flat = z * z > 0.5
        end = sign_of(z) * a[1]
        disc = [np.array([*p, end]) for p in ((x, y), (-y, x), (-x, -y), (y, -x))]
        line = [np.array([x, y, s * a[1]]) for s in (1.0, 1.0, -1.0, -1.0)]
        side = np.array([x / a[0], y / a[0], 0.0])
        normal = where(flat, np.array([0.0, 0.0, 1.0]) * sign_of(z), side)
        return _Face([where(flat, p, q) for p, q in zip(disc, line, strict=True)], normal)
    normal, corners = solid.face(n)
    return _Face(corners, normal)


def _diameter(face: _Face) -> Any:
    across = face.corners[len(face.corners) // 2] - face.corners[0]
    return np.sqrt(across @ across)


def _edges(face: _Face) -> list[tuple[Array, Array]]:
    corners = face.corners
    return (
        [(corners[0], corners[1])] if len(corners) == 2 else list(zip(corners, corners[1:] + corners[:1], strict=True))
    )


def _cross(u: Array, w: Array) -> Any:
    """Return u_y w_z - u_z w_y for vectors (height, y, z)."""
    return u[1] * w[2] - u[2] * w[1]


def _covered(own: _Face, cover: _Face, scale: Any, sign: float) -> list[Corner]:
    """Return the corners of a face that lie over the other face, with their heights times a sign over its plane."""
    if len(cover.corners) == 2:
        return []
    p, m, points = cover.corners, cover.normal, []
    area = _cross(p[2] - p[0], p[3] - p[1])
    turn, wide = sign_of(area), np.abs(area) > _TINY
    slope = where(m[0] < 0.0, -1.0, 1.0) * np.maximum(np.abs(m[0]), _STEEPEST)
    for corner in own.corners:
        inside = wide
        for start, end in _edges(cover):
            inside = inside & (turn * _cross(end - start, corner - start) >= -_EDGE * scale * scale)
        away = corner - p[0]
        height = away[0] + (m[1] * away[1] + m[2] * away[2]) / slope
        points.append(Corner(inside, corner[1], corner[2], sign * height))
    return points


def _crossings(upper: _Face, lower: _Face) -> list[Corner]:
    """Return the points where edges of both faces cross, with the height of the upper edge over the lower one."""
    points = []
    for p, p_end in _edges(upper):
        for q, q_end in _edges(lower):
            u, w, between = p_end - p, q_end - q, q - p
            area = _cross(u, w)
            skewed = area * area > _PARALLEL * (u[1] * u[1] + u[2] * u[2]) * (w[1] * w[1] + w[2] * w[2]) + _TINY**2
            rate = 1.0 / where(skewed, area, 1.0)
            s, t = _cross(between, w) * rate, _cross(between, u) * rate
            exists = skewed & (np.minimum(s, t) >= 0.0) & (np.maximum(s, t) <= 1.0)
            at = p + s * u
            points.append(Corner(exists, at[1], at[2], at[0] - q[0] - t * w[0]))
    return points
