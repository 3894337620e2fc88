"""The second version: every assembly is known for a given motion of its handle towards the ground.

That handle's body is the assembly's root. With its acceleration a, and forces f_i at handles further out,

    f   = I a - sum of A_i f_i + p                  what the root's joint must give
    a_i = A_i^T a + sum of Phi_ij f_j + b_i         how another handle accelerates

So I is the articulated-body inertia of the serial algorithm, with its accuracy, and Phi the mobility of what hangs on
a held root: the equations of the first version, pivoted about the root. Single bodies give their own inertia, and
Phi = 0; nothing of a body is inverted. Assemblies of a chain are joined by sums of positive semidefinite matrices,
where the first version takes differences: that is what it gains in accuracy.

Source: the idea of a more accurate version is Featherstone's, 1999, part 2, whose text we do not have; these equations
are our derivation, and are those by which doubling algorithms for Riccati equations join intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.algorithms.assemblies import GROUND, Part, Whole
from legged.algorithms.jointed import Jointed, carried
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, sum_of
from legged.trace.labels import item
from legged.trace.where import where

ANY_INERTIA = True
"""A thin rod is a body like others, if the joints of its assembly find inertia."""
_NOTHING = 1e-14  # of a diagonal entry: a pivot that is rounding
_STILL = np.zeros((6, 6))


@dataclass(frozen=True, eq=False)
class Response:
    """What an assembly answers, each body in its coordinates.

    Attributes:
        root: Place of the root; its own A, Phi and b, as a handle, are 1, 0 and 0.
        I: (6, 6). p: (6,).
        A: By other handles, (6, 6). Phi: By pairs of these, (6, 6). b: By other handles, (6,).
    """

    root: int
    I: Array
    p: Array
    A: dict[int, Array]
    Phi: dict[tuple[int, int], Array]
    b: dict[int, Array]

    def way(self, i: int) -> Array:
        """Return A_i, (6, 6)."""
        return self.A[i] if i in self.A else np.eye(6)

    def mobility(self, i: int, j: int) -> Array:
        """Return Phi_ij, (6, 6)."""
        return self.Phi.get((i, j), _STILL)

    def free(self, i: int) -> Array:
        """Return b_i, (6,)."""
        return self.b[i] if i in self.b else np.zeros(6)


@dataclass(frozen=True, eq=False)
class Junction:
    """A joint between two assemblies, the outer one seen through the inner one's mobility.

    Attributes:
        joint: The body that it carries, with the joint.
        J: Inertia of the outer assembly in series with the inner mobility, (I^-1 + Phi)^-1, (6, 6).
        slack: 1 - J Phi, (6, 6). Phi: X Phi_pp X^T of the inner assembly, (6, 6).
        J_h: J h, (6, d). D: h^T J h, factored.
        inner, outer: The assemblies.
    """

    joint: Jointed
    J: Array
    slack: Array
    Phi: Array
    J_h: Array
    D: tuple
    inner: Response
    outer: Response


def assembled(whole: Whole, bodies: Sequence[Jointed], a_0: Array, junctions: dict[int, Junction]) -> Response:
    """Return the response of an assembly from those of its parts, and note the junctions on the way."""
    if whole == GROUND:
        return Response(GROUND - 1, _STILL, np.zeros(6), {GROUND: _STILL}, {}, {GROUND: a_0})
    if isinstance(whole, int):
        return Response(whole, bodies[whole].I, bodies[whole].p, {}, {}, {})
    inner, outer = (assembled(part, bodies, a_0, junctions) for part in (whole.inner, whole.outer))
    with item(whole.joint):
        junctions[whole.joint] = junction = _junction(bodies[whole.joint], inner, outer)
        return _joined(whole, junction)


def _junction(joint: Jointed, inner: Response, outer: Response) -> Junction:
    """Return what the joint between two assemblies meets.

    J = G (1 + G^T Phi G)^-1 G^T with I = G G^T: symmetric, and no worse conditioned than I.
    """
    X, h, p = joint.X, joint.h, joint.parent
    if (p, p) in inner.Phi:
        Phi, G = mirror(carried(X, carried(X, inner.mobility(p, p)).T)), _root(outer.I)
        K = factor_symmetric(mirror(np.eye(6) + G.T @ Phi @ G))
        J = mirror(G @ np.array([solve_factored(K, row) for row in G]).T)
        slack = np.eye(6) - J @ Phi
    else:
        Phi, J, slack = _STILL, outer.I, np.eye(6)
    J_h = J @ h
    return Junction(joint, J, slack, Phi, J_h, factor_symmetric(mirror(h.T @ J_h + joint.reflected)), inner, outer)


def _root(S: Array) -> Array:
    """Return G, lower triangular, with S = G G^T for a positive semidefinite S, (n, n); no column for a zero pivot."""
    n = len(S)
    G: list[list[Any]] = [[0.0] * n for _ in range(n)]
    reciprocal: list[Any] = []
    for i in range(n):
        for k in range(i):
            G[i][k] = (S[i, k] - sum_of(G[i][m] * G[k][m] for m in range(k))) * reciprocal[k]
        pivot = S[i, i] - sum_of(G[i][k] * G[i][k] for k in range(i))
        counts = pivot > _NOTHING * S[i, i]
        reciprocal.append(where(counts, 1.0 / np.sqrt(where(counts, pivot, 1.0)), 0.0))
        G[i][i] = pivot * reciprocal[i]
    return np.array(G)


def _joined(whole: Part, junction: Junction) -> Response:
    """Return the response of two assemblies with a joint between them.

    With alpha = X a_p + c if nothing pulled at p, and pi = p^outer less forces at its handles, the joint's force is
    W alpha + Z pi + Psi tau, and the outer root's acceleration Z^T alpha - Q pi + e tau, where

        Psi = J h D^-1,    W = J - Psi D Psi^T,    Z = (1 - Psi h^T) (1 - J Phi),
        e = (1 - Phi J) h D^-1,    Q = (I^outer + Phi^-1)^-1 + e D e^T
    """
    inner, outer, joint, J_h = junction.inner, junction.outer, junction.joint, junction.J_h
    X, p = joint.X, joint.parent
    Psi = _divided(junction.D, J_h)
    W = mirror(junction.J - Psi @ J_h.T)
    Z = junction.slack - Psi @ (joint.h.T @ junction.slack)
    moved = junction.slack.T @ joint.h
    e = _divided(junction.D, moved)
    Q = mirror(junction.Phi @ junction.slack + e @ moved.T)
    alpha = X @ inner.free(p) + joint.c
    force = W @ alpha + Psi @ joint.tau + Z @ outer.p
    a = Z.T @ alpha + e @ joint.tau - Q @ outer.p
    way = carried(X, inner.way(p).T)
    felt = {i: carried(X, inner.mobility(p, i)) for i in whole.handles if i == inner.root or i in inner.A}
    A, b = {}, {}
    for i in whole.handles:
        if i == inner.root:
            continue
        if i in felt:
            A[i] = inner.A[i] - way.T @ (W @ felt[i])
            b[i] = inner.b[i] - felt[i].T @ force
        else:
            A[i] = way.T @ (Z @ outer.way(i))
            b[i] = outer.free(i) + outer.way(i).T @ a
    Phi: dict[tuple[int, int], Array] = {}
    for i in A:
        for j in A:
            if (j, i) in Phi:
                Phi[i, j] = Phi[j, i].T
            elif i in felt and j in felt:
                Phi[i, j] = inner.mobility(i, j) - felt[i].T @ (W @ felt[j])
            elif i in felt:
                Phi[i, j] = felt[i].T @ (Z @ outer.way(j))
            elif j in felt:
                Phi[i, j] = (felt[j].T @ (Z @ outer.way(i))).T
            else:
                Phi[i, j] = outer.mobility(i, j) + outer.way(i).T @ (Q @ outer.way(j))
        Phi[i, i] = mirror(Phi[i, i])
    return Response(inner.root, mirror(inner.I + way.T @ (W @ way)), inner.p + way.T @ force, A, Phi, b)


def released(whole: Whole, forces: dict[int, Array], junctions: dict[int, Junction], qdd: dict[int, Array]) -> None:
    """Find the joint accelerations inside a tree from the forces at its handles, (6,) by place."""
    _released(whole, np.zeros(6), forces, junctions, qdd)


def _released(
    whole: Whole, a: Array, forces: dict[int, Array], junctions: dict[int, Junction], qdd: dict[int, Array]
) -> None:
    """Find the joint accelerations inside an assembly whose root accelerates by a, (6,)."""
    if isinstance(whole, int):
        return
    k, junction = whole.joint, junctions[whole.joint]
    joint, inner, outer = junction.joint, junction.inner, junction.outer
    p, within = joint.parent, {i: forces[i] for i in whole.handles if i in forces}
    near = {i: f for i, f in within.items() if i == inner.root or i in inner.A}
    far = {i: f for i, f in within.items() if i not in near}
    with item(k):
        a_p = inner.way(p).T @ a + inner.free(p) + sum_of(inner.mobility(p, i) @ f for i, f in near.items())
        alpha = joint.X @ a_p + joint.c
        pi = outer.p - sum_of(outer.way(i) @ f for i, f in far.items())
        qdd[k] = solve_factored(junction.D, joint.tau - junction.J_h.T @ alpha - joint.h.T @ (junction.slack @ pi))
        alpha = alpha + joint.h @ qdd[k]
        force = junction.J @ alpha + junction.slack @ pi
        near[p] = near.get(p, np.zeros(6)) - joint.X.T @ force
        a_k = alpha - junction.Phi @ force
    _released(whole.inner, a, near, junctions, qdd)
    _released(whole.outer, a_k, far, junctions, qdd)


def _divided(D: tuple, columns: Array) -> Array:
    """Return M D^-1 for a matrix of columns, (6, d), and factors of D."""
    return np.array([solve_factored(D, row) for row in columns]).reshape(columns.shape)
