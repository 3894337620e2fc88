"""Linear dynamics of the nodes from the derivatives of their equations of motion, and the condensed model of the cost.

The calls of BLAS below follow each other in machine code, nodes in parallel. BLAS sees the transpose of each array.
Parts of larger arrays are possible: their rows have the length of those of the larger one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.compiler import Call
from legged.spatial import Array


def motion_derivatives(of_motion: Sequence[Array], forces: Array, result: Array, h: Array) -> list[Call]:
    """Return the calls that compute the derivatives of the contact forces f, and those of the acceleration a times h.

        dr + [M -J^T; J 0] [da; df] = 0:      df = (J M^-1 J^T)^-1 (J M^-1 dr_a - dr_f),      da = M^-1 (J^T df - dr_a)

    Args:
        of_motion: M_inv, J_M_inv and contact_inertia of `MotionDerivatives`, (count, nv, nv), (count, m, nv) and
            (count, m, m), and the derivatives dr of the equations of motion, (count, nv + m, n), mixed units.
        forces: Receives df, (count, m, n), mixed units. result: Receives h da, (count, nv, n), mixed units.
        h: Factors h and -h, (count, 2), [s]; 1 and -1 at impacts.
    """
    M_inv, J_M_inv, contact_inertia, equations = of_motion
    count, m, nv = J_M_inv.shape
    n, to_f, to_a = equations.shape[-1], _row(forces), _row(result)
    less = np.zeros((count, m, n))
    by_forces = [
        Call.fortran("dlacpy", count, "A", n, m, equations[:, nv:], n, less, n),
        Call.fortran("dgemm", count, "N", "N", n, m, nv, 1.0, equations, n, J_M_inv, nv, -1.0, less, n),
        Call.fortran("dgemm", count, "N", "N", n, m, m, 1.0, less, n, contact_inertia, m, 0.0, forces, to_f),
        Call.fortran("dgemm", count, "N", "T", n, nv, m, h[:, 0], forces, to_f, J_M_inv, nv, 0.0, result, to_a),
    ]
    rest = "dgemm", count, "N", "N", n, nv, nv, h[:, 1], equations, n, M_inv, nv, float(m > 0), result, to_a
    return [*(by_forces if m else []), Call.fortran(*rest)]


def next_configuration(T: Array, N: Array, by_velocity: Array, result: Array) -> list[Call]:
    """Return the calls that compute the derivatives of the next configuration, [T 0] + N D, from those of the velocity.

    Args:
        T, N: As in `LinearQuadraticModel`, (count, nv, nv) each.
        by_velocity: D, (count, nv, n), mixed units. result: Receives the derivatives, (count, nv, n), mixed units.
    """
    count, nv, n = by_velocity.shape
    row, to = _row(by_velocity), _row(result)
    return [
        Call.fortran("dlaset", count, "A", n, nv, 0.0, 0.0, result, to),
        Call.fortran("dlacpy", count, "A", nv, nv, T, nv, result, to),
        Call.fortran("dgemm", count, "N", "N", n, nv, nv, 1.0, by_velocity, row, N, nv, 1.0, result, to),
    ]


def condensed(Y: Array, H_yz: Array, H_yy: Array, cost: Array) -> list[Call]:
    """Return the calls that add the part of a cost by quantities y that depend on z to its model by z = (x, u).

    By the chain rule, with Y = dy/dz,

        gradient = g_z + Y^T g_y,      Hessian = H_zz + Y^T H_yz + H_yz^T Y + Y^T H_yy Y

    where (1, z) is in the place of z, so that H_yz contains g_y. The upper triangle is computed.

    Args:
        Y: Derivatives of y by (1, z), (count, ny, 1 + n), any unit; the first column is zero.
        H_yz: (count, ny, 1 + n), any unit, which is changed. H_yy: (count, ny, ny), any unit.
        cost: As in `RiccatiRecursion`, (count, 1 + n, 1 + n), any unit.
    """
    count, ny, n = Y.shape
    return [
        Call.fortran("dgemm", count, "N", "N", n, ny, ny, 0.5, Y, n, H_yy, ny, 1.0, H_yz, n),
        Call.fortran("dsyr2k", count, "L", "N", n, ny, 1.0, Y, n, H_yz, n, 1.0, cost, n),
    ]


def costates(F: Array, gradient: Array) -> Array:
    """Return the derivatives of the cost by the states of all nodes, from the end to the start, (..., nodes + 1, nx).

    Args:
        F: Derivatives of the next state, (..., nodes + 1, nx, nx + nu), mixed units.
        gradient: Of the cost of each node, (..., nodes + 1, nx + nu), mixed units.
    """
    nx = F.shape[-2]
    result = gradient[..., :nx].copy()
    for k in range(F.shape[-3] - 2, -1, -1):
        result[..., k, :] += (result[..., k + 1, None, :] @ F[..., k, :, :nx])[..., 0, :]
    return result


def _row(array: Array) -> int:
    """Return the number of entries from one row to the next."""
    return array.strides[-2] // array.itemsize
