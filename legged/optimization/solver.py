"""Feasibility-driven differential dynamic programming, for one problem or for several starts side by side.

The states of all nodes and the controls are the unknowns; the gaps between nodes close by the share alpha of a step of
length alpha. Bounds of controls are met in each backward pass, other constraints by a proximal augmented Lagrangian:

    mu / 2 |r + y|^2 for r = 0,     mu / 2 |min(r + y, 0)|^2 for r >= 0,     y <- r + y or min(r + y, 0)

Source: Mastalli and others 2020 and Tassa, Mansard, Todorov 2014, see `nodes` and `riccati`; Jallet and others 2025
(PROXDDP), section III. The merit function, cost plus penalty times the sum of the gaps, is that of Nocedal, Wright
2006, equation (18.36).
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from legged.arguments import number, whole
from legged.errors import ArgumentError, NotFiniteError, ShapeError
from legged.optimization.model import Trajectories
from legged.optimization.problem import Problem
from legged.optimization.riccati import backward
from legged.optimization.solution import Log, Solution
from legged.spatial import Array

STEP_LENGTHS = 0.5 ** np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0])  # one for each lane of a vector
_SUFFICIENT = 1e-4  # decrease of the merit function, relative to its slope
_ROUNDING = 1e-12  # of the merit function, relative
_LEAST, _FIRST, _LARGEST = 1e-9, 1e-6, 1e9  # regularization: least, first increased, at which the iterations end
_PENALTIES = (10.0, 10.0, 1e7)  # of constraints: first, factor, largest
_PROGRESS = 0.1  # by which violations decrease from one update of multipliers to the next, or the penalty is raised


class Solver:
    """The solver of a problem, with its memory and its last trajectories, from which it starts again.

    Attributes:
        problem: The problem.
    """

    def __init__(self, problem: Problem):
        """Compile the problem's functions and allocate memory.

        Args:
            problem: The problem.
        """
        if not isinstance(problem, Problem):
            raise ArgumentError(f"problem must be a Problem, got {problem!r}")
        self.problem = problem
        self._at = Trajectories(problem, STEP_LENGTHS)
        self._has_constraints = any(places for places in self._at.constraints)
        self._restart()

    def _restart(self) -> None:
        self._regularization = np.full(self._at.count, _LEAST)
        self._penalty = np.full(self._at.count, _PENALTIES[0])
        self._at.set_penalty(self._penalty)

    def set_guess(self, q: Any = None, v: Any = None, u: Any = None) -> None:
        """Set the trajectory from which the next solution starts; the state at the start stays that of the problem.

        Args:
            q: Configurations, (nodes + 1, nq) or (nq,) for all nodes, or with a leading axis (problems, ...).
            v: Velocities, likewise. u: Controls, (nodes, nu) or (nu,), likewise, [N m] or [N].

        Raises:
            ShapeError, NotFiniteError: For arrays that do not fit.
        """
        at = self._at
        for name, value, array in (("q", q, at.q), ("v", v, at.v), ("u", u, at.u[:, :-1])):
            if value is None:
                continue
            given = np.asarray(value, float)
            try:
                given = np.broadcast_to(given, array.shape)
            except ValueError:
                raise ShapeError(f"the guess of {name} must fit {array.shape[1:]}, got {np.shape(value)}") from None
            if not np.isfinite(given).all():
                raise NotFiniteError(f"the guess of {name} must be finite")
            if name == "q" and self.problem.tree.base.kind == "floating":
                norms = np.abs(np.linalg.norm(given[..., :4], axis=-1) - 1.0)
                if norms.max() > 1e-6:
                    raise ShapeError("the guess of q must hold unit quaternions of the base")
            array[...] = given
        at.q[:, 0], at.v[:, 0] = self.problem.q, self.problem.v

    def shift(self, count: int = 1) -> None:
        """Move the trajectory towards the start by some nodes and repeat its last one, for a receding horizon.

        Set the new start with `problem.set_start` afterwards. The nodes keep their contacts and terms: use it with
        nodes that are alike, or set the parameters anew.

        Args:
            count: Number of nodes, at least 1.
        """
        whole("count", count, least=1, most=self._at.nodes)
        for array in (self._at.q, self._at.v):
            array[:, :-count] = array[:, count:].copy()
        u = self._at.u[:, :-1]
        u[:, :-count] = u[:, count:].copy()
        if count < self._at.nodes:
            u[:, -count:] = u[:, -count - 1 : -count]

    def solve(
        self,
        iterations: int = 100,
        *,
        tolerance: float = 1e-9,
        gap_tolerance: float = 1e-8,
        constraint_tolerance: float = 1e-4,
    ) -> list[Solution]:
        """Improve the present trajectories, and return a solution for each start.

        The iterations end where the quadratic model expects no further decrease of the cost, all gaps are closed and
        all constraints are met; or with a message where no step decreases the cost.

        Args:
            iterations: Their largest number.
            tolerance: Expected decrease of the cost, relative to 1 plus the cost.
            gap_tolerance: Largest entry of a gap, [rad], [m], [rad/s] and [m/s].
            constraint_tolerance: Largest violation of a constraint, over its scale.

        Raises:
            NotFiniteError: A term or the dynamics of a node have no finite value at the guess; the message names it.
        """
        whole("iterations", iterations, least=1)
        for name, value in (
            ("tolerance", tolerance), ("gap_tolerance", gap_tolerance), ("constraint_tolerance", constraint_tolerance),
        ):  # fmt: skip
            number(name, value)
        at, problem, start = self._at, self.problem, perf_counter()
        at.q[:, 0], at.v[:, 0] = problem.q, problem.v
        is_bounded = bool(np.isfinite([problem.lower, problem.upper]).any())
        if is_bounded:
            at.u[:, :-1] = np.clip(at.u[:, :-1], problem.lower, problem.upper)
        logs = [Log() for _ in range(at.count)]
        state = _State(at.count)
        at.evaluate_motion()
        changed = True
        for _ in range(iterations):
            if changed:
                at.evaluate_model()
            bounds = (problem.lower - at.u, problem.upper - at.u) if is_bounded else None
            result = backward(at.F, at.gap, at.gradient, at.hessian, at.step, at.gain, self._regularization, bounds)
            if result.failed >= 0:
                self._regularization = np.maximum(10.0 * self._regularization, _FIRST)
                changed = False
                if (self._regularization > _LARGEST).any():
                    state.reason[:] = f"the Hessian of the controls of node {result.failed} is not positive definite"
                    break
                continue
            state.measure(at, result, gap_tolerance)
            violation = at.violations() if self._has_constraints else np.zeros(at.count)
            inner = (state.improvement <= tolerance * (1.0 + np.abs(state.cost))) & (state.largest <= gap_tolerance)
            state.converged = inner & (violation <= constraint_tolerance)
            loose = (state.improvement <= state.accuracy * (1.0 + np.abs(state.cost))) & (state.largest <= 1e-4)
            updated = (loose & state.moved & (violation > constraint_tolerance)) | (inner & ~state.converged)
            if updated.any():
                self._update_multipliers(updated, violation, state)
            accepted = self._search(state, ~(state.converged | state.ended | updated))
            for b, log in enumerate(logs):
                if not state.ended[b]:
                    log.cost.append(float(state.cost[b]))
                    log.gap.append(float(state.largest[b]))
                    log.violation.append(float(violation[b]))
                    log.improvement.append(float(state.improvement[b]))
                    log.step.append(float(accepted[b]))
                    log.regularization.append(float(self._regularization[b]))
                    log.time.append(perf_counter() - start)
            state.ended |= state.converged
            state.moved = np.where(updated, False, state.moved | (accepted > 0.0))
            if updated.any():
                at.evaluate_motion()
            self._regularize(accepted, updated, state)
            if state.ended.all():
                break
            changed = bool(accepted.any() or updated.any())
        if not state.converged.all():
            at.evaluate_model()  # for messages
        return [self._solution(b, logs[b], state) for b in range(at.count)]

    def _search(self, state: _State, active: Array) -> Array:
        """Take the step with the least merit of those that decrease it sufficiently; return lengths, 0 for none."""
        at = self._at
        accepted = np.zeros(at.count)
        if not active.any():
            return accepted
        costs = at.rollout()
        merit = state.cost + state.penalty * state.gaps
        descent = np.minimum(state.slope - state.penalty * state.gaps, 0.0)
        trial = costs + (state.penalty * state.gaps)[:, None] * (1.0 - at.alphas)
        allowed = merit[:, None] + _SUFFICIENT * at.alphas * descent[:, None] + _ROUNDING * np.abs(merit)[:, None]
        for b in np.flatnonzero(active):
            fits = trial[b] <= allowed[b]
            if fits.any():
                best = int(np.where(fits, trial[b], np.inf).argmin())
                at.accept(int(b), best)
                accepted[b] = at.alphas[best]
        return accepted

    def _regularize(self, accepted: Array, updated: Array, state: _State) -> None:
        """Raise the regularization after short steps, lower it after long ones, and end where it is largest."""
        stuck = (accepted == 0.0) & ~updated
        raised = np.maximum(10.0 * self._regularization, _FIRST)
        lowered = np.maximum(0.1 * self._regularization, _LEAST)
        self._regularization = np.where(stuck, raised, np.where(accepted > 0.4, lowered, self._regularization))
        for b in np.flatnonzero((self._regularization > _LARGEST) & ~state.ended):
            state.ended[b], state.reason[b] = True, "no step decreases the cost"
            self._regularization[b] = _LEAST

    def _update_multipliers(self, updated: Array, violation: Array, state: _State) -> None:
        """Update the multipliers of problems, and raise the penalty where the violation decreased too little."""
        slow = updated & (violation > state.target)
        fast = updated & ~slow
        raised = np.where(slow, np.minimum(_PENALTIES[1] * self._penalty, _PENALTIES[2]), self._penalty)
        state.target = np.where(fast, _PROGRESS * np.minimum(violation, state.target), state.target)
        state.accuracy = np.where(fast, _PROGRESS**2 * state.accuracy, state.accuracy)
        self._at.update_multipliers(updated, self._penalty / raised)
        self._penalty = raised
        self._at.set_penalty(self._penalty)
        state.penalty[updated] = 0.0

    def _solution(self, b: int, log: Log, state: _State) -> Solution:
        at, problem = self._at, self.problem
        contacts = problem.contacts
        forces = problem.models[0].forces(at.q[b, :-1], at.f[b, :-1]) if contacts else ()
        named = {contact.name: force for contact, force in zip(contacts, forces, strict=True)}
        done = bool(state.converged[b])
        message = f"converged in {len(log)} iterations" if done else self._failure(b, log, state.reason[b])
        q, v, u = (array[b].copy() for array in (at.q, at.v, at.u[:, :-1]))
        times, gain = problem.times.copy(), at.gain[b, :-1].copy()
        return Solution(done, message, float(at.true_costs()[b]), times, q, v, u, named, gain, log)

    def _failure(self, b: int, log: Log, reason: str) -> str:
        at = self._at
        parts = [reason or f"not converged after {len(log)} iterations"]
        gaps = np.abs(at.gap[b]).max(axis=1)
        if gaps.max() > 1e-8:
            parts.append(f"the largest gap is {gaps.max():.2g} after node {gaps.argmax()}")
        if self._has_constraints:
            parts.append(at.worst_constraint(b))
        return "; ".join(parts)


class _State:
    """What the iterations keep of each problem: its measures, and whether it has ended."""

    def __init__(self, count: int):
        self.converged, self.ended, self.moved = np.zeros((3, count), bool)
        self.reason = np.full(count, "", object)
        self.penalty, self.target, self.accuracy = np.zeros(count), np.full(count, 0.1), np.full(count, 1e-3)
        self.cost = self.gaps = self.largest = self.slope = self.improvement = np.zeros(count)

    def measure(self, at: Trajectories, result: Any, gap_tolerance: float) -> None:
        """Compute costs, gaps, the slope of the cost along the step, and its expected improvement."""
        self.cost = at.cost.sum(axis=1)
        absolute = np.abs(at.gap)
        self.gaps, self.largest = absolute.sum(axis=(1, 2)), absolute.max(axis=(1, 2))
        self.slope, curvature = result.first, result.second
        open_ = self.largest > gap_tolerance
        if open_.any():
            self.slope, curvature = at.directional_derivatives()
            half = 0.5 * np.maximum(curvature, 0.0)
            needed = (self.slope + half) / (0.5 * np.maximum(self.gaps, 1e-300))
            self.penalty = np.where(open_, np.maximum(self.penalty, needed), self.penalty)
        self.improvement = np.abs(self.slope + 0.5 * curvature)


def solve(
    problem: Problem,
    *,
    q: Any = None,
    v: Any = None,
    u: Any = None,
    iterations: int = 100,
    tolerance: float = 1e-9,
    constraint_tolerance: float = 1e-4,
) -> Solution:
    """Return the solution of a problem with one start.

    Args:
        problem: The problem. q, v, u: Guess, as in `Solver.set_guess`; by default the robot stays at the start with
            zero controls.
        iterations, tolerance, constraint_tolerance: As in `Solver.solve`.

    Raises:
        ArgumentError: The problem has several starts: use `Solver`. Others as in `Solver.solve`.
    """
    solver = Solver(problem)
    if len(problem.q) != 1:
        raise ArgumentError(f"the problem has {len(problem.q)} starts; use Solver(problem).solve()")
    solver.set_guess(q, v, u)
    return solver.solve(iterations, tolerance=tolerance, constraint_tolerance=constraint_tolerance)[0]
