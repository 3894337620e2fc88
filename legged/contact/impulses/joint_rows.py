"""Stops and dry friction of joints as rows of the contact problem: one complementarity problem for a time step.

A row of a joint has the velocity u of an entry of v and the impulse p along it, with

    -p in F Sgn(u) + N(u),      Sgn(0) = [-1, 1],

the impulse F of dry friction in the step, and the normal cone N of [lower, upper], the velocities that the stops admit.
At the solution, for any r > 0,

    p = (w - z) / r,    w = project(shrink(z, r F)) at z = u - r p,

where `shrink` moves z toward zero by r F or to zero, and `project` is that onto [lower, upper]: the proximal map of a
convex function of one variable, as the projection of `semismooth` is that of the law of a contact. So Newton's methods
take joints as further rows, and in generalized velocities each adds one number to the diagonal of their equations.
The vectors of impulses and velocities of a problem with joints are flat, the contacts' entries first, then the joints'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.contact.impulses.newton import (
    WITH_JOINTS,
    ContactJacobian,
    GeneralizedSystem,
    Search,
)
from legged.contact.impulses.solver import ContactProblem, Solution, maximum_of, natural_map, spread
from legged.robot.configuration import as_vector
from legged.spatial import Array

STICKS_FIRST = 10.0
"""Step of the projection of the joints of closed loops in the semismooth method, relative to their mobility.

With a larger step a joint whose velocity changes its sign in an iteration sticks before it slides back. Otherwise the
joints of a loop change between sliding forward and backward without end: this step leaves 1e-16 after 6 iterations
where 1 does not converge. In the impacts of `WITH_JOINTS`, of a robot without loops, it takes 10 iterations, not 8.
"""


class JointRows(NamedTuple):
    """The n rows of the stops and the dry friction of a robot's joints in a time step.

    Attributes:
        entries: Entry of v of each row.
        friction: F, the impulse of dry friction, (n,), [N m s] or [N s].
        lower, upper: Velocities that the stops admit, (n,), [rad/s] or [m/s].
        mobility: Step r of the proximal map, (n,), [1/(kg m^2)] or [1/kg].
        slope, impulse: The law p = impulse - slope u that the velocities without contacts assume, (n,) each.
        has_friction: Whether a row has dry friction.
    """

    entries: Sequence[int]
    friction: Array
    lower: Array
    upper: Array
    mobility: Array
    slope: Array
    impulse: Array
    has_friction: bool

    def assumed(self, u: Array) -> Array:
        """Return the impulses that velocities have by `slope`, (n,), [N m s] or [N s], joint axes.

        Args:
            u: Velocities, (n,), [rad/s] or [m/s], joint axes.
        """
        return self.impulse - self.slope * u

    def generalized(self, x: Array, nv: int) -> Array:
        """Return one number for each entry of v, (nv,), mixed units, from those of the rows, zero elsewhere.

        Args:
            x: Numbers of the rows, (n,), mixed units. nv: Number of the entries.
        """
        total: list[Any] = [0.0] * nv
        for entry, value in zip(self.entries, x, strict=True):
            total[entry] = value
        return as_vector(total)

    def projected(self, p_bar: Array, u: Array, r: Array) -> tuple[Array, Array]:
        """Return the impulses (w - z) / r at z = u - r p_bar, (n,), and whether w moves with z, (n,).

        Args:
            p_bar: Impulses, (n,), [N m s] or [N s], joint axes. u: Velocities, (n,), [rad/s] or [m/s], joint axes.
            r: Steps, (n,), [1/(kg m^2)] or [1/kg].
        """
        z, width = u - r * p_bar, r * self.friction
        shrunk = z - np.minimum(np.maximum(z, -width), width)
        w = np.minimum(np.maximum(shrunk, self.lower), self.upper)
        slides = (np.abs(z) >= width) & (shrunk >= self.lower) & (shrunk <= self.upper)
        return (w - z) / r, slides

    def violation(self, p: Array, u: Array) -> Array:
        """Return the distances of velocities from the law, (n,), [rad/s] or [m/s]; zero at a solution.

        Args:
            p: Impulses, (n,), [N m s] or [N s], joint axes. u: Velocities, (n,), [rad/s] or [m/s], joint axes.
        """
        return self.mobility * np.abs(self.projected(p, u, self.mobility)[0] - p)


class RowJacobian(NamedTuple):
    """The Jacobian of contacts and joint rows with respect to n generalized velocities.

    Attributes:
        contacts: That of the contacts.
        joints: That of the rows of joints, (rows, n), mixed units; None if a row is an entry of v.
        entries: Entry of v of each row.
    """

    contacts: ContactJacobian
    joints: Array | None
    entries: Sequence[int]

    def velocities(self, v: Array) -> Array:
        """Return the velocities of all rows, (3 m + rows,), mixed units.

        Args:
            v: Generalized velocities, (n,), mixed units.
        """
        joints = v[self.entries] if self.joints is None else self.joints @ v
        return np.concatenate([self.contacts.velocities(v).reshape(-1), joints])

    def momentum(self, p: Array) -> Array:
        """Return the generalized momentum of impulses, (n,), mixed units.

        Args:
            p: Of all rows, (3 m + rows,), mixed units.
        """
        at = len(p) - len(self.entries)
        total = self.contacts.momentum(p[:at].reshape(-1, 3))
        if self.joints is not None:
            return total + self.joints.T @ p[at:]
        total = total.astype(p.dtype) if total.dtype != p.dtype else total
        total[self.entries] = total[self.entries] + p[at:]
        return total


class JointedSolution(NamedTuple):
    """Impulses of contacts and joints, and their effect.

    Attributes:
        p, u: Impulses and velocities of all rows, (3 m + n,), mixed units.
        v: Generalized velocities of all robots, (n,), mixed units.
        residual: Violation of the laws, [m/s] or [rad/s].
    """

    p: Array
    u: Array
    v: Array
    residual: Any


class JointedSystem:
    """The bodies of a problem of contacts and joints, with the methods of `newton.GeneralizedSystem`.

    Args:
        system: The bodies with their contacts, without the slopes of `rows`.
        rows: Those of the joints of the first robot.
    """

    search: Search = WITH_JOINTS

    def __init__(self, system: GeneralizedSystem, rows: JointRows):
        assert system.present is not None
        self.system, self.rows, self.v_free = system, rows, system.v_free
        p = rows.assumed(system.v_free[0][list(rows.entries)])
        self.present = np.concatenate([system.present.reshape(-1), p])

    def split(self, x: Array) -> tuple[Array, Array]:
        """Return the parts of a vector of all rows that belong to contacts, (m, 3), and to joints, (n,), mixed units.

        Args:
            x: (3 m + n,), mixed units.
        """
        at = len(x) - len(self.rows.entries)
        return x[:at].reshape(-1, 3), x[at:]

    def _steps(self, r: Array) -> tuple[Array, Array]:
        """Return the step of each contact, (m,), which its three rows share, and of each joint, (n,), mixed units.

        Args:
            r: Steps of all rows, (3 m + n,), mixed units.
        """
        at = len(r) - len(self.rows.entries)
        return r[:at:3], r[at:]

    def generalized(self, p: Array) -> Array:
        """Return impulses of the rows of joints as generalized ones of the robot, (nv,), mixed units.

        Args:
            p: Impulses, (n,), mixed units.
        """
        return self.rows.generalized(p, len(self.v_free[0]))

    def matrices(self) -> tuple[Array, RowJacobian]:
        """Return the inertia matrix of all robots, (n, n), mixed units, and the Jacobian of all rows."""
        M, J = self.system.matrices()
        dense, entries = self.system.contacts.dense[0], list(self.rows.entries)
        if dense is None or not dense.has_loops:
            return M, RowJacobian(J, None, entries)
        rows = dense.projected(np.eye(len(self.v_free[0]))[entries])
        return M, RowJacobian(J, np.hstack([rows, np.zeros((len(rows), len(M) - rows.shape[1]))]), entries)

    def velocities(self, J: RowJacobian, v: Array) -> Array:
        """Return the velocities of all rows, (3 m + n,), mixed units; arguments as in `momentum`.

        Those of a robot with closed loops are those of v projected onto the loops. In the middle of a step v opens them
        by some of the second order in the step, which joints that stick, and feet, could not follow.
        """
        return J.velocities(v)

    def momentum(self, M: Array, J: RowJacobian, v: Array) -> Array:
        """Return the generalized momentum of the impulses after which the velocity is v, (n,), mixed units.

        Args:
            M: Inertia matrix, (n, n), mixed units. J: The Jacobian. v: Generalized velocities, (n,), mixed units.
        """
        return M @ (v - np.concatenate(self.v_free)) + J.momentum(self.present)

    def mobilities(self, problem: ContactProblem, factor: float = 1.0) -> Array:
        """Return the step of the projection of each row, (3 m + n,), [1/kg] or [1/(kg m^2)].

        Args:
            problem: The contacts. factor: On those of the joints, dimensionless.
        """
        return np.concatenate([np.repeat(self.system.mobilities(problem), 3), factor * self.rows.mobility])

    def linearized(
        self, problem: ContactProblem, target: Sequence[Any], p: Array, u: Array, r: Array, reduction: Any
    ) -> tuple[Array, tuple[Array, Array]]:
        """Return the changes of p, (3 m + n,), and -dp / du of contacts, (m, 3, 3), and joints, (n,).

        Args:
            problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
            p, u: Impulses and velocities of all rows, (3 m + n,), mixed units.
            r: Steps of the projections, (3 m + n,), mixed units. reduction: Factor of the linearization.
        """
        (p, own_p), (u, own_u), (r, own_r) = self.split(p), self.split(u), self._steps(r)
        moved, slopes = self.system.linearized(problem, target, p, u, r, reduction)
        projected, slides = self.rows.projected(own_p, own_u, own_r)
        factor = where(slides, 1.0, 1.0 / reduction)
        return np.concatenate([moved.reshape(-1), factor * (projected - own_p)]), (slopes, (factor - 1.0) / own_r)

    def advanced(
        self, problem: ContactProblem, target: Sequence[Any], p: Array, slopes: Any, u: Array, du: Array, r: Array
    ) -> tuple[Array, Array, Array]:
        """Return p, u and violations after a step of the velocities, (3 m + n,) each.

        Args:
            problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
            p, u: Impulses and velocities of all rows, (3 m + n,), mixed units. slopes: As from `linearized`.
            du: Step of the velocities, (3 m + n,), mixed units. r: Steps of the projections, (3 m + n,), mixed units.
        """
        (p, own_p), (u, own_u), (du, own_du) = (self.split(x) for x in (p, u, du))
        r, _ = self._steps(r)
        p, u, violations = self.system.advanced(problem, target, p, slopes[0], u, du, r)
        own_p, own_u = own_p - slopes[1] * own_du, own_u + own_du
        own = self.rows.violation(own_p, own_u)
        pairs = (p, own_p), (u, own_u), (violations, own)
        return tuple(np.concatenate([one.reshape(-1), two]) for one, two in pairs)  # type: ignore[return-value]

    def projected(
        self, problem: ContactProblem, target: Sequence[Any], p_bar: Array, u: Array, r: Array
    ) -> tuple[Array, tuple[Any, Array]]:
        """Return the projections p(u), (3 m + n,), and -dp / du of contacts, (3, 3) each, and joints, (n,).

        Args:
            problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
            p_bar, u: Impulses and velocities of all rows, (3 m + n,), mixed units.
            r: Steps of the projections, (3 m + n,), mixed units.
        """
        (p_bar, own_p), (u, own_u), (r, own_r) = self.split(p_bar), self.split(u), self._steps(r)
        p, slopes = self.system.projected(problem, target, p_bar, u, r)
        projected, slides = self.rows.projected(own_p, own_u, own_r)
        return np.concatenate([p.reshape(-1), projected]), (slopes, where(slides, 0.0, 1.0 / own_r))

    def direction(self, M: Array, J: RowJacobian, slopes: tuple[Any, Array], b: Array) -> Array:
        """Return the solution dv of (M + J^T diag(slopes) J) dv = b, (n,), mixed units.

        Args:
            M: Inertia matrix, (n, n), mixed units. J: The Jacobian.
            slopes: Of contacts, (m, 3, 3), and joints, (n,), mixed units. b: Right-hand side, (n,), mixed units.
        """
        H = M.copy()
        if J.joints is None:
            for entry, slope in zip(J.entries, slopes[1], strict=True):
                H[entry, entry] = H[entry, entry] + slope
        else:
            H = H + J.joints.T @ (slopes[1][:, None] * J.joints)
        return self.system.direction(H, J.contacts, slopes[0], b, shared=self.rows.has_friction)

    def at_steps(self, error: Callable[[Any], Any]) -> Sequence[Any]:
        """Return the errors of the line search after each of its steps."""
        return [error(x) for x in self.search.steps]

    def after(self, p: Array) -> Array:
        """Return the generalized velocities after impulses, (n,), mixed units.

        Args:
            p: Impulses of all rows, (3 m + n,), mixed units.
        """
        contacts, joints = self.split(p - self.present)
        return np.concatenate(self.system.contacts.after(self.v_free, contacts, self.generalized(joints)))

    def solution(self, problem: ContactProblem, target: Sequence[Any], p: Array) -> JointedSolution:
        """Return impulses, those of contacts spread over each group, with their effect.

        Args:
            problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
            p: Impulses of all rows, (3 m + n,), mixed units.
        """
        contacts, joints = self.split(p)
        p = np.concatenate([spread(problem, contacts).reshape(-1), joints])
        return self.at(problem, target, p, self.after(p))

    def at(self, problem: ContactProblem, target: Sequence[Any], p: Array, v: Array) -> JointedSolution:
        """Return impulses of all rows after which the velocity is v, with their effect.

        Args:
            problem: The contacts. target: Normal velocities of closed contacts, (m,), [m/s].
            p: Impulses, (3 m + n,), mixed units. v: Generalized velocities, (n,), mixed units.
        """
        velocities, own = self.split(self._velocities(v))
        p_contacts, p_joints = self.split(p)
        rows = enumerate(zip(velocities, p_contacts, strict=True))
        maps = [natural_map(u, problem.A[i][i], target[i], x, problem.mu[i]) for i, (u, x) in rows]  # type: ignore[arg-type]
        violations = [abs(x) for one in maps for x in one] + list(self.rows.violation(p_joints, own))
        return JointedSolution(p, np.concatenate([velocities.reshape(-1), own]), v, maximum_of(violations))

    def _velocities(self, v: Array) -> Array:
        """Return the velocities of all rows, (3 m + n,), mixed units, without the Jacobian where loops need none."""
        contacts, n = self.system.contacts, len(self.v_free[0])
        if contacts.loops is not None:
            return self.velocities(self.matrices()[1], v)
        parts = np.split(v, np.cumsum([len(own) for own in self.v_free])[:-1])
        return np.concatenate([contacts.velocities(parts).reshape(-1), v[:n][list(self.rows.entries)]])

    def assumed(self, solution: Solution, v: Array) -> JointedSolution:
        """Return a solution of the contacts with the impulses that the rows of joints assume.

        Args:
            solution: The solution of the contacts. v: Generalized velocities, (n,), mixed units.
        """
        u = v[list(self.rows.entries)]
        p = self.rows.assumed(u)
        residual = np.maximum(solution.residual, maximum_of(self.rows.violation(p, u)))
        p, u = (np.concatenate([one.reshape(-1), two]) for one, two in ((solution.p, p), (solution.u, u)))
        return JointedSolution(p, u, v, residual)
