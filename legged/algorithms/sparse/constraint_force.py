"""The constraint-force algorithm: forward dynamics and inverse inertias from the constraint forces of all joints.

    T^T I^-1 T beta = T^T a_0 - T^T I^-1 (f_a - v x I v)          (28)

The constraint force of a joint couples with those of the joints on the same two bodies alone. For an unbranched chain
the system is block-tridiagonal, and for a tree its blocks are eliminated from the tips and along the branches at the
same time (`block_elimination`), in a number of rounds that grows with the logarithm of the number of bodies.

The same elimination gives the inverse inertia matrix. With P the incidence matrix (a body's acceleration less its
parent's is P a = h qdd), f = G tau + T beta the forces of the joints, h^T G = 1, h^T T = 0 and K = P I^-1 P^T:

    M^-1 = C - B^T A^-1 B,    A = T^T K T,    B = T^T K G,    C = G^T K G

and with E the map from forces at points of the robot to wrenches on their bodies, for tau = 0:

    Lambda^-1 = C - B^T A^-1 B,    B = T^T P I^-1 E,    C = E^T I^-1 E

Source: Fijany, Sharf, D'Eleuterio 1995; in the form of Featherstone, Fijany, "A technique for analyzing constrained
rigid-body systems and its application to the constraint force algorithm", IEEE Transactions on Robotics and Automation
15(6), 1999, for joints of any kind and floating bases. Fijany, Featherstone, "A new factorization of the mass matrix
for optimal serial and parallel calculation of multibody dynamics", Multibody System Dynamics 29(2), 2013, factors M^-1;
we know its abstract alone, and the matrices A, B, C and the order of elimination for trees are our derivation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from legged.algorithms.linear_algebra import solve_columns
from legged.algorithms.links import transform_forces
from legged.algorithms.sparse.block_elimination import Blocks, eliminate, solve
from legged.algorithms.sparse.system import JointConstraint, body_forces, joint_accelerations, joint_constraints
from legged.compiler.ir.annotations import item, stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored

ALGORITHM = "the constraint-force algorithm"


def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration under given generalized forces, (nv,), by equation (28).

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others, armature and rotors, bodies without
        inertia about some axis, and massless bodies where the robot branches or ends.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 bodies and constraints"):
        joints, a_0 = joint_constraints(robot, q, v, tau, wrenches, ALGORITHM, in_parallel=True)
    with stage("2 system"):
        inertia = [factor_symmetric(joint.body.I) for joint in joints]
        a_free = [solve_factored(factors, r) for factors, r in zip(inertia, body_forces(joints), strict=True)]
        A = _mobility_blocks(joints, inertia, _net_wrenches(joints, {k: joint.T for k, joint in enumerate(joints)}))
        right = []
        for joint, own in zip(joints, a_free, strict=True):
            body = joint.body
            a_parent = body.X @ (a_0 if body.parent < 0 else a_free[body.parent]) + body.c
            right.append(joint.T.T @ (a_parent - own))
    with stage("3 constraint forces"):
        beta = solve(A, right)
    with stage("4 accelerations"):
        f = [joint.T @ b for joint, b in zip(joints, beta, strict=True)]
        total = list(f)
        for k, joint in enumerate(joints):
            if joint.body.parent >= 0:
                total[joint.body.parent] = total[joint.body.parent] - joint.body.X.T @ f[k]
        a = [own + solve_factored(factors, w) for own, factors, w in zip(a_free, inertia, total, strict=True)]
    return finite(robot, "the forward dynamics", joint_accelerations(robot, joints, a, a_0))


def inverse_inertia_matrix(robot: Robot, q: Array) -> Array:
    """Return M^-1, (nv, nv), in the unit of 1 / `legged.inertia_matrix`, as the Schur complement C - B^T A^-1 B.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        DefinitionError: as `forward_dynamics`.
    """
    (q,) = read(robot, q=q)
    with stage("1 bodies and constraints"):
        joints = resting_joints(robot, q)
    n, nv = len(joints), robot.nv
    active = _net_wrenches(joints, {n + k: joint.G for k, joint in enumerate(joints)}, first=n)
    with stage("2 elimination"):
        blocks = schur_complement(joints, active)
    M_inverse = np.zeros((nv, nv), dtype=np.result_type(float, *blocks.values()))
    entries = [[i for part in joint.body.v for i in range(part.start, part.stop)] for joint in joints]
    for (i, j), block in blocks.items():
        M_inverse[np.ix_(entries[i - n], entries[j - n])] = block
        M_inverse[np.ix_(entries[j - n], entries[i - n])] = block.T
    return finite(robot, "the inverse inertia matrix", M_inverse)


def resting_joints(robot: Robot, q: Array) -> list[JointConstraint]:
    """Return the joints as constraints, parent before child, without velocities and forces.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        DefinitionError: as `forward_dynamics`.
    """
    still = np.zeros(robot.nv)
    return joint_constraints(robot, q, still, still, None, ALGORITHM)[0]


def schur_complement(joints: Sequence[JointConstraint], inputs: Sequence[WrenchMaps]) -> Blocks:
    """Return the blocks of C - B^T A^-1 B: accelerations along each input per unit of each input.

    Args:
        joints: All joints, parent before child.
        inputs: For each body, by number of the input, the wrench on the body per unit of the input, (6, n_i), mixed
            units, in body axes. The numbers of inputs are larger than those of the joints.
    """
    inertia = [factor_symmetric(joint.body.I) for joint in joints]
    passive = _net_wrenches(joints, {k: joint.T for k, joint in enumerate(joints)})
    blocks = _mobility_blocks(joints, inertia, [own | acting for own, acting in zip(passive, inputs, strict=True)])
    eliminate(blocks, kept=range(len(joints), 1 + max((j for _, j in blocks), default=0)))
    return blocks


WrenchMaps = dict[int, Array]
"""Wrench on one body by number of a joint or an input, (6, n), in body axes."""


def _net_wrenches(joints: Sequence[JointConstraint], forces: dict[int, Array], first: int = 0) -> list[WrenchMaps]:
    """Return the wrenches on each body due to the joint forces with these subspaces, P^T F, by number of the force."""
    on: list[WrenchMaps] = [{} for _ in joints]
    for number, F in forces.items():
        body = joints[number - first].body
        if F.shape[1]:
            on[number - first][number] = F
            if body.parent >= 0:
                on[body.parent][number] = -transform_forces(body.X, F)
    return on


def _mobility_blocks(joints: Sequence[JointConstraint], inertia: Sequence[tuple], on: Sequence[WrenchMaps]) -> Blocks:
    """Return the blocks of the sum of S^T I^-1 S over the bodies, with S the wrenches on each body."""
    blocks: Blocks = {}
    for joint, factors, wrenches in zip(joints, inertia, on, strict=True):
        with item(joint.body.index):
            numbers = sorted(wrenches)
            solved = {j: solve_columns(factors, wrenches[j]) for j in numbers}
            for i, j in combinations_with_replacement(numbers, 2):
                block = wrenches[i].T @ solved[j]
                block = blocks[i, j] + block if (i, j) in blocks else block
                blocks[i, j] = mirror(block) if i == j else block
    return blocks
