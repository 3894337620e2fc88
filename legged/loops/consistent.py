"""States that fit the loops: found by Newton's iteration, and brought back to when an integration has drifted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.dynamics.arguments import read
from legged.errors import LoopError, UnknownNameError
from legged.loops.closing import guards_of
from legged.loops.constraints import ends, jacobian, residual
from legged.loops.dynamics import mass_inverse
from legged.loops.loop import ClosedRobot
from legged.loops.rank import factor_dependent
from legged.robot.configuration import integrate
from legged.spatial import Array, mirror, solve_factored

_SMALLEST = 1e-3  # of a Newton step: shorter ones lead nowhere
_NONE = 1e-8  # singular values below this, relative to the largest, are taken for none
_LONGEST = 0.5  # of a Newton step, [rad] or [m]


def assemble(
    closed: ClosedRobot,
    q: Array,
    *,
    hold: Sequence[str] = (),
    hold_base: bool = False,
    tolerance: float = 1e-12,
    iterations: int = 100,
) -> Array:
    """Return a configuration near q in which the loops are closed, (nq,), by Newton's iteration.

    Each step is the shortest that closes the loops to first order, halved until it brings them closer.

    Args:
        closed: The robot with its loops. q: Where to start, (nq,).
        hold: Names of joints that keep their values of q. hold_base: Whether the base keeps its pose.
        tolerance: Largest row of phi allowed, [m] or 1. iterations: Largest number of steps.

    Raises:
        LoopError: if none is found, or one in which an axis points the wrong way; `error.residual` is what is left.
    """
    (q,) = read(closed.robot, q=q)
    free = _free(closed, hold, hold_base)
    rows = list(closed.holonomic)
    phi = residual(closed, q)
    for _ in range(iterations):
        if np.abs(phi).max(initial=0.0) <= tolerance:
            break
        step = np.zeros(closed.robot.nv)
        step[free] = _shortest(jacobian(closed, q)[np.ix_(rows, free)], -phi[rows])
        moved = _damped(closed, q, step, phi)
        if moved is None:
            break
        q, phi = moved
    worst = float(np.abs(phi).max(initial=0.0))
    if not worst <= tolerance:
        raise LoopError(_open(closed, phi, worst), worst)
    _refuse_reversed(closed, q)
    return q


def consistent_velocity(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    *,
    hold: Sequence[str] = (),
    hold_base: bool = False,
    tolerance: float = 1e-9,
) -> Array:
    """Return the velocity next to v, (nv,), that keeps the loops closed: phi' v = 0.

    Args:
        closed, hold, hold_base: As in `assemble`. q: Where the loops are closed, (nq,). v: (nv,).
        tolerance: Largest rate of a row allowed, relative to the largest entry of v and 1.

    Raises:
        LoopError: if the joints held cannot all move so; `error.residual` is the rate that is left.
    """
    q, v = read(closed.robot, q=q, v=v)
    free, J = _free(closed, hold, hold_base), jacobian(closed, q)
    v = v.copy()
    v[free] += _shortest(J[:, free], -(J @ v))
    left = float(np.abs(J @ v).max(initial=0.0))
    if left > tolerance * max(1.0, np.abs(v).max(initial=0.0)):
        held = f" with {', '.join(hold)} held" if hold else ""
        raise LoopError(
            f"no velocity keeps the loops of {closed.name!r} closed{held}: a row's rate of {left:.3g} is left; hold "
            f"fewer joints",
            left,
        )
    return v


def projected(closed: ClosedRobot, q: Array, v: Array, iterations: int = 2) -> tuple[Array, Array]:
    """Return (q, v) brought back onto the loops from nearby, over any element.

        q <- q - M^-1 phi'^T (phi' M^-1 phi'^T)^-1 phi,      then the same for v with phi' v

    It is the step that moves the least mass: the velocities are those after an impact of the closing joints, which
    takes energy but gives none.

    Args:
        closed: The robot; of superfluous rows the later ones are left out, see `ordered`. q: (nq,). v: (nv,).
        iterations: Newton steps for q; each squares the error.
    """
    robot, rows = closed.robot, list(closed.holonomic)
    leading = None if closed.leading is None else sum(i < closed.leading for i in rows)
    for _ in range(iterations if rows else 0):
        step = _least_mass(closed, q, jacobian(closed, q)[rows], residual(closed, q)[rows], leading)
        q = integrate(robot, q, -step)
    J = jacobian(closed, q)
    return q, v - _least_mass(closed, q, J, J @ v, closed.leading) if len(J) else v


def _least_mass(closed: ClosedRobot, q: Array, J: Array, y: Array, leading: int | None) -> Array:
    """Return x with J x = y and the least x^T M x, (nv,)."""
    inverse = mass_inverse(closed.robot, q)
    responses = np.array([inverse(row) for row in J])
    return responses.T @ solve_factored(factor_dependent(mirror(J @ responses.T), leading), y)


def _shortest(J: Array, y: Array) -> Array:
    return np.linalg.pinv(J, rcond=_NONE) @ y


def _damped(closed: ClosedRobot, q: Array, step: Array, phi: Array) -> tuple[Array, Array] | None:
    """Return (q, phi) after as much of a step as brings the loops closer; None if nothing does."""
    part = min(1.0, _LONGEST / max(np.abs(step).max(initial=0.0), 1e-300))
    shortest = part * _SMALLEST
    while part >= shortest:
        there = integrate(closed.robot, q, part * step)
        left = residual(closed, there)
        if left @ left < phi @ phi:
            return there, left
        part *= 0.5
    return None


def _free(closed: ClosedRobot, hold: Sequence[str], hold_base: bool) -> list[int]:
    robot = closed.robot
    held: set[int] = set(range(robot.base.nv)) if hold_base else set()
    if isinstance(hold, str):
        raise UnknownNameError("list of joints", hold, (joint.name for joint in robot.joints))
    for name in hold:
        at = robot.joint(name).v
        held |= set(range(at.start, at.stop))
    return [i for i in range(robot.nv) if i not in held]


def _open(closed: ClosedRobot, phi: Array, worst: float) -> str:
    loop = closed.loops[closed.demands[int(np.abs(phi).argmax())][0]]
    return (
        f"no configuration near the given one closes the loops of {closed.name!r}: {worst:.3g} is left at joint "
        f"{loop.name!r}; start nearer, hold fewer joints, or check the lengths of the links"
    )


def _refuse_reversed(closed: ClosedRobot, q: Any) -> None:
    for loop in closed.loops:
        P, C = ends(closed, q, loop)
        for a, b in guards_of(loop.joint):
            if (P.rotation @ a) @ (C.rotation @ b) < 0.0:
                raise LoopError(
                    f"joint {loop.name!r} of {closed.name!r} closes with its axis {a} reversed; start nearer to the "
                    f"configuration wanted",
                    0.0,
                )
