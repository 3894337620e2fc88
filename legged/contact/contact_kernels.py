"""Kernels for the contacts of a scene in parts: functions of one contact, or of one block of its matrices.

`contact_tables` calls them for all contacts, or all blocks, of a scene. The equations are those of
`legged.contact.impulses`, which one kernel of a small scene contains; here each of them is compiled alone. Names: p is
an impulse, (3,), [N s], and u a relative velocity, (3,), [m/s], both in the contact frame; J is a block of the
Jacobian, (3, 6), from six generalized velocities to u; `target`, r and mu are those of `semismooth.linearization`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from legged.compiler import BatchKernel
from legged.compiler.ir import where
from legged.contact.bodies import rows_of_point
from legged.contact.impulses.contact_pattern import BLOCK
from legged.contact.impulses.impact import target_velocity
from legged.contact.impulses.newton import mobility
from legged.contact.impulses.semismooth import advanced, linearization, progress, reduction
from legged.contact.impulses.solver import natural_map, spread_group
from legged.spatial import Array


@cache
def spreading_kernel(size: int) -> BatchKernel:
    """Return the kernel of `solver.spread_group`, the impulses of least norm, for groups of a number of contacts.

    Args:
        size: Number of contacts of a group.
    """

    def spreading(*parts: Any) -> tuple[Array, ...]:
        p, at, mu = (parts[k * size : (k + 1) * size] for k in range(3))
        return tuple(spread_group(np.array(p), np.array(at), mu))

    names = [(f"{name}{k}", shape) for name, shape in (("p", (3,)), ("at", (3,)), ("mu", ())) for k in range(size)]
    return BatchKernel(spreading, dict(names))


@cache
def contact_rows_kernel() -> BatchKernel:
    """Return the kernel of the numbers of a contact that the contact problem of a step needs."""

    def contact_rows(
        gap: Any, force: Array, h: Any, recovery: Any, frame: Array, point: Array, *sides: Array
    ) -> tuple[Any, ...]:
        """Return numbers of `ContactTables`: the blocks of both sides, (2, 3, 6), `diagonal`, `mobility`, `target`,
        the place along t1, t2 and n from the origin of the first body, (3,), [m], and `guess`.

        `sides` are, of the first and then of the second body: rotation to world axes, origin and `Bodies.mobility`.
        """
        R_1, o_1, A_1, R_2, o_2, A_2 = sides
        J_1, J_2 = rows_of_point(R_1, o_1, frame, point), rows_of_point(R_2, o_2, frame, point)
        diagonal, target = J_1 @ A_1 @ J_1.T + J_2 @ A_2 @ J_2.T, target_velocity(recovery, gap, h)
        place = np.roll(frame, -1, axis=0) @ (point - o_1)  # rows n, t1, t2 -> t1, t2, n
        return np.array([J_1, -J_2]), diagonal, mobility(diagonal), target, place, h * force

    shapes = {"gap": (), "force": (3,), "h": (), "recovery": (), "frame": (3, 3), "point": (3,)}
    for k in (1, 2):
        shapes |= {f"R_{k}": (3, 3), f"o_{k}": (3,), f"A_{k}": (6, 6)}
    return BatchKernel(contact_rows, shapes)


@cache
def turn_kernel() -> BatchKernel:
    """Return the kernel of the squared distance of two normals."""
    return BatchKernel(lambda a, b: (a - b) @ (a - b), {"a": (3,), "b": (3,)})


_JACOBIAN, _SQUARE, _VELOCITIES = (3, BLOCK), (BLOCK, BLOCK), (BLOCK,)  # shapes of blocks
_LAW: dict[str, tuple[int, ...]] = {"target": (), "r": (), "mu": ()}


@cache
def jacobian_kernel() -> BatchKernel:
    """Return the kernel of a block of the Jacobian of a contact on an articulated robot, (3, 6), contact frame.

    `side` is the velocity of the contact per twist of the body, `J` the twist per velocity of a block.
    """
    return BatchKernel(lambda side, J: side @ J, {"side": _JACOBIAN, "J": _SQUARE})


@cache
def velocity_kernel() -> BatchKernel:
    """Return the kernel of the part of a contact's velocity from a block of velocities, (3,), [m/s], contact frame."""
    return BatchKernel(lambda J, v: J @ v, {"J": _JACOBIAN, "v": _VELOCITIES})


@cache
def momentum_kernel() -> BatchKernel:
    """Return the kernel of the generalized momentum of an impulse in a block of velocities, (6,), mixed units."""
    return BatchKernel(lambda J, p: p @ J, {"J": _JACOBIAN, "p": (3,)})


@cache
def inertial_kernel() -> BatchKernel:
    """Return the kernel of the momentum M (v_free - v) of a block of the inertia matrix, (6,), mixed units."""
    return BatchKernel(lambda M, v, v_free: M @ (v_free - v), {"M": _SQUARE, "v": _VELOCITIES, "v_free": _VELOCITIES})


@cache
def square_kernel() -> BatchKernel:
    """Return the kernel of the transpose of J^T slopes K, (6, 6), whose rows are runs of columns of `Band.matrix`.

    J and K are two blocks of the Jacobian of the same contact, `slopes` its -dp / du, (3, 3), [kg].
    """
    return BatchKernel(lambda J, slopes, K: (J.T @ (slopes @ K)).T, {"J": _JACOBIAN, "slopes": (3, 3), "K": _JACOBIAN})


@cache
def linearized_kernel() -> BatchKernel:
    """Return the kernel of `semismooth.linearization`: the impulse with its change, -dp / du, and a copy of u."""

    def linearized(p: Array, u: Array, target: Any, r: Any, mu: Any, residual: Any) -> tuple[Array, Array, Array]:
        moved, slopes = linearization(p, u, target, r, mu, reduction(residual))
        return p + moved, slopes, u

    return BatchKernel(linearized, {"p": (3,), "u": (3,), **_LAW, "residual": ()})


@cache
def advanced_kernel() -> BatchKernel:
    """Return the kernel of `semismooth.advanced`."""
    return BatchKernel(advanced, {"p": (3,), "slopes": (3, 3), "u": (3,), "du": (3,), **_LAW})


@cache
def progress_kernel() -> BatchKernel:
    """Return the kernel of `semismooth.progress`, with numbers in place of truth values."""

    def judged(residual: Any, least: Any, goal: Any, enough: Any) -> tuple[Any, Any, Any]:
        better, least, continues = progress(residual, least, goal, enough)
        return where(better, 1.0, 0.0), least, where(continues, 1.0, 0.0)

    return BatchKernel(judged, dict.fromkeys(("residual", "least", "goal", "enough"), ()))


@cache
def law_kernel() -> BatchKernel:
    """Return the kernel of `solver.natural_map`, (3,), [m/s]."""

    def law(u: Array, A: Array, target: Any, p: Array, mu: Any) -> Array:
        return np.stack(natural_map(u, A, target, p, mu))

    return BatchKernel(law, {"u": (3,), "A": (3, 3), "target": (), "p": (3,), "mu": ()})
