"""The DeNOC matrices N_l and N_d, and the equations of motion that they give (sections 2.2 and 3 of the paper).

Every matrix is formed, in world axes. The blocks A^(i,beta) and N^i are those of `legged.dynamics.modules`, whose
operators drive the recursions. A module's twist t^i stacks the twists of its bodies, (6 eta,), in the order of
`robot.modules[i].bodies`. Errors: ShapeError or NotFiniteError for arrays that do not fit the robot, ArgumentError for
a number that no module has. Source: Shah, Saha, Dutt 2012, sections 2.2 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.arguments import array, known_name
from legged.checked import checked
from legged.denoc.joints import armature_rotation, joint_forces, reflected_inertia, rotor_momentum, rotor_momentum_rate
from legged.denoc.kinematics import (
    Kinematics,
    block_diagonal,
    complement_and_rate,
    external,
    gamma,
    identity,
    kinematics,
    mass_blocks,
    mass_matrix_at,
    module_index,
    paper_block,
    rates,
    read_state,
    rows,
    skew_block,
    weights,
    world_chains,
    zeros,
)
from legged.dynamics.arguments import Wrenches
from legged.dynamics.inertia import DenseArticulation, articulate
from legged.dynamics.modules import SerialChain, by_module, dense
from legged.errors import DefinitionError, SingularError
from legged.robot.robot import Robot
from legged.spatial import Array, skew, solve_symmetric


@checked
def module_twist_propagation(robot: Robot, q: Array, i: int, beta: int) -> Array:
    """Return A^(i,beta), (6 eta^i, 6 eta^beta), [1, m], world axes: twist of M_beta to that of M_i if fixed to it.

    It depends only on the last link of M_beta, so only the last six columns are nonzero. It is the identity for
    i = beta and zero unless M_i lies outward of M_beta.

    Args:
        robot: The robot. q: Configuration, (nq,). i, beta: Module numbers.

    Source: Shah, Saha, Dutt 2012, eqs. (9), (12).
    """
    i, beta = module_index(robot, "i", i), module_index(robot, "beta", beta)
    return module_propagation(world_chains(robot, kinematics(robot, q)), i, beta)


def module_propagation(chains: Sequence[SerialChain], i: int, j: int) -> Array:
    """Return A^(i,j), (6 eta^i, 6 eta^j), [1, m]: the product of A^(i,beta) on the path from M_i to M_j, or zero."""
    block = np.eye(6 * len(chains[i].bodies))
    while i > j:
        block = block @ dense(chains[i].A)
        i = chains[i].parent
    return block if i == j else np.zeros((len(block), 6 * len(chains[j].bodies)))


@checked
def module_joint_rate_propagation(robot: Robot, q: Array, i: int) -> Array:
    """Return N^i, (6 eta, module's DoF), [1, m], world axes: module-joint rates to the twist relative to its parent.

    Its (k, l) block is A_(k,l) p_l for l at or before k. N^0 is P_0. The rates are `v[module.v]`.

    Args:
        robot: The robot. q: Configuration, (nq,). i: Module number.

    Source: Shah, Saha, Dutt 2012, eqs. (5), (6).
    """
    return dense(world_chains(robot, kinematics(robot, q))[module_index(robot, "i", i)].N)


@checked
def module_twists(robot: Robot, q: Array, v: Array) -> list[Array]:
    """Return t^i of every module, (6 eta,) each, [rad/s, m/s], world axes, by t^i = A^(i,beta) t^beta + N^i v^i.

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
    """Return (N_l, N_d), (6 n, 6 n) and (6 n, nv) for n bodies, [1, m], world axes: t = N_l @ N_d @ v.

    N_l is block lower triangular with A^(i,j) of equation (9); N_d has N^i of equation (5) in the rows of module i and
    the columns of its joints: block diagonal if v has the joints module by module and no joint is coupled.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eqs. (11), (12); (13) for a chain, (14) to (16) for the biped.
    """
    return _decoupled(robot, kinematics(robot, q))


def _decoupled(robot: Robot, at: Kinematics) -> tuple[Array, Array]:
    n = 6 * len(robot.bodies)
    N_l, N_d = identity(n, at.origin), zeros((n, robot.nv), at.origin)
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
    """Return N = N_l @ N_d, (6 n, nv), [1, m], world axes, eq. (24): the natural orthogonal complement, t = N @ v.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    return np.matmul(*_decoupled(robot, kinematics(robot, q)))


@checked
def complement_rate(robot: Robot, q: Array, v: Array) -> Array:
    """Return the time derivative of N, (6 n, nv), [1/s, m/s], world axes.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read_state(robot, q=q, v=v)
    at = kinematics(robot, q)
    return complement_and_rate(robot, at, rates(robot, q, v, at))[1]


@checked
def mass_matrix(robot: Robot, q: Array) -> Array:
    """Return M, (6 n, 6 n), [kg m^2, kg m, kg], world axes: block diagonal, the mass matrix M_k of n bodies about O_k.

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
    twists = rates(robot, q, v, kinematics(robot, q)).twist
    return block_diagonal([skew(t[:3]) for t in twists for _ in range(2)])


@checked
def coupling_matrix(robot: Robot) -> Array:
    """Return E, (6 n, 6 n), dimensionless: selects the angular part of every twist.

    Source: Shah, Saha, Dutt 2012, eqs. (18), (19), (21).
    """
    return block_diagonal([np.eye(3), np.zeros((3, 3))] * len(robot.bodies))


@checked
def generalized_inertia_matrix(robot: Robot, q: Array) -> Array:
    """Return the GIM, (nv, nv), [kg m^2, kg m, kg]: I = N^T M N + N^T H + H^T N + I_r with the joints' rotors.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eqs. (24), (A.1), without rotors; for these see `legged.denoc.joints`.
    """
    at = kinematics(robot, q)
    N, H = np.matmul(*_decoupled(robot, at)), rotor_momentum(robot, at)
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
    Rotors add N^T Hd + H^T Nd to either, and the armature of the base a skew-symmetric matrix.

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
    S_k = skew_block if form == "skew" else paper_block
    S = block_diagonal([S_k(M, t[:3]) for M, t in zip(mass_blocks(robot, at), moving.twist, strict=True)])
    H, H_dot = rotor_momentum(robot, at), rotor_momentum_rate(robot, at, moving)
    C = N.T @ (mass_matrix_at(robot, at) @ N_dot + S @ N + H_dot) + H.T @ N_dot
    return C + armature_rotation(robot, v)


@checked
def gravity_forces(robot: Robot, q: Array) -> Array:
    """Return N^T w^E, (nv,), [N m] or [N], the generalized force of gravity, on the right-hand side of equation (23).

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    at = kinematics(robot, q)
    return np.matmul(*_decoupled(robot, at)).T @ weights(robot, at)


@checked
def external_forces(robot: Robot, q: Array, wrenches: Wrenches) -> Array:
    """Return tau^F = N^T w^F, (nv,), [N m] or [N], the generalized force of external wrenches, eq. (24).

    Args:
        robot: The robot. q: Configuration, (nq,).
        wrenches: By link name or (n_links, 6): [n; f] about each link's origin, in link axes; or None.
    """
    at = kinematics(robot, q)
    return np.matmul(*_decoupled(robot, at)).T @ external(robot, at, wrenches)


@checked
def bias_forces(robot: Robot, q: Array, v: Array, wrenches: Wrenches = None) -> Array:
    """Return h = C v - tau^F, (nv,), [N m] or [N], with gravity: N^T (M Nd v + Omega M E t - w^E - w^F).

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
    w += np.concatenate([paper_block(M, t[:3]) @ t for M, t in zip(mass_blocks(robot, at), moving.twist, strict=True)])
    w += rotor_momentum_rate(robot, at, moving) @ v
    own = rotor_momentum(robot, at).T @ (N_dot @ v) + joint_forces(robot, q, v) + armature_rotation(robot, v) @ v
    return N.T @ (w - weights(robot, at) - external(robot, at, wrenches)) + own


@checked
def inverse_dynamics(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches = None) -> Array:
    """Return the generalized forces tau = I vdot + h, (nv,), eq. (23); arguments as in `legged.inverse_dynamics`."""
    (vdot,) = read_state(robot, vdot=vdot)
    return generalized_inertia_matrix(robot, q) @ vdot + bias_forces(robot, q, v, wrenches)


@checked
def generalized_inertia_solution(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
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
        return solve_symmetric(inertia, b) if b.dtype == object else np.linalg.solve(inertia, b)
    except np.linalg.LinAlgError as error:
        words = "is singular at this configuration; legged.conditioning(robot, q) identifies the module"
        raise SingularError(f"the inertia matrix of robot {robot.name!r} {words}") from error


class ArticulatedModule(DenseArticulation):
    """A module together with all modules outward of it, their joints free, in world axes; see `DenseArticulation`.

    It is a `legged.dynamics.inertia.ArticulatedModule` with every matrix formed.
    For an exactly singular I^ the pseudoinverse is used, so that motions without inertia have no effect.
    """

    @staticmethod
    def inverted(I_hat: Array) -> Array:
        """Return the inverse of I^^i, (n, n), or its pseudoinverse; I_hat: (n, n), [kg m^2] or [kg]."""
        if I_hat.dtype == object:
            return DenseArticulation.inverted(I_hat)
        try:
            return np.linalg.inv(I_hat)
        except np.linalg.LinAlgError:
            return np.linalg.pinv(I_hat, hermitian=True)


@checked
def articulated_modules(robot: Robot, q: Array) -> list[ArticulatedModule]:
    """Return the articulated modules, world axes, in the order of `robot.modules`.

        M^^i = M^i + sum over j in xi^i of (A^(j,i))^T M^^(j,j) A^(j,i)                 (A.8), (A.9)

    The rotors of a module's joints add H^i to Psi^ and (H^i)^T N + I_r^i to I^.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: Shah, Saha, Dutt 2012, eqs. (A.6) to (A.9).
    """
    return _articulate(robot, kinematics(robot, q))


def _articulate(robot: Robot, at: Kinematics) -> list[ArticulatedModule]:
    M, rotors = (by_module(robot, x) for x in (mass_blocks(robot, at), [body.rotor_inertia for body in robot.bodies]))
    dense_everywhere = {m.index: ArticulatedModule for m in robot.modules}
    return articulate(world_chains(robot, at), M, rotors, intra_modular=dense_everywhere)


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
    parts, chains = _articulate(robot, at), world_chains(robot, at)
    U, D = identity(robot.nv, at.origin), zeros((robot.nv, robot.nv), at.origin)
    for i, module in enumerate(robot.modules):
        D[np.ix_(module.v, module.v)] = parts[i].I_hat
        for j in gamma(robot, i)[1:]:
            U[np.ix_(module.v, robot.modules[j].v)] = (module_propagation(chains, j, i) @ parts[i].N).T @ parts[j].Psi
    return U, D
