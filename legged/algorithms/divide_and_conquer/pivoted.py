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

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.assemblies import GROUND, Part, Whole
from legged.algorithms.divide_and_conquer.closing import Closing, Parts, closing
from legged.algorithms.jointed import Jointed, carried
from legged.compiler.ir import where
from legged.compiler.ir.annotations import item
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, sum_of

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


class Joined(NamedTuple):
    """How the parts of an assembly were joined, and its loops closed, if it has some.

    Attributes:
        junction: Between the parts. loops: As they are closed.
        led: What the root's acceleration does to the loops' rows, (rows, 6).
    """

    junction: Junction
    loops: Closing | None
    led: Array


def assembled(whole: Whole, parts: Parts, joined: dict[int, Joined]) -> Response:
    """Return the response of an assembly from those of its parts, and note on the way how these were joined."""
    if whole == GROUND:
        return Response(GROUND - 1, _STILL, np.zeros(6), {GROUND: _STILL}, {}, {GROUND: parts.a_0})
    if isinstance(whole, int):
        return Response(whole, parts.bodies[whole].I, parts.bodies[whole].p, {}, {}, {})
    inner, outer = (assembled(part, parts, joined) for part in (whole.inner, whole.outer))
    with item(whole.joint):
        junction = _junction(parts.bodies[whole.joint], inner, outer)
        response = _joined(whole, junction)
        if not whole.loops:
            joined[whole.joint] = Joined(junction, None, np.zeros((0, 6)))
            return response
        groups = [parts.groups[g] for g in whole.loops]
        loops = closing(groups, whole.open_handles, response.mobility, response.free)
        led = np.zeros((len(loops.lack), 6)) + sum_of(rows @ response.way(k).T for k, rows in loops.N.items())
        joined[whole.joint] = Joined(junction, loops, led)
        return _closed(whole, response, loops, led)


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
    felt = {i: carried(X, inner.mobility(p, i)) for i in whole.open_handles if i == inner.root or i in inner.A}
    A, b = {}, {}
    for i in whole.open_handles:
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


def _closed(whole: Part, free: Response, loops: Closing, led: Array) -> Response:
    """Return the response of an assembly whose loops are closed, from that before.

    With S = N Phi N^T and K = N A^T, which is `led`, rows without forces from outside lack c - N b - K a, so that
    I + K^T S^-1 K, A_i - K^T S^-1 N Phi_i, Phi_ij - (N Phi_i)^T S^-1 N Phi_j take the places of I, A and Phi.
    """
    others = [i for i in whole.handles if i != free.root]
    own, lack = loops.solved(led), loops.solved(loops.lack)
    given = {i: loops.solved(loops.felt[i]) for i in others}
    A = {i: free.A[i] - led.T @ given[i] for i in others}
    b = {i: free.b[i] + loops.felt[i].T @ lack for i in others}
    Phi = {(i, j): free.mobility(i, j) - loops.felt[i].T @ given[j] for i in others for j in others}
    for i in others:
        Phi[i, i] = mirror(Phi[i, i])
    return Response(free.root, mirror(free.I + led.T @ own), free.p - led.T @ lack, A, Phi, b)


def released(whole: Whole, joined: dict[int, Joined], qdd: dict[int, Array]) -> None:
    """Find the joint accelerations of the whole robot."""
    _released(whole, np.zeros(6), {}, joined, qdd)


def _released(
    whole: Whole, a: Array, forces: dict[int, Array], joined: dict[int, Joined], qdd: dict[int, Array]
) -> None:
    """Find the joint accelerations inside an assembly from its root's, (6,), and forces at handles, (6,) by place."""
    if isinstance(whole, int):
        return
    k = whole.joint
    junction, loops, led = joined[k]
    joint, inner, outer = junction.joint, junction.inner, junction.outer
    with item(k):
        if loops is not None:
            forces = loops.pulled(forces, loops.lack - led @ a)
        p, within = joint.parent, {i: forces[i] for i in whole.open_handles if i in forces}
        near = {i: f for i, f in within.items() if i == inner.root or i in inner.A}
        far = {i: f for i, f in within.items() if i not in near}
        a_p = inner.way(p).T @ a + inner.free(p) + sum_of(inner.mobility(p, i) @ f for i, f in near.items())
        alpha = joint.X @ a_p + joint.c
        pi = outer.p - sum_of(outer.way(i) @ f for i, f in far.items())
        qdd[k] = solve_factored(junction.D, joint.tau - junction.J_h.T @ alpha - joint.h.T @ (junction.slack @ pi))
        alpha = alpha + joint.h @ qdd[k]
        force = junction.J @ alpha + junction.slack @ pi
        near[p] = near.get(p, np.zeros(6)) - joint.X.T @ force
        a_k = alpha - junction.Phi @ force
    _released(whole.inner, a, near, joined, qdd)
    _released(whole.outer, a_k, far, joined, qdd)


def _divided(D: tuple, columns: Array) -> Array:
    """Return M D^-1 for a matrix of columns, (6, d), and factors of D."""
    return np.array([solve_factored(D, row) for row in columns]).reshape(columns.shape)
