"""Corners of the overlap of two faces, four of them, over any element and without branches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array

_COS, _SIN = np.cos(0.3), np.sin(0.3)  # of the first direction, which is on no usual symmetry
_NONE = -1e9  # [m], how far a corner that is not there reaches
_DEEP = 10.0  # by how much being deep counts more than being far out, so that the deepest corner is not missed
_TINY = 1e-12  # [m], edges shorter than this cross no line


class Corner(NamedTuple):
    """A corner of the overlap: whether it is there, its place in the face's plane, and its height over it, [m]."""

    real: Any
    y: Any
    z: Any
    height: Any


def corners_of_overlap(r: Array, f: Array, e_1: Array, e_2: Array, empty: Any) -> list[Corner]:
    """Return four corners of a parallelogram's overlap with a rectangle.

    One far out in some direction, the one farthest from it, and those farthest to the sides of the line between them;
    with parallel faces they differ. Depth counts more: of faces tilted by more than a few degrees some are the same.

    Vectors are (height over the rectangle's plane, y, z) from the rectangle's center. Where nothing overlaps, the
    corners are its center, at the height `empty`.

    Args:
        r: Half edges of the rectangle, (2,), [m].
        f: Center of the parallelogram, (3,). e_1, e_2: Half its edges, (3,), not upright.
        empty: Height to tell where nothing overlaps, [m].
    """
    corners = [*_clipped(r, f, e_1, e_2), *_clipped(r, f, e_2, e_1), *_covered(r, f, e_1, e_2)]
    per_size = 1.0 / (r[0] + r[1])
    one = _best(corners, [_COS * c.y + _SIN * c.z for c in corners], empty)
    off = [(c.y - one.y, c.z - one.z) for c in corners]
    two = _best(corners, [per_size * (y * y + z * z) for y, z in off], empty)
    dy, dz = per_size * (two.y - one.y), per_size * (two.z - one.z)
    beside = [dy * z - dz * y for y, z in off]
    return [one, two, _best(corners, beside, empty), _best(corners, [-x for x in beside], empty)]


def _best(corners: list[Corner], merits: list[Any], empty: Any) -> Corner:
    """Return the corner of the largest merit, [m], less its height; the rectangle's center if none is there."""
    best, reach = Corner(False, 0.0, 0.0, empty), _NONE
    for corner, merit in zip(corners, merits, strict=True):
        own = where(corner.real, merit - _DEEP * corner.height, _NONE)
        farther = own > reach
        best = Corner(False, *(where(farther, x, y) for x, y in zip(corner[1:], best[1:], strict=True)))
        reach = where(farther, own, reach)
    return best


def _clipped(r: Array, f: Array, along: Array, across: Array) -> list[Corner]:
    """Return the ends of the two edges f +- across + t along, -1 <= t <= 1, inside the rectangle."""
    rates = [1.0 / where(np.abs(x) < _TINY, _TINY, x) for x in along[1:]]
    found = []
    for middle in (f - across, f + across):
        low, high = -1.0, 1.0
        for half, rate, x in zip(r, rates, middle[1:], strict=True):
            one, other = (-half - x) * rate, (half - x) * rate
            low, high = np.maximum(low, np.minimum(one, other)), np.minimum(high, np.maximum(one, other))
        for t in (low, high):
            height, y, z = middle + t * along
            found.append(Corner(low <= high, y, z, height))
    return found


def _covered(r: Array, f: Array, e_1: Array, e_2: Array) -> list[Corner]:
    """Return the rectangle's corners that the parallelogram covers."""
    inverse = 1.0 / (e_1[1] * e_2[2] - e_1[2] * e_2[1])
    found = []
    for y, z in ((r[0], r[1]), (r[0], -r[1]), (-r[0], r[1]), (-r[0], -r[1])):
        alpha = ((y - f[1]) * e_2[2] - (z - f[2]) * e_2[1]) * inverse
        beta = ((z - f[2]) * e_1[1] - (y - f[1]) * e_1[2]) * inverse
        found.append(
            Corner(np.maximum(np.abs(alpha), np.abs(beta)) <= 1.0, y, z, f[0] + alpha * e_1[0] + beta * e_2[0])
        )
    return found
