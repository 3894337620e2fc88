"""States that satisfy the loop constraints: Newton iteration for q, projection of v, and correction of drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from legged.algorithms.linear_algebra import RANK_TOLERANCE, independent_row_numbers
from legged.arguments import number, whole
from legged.checked import checked
from legged.dynamics.arguments import read
from legged.elements import has_elements, to_float
from legged.errors import LoopError, UnknownNameError
from legged.loops.closed_robot import ClosedRobot
from legged.loops.closing_joints import aligned_axes
from legged.loops.constraints import bias, frame_poses, jacobian, residual
from legged.loops.subsystems import constrained_acceleration
from legged.robot.configuration import integrate
from legged.spatial import Array, mirror, solve_symmetric

_SMALLEST_FRACTION = 1e-3  # of a Newton step, at which the line search gives up
_LONGEST_STEP = 0.5  # of the Newton iteration, [rad] or [m]


@checked
def assemble(
    closed: ClosedRobot,
    q: Array,
    *,
    hold: Sequence[str] = (),
    hold_base: bool = False,
    tolerance: float = 1e-12,
    iterations: int = 100,
) -> Array:
    """Return a configuration near q that satisfies the loop constraints, (nq,), by Newton iteration.

    Each step is the one of least norm that satisfies the linearized constraints, halved until the residual falls.

    Args:
        closed: The robot with its loops. q: Initial guess, (nq,).
        hold: Names of joints that keep their values of q. hold_base: Whether the base keeps its pose.
        tolerance: Largest residual accepted, [m] or 1. iterations: Largest number of steps.

    Raises:
        LoopError: If none is found, or one in which an axis is reversed; `error.residual` is the residual.
    """
    number("tolerance", tolerance, least=0.0)
    whole("iterations", iterations, least=0)
    (q,) = read(closed.robot, q=q)
    free = _free_entries(closed, hold, hold_base)
    rows = list(closed.holonomic)
    phi = residual(closed, q)
    for _ in range(iterations):
        if np.abs(phi).max(initial=0.0) <= tolerance:
            break
        step = np.zeros(closed.robot.nv, dtype=q.dtype)
        step[free] = _least_norm(jacobian(closed, q)[np.ix_(rows, free)], -phi[rows])
        moved = _line_search(closed, q, step, phi)
        if moved is None:
            break
        q, phi = moved
    error = to_float(np.abs(phi).max(initial=0.0))
    if not error <= tolerance:
        loop = closed.loops[closed.constraints[int(np.abs(phi).argmax())][0]]
        raise LoopError(
            f"no configuration near the given one closes the loops of {closed.name!r}: constraint residual {error:.3g} "
            f"at joint {loop.name!r}; start nearer, hold fewer joints, or check the lengths of the links",
            error,
        )
    _refuse_reversed(closed, q)
    return q


@checked
def consistent_velocity(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    *,
    hold: Sequence[str] = (),
    hold_base: bool = False,
    tolerance: float = 1e-9,
) -> Array:
    """Return the velocity nearest to v that satisfies the loop constraints phi' v = 0, (nv,).

    Args:
        closed, hold, hold_base: As in `assemble`. q: Configuration with closed loops, (nq,). v: Velocity, (nv,).
        tolerance: Largest constraint rate accepted, relative to the largest entry of v and to 1.

    Raises:
        LoopError: If the velocities of the joints in `hold` are incompatible; `error.residual` is the constraint rate.
    """
    number("tolerance", tolerance, least=0.0)
    q, v = read(closed.robot, q=q, v=v)
    free, J = _free_entries(closed, hold, hold_base), jacobian(closed, q)
    v = v.copy()
    v[free] += _least_norm(J[:, free], -(J @ v))
    rate = to_float(np.abs(J @ v).max(initial=0.0))
    if rate > tolerance * max(1.0, np.abs(v).max(initial=0.0)):
        held = f" with {', '.join(hold)} held" if hold else ""
        raise LoopError(
            f"no velocity keeps the loops of {closed.name!r} closed{held}: constraint rate {rate:.3g}; hold fewer "
            f"joints",
            rate,
        )
    return v


@checked
def consistent_acceleration(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    vdot: Array,
    *,
    hold: Sequence[str] = (),
    hold_base: bool = False,
    tolerance: float = 1e-9,
) -> Array:
    """Return the acceleration nearest to vdot that keeps the loops closed, phi' vdot + phi'_dot v = 0, (nv,).

    Args:
        closed, hold, hold_base: As in `assemble`. q: Configuration with closed loops, (nq,).
        v: Velocity that satisfies the loops, (nv,). vdot: Acceleration, (nv,).
        tolerance: Largest constraint acceleration accepted, relative to the largest entry of vdot, of the terms of v,
            and to 1.

    Raises:
        LoopError: If the accelerations of the joints in `hold` are incompatible; `error.residual` is the constraint
            acceleration.
    """
    number("tolerance", tolerance, least=0.0)
    q, v, vdot = read(closed.robot, q=q, v=v, vdot=vdot)
    free, J, c = _free_entries(closed, hold, hold_base), jacobian(closed, q), -bias(closed, q, v)
    vdot = vdot.copy()
    vdot[free] += _least_norm(J[:, free], c - J @ vdot)
    error = float(np.abs(J @ vdot - c).max(initial=0.0))
    if error > tolerance * max(1.0, np.abs(vdot).max(initial=0.0), np.abs(c).max(initial=0.0)):
        held = f" with {', '.join(hold)} held" if hold else ""
        raise LoopError(
            f"no acceleration keeps the loops of {closed.name!r} closed{held}: constraint acceleration {error:.3g}; "
            f"hold fewer joints",
            error,
        )
    return vdot


@checked
def project_state(closed: ClosedRobot, q: Array, v: Array, iterations: int = 2) -> tuple[Array, Array]:
    """Return (q, v), (nq,) and (nv,), projected onto the loop constraints from nearby, over any element.

        q <- q - M^-1 phi'^T (phi' M^-1 phi'^T)^-1 phi,      then the same for v with phi' v

    The correction is the smallest in the metric of the inertia matrix. The velocity is that after an impact of the
    closing joints, which never increases the kinetic energy.

    Args:
        closed: The robot; of redundant rows the later ones are omitted, see `independent_first`.
        q: Configuration, (nq,). v: Velocity, (nv,).
        iterations: Newton steps for q; each squares the error.
    """
    whole("iterations", iterations, least=0, most=100)
    robot, rows = closed.robot, list(closed.holonomic)
    q, v = read(robot, q=q, v=v)
    count = closed.independent_count
    holonomic_count = None if count is None else sum(i < count for i in rows)
    holonomic = replace(closed, rows=tuple(closed.rows[i] for i in rows), independent_count=holonomic_count)
    for _ in range(iterations if rows else 0):
        q = integrate(robot, q, -_least_energy(holonomic, q, jacobian(holonomic, q), residual(holonomic, q)))
    J = jacobian(closed, q)
    return q, v - _least_energy(closed, q, J, J @ v) if len(J) else v


def _least_energy(closed: ClosedRobot, q: Array, J: Array, y: Array) -> Array:
    """Return x with J x = y and the least x^T M x, (nv,): the velocity after the impulses of the loops."""
    return constrained_acceleration(closed, q, np.zeros(closed.robot.nv, J.dtype), J, y, by_pivots=True)[0]


def _least_norm(J: Array, y: Array) -> Array:
    """Return x with J x = y and the least norm, (nv,)."""
    if has_elements(J) or has_elements(y):
        rows = independent_row_numbers(J)
        return J[rows].T @ solve_symmetric(mirror(J[rows] @ J[rows].T), y[rows])
    return np.linalg.pinv(J, rcond=RANK_TOLERANCE) @ y


def _line_search(closed: ClosedRobot, q: Array, step: Array, phi: Array) -> tuple[Array, Array] | None:
    """Return (q, phi) after the largest fraction of a step that reduces the residual; None if there is none."""
    fraction = min(1.0, _LONGEST_STEP / max(to_float(np.abs(step).max(initial=0.0)), 1e-300))
    smallest = fraction * _SMALLEST_FRACTION
    while fraction >= smallest:
        q_next = integrate(closed.robot, q, fraction * step)
        phi_next = residual(closed, q_next)
        if phi_next @ phi_next < phi @ phi:
            return q_next, phi_next
        fraction *= 0.5
    return None


def _free_entries(closed: ClosedRobot, hold: Sequence[str], hold_base: bool) -> list[int]:
    """Return the entries of v that may change."""
    robot = closed.robot
    held: set[int] = set(range(robot.base.nv)) if hold_base else set()
    if isinstance(hold, str):
        raise UnknownNameError("list of joints", hold, (joint.name for joint in robot.joints))
    for name in hold:
        entries = robot.joint(name).v
        held |= set(range(entries.start, entries.stop))
    return [i for i in range(robot.nv) if i not in held]


def _refuse_reversed(closed: ClosedRobot, q: Array) -> None:
    for loop in closed.loops:
        P, C = frame_poses(closed, q, loop)
        for a, b in aligned_axes(loop.joint):
            if (P.rotation @ a) @ (C.rotation @ b) < 0.0:
                raise LoopError(
                    f"joint {loop.name!r} of {closed.name!r} closes with its axis {a} reversed; start nearer to the "
                    f"desired configuration",
                    0.0,
                )
