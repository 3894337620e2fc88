"""Distribution of the trunk's wrench to the feet, and joint torques (algorithms 5 and 6), also within limits.

Without limits the wrenches of the feet have the least norm in closed form. With limits of friction, unilateral contact
and motor torques a quadratic program determines them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.balance.workspace.dynamics import OutwardPass
from controllers.balance.workspace.feet import StanceFoot, wrench_transform
from legged.checked import checked
from legged.compiler.ir import item, stage
from legged.errors import DefinitionError, LeggedError, MissingError
from legged.robot.robot import Robot
from legged.spatial import Array, ElementaryTransform, Translation, cross, join, mirror, solve_symmetric

STAGE_5 = "5 distribution"
STAGE_6 = "6 torques"
_POINT_FORCE_WEIGHT = 1e-7  # of contact point forces against the feet's wrenches; makes the solution unique
_TOLERANCE = 1e-9  # of weight, for constraints of the quadratic program
_INEQUALITY, _EQUALITY, _SOLVED = 0, 5, 1  # codes of daqp


def grasp_matrices(out: OutwardPass, feet: Sequence[StanceFoot]) -> list[Array]:
    """Return Ad^T of each foot, (6, rows): from the wrench at the foot to the wrench about the base's origin.

    Both wrenches are in base axes. The paper uses the axes of the foot, in which the norm is the same.

    Args:
        out: The outward pass.
        feet: The feet.
    """
    with stage(STAGE_5):
        positions = [out.o[foot.body] + out.R[foot.body] @ foot.body_position for foot in feet]
        return [wrench_transform(position, foot.rows) for position, foot in zip(positions, feet, strict=True)]


def least_norm_wrenches(G: Array, wrench: Array, weights: Array) -> Array:
    """Return the wrenches F of the feet, (rows,), [N m] and [N], base axes, with the least sum of F_i^2 / w_i:

        G F = wrench,      F = W G^T (G W G^T)^-1 wrench

    Args:
        G: Grasp matrix, (n0, rows), mixed units, of full row rank.
        wrench: Desired generalized force on the base, (n0,), [N m] and [N], generalized coordinates.
        weights: w, (rows,), dimensionless or [1/m^2]; 1 in the paper.

    Source:
        Wendlandt 1997, algorithm 5, eq. (3.12); weights are ours.
    """
    with stage(STAGE_5):
        weighted = G * weights
        return weighted.T @ solve_symmetric(mirror(weighted @ G.T), wrench)


def joint_torques(robot: Robot, out: OutwardPass, contributions: Sequence[tuple[int, Array]]) -> list[Array]:
    """Return the torques of each body's joint, (nv of the joint,), which transmit wrenches from the feet to the base.

        F_k = -Ad^T F~,   tau_k = H^T F_k,   F~ = -F_k at the next joint outward

    Args:
        robot: The robot.
        out: The outward pass.
        contributions: (body, wrench) of each foot: the body that carries it, and its contribution to the wrench on the
            base, (6,), [N m, N], about the base's origin in base axes. Torques of shared joints add up.

    Source:
        Wendlandt 1997, algorithm 6.
    """
    tau = [np.zeros(body.nv) for body in robot.bodies]
    with stage(STAGE_6):
        for end, F in contributions:
            for k in reversed(robot.ancestors(end)[:-1]):
                with item((end, k)):
                    for step in out.X[k].steps:
                        F = _wrench_on_child(step, F)
                    tau[k] = tau[k] - robot.bodies[k].P.T @ F
    return tau


def _wrench_on_child(step: ElementaryTransform, w: Array) -> Array:
    """Return a wrench in the frame of the child, (6,): the inverse of the transpose of a transform of twists."""
    if isinstance(step, Translation):
        return join(w[:3] - cross(step.r, w[3:]), w[3:])
    return step.twist(w)  # a rotation acts on wrenches as on twists


@checked
@dataclass(frozen=True)
class Limits:
    """Limits of contact forces and motor torques for `WorkspaceBalance`.

    The wrenches of the feet are sums of forces at their contact points, each within a friction pyramid,

        |f_x|, |f_y| <= mu f_z / sqrt(2),      f_z >= 0

    inside the friction cone, so feet do not pull, slide or tip, and the center of pressure stays within the sole. Of
    all such wrenches the result is that of least norm with the desired total wrench, as in algorithm 5. If there is
    none, the deviation from the desired wrench is minimal, in the sum of squares of [N m] and [N].

    The quadratic program is solved by daqp, a dual active-set solver for small dense problems.

    Attributes:
        friction: Coefficient of friction, mu.
        torques: Whether torques of the joints of standing legs are limited to the motors' `effort`.
    """

    friction: float = 0.6
    torques: bool = True

    def __post_init__(self) -> None:
        if not (np.isfinite(self.friction) and self.friction > 0.0):
            raise DefinitionError(f"friction must be above 0, got {self.friction}")


class FootForceQP:
    """The quadratic program of foot forces within limits.

    Args:
        limits: The limits.
        robot: The robot.

    Raises:
        MissingError: daqp is not installed.
    """

    parameter_names = ("limits", "_weight", "_efforts")

    def __init__(self, limits: Limits, robot: Robot):
        self.limits, self._daqp = limits, _load_daqp()
        self._weight = robot.mass * float(np.linalg.norm(robot.gravity)) or 1.0
        self._efforts = np.full(robot.nv, np.inf)
        for body in robot.bodies:
            for entry, effort, _ in body.motor_limits:
                self._efforts[entry] = effort

    def solve(self, G: Array, wrench: Array, weights: Array, S: Array, T: Array, own: Array) -> Array:
        """Return the wrenches of the feet, (rows,), [N m] and [N], base axes.

        Args:
            G: Grasp matrix, (n0, rows), mixed units.
            wrench: Desired generalized force on the base, (n0,), [N m] and [N], generalized coordinates.
            weights: Weights of the wrenches, (rows,), as in `least_norm_wrenches`.
            S: Map from contact point forces to wrenches of the feet, (rows, 3 points), see `point_force_matrix`.
            T: Map from wrenches of the feet to joint torques, (nv, rows), mixed units.
            own: Other torques of the joints, (nv,), [N m], joint coordinates.
        """
        scale = max(self._weight, float(np.abs(wrench).max()))
        A = _friction_pyramids(S.shape[1] // 3, self.limits.friction)
        upper = np.zeros(len(A))
        if self.limits.torques:
            bound = np.isfinite(self._efforts)
            room = np.concatenate([(self._efforts - own)[bound], (self._efforts + own)[bound]])
            A = np.vstack([A, T[bound] @ S, -T[bound] @ S])
            upper = np.concatenate([upper, np.maximum(room, 0.0) / scale])
        H = S.T @ (S / weights[:, None]) + _POINT_FORCE_WEIGHT * np.eye(S.shape[1])
        return scale * (S @ self._minimize(H, G @ S, wrench / scale, A, upper))

    def _minimize(self, H: Array, G: Array, wrench: Array, A: Array, upper: Array) -> Array:
        """Return the forces p of least p^T H p with A p <= upper and G p = wrench, or with the nearest feasible G p."""
        zero = np.zeros(len(H))
        p, solved = self._solve(H, zero, A, upper, G, wrench)
        if solved:
            return p
        regularization = _POINT_FORCE_WEIGHT * np.eye(len(H))
        unconstrained = np.zeros((0, H.shape[1])), np.zeros(0)
        nearest, solved = self._solve(G.T @ G + regularization, -G.T @ wrench, A, upper, *unconstrained)
        if not solved:
            raise LeggedError("daqp found no solution of the quadratic program of the foot forces")
        p, solved = self._solve(H, zero, A, upper, G, G @ nearest)
        return p if solved else nearest

    def _solve(self, H: Array, f: Array, A: Array, upper: Array, G: Array, g: Array) -> tuple[Array, bool]:
        """Return (p of least p^T H p / 2 + f^T p with A p <= upper and G p = g, whether it exists)."""
        lower = np.concatenate([np.full(len(A), -np.inf), g])
        sense = np.array([_INEQUALITY] * len(A) + [_EQUALITY] * len(G), dtype=np.int32)
        rows, upper = np.vstack([A, G]), np.concatenate([upper, g])
        p, _, flag, _ = self._daqp(H, f, rows, upper, lower, sense, primal_tol=_TOLERANCE)
        return p, flag == _SOLVED and bool(np.isfinite(p).all())


def point_force_matrix(robot: Robot, out: OutwardPass, feet: Sequence[StanceFoot], R: Array) -> Array:
    """Return S, (rows, 3 points): from contact point forces in world axes to wrenches of the feet in base axes.

    Args:
        robot: The robot.
        out: The outward pass.
        feet: The feet.
        R: Rotation matrix from base axes to world axes, (3, 3), dimensionless.
    """
    blocks = []
    for foot in feet:
        R_body, (R_link, r_link) = out.R[foot.body], foot.frame
        positions = [r_link + R_link @ robot.contacts[i].position for i in foot.contacts]
        arms = [R_body @ (position - foot.body_position) for position in positions]
        blocks.append(np.concatenate([wrench_transform(arm, (3, 4, 5)) @ R.T for arm in arms], axis=1)[list(foot.rows)])
    S = np.zeros((sum(len(b) for b in blocks), sum(b.shape[1] for b in blocks)), dtype=R.dtype)
    row = column = 0
    for block in blocks:
        S[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return S


def _friction_pyramids(points: int, friction: float) -> Array:
    """Return A, (5 points, 3 points), with A p <= 0 for forces within the friction pyramids."""
    side = friction / np.sqrt(2.0)
    one = np.array([[1.0, 0.0, -side], [-1.0, 0.0, -side], [0.0, 1.0, -side], [0.0, -1.0, -side], [0.0, 0.0, -1.0]])
    return np.kron(np.eye(points), one)


def _load_daqp() -> Callable[..., Any]:
    try:
        from daqp import solve
    except ImportError as error:
        raise MissingError(
            "limits of WorkspaceBalance need the solver daqp, which is not installed: pip install 'legged[qp]'"
        ) from error
    return solve
