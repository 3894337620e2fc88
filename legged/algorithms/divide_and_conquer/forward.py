"""Forward dynamics by divide and conquer, in either version; loops closed where the robot meets the ground."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from legged.algorithms.assemblies import GROUND, Part, divided
from legged.algorithms.divide_and_conquer import inverse, pivoted
from legged.algorithms.jointed import Jointed, jointed, rates
from legged.algorithms.links import links_at
from legged.algorithms.operational.propagators import end_maps
from legged.algorithms.prefix import velocities
from legged.dynamics.arguments import Wrenches, finite, read
from legged.errors import DefinitionError, SingularError, UnknownNameError
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored
from legged.trace.labels import stage

WHAT = "the divide-and-conquer algorithm"
VERSIONS: dict[str, ModuleType] = {"inverse": inverse, "pivoted": pivoted}
_SINGULAR = 1e-12  # least mobility across a loop to its greatest
End = tuple[str | int, Array]


def forward_dynamics(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    closing: tuple[End, End] | None = None,
    version: str = "pivoted",
) -> Array:
    """Return the acceleration under given forces, (nv,), by divide and conquer.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.
        closing: Two ends, (link, position (3,) [m] in link axes), that are one: a loop, closed where the robot meets
            the ground. They must meet and move alike, see `operators.closed_chain`.
        version: "pivoted", more accurate on long chains, which takes thin rods, too; or "inverse", the first, with
            less depth.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others, gyroscopic rotors, and massless
        bodies where the robot branches or ends. SingularError where the loop is singular, too. UnknownNameError for
        another version.
    """
    if version not in VERSIONS:
        raise UnknownNameError("version", version, VERSIONS)
    form = VERSIONS[version]
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 velocities and bodies"):
        twists = velocities(links_at(robot, q), v)
        bodies, a_0 = jointed(robot, q, v, tau, wrenches, WHAT, twists=twists, any_inertia=form.ANY_INERTIA)
        ends = _ends(robot, q, bodies, closing)
    trees = _trees(bodies, [place for place, _ in ends])
    with stage("2 assemblies"):
        junctions: dict[int, Any] = {}
        forces = _closed([form.assembled(tree, bodies, a_0, junctions) for tree in trees], ends)
    with stage("3 accelerations"):
        qdd: dict[int, Array] = {}
        for tree in trees:
            form.released(tree, forces, junctions, qdd)
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


def _closed(responses: Sequence[Any], ends: Sequence[tuple[int, Array]]) -> dict[int, Array]:
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
