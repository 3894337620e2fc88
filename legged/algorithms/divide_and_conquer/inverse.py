"""The first version: every assembly is known by its inverse inertias.

All that the rest needs to know of an assembly is how its handles accelerate under forces there:

    a_i = sum over the handles j of Phi_ij f_j + b_i

Source: Featherstone 1999, part 1, and part 2 for trees and loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from legged.algorithms.assemblies import GROUND, Part, Whole
from legged.algorithms.divide_and_conquer.closing import Closing, Parts, closing
from legged.algorithms.jointed import Jointed, carried
from legged.compiler.ir.annotations import item
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, sum_of

ANY_INERTIA = False
"""Bodies without inertia about some axis have no inverse."""


@dataclass(frozen=True, eq=False)
class Response:
    """How an assembly's handles accelerate, each in its body's coordinates.

    Attributes:
        Phi: By pairs of handles, (6, 6): inverse inertias; Phi[j, i] is the transpose of Phi[i, j].
        b: By handle, (6,): accelerations without forces at handles.
    """

    Phi: dict[tuple[int, int], Array]
    b: dict[int, Array]


@dataclass(frozen=True, eq=False)
class Junction:
    """A joint between two assemblies: f = gamma + W g for the gap g that forces at the handles would open.

    Attributes:
        joint: The body that it carries, with the joint.
        W: (6, 6). gamma: Force without forces at the handles, (6,), on the outer body in its coordinates.
        gap: X a_p + c - a_k of the two bodies when apart, (6,). G: What a force at a handle adds to it, (6, 6) each.
        V_h: V h, (6, d). D: h^T V h, factored.
    """

    joint: Jointed
    W: Array
    gamma: Array
    gap: Array
    G: dict[int, Array]
    V_h: Array
    D: tuple


class Joined(NamedTuple):
    """How the parts of an assembly were joined, and its loops closed, if it has some."""

    junction: Junction
    loops: Closing | None


def assembled(whole: Whole, parts: Parts, joined: dict[int, Joined]) -> Response:
    """Return the response of an assembly from those of its parts, and note on the way how these were joined."""
    if isinstance(whole, int):
        return _single(whole, parts)
    inner, outer = (assembled(part, parts, joined) for part in (whole.inner, whole.outer))
    with item(whole.joint):
        junction = _junction(whole, parts.bodies[whole.joint], inner, outer)
        response, loops = _joined(whole, junction, inner, outer), None
        if whole.loops:
            groups = [parts.groups[g] for g in whole.loops]
            loops = closing(groups, whole.open_handles, lambda i, j: response.Phi[i, j], lambda i: response.b[i])
        joined[whole.joint] = Joined(junction, loops)
        return response if loops is None else _closed(whole, response, loops)


def _single(place: int, parts: Parts) -> Response:
    """Return the response of one body, or of the ground."""
    if place == GROUND:
        return Response({(GROUND, GROUND): np.zeros((6, 6))}, {GROUND: parts.a_0})
    with item(place):
        body = parts.bodies[place]
        factors = factor_symmetric(body.I)
        Phi = mirror(np.array([solve_factored(factors, unit) for unit in np.eye(6)]))
        return Response({(place, place): Phi}, {place: -(Phi @ body.p)})


def _junction(whole: Part, joint: Jointed, inner: Response, outer: Response) -> Junction:
    """Return what the joint between two assemblies transmits.

    With a_i = X a_p + h qdd + c and Y = Phi^outer + X Phi^inner X^T:

        V     = Y^-1
        W     = V - V h (h^T V h)^-1 h^T V
        f     = W (X b^inner + c - b^outer) + V h (h^T V h)^-1 tau
    """
    X, h, k, p = joint.X, joint.h, whole.joint, joint.parent
    Y = mirror(outer.Phi[k, k] + carried(X, carried(X, inner.Phi[p, p]).T))
    factors = factor_symmetric(Y)
    V = mirror(np.array([solve_factored(factors, unit) for unit in np.eye(6)]))
    V_h = V @ h
    D = factor_symmetric(mirror(h.T @ V_h + joint.reflected))
    W = mirror(V - V_h @ np.array([solve_factored(D, row) for row in V_h]).reshape(V_h.shape).T)
    gap = X @ inner.b[p] + joint.c - outer.b[k]
    gamma = W @ gap + V_h @ solve_factored(D, joint.tau)
    G = {i: carried(X, inner.Phi[p, i]) if i in inner.b else -outer.Phi[k, i] for i in whole.open_handles}
    return Junction(joint, W, gamma, gap, G, V_h, D)


def _joined(whole: Part, junction: Junction, inner: Response, outer: Response) -> Response:
    """Return the response of two assemblies with a joint between them."""
    Phi, b = {}, {}
    for i in whole.open_handles:
        own, G = inner if i in inner.b else outer, junction.G[i]
        b[i] = own.b[i] - G.T @ junction.gamma
        felt = G.T @ junction.W
        for j in whole.open_handles:
            if (j, i) in Phi:
                Phi[i, j] = Phi[j, i].T
                continue
            block = -(felt @ junction.G[j])
            if j in own.b:
                block = own.Phi[i, j] + block
            Phi[i, j] = mirror(block) if i == j else block
    return Response(Phi, b)


def _closed(whole: Part, free: Response, loops: Closing) -> Response:
    """Return the response of an assembly whose loops are closed, from that before.

    Phi_ij - (N Phi_i)^T S^-1 N Phi_j with S = N Phi N^T, and b_i + (N Phi_i)^T S^-1 (c - N b).
    """
    given = {i: loops.solved(loops.felt[i]) for i in whole.handles}
    Phi = {(i, j): free.Phi[i, j] - loops.felt[i].T @ given[j] for i in whole.handles for j in whole.handles}
    for i in whole.handles:
        Phi[i, i] = mirror(Phi[i, i])
    lack = loops.solved(loops.lack)
    return Response(Phi, {i: free.b[i] + loops.felt[i].T @ lack for i in whole.handles})


def released(whole: Whole, joined: dict[int, Joined], qdd: dict[int, Array]) -> None:
    """Find the joint accelerations of the whole robot."""
    _released(whole, {}, joined, qdd)


def _released(whole: Whole, forces: dict[int, Array], joined: dict[int, Joined], qdd: dict[int, Array]) -> None:
    """Find the joint accelerations inside an assembly from the forces at its handles, (6,) by place."""
    if isinstance(whole, int):
        return
    k = whole.joint
    with item(k):
        junction, loops = joined[k]
        if loops is not None:
            forces = loops.pulled(forces, loops.lack)
        opened = np.zeros(6) + sum_of(junction.G[i] @ forces[i] for i in whole.open_handles if i in forces)
        f = junction.gamma + junction.W @ opened
        qdd[k] = solve_factored(junction.D, junction.joint.tau - junction.V_h.T @ (junction.gap + opened))
        p = junction.joint.parent
        forces_k = forces[k] + f if k in forces else f
        forces_p = forces[p] if p in forces else np.zeros(6)
    _released(whole.inner, forces | {p: forces_p - junction.joint.X.T @ f}, joined, qdd)
    _released(whole.outer, forces | {k: forces_k}, joined, qdd)
