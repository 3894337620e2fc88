"""Forward dynamics from the block UDU^T factors of the inertia matrix, between modules and inside them.

Source: Shah, Saha, Dutt 2012, section 4.2 and Appendix A.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from legged.arguments import known_name
from legged.checked import checked
from legged.compiler.ir.annotations import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.inertia import augmented_inertia_matrix, mass_matrices
from legged.dynamics.inverse import bias_forces, inverse_dynamics
from legged.dynamics.sweeps import STEP_1, STEP_2, STEP_3, inward, outward, outward_forces, transforms
from legged.robot.body import Body
from legged.robot.configuration import scatter
from legged.robot.construction.articulated import JointFactors, eliminate, with_joint_rows
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, factor_symmetric, mirror, solve_factored, solve_symmetric


@checked
def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration vdot, (nv,), under given generalized forces: I vdot = tau - h.

    The system is solved in O(n) with the factors of I = U D U^T, without forming I:

        U phi^ = tau - N_d^T N_l^T w,      D phi~ = phi^,      U^T vdot = phi~         (30)

    Coupled joints cannot be eliminated one by one: a robot with coupled joints is solved with its inertia matrix.

    Args:
        robot: The robot.
        q: Configuration, (nq,). v: Velocity, (nv,). tau: Generalized forces, (nv,), base rows first.
        wrenches: External wrenches on links, by name or (n_links, 6), [n; f] about each link's origin, link axes.

    Returns:
        vdot, (nv,); gravity included. See `docs/reference/conventions.md` for what the base's entries mean.

    Raises:
        ShapeError, NotFiniteError, UnknownNameError: For arguments that do not fit the robot.
        SingularError: If the inertia of some motion is zero.

    Source: Shah, Saha, Dutt 2012, section 4.2, eqs. (28) to (30), Figure A.2.
    """
    return accelerations(robot, q, v, tau, wrenches, np.zeros(robot.nv))


def accelerations(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches,
    extra: Array,
    masses: Mapping[int, Array] | None = None,
) -> Array:
    """Return vdot, (nv,), with (I + diag(extra) + sum of J_k^T A_k J_k) vdot = tau - h.

    It is `forward_dynamics` with added inertia, for integrators that treat forces implicitly: `extra` and A_k are then
    the time step times the decrease of joint forces, and of the wrench on a body, per velocity.

    Args:
        robot, q, v, tau, wrenches: As in `forward_dynamics`.
        extra: Inertia added to the joints, (nv,), [kg m^2] or [kg], zero in the base's rows.
        masses: A_k by the index of the body, (6, 6), [kg m^2, kg m, kg], about the body's origin in body axes; J_k maps
            v to the twist of the body.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    if robot.coupled_joints:
        b = tau - bias_forces(robot, q, v, wrenches)
        return finite(robot, "the forward dynamics", _solved(robot, q, b, extra, masses=masses))
    X = transforms(robot, q)
    with stage(STEP_1):
        w, f = outward_forces(robot, q, v, None, wrenches)
    with stage(STEP_2):
        rotors = [rotor_inertia(body, extra) for body in robot.bodies]
        factors, phi_tilde = _inward(robot, q, X, w, f, tau, rotors, masses=masses)
    with stage(STEP_3):
        vdot = _outward(robot, q, X, factors, phi_tilde)
    return finite(robot, "the forward dynamics", vdot)


class HybridDynamics(NamedTuple):
    """The result of `hybrid_dynamics`.

    Attributes:
        vdot: Acceleration, (nv,), that of the prescribed joints as given.
        tau: Generalized forces, (nv,), [N m] or [N], those of the other joints as given.
    """

    vdot: Array
    tau: Array


@checked
def hybrid_dynamics(
    robot: Robot,
    q: Array,
    v: Array,
    vdot: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    prescribed: Sequence[str] = (),
) -> HybridDynamics:
    """Return accelerations and forces of a robot, some joints of which have prescribed motions q(t).

    Of the prescribed joints the acceleration is given and the force is computed, of the others conversely:

        [ I_pp  I_pf ] [ vdot_p ]   [ tau_p ]
        [ I_fp  I_ff ] [ vdot_f ] = [ tau_f ] - h

    The recursion is O(n): that of `forward_dynamics`, in which a prescribed joint transmits the whole articulated
    inertia of its body and the wrench of its acceleration.

    Args:
        robot: The robot.
        q: Configuration, (nq,). v: Velocity, (nv,), that of the prescribed joints included.
        vdot: Acceleration, (nv,); only the entries of prescribed joints are read.
        tau: Generalized forces, (nv,); only the entries of the other joints are read.
        wrenches: External wrenches on links, by name or (n_links, 6), [n; f] about each link's origin, link axes.
        prescribed: Names of joints; "base" for all coordinates of the base.

    Raises:
        ShapeError, NotFiniteError, UnknownNameError: For arguments that do not fit the robot.
        SingularError: If the inertia of some other motion is zero.
    """
    q, v, vdot, tau = read(robot, q=q, v=v, vdot=vdot, tau=tau)
    places = {"base": slice(0, robot.base.nv)} | {joint.name: joint.v for joint in robot.joints}
    entries: list[int] = []
    for name in prescribed:
        place = places[known_name("joint", name, places)]
        entries += range(place.start, place.stop)
    given = np.array([i in entries for i in range(robot.nv)], dtype=bool)
    vdot = np.array([x if fixed else 0.0 for x, fixed in zip(vdot, given, strict=True)])
    if robot.coupled_joints:
        b = tau - inverse_dynamics(robot, q, v, vdot, wrenches)
        found = _solved(robot, q, b, np.zeros(robot.nv), given)
    else:
        locked = frozenset(body.index for body in robot.bodies if body.nv and given[body.v].all())
        X = transforms(robot, q)
        with stage(STEP_1):
            w, f = outward_forces(robot, q, v, vdot, wrenches)
        with stage(STEP_2):
            rotors = [body.rotor_inertia for body in robot.bodies]
            factors, phi_tilde = _inward(robot, q, X, w, f, tau, rotors, locked)
        with stage(STEP_3):
            found = _outward(robot, q, X, factors, phi_tilde)
    vdot = finite(robot, "the hybrid dynamics", vdot + found)
    forces = inverse_dynamics(robot, q, v, vdot, wrenches)
    return HybridDynamics(vdot, np.array([y if fixed else x for x, y, fixed in zip(tau, forces, given, strict=True)]))


def velocity_jump(robot: Robot, q: Array, impulses: dict[int, Array], extra: Array) -> Array:
    """Return the velocity change, (nv,), (I + diag(extra))^-1 times the generalized impulse of impulses on bodies.

    Args:
        robot: The robot, without coupled joints. q: Configuration, (nq,).
        impulses: By body index, [n; f], (6,), [N m s] and [N s], about the body's origin in body axes.
        extra: As in `accelerations`.
    """
    X = transforms(robot, q)
    w = [-impulses[k] if k in impulses else np.zeros(6) for k in range(len(robot.bodies))]
    none = [np.zeros(body.nv) for body in robot.bodies]
    with stage(STEP_2):
        rotors = [rotor_inertia(body, extra) for body in robot.bodies]
        factors, phi_tilde = _inward(robot, q, X, w, none, np.zeros(robot.nv), rotors)
    with stage(STEP_3):
        return _outward(robot, q, X, factors, phi_tilde)


def rotor_inertia(body: Body, extra: Array) -> Array:
    """Return H^T P + I_r with added inertia, (nv of the joint, nv of the joint), [kg m^2] or [kg].

    Args:
        body: The body behind the joint. extra: Inertia added to the joints, (nv,), [kg m^2] or [kg].
    """
    return body.rotor_inertia + extra[body.v] * np.eye(body.nv)


def _solved(
    robot: Robot,
    q: Array,
    b: Array,
    extra: Array,
    locked: Array | None = None,
    masses: Mapping[int, Array] | None = None,
) -> Array:
    """Return vdot, (nv,), from the inertia matrix with added inertia; outer joints first, which preserves its zeros.

    The entries where `locked`, (nv,), is true are zero, and their equations are omitted. `masses` as in
    `accelerations`.
    """
    inertia = augmented_inertia_matrix(robot, q, masses) + extra * np.eye(robot.nv)
    columns = [i for body in robot.bodies if not body.follows for i in range(body.v.start, body.v.stop)][::-1]
    if locked is not None:
        columns = [i for i in columns if not locked[i]]
    with stage(STEP_3):
        found = solve_symmetric(inertia[np.ix_(columns, columns)], b[columns])
    return scatter(robot.nv, zip((slice(i, i + 1) for i in columns), found[:, None], strict=True))


def articulate(
    robot: Robot,
    q: Array,
    X: list[Transform],
    rotors: list[Array] | None = None,
    prescribed: frozenset[int] = frozenset(),
    masses: Mapping[int, Array] | None = None,
) -> tuple[list[JointFactors], list[Array]]:
    """Return the factors of each joint, and the articulated mass matrix M^ of each body, (6, 6), body axes.

        M^ = M + sum of X^T (M^ - Psi^ Psi^T) X over the children         (A.8), (A.9)
        Psi^ = M^ P,   I^ = P^T Psi^,   Psi = Psi^ I^-1                   (A.6), (A.7)

    The rotors of a joint add H to Psi^ and H^T P + I_r to I^, see `Body.rotor_momentum`; `rotors` replaces the bodies'
    own H^T P + I_r. A joint of a body in `prescribed` is not eliminated: it transmits the whole M^ to its parent.
    `masses` are added to the mass matrices of bodies, see `accelerations`.

    Source: Shah, Saha, Dutt 2012, Appendix A.1, link by link inside a module.
    """
    M_hat = mass_matrices(robot, masses)
    factors: list[JointFactors] = [JointFactors(np.zeros((6, 0)), ([], []))] * len(robot.bodies)
    for body in inward(robot):
        k = body.index
        if k in prescribed:
            factors[k] = JointFactors(np.zeros((6, body.nv)), ([], []))
            if body.parent >= 0:
                M_hat[body.parent] = M_hat[body.parent] + X[k].transform_inertia(M_hat[k])
            continue
        if body.kind == "base":
            P_0 = robot.base.motion_matrix(q)
            factors[k] = JointFactors(np.zeros((6, 0)), factor_symmetric(mirror(P_0.T @ M_hat[k] @ P_0)))
            continue
        factors[k], remaining = eliminate(body, M_hat[k], body.rotor_inertia if rotors is None else rotors[k])
        M_hat[body.parent] = M_hat[body.parent] + X[k].transform_inertia(remaining)
    return factors, M_hat


def _inward(
    robot: Robot,
    q: Array,
    X: list[Transform],
    w: list[Array],
    f: list[Array],
    tau: Array,
    rotors: list[Array],
    prescribed: frozenset[int] = frozenset(),
    masses: Mapping[int, Array] | None = None,
) -> tuple[list[JointFactors], list[Array]]:
    """Return (factors, phi~ of each body): i) and ii) of equation (30), with the wrenches w accumulated inward.

    f holds each joint's passive forces, rotors its H^T P + I_r; phi~ of the bodies in `prescribed` is zero.
    """
    factors, _ = articulate(robot, q, X, rotors, prescribed, masses)
    phi_tilde: list[Array] = [np.zeros(0)] * len(robot.bodies)
    w = list(w)
    for body in inward(robot):
        k = body.index
        if k in prescribed:
            phi_tilde[k] = np.zeros(body.nv)
            if body.parent >= 0:
                w[body.parent] = w[body.parent] + X[k].T @ w[k]
            continue
        P = robot.base.motion_matrix(q) if body.kind == "base" else body.P
        drive = tau[body.v] - f[k]
        phi_hat = drive - P.T @ w[k]
        phi_tilde[k] = solve_factored(factors[k].I_hat, phi_hat)
        if body.kind != "base":
            eta = w[k] + factors[k].Psi @ phi_hat  # wrench transmitted to the parent
            along = drive - rotors[k] @ phi_tilde[k]  # its components along the joint
            w[body.parent] = w[body.parent] + X[k].T @ with_joint_rows(body, eta, along)
    return factors, phi_tilde


def _outward(robot: Robot, q: Array, X: list[Transform], factors: list[JointFactors], phi_tilde: list[Array]) -> Array:
    """Return vdot, (nv,): iii) of equation (30), with mu the acceleration due to the joints inward."""
    vdot: dict[int, Array] = {}
    mu: dict[int, Array] = {}
    for body in outward(robot):
        k = body.index
        if body.kind == "base":
            vdot[k] = phi_tilde[k]
            mu[k] = robot.base.motion_matrix(q) @ vdot[k] if body.nv else np.zeros(6)
        else:
            mu_tilde = X[k] @ mu[body.parent]
            vdot[k] = phi_tilde[k] - factors[k].Psi.T @ mu_tilde
            mu[k] = mu_tilde + body.P @ vdot[k]
    return scatter(robot.nv, ((body.v, vdot[body.index]) for body in robot.bodies))
