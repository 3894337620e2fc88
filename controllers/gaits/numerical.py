"""Inverse kinematics by iteration, for legs of any kind: damped least squares on the places of contact points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from controllers.gaits.gait import check_joints
from legged.compiler.compile import compile
from legged.compiler.runtime.kernel import Kernel
from legged.dynamics.kinematics import point_accelerations, point_jacobian, point_positions
from legged.errors import DefinitionError, ReachError, ShapeError
from legged.robot.robot import Robot

Array = np.ndarray
_RANK = 1e-8  # relative size of a singular value that counts as zero


class FootKinematics:
    """Places of chosen contact points relative to the base, as functions of the joints that can move them.

    Positions, velocities and accelerations are in base axes with the base at rest, (points, 3). Joints that lead to
    none of the points, and those held, keep the values they were given.

    Args:
        robot: The robot; ball joints are refused.
        points: Names of contact points.
        hold: Names of joints that do not move, to settle what redundant legs do.
    """

    def __init__(self, robot: Robot, points: Sequence[str], hold: Sequence[str] = ()):
        check_joints(robot)
        self.robot = robot
        self.names = tuple(points)
        contacts = [robot.contact(name) for name in self.names]
        self.points: list[tuple[str | int, Array]] = [(contact.link, contact.position) for contact in contacts]
        held = {k for name in hold for k in range(robot.joint(name).v.start, robot.joint(name).v.stop)}
        carrying = {k for contact in contacts for k in self._columns(contact.link)}
        self.active = np.array(sorted(carrying - held), dtype=int) - robot.base.nv

    def _columns(self, link: int) -> list[int]:
        bodies = self.robot.ancestors(self.robot.links[link].body)[:-1]
        return [k for body in bodies for k in range(self.robot.bodies[body].v.start, self.robot.bodies[body].v.stop)]

    def positions(self, angles: Array) -> Array:
        """Return where joint positions (joints,) put the points."""
        return self._kernel(angles)[0]

    def jacobian(self, angles: Array) -> Array:
        """Return J, (3 points, active joints): velocities of the points = J @ rates of the active joints."""
        return self._kernel(angles)[1]

    @cached_property
    def _kernel(self) -> Kernel:
        return compile(self._place, None, angles=(self.robot.nj,))

    def _place(self, angles: Array) -> tuple[Array, Array]:
        q = self._state(angles)
        rows = [point_jacobian(self.robot, q, link, at)[3:, self.robot.base.nv :] for link, at in self.points]
        return point_positions(self.robot, q, self.points), np.concatenate(rows)[:, self.active]

    def _state(self, joints: Array) -> Array:
        return np.concatenate([self.robot.base.neutral(), joints])

    def solve(
        self, targets: Mapping[str, Any] | Array, start: Array, tolerance: float = 1e-11, iterations: int = 100
    ) -> Array:
        """Return joint positions, (joints,), that bring the points to their targets.

            minimize |p(q) - targets|^2,   dq = (J^T J + lambda 1)^-1 J^T (targets - p)

        with lambda lowered after every step that helps and raised after every one that does not (Levenberg,
        Marquardt). Which of several solutions is found depends on the start.

        Args:
            targets: (points, 3) in the order of the names, or by name, [m], base axes.
            start: Joint positions to begin at, (joints,).
            tolerance: Largest distance from a point to its target, [m].
            iterations: At most so many steps.

        Raises:
            ReachError: The targets are out of reach, or no solution is near; `residual` holds what remains, [m].
        """
        targets = self._table(targets)
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
                left = targets - self.positions(trial)
                if np.sum(left**2) < np.sum(error**2):
                    angles, error, damping = trial, left, max(damping * 0.03, 1e-14)
                    break
                damping *= 10
            else:
                break
        residual = _largest(error)
        if residual < tolerance:
            return angles
        worst = self.names[int(np.argmax(np.linalg.norm(error, axis=1)))]
        raise ReachError(
            f"no joint positions of robot {self.robot.name!r} near the start bring its feet to their targets: "
            f"{worst!r} stays {residual:.3g} m away",
            residual=residual,
        )

    def rates(self, angles: Array, velocities: Any, accelerations: Any) -> tuple[Array, Array]:
        """Return joint rates and accelerations, (joints,), that move the points as given.

            J qd = velocities,   J qdd = accelerations - Jdot qd

        Args:
            angles: Joint positions, (joints,), at the points' places.
            velocities, accelerations: Of the points, as targets in `solve`, [m/s], [m/s^2].

        Raises:
            DefinitionError: The points do not determine the joints' rates: a redundant or a stretched leg.
            ReachError: No rates move the points so.
        """
        velocities, accelerations = self._table(velocities), self._table(accelerations)
        J, q = self.jacobian(angles), self._state(angles)
        missing = len(self.active) - np.linalg.matrix_rank(J, tol=_RANK * max(1.0, float(np.abs(J).max(initial=0.0))))
        if missing:
            raise DefinitionError(
                f"the feet of robot {self.robot.name!r} leave {missing} joint motions open here; hold joints that need "
                f"not move (hold=...), give more contact points per foot, or keep away from stretched legs"
            )
        rates, bends = np.zeros(self.robot.nj), np.zeros(self.robot.nj)
        rates[self.active] = _exact(J, velocities)
        v, still = np.concatenate([np.zeros(self.robot.base.nv), rates]), np.zeros(self.robot.nv)
        bends[self.active] = _exact(J, accelerations - point_accelerations(self.robot, q, v, still, self.points))
        return rates, bends

    def _table(self, values: Mapping[str, Any] | Array) -> Array:
        if isinstance(values, Mapping):
            values = np.array([values[name] for name in self.names])
        table = np.asarray(values, dtype=float)
        if table.shape != (len(self.names), 3):
            raise ShapeError(f"targets must be ({len(self.names)}, 3), one row per point, got shape {table.shape}")
        return table


def _largest(error: Array) -> float:
    return float(np.linalg.norm(error, axis=1).max(initial=0.0))


def _exact(J: Array, wanted: Array) -> Array:
    found = np.linalg.lstsq(J, wanted.ravel(), rcond=None)[0]
    residual = _largest(wanted - (J @ found).reshape(wanted.shape))
    if residual > 1e-6 * (1.0 + float(np.abs(wanted).max(initial=0.0))):
        raise ReachError(f"no joint rates or accelerations move the feet as wanted: {residual:.3g} m/s (m/s^2) remain")
    return found
