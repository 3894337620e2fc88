"""The iterations of feasibility-driven differential dynamic programming.

The states of all nodes and the controls are the unknowns. The gap of a node is the state that it leads to minus the
state of the next node; a step of length alpha multiplies the gaps by 1 - alpha. Bounds of controls are met in each
backward pass, other constraints by a proximal augmented Lagrangian:

    mu / 2 |r + y|^2 for r = 0,     mu / 2 |min(r + y, 0)|^2 for r >= 0,     y <- r + y or min(r + y, 0)

with residuals r over their scale, penalty mu and multipliers y.

The merit function of the line search is the cost plus a penalty times the sum of the absolute values of all gaps.

Source: Mastalli and others 2020 and Tassa, Mansard, Todorov 2014, see `nodes` and `riccati`; Jallet and others 2025
(PROXDDP), section III; for the merit function and the least penalty of gaps Nocedal, Wright 2006, equation (18.36).
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np

from legged.optimization.model import LinearQuadraticModel
from legged.optimization.problem import Problem
from legged.optimization.riccati import Backward, parameter_step
from legged.optimization.solution import Iterations, Solution
from legged.spatial import Array

STEP_LENGTHS = 0.5 ** np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0])  # all are tried, one in each SIMD lane
_SUFFICIENT = 1e-4  # decrease of the merit function, relative to its slope
_ROUNDING = 1e-12  # of the merit function, relative
_LEAST, _FIRST, _LARGEST = 1e-9, 1e-6, 1e9  # regularization: least, least after an increase; above it iterations end
_SHORT, _MODERATE = 0.1, 1e-2  # shorter steps raise the regularization if it is below the second number
_PENALTIES = (10.0, 10.0, 1e7)  # of constraints: first, factor, largest
_PROGRESS = 0.1  # factor by which violations must decrease between updates of multipliers, or the penalty is raised
_BOUNDED_PASSES = 3  # backward passes with bounds and free durations; each uses the step of durations of the last one
_LOOSE_GAP = 1e-4  # largest gap at which multipliers are updated although the problem with fixed ones has not converged


class Tolerances(NamedTuple):
    """Largest number of iterations and tolerances of cost, gaps and constraints, as in `Solver.solve`."""

    iterations: int
    cost: float
    gap: float
    constraint: float


class FDDP:
    """The iterations of a problem from one initial state, in memory that the next initial state can use again.

    Attributes:
        memory: Arrays that define the present state of the iterations, name -> (1, ...): trajectory, multipliers,
            duration factors, regularization and penalty. `Solver` stores them for each initial state.
    """

    def __init__(self, problem: Problem, second_order: bool):
        """Compile the problem's functions and allocate memory.

        Args:
            problem: The problem. second_order: As in `Solver`.
        """
        self.problem, self._second_order = problem, second_order
        self.trajectories = trajectories = LinearQuadraticModel(problem, STEP_LENGTHS)
        self._has_constraints = any(constraints for constraints in trajectories.constraints)
        self._is_bounded = bool(np.isfinite([problem.lower, problem.upper]).any())
        self._regularization, self._penalty, self._was_stuck = *np.zeros((2, 1)), np.zeros(1, bool)
        with_multipliers = {f"inputs {k}": inputs["p"] for k, inputs in enumerate(trajectories.inputs)}
        self.memory = with_multipliers | {
            "q": trajectories.q,
            "v": trajectories.v,
            "u": trajectories.u,
            "factors": trajectories.durations.factors,
            "regularization": self._regularization,
            "was stuck": self._was_stuck,
            "penalty": self._penalty,
        }

    @staticmethod
    def restart(memory: dict[str, Array]) -> None:
        """Set regularization and penalty to those of the first iteration.

        Args:
            memory: Arrays as in `memory`, of any number of problems.
        """
        memory["regularization"][...], memory["was stuck"][...], memory["penalty"][...] = _LEAST, False, _PENALTIES[0]

    def solve(self, tolerances: Tolerances, start: float) -> Solution:
        """Improve the trajectory in memory, and return it.

        If the iterations converge with a regularization that has been raised, they go on once with the least one
        (`probed` below).

        Args:
            tolerances: When the iterations end. start: Time from which the log counts, `perf_counter()`, [s].
        """
        trajectories, self._log, self._gap_tolerance = self.trajectories, Iterations(), tolerances.gap
        self._gap_penalty, self._violation_target, self._inner_tolerance = 0.0, 0.1, 1e-3
        has_moved = has_probed = converged = False
        trajectories.durations.update()
        trajectories.set_penalty(self._penalty)
        trajectories.evaluate_motion()
        changed, reason, passes = True, "", 0
        while not (converged or reason or passes == tolerances.iterations):
            if changed:
                trajectories.evaluate_model(self._second_order)
            result = self._backward()
            if result.failed_node[0] >= 0 and self._second_order and changed:
                trajectories.hessian[...] = trajectories.gauss_newton
                result = self._backward()
            failed = bool(result.failed_node[0] >= 0)
            self._measure(result)
            violation = float(trajectories.violations()[0]) if self._has_constraints else 0.0
            expected, is_met = self._improvement / (1.0 + abs(self._cost)), violation <= tolerances.constraint
            inner = expected <= tolerances.cost and self._largest_gap <= tolerances.gap and not failed
            probed = inner and is_met and self._regularization[0] > _FIRST and not has_probed
            converged = inner and is_met and not probed
            loose = expected <= self._inner_tolerance and self._largest_gap <= _LOOSE_GAP and not failed
            updated = not is_met and (inner or (loose and has_moved))
            if updated:
                self._update_multipliers(violation)
            accepted = 0.0 if failed or updated or (inner and is_met) else self._search()
            if not failed:
                self._record(violation, accepted, perf_counter() - start)
            has_moved = not updated and (has_moved or accepted > 0.0)
            if updated:
                trajectories.evaluate_motion()
            is_held = updated or probed or converged
            reason = self._regularize(accepted, is_held, has_probed, int(result.failed_node[0]))
            if probed:
                self._regularization[0], has_probed = _LEAST, True
            passes += 1
            changed = accepted > 0.0 or updated
        if not converged:
            trajectories.evaluate_model()  # for messages
        return self._solution(converged, reason)

    def _record(self, violation: float, step: float, time: float) -> None:
        """Append an iteration to the log."""
        log = self._log
        log.cost.append(self._cost)
        log.gap.append(self._largest_gap)
        log.violation.append(violation)
        log.improvement.append(self._improvement)
        log.step.append(step)
        log.regularization.append(float(self._regularization[0]))
        log.time.append(time)

    def _measure(self, result: Backward) -> None:
        """Compute cost, gaps, the slope of the cost along the step, and its expected improvement."""
        trajectories = self.trajectories
        absolute = np.abs(trajectories.gap)
        self._cost, self._gap_sum, self._largest_gap = (
            float(x) for x in (trajectories.cost.sum(), absolute.sum(), absolute.max())
        )
        slope, curvature = result.slope, result.curvature
        has_gaps = self._largest_gap > self._gap_tolerance and result.failed_node[0] < 0
        if has_gaps or trajectories.durations.names:
            slope, curvature = trajectories.directional_derivatives()
        self._slope, change = float(slope[0]), float(slope[0] + 0.5 * curvature[0])
        if has_gaps:
            needed = (self._slope + 0.5 * max(float(curvature[0]), 0.0)) / (0.5 * self._gap_sum)
            self._gap_penalty = max(self._gap_penalty, needed)
        self._improvement = abs(change)

    def _backward(self) -> Backward:
        """Compute the step of controls and duration factors."""
        trajectories, problem, durations = self.trajectories, self.problem, self.trajectories.durations
        bounds = (problem.lower - trajectories.u, problem.upper - trajectories.u) if self._is_bounded else None
        limits = durations.lower - durations.factors, durations.upper - durations.factors
        step = np.zeros_like(durations.step)
        for _ in range(_BOUNDED_PASSES if self._is_bounded and durations.names else 1):
            result = trajectories.riccati.backward(self._regularization, bounds, step)
            if not durations.names or result.failed_node[0] >= 0:
                break
            step, result = parameter_step(result, len(durations.names), self._regularization, limits)
        durations.step[...] = step
        return result

    def _search(self) -> float:
        """Take the step length with the least merit among those with sufficient decrease; return it, 0 for none."""
        trajectories, gaps = self.trajectories, self._gap_penalty * self._gap_sum
        merit, descent = self._cost + gaps, min(self._slope - gaps, 0.0)
        trial = trajectories.rollout() + gaps * (1.0 - STEP_LENGTHS)
        fits = trial <= merit + _SUFFICIENT * STEP_LENGTHS * descent + _ROUNDING * abs(merit)
        if not fits.any():
            return 0.0
        best = int(np.where(fits, trial, np.inf).argmin())
        trajectories.accept(best)
        return float(STEP_LENGTHS[best])

    def _regularize(self, accepted: float, is_held: bool, has_probed: bool, failed_node: int) -> str:
        """Raise the regularization after a short step or none, lower it after a long one.

        Args:
            accepted: Length of the step, 0 for none. is_held: Whether no step was tried for another reason than a
                failed backward pass. has_probed: See `solve`.
            failed_node: Node at which the backward pass has failed, or -1.

        Returns:
            The reason why the iterations end, if the regularization exceeds the largest one; otherwise "".
        """
        value, failed, stuck = float(self._regularization[0]), failed_node >= 0, accepted == 0.0 and not is_held
        if not self._has_constraints:  # steps between the kinks of their penalties are short with any regularization
            stuck |= accepted < _SHORT and value < _MODERATE and not has_probed and not is_held
        if stuck:
            value = max(10.0 * value, _FIRST)
        elif accepted > 0.4 and not self._was_stuck[0]:  # the smaller regularization has not just failed
            value = max(0.1 * value, _LEAST)
        if not failed:
            self._was_stuck[0] = stuck
        self._regularization[0] = value if value <= _LARGEST else _LEAST
        if value <= _LARGEST:
            return ""
        indefinite = f"the Hessian of the controls of node {failed_node} is not positive definite"
        return indefinite if failed else "no step decreases the cost"

    def _update_multipliers(self, violation: float) -> None:
        """Update the multipliers, and raise the penalty where the violation decreased too little."""
        old = self._penalty.copy()
        if violation > self._violation_target:
            self._penalty[0] = min(_PENALTIES[1] * old[0], _PENALTIES[2])
        else:
            self._violation_target = _PROGRESS * min(violation, self._violation_target)
            self._inner_tolerance *= _PROGRESS**2
        self.trajectories.update_multipliers(old / self._penalty)
        self.trajectories.set_penalty(self._penalty)
        self._gap_penalty = 0.0

    def _solution(self, converged: bool, reason: str) -> Solution:
        trajectories, problem, log = self.trajectories, self.problem, self._log
        contacts = problem.contacts
        forces = problem.models[0].forces(trajectories.q[0, :-1], trajectories.f[0, :-1]) if contacts else ()
        named = {contact.name: force for contact, force in zip(contacts, forces, strict=True)}
        message = f"converged in {len(log)} iterations" if converged else self._failure(reason)
        message = "; ".join([message, *trajectories.contact_remarks(0, named)])
        q, v, u = (array[0].copy() for array in (trajectories.q, trajectories.v, trajectories.u[:, :-1]))
        durations, gain = trajectories.durations, trajectories.riccati.gain[0, :-1, :, : trajectories.nx].copy()
        times, factors = durations.t[0].copy(), dict(zip(durations.names, durations.factors[0].tolist(), strict=True))
        cost = float(trajectories.true_costs()[0])
        return Solution(converged, message, cost, times, q, v, u, named, gain, log, factors)

    def _failure(self, reason: str) -> str:
        trajectories, parts = self.trajectories, [reason or f"not converged after {len(self._log)} iterations"]
        gaps = np.abs(trajectories.gap[0]).max(axis=1)
        if gaps.max() > self._gap_tolerance:
            parts.append(f"the largest gap is {gaps.max():.2g} after node {gaps.argmax()}")
        if self._has_constraints:
            parts.append(trajectories.worst_constraint(0))
        return "; ".join(parts)
