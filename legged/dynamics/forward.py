"""Forward dynamics from the block UDU^T factors of the inertia matrix, between modules and inside them.

Source: Shah, Saha, Dutt 2012, section 4.2 and Appendix A.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import known_name, whole
from legged.checked import checked
from legged.compiler.ir import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.inertia import IntraModular, added, articulate, augmented_inertia_matrix, mass_matrices
from legged.dynamics.inverse import bias_forces, inverse_dynamics
from legged.dynamics.modules import (
    STEP_1,
    STEP_2,
    STEP_3,
    SerialChain,
    Vectors,
    by_body,
    by_module,
    inward_modules,
    module_wrenches,
    outward_modules,
    serial_chains,
)
from legged.errors import DefinitionError
from legged.robot.body import Body
from legged.robot.configuration import scatter
from legged.robot.robot import Robot
from legged.spatial import Array, solve_symmetric


@checked
def forward_dynamics(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    intra_modular: Mapping[int, IntraModular] | None = None,
) -> Array:
    """Return the acceleration vdot, (nv,), under given generalized forces: I vdot = tau - h.

    The system is solved in O(n) with the factors of I = U D U^T, without forming I:

        U phi^ = tau - N_d^T N_l^T w,      D phi~ = phi^,      U^T vdot = phi~         (30)

    Coupled joints cannot be eliminated one by one: a robot with coupled joints is solved with its inertia matrix.

    Args:
        robot: The robot.
        q: Configuration, (nq,). v: Velocity, (nv,). tau: Generalized forces, (nv,), base rows first.
        wrenches: External wrenches on links, by name or (n_links, 6), [n; f] about each link's origin, link axes.
        intra_modular: Algorithms for the inside of modules, by the number of the module, in place of the recursion
            `ArticulatedChain` of `legged.dynamics.inertia`: any class with its arguments and the methods of
            `ArticulatedModule`. Not for robots with coupled joints.

    Returns:
        vdot, (nv,); gravity included. See `docs/reference/conventions.md` for what the base's entries mean.

    Raises:
        ShapeError, NotFiniteError, UnknownNameError: For arguments that do not fit the robot.
        SingularError: If the inertia of some motion is zero.
        ArgumentError, DefinitionError: For a number in `intra_modular` that no module has, or coupled joints.

    Source: Shah, Saha, Dutt 2012, section 4.2, eqs. (28) to (30), Figure A.2.
    """
    for i in intra_modular or {}:
        whole("the number of a module in intra_modular", i, least=0, most=len(robot.modules) - 1)
    if intra_modular and robot.coupled_joints:
        raise DefinitionError(
            f"robot {robot.name!r} has coupled joints, {', '.join(map(repr, robot.coupled_joints))}, and its modules "
            f"are not eliminated one by one: leave out intra_modular"
        )
    return accelerations(robot, q, v, tau, wrenches, np.zeros(robot.nv), intra_modular=intra_modular)


def accelerations(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches,
    extra: Array,
    masses: Mapping[int, Array] | None = None,
    intra_modular: Mapping[int, IntraModular] | None = None,
) -> Array:
    """Return vdot, (nv,), with (I + diag(extra) + sum of J_k^T dM_k J_k) vdot = tau - h.

    It is `forward_dynamics` with added inertia, for integrators that treat forces implicitly: `extra` and dM_k are then
    the time step times the decrease of joint forces, and of the wrench on a body, per velocity.

    Args:
        robot, q, v, tau, wrenches: As in `forward_dynamics`.
        extra: Inertia added to the joints, (nv,), [kg m^2] or [kg], zero in the base's rows.
        masses: dM_k by the index of the body, (6, 6), [kg m^2, kg m, kg], about the body's origin in body axes; J_k
            maps v to the twist of the body.
        intra_modular: As in `forward_dynamics`.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    if robot.coupled_joints:
        b = tau - bias_forces(robot, q, v, wrenches)
        return finite(robot, "the forward dynamics", _solved(robot, q, b, extra, masses=masses))
    chains = serial_chains(robot, q)
    with stage(STEP_1):
        w, f = module_wrenches(robot, q, v, None, wrenches)
    rotors = [rotor_inertia(body, extra) for body in robot.bodies]
    drives = _drives(robot, tau, f)
    vdot = _module_accelerations(robot, chains, w, drives, rotors, masses=masses, intra_modular=intra_modular)
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
        free = _solved(robot, q, b, np.zeros(robot.nv), given)
    else:
        locked = frozenset(body.index for body in robot.bodies if body.nv and given[body.v].all())
        with stage(STEP_1):
            w, f = module_wrenches(robot, q, v, vdot, wrenches)
        rotors = [body.rotor_inertia for body in robot.bodies]
        free = _module_accelerations(robot, serial_chains(robot, q), w, _drives(robot, tau, f), rotors, locked)
    vdot = finite(robot, "the hybrid dynamics", vdot + free)
    forces = inverse_dynamics(robot, q, v, vdot, wrenches)
    return HybridDynamics(vdot, np.array([y if fixed else x for x, y, fixed in zip(tau, forces, given, strict=True)]))


def velocity_jump(
    robot: Robot, q: Array, impulses: dict[int, Array], extra: Array, joints: Array | None = None
) -> Array:
    """Return the velocity change, (nv,), (I + diag(extra))^-1 times the generalized impulse of impulses on bodies.

    Args:
        robot: The robot, without coupled joints. q: Configuration, (nq,).
        impulses: By body index, [n; f], (6,), [N m s] and [N s], about the body's origin in body axes.
        extra: As in `accelerations`. joints: A generalized impulse that is added, (nv,), mixed units, or None.
    """
    w = [-impulses[k] if k in impulses else np.zeros(6) for k in range(len(robot.bodies))]
    own = by_module(robot, [np.zeros(body.nv) if joints is None else joints[body.v] for body in robot.bodies])
    rotors = [rotor_inertia(body, extra) for body in robot.bodies]
    return _module_accelerations(robot, serial_chains(robot, q), by_module(robot, w), own, rotors)


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
        solution = solve_symmetric(inertia[np.ix_(columns, columns)], b[columns])
    return scatter(robot.nv, zip((slice(i, i + 1) for i in columns), solution[:, None], strict=True))


def _drives(robot: Robot, tau: Array, f: list[Vectors]) -> list[Vectors]:
    """Return tau^i - f^i of each module: generalized forces, (nv,), less the passive forces of the joints."""
    tau_i = by_module(robot, [tau[body.v] for body in robot.bodies])
    return [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(tau_i, f, strict=True)]


def _module_accelerations(
    robot: Robot,
    chains: Sequence[SerialChain],
    w: list[Vectors],
    tau: list[Vectors],
    rotors: list[Array],
    prescribed: frozenset[int] = frozenset(),
    masses: Mapping[int, Array] | None = None,
    intra_modular: Mapping[int, IntraModular] | None = None,
) -> Array:
    """Return vdot, (nv,), by the recursions between modules of Figure A.2, zero for the bodies in `prescribed`.

    For each module inward, with eta~^i the sum of (A^(j,i))^T eta^j over its children,

        phi^^i = tau^i - (N^i)^T (w^i + eta~^i)                    i) of equation (30)
        phi~^i = (I^^i)^-1 phi^^i                                 ii)
        eta^i  = w^i + eta~^i + Psi^i phi^^i

    and outward

        mu~^i  = A^(i,beta) mu^beta
        qdd^i  = phi~^i - (Psi^i)^T mu~^i                        iii)
        mu^i   = mu~^i + N^i qdd^i

    The steps inside a module are those of `ArticulatedChain`, or of the classes in `intra_modular`.

    Args:
        w: Wrench w^i of each module. tau: Forces of its joints, less the passive ones.
        rotors: H^T P + I_r of each body's joint. masses: See `mass_matrices`.
    """
    with stage(STEP_2):
        modules = articulate(chains, mass_matrices(robot, masses), by_module(robot, rotors), prescribed, intra_modular)
        phi: list[Any] = [None] * len(chains)
        eta: list[list[Array]] = [[] for _ in chains]
        for chain in inward_modules(chains):
            i = chain.index
            phi[i], to_parent = modules[i].inward(tau[i], added(chain, w[i], eta[i]))
            if chain.parent >= 0:
                eta[chain.parent].append(to_parent)
    with stage(STEP_3):
        qdd: list[Vectors] = []
        mu: list[Array] = []
        for chain in outward_modules(chains):
            qdd_i, mu_i = modules[chain.index].outward(phi[chain.index], mu[chain.parent] if mu else None)
            qdd.append(qdd_i)
            mu.append(mu_i)
        return scatter(robot.nv, zip((body.v for body in robot.bodies), by_body(qdd), strict=True))
