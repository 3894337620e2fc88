"""Forward dynamics of robots with closed loops, in the three ways of Featherstone and Orin, section 3.4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.operators import SpatialOperators
from legged.compiler.ir.annotations import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.errors import DefinitionError, UnknownNameError
from legged.loops.closing import drive_of
from legged.loops.constraints import bias, ends, frames_jacobian, jacobian, residual
from legged.loops.loop import ClosedRobot
from legged.loops.rank import Independent, factor_dependent, independent_rows, null_space
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, solve_symmetric


class Solution(NamedTuple):
    """What `solve` found.

    Attributes:
        vdot: Accelerations of the tree, (nv,).
        multipliers: lambda, (rows,): of the loops' forces phi'^T lambda, the shortest where rows depend on each other.
        rank: Of phi': how many rows are independent here.
        unmet: The largest acceleration that no motion can give: rounding, or a state where rows lose rank and demand
            what cannot be.
    """

    vdot: Array
    multipliers: Array
    rank: int
    unmet: float


@dataclass(frozen=True)
class Stabilization:
    """Baumgarte's: phi_ddot + (2/T) phi_dot + phi / T^2 = 0, so that errors die out, critically damped.

    Attributes:
        time_constant: T, [s]; several steps of the integrator.
    """

    time_constant: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.time_constant) and self.time_constant > 0.0):
            raise DefinitionError(f"a time constant must be longer than 0 s, got {self.time_constant}")


def demanded(closed: ClosedRobot, q: Array, v: Array, stabilization: Stabilization | None = None) -> Array:
    """Return c, (rows,), with phi' vdot = c: the right side of equation (18), stabilized if wished."""
    c = -bias(closed, q, v)
    if stabilization is not None:
        rate = 1.0 / stabilization.time_constant
        c = c - 2.0 * rate * (jacobian(closed, q) @ v) - rate * rate * residual(closed, q)
    return c


def active_forces(closed: ClosedRobot, q: Array, forces: Mapping[str, Any]) -> Array:
    """Return tau_a, (nv,): what motors in the closing joints bring to the tree; equation (19).

    Args:
        closed: The robot. q: Configuration, (nq,).
        forces: Name of a hinge or slide that closes a loop -> its torque or force, [N m] or [N], positive if it moves
            the child forwards.
    """
    tau = np.zeros(closed.robot.nv)
    for name, force in forces.items():
        loop = closed.loop(name)
        row = drive_of(loop.joint).row(*ends(closed, q, loop))
        tau = tau + (row @ frames_jacobian(closed, q, loop)) * force
    return tau


def forward_dynamics(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    method: str = "elimination",
    stabilization: Stabilization | None = None,
    loop_forces: Mapping[str, Any] | None = None,
) -> Array:
    """Return the acceleration of a robot with closed loops, (nv,); see `solve`. It can be traced, by elimination.

    The rank of the constraints is tested: of plain numbers by singular values, of traced ones by pivots, in the order
    of the rows, see `ordered`.
    """
    return solve(closed, q, v, tau, wrenches, method=method, stabilization=stabilization, loop_forces=loop_forces).vdot


def solve(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    method: str = "elimination",
    stabilization: Stabilization | None = None,
    loop_forces: Mapping[str, Any] | None = None,
) -> Solution:
    """Return accelerations and multipliers of

        [ M  L^T ] [ vdot    ]   [ tau - h + tau_a ]
        [ L  0   ] [ -lambda ] = [ c               ]             (20)

    where L vdot = c (18) are independent combinations of the constraints' rows phi' vdot = -phi'_dot v.

    Args:
        closed: The robot with its loops.
        q, v, tau, wrenches: As in `legged.forward_dynamics`, of the spanning tree; q and v should fit the loops.
        method: "direct" solves (20); "elimination" takes (21), with M^-1 by O(n) recursions; "projection" takes (22).
        stabilization: `Stabilization(...)`, or None.
        loop_forces: Of motors in the joints that close loops, see `active_forces`.

    Raises:
        UnknownNameError: for another method. SingularError: where some motion meets no inertia. Others as in
            `legged.forward_dynamics`.

    Source: Featherstone, Orin 2000, section 3.4.
    """
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    robot = closed.robot
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 bias forces"):
        b = tau - bias_forces(robot, q, v, wrenches) + active_forces(closed, q, loop_forces or {})
    with stage("2 constraints"):
        rows = independent_rows(jacobian(closed, q), demanded(closed, q, v, stabilization))
    with stage("3 solution"):
        vdot, lagrange = METHODS[method](robot, q, rows, b)
    vdot = finite(robot, "the closed-loop dynamics", vdot)
    return Solution(vdot, rows.spread @ lagrange, len(rows.L), rows.unmet)


def by_pivots(closed: ClosedRobot, q: Array, v: Array, tau: Array, wrenches: Array, how: Stabilization) -> Array:
    """Return `forward_dynamics` by elimination whose rank test is that of pivots, traced or not: simulation's.

    In the midst of a time step a state is a little off the loops, where superfluous rows are not quite so: for rows
    that were superfluous at the start, of a robot that is `ordered`, the test is wide enough for that.
    """
    J, c = jacobian(closed, q), demanded(closed, q, v, how)
    b = tau - bias_forces(closed.robot, q, v, wrenches)
    rows = Independent(J, c, np.eye(len(J)), 0.0)
    vdot, _ = elimination(closed.robot, q, rows, b, partial(factor_dependent, leading=closed.leading))
    return finite(closed.robot, "the closed-loop dynamics", vdot)


def direct(robot: Robot, q: Array, rows: Independent, b: Array) -> tuple[Array, Array]:
    """Return (vdot, lambda) of equation (20) as it stands; O((n + n_c)^3). Plain numbers only, since it pivots."""
    M, L, n = inertia_matrix(robot, q), rows.L, robot.nv
    size = n + len(L)
    A = np.zeros((size, size))
    A[:n, :n], A[:n, n:], A[n:, :n] = M, L.T, L
    try:
        x = np.linalg.solve(A, np.concatenate([b, rows.c]))
    except np.linalg.LinAlgError:
        x = np.full(size, np.nan)
    return x[:n], -x[n:]


def elimination(
    robot: Robot,
    q: Array,
    rows: Independent,
    b: Array,
    factored: Callable[[Array], tuple[list[list[Any]], list[Any]]] | None = None,
) -> tuple[Array, Array]:
    """Return (vdot, lambda) by L M^-1 L^T lambda = c - L M^-1 b, equation (21); O(n n_c^2 + n_c^3).

    Args:
        robot, q, rows, b: The tree, its configuration, constraints, and forces tau - h.
        factored: Factors L M^-1 L^T. By default rows are taken for tested, but for traced ones: their pivots tell.
    """
    L = rows.L
    inverse = mass_inverse(robot, q)
    free = inverse(b)
    if not len(L):
        return free, np.zeros(0)
    responses = np.array([inverse(row) for row in L])
    mobility = mirror(L @ responses.T)
    factored = factored or (factor_dependent if mobility.dtype == object else factor_symmetric)
    force = solve_factored(factored(mobility), rows.c - L @ free)
    return free + responses.T @ force, force


def projection(robot: Robot, q: Array, rows: Independent, b: Array) -> tuple[Array, Array]:
    """Return (vdot, lambda) by K^T M K y = K^T (b - M vdot_0), vdot = K y + vdot_0, L K = 0: equation (22).

    Plain numbers only. vdot_0 is the shortest acceleration that the constraints allow.
    """
    M, L = inertia_matrix(robot, q), rows.L
    K = null_space(L)
    particular = np.linalg.lstsq(L, rows.c, rcond=None)[0] if len(L) else np.zeros(robot.nv)
    y = solve_symmetric(mirror(K.T @ M @ K), K.T @ (b - M @ particular))
    vdot = K @ y + particular
    lagrange = np.linalg.lstsq(L.T, M @ vdot - b, rcond=None)[0] if len(L) else np.zeros(0)
    return vdot, lagrange


METHODS: dict[str, Callable[[Robot, Array, Independent, Array], tuple[Array, Array]]] = {
    "direct": direct,
    "elimination": elimination,
    "projection": projection,
}


def mass_inverse(robot: Robot, q: Array) -> Callable[[Array], Array]:
    """Return the function x -> M^-1 x: by O(n) recursions whose factors are shared, lemma 3 of the operators.

    With joints that follow others, or gyroscopic rotors, which the operators do not know, by the factored matrix.
    """
    if robot.followers or any(body.rotor_momentum.any() for body in robot.bodies):
        factors = factor_symmetric(inertia_matrix(robot, q))
        return lambda x: solve_factored(factors, x)
    return SpatialOperators(robot, q).mass_inverse.apply
