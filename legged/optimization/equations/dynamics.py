"""Dynamics of a robot with given contacts.

    [ M  J^T ] [ a  ]   [ tau - h        ]              [ M  J^T ] [ v+ - v ]   [ 0            ]
    [ J  0   ] [ -f ] = [ -Jdot v - k J v ]              [ J  0   ] [ -L     ] = [ -(1 + e) J v ]

on the left for a time step, on the right for an impact with impulses L. k is the velocity gain, e the coefficient of
restitution, h the bias forces; closed loops have k = 0 and e = 0. The rows of J are written in the axes of each
contact's frame, so that f is constant in the axes of its link under a displacement. The rows of loops follow those of
contacts. A contact that is inactive at a node has rows of zeros and a unit diagonal entry of the Delassus matrix
J M^-1 J^T, so that its force is zero: one traced function serves all contact sets. A row that depends linearly on the
rows before it, such as that of a fourth point of a sole or of a singular leg, has no force: motion and derivatives do
not depend on the distribution of load between redundant contacts.

Source: Budhiraja, Carpentier, Mastalli, Mansard 2018, "Differential dynamic programming for multi-phase rigid contact
dynamics", equations (7) to (11); the derivatives by contact axes and by masks are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from legged.algorithms.derivatives import of_frame_motion, of_inverse_dynamics
from legged.algorithms.derivatives.forward import InertiaFactors
from legged.algorithms.linear_algebra import factor_semidefinite, solve_columns
from legged.checked import checked
from legged.compiler import jacobian
from legged.dynamics.frames import Frame, frame_acceleration, frame_jacobian, frame_pose, frame_twist, resolve_frame
from legged.dynamics.inverse import bias_forces, inverse_dynamics
from legged.errors import UnknownNameError
from legged.loops import ClosedRobot
from legged.loops.constraints import acceleration as loop_acceleration
from legged.loops.constraints import jacobian as loop_jacobian
from legged.robot.configuration import integrate
from legged.robot.robot import Robot
from legged.spatial import Array, cross, mirror, solve_factored


@checked
@dataclass(frozen=True)
class Contact:
    """A contact that may be active at a node: of a point, or of a surface that keeps its orientation.

    Attributes:
        frame: Name of a link or contact point (the link if both have it) or `legged.Frame`; its origin is the contact.
        surface: Whether the orientation is constrained too, so that the ground applies a moment.
        name: Name in stages, terms and results; by default the name in `frame`.
    """

    frame: str | Frame
    surface: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.frame if isinstance(self.frame, str) else self.frame.on)

    @property
    def rows(self) -> int:
        """Number of constraints."""
        return 6 if self.surface else 3


def contact_names(contacts: Sequence[str | Contact]) -> list[str]:
    """Return the names of contacts.

    Args:
        contacts: Contacts or their names.
    """
    return [contact if isinstance(contact, str) else contact.name for contact in contacts]


@checked
def feet(robot: Robot) -> list[Contact]:
    """Return contacts at the contact points of a robot, with their names.

    A name alone would mean the origin of the link where a link and its contact point have the same one.

    Args:
        robot: The robot.
    """
    return [Contact(Frame(robot.links[p.link].name, p.position), name=p.name) for p in robot.contacts]


class Motion(NamedTuple):
    """The solution of the equations of motion.

    Attributes:
        a: Acceleration, (nv,), or at an impact the change of velocity.
        f: Forces or impulses of the constraints, (m,), contact axes.
    """

    a: Array
    f: Array


@dataclass(frozen=True, eq=False)
class ContactModel:
    """The equations of motion of a robot with given contacts.

    Attributes:
        system: The robot, or one with closed loops. contacts: Contacts that may be active.
        actuated: Entries of v with a control. impact: Equations of an impact instead of a time step.
        velocity_gain: k, [1/s], the rate at which velocities of contacts decay. restitution: e, dimensionless.
        damping: Number added to the diagonal of J M^-1 J^T, [1/kg] or [1/(kg m^2)].
    """

    system: Robot | ClosedRobot
    contacts: tuple[Contact, ...]
    actuated: tuple[int, ...]
    impact: bool = False
    velocity_gain: float = 0.0
    restitution: float = 0.0
    damping: float = 0.0
    robot: Robot = field(init=False)

    def __post_init__(self) -> None:
        tree = self.system if isinstance(self.system, Robot) else self.system.robot
        object.__setattr__(self, "robot", replace(tree, gravity=np.zeros(3)) if self.impact else tree)

    @property
    def contact_rows(self) -> int:
        """Number of constraints of contacts."""
        return sum(contact.rows for contact in self.contacts)

    @property
    def rows(self) -> int:
        """Number of constraints m, those of loops included."""
        return self.contact_rows + (0 if isinstance(self.system, Robot) else len(self.system.constraints))

    def forces(self, q: Array, f: Array) -> Forces:
        """Return the forces on the contacts.

        Args:
            q: Configuration, (nq,). f: Multipliers, (m,), [N] and [N m], contact axes.
        """
        return Forces(self, q, f)

    def solve(self, q: Array, v: Array, u: Array, mask: Array) -> Motion:
        """Return the acceleration and the forces, or at an impact the change of velocity and the impulses.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,). u: Controls, (nu,), [N m] or [N], joint axes.
            mask: 1 for active contacts, else 0, (contacts,), dimensionless.
        """
        nv, factors = self.robot.nv, InertiaFactors.of(self.robot, q)
        J, c = self._rows(q, v, mask)
        J_M_inv = np.array([factors.solve(row) for row in J]).reshape(J.shape)
        delassus = factor_semidefinite(self._delassus(J, J_M_inv, mask))
        unconstrained = np.zeros(nv)
        if not self.impact:
            tau = np.zeros(nv, u.dtype)
            tau[list(self.actuated)] = u
            unconstrained = factors.solve(tau - bias_forces(self.robot, q, v))
        f = solve_factored(delassus, -(J @ unconstrained + c)) if len(J) else np.zeros(0)
        return Motion(unconstrained + J_M_inv.T @ f, f)

    def residuals(self, q: Array, v: Array, u: Array, motion: Motion, mask: Array) -> Array:
        """Return the residuals of the equations of motion and of the active constraints, (nv + m,).

        They are zero at the solution of `solve`, up to damping and the forces of inactive contacts, which are linear.

        Args:
            q, v, u, mask: As in `solve`. motion: Acceleration and forces.
        """
        a, f = motion
        forces = inverse_dynamics(self.robot, q, 0.0 * v if self.impact else v, a, self._wrenches(f))
        if not self.impact:
            tau = np.zeros(self.robot.nv, u.dtype)
            tau[list(self.actuated)] = u
            forces = forces - tau
        if isinstance(self.system, ClosedRobot):
            forces = forces - loop_jacobian(self.system, q).T @ f[self.contact_rows :]
        J, c = self._rows(q, v, mask)
        return np.concatenate([forces, J @ a + c])

    def derivatives(self, q: Array, v: Array, a: Array, f: Array, mask: Array) -> tuple[Array, Array]:
        """Return the derivatives of M a + h - J^T f and of the constraint rows by q and by v, (nv + m, nv) each.

        Args:
            q, v, mask: As in `solve`. a, f: As in `Motion`, the solution.
        """
        robot, still = self.robot, np.zeros(self.robot.nv)
        by_state = of_inverse_dynamics(robot, q, still if self.impact else v, a, self._wrenches(f))
        blocks_q, blocks_v = [by_state.q], [np.zeros((robot.nv, robot.nv)) if self.impact else by_state.v]
        for k, contact in enumerate(self.contacts):
            rows = slice(3, 6) if not contact.surface else slice(0, 6)
            if self.impact:
                by = of_frame_motion(robot, q, a + (1.0 + self.restitution) * v, still, contact.frame)
                of_q, of_v = by.twist_q, (1.0 + self.restitution) * by.jacobian
            else:
                by = of_frame_motion(robot, q, v, a, contact.frame)
                of_q = by.acceleration_q + self.velocity_gain * by.twist_q
                of_v = by.acceleration_v + self.velocity_gain * by.jacobian
            blocks_q.append(mask[k] * of_q[rows])
            blocks_v.append(mask[k] * of_v[rows])
        if isinstance(self.system, ClosedRobot):
            of_q, of_v, force_q = self._loop_derivatives(self.system, q, v, a, f[self.contact_rows :])
            blocks_q, blocks_v = [blocks_q[0] - force_q, *blocks_q[1:], of_q], [*blocks_v, of_v]
        return np.concatenate(blocks_q), np.concatenate(blocks_v)

    def inverse(self, q: Array, mask: Array) -> tuple[Array, Array, Array]:
        """Return the matrices of which the inverse of the equations of motion consists.

        They are M^-1, (nv, nv), J M^-1, (m, nv), and (J M^-1 J^T)^-1, (m, m), the operational-space inertia of the
        constraints.

        Args:
            q, mask: As in `solve`.
        """
        J, M_inv = self._jacobian(q, mask), InertiaFactors.of(self.robot, q).inverse()
        J_M_inv = J @ M_inv
        S = self._delassus(J, J_M_inv, mask)
        return M_inv, J_M_inv, mirror(solve_columns(factor_semidefinite(S), np.eye(len(S)))) if len(S) else S

    def _jacobian(self, q: Array, mask: Array) -> Array:
        """Return J of the constraints, (m, nv), contact axes."""
        J = [np.zeros((0, self.robot.nv))]
        for k, contact in enumerate(self.contacts):
            rows = slice(0 if contact.surface else 3, 6)
            J.append(mask[k] * frame_jacobian(self.robot, q, contact.frame, "local")[rows])
        if isinstance(self.system, ClosedRobot):
            J.append(loop_jacobian(self.system, q))
        return np.concatenate(J)

    def _rows(self, q: Array, v: Array, mask: Array) -> tuple[Array, Array]:
        """Return (J (m, nv), c (m,)) of the constraints J a + c = 0, contact axes."""
        robot, J, c = self.robot, self._jacobian(q, mask), [np.zeros(0)]
        for k, contact in enumerate(self.contacts):
            rows, on = slice(0 if contact.surface else 3, 6), contact.frame
            twist = frame_twist(robot, q, v, on, "local")[rows]
            if self.impact:
                c.append(mask[k] * (1.0 + self.restitution) * twist)
            else:
                drift = frame_acceleration(robot, q, v, np.zeros(robot.nv), on, "local")[rows]
                c.append(mask[k] * (drift + self.velocity_gain * twist))
        if isinstance(self.system, ClosedRobot):
            still = np.zeros(robot.nv)
            c.append(J[self.contact_rows :] @ v if self.impact else loop_acceleration(self.system, q, v, still))
        return J, np.concatenate(c)

    def _delassus(self, J: Array, J_M_inv: Array, mask: Array) -> Array:
        """Return J M^-1 J^T, (m, m), with unit diagonal entries for inactive contacts."""
        S = mirror(J_M_inv @ J.T)
        at = 0
        for k, contact in enumerate(self.contacts):
            for i in range(at, at + contact.rows):
                S[i, i] = S[i, i] + (1.0 - mask[k]) + self.damping
            at += contact.rows
        return S

    def _wrenches(self, f: Array) -> Mapping[str, Array]:
        """Return the wrenches of contacts on links, [n; f] about each link's origin, link axes."""
        at, wrenches = 0, dict[str, Array]()
        for contact in self.contacts:
            place = resolve_frame(self.robot, contact.frame)
            R = np.eye(3)
            if isinstance(contact.frame, Frame) and contact.frame.rotation is not None:
                R = contact.frame.rotation
            part = f[at : at + contact.rows]
            force = R @ part[-3:]
            moment = cross(place.position, force)
            if contact.surface:
                moment = moment + R @ part[:3]
            name = self.robot.links[place.link].name
            w = np.concatenate([moment, force])
            wrenches[name] = wrenches[name] + w if name in wrenches else w
            at += contact.rows
        return wrenches

    def _loop_derivatives(self, closed: ClosedRobot, q: Array, v: Array, a: Array, multipliers: Array) -> tuple:
        """Return the derivatives of the loops' rows by q and v, and d(phi'^T f)/dq, where phi' is their Jacobian."""

        def rows(dq: Array, q: Array, v: Array, a: Array) -> Array:
            moved = integrate(closed.robot, q, dq)
            return loop_jacobian(closed, moved) @ (v + a) if self.impact else loop_acceleration(closed, moved, v, a)

        def forces(dq: Array, q: Array, multipliers: Array) -> Array:
            return loop_jacobian(closed, integrate(closed.robot, q, dq)).T @ multipliers

        zero = np.zeros(closed.nv)
        return (
            jacobian(rows, "dq", "forward")(zero, q, v, a),
            jacobian(rows, "v", "forward")(zero, q, v, a),
            jacobian(forces, "dq", "forward")(zero, q, multipliers),
        )


class Forces(Mapping[str, Array]):
    """The force on each contact, (3,), or wrench [n; f], (6,), [N] and [N m], world axes, by name; computed when read.

    Args:
        model: The equations. q: Configuration, (nq,). f: Multipliers, (m,), contact axes.
    """

    def __init__(self, model: ContactModel, q: Array, f: Array):
        self._model, self._q, self._f = model, q, f

    def __getitem__(self, name: str) -> Array:
        at = 0
        for contact in self._model.contacts:
            if contact.name == name:
                R = frame_pose(self._model.robot, self._q, contact.frame).rotation
                part = self._f[at : at + contact.rows]
                return np.concatenate([R @ part[k : k + 3] for k in range(0, contact.rows, 3)])
            at += contact.rows
        raise UnknownNameError("contact of the problem", name, list(self))

    def __iter__(self) -> Iterator[str]:
        return iter([contact.name for contact in self._model.contacts])

    def __len__(self) -> int:
        return len(self._model.contacts)
