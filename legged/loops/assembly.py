"""States that satisfy the loop constraints: Newton iteration for q, projection of v, and correction of drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from legged.arguments import number, whole
from legged.checked import checked
from legged.dynamics.arguments import read
from legged.elements import as_floats, has_elements, to_float
from legged.errors import LoopError, UnknownNameError
from legged.loops.closed_robot import ClosedRobot
from legged.loops.closing_joints import aligned_axes
from legged.loops.constraints import bias, jacobian, residual
from legged.loops.redundancy import loop_frame_poses, row_sizes, row_tolerances
from legged.loops.subsystems import constrained_acceleration
from legged.robot.configuration import integrate, random_configuration
from legged.spatial import Array

_REFINEMENTS = 8  # of solutions in numbers of other types than float64, each by 15 digits
_SMALLEST_FRACTION = 1e-3  # of a Newton step, at which the line search gives up
_LONGEST_STEP = 0.5  # of the Newton iteration, [rad] or [m]
_ROUNDING = 1e-8  # singular values below this count as zero in the last steps near a singular configuration
_TRIES = 50  # initial configurations of `closed_configuration`
_LONGEST_CORRECTION = 1e-2  # of these steps together, [rad] or [m]


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
    Rounding in the definition of the robot may leave a residual in directions that count as redundant, see `mobility`;
    up to their tolerance it is accepted, as in `consistent_velocity` and `legged.simulate`.

    Args:
        closed: The robot with its loops. q: Initial guess, (nq,).
        hold: Names of joints that keep their values of q. hold_base: Whether the base keeps its pose.
        tolerance: Largest residual accepted in independent directions, [m] or 1.
        iterations: Largest number of steps.

    Raises:
        LoopError: If none is found, or one in which an axis is reversed; `error.residual` is the residual.
    """
    number("tolerance", tolerance, least=0.0)
    whole("iterations", iterations, least=0)
    (q,) = read(closed.robot, q=q)
    free = _free_entries(closed, hold, hold_base)
    q, phi = _newton(closed, q, free, tolerance, iterations, np.inf, None)
    if np.abs(phi).max(initial=0.0) > tolerance:  # at a singular configuration, or rounding in redundant directions
        q, phi = _newton(closed, q, free, tolerance, iterations, _LONGEST_CORRECTION, _ROUNDING)
    error = to_float(np.abs(phi).max(initial=0.0))
    if not _is_closed(closed, q, phi, free, tolerance):
        loop = closed.loops[closed.constraints[int(np.abs(phi).argmax())][0]]
        raise LoopError(
            f"no configuration near the given one closes the loops of {closed.name!r}: constraint residual {error:.3g} "
            f"at joint {loop.name!r}; start nearer, hold fewer joints, or check the lengths of the links",
            error,
        )
    _refuse_reversed(closed, q)
    return q


def closed_configuration(closed: ClosedRobot, seed: int | None = None) -> tuple[Array, str]:
    """Return (a configuration with closed loops, (nq,), its description), found from zero or random configurations.

    Raises:
        LoopError: no such configuration is found.
    """
    rng = np.random.default_rng(0 if seed is None else seed)
    error: LoopError | None = None
    for k in range(_TRIES):
        from_zero = seed is None and k == 0
        start = closed.robot.neutral() if from_zero else random_configuration(closed.robot, rng)
        try:
            where = "zero" if from_zero else "a random configuration"
            return assemble(closed, start), f"loops closed, found from {where}"
        except LoopError as failure:
            error = failure
    raise LoopError(
        f"no configuration that closes the loops of {closed.name!r} was found from {_TRIES} starts; at last: {error}",
        error.residual if error is not None else 0.0,
    )


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
    v[free] += _least_norm(closed, J[:, free], -(J @ v))
    rate, size = to_float(np.abs(J @ v).max(initial=0.0)), max(1.0, to_float(np.abs(v).max(initial=0.0)))
    if not _satisfied(closed, J[:, free], J @ v, tolerance * size, size):
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
    vdot[free] += _least_norm(closed, J[:, free], c - J @ vdot)
    error, size = to_float(np.abs(J @ vdot - c).max(initial=0.0)), max(1.0, *map(to_float, (*np.abs(vdot), *np.abs(c))))
    if not _satisfied(closed, J[:, free], J @ vdot - c, tolerance * size, size):
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
    return constrained_acceleration(closed, q, np.zeros(closed.robot.nv, J.dtype), J, y)[0]


def _newton(
    closed: ClosedRobot, q: Array, free: list[int], tolerance: float, iterations: int, reach: float, rank: float | None
) -> tuple[Array, Array]:
    """Return (q, phi) after Newton steps until the residual is within the tolerance or falls no more.

    Args:
        reach: Largest sum of the steps, [rad] or [m]. rank: Singular values up to this count as zero, None for those of
            redundant directions.
    """
    rows = list(closed.holonomic)
    phi = residual(closed, q)
    for _ in range(iterations):
        if np.abs(phi).max(initial=0.0) <= tolerance:
            break
        J, step = jacobian(closed, q)[np.ix_(rows, free)], np.zeros(closed.robot.nv, dtype=q.dtype)
        if _satisfied(closed, J, phi[rows], tolerance, 1.0, rows):
            break
        step[free] = _least_norm(closed, J, -phi[rows], rows, rank)
        reach -= np.abs(step).max(initial=0.0)
        moved = _line_search(closed, q, step, phi) if reach > 0.0 else None
        if moved is None:
            break
        q, phi = moved
    return q, phi


def _directions(
    closed: ClosedRobot, J: Array, rows: Sequence[int] | None = None, rank: float | None = None
) -> tuple[Array, Array, Array, Array]:
    """Return (row sizes, U, singular values, V^T) of the independent directions of some rows of phi', dimensionless."""
    chosen = np.arange(len(J)) if rows is None else np.asarray(rows, int)
    sizes, smallest = row_sizes(closed)[chosen], row_tolerances(closed)[chosen].max(initial=0.0)
    U, s, Vt = np.linalg.svd((as_floats(J) if has_elements(J) else J) / sizes[:, None], full_matrices=False)
    kept = s > (smallest if rank is None else rank)
    return sizes, U[:, kept], s[kept], Vt[kept]


def _least_norm(
    closed: ClosedRobot, J: Array, y: Array, rows: Sequence[int] | None = None, rank: float | None = None
) -> Array:
    """Return x with J x = y in the independent directions, and the least norm; numbers of other types are refined."""
    sizes, U, s, Vt = _directions(closed, J, rows, rank)
    x = Vt.T @ ((U.T @ (y / sizes)) / s)
    for _ in range(_REFINEMENTS if has_elements(J) or has_elements(y) else 0):
        x = x + Vt.T @ ((U.T @ ((y - J @ x) / sizes)) / s)
    return x


def _independent_part(closed: ClosedRobot, J: Array, y: Array, rows: Sequence[int] | None = None) -> Array:
    """Return the part of y, (rows,), in the independent directions."""
    sizes, U, _, _ = _directions(closed, J, rows)
    return U @ (U.T @ (y / sizes)) * sizes


def rounding_allowance(closed: ClosedRobot) -> Array:
    """Return the residual that rounding of the robot's numbers may leave in redundant rows, (rows,), [m] or 1.

    Args:
        closed: The robot with its loops.
    """
    return row_tolerances(closed) * row_sizes(closed)


def _is_closed(closed: ClosedRobot, q: Array, phi: Array, free: list[int], tolerance: float) -> bool:
    """Return whether a residual is within the tolerance, and in redundant directions at least within rounding."""
    rows = list(closed.holonomic)
    return _satisfied(closed, jacobian(closed, q)[np.ix_(rows, free)], phi[rows], tolerance, 1.0, rows)


def _satisfied(
    closed: ClosedRobot, J: Array, error: Array, tolerance: float, size: float, rows: Sequence[int] | None = None
) -> bool:
    """Return whether errors of rows are within the tolerance, and in redundant directions at least within rounding.

    Args:
        J: Their Jacobian, of the free coordinates. size: Factor of the rounding that is allowed.
        rows: Positions of the rows in `closed.constraints`; None for all.
    """
    if np.abs(error).max(initial=0.0) <= tolerance:
        return True
    allowed = rounding_allowance(closed)[slice(None) if rows is None else list(rows)] * size
    part = _independent_part(closed, J, error, rows)
    return bool((np.abs(error) <= np.maximum(tolerance, allowed)).all() and np.abs(part).max() <= tolerance)


def _line_search(closed: ClosedRobot, q: Array, step: Array, phi: Array) -> tuple[Array, Array] | None:
    """Return (q, phi) after the largest fraction of a step that reduces the residual; None if there is none."""
    fraction = min(1.0, _LONGEST_STEP / max(to_float(np.abs(step).max(initial=0.0)), 1e-300))
    smallest = fraction * _SMALLEST_FRACTION
    while fraction >= smallest:
        q_next = integrate(closed.robot, q, fraction * step)
        phi_next = residual(closed, q_next)
        if phi_next @ phi_next < phi @ phi or _is_nearer(closed, q, phi, phi_next):
            return q_next, phi_next
        fraction *= 0.5
    return None


def _is_nearer(closed: ClosedRobot, q: Array, phi: Array, phi_next: Array) -> bool:
    """Return whether the residual falls in the independent directions at q and is within rounding in all rows.

    A residual that rounding in the robot's numbers leaves in redundant rows may rise by more than the others fall.
    """
    if np.any(np.abs(phi_next) > rounding_allowance(closed)):
        return False
    rows = list(closed.holonomic)
    J = jacobian(closed, q)[rows]
    before, after = (_independent_part(closed, J, x[rows], rows) for x in (phi, phi_next))
    return bool(after @ after < before @ before)


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
        P, C = loop_frame_poses(closed.robot, q, loop)
        for a, b in aligned_axes(loop.joint):
            if (P.rotation @ a) @ (C.rotation @ b) < 0.0:
                raise LoopError(
                    f"joint {loop.name!r} of {closed.name!r} closes with its axis {a} reversed; start nearer to the "
                    f"desired configuration",
                    0.0,
                )
