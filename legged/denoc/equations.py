"""The DeNOC matrices N_l and N_d, and the equations of motion that they give (sections 2.2 and 3 of the paper).

Every matrix is formed, in world axes. The blocks A^(i,beta) and N^i are those of `legged.dynamics.modules`, whose
operators drive the recursions. A module's twist t^i stacks the twists of its bodies, (6 eta,), in the order of
`robot.modules[i].bodies`. Source: Shah, Saha, Dutt 2012, sections 2.2 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.arguments import array, known_name, whole
from legged.checked import checked
from legged.denoc.joints import joint_forces, reflected_inertia, rotor_momentum, rotor_momentum_rate
from legged.denoc.kinematics import Kinematics, Rates, kinematics, rates, read_state, twist_propagation, world_chains
from legged.dynamics.arguments import Wrenches, body_wrenches
from legged.dynamics.inertia import block_diagonal
from legged.dynamics.modules import SerialChain, dense
from legged.errors import SingularError
from legged.robot.robot import Robot
from legged.spatial import Array, skew


def _module_index(robot: Robot, name: str, value: int) -> int:
    return whole(name, value, least=0, most=len(robot.modules) - 1)


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
    return module_propagation(world_chains(robot, kinematics(robot, q)), i, beta)


def module_propagation(chains: Sequence[SerialChain], i: int, j: int) -> Array:
    """Return A^(i,j), (6 eta^i, 6 eta^j): the product of A^(i,beta) on the path from M_i to M_j, or zero."""
    block = np.eye(6 * len(chains[i].bodies))
    while i > j:
        block = block @ dense(chains[i].A)
        i = chains[i].parent
    return block if i == j else np.zeros((len(block), 6 * len(chains[j].bodies)))


@checked
def module_joint_rate_propagation(robot: Robot, q: Array, i: int) -> Array:
    """Return N^i, (6 eta, module's DoF), world axes: module-joint rates to the module's twist relative to its parent.

    Its (k, l) block is A_(k,l) p_l for l at or before k. N^0 is P_0. The rates are `v[module.v]`.

    Args:
        robot: The robot. q: Configuration, (nq,). i: Module number.

    Source: Shah, Saha, Dutt 2012, eqs. (5), (6).
    """
    return dense(world_chains(robot, kinematics(robot, q))[_module_index(robot, "i", i)].N)


@checked
def module_twists(robot: Robot, q: Array, v: Array) -> list[Array]:
    """Return t^i of every module, (6 eta,) each, world axes, by the recursion t^i = A^(i,beta) t^beta + N^i v^i.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).

    Source: Shah, Saha, Dutt 2012, eqs. (3), (8), (10).
    """
    q, v = read_state(robot, q=q, v=v)
    twists: list[list[Array]] = []
    for chain in world_chains(robot, kinematics(robot, q)):
        t_beta = twists[chain.parent] if chain.parent >= 0 else []
        twists.append(chain.twists(t_beta, chain.joint_entries(v)))
    return [np.concatenate(t) for t in twists]


@checked
def denoc_matrices(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Return (N_l, N_d), (6 n, 6 n) and (6 n, nv) for n bodies, world axes: t = N_l @ N_d @ v.

    N_l is block lower triangular with A^(i,j) of equation (9); N_d has N^i of equation (5) in the rows of module i and
    the columns of its joints: block diagonal if v has the joints module by module and no joint is coupled.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eqs. (11), (12); (13) for a chain, (14) to (16) for the biped.
    """
    return _decoupled(robot, kinematics(robot, q))


def _decoupled(robot: Robot, at: Kinematics) -> tuple[Array, Array]:
    N_l, N_d = np.eye(6 * len(robot.bodies)), np.zeros((6 * len(robot.bodies), robot.nv))
    chains = world_chains(robot, at)
    for chain in chains:
        own = rows(robot, chain.index)
        if chain.parent >= 0:  # A^(i,j) = A^(i,beta) A^(beta,j)
            beta = rows(robot, chain.parent)
            N_l[own, : beta.stop] += dense(chain.A) @ N_l[beta, : beta.stop]
        for column, entry in zip(robot.modules[chain.index].v, dense(chain.N).T, strict=True):
            N_d[own, column] += entry
    return N_l, N_d


@checked
def complement(robot: Robot, q: Array) -> Array:
    """Return N = N_l @ N_d, (6 n, nv), world axes, eq. (24): the natural orthogonal complement, t = N @ v.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    return complement_at(robot, kinematics(robot, q))


def complement_at(robot: Robot, at: Kinematics) -> Array:
    """Return N, (6 n, nv), world axes, for known kinematics."""
    return np.matmul(*_decoupled(robot, at))


@checked
def complement_rate(robot: Robot, q: Array, v: Array) -> Array:
    """Return the time derivative of N, (6 n, nv), world axes.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read_state(robot, q=q, v=v)
    at = kinematics(robot, q)
    return complement_and_rate(robot, at, rates(robot, q, v, at))[1]


def complement_and_rate(robot: Robot, at: Kinematics, moving: Rates) -> tuple[Array, Array]:
    """Return (N, its time derivative), both (6 n, nv).

    The rows of body k are N_k = A_(k,k-1) N_(k-1) + p_k, so that Nd_k = A Nd_(k-1) + Ad N_(k-1) + pd_k.
    """
    N = complement_at(robot, at)
    N_dot = np.zeros_like(N)
    for body in robot.bodies:
        own, above = (slice(6 * k, 6 * k + 6) for k in (body.index, body.parent))
        if body.parent >= 0:
            A_dot = np.zeros((6, 6))
            A_dot[3:, :3] = -skew(moving.twist[body.index, 3:] - moving.twist[body.parent, 3:])
            A = twist_propagation(at.origin[body.index] - at.origin[body.parent])
            N_dot[own] = A @ N_dot[above] + A_dot @ N[above]
        N_dot[own, body.v] += moving.p_dot[body.index]
    return N, N_dot


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
    S = block_diagonal([S_k(M, t[:3]) for M, t in zip(mass_blocks(robot, at), moving.twist, strict=True)])
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
    w += np.concatenate([_paper_block(M, t[:3]) @ t for M, t in zip(mass_blocks(robot, at), moving.twist, strict=True)])
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
    w = [(np.cross(_first_moment(M), robot.gravity), M[5, 5] * robot.gravity) for M in mass_blocks(robot, at)]
    return np.array(w).ravel()


def _external(robot: Robot, at: Kinematics, wrenches: Wrenches) -> Array:
    """Return w^F, (6 n,): external wrenches on links, about their bodies' origins in world axes."""
    total = np.zeros((len(robot.bodies), 2, 3))
    for k, w in body_wrenches(robot, wrenches).items():
        total[k] = w.reshape(2, 3) @ at.rotation[k].T
    return total.ravel()


def mass_blocks(robot: Robot, at: Kinematics) -> list[Array]:
    """Return each body's mass matrix about its origin, world axes, (6, 6)."""
    rotations = [block_diagonal([R, R]) for R in at.rotation]
    return [R @ body.M @ R.T for body, R in zip(robot.bodies, rotations, strict=True)]


def mass_matrix_at(robot: Robot, at: Kinematics) -> Array:
    """Return M, (6 n, 6 n), world axes, as `mass_matrix` does, for known kinematics."""
    return block_diagonal(mass_blocks(robot, at))


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
