"""Linear dynamics of the nodes from the derivatives of their equations of motion, and the condensed model of the cost.

The functions return calls for a `FusedCalls`: machine code computes the matrix products in sequence, in parallel for
several nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.compiler import Call
from legged.spatial import Array


def motion_derivatives(
    of_motion: Sequence[Array], forces: Array, result: Array, h: Array, start: Array | None = None
) -> list[Call]:
    """Return the calls that compute the derivatives of the contact forces f, and those of the acceleration a times h.

        dr + [M -J^T; J 0] [da; df] = 0:      df = (J M^-1 J^T)^-1 (J M^-1 dr_a - dr_f),      da = M^-1 (J^T df - dr_a)

    Args:
        of_motion: M_inv, J_M_inv and contact_inertia of `ContactModel.inverse`, (count, nv, nv), (count, m, nv) and
            (count, m, m), and the derivatives dr = [dr_a; dr_f] of the equations of motion, (count, nv + m, n), mixed
            units.
        forces: Receives df, (count, m, n), mixed units.
        result: Receives start + h da, (count, nv, n), mixed units.
        h: Factors h and -h, (count, 2), [s]; 1 and -1 at impacts.
        start: (count, nv, n), mixed units, or None for zeros.
    """
    M_inv, J_M_inv, contact_inertia, equations = of_motion
    (count, m, nv), n, product = J_M_inv.shape, equations.shape[-1], Call.matrix_product
    less, of_a = np.zeros((count, m, n)), equations[:, :nv]
    by_forces = [
        product(less, J_M_inv, of_a, start=equations[:, nv:], scale=-1.0),  # dr_f - J M^-1 dr_a
        product(forces, contact_inertia, less, scale=-1.0),
        product(result, J_M_inv.swapaxes(-1, -2), forces, start=start, scale=h[:, 0]),
    ]
    return [*(by_forces if m else []), product(result, M_inv, of_a, start=result if m else start, scale=h[:, 1])]


def next_configuration(T: Array, N: Array, by_velocity: Array, result: Array) -> list[Call]:
    """Return the calls that compute the derivatives of the next configuration, [T 0] + N D, from those of the velocity.

    Args:
        T, N: As in `LinearQuadraticModel`, (count, nv, nv) each.
        by_velocity: D, (count, nv, n), mixed units. result: Receives the derivatives, (count, nv, n), mixed units.
    """
    nv = T.shape[-1]
    return [
        Call.matrix_product(result[:, :, :nv], N, by_velocity[:, :, :nv], start=T),
        Call.matrix_product(result[:, :, nv:], N, by_velocity[:, :, nv:]),
    ]


def condensed(Y: Array, H_yz: Array, H_yy: Array, cost: Array, size: int) -> list[Call]:
    """Return the calls that compute the part of a cost by quantities y that depend on z in its model by z = (x, u).

    By the chain rule, with Y = dy/dz,

        gradient = Y^T g_y,      Hessian = Y^T H_yz + H_yz^T Y + Y^T H_yy Y

    where (1, z) is in the place of z, so that H_yz contains g_y. Of the block of the state the lower triangle is
    computed.

    Args:
        Y: Derivatives of y by (1, z), (count, ny, 1 + n), any unit; the first column is zero.
        H_yz: (count, ny, 1 + n), any unit. H_yy: (count, ny, ny), any unit.
        cost: Receives the part, as in `RiccatiRecursion`, (count, 1 + n, 1 + n), any unit.
        size: Number of states, dimensionless.
    """
    G, m, product = np.zeros_like(Y), 1 + size, Call.matrix_product  # G = H_yz + H_yy Y / 2
    parts = (cost[:, :m, :m], slice(0, m), True), (cost[:, m:], slice(m, None), False)
    return [
        product(G, H_yy, Y, start=H_yz, scale=0.5),
        *(
            product(part, A[:, :, rows].swapaxes(-1, -2), B[:, :, : part.shape[2]], start=start, lower=lower)
            for part, rows, lower in parts
            for A, B, start in ((Y, G, None), (G, Y, part))
        ),
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
