"""Contact frames: a normal completed by two tangents, over any element and without branches.

Source: Duff et al., "Building an orthonormal basis, revisited", Journal of Computer Graphics Techniques 6(1), 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array

_SWITCH = -0.55
"""The z component of a unit normal at which the tangents change: far from those of walls and floors, for which
rounding would otherwise decide."""


def contact_frame(normal: Array) -> Array:
    """Return the rows n, t1, t2 of a right-handed contact frame, (3, 3), for a unit normal of any direction.

    The tangents are continuous functions of the normal except at n_z = -0.55, where they change.

    Args:
        normal: n, (3,), unit vector, in the axes in which the frame is written. For n = z the tangents are x and y.
    """
    return _frame(normal, where(normal[2] < _SWITCH, -1.0, 1.0))


def terrain_frame(normal: Array) -> Array:
    """Return the frame of `contact_frame` for a normal that points upward, (3, 3), with fewer operations.

    Args:
        normal: n, (3,), unit vector with n_z > 0, world axes.
    """
    return _frame(normal, 1.0)


def _frame(normal: Array, sign: Any) -> Array:
    """Return the rows n, t1, t2 for a sign of 1 or -1, for which the singularity is at n_z = -sign."""
    x, y, z = normal
    a = -1.0 / (sign + z)
    b = x * y * a
    t1 = np.array([1.0 + sign * x * x * a, sign * b, -sign * x])
    return np.array([normal, t1, np.array([b, sign + y * y * a, -y])])
