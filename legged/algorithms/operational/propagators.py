"""The inverse operational-space inertia of several points, without the inertia matrix and without Jacobians.

`by_propagators` is the extended-force-propagator algorithm. `by_constraint_forces` and `by_division` have a depth that
grows with the logarithm of the number of bodies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from legged.algorithms.articulated import articulated_inertias, refuse_followers
from legged.algorithms.divide_and_conquer.forward import inverse_inertia_of_handles
from legged.algorithms.linear_algebra import solve_rows
from legged.algorithms.links import Links, links_at, transform_forces
from legged.algorithms.massive_bodies import is_massless, parallel_prefix_motion
from legged.algorithms.sparse.constraint_force import WrenchMaps, resting_joints, schur_complement
from legged.compiler.ir import item, stage
from legged.dynamics.arguments import finite, read
from legged.dynamics.kinematics import motion, on_bodies
from legged.elements import any_element
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, skew

Points = Sequence[tuple[str | int, Array]]


@dataclass(frozen=True)
class ForcePropagator:
    """The extended force propagator over the links from a body, or a point, to the next branching body inward.

    Attributes:
        inner: Index of that branching body, or -1 for the ground.
        chi: Propagator from n forces at the outer end to the inner body, (6, n); n is 6 between branching bodies.
        mobility: Inverse inertia at the outer end while the inner body is held fixed, (n, n).
    """

    inner: int
    chi: Array
    mobility: Array


@any_element
def by_propagators(robot: Robot, q: Array, points: Points) -> Array:
    """Return J M^-1 J^T, (6 points, 6 points), by the extended-force-propagator algorithm.

        chi_p      = X_k^T (1 - U D^-1 h^T) chi_k              a force, one joint farther inward
        mobility   = sum of (h^T chi_k)^T D^-1 h^T chi_k       over the joints of a propagator
        Omega      = mobility + chi^T Omega_inner chi          at a point, and at branching bodies
        block(i,j) = chi_i^T Omega chi_j                       at the body where the paths to i and j branch

    Each run of links between branching bodies is traversed once for all points beyond it, so that no loop runs
    over both bodies and pairs of points: O(n + m d + m^2) for m points of a tree with d branching bodies on a path.

    Args:
        robot: The robot. q: Configuration, (nq,).
        points: (link, position (3,) [m] in link axes); blocks are [angular; linear], world axes.

    Raises:
        DefinitionError: For joints that follow others.

    Source: Wensing, Featherstone, Orin, "A reduced-order recursive algorithm for the computation of the
    operational-space inertia matrix", International Conference on Robotics and Automation, 2012.
    """
    refuse_followers(robot, "the extended-force-propagator algorithm")
    (q,) = read(robot, q=q)
    links, ends = links_at(robot, q), twist_maps(robot, motion(robot, q).rotation, points)
    with stage("1 articulated inertias"):
        articulated = articulated_inertias(links)
    blocks = inverse_inertia_blocks(links, articulated.D, articulated.Psi, [(k, T.T) for k, T in ends])
    return finite(robot, "the operational-space inertia", mirror(np.block(blocks)) if ends else np.zeros((0, 0)))


def inverse_inertia_blocks(
    links: Links, D: Sequence[tuple], Psi: Sequence[Array], ends: Sequence[tuple[int, Array]]
) -> list[list[Array]]:
    """Return the blocks of J M^-1 J^T, (n, n') each, those below the diagonal as zeros; see `by_propagators`.

    Args:
        links: The robot's bodies.
        D: Factored inertia along each joint. Psi: U D^-1 of each joint, (6, nv of the joint), mixed units, in the axes
            of its body; both as in `ArticulatedInertias`.
        ends: (body, map from n forces to wrenches about the body origin in body axes, (6, n), mixed units).
    """
    with stage("2 spans"):
        branching = _branching_bodies(links.robot, [k for k, _ in ends])
        between = {k: _propagator(links, D, Psi, k, np.eye(6), branching - {k}) for k in sorted(branching)}
        outer = [_propagator(links, D, Psi, k, chi, branching) for k, chi in ends]
    with stage("3 blocks"):
        Omega: dict[int, Array] = {-1: np.zeros((6, 6))}
        for k, propagator in between.items():
            Omega[k] = _inverse_inertia(propagator, Omega)
        return _blocks(between, outer, Omega)


@any_element
def twist_maps(robot: Robot, rotation: Sequence[Array], points: Points) -> list[tuple[int, Array]]:
    """Return (body, T) of each point; T, (6, 6), maps the body's twist, body axes, to the point's, world axes.

    Args:
        robot: The robot. rotation: Rotation matrix of each body, (3, 3), [1], body to world axes.
        points: (link, position (3,) [m] in link axes).
    """
    maps = []
    for k, r in on_bodies(robot, list(points)):
        R = rotation[k]
        maps.append((k, np.block([[R, np.zeros((3, 3))], [-R @ skew(r), R]])))
    return maps


def _branching_bodies(robot: Robot, ends: list[int]) -> set[int]:
    """Return the bodies where the paths to two ends branch, including bodies that carry an end and lie on a path."""
    outward: dict[int, set[int]] = {}
    for number, end in enumerate(ends):
        next_outward = -1 - number
        for k in robot.ancestors(end):
            outward.setdefault(k, set()).add(next_outward)
            next_outward = k
    return {k for k, branches in outward.items() if len(branches) > 1}


def _propagator(
    links: Links, D: Sequence[tuple], Psi: Sequence[Array], k: int, chi: Array, stops: set[int]
) -> ForcePropagator:
    """Return the propagator that begins with forces chi, (6, n), on body k and ends at the next body among `stops`."""
    n = chi.shape[1]
    mobility = np.zeros((n, n))
    while k >= 0 and k not in stops:
        with item(k):
            parent = links.robot.bodies[k].parent
            g = links.h[k].T @ chi
            mobility = mobility + mirror(g.T @ solve_rows(D[k], g.T).T)
            chi, k = transform_forces(links.X[k], chi - Psi[k] @ g), parent
    return ForcePropagator(k, chi, mobility)


def _inverse_inertia(propagator: ForcePropagator, Omega: dict[int, Array]) -> Array:
    """Return the inverse inertia at the outer end of a propagator, (n, n)."""
    if propagator.inner < 0:
        return propagator.mobility
    return mirror(propagator.mobility + propagator.chi.T @ Omega[propagator.inner] @ propagator.chi)


def _blocks(
    between: dict[int, ForcePropagator], outer: list[ForcePropagator], Omega: dict[int, Array]
) -> list[list[Array]]:
    """Return the blocks of the matrix, those below the diagonal as zeros."""
    paths = [_propagators_inward(between, propagator) for propagator in outer]
    blocks = [[np.zeros((a.mobility.shape[0], b.mobility.shape[0])) for b in outer] for a in outer]
    for i, propagator in enumerate(outer):
        blocks[i][i] = _inverse_inertia(propagator, Omega)
        chi_Omega = {k: chi.T @ Omega[k] for k, chi in paths[i].items()}
        for j in range(i + 1, len(outer)):
            branch = next((k for k in chi_Omega if k in paths[j]), None)
            if branch is not None:
                blocks[i][j] = chi_Omega[branch] @ paths[j][branch]
    return blocks


def _propagators_inward(between: dict[int, ForcePropagator], propagator: ForcePropagator) -> dict[int, Array]:
    """Return the propagators from an end to each branching body on its path, from the end inward."""
    path, chi = {}, propagator.chi
    while propagator.inner >= 0:
        path[propagator.inner] = chi
        propagator = between[propagator.inner]
        chi = propagator.chi @ chi
    return path


@any_element
def by_constraint_forces(robot: Robot, q: Array, points: Points) -> Array:
    """Return J M^-1 J^T = C - B^T A^-1 B, (6 points, 6 points), by elimination of the constraint forces.

    Neither M nor J is formed. The depth grows with the logarithm of the number of bodies.

    Args:
        robot, q, points: As in `by_propagators`.

    Raises:
        DefinitionError: As `constraint_force.forward_dynamics`; also for points on massless bodies.

    Source: `constraint_force`.
    """
    (q,) = read(robot, q=q)
    joints, ends = resting_joints(robot, q), _wrench_maps(robot, q, points)
    n, position = len(joints), {joint.body.index: k for k, joint in enumerate(joints)}
    inputs: list[WrenchMaps] = [{} for _ in joints]
    for number, (body, E) in ends.items():
        inputs[position[body]][n + number] = E
    with stage("2 elimination"):
        blocks = schur_complement(joints, inputs)
    return _matrix(robot, len(points), {(i - n, j - n): block for (i, j), block in blocks.items()})


@any_element
def by_division(robot: Robot, q: Array, points: Points, *, version: str = "pivoted") -> Array:
    """Return J M^-1 J^T, (6 points, 6 points), by the divide-and-conquer algorithm with the points' bodies as handles.

    The inverse inertia between the handles of the whole robot is the result, so that there is no second pass.
    The depth grows with the logarithm of the number of bodies.

    Args:
        robot, q, points: As in `by_propagators`.
        version: As in `divide_and_conquer.forward_dynamics`.

    Raises:
        DefinitionError, UnknownNameError: As `divide_and_conquer.forward_dynamics`; also for points on massless bodies.

    Source: Featherstone and others, Journal of Computational and Nonlinear Dynamics 9(2), paper 021012, 2014, treat
    serial manipulators so, combined with fast sequential algorithms; we know the abstract alone. Trees, several points
    and the use of handles are our derivation.
    """
    (q,) = read(robot, q=q)
    ends = _wrench_maps(robot, q, points)
    Phi = inverse_inertia_of_handles(robot, q, {body for body, _ in ends.values()}, version)
    blocks = {(i, j): E.T @ (Phi[a, b] @ F) for i, (a, E) in ends.items() for j, (b, F) in ends.items() if i <= j}
    return _matrix(robot, len(points), blocks)


def _wrench_maps(robot: Robot, q: Array, points: Points) -> dict[int, tuple[int, Array]]:
    """Return (body, E) by number of each point that can move.

    E, (6, 6), maps a wrench at the point, world axes, to the wrench about the body's origin, body axes.
    """
    rotation = parallel_prefix_motion(links_at(robot, q), q, np.zeros(robot.nv)).rotation
    maps = {}
    for number, (k, T) in enumerate(twist_maps(robot, rotation, points)):
        body = robot.bodies[k]
        if is_massless(body) and (k > 0 or body.nv > 0):
            raise DefinitionError(f"the parallel forms need inertia in {body.name!r}, which carries a point")
        if k > 0 or body.nv > 0:
            maps[number] = (k, T.T)
    return maps


def _matrix(robot: Robot, n: int, blocks: Mapping[tuple[int, int], Array]) -> Array:
    """Return the symmetric matrix, (6 n, 6 n), of blocks (6, 6) on and above the diagonal."""
    rows = [[blocks.get((i, j), np.zeros((6, 6))) for j in range(n)] for i in range(n)]
    return finite(robot, "the operational-space inertia", mirror(np.block(rows)) if n else np.zeros((0, 0)))
