"""Speed of predictive control beside general solvers of quadratic and conic programs on the same problems."""

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.record import Record
from benchmarks.harness.subjects import Settings
from benchmarks.harness.timing import Spread, check_agreement
from controllers.locomotion import Plan, Problem
from legged.table import Table
from tests.oracles.predictive_problems import (
    OFFSETS,
    DenseForm,
    clarabel_solver,
    control_arguments,
    control_kernel,
    dense_form,
    random_problem,
)

PREDICTIVE = "predictive control"
COLD, WARM, CONES = "ours, first call", "ours, next call", "clarabel, cones"
QP_SOLVERS = ("clarabel", "daqp", "highs", "osqp", "piqp", "proxqp", "quadprog", "scs")
CALLS, TIME_LIMIT = 10_000, 5.0
"""Calls of each solver, and the time [s] after which a slower one ends."""
STEPS, CONTACTS, PROBLEMS = 10, 4, 50


def measure_predictive(record: Record, settings: Settings) -> list[Table]:
    """Add the times of single calls to the record, and return them as a table."""
    rng, gaits = np.random.default_rng(0), itertools.cycle(OFFSETS)
    problems = [random_problem(rng, next(gaits), CONTACTS, STEPS) for _ in range(PROBLEMS)]
    kernel, cold = control_kernel(STEPS, CONTACTS), [control_arguments(p, np.zeros((STEPS, 6))) for p in problems]
    plans = [Plan(*kernel(*own)) for own in cold]
    warm = [control_arguments(_later(rng, p), plan.costates) for p, plan in zip(problems, plans, strict=True)]
    forms = [dense_form(problem) for problem in problems]
    exact = [clarabel_solver(form) for form in forms]
    for plan, form, solve in zip(plans, forms, exact, strict=True):
        theirs = form.forces(solve(), plan.forces.shape)
        check_agreement("forces", plan.forces.reshape(1, -1), theirs.reshape(1, -1), 1e-2)
    workloads: dict[str, Sequence[Callable[[], Any]]] = {
        COLD: [lambda own=own: kernel(*own) for own in cold],
        WARM: [lambda own=own: kernel(*own) for own in warm],
        CONES: exact,
        **{f"{qp}, pyramids": [_pyramid_solver(form, qp) for form in forms] for qp in _installed_solvers()},
    }
    rows = []
    for name, calls in workloads.items():
        times, failures = _times(calls)
        spread = Spread(float(np.median(times)), float(np.min(times)), float(np.max(times)))
        record.add((PREDICTIVE, name), "us", spread)
        late = float(np.quantile(times, 0.99))
        numbers = f"{spread.median:.0f}", f"{late:.0f}", f"{spread.high:.0f}", str(len(times)), str(failures)
        rows.append((name, *numbers))
    notes = (
        f"Microseconds of processor time for a call from Python: {STEPS} steps, {CONTACTS} contact points,",
        f"{PROBLEMS} random problems of five gaits with velocities off by 0.15 sqrt(g l). Ours: exact cones and all",
        "work from the state to the forces; first calls start from the nominal forces, next calls from the last plan.",
        "Others: the condensed problem is given; `pyramids` has four faces within each cone, by qpsolvers.",
    )
    return [Table("Predictive control", ("solver", "median", "99 %", "worst", "calls", "failed"), tuple(rows), notes)]


def _later(rng: np.random.Generator, problem: Problem) -> Problem:
    """Return the problem with a state that differs as that of the next call at 500 Hz does."""
    return dataclasses.replace(
        problem,
        position=problem.position + 0.002 * problem.velocity,
        velocity=problem.velocity + 0.02 * rng.normal(size=3),
        orientation=problem.orientation + 0.002 * problem.angular_velocity,
        angular_velocity=problem.angular_velocity + 0.04 * rng.normal(size=3),
    )


def _installed_solvers() -> list[str]:
    """Return the names of the quadratic programming solvers of `QP_SOLVERS` that are installed."""
    try:
        import qpsolvers
    except ImportError:
        return []
    return [name for name in QP_SOLVERS if name in qpsolvers.available_solvers]


def _pyramid_solver(form: DenseForm, solver: str) -> Callable[[], Any]:
    """Return a function that solves the problem with pyramids, in forces relative to the weight of the body."""
    import qpsolvers

    A, bounds = form.pyramid_rows()
    H, g, bounds = form.H * form.unit**2, form.g * form.unit, bounds / form.unit
    dense = solver in qpsolvers.dense_solvers
    matrices = (H, g, A.toarray()) if dense else (_sparse(H), g, A)
    problem = qpsolvers.Problem(*matrices, bounds)

    def solve() -> Any:
        solution = qpsolvers.solve_problem(problem, solver=solver)
        if not solution.found:
            raise RuntimeError(f"{solver} found no solution")
        return solution.x

    return solve


def _sparse(H: np.ndarray) -> Any:
    import scipy.sparse

    return scipy.sparse.csc_matrix(H)


def _times(calls: Sequence[Callable[[], Any]]) -> tuple[list[float], int]:
    """Return the times of the successful calls, [us], and the number of failed ones."""
    times, failures, end = [], 0, time.process_time() + TIME_LIMIT
    for call in calls[:5]:  # programs that compile or import at the first call
        _succeeds(call)
    for call in itertools.islice(itertools.cycle(calls), CALLS):
        start = time.process_time()
        good = _succeeds(call)
        taken = time.process_time() - start
        if good:
            times.append(1e6 * taken)
        failures += not good
        if start > end:
            break
    return times or [np.nan], failures


def _succeeds(call: Callable[[], Any]) -> bool:
    try:
        call()
    except RuntimeError:
        return False
    return True
