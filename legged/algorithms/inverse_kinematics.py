"""Inverse kinematics: configurations with frames and the center of mass at given targets, within joint limits.

    ik = legged.InverseKinematics(robot, {"leg1_foot": "position", "trunk": "pose"})
    solution = ik.solve(start, {"leg1_foot": (0.6, 0.25, 0.0), "trunk": (R, p)})
    solution.q, solution.residual, solution.converged

The targets' errors and their Jacobian are traced and compiled once for a robot and a set of targets. The nonlinear
least-squares problem is solved by the Levenberg-Marquardt method on the configuration manifold, with damping that
adapts to the decrease of the error, so that steps stay bounded near singular configurations and converge quadratically
elsewhere. An active set enforces joint limits: joints that a step would move beyond a limit stay at the limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged import arguments
from legged.algorithms.centroidal import momentum_matrix
from legged.checked import checked
from legged.compiler import compile as compile_function
from legged.compiler import where
from legged.dynamics.arguments import read
from legged.dynamics.frames import Frame, frame_jacobian, frame_pose
from legged.dynamics.kinematics import center_of_mass
from legged.errors import ArgumentError, ReachError, UnknownNameError
from legged.robot.configuration import integrate, random_configuration
from legged.robot.joint import Follower
from legged.robot.placement import rotation3
from legged.robot.robot import Robot
from legged.rotations import quaternion_log
from legged.spatial import Array

CENTER_OF_MASS = "center_of_mass"
KINDS = {"position": (3, 3), "orientation": (3, 9), "pose": (6, 12)}
"""Kinds of targets: number of equations, and number of values that describe the target."""

_MOST_DAMPING, _LEAST_DAMPING = 1e8, 1e-13
_STATIONARY = 1e-12  # relative: the error cannot be reduced at first order


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
            ArgumentError: For kinds or weights that cannot be. UnknownNameError: for a name that the robot lacks.
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
        self._weights = _weights_of(self.targets, weights or {})
        self._free = _free_columns(robot, hold)
        self._limited = _limited(robot) if limits else []

        def step(robot: Robot, q: Array, dq: Array, wanted: Array) -> tuple[Array, Array, Array]:
            q = integrate(robot, q, dq)
            rows, slopes, at = [], [], 0
            for name, kind in self.targets.items():
                size = KINDS[kind][1]
                error, slope = _error(robot, q, frames.get(name, name), kind, wanted[at : at + size])
                at += size
                rows.append(error)
                slopes.append(slope)
            return q, np.concatenate(rows), np.concatenate(slopes)

        size = sum(KINDS[kind][1] for kind in self.targets.values())
        self._step = compile_function(step, robot, dq=(robot.nv,), wanted=(size,))

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
            ShapeError, NotFiniteError: for a start or targets that are no numbers of the right shape.
        """
        (q,) = read(self.robot, q=start)
        wanted = self._wanted(values)
        arguments.number("tolerance", tolerance, above=0.0)
        rng, best = np.random.default_rng(arguments.whole("seed", seed, least=0)), None
        for attempt in range(arguments.whole("attempts", attempts, least=1)):
            found = self._descend(self._restarted(q, rng) if attempt else q, wanted, tolerance, iterations)
            best = found if best is None or found.residual < best.residual else best
            if best.converged:
                return best
        assert best is not None
        if partial:
            return best
        worst = max(best.errors, key=lambda name: float(np.abs(best.errors[name]).max()))
        raise ReachError(
            f"inverse kinematics of robot {self.robot.name!r} left an error of {best.residual:.3g} (tolerance "
            f"{tolerance:.3g}), the largest at target {worst!r}: it may be out of reach; start nearer, free more "
            f"joints, give more attempts, or pass partial=True for the best configuration found",
            residual=best.residual,
        )

    def _descend(self, q: Array, wanted: Array, tolerance: float, iterations: int) -> IKSolution:
        """Return the last iterate of the Levenberg-Marquardt method."""
        nv, none, tried = self.robot.nv, np.zeros(self.robot.nv), 0
        q = self._step(q, self._clipped(q, none), wanted)[0]
        _, e, J = self._step(q, none, wanted)
        damping = 1e-4
        while tried < iterations and np.abs(e).max() > tolerance:
            weighted = self._weights[:, None] * J
            gradient, normal = weighted.T @ (self._weights * e), weighted.T @ weighted
            scale = max(float(normal.diagonal().max()), 1e-12)
            free = self._free & ~self._stopped(q, gradient)
            if np.abs(gradient[free]).max(initial=0.0) <= _STATIONARY * scale:
                break  # nothing that may move reduces the error
            cost = float(((self._weights * e) ** 2).sum())
            while tried < iterations:
                tried += 1
                dq = self._direction(q, gradient, normal + damping * scale * np.eye(nv), free)
                q_next, e_next, J_next = self._step(q, dq, wanted)
                if float(((self._weights * e_next) ** 2).sum()) < cost:
                    q, e, J, damping = q_next, e_next, J_next, max(0.1 * damping, _LEAST_DAMPING)
                    break
                damping *= 8.0
                if damping > _MOST_DAMPING:
                    tried = iterations
        residual = float(np.abs(e).max())
        return IKSolution(q, residual, tried, residual <= tolerance, self._by_name(e))

    def _direction(self, q: Array, gradient: Array, normal: Array, free: Array) -> Array:
        """Return the damped step; joints that would pass a limit move to it and no further."""
        dq, free = np.zeros(self.robot.nv), free.copy()
        while True:
            at = np.flatnonzero(free)
            if not at.size:
                return dq
            known = gradient[at] - normal[np.ix_(at, np.flatnonzero(~free))] @ dq[~free]
            dq[at] = np.linalg.solve(normal[np.ix_(at, at)], known)
            clipped = self._clipped(q, dq)
            beyond = free & (clipped != dq)
            if not beyond.any():
                return dq
            dq[beyond] = clipped[beyond]
            free &= ~beyond

    def _clipped(self, q: Array, dq: Array) -> Array:
        """Return a step that ends within the joint limits, (nv,)."""
        dq = dq.copy()
        for column, entry, lower, upper in self._limited:
            dq[column] = min(max(dq[column], lower - q[entry]), upper - q[entry])
        return dq

    def _stopped(self, q: Array, gradient: Array) -> Array:
        """Return the mask of the entries of v at a limit that a step would move beyond it, (nv,)."""
        stopped = np.zeros(self.robot.nv, bool)
        for column, entry, lower, upper in self._limited:
            at_limit = (q[entry] <= lower and gradient[column] < 0) or (q[entry] >= upper and gradient[column] > 0)
            stopped[column] = at_limit
        return stopped

    def _restarted(self, q: Array, rng: np.random.Generator) -> Array:
        """Return q with the free joints at random, within their limits."""
        other = random_configuration(self.robot, rng)
        new = q.copy()
        for body in self.robot.bodies:
            if not body.follows and body.v.start >= self.robot.base.nv and self._free[body.v].all():
                new[body.q] = other[body.q]
        for column, entry, lower, upper in self._limited:
            if self._free[column] and np.isfinite(lower) and np.isfinite(upper):
                new[entry] = rng.uniform(lower, upper)
        return new

    def _wanted(self, values: Mapping[str, Any]) -> Array:
        missing = [name for name in self.targets if name not in values]
        if missing:
            raise ArgumentError(
                f"values lacks the target {missing[0]!r}; give one for each of {', '.join(self.targets)}"
            )
        for name in values:
            if name not in self.targets:
                raise UnknownNameError("target", name, self.targets)
        parts = []
        for name, kind in self.targets.items():
            value = values[name]
            if kind == "pose":
                if not isinstance(value, Sequence) or len(value) != 2:
                    raise ArgumentError(
                        f"the target {name!r} must be (orientation, position), got {arguments.shown(value)}"
                    )
                parts += [_orientation(name, value[0]), arguments.array(f"the position of {name!r}", value[1], (3,))]
            elif kind == "orientation":
                parts.append(_orientation(name, value))
            else:
                parts.append(arguments.array(f"the position of {name!r}", value, (3,), "world axes, [m]"))
        return np.concatenate(parts)

    def _by_name(self, e: Array) -> dict[str, Array]:
        bounds = np.cumsum([0, *(KINDS[kind][0] for kind in self.targets.values())])
        return {name: e[bounds[i] : bounds[i + 1]] for i, name in enumerate(self.targets)}


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


def _orientation(name: str, value: Any) -> Array:
    return rotation3(
        f"the orientation of {name!r}", arguments.array(f"the orientation of {name!r}", value, (3, 3))
    ).ravel()


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


def _limited(robot: Robot) -> list[tuple[int, int, float, float]]:
    """Return (entry of v, entry of q, lower limit, upper limit) of the joint coordinates that have a limit."""
    found = []
    for joint in robot.joints:
        physics, size = joint.definition.physics, joint.v.stop - joint.v.start
        if joint.q.stop - joint.q.start != size or isinstance(joint, Follower):
            continue  # a ball joint has no limits on coordinates; a follower has those of its master
        lower, upper = np.broadcast_to(physics.lower, size), np.broadcast_to(physics.upper, size)
        for k in range(size):
            if np.isfinite(lower[k]) or np.isfinite(upper[k]):
                found.append((joint.v.start + k, joint.q.start + k, float(lower[k]), float(upper[k])))
    return found
