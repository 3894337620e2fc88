"""Feasibility-driven differential dynamic programming, for one or several initial states of a problem.

The states of all nodes and the controls are the unknowns. The gap of a node is the state that it leads to minus the
state of the next node; a step of length alpha multiplies the gaps by 1 - alpha. Bounds of controls are met in each
backward pass, other constraints by a proximal augmented Lagrangian:

    mu / 2 |r + y|^2 for r = 0,     mu / 2 |min(r + y, 0)|^2 for r >= 0,     y <- r + y or min(r + y, 0)

with residuals r over their scale, penalty mu and multipliers y.

As many problems as there are threads are side by side in memory. Each iterates by itself; where one ends, the next one
takes its place, so that the linear-quadratic models of few problems stay in the cache of the processor.

Source: Mastalli and others 2020 and Tassa, Mansard, Todorov 2014, see `nodes` and `riccati`; Jallet and others 2025
(PROXDDP), section III. The merit function, cost plus penalty times the sum of the gaps, is that of Nocedal, Wright
2006, equation (18.36).
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from legged.arguments import array, number, whole
from legged.compiler import default_threads
from legged.errors import ArgumentError, ShapeError
from legged.optimization.model import LinearQuadraticModel
from legged.optimization.problem import Problem, Stage
from legged.optimization.riccati import Backward, parameter_step
from legged.optimization.solution import Solution
from legged.optimization.solver_state import SolverState
from legged.spatial import Array

STEP_LENGTHS = 0.5 ** np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0])  # all are tried, one in each SIMD lane
_SUFFICIENT = 1e-4  # decrease of the merit function, relative to its slope
_ROUNDING = 1e-12  # of the merit function, relative
_LEAST, _FIRST, _LARGEST = 1e-9, 1e-6, 1e9  # regularization: least, least after an increase, end of the iterations
_SHORT, _MODERATE = 0.1, 1e-2  # step length below which the regularization is raised, and up to which value
_PENALTIES = (10.0, 10.0, 1e7)  # of constraints: first, factor, largest
_PROGRESS = 0.1  # factor by which violations must decrease between updates of multipliers, or the penalty is raised
_BOUNDED_PASSES = 3  # backward passes with bounds, each for the change of durations of the one before it
_LOOSE_GAP = 1e-4  # largest gap at which multipliers are updated before the problem for fixed ones has converged


class Solver:
    """A solver of a problem; it keeps its trajectories and starts the next solution from them.

    Attributes:
        problem: The problem. second_order: Whether the Hessian is exact.
    """

    def __init__(self, problem: Problem, *, second_order: bool = False):
        """Compile the problem's functions and allocate memory.

        Args:
            problem: The problem.
            second_order: Whether the Hessian contains the second derivatives of dynamics and residuals, so that the
                iterations converge quadratically; otherwise it is the Gauss-Newton approximation. Where the exact
                Hessian of controls is not positive definite, an iteration uses the approximation.

        Raises:
            ArgumentError: A Runge-Kutta method with second order.
        """
        if not isinstance(problem, Problem):
            raise ArgumentError(f"problem must be a Problem, got {problem!r}")
        if second_order and problem.method:
            raise ArgumentError("second_order needs a problem with integrator='semi-implicit Euler'")
        self.problem, self.second_order = problem, second_order
        count = len(problem.q)
        places = min(count, default_threads())
        self._trajectories = LinearQuadraticModel(problem, STEP_LENGTHS, places)
        self._has_constraints = any(constraints for constraints in self._trajectories.constraints)
        self._regularization, self._penalty, self._was_stuck = *np.zeros((2, places)), np.zeros(places, bool)
        self._stored = {name: np.repeat(array[:1], count, axis=0) for name, array in self._places().items()}
        self._stored["q"][...] = problem.q[:, None]
        self._restart()

    def _places(self) -> dict[str, Array]:
        """Return the arrays of the problems side by side that a warm start reuses, name -> (problems, ...)."""
        trajectories = self._trajectories
        with_multipliers = {f"inputs {k}": inputs["p"] for k, inputs in enumerate(trajectories.inputs)}
        return with_multipliers | {
            "q": trajectories.q,
            "v": trajectories.v,
            "u": trajectories.u,
            "factors": trajectories.durations.factors,
            "regularization": self._regularization,
            "was stuck": self._was_stuck,
            "penalty": self._penalty,
        }

    def _restart(self) -> None:
        stored = self._stored
        stored["regularization"][...], stored["was stuck"][...], stored["penalty"][...] = _LEAST, False, _PENALTIES[0]

    def set_guess(self, q: Any = None, v: Any = None, u: Any = None) -> None:
        """Set the trajectory from which the next solution starts; the initial state stays that of the problem.

        Args:
            q: Configurations, (nodes + 1, nq) or (nq,) for all nodes, or with a leading axis (problems, ...).
            v: Velocities, likewise. u: Controls, (nodes, nu) or (nu,), likewise, [N m] or [N].

        Raises:
            ShapeError: For arrays that do not fit, or base quaternions that are not of unit length.
            NotFiniteError: For values that are not finite.
        """
        stored = self._stored
        arrays = {"q": stored["q"], "v": stored["v"], "u": stored["u"][:, :-1]}
        guess = {}
        for name, value in (("q", q), ("v", v), ("u", u)):
            if value is None:
                continue
            given = array(name, value).astype(float)
            try:
                given = guess[name] = np.broadcast_to(given, arrays[name].shape)
            except ValueError:
                wanted = arrays[name].shape[1:]
                raise ShapeError(f"the guess of {name} must fit {wanted}, got {given.shape}") from None
            if name == "q" and self.problem.tree.base.kind == "floating":
                norms = np.abs(np.linalg.norm(given[..., :4], axis=-1) - 1.0)
                if norms.max() > 1e-6:
                    raise ShapeError("the guess of q must hold unit quaternions of the base")
        for name, given in guess.items():  # after all of them have been accepted
            arrays[name][...] = given
        stored["q"][:, 0], stored["v"][:, 0] = self.problem.q, self.problem.v

    def shift(self, count: int = 1) -> None:
        """Move the trajectory towards the start by some nodes and repeat its last one, for a receding horizon.

        Set the new initial state with `problem.set_start` afterwards. Contacts and terms of the nodes do not move:
        use it for problems whose nodes are equal.

        Args:
            count: Number of nodes, at least 1.
        """
        whole("count", count, least=1, most=self._trajectories.nodes)
        for states in (self._stored["q"], self._stored["v"]):
            states[:, :-count] = states[:, count:].copy()
        u = self._stored["u"][:, :-1]
        u[:, :-count] = u[:, count:].copy()
        if count < self._trajectories.nodes:
            u[:, -count:] = u[:, -count - 1 : -count]

    def advance(self, nodes: Sequence[Stage], q: Any, v: Any) -> None:
        """Advance the problem by nodes whose time has passed, for a receding horizon whose contacts and terms change.

        The trajectory moves with the nodes, as in `shift`.

        Args:
            nodes: New nodes at the end, see `Problem.advance`, as many as have passed.
            q: Measured configuration, (nq,) or (problems, nq). v: Measured velocity, (nv,) or (problems, nv).

        Raises:
            ArgumentError, ShapeError: As in `Problem.advance` and `Problem.set_start`.
        """
        start = self.problem.q, self.problem.v
        self.problem.set_start(q, v)
        try:
            self.problem.advance(nodes)
        except ArgumentError:
            self.problem.q, self.problem.v = start
            raise
        self.shift(len(nodes))
        self._trajectories.refresh_inputs()
        for k, inputs in enumerate(self._trajectories.inputs):
            self._stored[f"inputs {k}"][...] = inputs["p"][:1]
        self._restart()

    def solve(
        self,
        iterations: int = 100,
        *,
        tolerance: float = 1e-9,
        gap_tolerance: float = 1e-8,
        constraint_tolerance: float = 1e-4,
    ) -> list[Solution]:
        """Improve the present trajectories, and return a solution for each initial state.

        The iterations end where the quadratic model expects no further decrease of the cost, all gaps are closed and
        all constraints are met; or with a message where no step decreases the cost.

        Args:
            iterations: Largest number of iterations.
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
        trajectories, problem, stored, start = self._trajectories, self.problem, self._stored, perf_counter()
        stored["q"][:, 0], stored["v"][:, 0] = problem.q, problem.v
        is_bounded = bool(np.isfinite([problem.lower, problem.upper]).any())
        if is_bounded:
            stored["u"][:, :-1] = np.clip(stored["u"][:, :-1], problem.lower, problem.upper)
        state, changed = SolverState(trajectories.count, gap_tolerance), False
        solutions: list[Solution] = [None] * len(problem.q)  # type: ignore[list-item]
        members, waiting = np.full(trajectories.count, -1), list(range(len(problem.q)))[::-1]
        while True:
            changed |= self._exchange(state, members, waiting, solutions)
            if (members < 0).all():
                return solutions
            if changed:
                trajectories.evaluate_model(self.second_order)
            result = self._backward(is_bounded)
            failed = result.failed_node >= 0
            if failed.any() and self.second_order and changed:
                trajectories.hessian[failed] = trajectories.gauss_newton[failed]
                result = self._backward(is_bounded)
                failed = result.failed_node >= 0
            state.measure(trajectories, result)
            violation = trajectories.violations() if self._has_constraints else np.zeros(trajectories.count)
            expected = state.improvement / (1.0 + np.abs(state.cost))
            inner = (expected <= tolerance) & (state.largest_gap <= gap_tolerance) & ~failed
            settled = inner & (violation <= constraint_tolerance)
            probed = settled & (self._regularization > _FIRST) & ~state.probed
            state.converged = settled & ~probed
            loose = (expected <= state.inner_tolerance) & (state.largest_gap <= _LOOSE_GAP) & ~failed
            updated = (loose & state.has_moved & (violation > constraint_tolerance)) | (inner & ~settled)
            updated &= ~state.ended
            if updated.any():
                self._update_multipliers(updated, violation, state)
            accepted = self._search(state, ~(settled | state.ended | updated | failed))
            for b in np.flatnonzero(~(state.ended | failed)):
                state.record(int(b), violation[b], accepted[b], self._regularization[b], perf_counter() - start)
            state.has_moved = np.where(updated, False, state.has_moved | (accepted > 0.0))
            if updated.any():
                trajectories.evaluate_motion()
            self._regularize(accepted, updated | probed | state.converged | state.ended, state, result.failed_node)
            self._regularization[probed], state.probed = _LEAST, state.probed | probed
            state.passes += 1
            state.ended |= state.converged | (state.passes >= iterations)
            changed = bool(accepted.any() or updated.any())

    def _exchange(self, state: SolverState, members: Array, waiting: list[int], solutions: list[Solution]) -> bool:
        """Take the solutions of problems that have ended, and put waiting ones in their places; return whether it did.

        The numbers of the problems side by side are `members`, -1 where there is none.
        """
        trajectories, places, ended = self._trajectories, self._places(), np.flatnonzero(state.ended)
        taken, loaded = [b for b in ended if members[b] >= 0], ended[: len(waiting)]
        if not state.converged[taken].all():
            trajectories.evaluate_model()  # for messages
        for b in taken:
            solutions[members[b]] = self._solution(int(b), state)
            for name, place in places.items():
                self._stored[name][members[b]] = place[b]
            members[b] = -1
        for b in loaded:
            members[b] = waiting.pop()
            for name, place in places.items():
                place[b] = self._stored[name][members[b]]
            state.restart(b)
        if len(loaded):
            trajectories.durations.update()
            trajectories.set_penalty(self._penalty)
            trajectories.evaluate_motion()
        return bool(taken or len(loaded))

    def _backward(self, is_bounded: bool) -> Backward:
        """Compute the step of controls and duration factors."""
        trajectories, problem, durations = self._trajectories, self.problem, self._trajectories.durations
        bounds = (problem.lower - trajectories.u, problem.upper - trajectories.u) if is_bounded else None
        limits = durations.lower - durations.factors, durations.upper - durations.factors
        step = np.zeros_like(durations.step)
        for _ in range(_BOUNDED_PASSES if is_bounded and durations.names else 1):
            result = trajectories.riccati.backward(self._regularization, bounds, step)
            if not durations.names or (result.failed_node >= 0).all():
                break
            step, result = parameter_step(result, len(durations.names), self._regularization, limits)
        if durations.names:
            durations.step[...] = step
        return result

    def _search(self, state: SolverState, active: Array) -> Array:
        """Take the step length with the least merit among those with sufficient decrease; return it, 0 for none."""
        trajectories = self._trajectories
        accepted = np.zeros(trajectories.count)
        if not active.any():
            return accepted
        costs = trajectories.rollout()
        merit = state.cost + state.gap_penalty * state.gap_sum
        descent = np.minimum(state.slope - state.gap_penalty * state.gap_sum, 0.0)
        trial = costs + (state.gap_penalty * state.gap_sum)[:, None] * (1.0 - trajectories.alphas)
        allowed = (
            merit[:, None] + _SUFFICIENT * trajectories.alphas * descent[:, None] + _ROUNDING * np.abs(merit)[:, None]
        )
        for b in np.flatnonzero(active):
            fits = trial[b] <= allowed[b]
            if fits.any():
                best = int(np.where(fits, trial[b], np.inf).argmin())
                trajectories.accept(int(b), best)
                accepted[b] = trajectories.alphas[best]
        return accepted

    def _regularize(self, accepted: Array, held: Array, state: SolverState, failed_node: Array) -> None:
        """Raise the regularization after short steps or none, lower it after long ones; end a problem at the largest.

        Problems that are `held` have not tried a step; those with a `failed_node` have none.
        """
        failed, stuck = failed_node >= 0, (accepted == 0.0) & ~held
        if not self._has_constraints:  # steps between the kinks of their penalties are short with any regularization
            stuck |= (accepted < _SHORT) & (self._regularization < _MODERATE) & ~state.probed & ~held
        raised = np.maximum(10.0 * self._regularization, _FIRST)
        lowered = np.maximum(0.1 * self._regularization, _LEAST)
        is_safe = (accepted > 0.4) & ~self._was_stuck  # the smaller regularization has not just failed
        self._regularization[...] = np.where(stuck, raised, np.where(is_safe, lowered, self._regularization))
        self._was_stuck[...] = np.where(failed, self._was_stuck, stuck)
        for b in np.flatnonzero((self._regularization > _LARGEST) & ~state.ended):
            indefinite = f"the Hessian of the controls of node {failed_node[b]} is not positive definite"
            state.ended[b], state.reason[b] = True, indefinite if failed[b] else "no step decreases the cost"
            self._regularization[b] = _LEAST

    def _update_multipliers(self, updated: Array, violation: Array, state: SolverState) -> None:
        """Update the multipliers of problems, and raise the penalty where the violation decreased too little."""
        slow = updated & (violation > state.violation_target)
        fast = updated & ~slow
        raised = np.where(slow, np.minimum(_PENALTIES[1] * self._penalty, _PENALTIES[2]), self._penalty)
        state.violation_target = np.where(
            fast, _PROGRESS * np.minimum(violation, state.violation_target), state.violation_target
        )
        state.inner_tolerance = np.where(fast, _PROGRESS**2 * state.inner_tolerance, state.inner_tolerance)
        self._trajectories.update_multipliers(updated, self._penalty / raised)
        self._penalty[...] = raised
        self._trajectories.set_penalty(self._penalty)
        state.gap_penalty[updated] = 0.0

    def _solution(self, b: int, state: SolverState) -> Solution:
        trajectories, problem, log = self._trajectories, self.problem, state.logs[b]
        contacts = problem.contacts
        forces = problem.models[0].forces(trajectories.q[b, :-1], trajectories.f[b, :-1]) if contacts else ()
        named = {contact.name: force for contact, force in zip(contacts, forces, strict=True)}
        done = bool(state.converged[b])
        message = f"converged in {len(log)} iterations" if done else self._failure(b, state)
        message = "; ".join([message, *trajectories.contact_remarks(b, named)])
        q, v, u = (array[b].copy() for array in (trajectories.q, trajectories.v, trajectories.u[:, :-1]))
        durations, gain = trajectories.durations, trajectories.riccati.gain[b, :-1, :, : trajectories.nx].copy()
        times, factors = durations.t[b].copy(), dict(zip(durations.names, durations.factors[b].tolist(), strict=True))
        cost = float(trajectories.true_costs()[b])
        return Solution(done, message, cost, times, q, v, u, named, gain, log, factors)

    def _failure(self, b: int, state: SolverState) -> str:
        trajectories, log = self._trajectories, state.logs[b]
        parts = [state.reason[b] or f"not converged after {len(log)} iterations"]
        gaps = np.abs(trajectories.gap[b]).max(axis=1)
        if gaps.max() > state.gap_tolerance:
            parts.append(f"the largest gap is {gaps.max():.2g} after node {gaps.argmax()}")
        if self._has_constraints:
            parts.append(trajectories.worst_constraint(b))
        return "; ".join(parts)


def solve(
    problem: Problem,
    *,
    q: Any = None,
    v: Any = None,
    u: Any = None,
    iterations: int = 100,
    tolerance: float = 1e-9,
    constraint_tolerance: float = 1e-4,
    second_order: bool = False,
) -> Solution:
    """Return the solution of a problem with one initial state.

    Args:
        problem: The problem.
        q, v, u: Guess, as in `Solver.set_guess`; by default the initial configuration at all nodes, and zero velocities
            after the first node and zero controls.
        iterations, tolerance, constraint_tolerance: As in `Solver.solve`. second_order: As in `Solver`.

    Raises:
        ArgumentError: The problem has several initial states: use `Solver`. Others as in `Solver.solve`.
    """
    solver = Solver(problem, second_order=second_order)
    if len(problem.q) != 1:
        raise ArgumentError(f"the problem has {len(problem.q)} starts; use Solver(problem).solve()")
    solver.set_guess(q, v, u)
    return solver.solve(iterations, tolerance=tolerance, constraint_tolerance=constraint_tolerance)[0]
