"""Inverse kinematics: configurations with frames and the center of mass at given targets, within joint limits.

    ik = legged.InverseKinematics(robot, {"leg1_foot": "position", "trunk": "pose"})
    solution = ik.solve(start, {"leg1_foot": (-0.6, -0.25, 0.0), "trunk": (R, p)})
    solution.q, solution.residual, solution.converged
    many = ik.solve_batch(starts, {"leg1_foot": points, "trunk": (R, p)})

The nonlinear least-squares problem is solved by the Levenberg-Marquardt method on the configuration manifold
(`legged.algorithms.levenberg_marquardt`), compiled once for a robot and a set of targets. Its damping adapts to the
decrease of the error, so that steps stay bounded near singular configurations and converge quadratically elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged import arguments
from legged.algorithms.centroidal import momentum_matrix
from legged.algorithms.levenberg_marquardt import LevenbergMarquardt, Limit, Minimum
from legged.checked import checked
from legged.compiler import where
from legged.dynamics.arguments import read
from legged.dynamics.frames import Frame, frame_jacobian, frame_pose
from legged.dynamics.kinematics import center_of_mass
from legged.errors import ArgumentError, ReachError, ShapeError, UnknownNameError
from legged.robot.configuration import random_configuration
from legged.robot.placement import rotations
from legged.robot.robot import Robot
from legged.rotations import quaternion_log
from legged.spatial import Array

CENTER_OF_MASS = "center_of_mass"
KINDS = {"position": (3, 3), "orientation": (3, 9), "pose": (6, 12)}
"""Kinds of targets: number of equations, and number of values that describe the target."""


class IKSolution(NamedTuple):
    """A configuration found by inverse kinematics.

    Attributes:
        q: Configuration, (nq,).
        residual: Largest entry of the errors of positions [m] and orientations [rad].
        iterations: Number of steps tried.
        converged: Whether the residual is at most the tolerance.
        errors: Error of each target by name, target minus actual: (3,), [m] world axes for positions, (3,), [rad],
            rotation vector in world axes for orientations, (6,), [rotation; position], for poses.
    """

    q: Array
    residual: float
    iterations: int
    converged: bool
    errors: dict[str, Array]


class IKSolutions(NamedTuple):
    """Configurations found by inverse kinematics for a batch of B members.

    Attributes:
        q: Configurations, (B, nq), mixed units.
        residual: Largest entry of each member's errors, (B,), [m] and [rad]; NaN for a member without a finite error.
        iterations: Numbers of steps tried, (B,).
        converged: Whether each residual is at most the tolerance, (B,).
        errors: Errors of each target by name as in `IKSolution`, (B, 3) or (B, 6).
    """

    q: Array
    residual: Array
    iterations: Array
    converged: Array
    errors: dict[str, Array]


@checked
class InverseKinematics:
    """A solver for one robot and one set of targets.

    Attributes:
        robot: The robot.
        targets: Kind of each target by name of the frame, link or contact point, or "center_of_mass".
    """

    def __init__(
        self,
        robot: Robot,
        targets: Mapping[str, str],
        hold: Iterable[str] = (),
        limits: bool = True,
        weights: Mapping[str, float] | None = None,
        frames: Mapping[str, Frame] | None = None,
    ):
        """Compile the errors of the targets and their Jacobian.

        Args:
            robot: The robot.
            targets: Names of links, contact points, entries of `frames`, or "center_of_mass", each with "position",
                "orientation" or "pose"; the center of mass has a position only.
            hold: Names of joints that keep their initial positions; "base" for the floating base.
            limits: Whether joint limits are enforced.
            weights: Factor of each target's errors in the sum of squares, by name; 1 where none is given. They matter
                only where not all targets can be reached.
            frames: Frames by names of the user's own, see `legged.Frame`.

        Raises:
            ArgumentError: For invalid kinds or weights. UnknownNameError: For a name that the robot lacks.
        """
        self.robot = arguments.instance("robot", robot, Robot, "a legged.Robot")
        self.targets = dict(targets)
        if not self.targets:
            raise ArgumentError("targets must name at least one frame, for example {'trunk': 'pose'}")
        frames = dict(frames or {})
        q = robot.neutral()
        for name, kind in self.targets.items():
            if kind not in KINDS or (name == CENTER_OF_MASS and kind != "position"):
                allowed = "'position'" if name == CENTER_OF_MASS else ", ".join(map(repr, KINDS))
                raise ArgumentError(
                    f"the kind of target {name!r} must be one of {allowed}, got {arguments.shown(kind)}"
                )
            if name != CENTER_OF_MASS:
                frame_pose(robot, q, frames.get(name, name))
        self._free = _free_columns(robot, hold)
        self._limits = _joint_limits(robot) if limits else []

        def errors(q: Array, wanted: Array) -> tuple[Array, Array]:
            rows, slopes, at = [], [], 0
            for name, kind in self.targets.items():
                size = KINDS[kind][1]
                error, slope = _error(robot, q, frames.get(name, name), kind, wanted[at : at + size])
                at += size
                rows.append(error)
                slopes.append(slope)
            return np.concatenate(rows), np.concatenate(slopes)

        size, factors = sum(KINDS[kind][1] for kind in self.targets.values()), _weights_of(self.targets, weights or {})
        self._method = LevenbergMarquardt(robot, errors, size, factors, self._free, self._limits)

    def solve(
        self,
        start: Array,
        values: Mapping[str, Any],
        tolerance: float = 1e-9,
        iterations: int = 100,
        attempts: int = 1,
        seed: int = 0,
        partial: bool = False,
    ) -> IKSolution:
        """Return the configuration near `start` at which the targets are reached.

        Args:
            start: Initial configuration, (nq,), mixed units.
            values: Target by name: a position (3,), [m], world axes; an orientation, (3, 3) rotation matrix from the
                frame's axes to the world's; a pose (orientation, position) of both.
            tolerance: Largest error of a solution, [m] and [rad].
            iterations: Largest number of steps of each attempt.
            attempts: Number of starts; all after the first have random joint positions within the limits.
            seed: Of the random starts.
            partial: Return the best configuration found, with `converged` False, instead of raising ReachError.

        Raises:
            ReachError: If no attempt meets the tolerance; `residual` holds the smallest error.
            ShapeError, NotFiniteError: For a start or targets that are no numbers of the right shape.
        """
        (q,) = read(self.robot, q=start)
        wanted = np.concatenate([part for _, part in self._wanted(values, batch=False)], axis=1)
        found = self._solve(q[None], wanted, tolerance, iterations, attempts, seed)
        errors = {name: e[0] for name, e in found.errors.items()}
        residual, tried, converged = found.residual.item(), found.iterations.item(), found.converged.item()
        if converged or partial:
            return IKSolution(found.q[0], residual, tried, converged, errors)
        worst = max(errors, key=lambda name: float(np.abs(errors[name]).max()))
        raise ReachError(
            f"inverse kinematics of robot {self.robot.name!r} left an error of {residual:.3g} (tolerance "
            f"{tolerance:.3g}), the largest at target {worst!r}: it may be out of reach; start nearer, free more "
            f"joints, give more attempts, or pass partial=True for the best configuration found",
            residual=residual,
        )

    def solve_batch(
        self,
        start: Array,
        values: Mapping[str, Any],
        tolerance: float = 1e-9,
        iterations: int = 100,
        attempts: int = 1,
        seed: int = 0,
    ) -> IKSolutions:
        """Return configurations for a batch of starts, of targets or of both, by one call of machine code.

            found = solver.solve_batch(q, {"leg1_foot": points})  # (nq,) or (B, nq), (B, 3)
            found.q[found.converged]

        The result of a member does not depend on the others. A member that does not converge raises no error.

        Args:
            start: Initial configurations, (B, nq), or one for all members, (nq,), mixed units.
            values: Targets by name as in `solve`, each for all members or with a leading axis: positions (B, 3), [m],
                world axes; orientations (B, 3, 3); poses (orientation, position) of both.
            tolerance, iterations: As in `solve`.
            attempts, seed: As in `solve`, for the members that have not converged.

        Raises:
            ShapeError, NotFiniteError: For starts or targets that are no numbers of the right shape, or whose numbers
                of members differ.
        """
        rows = np.atleast_2d(arguments.rounded_array("start", start))
        q = np.array([read(self.robot, q=row)[0] for row in rows])
        parts = {"start": q, **dict(self._wanted(values, batch=True))}
        counts = {name: len(part) for name, part in parts.items() if len(part) != 1}
        count = next(iter(counts.values()), 1)
        if not count or len(set(counts.values())) > 1:
            given = ", ".join(f"{name} {n}" for name, n in counts.items())
            raise ShapeError(f"start and targets must be for one member or for the same number of them; got {given}")
        q, *wanted = (np.broadcast_to(part, (count, part.shape[1])) for part in parts.values())
        return self._solve(q, np.concatenate(wanted, axis=1), tolerance, iterations, attempts, seed)

    def _solve(
        self, q: Array, wanted: Array, tolerance: float, iterations: int, attempts: int, seed: int
    ) -> IKSolutions:
        """Return the best of several attempts for each member; q (B, nq) and wanted (B, n) are checked."""
        tolerance = arguments.number("tolerance", tolerance, above=0.0)
        iterations, attempts = (
            arguments.whole(name, n, least=1) for name, n in (("iterations", iterations), ("attempts", attempts))
        )
        rng, starts, members = np.random.default_rng(arguments.whole("seed", seed, least=0)), q, np.arange(len(q))
        best: Minimum | None = None
        for attempt in range(attempts):
            if attempt:
                starts = np.array([self._restarted(row, rng) for row in q[members]])
            found = self._method.minimize(starts, wanted[members], tolerance, iterations)
            if best is None:
                best = found
            else:
                better = ~(_residuals(found.e) >= _residuals(best.e[members]))
                for own, new in zip(best, found, strict=True):
                    own[members[better]] = new[better]
            members = np.flatnonzero(~(_residuals(best.e) <= tolerance))
            if not members.size:
                break
        assert best is not None
        residual = _residuals(best.e)
        return IKSolutions(best.q, residual, best.iterations, residual <= tolerance, self._by_name(best.e))

    def _restarted(self, q: Array, rng: np.random.Generator) -> Array:
        """Return q with the free joints at random, within their limits."""
        other = random_configuration(self.robot, rng)
        new = q.copy()
        for body in self.robot.bodies:
            if not body.follows and body.v.start >= self.robot.base.nv and self._free[body.v].all():
                new[body.q] = other[body.q]
        for limit in self._limits:
            if self._free[limit.v] and np.isfinite(limit.lower) and np.isfinite(limit.upper):
                new[limit.q] = rng.uniform(limit.lower, limit.upper)
        return new

    def _wanted(self, values: Mapping[str, Any], batch: bool) -> Iterator[tuple[str, Array]]:
        """Yield the parts of the targets: a description, and the values, (1, n), or (B, n) in a batch."""
        missing = [name for name in self.targets if name not in values]
        if missing:
            raise ArgumentError(
                f"values lacks the target {missing[0]!r}; give one for each of {', '.join(self.targets)}"
            )
        for name in values:
            if name not in self.targets:
                raise UnknownNameError("target", name, self.targets)
        for name, kind in self.targets.items():
            value = values[name]
            if kind == "pose" and (not isinstance(value, Sequence) or len(value) != 2):
                raise ArgumentError(
                    f"the target {name!r} must be (orientation, position), got {arguments.shown(value)}"
                )
            if kind != "position":
                what = f"the orientation of {name!r}"
                R = _rows(what, value[0] if kind == "pose" else value, (3, 3), batch)
                yield what, rotations(what, R).reshape(len(R), 9)
            if kind != "orientation":
                what = f"the position of {name!r}"
                yield what, _rows(what, value[1] if kind == "pose" else value, (3,), batch)

    def _by_name(self, e: Array) -> dict[str, Array]:
        bounds = np.cumsum([0, *(KINDS[kind][0] for kind in self.targets.values())])
        return {name: e[:, bounds[i] : bounds[i + 1]] for i, name in enumerate(self.targets)}


def _residuals(e: Array) -> Array:
    return np.abs(e).max(axis=1)


def _rows(what: str, value: Any, shape: tuple[int, ...], batch: bool) -> Array:
    """Return a value as (1, *shape), or (B, *shape) if a batch is allowed and given."""
    if batch and np.ndim(value) == len(shape) + 1:
        return arguments.rounded_array(what, value, (None, *shape))
    return arguments.rounded_array(what, value, shape)[None]


def _error(robot: Robot, q: Array, frame: Frame | str, kind: str, wanted: Array) -> tuple[Array, Array]:
    """Return (target minus actual, the Jacobian of the actual value), (n,) and (n, nv), world axes."""
    if frame == CENTER_OF_MASS:
        return wanted - center_of_mass(robot, q), center_of_mass_jacobian(robot, q)
    pose, J = frame_pose(robot, q, frame), frame_jacobian(robot, q, frame)
    if kind == "position":
        return wanted - pose.position, J[3:]
    turn = _rotation_vector(wanted[:9].reshape(3, 3) @ pose.rotation.T)
    return (turn, J[:3]) if kind == "orientation" else (np.concatenate([turn, wanted[9:] - pose.position]), J)


@checked
def center_of_mass_jacobian(robot: Robot, q: Array) -> Array:
    """Return J, (3, nv), with velocity of the center of mass = J @ v, [m/s], world axes.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: the linear rows of the centroidal momentum matrix over the mass; Orin, Goswami, Lee 2013.
    """
    return momentum_matrix(robot, q)[3:] / robot.mass


def _rotation_vector(R: Array) -> Array:
    """Return the rotation vector of a rotation matrix, (3,), [rad], of at most half a turn; it can be traced.

    The matrix 4 p p^T of the unit quaternion p is linear in R; its column of the largest diagonal entry gives p.
    """
    S = np.stack(
        [
            np.stack([1.0 + R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]),
            np.stack([R[2, 1] - R[1, 2], 1.0 + R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]]),
            np.stack([R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], 1.0 - R[0, 0] + R[1, 1] - R[2, 2], R[1, 2] + R[2, 1]]),
            np.stack([R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], 1.0 - R[0, 0] - R[1, 1] + R[2, 2]]),
        ]
    )
    column, largest = S[:, 0], S[0, 0]
    for k in range(1, 4):
        column, largest = where(S[k, k] > largest, S[:, k], column), np.maximum(S[k, k], largest)
    return quaternion_log(column / np.sqrt(column @ column))


def _weights_of(targets: Mapping[str, str], weights: Mapping[str, float]) -> Array:
    """Return the factor of each row of the errors."""
    for name in weights:
        if name not in targets:
            raise UnknownNameError("target", name, targets)
    given = {name: arguments.number(f"the weight of {name!r}", w, above=0.0) for name, w in weights.items()}
    return np.concatenate([np.full(KINDS[kind][0], given.get(name, 1.0)) for name, kind in targets.items()])


def _free_columns(robot: Robot, hold: Iterable[str]) -> Array:
    """Return the mask of the entries of v that may change, (nv,)."""
    free = np.ones(robot.nv, bool)
    joints = {joint.name: joint.v for joint in robot.joints}
    for name in hold:
        if name == "base":
            free[: robot.base.nv] = False
        else:
            free[joints[arguments.known_name("joint", name, joints)]] = False
    return free


def _joint_limits(robot: Robot) -> list[Limit]:
    """Return the joint coordinates that have a limit."""
    found = []
    for joint in robot.joints:
        physics, size = joint.definition.physics, joint.v.stop - joint.v.start
        if joint.q.stop - joint.q.start != size:
            continue  # a ball joint has no limits on coordinates
        lower, upper = np.broadcast_to(physics.lower, size), np.broadcast_to(physics.upper, size)
        for k in range(size):
            if np.isfinite(lower[k]) or np.isfinite(upper[k]):
                found.append(Limit(joint.v.start + k, joint.q.start + k, float(lower[k]), float(upper[k])))
    return found
