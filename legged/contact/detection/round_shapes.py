"""Contact points of spheres and capsules with each other and with boxes, over any element and without branches.

The surface of a capsule is that of a sphere whose center moves along a segment. Candidates are such spheres: at the
point of the segment that is nearest to the other shape, whose gap is the distance of the two shapes, and at both ends
of the part of the segment that lies beside it, so that parallel shapes rest on two points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.contact.detection.box_box import FAR, largest, sign_of
from legged.spatial import Array

SAME = 1e-3
"""Distance of two candidates relative to half the segment below which the second is not used."""
_COINCIDENT = 1e-12  # [m], centers closer than this define no direction
_SKEW = 1e-12  # least squared sine between segments
_TINY = 1e-12  # least component of a direction that is divided by
_X, _UP = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])

Contact = tuple[Any, Array, Array]
"""Gap, [m], unit normal from the second to the first shape, (3,), and point half way between their surfaces, (3,)."""


def sphere_sphere(radius: float, other: float, d: Array) -> Contact:
    """Return (gap, normal from the second sphere to the first (3,), point half way (3,) from the second center).

    Args:
        radius, other: Radii of the first and second sphere, [m].
        d: Second center to first center, (3,), [m], in any frame, in which the results are too.
    """
    distance, n = direction(d, _UP)
    gap = distance - radius - other
    return gap, n, (other + 0.5 * gap) * n


def sphere_box(radius: float, half: Array, d: Array) -> Contact:
    """Return (gap, normal from the box to the sphere (3,), point half way (3,)), in box axes from the box center.

    For a center inside the box the normal is that of the nearest face.

    Args:
        radius: Of the sphere, [m]. half: Half edges of the box, (3,), [m], box axes.
        d: Box center to sphere center, (3,), [m], box axes.
    """
    depth = np.array([np.abs(x) - h for x, h in zip(d, half, strict=True)])
    nearest = np.maximum(np.maximum(depth[0], depth[1]), depth[2])
    first = depth[0] >= nearest
    x, y = where(first, 1.0, 0.0), where(first, 0.0, where(depth[1] >= nearest, 1.0, 0.0))
    face = [x, y, 1.0 - x - y]
    face_normal = np.array([sign_of(x) * selected for x, selected in zip(d, face, strict=True)])
    near = np.array([np.minimum(np.maximum(x, -h), h) for x, h in zip(d, half, strict=True)])
    outside, n = direction(d - near, face_normal)
    gap = where(nearest < 0.0, nearest, outside) - radius
    return gap, n, d - (radius + 0.5 * gap) * n


def direction(d: Array, otherwise: Array) -> tuple[Any, Array]:
    """Return (length, unit vector) of a vector; the unit vector is `otherwise` for a zero length.

    Args:
        d: The vector, (3,), [m], any axes. otherwise: A unit vector, (3,), same axes.
    """
    square = d @ d
    short = square < _COINCIDENT**2
    length = np.sqrt(where(short, 1.0, square))
    return where(short, 0.0, length), where(short, otherwise, d / length)


def sphere_capsule(radius: float, other: float, half: float, d: Array) -> Contact:
    """Return the contact of a sphere and a capsule, in capsule axes from the capsule's center.

    For a center of the sphere on the capsule's axis, the normal is the capsule's x axis.

    Args:
        radius: Of the sphere, [m]. other, half: Radius and half length of the capsule, [m].
        d: Capsule center to sphere center, (3,), [m], capsule axes.
    """
    nearest = np.array([0.0, 0.0, _clip(d[2], -half, half)])
    return _spheres(radius, other, d, nearest, _X)


def capsule_capsule(
    radius: float, half: float, a: Array, other: float, half_b: float, b: Array, d: Array
) -> list[Contact]:
    """Return three contacts of two capsules, from the center of the second.

    Args:
        radius, half: Radius and half length of the first capsule, [m]. other, half_b: The same of the second.
        a, b: Directions of the axes of the first and the second, (3,), unit vectors, world axes.
        d: Center of the second to center of the first, (3,), [m], world axes.
    """
    # Points d + s a and t b; the nearest are at s, t: Ericson, Real-Time Collision Detection, 2005, section 5.1.9.
    cosine, along_a, along_b = a @ b, a @ d, b @ d
    s = _clip((cosine * along_b - along_a) / np.maximum(1.0 - cosine * cosine, _SKEW), -half, half)
    t = _clip(cosine * s + along_b, -half_b, half_b)
    s = _clip(cosine * t - along_a, -half, half)
    reach = half_b * np.abs(cosine)
    low, high = np.maximum(-half, -along_a - reach), np.minimum(half, reach - along_a)
    otherwise = _normal_to(a)

    def contact(s: Any, t: Any) -> Contact:
        return _spheres(radius, other, d + s * a, t * b, otherwise)

    ends = [contact(end, _clip(cosine * end + along_b, -half_b, half_b)) for end in (low, high)]
    return [contact(s, t), *_beside(ends, (low, high), s, half)]


def capsule_box(radius: float, half: float, a: Array, box: Array, d: Array) -> list[Contact]:
    """Return three contacts of a capsule and a box, in box axes from the box center.

    The gap of the first is the distance of the shapes if the segment of the capsule does not enter the box. Inside of
    the box the nearest face counts, as for a sphere.

    Args:
        radius, half: Radius and half length of the capsule, [m]. a: Direction of its axis, (3,), unit vector, box axes.
        box: Half edges of the box, (3,), [m], box axes.
        d: Box center to capsule center, (3,), [m], box axes.
    """
    t = _nearest_to_box(half, a, box, d)
    beyond = [np.abs(x) - h for x, h in zip(d + t * a, box, strict=True)]
    (first, second), _ = largest(np.array(beyond))
    spans = [_inside(x, u, h) for x, u, h in zip(d, a, box, strict=True)]
    (start_x, end_x), (start_y, end_y), (start_z, end_z) = spans
    starts = where(first, start_y, start_x), where(first, start_z, where(second, start_z, start_y))
    stops = where(first, end_y, end_x), where(first, end_z, where(second, end_z, end_y))
    low, high = np.maximum(np.maximum(*starts), -half), np.minimum(np.minimum(*stops), half)
    ends = [sphere_box(radius, box, d + end * a) for end in (low, high)]
    return [sphere_box(radius, box, d + t * a), *_beside(ends, (low, high), t, half)]


def _nearest_to_box(half: float, a: Array, box: Array, d: Array) -> Any:
    """Return t, [m], for which d + t a, -half <= t <= half, is nearest to a box; the middle of all such t.

    Half the derivative of the squared distance, a . (p - nearest point of the box), is piecewise linear in t and does
    not decrease. It bends where the line crosses the planes of the faces, and is linear between the two bends around
    its zero.
    """

    def rate(t: Any) -> Any:
        p = d + t * a
        return sum(u * (x - _clip(x, -h, h)) for u, x, h in zip(a, p, box, strict=True))

    low, high = -half, half
    at_start, at_end = rate(low), rate(high)
    rate_low, rate_high = at_start, at_end
    for x, u, h in zip(d, a, box, strict=True):
        for bend in _crossings(x, u, h):
            t = _clip(bend, -half, half)
            g = rate(t)
            raises, lowers = (g <= 0.0) & (t > low), (g >= 0.0) & (t < high)
            low, rate_low = where(raises, t, low), where(raises, g, rate_low)
            high, rate_high = where(lowers, t, high), where(lowers, g, rate_high)
    rise = rate_high - rate_low
    is_flat = rise <= 0.0
    between = where(is_flat, 0.5 * (low + high), low - rate_low * (high - low) / where(is_flat, 1.0, rise))
    return where(at_start > 0.0, -half, where(at_end < 0.0, half, between))


def _crossings(x: Any, u: Any, h: Any) -> tuple[Any, Any]:
    """Return t for which x + t u is -h and h."""
    rate = 1.0 / where(np.abs(u) < _TINY, _TINY, u)
    return (-h - x) * rate, (h - x) * rate


def _inside(x: Any, u: Any, h: Any) -> tuple[Any, Any]:
    """Return the smallest and the largest t for which x + t u lies between -h and h."""
    one, other = _crossings(x, u, h)
    return np.minimum(one, other), np.maximum(one, other)


def _beside(ends: list[Contact], places: tuple[Any, Any], nearest: Any, half: float) -> list[Contact]:
    """Return the contacts at both ends of an interval of the segment, far apart if the interval is empty or if they
    coincide with the nearest point or with each other."""
    low, high = places
    contacts = []
    for (gap, n, point), place in zip(ends, places, strict=True):
        unused = (high - low < SAME * half) | (np.abs(place - nearest) < SAME * half)
        contacts.append((where(unused, gap + FAR, gap), n, point))
    return contacts


def _spheres(radius: float, other: float, center: Array, center_b: Array, otherwise: Array) -> Contact:
    """Return the contact of two spheres; the normal is `otherwise` if the centers coincide."""
    distance, n = direction(center - center_b, otherwise)
    gap = distance - radius - other
    return gap, n, center_b + (other + 0.5 * gap) * n


def _normal_to(a: Array) -> Array:
    """Return a unit vector normal to a unit vector, (3,)."""
    x, y, z = a
    steep = np.abs(z) > 0.5
    n = np.array([where(steep, z, -y), where(steep, 0.0, x), where(steep, -x, 0.0)])
    return n / np.sqrt(n @ n)


def _clip(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)
