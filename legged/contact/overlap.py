"""Corners of the overlap of two faces, four of them, over any element and without branches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from legged.spatial import Array
from legged.trace.where import where

_ANGLE = 0.3  # [rad], of the first direction: on no symmetry of boxes that lie straight or at half a right angle
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
    """Return four corners of a parallelogram's overlap with a rectangle: deep ones, far out in four directions.

    With faces parallel they are four different corners; turned by more than a few degrees, some may be the same one.

    Vectors are (height over the rectangle's plane, y, z) from the rectangle's centre. Where nothing overlaps, the
    corners are its centre, at the height `empty`.

    Args:
        r: Half edges of the rectangle, (2,), [m].
        f: Centre of the parallelogram, (3,). e_1, e_2: Half its edges, (3,), not upright.
        empty: Height to tell where nothing overlaps, [m].
    """
    corners = [*_clipped(r, f, e_1, e_2), *_clipped(r, f, e_2, e_1), *_covered(r, f, e_1, e_2)]
    found = []
    for k in range(4):
        c, s = np.cos(_ANGLE + k * np.pi / 2), np.sin(_ANGLE + k * np.pi / 2)
        best, reach = Corner(False, 0.0, 0.0, empty), _NONE
        for corner in corners:
            own = where(corner.real, c * corner.y + s * corner.z - _DEEP * corner.height, _NONE)
            farther = own > reach
            best = Corner(False, *(where(farther, x, y) for x, y in zip(corner[1:], best[1:], strict=True)))
            reach = where(farther, own, reach)
        found.append(best)
    return found


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
