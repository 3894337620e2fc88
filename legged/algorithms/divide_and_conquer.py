"""The divide-and-conquer articulated-body algorithm: forward dynamics in O(log n) depth, for parallel computers.

An assembly is a connected part of the robot. It meets the rest at its *handles*, bodies with a joint that leads out of
it, and all that the rest needs to know is how these accelerate under forces there:

    a_i = sum over the handles j of Phi_ij f_j + b_i

Two assemblies and the joint between them are an assembly again. Bodies come together in pairs, pairs in fours: what
depends on each other is as many steps as that takes, the logarithm of the bodies if the parts are balanced.

Source: Featherstone, "A divide-and-conquer articulated-body algorithm for parallel O(log(n)) calculation of rigid-body
dynamics", parts 1 and 2, International Journal of Robotics Research 18(9), 1999.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legged.algorithms.assemblies import Part, Whole, divided
from legged.algorithms.jointed import Jointed, carried, jointed, rates
from legged.algorithms.links import links_at
from legged.algorithms.operational.propagators import end_maps
from legged.algorithms.prefix import velocities
from legged.dynamics.arguments import Wrenches, finite, read
from legged.errors import DefinitionError, SingularError
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, sum_of
from legged.trace.labels import item, stage

WHAT = "the divide-and-conquer algorithm"
GROUND = -1
_SINGULAR = 1e-12  # least mobility across a loop to its greatest
End = tuple[str | int, Array]


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


def forward_dynamics(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None, *, closing: tuple[End, End] | None = None
) -> Array:
    """Return the acceleration under given forces, (nv,), by divide and conquer.

    Across a joint, with a_i = X a_p + h qdd + c and Y = Phi^outer + X Phi^inner X^T:

        V     = Y^-1
        W     = V - V h (h^T V h)^-1 h^T V
        f     = W (X b^inner + c - b^outer) + V h (h^T V h)^-1 tau

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.
        closing: Two ends, (link, position (3,) [m] in link axes), that are one: a loop, closed where the robot meets
            the ground. They must meet and move alike, see `operators.closed_chain`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others, gyroscopic rotors, and massless
        bodies where the robot branches or ends. SingularError where the loop is singular, too.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 velocities and bodies"):
        twists = velocities(links_at(robot, q), v)
        bodies, a_0 = jointed(robot, q, v, tau, wrenches, WHAT, twists=twists)
        ends = _ends(robot, q, bodies, closing)
    trees = _trees(bodies, [place for place, _ in ends])
    with stage("2 assemblies"):
        junctions: dict[int, Junction] = {}
        forces = _closed([_assembled(tree, bodies, a_0, junctions) for tree in trees], ends)
    with stage("3 accelerations"):
        qdd: dict[int, Array] = {}
        for tree in trees:
            _released(tree, forces, junctions, qdd)
    return finite(robot, "the forward dynamics", rates(robot, bodies, [qdd[k] for k in range(len(bodies))]))


def _ends(
    robot: Robot, q: Array, bodies: Sequence[Jointed], closing: tuple[End, End] | None
) -> list[tuple[int, Array]]:
    """Return (place of the body, T (6, 6)) of each end to close; T takes its acceleration to the end's, world axes."""
    if closing is None:
        return []
    places = {body.index: place for place, body in enumerate(bodies)}
    ends = end_maps(robot, q, closing)
    if any(k not in places for k, _ in ends) or ends[0][0] == ends[1][0]:
        raise DefinitionError(f"{WHAT} closes loops between two bodies that move and have inertia")
    return [(places[k], T) for k, T in ends]


def _trees(bodies: Sequence[Jointed], ends: Sequence[int]) -> list[Part]:
    """Return each tree of the robot, the ground its innermost part; only what lies on a fixed base has several."""
    parents = [body.parent for body in bodies]
    root: list[int] = []
    for k, parent in enumerate(parents):
        root.append(k if parent == GROUND else root[parent])
    trees = []
    for r in sorted(set(root)):
        places = [k for k in range(len(bodies)) if root[k] == r]
        held = tuple(sorted(set(ends) & set(places)))
        trees.append(Part(GROUND, divided(places, parents, [*held, r]), r, held))
    return trees


def _assembled(whole: Whole, bodies: Sequence[Jointed], a_0: Array, junctions: dict[int, Junction]) -> Response:
    """Return the response of an assembly from those of its parts, and note the junctions on the way."""
    if isinstance(whole, int):
        return _single(whole, bodies, a_0)
    inner, outer = (_assembled(part, bodies, a_0, junctions) for part in (whole.inner, whole.outer))
    with item(whole.joint):
        junctions[whole.joint] = junction = _junction(whole, bodies[whole.joint], inner, outer)
        return _joined(whole, junction, inner, outer)


def _single(place: int, bodies: Sequence[Jointed], a_0: Array) -> Response:
    """Return the response of one body, or of the ground."""
    if place == GROUND:
        return Response({(GROUND, GROUND): np.zeros((6, 6))}, {GROUND: a_0})
    with item(place):
        factors = factor_symmetric(bodies[place].I)
        Phi = mirror(np.array([solve_factored(factors, unit) for unit in np.eye(6)]))
        return Response({(place, place): Phi}, {place: -(Phi @ bodies[place].p)})


def _junction(whole: Part, joint: Jointed, inner: Response, outer: Response) -> Junction:
    """Return what the joint between two assemblies transmits."""
    X, h, k, p = joint.X, joint.h, whole.joint, joint.parent
    Y = mirror(outer.Phi[k, k] + carried(X, carried(X, inner.Phi[p, p]).T))
    factors = factor_symmetric(Y)
    V = mirror(np.array([solve_factored(factors, unit) for unit in np.eye(6)]))
    V_h = V @ h
    D = factor_symmetric(mirror(h.T @ V_h + joint.reflected))
    W = mirror(V - V_h @ np.array([solve_factored(D, row) for row in V_h]).reshape(V_h.shape).T)
    gap = X @ inner.b[p] + joint.c - outer.b[k]
    gamma = W @ gap + V_h @ solve_factored(D, joint.tau)
    G = {i: carried(X, inner.Phi[p, i]) if i in inner.b else -outer.Phi[k, i] for i in whole.handles}
    return Junction(joint, W, gamma, gap, G, V_h, D)


def _joined(whole: Part, junction: Junction, inner: Response, outer: Response) -> Response:
    """Return the response of two assemblies with a joint between them."""
    Phi, b = {}, {}
    for i in whole.handles:
        own, G = inner if i in inner.b else outer, junction.G[i]
        b[i] = own.b[i] - G.T @ junction.gamma
        felt = G.T @ junction.W
        for j in whole.handles:
            if (j, i) in Phi:
                Phi[i, j] = Phi[j, i].T
                continue
            block = -(felt @ junction.G[j])
            if j in own.b:
                block = own.Phi[i, j] + block
            Phi[i, j] = mirror(block) if i == j else block
    return Response(Phi, b)


def _closed(responses: Sequence[Response], ends: Sequence[tuple[int, Array]]) -> dict[int, Array]:
    """Return the forces on the bodies of two ends that are one, (6,) by place; none without ends."""
    if not ends:
        return {}
    Phi = {pair: block for response in responses for pair, block in response.Phi.items()}
    b = {i: own for response in responses for i, own in response.b.items()}
    signed = [(place, sign * T) for sign, (place, T) in zip((1.0, -1.0), ends, strict=True)]
    mobility, apart = np.zeros((6, 6)), np.zeros(6)
    for i, T in signed:
        apart = apart + T @ b[i]
        for j, other in signed:
            if (i, j) in Phi:
                mobility = mobility + T @ Phi[i, j] @ other.T
    f = solve_factored(factor_symmetric(_regular(mirror(mobility))), -apart)
    return {place: T.T @ f for place, T in signed}


def _regular(mobility: Array) -> Array:
    """Return the mobility across a loop, or raise SingularError if numbers show a direction of none."""
    if mobility.dtype != object:
        sizes = np.linalg.eigvalsh(mobility)
        if sizes[0] <= _SINGULAR * sizes[-1]:
            raise SingularError(
                f"the loop cannot open in some direction, as that of a planar mechanism (mobilities {sizes[0]:.1e} to "
                f"{sizes[-1]:.1e}), so that the force there is not determined; leave out what is redundant"
            )
    return mobility


def _released(whole: Whole, forces: dict[int, Array], junctions: dict[int, Junction], qdd: dict[int, Array]) -> None:
    """Find the joint accelerations inside an assembly from the forces at its handles, (6,) by place."""
    if isinstance(whole, int):
        return
    k = whole.joint
    with item(k):
        joined = junctions[k]
        opened = np.zeros(6) + sum_of(joined.G[i] @ forces[i] for i in whole.handles)
        f = joined.gamma + joined.W @ opened
        qdd[k] = solve_factored(joined.D, joined.joint.tau - joined.V_h.T @ (joined.gap + opened))
        p = joined.joint.parent
        forces_k = forces[k] + f if k in whole.handles else f
        forces_p = forces[p] if p in whole.handles else np.zeros(6)
    _released(whole.inner, forces | {p: forces_p - joined.joint.X.T @ f}, junctions, qdd)
    _released(whole.outer, forces | {k: forces_k}, junctions, qdd)
