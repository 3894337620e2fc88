"""Contact frames: a normal and two tangents."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array


def frame_of(normal: Array, sign: Any = 1.0) -> Array:
    """Return the rows n, t1, t2 of a right-handed contact frame, (3, 3), for a unit normal, (3,).

    Args:
        normal: n. On level ground, n = z, the tangents are x and y.
        sign: Of n_z; with the right one no normal is singular. A terrain's normals point upwards.

    Source: Duff et al., "Building an orthonormal basis, revisited", Journal of Computer Graphics Techniques 6(1), 2017.
    """
    x, y, z = normal
    a = -1.0 / (sign + z)
    b = x * y * a
    t1 = np.array([1.0 + sign * x * x * a, sign * b, -sign * x])
    return np.array([normal, t1, np.array([b, sign + y * y * a, -y])])


def sign_of(z: Any) -> Any:
    """Return 1.0 for z >= 0 and -1.0 below."""
    return where(z < 0.0, -1.0, 1.0)
