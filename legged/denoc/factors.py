"""The GIM from composite modules, and the conditioning of articulated modules.

Source: Shah, Saha, Dutt 2012, Appendix A.1.
"""

from __future__ import annotations

import numpy as np

from legged.checked import checked, checked_arguments
from legged.denoc.equations import ArticulatedModule, module_propagation
from legged.denoc.joints import reflected_inertia
from legged.denoc.kinematics import Kinematics, block_diagonal, gamma, kinematics, mass_blocks, world_chains, zeros
from legged.dynamics import inertia
from legged.dynamics.modules import by_module, dense, inward_modules
from legged.robot.robot import Robot
from legged.spatial import Array


@checked
def composite_modules(robot: Robot, q: Array) -> list[Array]:
    """Return M~^i of every composite module, (6 eta^i, 6 eta^i), [kg m^2, kg m, kg], world axes.

        M~^i = M^i + sum over j in xi^i of (A^(j,i))^T M~^j A^(j,i)

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eq. (A.3).
    """
    return _composite(robot, kinematics(robot, q))


def _composite(robot: Robot, at: Kinematics) -> list[Array]:
    M = by_module(robot, mass_blocks(robot, at))
    return [block_diagonal(links) for links in inertia.composite_modules(world_chains(robot, at), M)[0]]


@checked
def generalized_inertia_closed_form(robot: Robot, q: Array) -> Array:
    """Return the GIM, (nv, nv), [kg m^2, kg m, kg], block by block.

        I^(i,j) = (N^i)^T M~^i A^(i,j) N^j for M_i in gamma^j, else 0

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eqs. (A.1), (A.2).
    """
    at = kinematics(robot, q)
    M_tilde, chains = _composite(robot, at), world_chains(robot, at)
    N = [dense(chain.N) for chain in chains]
    H = [block_diagonal(chain.H_k) for chain in chains]
    own = reflected_inertia(robot)
    gim = zeros(own.shape, own, at.origin) + own
    for j, above in enumerate(robot.modules):
        twice = block_diagonal([p.T @ H_k for p, H_k in zip(chains[j].p_k, chains[j].H_k, strict=True)])
        np.add.at(gim, np.ix_(above.v, above.v), -twice - twice.T)  # H takes the twist of the body, not of its parent
        for i in gamma(robot, j):
            block = (M_tilde[i] @ N[i] + H[i]).T @ module_propagation(chains, i, j) @ N[j]
            place = np.ix_(robot.modules[i].v, above.v)
            if i == j:
                block = block + N[i].T @ H[i]
            else:
                np.add.at(gim.T, place, block)
            np.add.at(gim, place, block)
    return gim


@checked_arguments
def conditioning(robot: Robot, q: Array, *, scaled: bool = False) -> Array:
    """Return the condition number of the articulated inertia I^^i of each module, (number of modules,).

    Forward dynamics inverts these matrices and loses about log10 of the condition number in digits. They identify the
    ill-conditioned *module*, which the condition number of the whole inertia matrix cannot. Infinity, or a number
    above 1e15, means a motion without inertia: a gimbal-locked Euler base or joint, or aligned axes with massless
    links between.

    The number depends on units for a module that combines angles and lengths (kg m^2 and kg), such as every free base.
    With `scaled`, rows and columns are first divided by the square roots of the diagonal: the result is independent of
    units and within a factor of nv of the smallest that any choice of units gives; it is 1 for a single joint.

    Coupled joints are treated as independent.

    Args:
        robot: The robot. A fixed base has no inertia to invert and gets 1.
        q: Configuration, (nq,).
        scaled: Whether to remove the dependence on units.

    Raises:
        ShapeError, NotFiniteError: For a q that does not fit the robot.

    Source: Shah, Saha, Dutt 2012, Appendix A.1, after eq. (A.9); the scaling is van der Sluis's (1969).
    """
    return np.array([_condition(I_hat, scaled) for I_hat in _articulated_inertias(robot, q)])


def _articulated_inertias(robot: Robot, q: Array) -> list[Array]:
    """Return I^^i of each module, (n, n), [kg m^2] or [kg], without the matrices of the module's links.

    With the composite masses M~_k of the links in M^^i, the column of joint k is J_k^T F_k for F_k = M~_k p_k + H_k and
    the Jacobian J_k of link k, and the mass that the module transmits to its parent, (A.8), is

        A_0^T M~_0 A_0 - G (I^^i)^-1 G^T,   G = (A^(k,beta))^T F_k for each joint k
    """
    at = kinematics(robot, q)
    chains, M = world_chains(robot, at), by_module(robot, mass_blocks(robot, at))
    rotors = by_module(robot, [body.rotor_inertia for body in robot.bodies])
    children: list[list[Array]] = [[] for _ in chains]
    inertias: dict[int, Array] = {}
    for chain in inward_modules(chains):
        i, has_parent = chain.index, chain.parent >= 0
        masses = chain.composite_masses(inertia.added(chain, M[i], children[i]))
        n, start, from_parent = sum(p.shape[1] for p in chain.p_k), 0, np.eye(6)
        kind = np.result_type(q.dtype, *(M_k.dtype for M_k in M[i]))  # object in a trace
        J, G, I_hat = (np.zeros((rows, n), kind) for rows in (6, 6, n))  # one matrix for a module of many joints
        for k in chain.outward():
            A, p = chain.A_k[k] if k or has_parent else np.eye(6), chain.p_k[k]
            F, own = masses[k] @ p + chain.H_k[k], slice(start, start + p.shape[1])
            J[:, :start], J[:, own], from_parent, start = A @ J[:, :start], p, A @ from_parent, own.stop
            column = J[:, :start].T @ F
            corner = np.triu(column[own] + rotors[i][k])
            column[own] = corner + np.triu(corner, 1).T
            I_hat[:start, own], I_hat[own, :start], G[:, own] = column, column.T, from_parent.T @ F
        inertias[i] = I_hat
        if has_parent:
            transmitted = G @ _solved(I_hat, G.T)
            children[chain.parent].append(chain.A_k[0].T @ masses[0] @ chain.A_k[0] - transmitted)
    return [inertias[chain.index] for chain in chains]


def _solved(I_hat: Array, columns: Array) -> Array:
    """Return the solution of I^ x = columns, of least norm if I^ is singular."""
    if I_hat.dtype == object:
        return ArticulatedModule.inverted(I_hat) @ columns
    try:
        return np.linalg.solve(I_hat, columns)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(I_hat, hermitian=True) @ columns


def _condition(I_hat: Array, scaled: bool) -> float:
    if not I_hat.size:
        return 1.0
    if scaled:
        size = np.sqrt(np.abs(np.diag(I_hat)))
        if not size.all():
            return float("inf")
        I_hat = I_hat / size / size[:, None]
    sizes = np.abs(np.linalg.eigvalsh(I_hat))  # singular values of a symmetric matrix
    return float(sizes.max() / sizes.min()) if sizes.min() else float("inf")
