"""Inverse dynamics by recursions between modules and inside them.

Source: Shah, Saha, Dutt 2012, section 4.1 and Figure A.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.checked import checked
from legged.compiler.ir import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.inertia import added, composite_modules, mass_matrices
from legged.dynamics.modules import (
    STEP_1,
    STEP_2,
    STEP_3,
    SerialChain,
    Vectors,
    by_body,
    inward_modules,
    module_wrenches,
    outward_modules,
    serial_chains,
)
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.spatial import Array, solve_symmetric


@checked
def inverse_dynamics(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches = None) -> Array:
    """Return the generalized forces for an acceleration, (nv,), base rows first: tau = I vdot + C v - tau^F.

    They include the forces that overcome friction and springs of the joints, see `JointPhysics`.

    Args:
        robot: The robot.
        q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,); see `docs/reference/conventions.md`.
        wrenches: External wrenches on links, by name or (n_links, 6), [n; f] about each link's origin, link axes.

    Returns:
        tau, (nv,), [N m] or [N]; gravity included.

    Raises:
        ShapeError, NotFiniteError, UnknownNameError: For arguments that do not fit the robot.

    Source: Shah, Saha, Dutt 2012, eqs. (17) and (23); Figure A.1 without the separate treatment of the base.
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    return _generalized_forces(robot, q, v, vdot, wrenches)


@checked
def bias_forces(robot: Robot, q: Array, v: Array, wrenches: Wrenches = None) -> Array:
    """Return h = C v - tau^F, (nv,), including gravity, friction and springs: `inverse_dynamics` at vdot = 0.

    Arguments and errors as in `inverse_dynamics`.

    Source: Shah, Saha, Dutt 2012, eq. (28).
    """
    q, v = read(robot, q=q, v=v)
    return _generalized_forces(robot, q, v, None, wrenches)


def _generalized_forces(robot: Robot, q: Array, v: Array, vdot: Array | None, wrenches: Wrenches) -> Array:
    chains = serial_chains(robot, q)
    with stage(STEP_1):
        w, f = module_wrenches(robot, q, v, vdot, wrenches)
    with stage(STEP_2):
        return scatter_add(robot, by_body(joint_forces(chains, w, f)))


@checked
def floating_inverse_dynamics(
    robot: Robot, q: Array, v: Array, joint_accelerations: Array, wrenches: Wrenches = None
) -> tuple[Array, Array]:
    """Return (base acceleration, joint torques) for given joint accelerations and an unactuated base.

    The generalized inertia matrix is not formed:

        vdot_0  = -I_0^-1 h~_0                     (26)
        tau     = I_theta0 vdot_0 + h~_theta       (27)

    Args:
        robot: The robot, with any base (a fixed base has no acceleration, (0,)).
        q: Configuration, (nq,). v: Velocity, (nv,).
        joint_accelerations: (nv - n0,), [rad/s^2] or [m/s^2], joint axes.
        wrenches: External wrenches on links, as in `inverse_dynamics`.

    Returns:
        base acceleration: vdot of the base's coordinates, (n0,). joint torques: (nv - n0,), [N m] or [N].

    Raises:
        ShapeError, NotFiniteError, UnknownNameError: For arguments that do not fit the robot.
        SingularError: If the inertia at the base is singular.

    Source: Shah, Saha, Dutt 2012, section 4.1, eqs. (26), (27), Figure A.1.
    """
    q, v, joint_accelerations = read(robot, q=q, v=v, joint_accelerations=joint_accelerations)
    n0 = robot.base.nv
    vdot = np.concatenate([np.zeros(n0), joint_accelerations])
    chains = serial_chains(robot, q)
    with stage(STEP_1):
        w, f = module_wrenches(robot, q, v, vdot, wrenches)
    with stage(STEP_2):
        h_tilde = scatter_add(robot, by_body(joint_forces(chains, w, f)))
        _, M_tilde = composite_modules(chains, mass_matrices(robot))
    with stage(STEP_3):
        vdot_0, tau = _base_and_torques(robot, chains, h_tilde, M_tilde)
    return finite(robot, "the base acceleration", vdot_0), finite(robot, "the inverse dynamics", tau)


def joint_forces(chains: Sequence[SerialChain], w: list[Vectors], f: list[Vectors]) -> list[Vectors]:
    """Return h~^i = (N^i)^T w~^i + f^i of each module, one (nv of the joint,) per link, [N m] or [N]: step 2.

        w~^i = w^i + sum over j in xi^i of (A^(j,i))^T w~^j

    Together they are h~ = N_d^T N_l^T w + f.

    Args:
        chains: The modules.
        w: Wrench w^i of each, one (6,) per link, [N m, N], link axes.
        f: Passive forces of the joints of each, one (nv of the joint,) per link, [N m] or [N].

    Source: Shah, Saha, Dutt 2012, section 4.1, step 2, and Figure A.1.
    """
    from_children: list[list[Array]] = [[] for _ in chains]
    h_tilde: list[Vectors] = [[] for _ in chains]
    for chain in inward_modules(chains):
        i = chain.index
        w_tilde = added(chain, w[i], from_children[i])
        h_tilde[i] = [a + b for a, b in zip(chain.N.T @ w_tilde, f[i], strict=True)]
        if chain.parent >= 0:
            from_children[chain.parent].append(chain.A.T @ w_tilde)
    return h_tilde


def _base_and_torques(
    robot: Robot, chains: Sequence[SerialChain], h_tilde: Array, M_tilde: list[Vectors]
) -> tuple[Array, Array]:
    """Return (vdot_0, tau): step 3; joint k has (M~_k p_k + H_k)^T a_k in I_theta0 vdot_0, a_k due to vdot_0 alone.

    Args:
        h_tilde: h~ of the robot, (nv,). M_tilde: Mass matrix of each link and all outward of it, by module, (6, 6).
    """
    n0 = robot.base.nv
    vdot_0, P_0 = np.zeros(0), chains[0].p_k[0]
    if n0:
        I_0 = P_0.T @ M_tilde[0][0] @ P_0 + robot.bodies[0].rotor_inertia
        vdot_0 = -solve_symmetric(I_0, h_tilde[:n0])  # (26)
    a: list[Vectors] = []
    tau: list[Vectors] = []
    for chain in outward_modules(chains):
        if chain.parent < 0:
            a.append(chain.N @ [vdot_0])
            tau.append([np.zeros(n0)])
            continue
        a.append(chain.A @ a[chain.parent])
        tau.append([])
        for k in chain.outward():
            body, F = chain.bodies[k], M_tilde[chain.index][k] @ chain.p_k[k] + chain.H_k[k]
            force = F.T @ a[-1][k]
            tau[-1].append(force if body.follows else force + h_tilde[body.v])  # (27)
    return vdot_0, scatter_add(robot, by_body(tau))[n0:]
