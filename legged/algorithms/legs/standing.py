"""A standing posture of any legged robot, by inverse kinematics."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from weakref import WeakKeyDictionary

import numpy as np

from legged.algorithms.legs.foot_kinematics import FootKinematics
from legged.algorithms.legs.leg_chains import LegChain, joint_axes, leg_chains
from legged.arguments import number
from legged.checked import checked, checked_arguments
from legged.dynamics.kinematics import center_of_mass, link_poses
from legged.errors import ReachError
from legged.robot.robot import Robot

Array = np.ndarray
_ACCEPTED = 1e-4  # [m], largest distance of a sole from its target after the search
_SOLVED = 1e-9  # [m], distance of the soles from their targets in the final solution
_WEIGHT, _PITCH_WEIGHT = 0.1, 1e-4  # [m/rad], weights of joint positions against distances of soles: all, pitch joints
_BEND = 0.6  # [rad], initial values of the search for hip and half the knee, with both signs
_ITERATIONS = 4  # of shifting the soles under the center of mass; each gains one or two digits


@dataclass(frozen=True, eq=False)
class Home:
    """A standing posture.

    Attributes:
        angles: Joint positions, (nj,), [rad] or [m].
        base_height: Height of the base's origin over the ground, [m].
        legs: The legs, in the order of the robot's links.
    """

    angles: Array
    base_height: float
    legs: tuple[LegChain, ...]

    @property
    def hip_height(self) -> float:
        """Mean height of the hips over the ground, [m]."""
        return self.base_height + float(np.mean([leg.hip[2] for leg in self.legs]))


@checked
def home_of(robot: Robot, hip_height: float | None = None) -> Home:
    """Return a standing posture with every joint within its limits.

    The soles are level, with the center of mass over their middle; redundant joints are as near zero as possible. A
    knee that can bend both ways points to the middle of the robot, or forward if its hip is there.

    Args:
        robot: A robot with contact points on its feet.
        hip_height: Height of the lowest hip over the ground, [m]; by default 0.75 of its leg's length, and 0.9 for
            robots with up to two legs.

    Returns:
        The posture. It is computed once for each robot and hip height; its array is read-only.

    Raises:
        DefinitionError: The robot has no legs, or has ball joints. ArgumentError: The hip height is not positive.
        ReachError: No posture within the joint limits has this hip height.
    """
    if hip_height is not None:
        number("hip_height", hip_height, "m", above=0.0)
    known = _HOMES.setdefault(robot, {})
    if hip_height not in known:
        known[hip_height] = _searched_home(robot, hip_height)
    return known[hip_height]


_HOMES: WeakKeyDictionary[Robot, dict[float | None, Home]] = WeakKeyDictionary()
"""The results of `home_of`: a search takes half a second, and a controller needs one at each start."""


def _searched_home(robot: Robot, hip_height: float | None) -> Home:
    """Return the standing posture of `home_of`."""
    legs = leg_chains(robot)
    bend = 0.9 if len(legs) <= 2 else 0.75
    depth = min((hip_height or bend * leg.length) - float(leg.hip[2]) for leg in legs)
    search = _Search(robot, legs, depth)
    angles, shift = np.clip(np.zeros(robot.nj), *joint_limits(robot)), 0.0
    for _ in range(_ITERATIONS):
        for leg in legs:
            angles = search.solve(leg, angles, shift)
        mass = center_of_mass(robot, np.concatenate([robot.base.neutral(), angles]))
        shift += float(mass[0] - np.mean([search.soles(leg, angles)[:, 0].mean() for leg in legs]))
    points = search.feet.positions(angles)
    points[:, 2] = -depth
    solved = search.feet.solve(points, angles, _SOLVED)
    solved.setflags(write=False)
    return Home(solved, depth, legs)


@checked_arguments
def joint_limits(robot: Robot) -> tuple[Array, Array]:
    """Return the lower and upper limits of the joint coordinates, (nj,) each, [rad] or [m]; infinite if unlimited."""
    lower, upper = np.zeros(robot.nv), np.zeros(robot.nv)
    for joint in robot.joints:
        lower[joint.v], upper[joint.v] = joint.definition.physics.lower, joint.definition.physics.upper
    return lower[robot.base.nv :], upper[robot.base.nv :]


class _Search:
    """Inverse kinematics of standing legs, one by one, by bounded least squares from several initial values."""

    def __init__(self, robot: Robot, legs: tuple[LegChain, ...], depth: float):
        self.robot, self.depth = robot, depth
        self.feet = FootKinematics(robot, [name for leg in legs for name in leg.contacts])
        self.middle = float(np.mean([leg.hip[0] for leg in legs]))
        self.lower, self.upper = joint_limits(robot)

    def soles(self, leg: LegChain, angles: Array) -> Array:
        """Return the positions of the leg's contact points, (n, 3), [m], base axes."""
        return self.feet.positions(angles)[self._rows(leg)]

    def solve(self, leg: LegChain, angles: Array, shift: float) -> Array:
        """Return joint positions, (nj,), with the leg's sole level, at the depth, and `shift` [m] ahead of its hip."""
        attempts = [self._from(leg, start, shift) for start in self._starts(leg, angles)]
        solutions = [(solution, cost) for solution, residual, cost in attempts if residual < _ACCEPTED]
        if not solutions:
            residual = min(residual for _, residual, _ in attempts)
            raise ReachError(
                f"leg {leg.name!r} of robot {self.robot.name!r} cannot stand {self.depth + leg.hip[2]:.3g} m under its "
                f"hip within the limits of its joints: residual {residual:.3g} m; choose another hip height or pass a "
                f"posture",
                residual=residual,
            )
        return min(
            solutions,
            key=lambda solution: (not self._points_inward(leg, solution[0]), solution[1]),
        )[0]

    def _rows(self, leg: LegChain) -> list[int]:
        return [self.feet.names.index(name) for name in leg.contacts]

    def _starts(self, leg: LegChain, angles: Array) -> list[Array]:
        starts = []
        for hip, knee in product((_BEND, -_BEND), (2 * _BEND, -2 * _BEND)):
            start = angles.copy()
            start[list(leg.pitch_columns[:2])] = (hip, knee)[: len(leg.pitch_columns)]
            starts.append(np.clip(start, self.lower, self.upper))
        return starts

    def _from(self, leg: LegChain, start: Array, shift: float) -> tuple[Array, float, float]:
        """Return (joint positions, distance of the sole from its target [m], sum of the joints' absolute positions)."""
        rows, columns = self._rows(leg), np.array(leg.columns)
        free = columns[self.upper[columns] > self.lower[columns]]
        target_x = leg.hip[0] + shift
        weights = np.where(np.isin(free, leg.pitch_columns), _PITCH_WEIGHT, _WEIGHT)

        def with_free(values: Array) -> Array:
            angles = start.copy()
            angles[free] = values
            return angles

        def residuals(values: Array) -> Array:
            points = self.feet.positions(with_free(values))[rows]
            return np.concatenate([[points[:, 0].mean() - target_x], points[:, 2] + self.depth, weights * values])

        def jacobian(values: Array) -> Array:
            J = self.feet.jacobian(with_free(values)).reshape(-1, 3, len(self.feet.active))[rows]
            J = J[:, :, np.searchsorted(self.feet.active, free)]
            return np.concatenate([J[:, 0].mean(axis=0)[None], J[:, 2], np.diag(weights)])

        from scipy.optimize import least_squares  # imported here: importing it takes as long as all other imports

        limits = self.lower[free], self.upper[free]
        fit = least_squares(residuals, start[free], jacobian, bounds=limits, xtol=1e-14)  # type: ignore[arg-type]
        residual = float(np.abs(fit.fun[: -len(free)]).max())
        return with_free(fit.x), residual, float(np.abs(fit.x).sum())

    def _points_inward(self, leg: LegChain, angles: Array) -> bool:
        """Return whether the knee points to the middle of the robot, or forward if its hip is there."""
        poses = link_poses(self.robot, np.concatenate([self.robot.base.neutral(), angles]))
        axes = {axis.column: axis.origin[0] for axis in joint_axes(self.robot, leg.link, *poses)}
        if len(leg.pitch_columns) < 2:
            return True
        ahead = axes[leg.pitch_columns[1]] - axes[leg.pitch_columns[0]]
        return ahead * (self.middle - leg.hip[0] + 1e-3) > 0
