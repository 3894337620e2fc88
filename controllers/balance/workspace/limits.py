"""Beyond algorithm 5: wrenches that the ground can give and the motors can pass on, by a quadratic program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.balance.workspace.feet import Foot, seen_from
from controllers.balance.workspace.passes import Outward
from legged.errors import DefinitionError, LeggedError, MissingError
from legged.robot.robot import Robot
from legged.spatial import Array

_EVEN = 1e-7  # price of the points' forces beside the feet's wrenches: it shares a wrench among the points of a sole
_TOLERANCE = 1e-9  # of weight, by which limits may be passed
_AT_MOST, _EQUAL, _SOLVED = 0, 5, 1  # daqp's numbers


@dataclass(frozen=True)
class Limits:
    """What the ground and the motors allow.

    The feet's wrenches are made of forces at their contact points, each inside a friction pyramid about the vertical,

        |f_x|, |f_y| <= mu f_z / sqrt(2),      f_z >= 0

    which lies in the friction cone, so that no foot pulls, slides or tips: the center of pressure stays in the sole. Of
    all such wrenches those of least norm are taken that give the wanted wrench, as in algorithm 5. If there are none,
    the wanted wrench is missed by as little as can be, in the sum of squares of [N m] and [N].

    Attributes:
        friction: mu.
        torques: Whether joints of the stance keep to their motors' `effort`.

    Solved by daqp, a dual active-set solver: exact to rounding on small dense problems, fast, a wheel without
    dependencies, MIT.
    """

    friction: float = 0.6
    torques: bool = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.friction) and self.friction > 0.0):
            raise DefinitionError(f"friction must be above 0, got {self.friction}: feet could give no more than weight")


class Program:
    """The quadratic program of the limits on a robot.

    Raises:
        MissingError: daqp is not installed.
    """

    def __init__(self, limits: Limits, robot: Robot):
        self.limits, self._solve = limits, _solver()
        self._weight = robot.mass * float(np.linalg.norm(robot.gravity)) or 1.0
        self._efforts = np.full(robot.nv, np.inf)
        for body in robot.bodies:
            for entry, effort, _ in body.motor_limits:
                self._efforts[entry] = effort

    def share(self, G: Array, wanted: Array, weights: Array, S: Array, T: Array, own: Array) -> Array:
        """Return the feet's wrenches, (rows,), as `least_norm` does.

        Args:
            G: (n0, rows). wanted: (n0,). weights: (rows,).
            S: (rows, 3 points), see `of_points`.
            T: (nv, rows), the feet's wrenches to torques. own: Torques that joints have beside these, (nv,).
        """
        scale = max(self._weight, float(np.abs(wanted).max()))
        A = _pyramid(S.shape[1] // 3, self.limits.friction)
        most = np.zeros(len(A))
        if self.limits.torques:
            bound = np.isfinite(self._efforts)
            room = np.concatenate([(self._efforts - own)[bound], (self._efforts + own)[bound]])
            A = np.vstack([A, T[bound] @ S, -T[bound] @ S])
            most = np.concatenate([most, np.maximum(room, 0.0) / scale])
        H = S.T @ (S / weights[:, None]) + _EVEN * np.eye(S.shape[1])
        return scale * (S @ self._least(H, G @ S, wanted / scale, A, most))

    def _least(self, H: Array, G: Array, wanted: Array, A: Array, most: Array) -> Array:
        """Return the forces p of least p^T H p with A p <= most and G p = wanted, or with G p as near it as can be."""
        p, solved = self._held(H, G, wanted, A, most)
        if solved:
            return p
        none, even = (np.zeros((0, H.shape[1])), np.zeros(0)), _EVEN * np.eye(len(H))
        near, solved = self._programme(G.T @ G + even, -G.T @ wanted, A, most, *none)
        if not solved:
            raise LeggedError("the quadratic program of the feet's forces has no solution that daqp could find")
        p, solved = self._held(H, G, G @ near, A, most)
        return p if solved else near

    def _held(self, H: Array, G: Array, wanted: Array, A: Array, most: Array) -> tuple[Array, bool]:
        return self._programme(H, np.zeros(len(H)), A, most, G, wanted)

    def _programme(self, H: Array, f: Array, A: Array, most: Array, G: Array, wanted: Array) -> tuple[Array, bool]:
        """Return (p of least p^T H p / 2 + f^T p with A p <= most and G p = wanted, whether there is one)."""
        lower = np.concatenate([np.full(len(A), -np.inf), wanted])
        sense = np.array([_AT_MOST] * len(A) + [_EQUAL] * len(G), dtype=np.int32)
        rows, upper = np.vstack([A, G]), np.concatenate([most, wanted])
        p, _, flag, _ = self._solve(H, f, rows, upper, lower, sense, primal_tol=_TOLERANCE)
        return p, flag == _SOLVED and bool(np.isfinite(p).all())


def of_points(robot: Robot, out: Outward, feet: Sequence[Foot], R: Array) -> Array:
    """Return S, (rows, 3 points): forces at the feet's contact points, world axes, to the feet's wrenches, base axes.

    Args:
        robot: The robot. out: The outward pass. feet: The feet. R: Base axes to world axes.
    """
    blocks = []
    for foot in feet:
        turn, (link, shift) = out.R[foot.body], foot.frame
        arms = [turn @ (shift + link @ robot.contacts[i].position - foot.center) for i in foot.contacts]
        blocks.append(np.concatenate([seen_from(arm, (3, 4, 5)) @ R.T for arm in arms], axis=1)[list(foot.rows)])
    S = np.zeros((sum(len(b) for b in blocks), sum(b.shape[1] for b in blocks)), dtype=R.dtype)
    row = column = 0
    for block in blocks:
        S[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return S


def _pyramid(points: int, friction: float) -> Array:
    """Return A, (5 points, 3 points), with A p <= 0 for forces inside their pyramids."""
    side = friction / np.sqrt(2.0)
    one = np.array([[1.0, 0.0, -side], [-1.0, 0.0, -side], [0.0, 1.0, -side], [0.0, -1.0, -side], [0.0, 0.0, -1.0]])
    return np.kron(np.eye(points), one)


def _solver() -> Callable[..., Any]:
    try:
        from daqp import solve
    except ImportError as error:
        raise MissingError(
            "limits of WorkspaceBalance need the solver daqp, which is not installed: pip install 'legged[qp]'"
        ) from error
    return solve
