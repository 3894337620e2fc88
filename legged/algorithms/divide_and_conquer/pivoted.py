"""Divide and conquer, second version: equations of assemblies for a given motion of their handle nearest to the ground.

An *assembly* is a part of the robot (`assemblies.py`); its *handles* are the bodies that interact with the rest, and
the *root* is the handle nearest to the ground. `forward.py` calls `assemble`, from bodies to the whole robot, and then
`disassemble`, which finds the accelerations. `inverse.py` has the first version, by inverse inertias of all handles.

With the acceleration a of the root and forces f_i at the other handles, the force f on the root and the accelerations
a_i of the other handles are

    f   = I a - sum of A_i f_i + p
    a_i = A_i^T a + sum of Phi_ij f_j + b_i

I is the articulated-body inertia of the serial algorithm, and Phi the inverse inertia of the other handles with the
root held fixed: the equations of the first version, pivoted about the root. A single body has its own inertia and
Phi = 0, so that no body's inertia is inverted. Assemblies of a chain are joined by sums of positive semidefinite
matrices, and in the first version by differences, which explains the better accuracy.

Source: the idea of a more accurate version is Featherstone's, 1999, part 2, whose text we do not have; these equations
are our derivation, and are those by which doubling algorithms for Riccati equations join intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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
from legged.compiler.ir import item, where
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, sum_of

ACCEPTS_SINGULAR_INERTIA = True
"""Whether bodies, such as thin rods, may have no inertia about some axis."""
_ROUNDING = 1e-14  # a pivot below this, relative to its diagonal entry, is rounding
_ZERO = np.zeros((6, 6))


@dataclass(frozen=True, eq=False)
class PivotedInertia:
    """The equations of an assembly, in the coordinates of the bodies of its handles.

    Attributes:
        root: Number of the root; its own A, Phi and b, as a handle, are 1, 0 and 0.
        I: Articulated-body inertia at the root, (6, 6). p: Bias force at the root, (6,).
        A: For the other handles, (6, 6). Phi: For pairs of them, (6, 6). b: For them, (6,).
    """

    root: int
    I: Array
    p: Array
    A: dict[int, Array]
    Phi: dict[tuple[int, int], Array]
    b: dict[int, Array]

    def propagator(self, i: int) -> Array:
        """Return A_i, (6, 6)."""
        return self.A[i] if i in self.A else np.eye(6)

    def inverse_inertia(self, i: int, j: int) -> Array:
        """Return Phi_ij, (6, 6)."""
        return self.Phi.get((i, j), _ZERO)

    def bias(self, i: int) -> Array:
        """Return b_i, (6,)."""
        return self.b[i] if i in self.b else np.zeros(self.p.shape)


@dataclass(frozen=True, eq=False)
class ConnectingJoint:
    """The joint between two assemblies, with the outer one in series with the inverse inertia of the inner one.

    Attributes:
        body: The body outward of the joint.
        J: (I^-1 + Phi)^-1, (6, 6), the outer inertia in series with the inner inverse inertia.
        E: 1 - J Phi, (6, 6). Phi: X Phi_pp X^T of the inner assembly, (6, 6).
        J_h: J h, (6, d). D: h^T J h, factored.
        inner, outer: The assemblies.
    """

    body: MassiveBody
    J: Array
    E: Array
    Phi: Array
    J_h: Array
    D: tuple
    inner: PivotedInertia
    outer: PivotedInertia


class AssemblyFactors(NamedTuple):
    """The joint between the parts of an assembly and its constraints, kept for the disassembly.

    Attributes:
        joint: Between the parts. constraints: Imposed in the assembly, or None.
        N_A: N A^T, (rows, 6): the acceleration of the constraint rows by that of the root.
    """

    joint: ConnectingJoint
    constraints: ImposedConstraints | None
    N_A: Array


def assemble(whole: Component, system: MultibodySystem, factors: dict[int, AssemblyFactors]) -> PivotedInertia:
    """Return the equations of an assembly from those of its parts; stores the `factors` of each assembly."""
    if whole == GROUND:
        return PivotedInertia(GROUND - 1, _ZERO, np.zeros(system.a_0.shape), {GROUND: _ZERO}, {}, {GROUND: system.a_0})
    if isinstance(whole, int):
        return PivotedInertia(whole, system.bodies[whole].I, system.bodies[whole].p, {}, {}, {})
    inner, outer = (assemble(part, system, factors) for part in (whole.inner, whole.outer))
    with item(whole.joint):
        joint = _connecting_joint(system.bodies[whole.joint], inner, outer)
        response = _joined(whole, joint)
        if not whole.groups:
            factors[whole.joint] = AssemblyFactors(joint, None, np.zeros((0, 6)))
            return response
        groups = [system.groups[g] for g in whole.groups]
        constraints = impose(groups, whole.all_handles, response.inverse_inertia, response.bias)
        N_A = sum_of(rows @ response.propagator(k).T for k, rows in constraints.N.items())
        N_A = np.zeros((len(constraints.deficit), 6)) + N_A
        factors[whole.joint] = AssemblyFactors(joint, constraints, N_A)
        return _constrained(whole, response, constraints, N_A)


def _connecting_joint(body: MassiveBody, inner: PivotedInertia, outer: PivotedInertia) -> ConnectingJoint:
    """Return the equations of the joint between two assemblies.

    J = G (1 + G^T Phi G)^-1 G^T with I = G G^T: symmetric, and no worse conditioned than I.
    """
    X, h, p = body.X, body.h, body.parent
    if (p, p) in inner.Phi:
        Phi = mirror(transform_motions(X, transform_motions(X, inner.inverse_inertia(p, p)).T))
        G = _square_root(outer.I)
        K = factor_symmetric(mirror(np.eye(6) + G.T @ Phi @ G))
        J = mirror(G @ solve_rows(K, G).T)
        E = np.eye(6) - J @ Phi
    else:
        Phi, J, E = _ZERO, outer.I, np.eye(6)
    J_h = J @ h
    D = factor_symmetric(mirror(h.T @ J_h + body.reflected_inertia))
    return ConnectingJoint(body, J, E, Phi, J_h, D, inner, outer)


def _square_root(S: Array) -> Array:
    """Return G, lower triangular, with S = G G^T for a positive semidefinite S, (n, n); no column for a zero pivot."""
    n = len(S)
    G: list[list[Any]] = [[0.0] * n for _ in range(n)]
    reciprocal: list[Any] = []
    for i in range(n):
        for k in range(i):
            G[i][k] = (S[i, k] - sum_of(G[i][m] * G[k][m] for m in range(k))) * reciprocal[k]
        pivot = S[i, i] - sum_of(G[i][k] * G[i][k] for k in range(i))
        positive = pivot > _ROUNDING * S[i, i]
        reciprocal.append(where(positive, 1.0 / np.sqrt(where(positive, pivot, 1.0)), 0.0))
        G[i][i] = pivot * reciprocal[i]
    return np.array(G)


def _joined(whole: Assembly, connecting: ConnectingJoint) -> PivotedInertia:
    """Return the equations of two assemblies with a joint between them.

    With alpha = X a_p + c if the joint transmitted no force, and pi = p^outer less the forces at its handles, the joint
    transmits W alpha + Z pi + Psi tau, and the outer root accelerates by Z^T alpha - Q pi + e tau, where

        Psi = J h D^-1,    W = J - Psi D Psi^T,    Z = (1 - Psi h^T) (1 - J Phi),
        e = (1 - Phi J) h D^-1,    Q = (I^outer + Phi^-1)^-1 + e D e^T
    """
    inner, outer, joint, J_h = connecting.inner, connecting.outer, connecting.body, connecting.J_h
    X, p, E = joint.X, joint.parent, connecting.E
    Psi = solve_rows(connecting.D, J_h)
    W = mirror(connecting.J - Psi @ J_h.T)
    Z = E - Psi @ (joint.h.T @ E)
    E_h = E.T @ joint.h
    e = solve_rows(connecting.D, E_h)
    Q = mirror(connecting.Phi @ E + e @ E_h.T)
    alpha = X @ inner.bias(p) + joint.c
    force = W @ alpha + Psi @ joint.tau + Z @ outer.p
    a = Z.T @ alpha + e @ joint.tau - Q @ outer.p
    A_p = transform_motions(X, inner.propagator(p).T)
    on_inner = [i for i in whole.all_handles if i == inner.root or i in inner.A]
    X_Phi = {i: transform_motions(X, inner.inverse_inertia(p, i)) for i in on_inner}
    A, b = {}, {}
    for i in whole.all_handles:
        if i == inner.root:
            continue
        if i in X_Phi:
            A[i] = inner.A[i] - A_p.T @ (W @ X_Phi[i])
            b[i] = inner.b[i] - X_Phi[i].T @ force
        else:
            A[i] = A_p.T @ (Z @ outer.propagator(i))
            b[i] = outer.bias(i) + outer.propagator(i).T @ a
    Phi: dict[tuple[int, int], Array] = {}
    for i in A:
        for j in A:
            if (j, i) in Phi:
                Phi[i, j] = Phi[j, i].T
            elif i in X_Phi and j in X_Phi:
                Phi[i, j] = inner.inverse_inertia(i, j) - X_Phi[i].T @ (W @ X_Phi[j])
            elif i in X_Phi:
                Phi[i, j] = X_Phi[i].T @ (Z @ outer.propagator(j))
            elif j in X_Phi:
                Phi[i, j] = (X_Phi[j].T @ (Z @ outer.propagator(i))).T
            else:
                Phi[i, j] = outer.inverse_inertia(i, j) + outer.propagator(i).T @ (Q @ outer.propagator(j))
        Phi[i, i] = mirror(Phi[i, i])
    return PivotedInertia(inner.root, mirror(inner.I + A_p.T @ (W @ A_p)), inner.p + A_p.T @ force, A, Phi, b)


def _constrained(whole: Assembly, free: PivotedInertia, constraints: ImposedConstraints, K: Array) -> PivotedInertia:
    """Return the equations of an assembly with its constraints, from those without them.

    With S = N Phi N^T and K = N A^T, (rows, 6), the deficit of the rows is c - N b - K a, so that
    I + K^T S^-1 K, A_i - K^T S^-1 N Phi_i, Phi_ij - (N Phi_i)^T S^-1 N Phi_j replace I, A and Phi.
    """
    others = [i for i in whole.handles if i != free.root]
    S_K, deficit = constraints.solve(K), constraints.solve(constraints.deficit)
    S_inverse = {i: constraints.solve(constraints.N_Phi[i]) for i in others}
    A = {i: free.A[i] - K.T @ S_inverse[i] for i in others}
    b = {i: free.b[i] + constraints.N_Phi[i].T @ deficit for i in others}
    Phi = {(i, j): free.inverse_inertia(i, j) - constraints.N_Phi[i].T @ S_inverse[j] for i in others for j in others}
    for i in others:
        Phi[i, i] = mirror(Phi[i, i])
    return PivotedInertia(free.root, mirror(free.I + K.T @ S_K), free.p - K.T @ deficit, A, Phi, b)


def disassemble(whole: Component, factors: dict[int, AssemblyFactors], qdd: dict[int, Array]) -> None:
    """Find the accelerations of all joints.

    Args:
        whole: The robot as an assembly. factors: Of `assemble`.
        qdd: Filled with the acceleration of each joint by body, (d,), [rad/s^2] or [m/s^2], joint axes.
    """
    if isinstance(whole, Assembly):
        _disassemble(whole, np.zeros(factors[whole.joint].joint.inner.p.shape), {}, factors, qdd)


def _disassemble(
    whole: Component, a: Array, forces: dict[int, Array], factors: dict[int, AssemblyFactors], qdd: dict[int, Array]
) -> None:
    """Find the joint accelerations inside an assembly from its root's, (6,), and forces at handles, (6,) by body."""
    if isinstance(whole, int):
        return
    k = whole.joint
    connecting, constraints, N_A = factors[k]
    joint, inner, outer, E = connecting.body, connecting.inner, connecting.outer, connecting.E
    with item(k):
        if constraints is not None:
            forces = constraints.add_constraint_forces(forces, constraints.deficit - N_A @ a)
        p, own = joint.parent, {i: forces[i] for i in whole.all_handles if i in forces}
        on_inner = {i: f for i, f in own.items() if i == inner.root or i in inner.A}
        on_outer = {i: f for i, f in own.items() if i not in on_inner}
        a_free = sum_of(inner.inverse_inertia(p, i) @ f for i, f in on_inner.items())
        a_p = inner.propagator(p).T @ a + inner.bias(p) + a_free
        alpha = joint.X @ a_p + joint.c
        pi = outer.p - sum_of(outer.propagator(i) @ f for i, f in on_outer.items())
        qdd[k] = solve_factored(connecting.D, joint.tau - connecting.J_h.T @ alpha - joint.h.T @ (E @ pi))
        alpha = alpha + joint.h @ qdd[k]
        force = connecting.J @ alpha + E @ pi
        on_inner[p] = on_inner.get(p, np.zeros(force.shape)) - joint.X.T @ force
        a_k = alpha - connecting.Phi @ force
    _disassemble(whole.inner, a, on_inner, factors, qdd)
    _disassemble(whole.outer, a_k, on_outer, factors, qdd)
