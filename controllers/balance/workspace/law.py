"""The workspace controller: the trunk is pulled to its set point by torques of the legs it stands on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from controllers.balance.workspace.distribution import grasp
from controllers.balance.workspace.feet import Foot, central_body, feet_of
from controllers.balance.workspace.limits import Limits, Program
from controllers.balance.workspace.passes import check_tree, outward_pass
from controllers.balance.workspace.plan import Plan, Workspace
from controllers.balance.workspace.poses import standing_at, target_of
from controllers.balance.workspace.posture import Servo
from controllers.balance.workspace.wrench import Gain, Gains, Path, gain_matrix
from controllers.footing import check_footing
from legged.errors import DefinitionError, LeggedError, UnknownNameError
from legged.ground.ground import Ground
from legged.robot.placement import vector3
from legged.robot.robot import Robot
from legged.spatial import Array

_GAINS = ("kp", "kv", "kp_turn", "kv_turn")


@dataclass(eq=False)
class WorkspaceBalance:
    """Balance by workspace control: trunk at a set point, wrenches shared among standing feet, torques passed outward.

    The trunk is asked to accelerate as position and attitude errors want (algorithm 4); the wrench that this takes is
    its articulated inertia and bias, with all limbs on it and feet that stand fast (1 to 3); feet give that wrench with
    the least sum of squares (5), and their joints pass it on (6). With an exact model and feet that stand,

        edd + K_v ed + K_p e = 0

    for the trunk's position. Nothing is measured but the state; nothing keeps feet from pulling or sliding unless
    `limits` do.

    Attributes:
        position: Of the trunk's point, (3,), [m], world; a formula of time; None holds it where a run starts.
        orientation: Of the trunk: quaternion (4,), w first; roll, pitch, yaw (3,), [rad]; a formula of time for either;
            None holds it as it starts.
        kp, kv: Of position, [1/s^2], and velocity, [1/s]: one number, (3,) or (3, 3), world axes.
        kp_turn, kv_turn: Of attitude and angular velocity, likewise. The error is sin(theta / 2) for a turn by theta.
        stance: Names of the links or contact points that stand; None for all feet; "measured" for those that feel more
            than `touch` times the robot's weight: torques then jump when feet touch down.
        weights: How readily a foot takes load, by its name; 1 where none is given. One number, or one each for moments
            [1/m^2] and forces.
        point: What `position` is of, (3,), [m], axes of the base's link; the trunk's center of mass by default.
        posture: Of joints that carry no stance: position, [1/s^2], velocity, [1/s]. They come back to where they were
            when the run started, and their torques count in the trunk's.
        others: Torques of these joints, (nj,), from (t, q, v), in place of the posture.
        big_base: Mass that stands for the ground at each foot, in trunks.
        exact: Whether feet stand exactly instead, see `exact`.
        limits: What feet and motors can give, see `Limits`; solved in Python, not compiled.

    Source:
        Wendlandt 1997; defaults are the paper's, section 4.
    """

    position: Sequence[float] | Array | Path | None = None
    orientation: Sequence[float] | Array | Path | None = None
    kp: Gain = (50.0, 50.0, 200.0)
    kv: Gain = (7.07, 7.07, 14.142)
    kp_turn: Gain = 50.0
    kv_turn: Gain = 7.07
    stance: Sequence[str] | str | None = None
    weights: Mapping[str, float | Sequence[float]] | None = None
    point: Sequence[float] | None = None
    posture: tuple[float, float] = (100.0, 20.0)
    others: Callable[[Any, Array, Array], Array] | None = None
    big_base: float = 1e6
    exact: bool = False
    limits: Limits | None = None
    touch: float = 0.02
    _workspace: Workspace | None = field(default=None, init=False, repr=False)

    def start(self, robot: Robot, ground: Ground | None, q: Array, v: Array) -> Array:
        """Fit the law to a robot and return the initial memory, (0,).

        Raises:
            DefinitionError: For feet that cannot hold the trunk, a robot that stands on none or on a fixed base, and
                settings that mean nothing. UnknownNameError: for feet that are not there.
            ShapeError, NotFiniteError: for set points and gains of the wrong form.
            MissingError: for limits without their solver.
        """
        check_tree(robot)
        feet, center = self._standing(robot), self._point_of(robot)
        _check_feet(robot, feet, q)
        self._workspace = Workspace(
            robot,
            feet,
            self._weights(feet),
            central_body(robot),
            center,
            target_of(robot, q, center, self.position, self.orientation),
            Gains(*(gain_matrix(name, getattr(self, name)) for name in _GAINS)),
            Servo(robot, feet, self.posture, self.others, q),
            None if self.exact else _positive("big_base", self.big_base),
            self._touch(robot),
            None if self.limits is None else Program(self.limits, robot),
        )
        return np.zeros(0)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,); the base's rows are zero. `wrenches` count for a measured stance."""
        return self.plan(t, q, v, wrenches).tau

    def plan(self, t: Any, q: Array, v: Array, wrenches: Array | None = None) -> Plan:
        """Return what the law finds on the way to its torques, see `Workspace.plan`."""
        if self._workspace is None:
            raise LeggedError("WorkspaceBalance knows no robot yet; call start(robot, ground, q, v) first")
        return self._workspace.plan(t, q, v, wrenches)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at rest, soles level on the ground at z = 0, the trunk at its set point as far as it has one.

        Raises:
            ReachError: for a set point that its legs cannot reach from a standing posture, see `home_of`.
        """
        return standing_at(robot, self.position, self.orientation, self._point_of(robot)), np.zeros(robot.nv)

    def _standing(self, robot: Robot) -> tuple[Foot, ...]:
        if isinstance(self.stance, str) and self.stance != "measured":
            raise DefinitionError(f'stance must be None, names of feet or "measured", got {self.stance!r}')
        return feet_of(robot, None if isinstance(self.stance, str) else self.stance)

    def _touch(self, robot: Robot) -> float | None:
        """Return the force above which a foot stands, [N], or None if all always do."""
        if self.stance != "measured":
            return None
        return _positive("touch", self.touch) * robot.mass * float(np.linalg.norm(robot.gravity))

    def _weights(self, feet: Sequence[Foot]) -> Array:
        given = dict(self.weights or {})
        for name in given:
            if name not in {foot.name for foot in feet}:
                raise UnknownNameError("standing foot", name, [foot.name for foot in feet])
        return np.concatenate([_weights(foot, given.get(foot.name, 1.0)) for foot in feet])

    def _point_of(self, robot: Robot) -> Array:
        """Return the point that `position` is of, (3,), [m], base axes."""
        if self.point is None:
            return np.asarray(central_body(robot).center)
        link = robot.links[0]
        return link.position + link.rotation @ vector3("the point of the set point", self.point)


def _weights(foot: Foot, weight: Any) -> Array:
    """Return the weight of each number of a foot's wrench, (rows,)."""
    given = np.asarray(weight, dtype=float)
    if given.shape not in ((), (2,)) or not np.isfinite(given).all() or not (given > 0.0).all():
        raise DefinitionError(
            f"the weight of foot {foot.name!r} must be one number above 0, or two, for moments and forces, got {given}"
        )
    moment, force = np.broadcast_to(given, 2)
    return np.array([moment if row < 3 else force for row in foot.rows])


def _positive(name: str, value: float) -> float:
    if not (np.isfinite(value) and value > 0.0):
        raise DefinitionError(f"{name} must be a number above 0, got {value}")
    return float(value)


def _check_feet(robot: Robot, feet: Sequence[Foot], q: Array) -> None:
    G = np.hstack(grasp(robot, outward_pass(robot, q, np.zeros(robot.nv)), feet))
    check_footing(robot, [foot.name for foot in feet], robot.base.motion_matrix(q[: robot.base.nq]).T @ G)
