"""First derivatives of inverse dynamics.

The Coriolis wrench of composite bodies is computed from two moments of momentum. For a rigid body of twist t and
inertia I that is displaced along a motion vector x fixed in it, the wrench is

    x x I t + t x I x - I (t x x) = 2 sum of m [r x (x_omega x u); x_omega x u],

over its points at r with velocity u: the Coriolis force of the rotation x_omega, independent of the translation. With

    Q = sum of m u r^T = omega~ J + u_O h^T,      p = sum of m u = m u_O + omega x h

it is 2 [(tr(Q) 1 - Q) x_omega; x_omega x p]: twelve numbers, which add up like moments of mass, in place of the
thirty-six of a matrix for each body.

Source: the matrix is B of Echeandia and Wensing 2021, and of Niemeyer and Slotine 1991; written in Q and p it is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.composite import composite_inertias
from legged.algorithms.derivatives.kinematics import AxisMotion, MotionAxes, axis_motion, map_columns
from legged.algorithms.links import Links, links_at, transform_forces
from legged.compiler.ir import item, stage, where
from legged.dynamics.arguments import Wrenches, read
from legged.dynamics.modules import inward, newton_euler
from legged.dynamics.passive import deflection
from legged.elements import any_element
from legged.moving_coordinates import cross_force
from legged.robot.base import FloatingBase
from legged.robot.body import Body
from legged.robot.physics import TRANSITION_SPEED
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, Translation, cross, join, skew


class InverseDerivatives(NamedTuple):
    """Derivatives of the generalized forces, (nv, nv) each, row i for tau[i].

    Attributes:
        q: By a displacement along the manifold, as in `legged.integrate`. v: By the velocity.
        vdot: By the acceleration: the inertia matrix.
    """

    q: Array
    v: Array
    vdot: Array


@any_element
def of_inverse_dynamics(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches = None) -> InverseDerivatives:
    """Return the derivatives of `legged.inverse_dynamics` by q, v and vdot.

    With composite inertias I, Coriolis matrices B and forces f of bodies, and the columns of `MotionAxes`, for every
    axis j on the path from axis i to the base,

        dtau_j / dq_i = S_j^T (B psid_i + I psidd_i + S_i x f)      dtau_i / dq_j = S_i^T (B psid_j + I psidd_j)
        dtau_j / dv_i = S_j^T (B S_i + I (psid_i + Sd_i))           dtau_i / dv_j = S_i^T (B S_j + I (psid_j + Sd_j))

    I, B and f are those of axis i's body. External wrenches are constant in the axes of their links.

    Args:
        robot, q, v, vdot, wrenches: As in `legged.inverse_dynamics`.

    Raises:
        As `legged.inverse_dynamics`.

    Source: Singh, Russell, Wensing 2022, in link coordinates; Carpentier, Mansard 2018, "Analytical derivatives of
    rigid body dynamics algorithms", has the same terms in another arrangement.
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    derivatives, base_terms = inverse_derivatives(robot, q, v, vdot, wrenches)
    if base_terms is None:
        return derivatives
    for d, term in zip((derivatives.q, derivatives.v), base_terms, strict=True):
        d[:, :6] += derivatives.vdot[:, :6] @ term
    return derivatives


@any_element
def inverse_derivatives(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches
) -> tuple[InverseDerivatives, tuple[Array, Array] | None]:
    """Return the derivatives, and for a floating base (psidd, Sd), (6, 6) each, the terms missing in its columns.

    A displacement of a floating base rotates gravity and changes the base's own twist like an acceleration, so that the
    columns of the base lack M[:, :6] psidd and M[:, :6] Sd. Forward dynamics subtracts psidd and Sd without a solution.

    Args:
        robot, q, v, vdot, wrenches: As in `legged.inverse_dynamics`, already read.
    """
    links = links_at(robot, q)
    with stage("1 motion of the axes"):
        motion = axis_motion(links, q, v, vdot)
    base_terms = None
    if isinstance(robot.base, FloatingBase):
        (base_axes,) = motion.axes[0]
        base_terms, zero = (base_axes.psidd, base_axes.Sd), np.zeros((6, 6))
        motion.axes[0] = [base_axes._replace(Sd=zero, psidd=zero)]
    with stage("2 composite bodies"):
        inertia, B = composite_inertias(links), composite_coriolis(links, motion.t, v)
        f = _composite_forces(links, motion, v, vdot, wrenches)
    with stage("3 entries"):
        matrices = _Matrices(links, motion, q, v)
        for body in inward(robot):
            for number in reversed(range(len(motion.axes[body.index]))):
                matrices.add_column(body.index, number, inertia[body.index], B[body.index], f[body.index])
    if base_terms is not None and robot.bodies[0].has_turning_armature:
        a, (psidd, Sd) = robot.bodies[0].reflected_inertia, base_terms
        matrices.q[:6, :6] -= a @ psidd  # M[:, :6] includes the armature, which does not rotate
        matrices.v[:6, :6] -= a @ Sd
        matrices.v[3:6, :6] += a[3:, 3:] @ np.concatenate([-skew(v[3:6]), skew(v[:3])], axis=1)
    return InverseDerivatives(matrices.q, matrices.v, matrices.vdot), base_terms


def _composite_forces(links: Links, motion: AxisMotion, v: Array, vdot: Array, wrenches: Wrenches) -> list[Array]:
    """Return the force of each body and all its descendants, (6,)."""
    external, f = links.wrenches(wrenches), []
    for body, t, a in zip(links.robot.bodies, motion.t, motion.a, strict=True):
        own = newton_euler(body.regrouped, t, join(a[:3], a[3:] + cross(t[:3], t[3:])))
        if body.has_gyroscopic_rotor:
            own = own + body.rotor_momentum @ vdot[body.v] + cross_force(t, body.rotor_momentum @ v[body.v])
        f.append(own - external[body.index] if body.index in external else own)
    for body in inward(links.robot):
        if body.parent >= 0:
            f[body.parent] = f[body.parent] + links.X[body.index].T @ f[body.index]
    return f


class _AxisForces(NamedTuple):
    """Forces per unit motion of axes i, for the axes inward of them, (6, m) each.

    Attributes:
        by_vdot: I S. by_v: B S + I (psid + Sd). by_q: B psid + I psidd + S x f.
        transposed: B^T S.
    """

    by_vdot: Array
    by_v: Array
    by_q: Array
    transposed: Array

    def in_parent(self, links: Links, k: int) -> _AxisForces:
        """Return these forces in the coordinates of the parent of body k."""
        return _AxisForces(*(transform_forces(links.X[k], F) for F in self))


class _Matrices:
    """The three derivative matrices, filled column by column."""

    def __init__(self, links: Links, motion: AxisMotion, q: Array, v: Array):
        self.links, self.motion = links, motion
        dtype = np.result_type(q, v, *motion.a)
        self.q, self.v, self.vdot = (np.zeros((len(v), len(v)), dtype=dtype) for _ in range(3))
        for body in links.robot.bodies:
            self.q[body.v, body.v] += spring_derivative(body, q)
            self.v[body.v, body.v] += np.diag(friction_derivative(body, v))
            self.vdot[body.v, body.v] += body.rotor_inertia

    def add_column(self, k: int, number: int, inertia: Array, B: CompositeCoriolis, f: Array) -> None:
        """Add the entries that axes of body k have with themselves and with the axes inward of them."""
        axes = self.motion.axes[k][number]
        forces = self._forces(k, axes, inertia, B, f)
        self.vdot[axes.entries, axes.entries] += axes.S.T @ forces.by_vdot
        self._add_row_block(axes.entries, forces, axes)
        for other in self.motion.axes[k][:number]:
            self._add_pair(axes.entries, forces, other)
        for parent in self.links.robot.ancestors(k)[1:]:
            with item((k, parent)):
                forces, k = forces.in_parent(self.links, k), parent
                for other in self.motion.axes[parent]:
                    self._add_pair(axes.entries, forces, other)

    def _forces(self, k: int, axes: MotionAxes, inertia: Array, B: CompositeCoriolis, f: Array) -> _AxisForces:
        S, H = axes.S, self.links.H[k]
        by_vdot = inertia @ S
        by_v = _map(B.apply, S) + inertia @ (axes.psid + axes.Sd)
        by_q = _map(B.apply, axes.psid) + inertia @ axes.psidd + _map(lambda s: cross_force(s, f), S)
        transposed = _map(B.apply_transposed, S)
        if self.links.robot.bodies[k].has_gyroscopic_rotor:
            rotor = map_columns(cross_force, self.motion.t[k], H)
            by_vdot, by_v, transposed = by_vdot + H, by_v + rotor, transposed + rotor
        return _AxisForces(by_vdot, by_v, by_q, transposed)

    def _add_row_block(self, i: slice, forces: _AxisForces, j: MotionAxes) -> None:
        """Add the derivatives of the forces of axes i by motions of axes j, inward of them or the same."""
        self.q[i, j.entries] += forces.by_vdot.T @ j.psidd + forces.transposed.T @ j.psid
        self.v[i, j.entries] += forces.by_vdot.T @ (j.psid + j.Sd) + forces.transposed.T @ j.S

    def _add_pair(self, i: slice, forces: _AxisForces, j: MotionAxes) -> None:
        """Add the blocks (i, j) and (j, i) of two different groups of axes."""
        self._add_row_block(i, forces, j)
        block = j.S.T @ forces.by_vdot
        self.q[j.entries, i] += j.S.T @ forces.by_q
        self.v[j.entries, i] += j.S.T @ forces.by_v
        self.vdot[j.entries, i] += block
        self.vdot[i, j.entries] += block.T


def _map(operation: Callable[[Array], Array], S: Array) -> Array:
    return np.stack([operation(column) for column in S.T], axis=1)


@dataclass(frozen=True, eq=False)
class CompositeCoriolis:
    """Twice Q, (3, 3), [kg m^2/s], and twice p, (3,), [kg m/s], of a composite body, about its origin in its axes."""

    Q: Array
    p: Array

    def apply(self, x: Array) -> Array:
        """Return the Coriolis wrench B x, (6,).

        Args:
            x: Displacement, a motion vector, (6,), mixed units, in body axes.
        """
        return join(np.trace(self.Q) * x[:3] - self.Q @ x[:3], cross(x[:3], self.p))

    def apply_transposed(self, s: Array) -> Array:
        """Return B^T s, (6,), whose linear part is zero.

        Args:
            s: Motion vector, (6,), mixed units, in body axes.
        """
        return join(np.trace(self.Q) * s[:3] - self.Q.T @ s[:3] + cross(self.p, s[3:]), np.zeros(3))

    def __add__(self, other: CompositeCoriolis) -> CompositeCoriolis:
        return CompositeCoriolis(self.Q + other.Q, self.p + other.p)


def composite_coriolis(links: Links, t: list[Array], v: Array) -> list[CompositeCoriolis]:
    """Return the Coriolis moments of each body together with all its descendants.

    The angular momentum L of a gyroscopic rotor adds x_omega x L, that is Q = L~ / 2.

    Args:
        links: In link coordinates. t: Twist of each body, (6,), mixed units, in link axes. v: Velocity, (nv,).
    """
    composite = [_body_coriolis(body, t[body.index], v) for body in links.robot.bodies]
    for body in inward(links.robot):
        if body.parent >= 0:
            composite[body.parent] = composite[body.parent] + _in_parent(links.X[body.index], composite[body.index])
    return composite


def _body_coriolis(body: Body, t: Array, v: Array) -> CompositeCoriolis:
    omega, u = 2.0 * t[:3], 2.0 * t[3:]
    mass, h, J = body.regrouped.mass, body.regrouped.h, body.regrouped.J
    Q = skew(omega) @ J + np.outer(u, h)
    if body.has_gyroscopic_rotor:
        Q = Q + skew(body.rotor_momentum[:3] @ v[body.v])
    return CompositeCoriolis(Q, mass * u + cross(omega, h))


def _in_parent(X: Transform, own: CompositeCoriolis) -> CompositeCoriolis:
    """Return the moments about the parent's origin in its axes: Q rotated, and + p r^T for the child's origin at r."""
    Q, p = own.Q, own.p
    for step in reversed(X.steps):
        if isinstance(step, Translation):
            Q = Q + np.outer(p, step.r)
        else:
            rotation: Any = step  # a Rotation or an AxisRotation
            Q, p = rotation.rotate_block(Q), rotation.wrench(join(np.zeros(3), p))[3:]
    return CompositeCoriolis(Q, p)


def friction_derivative(body: Body, v: Array) -> Array:
    """Return the derivative of `friction_forces` by the joint rates, (nv of the joint,), [N m s/rad] or [N s/m].

    Args:
        body: The body outward of the joint. v: Velocity, (nv,).
    """
    if not body.has_friction:
        return np.zeros(body.nv)
    damping, friction = (np.broadcast_to(x, body.nv) for x in (body.physics.damping, body.physics.friction))
    slopes = []
    for c, F, rate in zip(damping.tolist(), friction.tolist(), v[body.v], strict=True):
        tanh = np.tanh(body.ratio * rate / TRANSITION_SPEED) if F else 0.0
        slopes.append(body.ratio**2 * (c + F / TRANSITION_SPEED * (1.0 - tanh * tanh)))
    return np.array(slopes)


def spring_derivative(body: Body, q: Array) -> Array:
    """Return the derivative of `spring_forces` by a displacement of the joint, (nv, nv) of it, [N m/rad] or [N/m].

    Args:
        body: The body outward of the joint. q: Configuration, (nq,).
    """
    stiffness = np.broadcast_to(body.physics.stiffness, body.nv)
    if not body.has_quaternion:
        return np.diag(body.ratio**2 * stiffness)
    return stiffness[0] * rotation_vector_rate_matrix(deflection(body, q))


@any_element
def rotation_vector_rate_matrix(phi: Array) -> Array:
    """Return the matrix from the angular velocity in rotated axes to the rate of the rotation vector, (3, 3).

        1 + phi~ / 2 + c phi~ phi~,      c = (1 - a cot(a)) / (4 a^2),   a = |phi| / 2

    Below |phi| = 0.01, c is a series whose first neglected term is 1e-13 of it.

    Args:
        phi: Rotation vector, (3,), [rad].
    """
    square = phi @ phi
    small = square < 1e-4
    safe = where(small, 1.0, square)
    a = 0.5 * np.sqrt(safe)
    closed_form = (1.0 - a * np.cos(a) / np.sin(a)) / safe
    c = where(small, 1.0 / 12.0 + square * (1.0 / 720.0 + square / 30240.0), closed_form)
    return np.eye(3) + 0.5 * skew(phi) + c * (skew(phi) @ skew(phi))
