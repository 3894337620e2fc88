"""Inverse kinematics of standing legs within the limits of their joints, by bounded least squares."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

from legged.algorithms.legs.foot_kinematics import FootKinematics
from legged.algorithms.legs.leg_chains import LegChain, joint_axes
from legged.checked import checked_arguments
from legged.dynamics.kinematics import link_poses
from legged.errors import ReachError
from legged.robot.robot import Robot

Array = np.ndarray
SOLVED = 1e-7  # [leg length], distance of the soles from the ground of an exact solution
TILTED = 0.02  # [leg length], largest distance of a sole from the ground where it cannot be level
_WEIGHT, _PITCH_WEIGHT = 0.1, 1e-4  # [m/rad], weights of joint positions against distances of soles: all, pitch joints
_BEND = 0.6  # [rad], initial values of the search for hip and half the knee, with both signs
_MARGIN, _MARGIN_SHARE = 0.05, 0.1  # [rad] or [m], distance of joints from their limits; at most this part of a range
_BESIDE = 0.2  # [leg length], largest distance of the soles of two legs from the middle between them
_TURNED = 0.2  # [rad], angle of a sole from its direction with joints at zero above which it keeps this direction
_ASIDE = np.pi / 4  # [rad], angle of a sole from this direction above which the knee points to the side
_SPREAD = 0.6  # [leg length], horizontal distance of the sole of a leg as of an insect from its hip


@checked_arguments
def joint_limits(robot: Robot) -> tuple[Array, Array]:
    """Return the lower and upper limits of the joint coordinates, (nj,) each, [rad] or [m]; infinite if unlimited."""
    lower, upper = np.zeros(robot.nv), np.zeros(robot.nv)
    for joint in robot.joints:
        lower[joint.v], upper[joint.v] = joint.definition.physics.lower, joint.definition.physics.upper
    return lower[robot.base.nv :], upper[robot.base.nv :]


def inner_limits(robot: Robot) -> tuple[Array, Array]:
    """Return the limits of standing postures, (nj,) each, [rad] or [m]: those of the joints with the margin inside."""
    lower, upper = joint_limits(robot)
    margin = np.minimum(_MARGIN, _MARGIN_SHARE * (upper - lower))
    return lower + margin, upper - margin


class _Attempt(NamedTuple):
    """A posture of one leg: all joint positions, distance of the sole from its target, [m], size of the positions, and
    whether the sole is farther to the side than it should be."""

    angles: Array
    residual: float
    cost: float
    is_wide: bool = False


class PostureSearch:
    """Inverse kinematics of standing legs by bounded least squares, one by one from several initial values, and all.

    The soles are plane: contact points are moved along the normal of the plane that fits those of a foot best.
    """

    def __init__(
        self, robot: Robot, legs: tuple[LegChain, ...], lower: Array | None = None, upper: Array | None = None
    ):
        self.robot, self.legs = robot, legs
        inner = inner_limits(robot)
        self.lower, self.upper = inner[0] if lower is None else lower, inner[1] if upper is None else upper
        names = [name for leg in legs for name in leg.contacts]
        self.radii = np.array([robot.contact(name).radius for name in names])
        self.rest = np.clip(np.zeros(robot.nj), self.lower, self.upper)
        self.feet = FootKinematics(robot, names, at=_plane_soles(robot, legs, self.rest))
        self.actual = FootKinematics(robot, names)
        self.middle = float(np.mean([leg.hip[0] for leg in legs]))
        self.center = float(np.mean([leg.hip[1] for leg in legs]))
        columns = sorted({column for leg in legs for column in (*leg.columns, *leg.toe_columns)})
        self.columns = np.array(columns, dtype=int)
        self.pitch = np.array(sorted({column for leg in legs for column in leg.pitch_columns}), dtype=int)

    def points(self, angles: Array) -> Array:
        """Return the positions of all contact points of the legs, (n, 3), [m], base axes.

        Args:
            angles: Joint positions, (nj,), [rad] or [m], joint coordinates.
        """
        return self.actual.positions(angles)

    def soles(self, leg: LegChain, angles: Array) -> Array:
        """Return the positions of the leg's contact points, (n, 3), [m], base axes.

        Args:
            leg: The leg.
            angles: Joint positions, (nj,), [rad] or [m], joint coordinates.
        """
        return self.feet.positions(angles)[self._rows(leg)]

    def fitted(self, targets: Array, start: Array) -> tuple[Array, float]:
        """Return joint positions with all soles as near their targets as possible, (nj,), and the residual, [m].

        Args:
            targets: (n, 3), [m], base axes.
            start: Joint positions from which they differ little, (nj,), [rad] or [m], joint coordinates.
        """
        angles, free = start, self._free(self.columns)
        scale = max(leg.length for leg in self.legs)
        for weight in (1e-2 * scale, 0.0):  # first near the start, then exact
            angles = self._least(
                lambda x: (self.feet.positions(x) - targets).ravel(),
                lambda J: J.reshape(-1, J.shape[2]),
                angles,
                free,
                np.full(len(free), weight * 1e-2),
                start,
            )
        return angles, float(np.abs(self.feet.positions(angles) - targets).max())

    def solve(self, leg: LegChain, angles: Array, shift: float, depth: float) -> Array:
        """Return joint positions, (nj,), with the leg's sole level under its hip.

        Args:
            leg: The leg.
            angles: Positions of the other joints, (nj,), [rad] or [m], joint coordinates.
            shift: Distance of the sole ahead of the hip, [m].
            depth: Of the sole under the base's origin, [m].
        """
        attempts = [self._narrow(leg, start, shift, depth) for start in self._starts(leg, angles)]
        least = min(attempt.residual for attempt in attempts)
        if least > TILTED * leg.length:
            raise ReachError(
                f"leg {leg.name!r} of robot {self.robot.name!r} cannot stand {depth + leg.hip[2]:.3g} m under its hip "
                f"within the limits of its joints: residual {least:.3g} m",
                residual=least,
            )
        solutions = [each for each in attempts if each.residual < max(2.0 * least, SOLVED * leg.length)]
        return min(solutions, key=lambda each: (each.is_wide, not self._bends_well(leg, each.angles), each.cost)).angles

    def _rows(self, leg: LegChain) -> list[int]:
        return [self.feet.names.index(name) for name in leg.contacts]

    def _free(self, columns: Array) -> Array:
        return columns[self.upper[columns] > self.lower[columns]]

    def _starts(self, leg: LegChain, angles: Array) -> list[Array]:
        starts = []
        for hip, knee in product((_BEND, -_BEND), (2 * _BEND, -2 * _BEND)):
            start = angles.copy()
            start[list(leg.pitch_columns[:2])] = (hip, knee)[: len(leg.pitch_columns)]
            starts.append(np.clip(start, self.lower, self.upper))
        return starts

    def _narrow(self, leg: LegChain, start: Array, shift: float, depth: float) -> _Attempt:
        """Return the posture of one leg near joint positions, with soles of two legs side by side and not turned."""
        attempt = self._from(leg, start, shift, depth)
        if len(self.legs) != 2 or leg.swings_sideways:
            return attempt
        beside = float(self.soles(leg, attempt.angles)[:, 1].mean()) - self.center
        most = _BESIDE * leg.length
        is_wide = abs(beside) > most
        if not is_wide and self._turn(leg, attempt.angles) <= _TURNED:
            return attempt
        left = np.copysign(most, leg.hip[1] - self.center) if is_wide else beside
        narrow = self._from(leg, start, shift, depth, self.center + float(left))
        return narrow if narrow.residual < SOLVED * leg.length else attempt._replace(is_wide=is_wide)

    def _turn(self, leg: LegChain, angles: Array) -> float:
        """Return the angle about the vertical by which the leg's sole differs from that at rest, [rad]."""
        (x, y), (a, b) = (
            (points - points.mean(axis=0))[:, :2].T for points in (self.soles(leg, at) for at in (self.rest, angles))
        )
        return abs(float(np.arctan2(x @ b - y @ a, x @ a + y @ b)))

    def _from(self, leg: LegChain, start: Array, shift: float, depth: float, left: float | None = None) -> _Attempt:
        """Return the posture of one leg near some joint positions.

        Args:
            leg, shift, depth: As in `solve`. start: Initial joint positions, (nj,), [rad] or [m], joint coordinates.
            left: Place of the sole to the left of the base's origin, [m]; None for the one with the least positions.
        """
        rows = self._rows(leg)
        free = self._free(np.array([*leg.columns, *leg.toe_columns]))
        target = leg.hip[:2] + np.array([shift, 0.0])
        along = np.eye(2)[:1]
        if leg.outward is not None:
            target, along = target + _SPREAD * leg.length * leg.outward[:2], np.eye(2)
        turns = np.zeros((0, len(rows), 2))
        if left is not None:
            target, along = np.array([target[0], left]), np.eye(2)
            flat = self.feet.positions(self.rest)[rows][:, :2]
            flat -= flat.mean(axis=0)
            turns = np.stack([-flat[:, 1], flat[:, 0]], axis=1)[None] / max(np.abs(flat).max(), SOLVED * leg.length)
        heights = self.radii[rows] - depth
        weights = np.where(np.isin(free, leg.pitch_columns), _PITCH_WEIGHT, _WEIGHT)

        def errors(x: Array) -> Array:
            points = self.feet.positions(x)[rows]
            own = points[:, :2].mean(axis=0) - target
            turned = np.einsum("kij,ij->k", turns, points[:, :2])
            return np.concatenate([along @ own, turned, points[:, 2] - heights])

        def slopes(J: Array) -> Array:
            J = J[rows]
            turned = np.einsum("kij,ijn->kn", turns, J[:, :2])
            return np.concatenate([along @ J[:, :2].mean(axis=0), turned, J[:, 2]])

        x = self._least(errors, slopes, start, free, weights, self.rest)
        for share in (1e-2, 1e-4, 0.0):
            x = self._least(errors, slopes, x, free, share * weights, self.rest)
        return _Attempt(x, float(np.abs(errors(x)).max()), float(np.abs(x[free]).sum()))

    def _least(
        self,
        errors: Callable[[Array], Array],
        slopes: Callable[[Array], Array],
        start: Array,
        free: Array,
        weights: Array,
        rest: Array,
    ) -> Array:
        """Return joint positions, (nj,), with the least errors and weighted distances of the free joints from rest.

        Args:
            errors: Function of joint positions, (nj,), (k,), [m]. slopes: Function of the Jacobian of all contact
                points, (n, 3, active joints), that returns that of the errors, (k, active joints).
            start: (nj,). free: Columns of joints that move. weights: Of each of them, [m/rad]. rest: (nj,).
        """
        from scipy.optimize import least_squares  # imported here: importing it takes as long as all other imports

        places = np.searchsorted(self.feet.active, free)

        def with_free(values: Array) -> Array:
            angles = start.copy()
            angles[free] = values
            return angles

        def residuals(values: Array) -> Array:
            return np.concatenate([errors(with_free(values)), weights * (values - rest[free])])

        def jacobian(values: Array) -> Array:
            J = self.feet.jacobian(with_free(values)).reshape(-1, 3, len(self.feet.active))[:, :, places]
            return np.concatenate([slopes(J), np.diag(weights)])

        lower, upper = self.lower[free], self.upper[free]
        inside = np.clip(start[free], lower, upper)
        fit = least_squares(residuals, inside, jacobian, bounds=(lower, upper), xtol=1e-14, ftol=1e-14, gtol=1e-14)  # type: ignore[arg-type]
        return with_free(fit.x)

    def _bends_well(self, leg: LegChain, angles: Array) -> bool:
        """Return whether the knee points to the middle of the robot, or forward if its hip is there, not to the side.

        The knee of a leg as of an insect is to be above its hip.
        """
        poses = link_poses(self.robot, np.concatenate([self.robot.base.neutral(), angles]))
        axes = {axis.column: axis.origin for axis in joint_axes(self.robot, leg.link, *poses)}
        if len(leg.pitch_columns) < 2:
            return True
        ahead = axes[leg.pitch_columns[1]] - axes[leg.pitch_columns[0]]
        if leg.swings_sideways:
            return bool(ahead[2] > 0.0)
        return bool(ahead[0] * (self.middle - leg.hip[0] + 1e-3) > 0) and self._turn(leg, angles) < _ASIDE


def _plane_soles(robot: Robot, legs: tuple[LegChain, ...], angles: Array) -> dict[str, Array]:
    """Return the contact points by name, (3,), [m], link axes, moved onto the plane that fits their sole best."""
    rotations, origins = link_poses(robot, np.concatenate([robot.base.neutral(), angles]))
    moved: dict[str, Array] = {}
    for leg in legs:
        contacts = [robot.contact(name) for name in leg.contacts]
        points = np.array([origins[c.link] + rotations[c.link] @ c.position for c in contacts])
        if len(points) > 3:
            center = points.mean(axis=0)
            normal = np.linalg.svd(points - center)[2][2]
            points = points - np.outer((points - center) @ normal, normal)
        for contact, point in zip(contacts, points, strict=True):
            moved[contact.name] = rotations[contact.link].T @ (point - origins[contact.link])
    return moved
