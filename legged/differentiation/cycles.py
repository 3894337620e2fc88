"""Limit cycles of closed loops on rigid ground: Floquet multipliers, and linear-quadratic regulators about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from legged.arguments import Numbers, number, real_array
from legged.checked import checked
from legged.differentiation.rollout import DifferentiableRollout
from legged.errors import ArgumentError, ShapeError, SingularError
from legged.spatial import Array


class LimitCycle(NamedTuple):
    """The linear model of deviations from a periodic motion.

    Attributes:
        monodromy: Derivative of the deviation after a period with respect to that before it, (nx, nx), mixed units;
            see `DifferentiableSimulation` for deviations.
        multipliers: Its eigenvalues, the Floquet multipliers, by decreasing magnitude, (nx,), dimensionless.
        A, B: Jacobians of the steps, (T, nx, nx) and (T, nx, nu), mixed units.
        change: Largest magnitude of the differences of velocities after and before the period, mixed units.
    """

    monodromy: Array
    multipliers: Array
    A: Array
    B: Array
    change: float


class PeriodicRegulator(NamedTuple):
    """A linear-quadratic regulator about a periodic motion: du = -K dx in each step.

    Attributes:
        gains: K, (T, nu, nx), mixed units.
        costs: P, (T, nx, nx), mixed units: the least cost of a deviation dx before a step is dx . P dx.
        multipliers: Floquet multipliers with the gains, by decreasing magnitude, (nx,), dimensionless.
    """

    gains: Array
    costs: Array
    multipliers: Array


@checked
def limit_cycle(run: DifferentiableRollout, tolerance: float = 1e-3) -> LimitCycle:
    """Return the Floquet multipliers of a periodic motion: the eigenvalues of the product of its steps' Jacobians.

    A motion that repeats itself at another place and heading is periodic too, since the deviations of a floating base
    are in its axes: the multipliers of changes of place and heading are then one. The multipliers of memories and
    contact forces on which the next step does not depend are zero.

    Args:
        run: One period of the closed loop. With `impact_times=True` its multipliers are those of continuous time.
        tolerance: Largest admissible difference of velocities after and before the period, mixed units.

    Raises:
        ArgumentError: The run has several members, or is not periodic.
        LeggedError: With `impact_times=True`, see `DifferentiableRollout.impacts`.
    """
    if run.states.ndim != 2:
        raise ArgumentError("a limit cycle is the motion of one member; take a run without a batch")
    change = float(np.abs(run.v[-1] - run.v[0]).max(initial=0.0))
    if change > number("tolerance", tolerance, above=0):
        raise ArgumentError(
            f"the motion is not periodic: a velocity after it differs by {change:.3g} from that before it, more than "
            f"{tolerance:g}; let the gait settle first, or adjust the start or the period"
        )
    A, B, _ = run.jacobians()
    monodromy = _product(A)
    return LimitCycle(monodromy, _multipliers(monodromy), A, B, change)


@checked
def periodic_lqr(cycle: LimitCycle, Q: Numbers, R: Numbers, periods: int = 1000) -> PeriodicRegulator:
    """Return the gains that minimize the sum of dx . Q dx + du . R du over all steps of all later periods.

    The recursion of the Riccati equation runs backward in time until a period changes its solution by less than 1e-10
    of its largest entry.

    Args:
        cycle: The limit cycle.
        Q: Weights of deviations, (nx, nx), mixed units, positive semidefinite.
        R: Weights of changes of the commands, (nu, nu), mixed units, positive definite.
        periods: Largest number of periods of the recursion.

    Raises:
        ShapeError: A weight has another shape.
        SingularError: The recursion does not converge, for example if no command changes a deviation with a weight.

    Source: Bittanti, Colaneri, "Periodic Systems", Springer, 2009, the periodic Riccati equation.
    """
    nx, nu = cycle.B.shape[1:]
    Q, R = real_array("Q", Q), real_array("R", R)
    if Q.shape != (nx, nx) or R.shape != (nu, nu):
        raise ShapeError(f"Q must be ({nx}, {nx}) and R ({nu}, {nu}), got shapes {Q.shape} and {R.shape}")
    P = np.array(Q, float)
    for _ in range(periods):
        before = P
        P = list(_riccati(cycle, Q, R, P))[-1][1]
        if np.abs(P - before).max() <= 1e-10 * np.abs(P).max(initial=1e-300):
            break
    else:
        raise SingularError(
            f"the periodic Riccati equation has no solution after {periods} periods: does a command change each "
            f"deviation that has a weight?"
        )
    steps = list(_riccati(cycle, Q, R, P))[::-1]
    gains, costs, closed = (np.stack(part) for part in zip(*steps, strict=True))
    return PeriodicRegulator(gains, costs, _multipliers(_product(closed)))


def _riccati(cycle: LimitCycle, Q: Array, R: Array, P: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield gains, costs and closed-loop Jacobians of the steps of a period, from the last to the first."""
    for A, B in zip(cycle.A[::-1], cycle.B[::-1], strict=True):
        K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        closed = A - B @ K
        P = Q + A.T @ P @ closed
        P = 0.5 * (P + P.T)
        yield K, P, closed


def _product(A: Array) -> Array:
    """Return the Jacobian of a period from those of its steps, (T, nx, nx)."""
    total = np.eye(A.shape[-1])
    for step in A:
        total = step @ total
    return total


def _multipliers(monodromy: Array) -> Array:
    """Return the eigenvalues of a matrix, (nx, nx), by decreasing magnitude."""
    values = np.linalg.eigvals(monodromy)
    return values[np.argsort(-np.abs(values), kind="stable")]
