"""Solutions of optimal control problems for one or several initial states.

Several initial states are distributed over threads. Each thread solves one problem after the other in the same memory,
so that their linear-quadratic models stay in the cache of the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from legged.arguments import array, number, whole
from legged.checked import checked, reads_arguments
from legged.compiler import Counts, default_threads, thread_limit
from legged.errors import ArgumentError, ShapeError
from legged.optimization.fddp import FDDP, Tolerances
from legged.optimization.problem import Problem, Stage
from legged.optimization.solution import Solution
from legged.robot.base import FloatingBase


@checked
class Solver:
    """A solver of a problem; it stores its trajectories and starts the next solution from them.

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
        self._iterations = [FDDP(problem, second_order) for _ in range(min(count, default_threads()))]
        self._stored = {name: np.repeat(array, count, axis=0) for name, array in self._iterations[0].memory.items()}
        self._stored["q"][...] = problem.q[:, None]
        FDDP.restart(self._stored)

    @reads_arguments
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
            if name == "q" and isinstance(self.problem.tree.base, FloatingBase):
                norms = np.abs(np.linalg.norm(given[..., :4], axis=-1) - 1.0)
                if norms.max() > 1e-6:
                    raise ShapeError("the guess of q must hold unit quaternions of the base")
        for name, given in guess.items():  # after all of them have been accepted
            arrays[name][...] = given
        stored["q"][:, 0], stored["v"][:, 0] = self.problem.q, self.problem.v

    def counts(self) -> dict[str, Counts]:
        """Return name -> scalar operations of one iteration of one initial state, of all its nodes.

        They are those of an iteration with the Gauss-Newton Hessian in which no control exceeds its bounds; the line
        search tries all step lengths at once. Of matrix products and Cholesky factors the operations of their formulas
        are counted, without those on padding. An iteration without gaps and free durations leaves out the expected
        change along the step.
        """
        return self._iterations[0].trajectories.counts()

    @reads_arguments
    def shift(self, count: int = 1) -> None:
        """Move the trajectory towards the start by some nodes and repeat its last one, for a receding horizon.

        Set the new initial state with `problem.set_start` afterwards. Contacts and terms of the nodes do not move:
        use it for problems whose nodes are equal.

        Args:
            count: Number of nodes, at least 1.
        """
        whole("count", count, least=1, most=len(self.problem.nodes))
        for states in (self._stored["q"], self._stored["v"]):
            states[:, :-count] = states[:, count:].copy()
        u = self._stored["u"][:, :-1]
        u[:, :-count] = u[:, count:].copy()
        if count < len(self.problem.nodes):
            u[:, -count:] = u[:, -count - 1 : -count]

    @reads_arguments
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
        for iterations in self._iterations:
            iterations.trajectories.refresh_inputs()
        for k, inputs in enumerate(self._iterations[0].trajectories.inputs):
            self._stored[f"inputs {k}"][...] = inputs["p"]
        FDDP.restart(self._stored)

    @reads_arguments
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
            ArgumentError: A tolerance is negative.
            NotFiniteError: A term or the dynamics of a node have no finite value at the guess; the message names it.
        """
        whole("iterations", iterations, least=1)
        for name, value in (
            ("tolerance", tolerance), ("gap_tolerance", gap_tolerance), ("constraint_tolerance", constraint_tolerance),
        ):  # fmt: skip
            number(name, value, least=0.0)
        problem, stored, start = self.problem, self._stored, perf_counter()
        stored["q"][:, 0], stored["v"][:, 0] = problem.q, problem.v
        if np.isfinite([problem.lower, problem.upper]).any():
            stored["u"][:, :-1] = np.clip(stored["u"][:, :-1], problem.lower, problem.upper)
        tolerances = Tolerances(iterations, tolerance, gap_tolerance, constraint_tolerance)
        solutions, waiting, lock = dict[int, Solution](), list(range(len(problem.q)))[::-1], Lock()
        workers = self._iterations[: default_threads()]
        threads = max(default_threads() // len(workers), 1)

        def take() -> int:
            with lock:
                return waiting.pop() if waiting else -1

        def run(worker: FDDP) -> None:
            with thread_limit(threads):
                while (b := take()) >= 0:
                    for name, place in worker.memory.items():
                        place[0] = stored[name][b]
                    solutions[b] = worker.solve(tolerances, start)
                    for name, place in worker.memory.items():
                        stored[name][b] = place[0]

        if len(workers) == 1:
            run(*workers)
        else:
            with ThreadPoolExecutor(len(workers)) as pool:
                try:
                    list(pool.map(run, workers))
                finally:
                    waiting.clear()  # after an error or an interrupt
        return [solutions[b] for b in range(len(problem.q))]


@checked
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
