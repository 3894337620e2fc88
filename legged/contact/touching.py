"""Contact impulses of scenes with many pairs: sparse matrices of the contacts that may close in a step.

The proximal Newton method of `newton` solves the same problem as in a kernel of the whole scene. Its functions of one
contact are kernels that are called with all contacts at once; matrices are sparse, and unknowns are the velocities of
all bodies. The work of a step grows with the number of contacts that may close, and no code grows with the scene.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.contact.impact import Impact, target_velocity, with_restitution
from legged.contact.newton import CONVERGED, STEPS, mobility, projection, proximal_newton
from legged.contact.pair_tables import WORLD, Detected, Poses
from legged.contact.rigid import Rigid
from legged.contact.solver import Solution, gauss_seidel, natural_map, spread_group, updated_impulse
from legged.spatial import Array

SLACK = 0.1
"""Speed with which contacts may close in addition to twice the speeds of their bodies, [m/s]."""
ATTEMPT = 15
"""Newton iterations from the impulses of the last step, before Gauss-Seidel gives another start."""
SWEEPS = 20
"""Largest number of sweeps of this Gauss-Seidel, in multiples of `Rigid.sweeps`."""


class Bodies(NamedTuple):
    """The bodies of a scene in one step, in the order of `Poses`.

    Attributes:
        poses: Their poses.
        first: Number of the first generalized velocity of the robot of each body, (B,).
        is_free: Whether each is a free body, whose twist is its generalized velocity, (B,).
        jacobians: Twists per generalized velocity of their robot, (6, nv), body axes, of the bodies of articulated
            robots that move and have shapes or contact points.
        inertia: Inertia matrix of each robot, (nv, nv).
        v_free: Velocity of each robot without impulses, (nv,), mixed units.
        extent: As in `PairTables`, (B,), [m].
    """

    poses: Poses
    first: Array
    is_free: Array
    jacobians: Mapping[int, Array]
    inertia: Sequence[Array]
    v_free: Sequence[Array]
    extent: Array

    def reach(self, h: float) -> Array:
        """Return the distance that a point of each body may move in a step, with a margin, (B,), [m]."""
        v, speed = np.concatenate(self.v_free), np.full(len(self.first), SLACK)
        twists = v[self.first[self.is_free, None] + np.arange(6)]
        speed[self.is_free] += _largest_speed(twists, self.extent[self.is_free])
        for k, J in self.jacobians.items():
            own = v[self.first[k] : self.first[k] + J.shape[1]]
            speed[k] += _largest_speed(J @ own, self.extent[k])
        speed[WORLD] = 0.0
        return 2.0 * h * speed


def _largest_speed(twist: Array, extent: Any) -> Any:
    """Return an upper bound of the speed of points at a distance from the origin, (...), [m/s]."""
    return np.linalg.norm(twist[..., 3:], axis=-1) + np.linalg.norm(twist[..., :3], axis=-1) * extent


class _Jacobian(NamedTuple):
    """The Jacobian of contact velocities, sparse, (3 k, n); see `newton.ContactJacobian`."""

    matrix: Any
    transposed: Any

    @classmethod
    def of(cls, matrix: Any) -> _Jacobian:
        return cls(matrix, matrix.T.tocsr())

    def velocities(self, v: Array) -> Array:
        return (self.matrix @ v).reshape(-1, 3)

    def momentum(self, p: Array) -> Array:
        return self.transposed @ p.reshape(-1)


class TouchingSystem:
    """The contact problem of k contacts and the bodies, with the methods of `newton.GeneralizedSystem`.

    Attributes:
        mu, restitution: Coefficients of each contact, (k,). v_free: As in `Bodies`.
        u_free: Velocities without impulses, (k, 3), [m/s], contact frames.
    """

    def __init__(self, bodies: Bodies, detected: Detected, coefficients: Array):
        self._bodies, self._detected = bodies, detected
        self.v_free = bodies.v_free
        self.mu, self.restitution = coefficients.T
        from scipy import sparse  # imported where it is used: the import takes long

        self._M = sparse.csc_matrix(_block_diagonal(bodies.inertia))  # symmetric: rows are columns
        self._mobility = sparse.csr_matrix(_block_diagonal([np.linalg.inv(M) for M in bodies.inertia]))
        self._J = _Jacobian.of(_contact_jacobian(bodies, detected))
        self.u_free = self._J.velocities(np.concatenate(bodies.v_free))

    def velocities(self, v: Array) -> Array:
        """Return the velocities of the contacts, (k, 3), [m/s], contact frames.

        Args:
            v: Generalized velocities, (n,), mixed units.
        """
        return self._J.velocities(v)

    def after(self, p: Array) -> Array:
        """Return the generalized velocities after impulses, (n,).

        Args:
            p: Impulses, (k, 3), [N s], contact frames.
        """
        return np.concatenate(self.v_free) + self._mobility @ self._J.momentum(p)

    def matrices(self) -> tuple[Any, _Jacobian]:
        """Return the inertia matrix, sparse, (n, n), and the Jacobian."""
        return self._M, self._J

    @cached_property
    def diagonal(self) -> Array:
        """The blocks of the Delassus operator of each contact with itself, (k, 3, 3), [1/kg]."""
        J = self._J.matrix
        shape = len(self.mu), 3, J.shape[1]
        response = (J @ self._mobility).toarray().reshape(shape)
        return response @ J.toarray().reshape(shape).transpose(0, 2, 1)

    @cached_property
    def _delassus(self) -> Array:
        return (self._J.matrix @ self._mobility @ self._J.transposed).toarray()

    def swept(self, target: Array, start: Array, scales: Sequence[tuple[Any, Any]]) -> Array:
        """Return the impulses after a sweep, (k, 3), [N s]; see `solver.gauss_seidel`."""
        p = start.copy()
        flat, rows = p.reshape(-1), self._delassus.reshape(len(p), 3, -1)
        for i, (row, A) in enumerate(zip(rows, self.diagonal, strict=True)):
            u = row @ flat - A @ p[i] + self.u_free[i]
            p[i] = updated_impulse(A, u, p[i], target[i], self.mu[i], scales[i])
        return p

    def mobilities(self, problem: Any) -> Array:
        """Return the `newton.mobility` of each contact, (k,), [1/kg]."""
        return mobility(np.moveaxis(self.diagonal, 0, -1))

    def projected(self, problem: Any, target: Array, p_bar: Array, u: Array, r: Array) -> tuple[Array, Array]:
        """Return the `newton.projection` of all contacts: p(u), (k, 3), and -dp / du, (k, 3, 3).

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p_bar: Impulses from which the projections start, (k, 3), [N s], contact frames.
            u: Velocities, (..., k, 3), [m/s], contact frames. r: Steps of the projections, (k,), [1/kg].
        """
        return _projection()(p_bar, u, target, r, self.mu)

    def direction(self, M: Any, J: _Jacobian, slopes: Array, b: Array) -> Array:
        """Return the solution dv of (M + J^T diag(slopes) J) dv = b, (n,).

        Args:
            M: Inertia matrix, sparse, (n, n), mixed units. J: The Jacobian.
            slopes: Of the projections, (k, 3, 3), [kg], contact frames. b: Generalized momentum, (n,), mixed units.
        """
        k = len(slopes)
        from scipy import sparse
        from scipy.sparse.linalg import splu

        diagonal = sparse.bsr_matrix((slopes, np.arange(k), np.arange(k + 1)), shape=(3 * k, 3 * k))
        return splu((M + J.transposed @ (diagonal @ J.matrix)).tocsc()).solve(b)

    def line_search(
        self,
        problem: Any,
        target: Array,
        p_bar: Array,
        r: Array,
        J: _Jacobian,
        velocities: tuple[Array, Array],
        momenta: tuple[Array, Array],
        weights: Array,
    ) -> float:
        """Return the step as `GeneralizedSystem.line_search` does, from one call for all steps.

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p_bar: Impulses from which the projections start, (k, 3), [N s], contact frames.
            r: Steps of the projections, (k,), [1/kg]. J: The Jacobian.
            velocities: Of the contacts, (k, 3), [m/s], contact frames, without a step, and their change by a
                whole step.
            momenta: Generalized momenta, (n,), mixed units, without a step, and their change.
            weights: Of their squares, (n,), mixed units.
        """
        x = np.array(STEPS)[:, None]
        p, _ = self.projected(problem, target, p_bar, velocities[0] + x[..., None] * velocities[1], r)
        violation = momenta[0] + x * momenta[1] - (J.transposed @ p.reshape(len(x), -1).T).T
        return STEPS[int(np.argmin((weights * violation * violation).sum(axis=1)))]

    def solution(self, problem: Any, target: Array, p: Array) -> Solution:
        """Return impulses, spread over the contacts of each group, with their effect.

        Args:
            problem: This system. target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
            p: Impulses, (k, 3), [N s], contact frames.
        """
        p = self._spread(p)
        u = self._J.velocities(self.after(p))
        violations = _law()(u, self.diagonal, target, p, self.mu)
        return Solution(p, u, np.abs(violations).max(initial=0.0))

    def _spread(self, p: Array) -> Array:
        found = p.copy()
        for size, members in self._groups:
            found[members] = _spreading(size)(p[members], self._places[members], self.mu[members])
        return found

    @cached_property
    def _places(self) -> Array:
        """Coordinates of the points along the tangents from the origins of their first bodies, (k, 2), [m]."""
        d = self._detected.point - self._bodies.poses.origin[self._detected.first]
        return (self._detected.frame[:, 1:] @ d[..., None])[..., 0]

    @cached_property
    def _groups(self) -> list[tuple[int, Array]]:
        """Contacts between the same bodies with the same frame: (k, numbers of the contacts of all groups of k)."""
        d = self._detected
        keys = np.column_stack([d.first, d.second, d.frame[:, 0]])
        _, group, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        order, found = np.argsort(group.ravel(), kind="stable"), []
        starts = np.cumsum([0, *counts])
        for size in sorted(set(counts[counts > 1].tolist())):
            found.append(
                (size, np.array([order[starts[g] : starts[g] + size] for g in np.flatnonzero(counts == size)]))
            )
        return found


def impulses(
    ground: Rigid, bodies: Bodies, detected: Detected, coefficients: Array, v: Array, h: float, guess: Array
) -> tuple[Array, Impact]:
    """Return the numbers of the contacts that may close in the step, (k,), and their impulses; see `impact.impact`.

    Candidates that are too far to close at twice the present speeds are left out, unless the resulting velocities
    close them.

    Args:
        ground: The contact law. bodies: The bodies. detected: Candidates of near pairs.
        coefficients: Friction and restitution of each, (m, 2), dimensionless.
        v: Generalized velocities before the step, (n,), mixed units.
        h: The step, [s]. guess: Initial impulses, (m, 3), [N s], contact frames.
    """
    reach = bodies.reach(h)
    taken = detected.gap <= reach[detected.first] + reach[detected.second]
    v_free = np.concatenate(bodies.v_free)
    while True:  # ends, because every repetition takes further contacts
        rows = np.flatnonzero(taken)
        own = Detected(*(array[rows] for array in detected))
        impact = _impulses(ground, bodies, own, coefficients[rows], v, h, guess[rows])
        v_next = np.concatenate(impact.v_next)
        left = np.flatnonzero(~taken)
        if not len(left) or np.array_equal(v_next, v_free):
            break
        others = Detected(*(array[left] for array in detected))
        closing = (_contact_jacobian(bodies, others) @ v_next)[::3] * h < -others.gap
        if not closing.any():
            break
        taken[left[closing]] = True
    return own.numbers, impact


def _impulses(
    ground: Rigid, bodies: Bodies, detected: Detected, coefficients: Array, v: Array, h: float, guess: Array
) -> Impact:
    """Return the impulses of the given contacts."""
    if not len(detected.gap):
        return Impact(np.zeros((0, 3)), list(bodies.v_free), 0.0, 0.0)
    system = TouchingSystem(bodies, detected, coefficients)
    goal = CONVERGED * ground.tolerance

    def solve(target: Any, guess: Array, needed: Any = True) -> Solution:
        aims: Any = np.asarray(target)
        start = system.solution(system, aims, guess)
        found = proximal_newton(system, aims, system, start, min(ATTEMPT, ground.iterations), goal, goal)
        if found.residual > ground.tolerance:
            swept = system.solution(system, aims, gauss_seidel(system, aims, guess, SWEEPS * ground.sweeps))
            better = proximal_newton(system, aims, system, swept, ground.iterations, ground.tolerance, goal)
            found = better if better.residual < found.residual else found
        return found

    before = system.velocities(v)
    target = np.array([target_velocity(ground, gap, h) for gap in detected.gap.tolist()])
    p, u, residual = with_restitution(ground, system, target, before, h, detected.gap, guess, solve)
    ends = np.cumsum([len(part) for part in bodies.v_free])[:-1]
    return Impact(p, np.split(system.after(p), ends), residual, 0.5 * (p * (before + u)).sum())


def _block_diagonal(blocks: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Return the entries, columns and starts of the rows of a matrix of square blocks on the diagonal."""
    sizes = np.array([len(block) for block in blocks])
    ends = np.cumsum(sizes)
    columns = [np.tile(np.arange(end - size, end), size) for size, end in zip(sizes, ends, strict=True)]
    starts = np.concatenate([[0], np.cumsum(np.repeat(sizes, sizes))])
    return np.concatenate([np.ravel(block) for block in blocks]), np.concatenate(columns), starts


def _contact_jacobian(bodies: Bodies, detected: Detected) -> Any:
    """Return the Jacobian of contact velocities, sparse, (3 k, n)."""
    k, n = len(detected.gap), sum(len(v) for v in bodies.v_free)
    rows, columns, values = [], [], []
    for body_of, sign in ((detected.first, 1.0), (detected.second, -1.0)):
        R, d = bodies.poses.rotation[body_of], detected.point - bodies.poses.origin[body_of]
        skew = np.cross(np.eye(3), d[:, None, :])  # row i is e_i x d, so that skew @ x = d x x
        twist = sign * (detected.frame @ np.concatenate([-skew @ R, R], axis=2))
        parts = [(np.flatnonzero(body_of == body), J) for body, J in bodies.jacobians.items()]
        free = np.flatnonzero(bodies.is_free[body_of])
        for own, J in [*parts, (free, None)]:
            block = twist[own] if J is None else twist[own] @ J
            column = bodies.first[body_of[own]][:, None] + np.arange(block.shape[2])
            rows.append(np.broadcast_to((3 * own[:, None] + np.arange(3))[..., None], block.shape).ravel())
            columns.append(np.broadcast_to(column[:, None], block.shape).ravel())
            values.append(block.ravel())
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    from scipy import sparse

    return sparse.coo_matrix(entries, shape=(3 * k, n)).tocsr()


@cache
def _projection() -> BatchKernel:
    return BatchKernel(projection, {"p_bar": (3,), "u": (3,), "target": (), "r": (), "mu": ()})


@cache
def _law() -> BatchKernel:
    def law(u: Array, A: Array, target: Any, p: Array, mu: Any) -> Array:
        return np.stack(natural_map(u, A, target, p, mu))

    return BatchKernel(law, {"u": (3,), "A": (3, 3), "target": (), "p": (3,), "mu": ()})


@cache
def _spreading(size: int) -> BatchKernel:
    return BatchKernel(spread_group, {"p": (size, 3), "at": (size, 2), "mu": (size,)})
