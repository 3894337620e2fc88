"""Kinematics at module level: module twists, A^(i,beta), N^i, and the DeNOC matrices N_l and N_d (section 2.2).

A module's twist t^i stacks the twists of its bodies, (6 eta,), in the order of `robot.modules[i].bodies`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from legged.arguments import whole
from legged.checked import checked
from legged.denoc.kinematics import Kinematics, Rates, kinematics, rates, read_state, twist_propagation
from legged.robot.robot import Robot
from legged.spatial import Array, skew

Propagation = Callable[[int, int], Array]  # (k, j) -> A_(k,j) or its rate, (6, 6)


@checked
def gamma(robot: Robot, i: int) -> tuple[int, ...]:
    """Return gamma^i, the numbers of M_i and of all modules outward of it. Source: Shah, Saha, Dutt 2012, Figure 4."""
    found = [_module_index(robot, "i", i)]
    for module in robot.modules[i + 1 :]:  # a child's number is above its parent's
        if module.parent in found:
            found.append(module.index)
    return tuple(found)


@checked
def xi(robot: Robot, i: int) -> tuple[int, ...]:
    """Return xi^i, the numbers of the children of M_i. Source: Shah, Saha, Dutt 2012, eq. (A.3)."""
    i = _module_index(robot, "i", i)
    return tuple(module.index for module in robot.modules if module.parent == i)


def rows(robot: Robot, i: int) -> slice:
    """Return the rows of module M_i in a stacked twist or wrench, (6 n,)."""
    bodies = robot.modules[i].bodies
    return slice(6 * bodies[0], 6 * bodies[-1] + 6)


@checked
def module_twist_propagation(robot: Robot, q: Array, i: int, beta: int) -> Array:
    """Return A^(i,beta), (6 eta^i, 6 eta^beta), world axes: twist of M_beta to that of M_i if M_i were fixed to it.

    It depends only on the last link of M_beta, so only the last six columns are nonzero. It is the identity for
    i = beta and zero unless M_i lies outward of M_beta.

    Args:
        robot: The robot. q: Configuration, (nq,). i, beta: Module numbers.

    Source: Shah, Saha, Dutt 2012, eqs. (9), (12).
    """
    i, beta = _module_index(robot, "i", i), _module_index(robot, "beta", beta)
    return module_propagation(robot, i, beta, propagation(kinematics(robot, q)))


def _module_index(robot: Robot, name: str, value: int) -> int:
    return whole(name, value, least=0, most=len(robot.modules) - 1)


def module_propagation(robot: Robot, i: int, beta: int, A: Propagation) -> Array:
    """Return A^(i,beta) of equation (9), (6 eta^i, 6 eta^beta), for a given link-level A."""
    own, above = robot.modules[i].bodies, robot.modules[beta].bodies
    block = np.zeros((6 * len(own), 6 * len(above)))
    if i == beta:
        return np.eye(len(block))
    if i in gamma(robot, beta):
        block[:, -6:] = np.vstack([A(k, above[-1]) for k in own])
    return block


@checked
def module_joint_rate_propagation(robot: Robot, q: Array, i: int) -> Array:
    """Return N^i, (6 eta, module's DoF), world axes: module-joint rates to the module's twist relative to its parent.

    Its (k, l) block is A_(k,l) p_l for l at or before k. N^0 is P_0. The rates are `v[module.v]`.

    Args:
        robot: The robot. q: Configuration, (nq,). i: Module number.

    Source: Shah, Saha, Dutt 2012, eqs. (5), (6).
    """
    return joint_rate_propagation(robot, _module_index(robot, "i", i), kinematics(robot, q))


def joint_rate_propagation(robot: Robot, i: int, at: Kinematics) -> Array:
    """Return N^i of equation (5), (6 eta, module's DoF), for known kinematics."""
    A = propagation(at)
    return _below_diagonal(robot, i, lambda k, l: A(k, l) @ at.p[l])


def _below_diagonal(robot: Robot, i: int, block: Propagation) -> Array:
    module = robot.modules[i]
    N = np.zeros((6 * len(module.bodies), len(module.v)))
    ends = np.cumsum([robot.bodies[l].nv for l in module.bodies])
    for row, k in enumerate(module.bodies):
        for l, end in zip(module.bodies[: row + 1], ends, strict=False):
            N[6 * row : 6 * row + 6, end - robot.bodies[l].nv : end] = block(k, l)
    return N


def _by_module(robot: Robot, block: Callable[[int], Array]) -> Array:
    """Return the (6 n, nv) matrix with block(i) in the rows and columns of module i; coupled joints share columns."""
    out = np.zeros((6 * len(robot.bodies), robot.nv))
    for m in robot.modules:
        for column, entry in zip(m.v, block(m.index).T, strict=True):
            out[rows(robot, m.index), column] += entry
    return out


@checked
def denoc_matrices(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Return (N_l, N_d), (6 n, 6 n) and (6 n, nv) for n bodies, world axes: t = N_l @ N_d @ v.

    N_l is block lower triangular with A^(i,j) of equation (9); N_d has N^i of equation (5) in the rows of module i and
    the columns of its joints: block diagonal if v has the joints module by module and no joint is coupled.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eqs. (11), (12).
    """
    return _decoupled(robot, kinematics(robot, q))


@checked
def complement(robot: Robot, q: Array) -> Array:
    """Return N = N_l @ N_d, (6 n, nv), world axes, eq. (24): the natural orthogonal complement, t = N @ v.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    return complement_at(robot, kinematics(robot, q))


def complement_at(robot: Robot, at: Kinematics) -> Array:
    """Return N, (6 n, nv), world axes, for known kinematics."""
    N_l, N_d = _decoupled(robot, at)
    return N_l @ N_d


@checked
def complement_rate(robot: Robot, q: Array, v: Array) -> Array:
    """Return the time derivative of N, (6 n, nv), world axes: Nd_l N_d + N_l Nd_d.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read_state(robot, q=q, v=v)
    at = kinematics(robot, q)
    return complement_and_rate(robot, at, rates(robot, q, v, at))[1]


def complement_and_rate(robot: Robot, at: Kinematics, moving: Rates) -> tuple[Array, Array]:
    """Return (N, its time derivative), both (6 n, nv)."""
    N_l, N_d = _decoupled(robot, at)
    A, A_dot = propagation(at), _propagation_rate(moving)
    Nd_l = _block_rows(robot, lambda i, j: module_propagation(robot, i, j, A_dot) if i != j else None)

    def rate(k: int, l: int) -> Array:
        return A_dot(k, l) @ at.p[l] + A(k, l) @ moving.p_dot[l]

    Nd_d = _by_module(robot, lambda i: _below_diagonal(robot, i, rate))
    return N_l @ N_d, Nd_l @ N_d + N_l @ Nd_d


@checked
def module_twists(robot: Robot, q: Array, v: Array) -> list[Array]:
    """Return t^i of every module, (6 eta,) each, world axes, by the recursion t^i = A^(i,beta) t^beta + N^i v^i.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).

    Source: Shah, Saha, Dutt 2012, eqs. (3), (8).
    """
    q, v = read_state(robot, q=q, v=v)
    at = kinematics(robot, q)
    A = propagation(at)
    twists: list[Array] = []
    for m in robot.modules:
        t = joint_rate_propagation(robot, m.index, at) @ v[m.v]
        if m.parent >= 0:
            t = t + module_propagation(robot, m.index, m.parent, A) @ twists[m.parent]
        twists.append(t)
    return twists


def propagation(at: Kinematics) -> Propagation:
    """Return (k, j) -> A_(k,j)."""
    return lambda k, j: twist_propagation(at.origin[k] - at.origin[j])


def _propagation_rate(moving: Rates) -> Propagation:
    """Return (k, j) -> the time derivative of A_(k,j): only r = O_k - O_j changes."""

    def A_dot(k: int, j: int) -> Array:
        rate = np.zeros((6, 6))
        rate[3:, :3] = -skew(moving.twist[k, 3:] - moving.twist[j, 3:])
        return rate

    return A_dot


def _decoupled(robot: Robot, at: Kinematics) -> tuple[Array, Array]:
    A = propagation(at)
    N_l = _block_rows(robot, lambda i, j: module_propagation(robot, i, j, A))
    N_d = _by_module(robot, lambda i: joint_rate_propagation(robot, i, at))
    return N_l, N_d


def _block_rows(robot: Robot, block: Callable[[int, int], Array | None]) -> Array:
    """Return the square matrix of module blocks (i, j) for M_i in gamma^j; None stands for a zero block."""
    size = 6 * len(robot.bodies)
    out = np.zeros((size, size))
    for j in range(len(robot.modules)):
        for i in gamma(robot, j):
            made = block(i, j)
            if made is not None:
                out[rows(robot, i), rows(robot, j)] = made
    return out


def block_diagonal(blocks: Sequence[Array]) -> Array:
    """Return the block diagonal matrix, (sum of m, sum of n), of the given blocks.

    Args:
        blocks: Matrices (m, n), [any unit], possibly with n = 0.
    """
    out = np.zeros((sum(len(b) for b in blocks), sum(b.shape[1] for b in blocks)))
    row = column = 0
    for b in blocks:
        out[row : row + len(b), column : column + b.shape[1]] = b
        row, column = row + len(b), column + b.shape[1]
    return out
