"""Linear dynamics of the nodes from the derivatives of their equations of motion, and the condensed model of the cost.

A model of the cost in z = (x, u) and in quantities y that depend on z (contact forces, time, duration, acceleration)
becomes one in z and the duration factors of phases by the chain rule, with Y = dy/dz:

    gradient = g_z + Y^T g_y,      Hessian = H_zz + Y^T H_yz + H_yz^T Y + Y^T H_yy Y
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.spatial import Array


def solved_derivatives(
    M_inv: Array, J_M_inv: Array, contact_inertia: Array, equations: Array, actuated: Sequence[int]
) -> tuple[Array, Array]:
    """Return G and Z: minus the inverse of the matrix of the equations of motion, and the derivatives of [a; f].

    The unknowns are the acceleration a, (nv,), and the contact forces f, (m,); S selects the actuated entries.

        G = -[M -J^T; J 0]^-1, (..., nv + m, nv + m),     Z = G [equations, -S], (..., nv + m, 2 nv + nu)

    Args:
        M_inv, J_M_inv, contact_inertia: As in `MotionDerivatives`, with leading axes (...).
        equations: Derivatives of the equations of motion by x, (..., nv + m, 2 nv), mixed units.
        actuated: Entries of v with a control, (nu,).
    """
    m, nv = J_M_inv.shape[-2:]
    *lead, rows, nx = equations.shape
    G = np.empty((*lead, rows, nv + m))
    W = contact_inertia @ J_M_inv
    G[..., :nv, :nv] = J_M_inv.swapaxes(-1, -2) @ W - M_inv
    G[..., nv:, nv:] = -contact_inertia
    G[..., nv:, :nv] = W
    G[..., :nv, nv:] = -W.swapaxes(-1, -2)
    Z = np.empty((*lead, rows, nx + len(actuated)))
    np.matmul(G, equations, out=Z[..., :nx])
    Z[..., nx:] = -G[..., list(actuated)]
    return G, Z


def extended(array: Array, columns: Sequence[int], size: int, both: bool = True) -> Array:
    """Return an array with its last axis, or its last two, spread over more entries; the others are zero.

    Args:
        array: (..., n) or (..., n, n), any unit. columns: Places of the n entries, (n,). size: New number of entries.
        both: Whether to spread the last two axes.
    """
    lead = array.shape[:-2] if both else array.shape[:-1]
    result = np.zeros((*lead, size, size) if both else (*lead, size))
    if both:
        result[(..., *np.ix_(columns, columns))] = array
    else:
        result[..., columns] = array
    return result


def add_condensed(hessian: Array, H_yz: Array, H_yy: Array, Y: Array, columns: Sequence[int] | slice) -> None:
    """Add the part of a Hessian by y, after the chain rule, to that by z.

    Args:
        hessian: The Hessian by z, (..., nz, nz), any unit, which is changed.
        H_yz: (..., ny, n), any unit. H_yy: (..., ny, ny), any unit.
        Y: Derivatives of y, (..., ny, nz), any unit. columns: The n entries of z by which H_yz is.
    """
    YT = Y.swapaxes(-1, -2)
    cross = YT @ H_yz
    hessian += YT @ (H_yy @ Y)
    hessian[..., columns] += cross
    hessian[..., columns, :] += cross.swapaxes(-1, -2)


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
