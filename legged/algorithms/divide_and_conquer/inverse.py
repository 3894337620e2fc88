"""Assemblies represented by the inverse inertias at their handles: the first version of divide and conquer.

The accelerations of the handles of an assembly are linear in the forces at the handles:

    a_i = sum over the handles j of Phi_ij f_j + b_i

Source: Featherstone 1999, part 1, and part 2 for trees and loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from legged.algorithms.divide_and_conquer.assemblies import (
    GROUND,
    Assembly,
    Component,
    ImposedConstraints,
    MultibodySystem,
    impose,
)
from legged.algorithms.linear_algebra import solve_rows
from legged.algorithms.links import transform_motions
from legged.algorithms.massive_bodies import MassiveBody
from legged.compiler.ir import item
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, sum_of

ACCEPTS_SINGULAR_INERTIA = False
"""Whether bodies may have no inertia about some axis; here every inertia is inverted."""


@dataclass(frozen=True, eq=False)
class InverseInertia:
    """Accelerations of the handles of an assembly, in the coordinates of their bodies.

    Attributes:
        Phi: Inverse inertia by pairs of handles, (6, 6); Phi[j, i] is the transpose of Phi[i, j].
        b: Acceleration of each handle without forces at handles, (6,).
    """

    Phi: dict[tuple[int, int], Array]
    b: dict[int, Array]


@dataclass(frozen=True, eq=False)
class ConnectingJoint:
    """The joint between two assemblies: it transmits f = gamma + W g for the relative acceleration g due to forces.

    Attributes:
        body: The body outward of the joint.
        W: (6, 6). gamma: Transmitted force without forces at the handles, (6,), on the outer body in its coordinates.
        a_rel: X a_p + c - a_k of the two bodies if they were disconnected, (6,).
        G: Change of a_rel by a force at each handle, (6, 6).
        V_h: V h, (6, d). D: h^T V h, factored.
    """

    body: MassiveBody
    W: Array
    gamma: Array
    a_rel: Array
    G: dict[int, Array]
    V_h: Array
    D: tuple


class AssemblyFactors(NamedTuple):
    """The joint between the parts of an assembly and its constraints, kept for the disassembly."""

    joint: ConnectingJoint
    constraints: ImposedConstraints | None


def assemble(whole: Component, system: MultibodySystem, factors: dict[int, AssemblyFactors]) -> InverseInertia:
    """Return the inverse inertia of an assembly from those of its parts; stores the `factors` of each assembly."""
    if isinstance(whole, int):
        return _single_body(whole, system)
    inner, outer = (assemble(part, system, factors) for part in (whole.inner, whole.outer))
    with item(whole.joint):
        joint = _connecting_joint(whole, system.bodies[whole.joint], inner, outer)
        response, constraints = _joined(whole, joint, inner, outer), None
        if whole.groups:
            groups = [system.groups[g] for g in whole.groups]
            constraints = impose(groups, whole.all_handles, lambda i, j: response.Phi[i, j], lambda i: response.b[i])
        factors[whole.joint] = AssemblyFactors(joint, constraints)
        return response if constraints is None else _constrained(whole, response, constraints)


def _single_body(k: int, system: MultibodySystem) -> InverseInertia:
    """Return the inverse inertia of one body, or of the ground."""
    if k == GROUND:
        return InverseInertia({(GROUND, GROUND): np.zeros((6, 6))}, {GROUND: system.a_0})
    with item(k):
        body = system.bodies[k]
        factors = factor_symmetric(body.I)
        Phi = mirror(solve_rows(factors, np.eye(6)))
        return InverseInertia({(k, k): Phi}, {k: -(Phi @ body.p)})


def _connecting_joint(
    whole: Assembly, body: MassiveBody, inner: InverseInertia, outer: InverseInertia
) -> ConnectingJoint:
    """Return the equations of the joint between two assemblies.

    With a_i = X a_p + h qdd + c and Y = Phi^outer + X Phi^inner X^T:

        V     = Y^-1
        W     = V - V h (h^T V h)^-1 h^T V
        f     = W (X b^inner + c - b^outer) + V h (h^T V h)^-1 tau
    """
    X, h, k, p = body.X, body.h, whole.joint, body.parent
    Y = mirror(outer.Phi[k, k] + transform_motions(X, transform_motions(X, inner.Phi[p, p]).T))
    factors = factor_symmetric(Y)
    V = mirror(solve_rows(factors, np.eye(6)))
    V_h = V @ h
    D = factor_symmetric(mirror(h.T @ V_h + body.reflected_inertia))
    W = mirror(V - V_h @ solve_rows(D, V_h).T)
    a_rel = X @ inner.b[p] + body.c - outer.b[k]
    gamma = W @ a_rel + V_h @ solve_factored(D, body.tau)
    G = {i: transform_motions(X, inner.Phi[p, i]) if i in inner.b else -outer.Phi[k, i] for i in whole.all_handles}
    return ConnectingJoint(body, W, gamma, a_rel, G, V_h, D)


def _joined(whole: Assembly, joint: ConnectingJoint, inner: InverseInertia, outer: InverseInertia) -> InverseInertia:
    """Return the inverse inertia of two assemblies with a joint between them."""
    Phi, b = {}, {}
    for i in whole.all_handles:
        own, G = inner if i in inner.b else outer, joint.G[i]
        b[i] = own.b[i] - G.T @ joint.gamma
        G_W = G.T @ joint.W
        for j in whole.all_handles:
            if (j, i) in Phi:
                Phi[i, j] = Phi[j, i].T
                continue
            block = -(G_W @ joint.G[j])
            if j in own.b:
                block = own.Phi[i, j] + block
            Phi[i, j] = mirror(block) if i == j else block
    return InverseInertia(Phi, b)


def _constrained(whole: Assembly, free: InverseInertia, constraints: ImposedConstraints) -> InverseInertia:
    """Return the inverse inertia of an assembly with its constraints, from that without them.

    Phi_ij - (N Phi_i)^T S^-1 N Phi_j with S = N Phi N^T, and b_i + (N Phi_i)^T S^-1 (c - N b).
    """
    S_inverse = {i: constraints.solve(constraints.N_Phi[i]) for i in whole.handles}
    Phi = {(i, j): free.Phi[i, j] - constraints.N_Phi[i].T @ S_inverse[j] for i in whole.handles for j in whole.handles}
    for i in whole.handles:
        Phi[i, i] = mirror(Phi[i, i])
    deficit = constraints.solve(constraints.deficit)
    return InverseInertia(Phi, {i: free.b[i] + constraints.N_Phi[i].T @ deficit for i in whole.handles})


def disassemble(whole: Component, factors: dict[int, AssemblyFactors], qdd: dict[int, Array]) -> None:
    """Find the accelerations of all joints.

    Args:
        whole: The robot as an assembly. factors: Of `assemble`.
        qdd: Filled with the acceleration of each joint by body, (d,), [rad/s^2] or [m/s^2], joint axes.
    """
    _disassemble(whole, {}, factors, qdd)


def _disassemble(
    whole: Component, forces: dict[int, Array], factors: dict[int, AssemblyFactors], qdd: dict[int, Array]
) -> None:
    """Find the joint accelerations inside an assembly from the forces at its handles, (6,) by body."""
    if isinstance(whole, int):
        return
    k = whole.joint
    with item(k):
        joint, constraints = factors[k]
        if constraints is not None:
            forces = constraints.add_constraint_forces(forces, constraints.deficit)
        a_rel = np.zeros(joint.a_rel.shape) + sum_of(joint.G[i] @ forces[i] for i in whole.all_handles if i in forces)
        f = joint.gamma + joint.W @ a_rel
        qdd[k] = solve_factored(joint.D, joint.body.tau - joint.V_h.T @ (joint.a_rel + a_rel))
        p = joint.body.parent
        forces_k = forces[k] + f if k in forces else f
        forces_p = forces[p] if p in forces else np.zeros(f.shape)
    _disassemble(whole.inner, forces | {p: forces_p - joint.body.X.T @ f}, factors, qdd)
    _disassemble(whole.outer, forces | {k: forces_k}, factors, qdd)
