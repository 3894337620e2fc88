"""Inverse kinematics: configurations with frames and the center of mass at given targets, within joint limits.

    ik = legged.InverseKinematics(robot, {"leg1_foot": "position", "trunk": "pose"})
    solution = ik.solve(start, {"leg1_foot": (-0.6, -0.25, 0.0), "trunk": (R, p)})
    solution.q, solution.residual, solution.converged
    many = ik.solve_batch(starts, {"leg1_foot": points, "trunk": (R, p)})

The nonlinear least-squares problem is solved by the Levenberg-Marquardt method on the configuration manifold
(`legged.algorithms.levenberg_marquardt`), compiled once for a robot and a set of targets. Its damping adapts to the
decrease of the error, so that steps stay bounded near singular configurations and converge quadratically elsewhere.
Second-order steps leave stationary configurations whose error exceeds the tolerance, such as those of straight legs.

A `legged.loops.ClosedRobot` can take the place of the robot: the loops are closed in the solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from legged import arguments
from legged.algorithms.centroidal import center_of_mass_jacobian
from legged.algorithms.levenberg_marquardt import LevenbergMarquardt, Minimum, joint_limits, nearest_of
from legged.checked import checked
from legged.compiler import where
from legged.dynamics.arguments import read
from legged.dynamics.frames import Frame, frame_jacobian, frame_pose
from legged.dynamics.kinematics import center_of_mass
from legged.errors import ArgumentError, ReachError, ShapeError, UnknownNameError
from legged.robot.configuration import difference, integrate, random_configuration
from legged.robot.placement import rotations
from legged.robot.robot import Robot
from legged.rotations import quaternion_log
from legged.spatial import Array

CENTER_OF_MASS = "center_of_mass"


class TargetKind(NamedTuple):
    """A kind of target: its number of equations, and how many numbers describe it."""

    equations: int
    numbers: int
    has_orientation: bool = True
    has_position: bool = True


KINDS = {"position": TargetKind(3, 3, False), "orientation": TargetKind(3, 9, True, False), "pose": TargetKind(6, 12)}
"""Kinds of targets by name."""


class RobotWithLoops(Protocol):
    """A spanning tree with constraints on its configuration.

    Attributes:
        robot: The spanning tree.
    """

    robot: Robot

    def closing_errors(self, q: Array) -> tuple[Array, Array]:
        """Return (errors (m,), [m] or 1, zero where the loops are closed, and their derivative by q, (m, nv)).

        Args:
            q: Configuration, (nq,), mixed units.
        """
        ...


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
        robot: The robot; of one with closed loops, the spanning tree.
        targets: Kind of each target by name of the frame, link or contact point, or "center_of_mass".
    """

    def __init__(
        self,
        robot: Robot | RobotWithLoops,
        targets: Mapping[str, str],
        hold: Iterable[str] = (),
        limits: bool = True,
        weights: Mapping[str, float] | None = None,
        frames: Mapping[str, Frame] | None = None,
    ):
        """Compile the errors of the targets and their Jacobian.

        Args:
            robot: The robot, or one with closed loops.
            targets: Names of links, contact points, entries of `frames`, or "center_of_mass", each with "position",
                "orientation" or "pose"; the center of mass has a position only.
            hold: Names of joints that keep their initial positions; "base" for the floating base.
            limits: Whether joint limits are enforced, those of joints that follow others included.
            weights: Factor of each target's errors in the sum of squares, by name; 1 where none is given. They matter
                only where not all targets can be reached.
            frames: Frames by names of the user's own, see `legged.Frame`.

        Raises:
            ArgumentError: For invalid kinds or weights, or limits without a common position.
            UnknownNameError: For a name that the robot lacks.
        """
        closed = None if isinstance(robot, Robot) or not hasattr(robot, "closing_errors") else robot
        tree = robot if closed is None else closed.robot
        self.robot: Robot = arguments.instance("robot", tree, Robot, "a legged.Robot")
        self.targets = dict(targets)
        if not self.targets:
            raise ArgumentError("targets must name at least one frame, for example {'trunk': 'pose'}")
        frames = dict(frames or {})
        q = self.robot.neutral()
        for name, kind in self.targets.items():
            if kind not in KINDS or (name == CENTER_OF_MASS and KINDS[kind].has_orientation):
                allowed = "'position'" if name == CENTER_OF_MASS else ", ".join(map(repr, KINDS))
                raise ArgumentError(
                    f"the kind of target {name!r} must be one of {allowed}, got {arguments.shown(kind)}"
                )
            if name != CENTER_OF_MASS:
                frame_pose(self.robot, q, frames.get(name, name))
        self._free = _free_columns(self.robot, hold)
        self._limits = joint_limits(self.robot) if limits else []

        def errors(q: Array, wanted: Array) -> tuple[Array, Array]:
            rows, slopes, at = [], [], 0
            for name, kind in self.targets.items():
                size = KINDS[kind].numbers
                error, slope = _error(self.robot, q, frames.get(name, name), KINDS[kind], wanted[at : at + size])
                at += size
                rows.append(error)
                slopes.append(slope)
            if closed is not None:
                phi, slope = closed.closing_errors(q)
                rows.append(-phi)
                slopes.append(slope)
            return np.concatenate(rows), np.concatenate(slopes)

        size = sum(KINDS[kind].numbers for kind in self.targets.values())
        factors = _weights_of(self.targets, weights or {})
        if closed is not None:
            factors = np.concatenate([factors, np.ones(len(closed.closing_errors(q)[0]))])
        self._method = LevenbergMarquardt(self.robot, errors, size, factors, self._free, self._limits)

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
            attempts: Number of starts, `start` first. Where it fails or has to leave a stationary configuration, the
                others follow, ever farther from `start` towards random joint positions within the limits, and the
                solution nearest to `start` is returned.
            seed: Seed of the random positions.
            partial: Return the best configuration found, with `converged` False, instead of raising ReachError.

        Raises:
            ReachError: If no attempt meets the tolerance; `residual` holds the smallest error.
            ShapeError, NotFiniteError: For a start or targets that are no numbers of the right shape.
            ArgumentError, UnknownNameError: For a target without a value, or a value without a target.
            DefinitionError: For an orientation that is no rotation.
        """
        (q,) = read(self.robot, start=start)
        wanted = np.concatenate([part for _, part in self._wanted(values, batch=False)], axis=1)
        solutions = self._solve(q[None], wanted, tolerance, iterations, attempts, seed)
        errors = {name: e[0] for name, e in solutions.errors.items()}
        residual, tried, converged = solutions.residual.item(), solutions.iterations.item(), solutions.converged.item()
        if converged or partial:
            return IKSolution(solutions.q[0], residual, tried, converged, errors)
        worst = max(errors, key=lambda name: float(np.abs(errors[name]).max(initial=0.0)))
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

            solutions = solver.solve_batch(q, {"leg1_foot": points})  # (nq,) or (B, nq), (B, 3)
            solutions.q[solutions.converged]

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
            ArgumentError, UnknownNameError, DefinitionError: As in `solve`.
        """
        rows = np.atleast_2d(arguments.rounded_array("start", start))
        q = np.array([read(self.robot, start=row)[0] for row in rows])
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
        seed = arguments.whole("seed", seed, least=0)
        best = self._method.minimize(q, wanted, tolerance, iterations)
        members = np.flatnonzero(~(_residuals(best.e) <= tolerance) | (best.escapes > 0))
        if attempts > 1 and members.size:
            others = self._restarted(q[members], attempts - 1, np.random.default_rng(seed)).reshape(-1, q.shape[1])
            members = np.tile(members, attempts - 1)
            minima = self._method.minimize(others, wanted[members], tolerance, iterations)
            own = np.unique(members)
            minima = Minimum(*(np.concatenate([x[own], y]) for x, y in zip(best, minima, strict=True)))
            numbers, rows = nearest_of(self.robot, q, minima, np.concatenate([own, members]), tolerance)
            for of_all, new in zip(best, minima, strict=True):
                of_all[numbers] = new[rows]
        residual = _residuals(best.e)
        return IKSolutions(best.q, residual, best.iterations, residual <= tolerance, self._by_name(best.e))

    def _restarted(self, q: Array, count: int, rng: np.random.Generator) -> Array:
        """Return starts for some members, (count, B, nq): the i-th ones i / count of the way to random joint positions.

        Args:
            q: Initial configurations, (B, nq). count: Number of starts of each. rng: The same starts for each member.
        """
        starts = np.empty((count, *q.shape))
        for i in range(count):
            other, move = self._random(rng), np.zeros(self.robot.nv)
            for b, row in enumerate(q):
                entries = self._free & (np.arange(self.robot.nv) >= self.robot.base.nv)
                move[entries] = difference(self.robot, row, other)[entries]
                starts[i, b] = integrate(self.robot, row, (i + 1) / count * move)
        return starts

    def _random(self, rng: np.random.Generator) -> Array:
        """Return a random configuration within the joint limits."""
        q = random_configuration(self.robot, rng)
        for limit in self._limits:
            if np.isfinite(limit.lower) and np.isfinite(limit.upper):
                q[limit.q] = rng.uniform(limit.lower, limit.upper)
        return q

    def _wanted(self, values: Mapping[str, Any], batch: bool) -> Iterator[tuple[str, Array]]:
        """Yield the orientation and position of each target: its name in words, and its numbers, (1, n) or (B, n)."""
        for name in self.targets:
            if name not in values:
                raise ArgumentError(f"values lacks the target {name!r}; give one for each of {', '.join(self.targets)}")
        for name in values:
            if name not in self.targets:
                raise UnknownNameError("target", name, self.targets)
        for name, kind in self.targets.items():
            value, is_pose = values[name], KINDS[kind].has_orientation and KINDS[kind].has_position
            if is_pose and (not isinstance(value, Sequence) or len(value) != 2):
                raise ArgumentError(
                    f"the target {name!r} must be (orientation, position), got {arguments.shown(value)}"
                )
            orientation, position = value if is_pose else (value, value)
            if KINDS[kind].has_orientation:
                what = f"the orientation of {name!r}"
                R = _rows(what, orientation, (3, 3), batch)
                yield what, rotations(what, R).reshape(len(R), 9)
            if KINDS[kind].has_position:
                what = f"the position of {name!r}"
                yield what, _rows(what, position, (3,), batch)

    def _by_name(self, e: Array) -> dict[str, Array]:
        bounds = np.cumsum([0, *(KINDS[kind].equations for kind in self.targets.values())])
        return {name: e[:, bounds[i] : bounds[i + 1]] for i, name in enumerate(self.targets)}


def _residuals(e: Array) -> Array:
    return np.abs(e).max(axis=1)


def _rows(what: str, value: Any, shape: tuple[int, ...], batch: bool) -> Array:
    """Return a value as (1, *shape), or (B, *shape) if a batch is allowed and given."""
    if batch and np.ndim(value) == len(shape) + 1:
        return arguments.rounded_array(what, value, (None, *shape))
    return arguments.rounded_array(what, value, shape)[None]


def _error(robot: Robot, q: Array, frame: Frame | str, kind: TargetKind, wanted: Array) -> tuple[Array, Array]:
    """Return (target minus actual, the Jacobian of the actual value), (n,) and (n, nv), world axes."""
    if frame == CENTER_OF_MASS:
        return wanted - center_of_mass(robot, q), center_of_mass_jacobian(robot, q)
    pose, J = frame_pose(robot, q, frame), frame_jacobian(robot, q, frame)
    if not kind.has_orientation:
        return wanted - pose.position, J[3:]
    turn = _rotation_vector(wanted[:9].reshape(3, 3) @ pose.rotation.T)
    return (np.concatenate([turn, wanted[9:] - pose.position]), J) if kind.has_position else (turn, J[:3])


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
    return np.concatenate([np.full(KINDS[kind].equations, given.get(name, 1.0)) for name, kind in targets.items()])


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
