"""The inverse operational-space inertia of several points, without the inertia matrix and without Jacobians.

`by_propagators` is the extended-force-propagator algorithm. `by_constraint_forces` and `by_division` have a depth that
grows with the logarithm of the number of bodies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from legged.algorithms.articulated import articulated_inertias, refuse_followers
from legged.algorithms.divide_and_conquer.forward import inverse_inertia_of_handles
from legged.algorithms.links import links_at
from legged.algorithms.massive_bodies import is_massless, parallel_prefix_motion
from legged.algorithms.sparse.constraint_force import WrenchMaps, resting_joints, schur_complement
from legged.compiler.ir import stage
from legged.dynamics.arguments import finite, read
from legged.dynamics.kinematics import motion, on_bodies
from legged.dynamics.propagators import inverse_inertia_blocks
from legged.elements import any_element
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, skew

Points = Sequence[tuple[str | int, Array]]


@any_element
def by_propagators(robot: Robot, q: Array, points: Points) -> Array:
    """Return J M^-1 J^T, (6 points, 6 points), by the extended-force-propagator algorithm.

    The recursion is that of `legged.dynamics.propagators`: O(n + m d + m^2) for m points of a tree with d branching
    bodies on a path.

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
    blocks = inverse_inertia_blocks(
        robot, links.X, links.h, articulated.D, articulated.Psi, [(k, T.T) for k, T in ends]
    )
    return finite(robot, "the operational-space inertia", mirror(np.block(blocks)) if ends else np.zeros((0, 0)))


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


@any_element
def by_constraint_forces(robot: Robot, q: Array, points: Points) -> Array:
    """Return J M^-1 J^T = C - B^T A^-1 B, (6 points, 6 points), by elimination of the constraint forces.

    Neither M nor J is formed. The depth grows with the logarithm of the number of bodies.

    Args:
        robot, q, points: As in `by_propagators`.

    Raises:
        DefinitionError: As `constraint_force.constraint_force`; also for points on massless bodies.

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
        version: As in `divide_and_conquer.divide_and_conquer`.

    Raises:
        DefinitionError, UnknownNameError: As `divide_and_conquer.divide_and_conquer`; also for points on massless
            bodies.

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
