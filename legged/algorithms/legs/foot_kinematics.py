"""Numerical kinematics of feet: positions of contact points, and inverse kinematics by damped least squares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from legged import arguments
from legged.checked import checked
from legged.compiler import Kernel, compile
from legged.dynamics.kinematics import point_accelerations, point_jacobian, point_positions
from legged.errors import DefinitionError, ReachError, ShapeError
from legged.robot.configuration import refuse_ball_quaternions
from legged.robot.robot import Robot

Array = np.ndarray
_RANK_TOLERANCE = 1e-8  # of singular values, relative to the largest entry of the Jacobian or to 1 m


@checked
class FootKinematics:
    """Kinematics of chosen contact points relative to the base, as functions of the joints that move them.

    Positions, velocities and accelerations are in base axes with the base at rest, (points, 3). Joints that move none
    of the points, and joints in `hold`, keep their given positions.

    Args:
        robot: A robot without ball joints.
        points: Names of contact points.
        hold: Names of joints that do not move; they make the solution of redundant legs unique.
        at: Positions by name, (3,), [m], link axes, that replace those of the contact points.
    """

    parameter_names = ("robot", "points")

    def __init__(
        self, robot: Robot, points: Sequence[str], hold: Sequence[str] = (), at: Mapping[str, Array] | None = None
    ):
        refuse_ball_quaternions(robot)
        self.robot = robot
        self.names = tuple(points)
        contacts = [robot.contact(name) for name in self.names]
        self.points: list[tuple[str | int, Array]] = [(c.link, (at or {}).get(c.name, c.position)) for c in contacts]
        held = {k for name in hold for k in range(robot.joint(name).v.start, robot.joint(name).v.stop)}
        carrying = {k for contact in contacts for k in self._columns(contact.link)}
        self.active = np.array(sorted(carrying - held), dtype=int) - robot.base.nv

    def _columns(self, link: int) -> list[int]:
        bodies = self.robot.ancestors(self.robot.links[link].body)[:-1]
        return [k for body in bodies for k in range(self.robot.bodies[body].v.start, self.robot.bodies[body].v.stop)]

    def positions(self, angles: Array) -> Array:
        """Return the positions of the points, (points, 3), [m], base axes.

        Args:
            angles: Joint positions, (nj,), [rad] or [m], joint coordinates.
        """
        return self._kernel(angles)[0]

    def jacobian(self, angles: Array) -> Array:
        """Return J, (3 points, active joints), base axes, at joint positions `angles`.

        Velocities of the points = J @ rates of the active joints.

        Args:
            angles: Joint positions, (nj,), [rad] or [m], joint coordinates.
        """
        return self._kernel(angles)[1]

    @cached_property
    def _kernel(self) -> Kernel[[Array], tuple[Array, Array]]:
        return compile(self._positions_and_jacobian, None, angles=(self.robot.nj,))

    def _positions_and_jacobian(self, angles: Array) -> tuple[Array, Array]:
        q = self._state(angles)
        rows = [point_jacobian(self.robot, q, link, at)[3:, self.robot.base.nv :] for link, at in self.points]
        return point_positions(self.robot, q, self.points), np.concatenate(rows)[:, self.active]

    def _state(self, joints: Array) -> Array:
        return np.concatenate([self.robot.base.neutral(), arguments.rounded_array("angles", joints, (self.robot.nj,))])

    def solve(
        self, targets: Mapping[str, Any] | Array, start: Array, tolerance: float = 1e-11, iterations: int = 100
    ) -> Array:
        """Return joint positions, (nj,), [rad] or [m], that put the points at their targets.

            minimize |p(q) - targets|^2,   dq = (J^T J + lambda 1)^-1 J^T (targets - p)

        by the Levenberg-Marquardt method: lambda decreases after every iteration that reduces the error and increases
        after every other one. Which of several solutions is found depends on `start`.

        Args:
            targets: Target positions, (points, 3), [m], base axes, in the order of the names, or by name.
            start: Initial joint positions, (nj,), [rad] or [m].
            tolerance: Largest distance from a point to its target, [m].
            iterations: Largest number of iterations.

        Raises:
            ReachError: The targets are out of reach, or no solution is near the start; `residual` is the remaining
                distance, [m].
        """
        targets = self._table("targets", targets)
        angles = np.array(start, dtype=float)
        if angles.shape != (self.robot.nj,):
            raise ShapeError(f"start must be ({self.robot.nj},), one entry per joint coordinate, got {angles.shape}")
        error, damping = targets - self.positions(angles), 1e-4
        for _ in range(iterations):
            if _largest(error) < tolerance:
                return angles
            J = self.jacobian(angles)
            gram, slope = J.T @ J, J.T @ error.ravel()
            scale = max(float(np.trace(gram)) / max(len(gram), 1), 1e-12)
            while damping < 1e8:
                trial = angles.copy()
                trial[self.active] += np.linalg.solve(gram + damping * scale * np.eye(len(gram)), slope)
                remaining = targets - self.positions(trial)
                if np.sum(remaining**2) < np.sum(error**2):
                    angles, error, damping = trial, remaining, max(damping * 0.03, 1e-14)
                    break
                damping *= 10
            else:
                break
        residual = _largest(error)
        if residual < tolerance:
            return angles
        worst = self.names[int(np.argmax(np.linalg.norm(error, axis=1)))]
        raise ReachError(
            f"no joint positions of robot {self.robot.name!r} near the start put its feet at their targets: "
            f"{worst!r} remains {residual:.3g} m away, more than the {tolerance:.3g} m that are allowed",
            residual=residual,
        )

    def rates(self, angles: Array, velocities: Any, accelerations: Any) -> tuple[Array, Array]:
        """Return joint rates and joint accelerations, (nj,) each, from those of the points.

            J qd = velocities,   J qdd = accelerations - Jdot qd

        Args:
            angles: Joint positions, (nj,), [rad] or [m], joint coordinates.
            velocities: Velocities of the points, (points, 3), [m/s], base axes, or by name.
            accelerations: Accelerations of the points, (points, 3), [m/s^2], base axes, or by name.

        Raises:
            DefinitionError: The points do not determine the joint rates: a leg is redundant or stretched.
            ReachError: No joint rates give these velocities, or no joint accelerations these accelerations.
        """
        velocities, accelerations = self._table("velocities", velocities), self._table("accelerations", accelerations)
        J, q = self.jacobian(angles), self._state(angles)
        scale = max(1.0, float(np.abs(J).max(initial=0.0)))
        missing = len(self.active) - np.linalg.matrix_rank(J, tol=_RANK_TOLERANCE * scale)
        if missing:
            raise DefinitionError(
                f"the feet of robot {self.robot.name!r} do not determine {missing} joint motions in this posture; hold "
                f"joints that need not move (hold=...), use more contact points per foot, or avoid stretched legs"
            )
        rates, second = np.zeros(self.robot.nj), np.zeros(self.robot.nj)
        rates[self.active] = _solve_exactly(J, velocities)
        v, still = np.concatenate([np.zeros(self.robot.base.nv), rates]), np.zeros(self.robot.nv)
        bias = point_accelerations(self.robot, q, v, still, self.points)
        second[self.active] = _solve_exactly(J, accelerations - bias)
        return rates, second

    def _table(self, what: str, values: Mapping[str, Any] | Array) -> Array:
        if isinstance(values, Mapping):
            rows: Any = [values[arguments.known_name("point", name, values)] for name in self.names]
        else:
            rows = values
        table = arguments.rounded_array(what, rows)
        if table.shape != (len(self.names), 3):
            raise ShapeError(f"{what} must be ({len(self.names)}, 3), one row per point, got shape {table.shape}")
        return table


def _largest(error: Array) -> float:
    return float(np.linalg.norm(error, axis=1).max(initial=0.0))


def _solve_exactly(J: Array, desired: Array) -> Array:
    step = np.linalg.lstsq(J, desired.ravel(), rcond=None)[0]
    residual = _largest(desired - (J @ step).reshape(desired.shape))
    if residual > 1e-6 * (1.0 + float(np.abs(desired).max(initial=0.0))):
        raise ReachError(
            f"no joint rates or accelerations give the desired motion of the feet: residual {residual:.3g} m/s (m/s^2)"
        )
    return step
