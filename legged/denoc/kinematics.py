"""Kinematics at link level in world axes: poses, A_(k,j), p_k and their time derivatives (section 2.1 of the paper).

As in the paper, every body's twist t_k = [omega; velocity of O_k] and wrench [n; f] are taken at the body's own origin
O_k and written in *world* axes, so that twist propagation needs no rotation. Bodies are those of `robot.bodies`: a
joint has one degree of freedom (p_k is a vector), or three for a quaternion ball joint (p_k is then a (6, 3) matrix),
and the base has 0, 3 or 6 (p_0 is the paper's P_0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import Vector3, whole
from legged.checked import checked
from legged.dynamics.arguments import Wrenches, body_wrenches
from legged.dynamics.inertia import blocks_operator
from legged.dynamics.modules import SerialChain, dense
from legged.errors import NotFiniteError, ShapeError
from legged.robot.base import EulerBase, FloatingBase
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.spatial import Array, skew


class Kinematics(NamedTuple):
    """Poses and joint axes of n bodies.

    Attributes:
        rotation: R_k, (n, 3, 3), body axes to world axes.
        origin: O_k, (n, 3), [m], world axes.
        p: p_k of each body, (6, nv of its joint), [1, m], world axes.
    """

    rotation: Array
    origin: Array
    p: tuple[Array, ...]


def zeros(shape: int | tuple[int, ...], *elements: Any) -> Array:
    """Return zeros, (m, ...), [any unit], that can take traced scalars if one of some arrays has them.

    Args:
        shape: The shape. elements: The arrays whose entries will be added or assigned, of any shape, [any unit].
    """
    return np.zeros(shape, object if any(np.asarray(x).dtype == object for x in elements) else float)


def identity(n: int, *elements: Any) -> Array:
    """Return the identity, (n, n), that can take the entries of other arrays, as `zeros` does."""
    one = zeros((n, n), *elements)
    one[range(n), range(n)] = 1.0
    return one


def block_diagonal(blocks: Sequence[Array]) -> Array:
    """Return the block diagonal matrix, (sum of m, sum of n), of some blocks.

    Args:
        blocks: (m, n) each, [any unit], possibly with n = 0.
    """
    return dense(blocks_operator(blocks))


def world_chains(robot: Robot, at: Kinematics) -> list[SerialChain]:
    """Return the modules of a robot with the operators A^(i,beta) and N^i in world axes, as in the paper.

    Args:
        robot: The robot. at: Its kinematics.
    """
    chains = []
    for m in robot.modules:
        bodies = tuple(robot.bodies[k] for k in m.bodies)
        A_k = tuple(_propagation_from_parent(b, at) for b in bodies)
        H_k = tuple(np.vstack([rotor_spin(b, at), np.zeros((3, b.nv))]) for b in bodies)
        parent_links = len(robot.modules[m.parent].bodies) if m.parent >= 0 else 0
        chains.append(SerialChain(m.index, m.parent, parent_links, bodies, A_k, tuple(at.p[k] for k in m.bodies), H_k))
    return chains


def _propagation_from_parent(body: Body, at: Kinematics) -> Array:
    """Return A_(k,k-1), (6, 6), [1, m], world axes; the base has 1."""
    return np.eye(6) if body.parent < 0 else twist_propagation(at.origin[body.index] - at.origin[body.parent])


def rotor_spin(body: Body, at: Kinematics) -> Array:
    """Return the momentum of a joint's rotor per rate of v, (3, nv of the joint), [kg m^2], world axes."""
    rotor = body.physics.rotor
    if rotor is None or not rotor.gyroscopic:
        return np.zeros((3, body.nv))
    p = at.p[body.index]
    return rotor.gear * rotor.inertia * (p[3:] if body.motion.unit == "m" else p[:3])


class Rates(NamedTuple):
    """Twists of all bodies and rates of their joint axes.

    Attributes:
        twist: t_k, (n, 6), [rad/s, m/s], world axes.
        p_dot: Time derivative of p_k, (6, nv of its joint), [1/s, m/s], world axes.
    """

    twist: Array
    p_dot: tuple[Array, ...]


@checked
def twist_propagation(r: Vector3) -> Array:
    """Return A of equation (2), (6, 6), [1, m], which transforms a twist to another point of the same rigid body.

        A = [  1   0 ]      t_k = A @ t_j,      w_j = A.T @ w_k
            [ -r~  1 ]

    Args:
        r: O_j to O_k, (3,), [m], in the axes of the twists.

    Source: Shah, Saha, Dutt 2012, eq. (2), whose a_(k,j) is -r, from O_k to O_j.
    """
    A = identity(6, r)
    A[3:, :3] = -skew(r)
    return A


def kinematics(robot: Robot, q: Array) -> Kinematics:
    """Return the pose and the joint-motion propagation vector p_k of every body.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    (q,) = read_state(robot, q=q)
    rotation, origin, p = [], [], []
    for body in robot.bodies:
        if body.is_base:
            R, o = robot.base.pose(q)
            P = robot.base.motion_matrix(q)
        else:
            R, o = body.transform(q).child_pose(rotation[body.parent], origin[body.parent])
            P = body.P
        rotation.append(R)
        origin.append(o)
        p.append(_twice(R) @ P)
    return Kinematics(np.array(rotation), np.array(origin), tuple(p))


@checked
def link_twist_propagation(robot: Robot, q: Array, k: int, j: int) -> Array:
    """Return A_(k,j), (6, 6), [1, m], world axes, eq. (2): twist of body j to that of body k if fixed to body j.

    Args:
        robot: The robot. q: Configuration, (nq,). k, j: Indices into `robot.bodies`.
    """
    k, j = (whole(name, body, least=0, most=len(robot.bodies) - 1) for name, body in (("k", k), ("j", j)))
    at = kinematics(robot, q)
    return twist_propagation(at.origin[k] - at.origin[j])


@checked
def link_motion_propagation(robot: Robot, q: Array, k: int) -> Array:
    """Return p_k, (6, nv of its joint), world axes: eq. (2) for a joint, P_0 of eq. (7) for the base, k = 0.

    Args:
        robot: The robot. q: Configuration, (nq,). k: Index into `robot.bodies`.
    """
    return kinematics(robot, q).p[whole("k", k, least=0, most=len(robot.bodies) - 1)]


def rates(robot: Robot, q: Array, v: Array, at: Kinematics) -> Rates:
    """Return the twist t_k = A_(k,k-1) t_(k-1) + p_k thetad_k of every body, equation (1), and the rate of p_k.

    A joint's axis is fixed in its body, so p_k rotates with it: pd_k = [omega~ 0; 0 omega~] p_k.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). at: Kinematics at q.
    """
    twist, p_dot = [], []
    for body, p in zip(robot.bodies, at.p, strict=True):
        t = p @ v[body.v]
        if body.is_base:
            p_dot.append(_base_motion_rate(robot, q, v, at))
        else:
            t = t + _propagation_from_parent(body, at) @ twist[body.parent]
            p_dot.append(_twice(skew(t[:3])) @ p)
        twist.append(t)
    return Rates(np.array(twist), tuple(p_dot))


def _base_motion_rate(robot: Robot, q: Array, v: Array, at: Kinematics) -> Array:
    """Return the time derivative of P_0, (6, n0), world axes.

    The twist of a floating base is written in its own axes, which rotate with it. The axis of each Euler angle rotates
    with the angles before it. The axes of a planar base, and the translations of an Euler base, are the world's.
    """
    p = at.p[0]
    p_dot = zeros(p.shape, p, v)
    if isinstance(robot.base, FloatingBase):
        p_dot = _twice(skew(at.rotation[0] @ v[:3])) @ p
    elif isinstance(robot.base, EulerBase):
        first, second, third = p[:3, :3].T
        p_dot[:3, 1] = np.cross(first * v[0], second)
        p_dot[:3, 2] = np.cross(first * v[0] + second * v[1], third)
    return p_dot


def _twice(R: Array) -> Array:
    """Return the block diagonal matrix of R and R, (6, 6)."""
    out = zeros((6, 6), R)
    out[:3, :3] = out[3:, 3:] = R
    return out


def read_state(robot: Robot, **arrays: Any) -> tuple[Array, ...]:
    """Return `q` (nq,) and all others (nv,) as floats or traced scalars, or raise ShapeError or NotFiniteError."""
    out = []
    for name, value in arrays.items():
        array = np.asarray(value)
        traced = array.dtype == object
        array = array if traced else np.asarray(array, float)
        size = robot.nq if name == "q" else robot.nv
        if array.shape != (size,):
            raise ShapeError(f"{name} must be ({size},), got shape {array.shape}")
        if not traced and not np.isfinite(array).all():
            raise NotFiniteError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
        out.append(array)
    return tuple(out)


def mass_blocks(robot: Robot, at: Kinematics) -> list[Array]:
    """Return M_k of each body about its origin, (6, 6), [kg m^2, kg m, kg], world axes."""
    rotations = [block_diagonal([R, R]) for R in at.rotation]
    return [R @ body.M @ R.T for body, R in zip(robot.bodies, rotations, strict=True)]


def mass_matrix_at(robot: Robot, at: Kinematics) -> Array:
    """Return M, (6 n, 6 n), [kg m^2, kg m, kg], world axes, as `mass_matrix` does, for known kinematics."""
    return block_diagonal(mass_blocks(robot, at))


def weights(robot: Robot, at: Kinematics) -> Array:
    """Return w^E of gravity, (6 n,), [N m, N], world axes: m g at the center of mass, so w_k = [m d x g; m g]."""
    w = [(np.cross(first_moment(M), robot.gravity), M[5, 5] * robot.gravity) for M in mass_blocks(robot, at)]
    return np.array(w).ravel()


def external(robot: Robot, at: Kinematics, wrenches: Wrenches) -> Array:
    """Return w^F, (6 n,), [N m, N]: external wrenches on links, about their bodies' origins in world axes."""
    own = body_wrenches(robot, wrenches)
    total = zeros((len(robot.bodies), 2, 3), at.origin, *own.values())
    for k, w in own.items():
        total[k] = w.reshape(2, 3) @ at.rotation[k].T
    return total.ravel()


def first_moment(M: Array) -> Array:
    """Return m d, (3,), [kg m], from a mass matrix; M: (6, 6), [kg m^2, kg m, kg]."""
    return np.array([M[2, 4], M[0, 5], M[1, 3]])


def skew_block(M: Array, omega: Array) -> Array:
    """Return S_k, (6, 6); see `convective_inertia_matrix`."""
    inertia, W = M[:3, :3], skew(omega)
    top = (W @ inertia - inertia @ W - skew(inertia @ omega)) / 2
    return np.block([[top, np.zeros((3, 3))], [-skew(np.cross(omega, first_moment(M))), np.zeros((3, 3))]])


def paper_block(M: Array, omega: Array) -> Array:
    """Return Omega_k M_k E_k, (6, 6).

    Args:
        M: Mass matrix of a body, (6, 6), [kg m^2, kg m, kg]. omega: Its angular velocity, (3,), [rad/s], world axes.
    """
    Omega = block_diagonal([skew(omega)] * 2)
    return Omega @ M @ block_diagonal([np.eye(3), np.zeros((3, 3))])


def module_index(robot: Robot, name: str, value: int) -> int:
    """Return the number of a module.

    Args:
        robot: The robot. name: Name of the argument, for messages. value: The number.

    Raises:
        ArgumentError: No module has this number.
    """
    return whole(name, value, least=0, most=len(robot.modules) - 1)


@checked
def gamma(robot: Robot, i: int) -> tuple[int, ...]:
    """Return gamma^i, the numbers of M_i and of all modules outward of it. Source: Shah, Saha, Dutt 2012, Figure 4."""
    numbers = [module_index(robot, "i", i)]
    for module in robot.modules[i + 1 :]:  # a child's number is above its parent's
        if module.parent in numbers:
            numbers.append(module.index)
    return tuple(numbers)


@checked
def xi(robot: Robot, i: int) -> tuple[int, ...]:
    """Return xi^i, the numbers of the children of M_i. Source: Shah, Saha, Dutt 2012, eq. (A.3)."""
    i = module_index(robot, "i", i)
    return tuple(module.index for module in robot.modules if module.parent == i)


def rows(robot: Robot, i: int) -> slice:
    """Return the rows of module M_i in a stacked twist or wrench, (6 n,)."""
    bodies = robot.modules[i].bodies
    return slice(6 * bodies[0], 6 * bodies[-1] + 6)


def complement_and_rate(robot: Robot, at: Kinematics, moving: Rates) -> tuple[Array, Array]:
    """Return (N, its time derivative), both (6 n, nv), link by link.

    The rows of body k are N_k = A_(k,k-1) N_(k-1) + p_k, so that Nd_k = A Nd_(k-1) + Ad N_(k-1) + pd_k.
    """
    N, N_dot = zeros((2, len(robot.bodies), 6, robot.nv), at.origin, moving.twist)
    for body in robot.bodies:
        k, above = body.index, body.parent
        if above >= 0:
            A_dot = zeros((6, 6), moving.twist)
            A_dot[3:, :3] = -skew(moving.twist[k, 3:] - moving.twist[above, 3:])
            A = _propagation_from_parent(body, at)
            N[k], N_dot[k] = A @ N[above], A @ N_dot[above] + A_dot @ N[above]
        N[k][:, body.v] += at.p[k]
        N_dot[k][:, body.v] += moving.p_dot[k]
    return N.reshape(-1, robot.nv), N_dot.reshape(-1, robot.nv)
