"""Balance of a standing robot by workspace control: the definition of the law and its checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.balance.workspace.controller import PostureServo, WorkspaceController
from controllers.balance.workspace.distribution import FootForceQP, Limits, grasp_matrices
from controllers.balance.workspace.dynamics import outward_pass
from controllers.balance.workspace.feet import StanceFoot, central_body, feet_of
from controllers.balance.workspace.set_point import (
    FeedbackGains,
    Gain,
    Path,
    gain_matrix,
    set_point_of,
    standing_configuration,
)
from controllers.law import check_foot_support, check_gains
from legged.arguments import known_name
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.configuration import read
from legged.robot.placement import vector3
from legged.robot.robot import Robot
from legged.spatial import Array

_GAINS = ("kp", "kv", "kp_orientation", "kv_orientation")


@checked
@dataclass(frozen=True, eq=False)
class WorkspaceBalance:
    """Balance by workspace control of the trunk, with a distribution of its wrench to the standing feet.

    Feedback of the trunk's position and orientation gives its desired acceleration (algorithm 4). The trunk's
    articulated inertia and bias, with all limbs and with fixed feet, give the wrench for it (1 to 3). The feet apply
    this wrench with the least sum of squares (5), and joint torques transmit it (6). With an exact model and fixed feet
    the position error obeys

        edd + K_v ed + K_p e = 0.

    The law uses the measured state only. Feet can pull or slide unless there are `limits`.

    Attributes:
        position: Desired position of the trunk's control point, (3,), [m], world axes, or a function of time; None for
            the initial position.
        orientation: Desired orientation of the trunk: quaternion (4,), w first, or roll, pitch, yaw (3,), [rad], or a
            function of time that returns either; None for the initial orientation.
        kp, kv: Gains of position, [1/s^2], and velocity, [1/s]: one number, (3,) or (3, 3), world axes.
        kp_orientation, kv_orientation: Gains of orientation, [1/s^2], and angular velocity, [1/s], of the same forms.
            The error of a rotation by theta is sin(theta / 2).
        stance: Names of links or contact points that stand; None for all feet; "measured" for the feet with a contact
            force above `touch` times the robot's weight, in which case torques jump at touch-down.
        weights: Weights of feet in the distribution, by name; 1 by default. One number, or one for moments [1/m^2] and
            one for forces.
        point: Control point, (3,), [m], axes of the base's link; the trunk's center of mass by default.
        posture: Gains of position, [1/s^2], and velocity, [1/s], of joints that lead to no standing foot. Their desired
            positions are the initial ones, and the trunk's bias includes their torques.
        others: Function of (t, q, v) that returns torques of these joints, (nj,), in place of `posture`.
        big_base: Mass that represents the ground at each foot, in units of the trunk's inertia.
        exact: Whether feet are exactly fixed, in place of `big_base`; see `constrain_feet`.
        limits: Limits of foot forces and torques. The law then runs in Python and cannot be compiled.
        touch: Contact force above which a foot stands if the stance is "measured", in units of the robot's weight.

    Source:
        Wendlandt 1997; default values are the paper's, section 4.
    """

    position: Sequence[float] | Array | Path | None = None
    orientation: Sequence[float] | Array | Path | None = None
    kp: Gain = (50.0, 50.0, 200.0)
    kv: Gain = (7.07, 7.07, 14.142)
    kp_orientation: Gain = 50.0
    kv_orientation: Gain = 7.07
    stance: Sequence[str] | str | None = None
    weights: Mapping[str, float | Sequence[float]] | None = None
    point: Sequence[float] | None = None
    posture: tuple[float, float] = (100.0, 20.0)
    others: Callable[[Any, Array, Array], Array] | None = None
    big_base: float = 1e6
    exact: bool = False
    limits: Limits | None = None
    touch: float = 0.02

    def __post_init__(self) -> None:
        for name in _GAINS:
            gain_matrix(name, getattr(self, name))
        check_gains(self, "posture", "big_base", "touch")

    def start(
        self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array
    ) -> tuple[WorkspaceController, Array]:
        """Return (controller, memory) for a robot; the memory is empty, (0,).

        Args:
            robot: The robot.
            ground: The ground, which is not used.
            q: Initial configuration, (nq,).
            v: Initial velocity, (nv,).

        Raises:
            DefinitionError: The feet cannot hold the trunk, the robot has no feet, a fixed base or joints that follow
                others, or a setting is invalid.
            UnknownNameError: There is no foot with a name.
            ShapeError, NotFiniteError: A set point or gain has the wrong shape or is not finite.
            MissingError: The solver that `limits` needs is not installed.
        """
        read(robot, q=q, v=v)
        if robot.coupled_joints:
            raise DefinitionError(
                f"robot {robot.name!r} has joints that follow others or constant-velocity joints "
                f"({robot.coupled_joints[0]!r}), which workspace control does not support; build the robot without them"
            )
        if robot.base.nv == 0:
            raise DefinitionError(f"robot {robot.name!r} has a fixed base, which cannot be balanced")
        if isinstance(self.stance, str) and self.stance != "measured":
            raise DefinitionError(f'stance must be None, names of feet or "measured", got {self.stance!r}')
        feet = feet_of(robot, None if isinstance(self.stance, str) else self.stance)
        G = np.hstack(grasp_matrices(outward_pass(robot, q, np.zeros(robot.nv)), feet))
        P_0 = robot.base.motion_matrix(q[: robot.base.nq])
        check_foot_support(robot, [foot.name for foot in feet], P_0.T @ G)
        center, threshold = self._control_point(robot), None
        if self.stance == "measured":
            threshold = _positive("touch", self.touch) * robot.mass * float(np.linalg.norm(robot.gravity))
        controller = WorkspaceController(
            robot,
            feet,
            self._weights(feet),
            central_body(robot),
            center,
            set_point_of(robot, q, center, self.position, self.orientation),
            FeedbackGains(*(gain_matrix(name, getattr(self, name)) for name in _GAINS)),
            PostureServo(robot, feet, self.posture, self.others, q),
            None if self.exact else _positive("big_base", self.big_base),
            threshold,
            None if self.limits is None else FootForceQP(self.limits, robot),
        )
        return controller, np.zeros(0)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at rest, (nq,) and (nv,): soles level on the ground at z = 0, the trunk at its set point.

        Raises:
            ReachError: The legs cannot reach the ground from the set point, see `home_of`.
        """
        q = standing_configuration(robot, self.position, self.orientation, self._control_point(robot))
        return q, np.zeros(robot.nv)

    def _weights(self, feet: Sequence[StanceFoot]) -> Array:
        given = dict(self.weights or {})
        for name in given:
            known_name("standing foot", name, [foot.name for foot in feet])
        return np.concatenate([_foot_weights(foot, given.get(foot.name, 1.0)) for foot in feet])

    def _control_point(self, robot: Robot) -> Array:
        """Return the control point, (3,), [m], base axes."""
        if self.point is None:
            return np.asarray(central_body(robot).center)
        link = robot.links[0]
        return link.position + link.rotation @ vector3("the point of the set point", self.point)


def _foot_weights(foot: StanceFoot, weight: Any) -> Array:
    """Return the weights of the components of a foot's wrench, (rows,)."""
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
