"""The GIM from composite modules, its block UDU^T factors from articulated modules, and their conditioning.

Source: Shah, Saha, Dutt 2012, Appendix A.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.checked import checked, checked_arguments
from legged.denoc.equations import mass_matrix_at
from legged.denoc.joints import module_rotors
from legged.denoc.kinematics import Kinematics, kinematics
from legged.denoc.modules import (
    Propagation,
    gamma,
    joint_rate_propagation,
    module_propagation,
    propagation,
    rows,
    xi,
)
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class ArticulatedModule:
    """A module together with all modules outward of it, their joints free. World axes, eta bodies, nv joint rates.

    Attributes:
        M_hat: M^ of equation (A.8), (6 eta, 6 eta).
        Psi_hat: M^ N + H, (6 eta, nv), eq. (A.7).
        Psi: Psi^ I^-1, (6 eta, nv), eq. (A.7).
        I_hat: N^T Psi^ + H^T N + I_r, (nv, nv), eq. (A.6): the articulated inertia of the module's joints.
        M_hat_hat: M^ - Psi^ Psi^T, (6 eta, 6 eta), eq. (A.9): its contribution to its parent's M^.
    """

    M_hat: Array
    Psi_hat: Array
    Psi: Array
    I_hat: Array
    M_hat_hat: Array


@checked
def composite_modules(robot: Robot, q: Array) -> list[Array]:
    """Return the composite mass matrix M~^i of every module and all outward of it, (6 eta^i, 6 eta^i), world axes.

        M~^i = M^i + sum over j in xi^i of (A^(j,i))^T M~^j A^(j,i)

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eq. (A.3).
    """
    return _composite(robot, kinematics(robot, q))


def _composite(robot: Robot, at: Kinematics) -> list[Array]:
    M, A = mass_matrix_at(robot, at), _module_propagation(robot, at)
    M_tilde = [M[rows(robot, m.index), rows(robot, m.index)] for m in robot.modules]
    for m in reversed(robot.modules):
        i = m.index
        for j in xi(robot, i):
            M_tilde[i] = M_tilde[i] + A(j, i).T @ M_tilde[j] @ A(j, i)
    return M_tilde


@checked
def generalized_inertia_closed_form(robot: Robot, q: Array) -> Array:
    """Return the GIM, (nv, nv), block by block: I^(i,j) = (N^i)^T M~^i A^(i,j) N^j for M_i in gamma^j, else 0.

    M~^i is a composite of modules, in which the bodies of M_i itself are separate; `legged.inertia_matrix` uses the
    composite bodies instead.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eqs. (A.1), (A.2).
    """
    at = kinematics(robot, q)
    M_tilde, A = _composite(robot, at), _module_propagation(robot, at)
    N = [joint_rate_propagation(robot, m.index, at) for m in robot.modules]
    inertia = np.zeros((robot.nv, robot.nv))
    for j, above in enumerate(robot.modules):
        for i in gamma(robot, j):
            H, inertia_r = module_rotors(robot, i, at)
            block, place = (M_tilde[i] @ N[i] + H).T @ A(i, j) @ N[j], np.ix_(robot.modules[i].v, above.v)
            if i == j:
                block = block + N[i].T @ H + inertia_r
            else:
                np.add.at(inertia.T, place, block)
            np.add.at(inertia, place, block)
    return inertia


@checked
def articulated_modules(robot: Robot, q: Array) -> list[ArticulatedModule]:
    """Return the articulated modules, world axes, in the order of `robot.modules`.

        M^^i = M^i + sum over j in xi^i of (A^(j,i))^T M^^(j,j) A^(j,i)                 (A.8), (A.9)

    The rotors of a module's joints add H^i to Psi^ and (H^i)^T N + I_r^i to I^, see `joints.module_rotors`.
    For an exactly singular I^ the pseudoinverse is used, so that motions without inertia have no effect.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eqs. (A.6) to (A.9).
    """
    return _articulate(robot, kinematics(robot, q))


def _articulate(robot: Robot, at: Kinematics) -> list[ArticulatedModule]:
    M, A = mass_matrix_at(robot, at), _module_propagation(robot, at)
    found: dict[int, ArticulatedModule] = {}
    for m in reversed(robot.modules):
        i = m.index
        M_hat = M[rows(robot, i), rows(robot, i)]
        for j in xi(robot, i):
            M_hat = M_hat + A(j, i).T @ found[j].M_hat_hat @ A(j, i)
        found[i] = _articulated(M_hat, joint_rate_propagation(robot, i, at), *module_rotors(robot, i, at))
    return [found[m.index] for m in robot.modules]


def _articulated(M_hat: Array, N: Array, H: Array, I_r: Array) -> ArticulatedModule:
    Psi_hat = M_hat @ N + H
    I_hat = N.T @ Psi_hat + H.T @ N + I_r
    I_hat = (I_hat + I_hat.T) / 2
    try:
        Psi = np.linalg.solve(I_hat, Psi_hat.T).T
    except np.linalg.LinAlgError:
        Psi = Psi_hat @ np.linalg.pinv(I_hat, hermitian=True)
    return ArticulatedModule(M_hat, Psi_hat, Psi, I_hat, M_hat - Psi_hat @ Psi.T)


@checked
def udu(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Return (U, D), both (nv, nv), with I = U D U^T: U block upper triangular with unit diagonal, D block diagonal.

        U^(i,j) = (A^(j,i) N^i)^T Psi^j for M_j in gamma^i, else 0;      D^(i,i) = I^^i

    The block of a module has the rows or columns `module.v`.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        DefinitionError: For a robot with coupled joints, which cannot be eliminated module by module.

    Source: Shah, Saha, Dutt 2012, eqs. (A.4) to (A.6); (A.6) as printed has the two factors of U^(i,j) swapped.
    """
    for body in robot.bodies:
        if body.coupling is not None:
            joint, master = body.coupling.follower, body.coupling.master
            words = "is a constant-velocity joint" if joint == master else f"follows {master!r}"
            raise DefinitionError(
                f"the inertia matrix of robot {robot.name!r} has no factors module by module: joint {joint!r} {words}"
            )
    at = kinematics(robot, q)
    parts, A = _articulate(robot, at), _module_propagation(robot, at)
    U, D = np.eye(robot.nv), np.zeros((robot.nv, robot.nv))
    for i, module in enumerate(robot.modules):
        D[np.ix_(module.v, module.v)] = parts[i].I_hat
        N = joint_rate_propagation(robot, i, at)
        for j in gamma(robot, i)[1:]:
            U[np.ix_(module.v, robot.modules[j].v)] = (A(j, i) @ N).T @ parts[j].Psi
    return U, D


def _module_propagation(robot: Robot, at: Kinematics) -> Propagation:
    """Return (i, j) -> A^(i,j)."""
    A = propagation(at)
    return lambda i, j: module_propagation(robot, i, j, A)


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
    return np.array([_condition(part.I_hat, scaled) for part in articulated_modules(robot, q)])


def _condition(I_hat: Array, scaled: bool) -> float:
    if not I_hat.size:
        return 1.0
    if scaled:
        size = np.sqrt(np.abs(np.diag(I_hat)))
        if not size.all():
            return float("inf")
        I_hat = I_hat / np.outer(size, size)
    return float(np.linalg.cond(I_hat))
