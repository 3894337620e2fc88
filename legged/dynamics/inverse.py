"""Inverse dynamics by recursions between modules and inside them.

Source: Shah, Saha, Dutt 2012, section 4.1 and Figure A.1.
"""

from __future__ import annotations

import numpy as np

from legged.checked import checked
from legged.compiler.ir.annotations import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.inertia import composite_masses
from legged.dynamics.sweeps import STEP_1, STEP_2, STEP_3, inward, outward, outward_forces, transforms
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, solve_symmetric


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
    X = transforms(robot, q)
    with stage(STEP_1):
        w, f = outward_forces(robot, q, v, vdot, wrenches)
    with stage(STEP_2):
        return _project(robot, q, X, w, f)


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
    X = transforms(robot, q)
    with stage(STEP_1):
        w, f = outward_forces(robot, q, v, vdot, wrenches)
    with stage(STEP_2):
        h_tilde, M_tilde = _project(robot, q, X, w, f), composite_masses(robot, X)
    with stage(STEP_3):
        vdot_0, tau = _base_and_torques(robot, q, X, h_tilde, M_tilde)
    return finite(robot, "the base acceleration", vdot_0), finite(robot, "the inverse dynamics", tau)


def _project(robot: Robot, q: Array, X: list[Transform], w: list[Array], f: list[Array]) -> Array:
    """Return N_d^T N_l^T w + f, (nv,), from the wrench of each body and the passive force of each joint."""
    tau: list[Array] = [np.zeros(0)] * len(robot.bodies)
    w = list(w)
    for body in inward(robot):
        k = body.index
        if body.kind == "base":
            tau[k] = robot.base.motion_matrix(q).T @ w[k]
        else:
            tau[k] = body.P.T @ w[k] + f[k]
            w[body.parent] = w[body.parent] + X[k].T @ w[k]
    return scatter_add(robot, tau)


def _base_and_torques(
    robot: Robot, q: Array, X: list[Transform], h_tilde: Array, M_tilde: list[Array]
) -> tuple[Array, Array]:
    """Return (vdot_0, tau): step 3. I_theta0 vdot_0 is (M~ p + H)^T a with a the body's acceleration due to vdot_0."""
    n0 = robot.base.nv
    P_0 = robot.base.motion_matrix(q)
    vdot_0 = -solve_symmetric(P_0.T @ M_tilde[0] @ P_0, h_tilde[:n0]) if n0 else np.zeros(0)
    tau: list[Array] = [np.zeros(n0)] * len(robot.bodies)
    a: dict[int, Array] = {}
    for body in outward(robot):
        k = body.index
        if body.kind == "base":
            a[k] = P_0 @ vdot_0 if n0 else np.zeros(6)
        else:
            a[k] = X[k] @ a[body.parent]
            own = (M_tilde[k] @ body.P + body.rotor_momentum).T @ a[k]
            tau[k] = own if body.follows else own + h_tilde[body.v]
    return vdot_0, scatter_add(robot, tau)[n0:]
