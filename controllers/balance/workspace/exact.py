"""Beyond algorithm 3: what feet add to the central body that stand exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from controllers.balance.workspace.dynamics import STAGE_3, Inward
from controllers.balance.workspace.feet import Foot
from controllers.balance.workspace.passes import Outward
from legged.compiler.ir.annotations import stage
from legged.dynamics.sweeps import inward
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored

GIVE = 1e-13  # compliance of a foot, over the robot's mass at 1 m: legs that cannot move in all ways do not divide by 0


def stand_exactly(robot: Robot, out: Outward, free: Inward, feet: Sequence[Foot], loads: Sequence[Any]) -> Inward:
    """Return the workspace dynamics of feet that do not accelerate at all, from those of feet in the air.

    A unit force on foot i comes to the central body as chi_i and moves foot j by Omega_ij while the central body is
    held. Feet that do not move, chi^T td + Omega lambda + beta = 0, press with lambda, so that

        P = P_free + chi Omega^-1 chi^T,      z = z_free + chi Omega^-1 beta

    Omega has a block for each limb. It is singular where a leg cannot move its foot in all its ways: P then grows
    without bound, up to the compliance `GIVE`.

    Args:
        robot: The robot. out: The outward pass. free: The inward pass without big bases.
        feet: Those that may stand. loads: 1 for each that does, 0 for one in the air.

    Source: The operational-space recursion of Kreutz-Delgado, Jain, Rodriguez 1992, for several feet.
    """
    with stage(STAGE_3):
        chi, Omega, beta = _felt(robot, out, free, feet)
        carries = np.array([load for foot, load in zip(feet, loads, strict=True) for _ in foot.rows])
        held = mirror(np.outer(carries, carries) * Omega) + np.diag(1.0 - carries + GIVE / robot.mass)
        factors = factor_symmetric(held)
        columns = np.array([carries * solve_factored(factors, carries * row) for row in chi]).T
        P = mirror(free.P + chi @ columns)
        return free._replace(P=P, z=free.z + columns.T @ (beta - chi.T @ (out.td[0] + out.gravity[0])))


def _felt(robot: Robot, out: Outward, free: Inward, feet: Sequence[Foot]) -> tuple[Array, Array, Array]:
    """Return (chi, Omega, beta) of all feet, (6, rows), (rows, rows), (rows,): beta at vdot of `free`."""
    bounds = np.cumsum([0, *(len(foot.rows) for foot in feet)])
    size = int(bounds[-1])
    waiting: dict[int, list[tuple[slice, Array]]] = {body.index: [] for body in robot.bodies}
    beta: list[Any] = []
    for foot, start, stop in zip(feet, bounds, bounds[1:], strict=False):
        waiting[foot.body].append((slice(int(start), int(stop)), foot.wrenches))
        beta += list(foot.wrenches.T @ out.rate_at(foot.body, foot.center))
    Omega = np.zeros((size, size), dtype=object)
    for body in inward(robot):
        if body.kind != "base":
            _across(body, out, free, waiting, Omega, beta)
    chi = np.zeros((6, size), dtype=object)
    for rows, columns in waiting[0]:
        chi[:, rows] = columns
    return _plain(chi), _plain(Omega), _plain(np.array(beta))


def _across(body: Body, out: Outward, free: Inward, waiting: dict, Omega: Array, beta: list[Any]) -> None:
    """Take the forces of feet outward of a joint across it: what they move there, and what is left of them."""
    k, parts = body.index, []
    for rows, columns in waiting[k]:
        y = body.P.T @ columns  # (nv of the joint, rows)
        eased = np.array([solve_factored(free.factors[k].I_hat, column) for column in y.T]).T
        parts.append((rows, y, eased))
        for i in range(rows.start, rows.stop):
            beta[i] = beta[i] + y[:, i - rows.start] @ free.phi[k]
        left = columns - free.factors[k].Psi @ y
        waiting[body.parent].append((rows, np.array([out.X[k].T @ column for column in left.T]).T))
    for rows, y, _ in parts:
        for others, _, eased in parts:
            Omega[rows, others] = Omega[rows, others] + y.T @ eased


def _plain(array: Array) -> Array:
    """Return an object array of plain numbers as one of floats."""
    return array.astype(float) if all(isinstance(x, (int, float)) for x in array.flat) else array
