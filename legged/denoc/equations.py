"""Dense equations of motion I vdot + C v = tau + tau^F with the matrices of equation (24) (section 3 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from legged.arguments import array, known_name
from legged.checked import checked
from legged.denoc.joints import joint_forces, reflected_inertia, rotor_momentum, rotor_momentum_rate
from legged.denoc.kinematics import Kinematics, kinematics, rates, read_state
from legged.denoc.modules import block_diagonal, complement_and_rate, complement_at
from legged.errors import SingularError
from legged.robot.robot import Robot
from legged.spatial import Array, skew

Wrenches = Mapping[str, Array] | Array | None


@checked
def mass_matrix(robot: Robot, q: Array) -> Array:
    """Return M, (6 n, 6 n) for n bodies, world axes: block diagonal, each body's mass matrix about its O_k.

        M_k = [  I_k     m d~_k ]
              [ -m d~_k  m 1    ]

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eqs. (18), (19), (21).
    """
    return mass_matrix_at(robot, kinematics(robot, q))


@checked
def angular_velocity_matrix(robot: Robot, q: Array, v: Array) -> Array:
    """Return Omega, (6 n, 6 n), [rad/s], world axes: blocks omega~_k, twice for each body.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).

    Source: Shah, Saha, Dutt 2012, eqs. (18), (19), (21).
    """
    q, v = read_state(robot, q=q, v=v)
    twist = rates(robot, q, v, kinematics(robot, q)).twist
    return block_diagonal([skew(t[:3]) for t in twist for _ in range(2)])


@checked
def coupling_matrix(robot: Robot) -> Array:
    """Return E, (6 n, 6 n), dimensionless: selects the angular part of every twist.

    Source: Shah, Saha, Dutt 2012, eqs. (18), (19), (21).
    """
    return block_diagonal([np.eye(3), np.zeros((3, 3))] * len(robot.bodies))


@checked
def generalized_inertia_matrix(robot: Robot, q: Array) -> Array:
    """Return the generalized inertia matrix (GIM), (nv, nv): I = N^T M N + N^T H + H^T N + I_r with the joints' rotors.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eq. (24), without rotors; for these see `legged.denoc.joints`.
    """
    at = kinematics(robot, q)
    N, H = complement_at(robot, at), rotor_momentum(robot, at)
    return N.T @ (mass_matrix_at(robot, at) @ N + H) + H.T @ N + reflected_inertia(robot)


@checked
def convective_inertia_matrix(robot: Robot, q: Array, v: Array, form: str = "skew") -> Array:
    """Return C, (nv, nv), the matrix of convective inertia (MCI): C @ v are the Coriolis and centrifugal forces.

    C is not unique. Two choices are available:

        "paper"   C = N^T (M Nd + Omega M E N), the projection of equation (20);
        "skew"    C = N^T (M Nd + S N),         for which Id - 2 C is skew-symmetric.

    S is block diagonal, each body's

        S_k = [ (omega~ I - I omega~ - (I omega)~) / 2    0 ]
              [ -m (omega x d)~                           0 ]

    so that S t = Omega M E t, and Md - 2 S is skew: hence Id - 2 C = N^T (Md - 2 S) N + Nd^T M N - N^T M Nd is.
    Rotors add N^T Hd + H^T Nd to either.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). form: "skew" or "paper".

    Raises:
        UnknownNameError: For any other form.

    Source: Shah, Saha, Dutt 2012, eqs. (20) to (24). Equation (24) prints Md N for Omega M E N; with M taken about
    the link's origin the two differ, by the moment m (omega x d) x (velocity of O) in Md t.
    """
    known_name("form of the convective matrix", form, ("skew", "paper"))
    q, v = read_state(robot, q=q, v=v)
    at = kinematics(robot, q)
    moving = rates(robot, q, v, at)
    N, N_dot = complement_and_rate(robot, at, moving)
    S_k = _skew_block if form == "skew" else _paper_block
    S = block_diagonal([S_k(M, t[:3]) for M, t in zip(_mass_blocks(robot, at), moving.twist, strict=True)])
    H, H_dot = rotor_momentum(robot, at), rotor_momentum_rate(robot, at, moving)
    return N.T @ (mass_matrix_at(robot, at) @ N_dot + S @ N + H_dot) + H.T @ N_dot


@checked
def gravity_forces(robot: Robot, q: Array) -> Array:
    """Return N^T w^E, (nv,), the generalized force of gravity, on the right-hand side of equation (23).

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    at = kinematics(robot, q)
    return complement_at(robot, at).T @ _weights(robot, at)


@checked
def external_forces(robot: Robot, q: Array, wrenches: Wrenches) -> Array:
    """Return tau^F = N^T w^F, (nv,), the generalized force of external wrenches, eq. (24).

    Args:
        robot: The robot. q: Configuration, (nq,).
        wrenches: By link name or (n_links, 6): [n; f] about each link's origin, in link axes; or None.
    """
    at = kinematics(robot, q)
    return complement_at(robot, at).T @ _external(robot, at, wrenches)


@checked
def bias_forces(robot: Robot, q: Array, v: Array, wrenches: Wrenches = None) -> Array:
    """Return h = C v - tau^F, (nv,), with gravity: N^T (M Nd v + Omega M E t - w^E - w^F).

    The paper's equation for h omits gravity; its nomenclature and the authors' code include it. h also includes
    friction, springs and rotors of the joints.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        wrenches: As in `external_forces`.

    Source: Shah, Saha, Dutt 2012, eqs. (22), (25), (28).
    """
    q, v = read_state(robot, q=q, v=v)
    at = kinematics(robot, q)
    moving = rates(robot, q, v, at)
    N, N_dot = complement_and_rate(robot, at, moving)
    w = mass_matrix_at(robot, at) @ (N_dot @ v)
    w += np.concatenate(
        [_paper_block(M, t[:3]) @ t for M, t in zip(_mass_blocks(robot, at), moving.twist, strict=True)]
    )
    w += rotor_momentum_rate(robot, at, moving) @ v
    own = rotor_momentum(robot, at).T @ (N_dot @ v) + joint_forces(robot, q, v)
    return N.T @ (w - _weights(robot, at) - _external(robot, at, wrenches)) + own


@checked
def inverse_dynamics(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches = None) -> Array:
    """Return the generalized forces tau = I vdot + h, (nv,), eq. (23); arguments as in `legged.inverse_dynamics`."""
    (vdot,) = read_state(robot, vdot=vdot)
    return generalized_inertia_matrix(robot, q) @ vdot + bias_forces(robot, q, v, wrenches)


@checked
def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration vdot = I^-1 (tau - h), (nv,), eq. (28); arguments as in `legged.forward_dynamics`."""
    (tau,) = read_state(robot, tau=tau)
    return _solved(robot, generalized_inertia_matrix(robot, q), tau - bias_forces(robot, q, v, wrenches))


@checked
def floating_inverse_dynamics(
    robot: Robot, q: Array, v: Array, joint_accelerations: Array, wrenches: Wrenches = None
) -> tuple[Array, Array]:
    """Return (base acceleration (n0,), joint torques (nv - n0,)); arguments as in `legged.floating_inverse_dynamics`.

    vdot_0 = -I_0^-1 (I_theta0^T vdot_theta + h_0),   tau = I_theta0 vdot_0 + I_theta vdot_theta + h_theta

    Source: Shah, Saha, Dutt 2012, eqs. (26), (27).
    """
    n0 = robot.base.nv
    inertia, h = generalized_inertia_matrix(robot, q), bias_forces(robot, q, v, wrenches)
    theta = array("joint_accelerations", joint_accelerations, (robot.nj,), "one entry per joint coordinate")
    base = -_solved(robot, inertia[:n0, :n0], inertia[:n0, n0:] @ theta + h[:n0])
    return base, inertia[n0:, :n0] @ base + inertia[n0:, n0:] @ theta + h[n0:]


def _solved(robot: Robot, inertia: Array, b: Array) -> Array:
    try:
        return np.linalg.solve(inertia, b)
    except np.linalg.LinAlgError as error:
        raise SingularError(
            f"the inertia matrix of robot {robot.name!r} is singular at this configuration; "
            f"legged.conditioning(robot, q) identifies the module"
        ) from error


def _weights(robot: Robot, at: Kinematics) -> Array:
    """Return w^E of gravity, (6 n,): m g acts at the center of mass, at d from O_k, so w_k = [m d x g; m g]."""
    w = [(np.cross(_first_moment(M), robot.gravity), M[5, 5] * robot.gravity) for M in _mass_blocks(robot, at)]
    return np.array(w).ravel()


def _external(robot: Robot, at: Kinematics, wrenches: Wrenches) -> Array:
    """Return w^F, (6 n,): external wrenches on links, about their bodies' origins in world axes."""
    total = np.zeros((len(robot.bodies), 6))
    for name, w in _by_name(robot, wrenches).items():
        link = robot.link(name)
        R = at.rotation[link.body]
        n, f = R @ link.rotation @ np.asarray(w)[:3], R @ link.rotation @ np.asarray(w)[3:]
        total[link.body] += np.concatenate([n + np.cross(R @ link.position, f), f])
    return total.ravel()


def _by_name(robot: Robot, wrenches: Wrenches) -> dict[str, Array]:
    if wrenches is None:
        return {}
    if not isinstance(wrenches, Mapping):
        rows = array("wrenches", wrenches, (len(robot.links), 6), "one [n; f] per link of robot.links")
        return {link.name: w for link, w in zip(robot.links, rows, strict=True)}
    known = {link.name for link in robot.links}
    for name in wrenches:
        known_name("link", name, known)
    return {name: array(f"the wrench on link {name!r}", w, (6,)) for name, w in wrenches.items()}


def _mass_blocks(robot: Robot, at: Kinematics) -> list[Array]:
    """Return each body's mass matrix about its origin, world axes, (6, 6)."""
    rotations = [block_diagonal([R, R]) for R in at.rotation]
    return [R @ body.M @ R.T for body, R in zip(robot.bodies, rotations, strict=True)]


def mass_matrix_at(robot: Robot, at: Kinematics) -> Array:
    """Return M, (6 n, 6 n), world axes, as `mass_matrix` does, for known kinematics."""
    return block_diagonal(_mass_blocks(robot, at))


def _first_moment(M: Array) -> Array:
    """Return m d, (3,), [kg m], from a mass matrix."""
    return np.array([M[2, 4], M[0, 5], M[1, 3]])


def _skew_block(M: Array, omega: Array) -> Array:
    """Return S_k, (6, 6); see `convective_inertia_matrix`."""
    inertia, W = M[:3, :3], skew(omega)
    top = (W @ inertia - inertia @ W - skew(inertia @ omega)) / 2
    return np.block([[top, np.zeros((3, 3))], [-skew(np.cross(omega, _first_moment(M))), np.zeros((3, 3))]])


def _paper_block(M: Array, omega: Array) -> Array:
    """Return Omega_k M_k E_k, (6, 6)."""
    Omega = block_diagonal([skew(omega)] * 2)
    return Omega @ M @ block_diagonal([np.eye(3), np.zeros((3, 3))])
