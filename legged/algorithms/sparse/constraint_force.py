"""The constraint-force algorithm: forward dynamics and inverse inertias from the constraint forces of all joints.

    T^T I^-1 T beta = T^T a_0 - T^T I^-1 (f_a - v x I v)          (28)

The constraint force of a joint couples with those of the joints on the same two bodies alone. For an unbranched chain
the system is block-tridiagonal, and for a tree its blocks are eliminated from the tips and along the branches at the
same time, in a number of rounds that grows with the logarithm of the number of bodies.

The elimination of block s subtracts A_is A_ss^-1 A_sj from every block (i, j) of its neighbors (`eliminate`). Blocks
that do not couple with each other are eliminated in the same round, so that the number of rounds limits the depth. The
rounds of a chain are those of odd-even reduction. In a tree, blocks at the tips are eliminated in the same rounds,
which is the tree contraction of Miller and Reif 1985: the number of rounds grows with the logarithm of the number of
blocks if each block couples with a bounded number of others.

The same elimination gives the inverse inertia matrix. With P the incidence matrix (a body's acceleration less its
parent's is P a = h qdd), f = G tau + T beta the forces of the joints, h^T G = 1, h^T T = 0 and K = P I^-1 P^T:

    M^-1 = C - B^T A^-1 B,    A = T^T K T,    B = T^T K G,    C = G^T K G

and with E the map from forces at points of the robot to wrenches on their bodies, for tau = 0:

    Lambda^-1 = C - B^T A^-1 B,    B = T^T P I^-1 E,    C = E^T I^-1 E

Source: Fijany, Sharf, D'Eleuterio 1995; in the form of Featherstone, Fijany, "A technique for analyzing constrained
rigid-body systems, and its application to the constraint force algorithm", IEEE Transactions on Robotics and Automation
15(6), 1999, for joints of any kind and floating bases. Fijany, Featherstone, "A new factorization of the mass matrix
for optimal serial and parallel calculation of multibody dynamics", Multibody System Dynamics 29(2), 2013, factors M^-1;
we know its abstract alone, and the matrices A, B, C and the order of elimination for trees are our derivation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import solve_columns
from legged.algorithms.links import transform_forces
from legged.algorithms.sparse.system import JointConstraint, body_forces, joint_accelerations, joint_constraints
from legged.compiler.ir import item, stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.elements import any_element
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored

ALGORITHM = "the constraint-force algorithm"


@any_element
def constraint_force(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
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


forward_dynamics = constraint_force
"""The name of the task, which is the same in the modules of all algorithms."""


@any_element
def inverse_inertia_matrix(robot: Robot, q: Array) -> Array:
    """Return M^-1, (nv, nv), in the unit of 1 / `legged.inertia_matrix`, as the Schur complement C - B^T A^-1 B.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        DefinitionError: As `constraint_force`.
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


@any_element
def resting_joints(robot: Robot, q: Array) -> list[JointConstraint]:
    """Return the joints as constraints, parent before child, without velocities and forces.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        DefinitionError: As `constraint_force`.
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


Blocks = dict[tuple[int, int], Array]
"""The nonzero blocks A_ij, (n_i, n_j), i <= j, of a symmetric matrix; the diagonal blocks are symmetric."""


class EliminatedBlock(NamedTuple):
    """An eliminated block.

    Attributes:
        number: s. factors: Of A_ss.
        ratios: A_ss^-1 A_sj of each neighbor j at the time of elimination, (n_s, n_j).
    """

    number: int
    factors: tuple
    ratios: dict[int, Array]


def eliminate(blocks: Blocks, kept: Collection[int] = ()) -> list[EliminatedBlock]:
    """Return the eliminated blocks in their order; `blocks` is left with the Schur complement on the kept ones.

    Args:
        blocks: Symmetric matrix, positive definite on the blocks to eliminate; modified.
        kept: Numbers of the blocks that are not eliminated.
    """
    eliminated = []
    for chosen in elimination_rounds(blocks, kept):
        for s in chosen:
            factors = factor_symmetric(blocks.pop((s, s)))
            couplings = {i + j - s: (i, j) for i, j in blocks if s in (i, j)}
            rows = {j: blocks.pop(at) if at[0] == s else blocks.pop(at).T for j, at in sorted(couplings.items())}
            ratios = {j: solve_columns(factors, row) for j, row in rows.items()}
            for i, j in combinations_with_replacement(rows, 2):
                change = rows[i].T @ ratios[j]
                block = blocks[i, j] - change if (i, j) in blocks else -change
                blocks[i, j] = mirror(block) if i == j else block
            eliminated.append(EliminatedBlock(s, factors, ratios))
    return eliminated


def elimination_rounds(blocks: Collection[tuple[int, int]], kept: Collection[int] = ()) -> list[list[int]]:
    """Return the numbers of the blocks of each round, which do not couple with each other.

    A block is eligible if its elimination couples no blocks anew, or only two. If there is none, those with the fewest
    couplings are eligible.

    Args:
        blocks: Pairs of coupled blocks, each block paired with itself among them. kept: Blocks that are not eliminated.
    """
    near: dict[int, set[int]] = {i: set() for i, j in sorted(blocks) if i == j and i not in kept}
    for i, j in blocks:
        if i != j and i in near and j in near:
            near[i].add(j)
            near[j].add(i)
    rounds = []
    while near:
        fewest = max(2, min(len(others) for others in near.values()))
        chosen: list[int] = []
        for s, others in near.items():
            is_clique = all(j in near[i] for i, j in combinations(others, 2))
            if (len(others) <= fewest or is_clique) and not others & set(chosen):
                chosen.append(s)
        for s in chosen:
            others = near.pop(s)
            for i in others:
                near[i] = (near[i] | others) - {i, s}
        rounds.append(chosen)
    return rounds


def solve(blocks: Blocks, right: Sequence[Array]) -> list[Array]:
    """Return x, (n_k,) each, of a symmetric positive definite system A x = r.

    Args:
        blocks: A; modified. The number of each block is its position in `right`.
        right: r_k, (n_k,), any unit.
    """
    eliminated, r = eliminate(blocks), list(right)
    own = {}
    for step in eliminated:
        own[step.number] = solve_factored(step.factors, r[step.number])
        for i, ratio in step.ratios.items():
            r[i] = r[i] - ratio.T @ r[step.number]
    x: dict[int, Array] = {}
    for step in reversed(eliminated):
        value = own[step.number]
        for i, ratio in step.ratios.items():
            value = value - ratio @ x[i]
        x[step.number] = value
    return [x[k] if k in x else np.zeros(0) for k in range(len(right))]
