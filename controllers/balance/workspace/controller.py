"""The workspace controller of one robot: the six algorithms in sequence, and servos of joints that carry no foot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from controllers.balance.workspace.distribution import (
    STAGE_5,
    FootForceQP,
    grasp_matrices,
    joint_torques,
    least_norm_wrenches,
    point_force_matrix,
)
from controllers.balance.workspace.dynamics import (
    STAGE_1,
    JointTorque,
    OutwardPass,
    WorkspaceDynamics,
    add_big_bases,
    constrain_feet,
    inward_pass,
    outward_pass,
)
from controllers.balance.workspace.feet import StanceFoot
from controllers.balance.workspace.set_point import (
    STAGE_4,
    FeedbackGains,
    Path,
    base_motion,
    desired_acceleration,
    desired_motion,
)
from legged.compiler import Kernel, compile
from legged.compiler.ir import stage, where
from legged.errors import DefinitionError, LeggedError, ShapeError, SingularError
from legged.robot.body import Body
from legged.robot.configuration import scatter_add
from legged.robot.inertia import Inertia
from legged.robot.robot import Robot
from legged.spatial import Array, sum_of

_AIR_WEIGHT = 1e-6  # weight of a foot in the air, relative to standing feet, in the distribution of the wrench
Torques = Callable[[Any, Array, Array], Array]


class Plan(NamedTuple):
    """Torques of the workspace controller and the quantities that lead to them, in base axes.

    Attributes:
        P: Workspace inertia, (6, 6), about the base's origin.
        z: Workspace bias force, (6,), about the base's origin: a wrench F on the base gives it the acceleration td with
            F = P td + z.
        acceleration: Desired td, [angular acceleration; acceleration of the origin], (6,), [rad/s^2, m/s^2].
        wrench: P td + z, (6,), [N m, N], about the base's origin.
        forces: Wrench of each foot, the components `rows` of [n; f], about the foot's position, [N m, N].
        tau: Generalized forces, (nv,).
    """

    P: Array
    z: Array
    acceleration: Array
    wrench: Array
    forces: list[Array]
    tau: Array


class PostureServo:
    """Servo of the joints that lead to no standing foot: tau = D (k_p e + k_d ed) + torque for zero acceleration.

    D is the inertia at the joint with free joints beyond it. The torque for zero acceleration compensates weight,
    springs and velocity products. The error obeys edd + k_d ed + k_p e = 0 if the parent does not accelerate.

    Args:
        robot: The robot.
        feet: The feet that may stand.
        gains: k_p, [1/s^2], and k_d, [1/s].
        others: Function of (t, q, v) that returns joint torques, (nj,), to be used in place of the servo, or None.
        home: Configuration that defines the desired joint positions, (nq,).
    """

    parameter_names = ("robot", "gains", "others", "home")

    def __init__(
        self, robot: Robot, feet: Sequence[StanceFoot], gains: tuple[float, float], others: Torques | None, home: Array
    ):
        if len(gains) != 2 or not all(np.isfinite(gain) and gain >= 0.0 for gain in gains):
            raise DefinitionError(f"posture must be two gains that are not negative, [1/s^2] and [1/s], got {gains}")
        self.robot, self.gains, self.others, self.home = robot, gains, others, np.array(home, dtype=float)
        self.feet_beyond = [
            [i for i, foot in enumerate(feet) if k in robot.ancestors(foot.body)] for k in range(len(robot.bodies))
        ]

    def joint_torque(self, t: Any, q: Array, v: Array, loads: Sequence[Any]) -> JointTorque:
        """Return the torque of each joint, as `inward_pass` needs it; zero for joints that lead to standing feet.

        Args:
            t: Time, [s].
            q: Configuration, (nq,).
            v: Velocity, (nv,).
            loads: 1 for each standing foot, 0 for each foot in the air.
        """
        given = None if self.others is None else self._given(t, q, v)

        def torque(body: Body, D: Array, hold: Array) -> Array:
            free: Any = 1.0
            for i in self.feet_beyond[body.index]:
                free = free * (1.0 - loads[i])
            if isinstance(free, float) and free == 0.0:
                return np.zeros(body.nv)
            return free * (D @ self._acceleration(body, q, v) + hold if given is None else given[body.v])

        return torque

    def _acceleration(self, body: Body, q: Array, v: Array) -> Array:
        kp, kd = self.gains
        error = body.motion.difference(q[body.q], self.home[body.q])
        return kp * error - kd * v[body.v]

    def _given(self, t: Any, q: Array, v: Array) -> Array:
        assert self.others is not None
        torques = np.asanyarray(self.others(t, q, v))
        if torques.shape != (self.robot.nj,):
            raise ShapeError(f"others must return ({self.robot.nj},), one torque per joint, got shape {torques.shape}")
        return np.concatenate([np.zeros(self.robot.base.nv), torques])


@dataclass(frozen=True, eq=False)
class WorkspaceController:
    """A started `WorkspaceBalance`.

    Attributes:
        robot: The robot.
        feet: The feet that may stand.
        weights: Weights of the components of their wrenches, (rows,).
        central: Inertia of the trunk.
        center: Control point of the trunk, (3,), [m], base axes.
        set_point: Position and orientation of the control point, as `desired_motion` takes them.
        gains: Gains of algorithm 4.
        servo: Servo of joints that lead to no standing foot.
        big_base: c of algorithm 3, or None for feet that do not accelerate.
        threshold: Contact force above which a foot stands, [N], or None if all feet always stand.
        program: Quadratic program of limited foot forces, or None.
    """

    robot: Robot
    feet: tuple[StanceFoot, ...]
    weights: Array
    central: Inertia
    center: Array
    set_point: tuple[Array | Path, Array | Path]
    gains: FeedbackGains
    servo: PostureServo
    big_base: float | None
    threshold: float | None
    program: FootForceQP | None

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,); zero for the base. `phase` and `memory` are not used.

        Args:
            t: Time, [s].
            phase: Number of switches that have passed.
            q: Configuration, (nq,).
            v: Velocity, (nv,).
            wrenches: Wrenches on the links, (n_links, 6), about their origins in link axes, for a measured stance.
            memory: Memory, (0,).
        """
        return self.plan(t, q, v, wrenches).tau

    def plan(self, t: Any, q: Array, v: Array, wrenches: Array | None = None) -> Plan:
        """Return the results of the six algorithms at a state. The function can be traced unless there are limits.

        Args:
            t: Time, [s].
            q: Configuration, (nq,).
            v: Velocity, (nv,).
            wrenches: Wrenches on the links, (n_links, 6), about their origins in link axes, for a measured stance.

        Raises:
            SingularError: The standing feet cannot hold the base.
        """
        if self.program is not None:
            return self._limited_plan(self.program, t, q, v, wrenches)
        out = outward_pass(self.robot, q, v)
        loads = self._loads(wrenches)
        dynamics = self._dynamics(t, q, v, out, loads)
        acceleration, wrench = self._desired(t, q, out, dynamics)
        with stage(STAGE_5):
            G, P_0 = grasp_matrices(out, self.feet), self._motion_matrix(q)
            F = least_norm_wrenches(P_0.T @ np.concatenate(G, axis=1), P_0.T @ wrench, self._load_weights(loads))
            forces = self._split(F)
            contributions = [(foot.body, G_f @ f) for foot, G_f, f in zip(self.feet, G, forces, strict=True)]
        tau = joint_torques(self.robot, out, contributions)
        total = scatter_add(self.robot, [own + dynamics.tau.get(k, 0.0) for k, own in enumerate(tau)])
        return Plan(dynamics.P, dynamics.z, acceleration, wrench, forces, self._finite(total))

    def _finite(self, tau: Array) -> Array:
        """Return the torques, or raise SingularError if numbers are not finite."""
        if tau.dtype != object and not np.isfinite(tau.astype(float)).all():
            raise SingularError(
                f"the feet {[foot.name for foot in self.feet]} of robot {self.robot.name!r} cannot hold its base in "
                f"this posture, or the inertia at a joint is zero"
            )
        return tau

    def _limited_plan(self, program: FootForceQP, t: Any, q: Array, v: Array, wrenches: Array | None) -> Plan:
        """Return the plan with limited forces; a compiled kernel computes the terms of the quadratic program."""
        if np.asarray(q).dtype == object:
            raise LeggedError("WorkspaceBalance with limits solves a quadratic program, which cannot be traced")
        measured = np.zeros((len(self.robot.links), 6)) if wrenches is None else wrenches
        P, z, acceleration, wrench, G, force, weights, S, T, own = self._kernel(t, q, v, measured)
        F = program.solve(G, force, weights, S, T, own)
        return Plan(P, z, acceleration, wrench, self._split(F), T @ F + own)

    @cached_property
    def _kernel(self) -> Kernel[..., Any]:
        return compile(
            lambda robot, t, q, v, wrenches: self._program_terms(t, q, v, wrenches), self.robot, wrenches=True
        )

    def _program_terms(self, t: Any, q: Array, v: Array, wrenches: Array) -> tuple[Array, ...]:
        """Return (P, z, td, F) of `Plan` and (G, wrench, weights, S, T, own) of `FootForceQP.solve`."""
        robot, out = self.robot, outward_pass(self.robot, q, v)
        loads = self._loads(wrenches)
        dynamics = self._dynamics(t, q, v, out, loads)
        acceleration, wrench = self._desired(t, q, out, dynamics)
        grasps, P_0, T = grasp_matrices(out, self.feet), self._motion_matrix(q), []
        for foot, G in zip(self.feet, grasps, strict=True):
            T += [scatter_add(robot, joint_torques(robot, out, [(foot.body, column)])) for column in G.T]
        own = scatter_add(robot, [dynamics.tau.get(body.index, np.zeros(body.nv)) for body in robot.bodies])
        S = point_force_matrix(robot, out, self.feet, robot.base.pose(q[: robot.base.nq])[0])
        problem = P_0.T @ np.concatenate(grasps, axis=1), P_0.T @ wrench, self._load_weights(loads)
        return dynamics.P, dynamics.z, acceleration, wrench, *problem, S, np.array(T).T, own

    def _dynamics(self, t: Any, q: Array, v: Array, out: OutwardPass, loads: Sequence[Any]) -> WorkspaceDynamics:
        robot, feet, torque = self.robot, self.feet, self.servo.joint_torque(t, q, v, loads)
        if self.big_base is not None:
            return inward_pass(robot, out, *add_big_bases(out, robot, feet, loads, self.central, self.big_base), torque)
        free = inward_pass(robot, out, [body.regrouped.M for body in robot.bodies], out.z, torque)
        return constrain_feet(robot, out, free, feet, loads)

    def _desired(self, t: Any, q: Array, out: OutwardPass, dynamics: WorkspaceDynamics) -> tuple[Array, Array]:
        """Return (td, F) of algorithm 4, (6,) each, about the base's origin in its axes."""
        with stage(STAGE_1):
            R, _ = self.robot.base.pose(q[: self.robot.base.nq])
            actual = base_motion(self.robot, q, out.t[0], self.center)
        with stage(STAGE_4):
            desired = desired_motion(*self.set_point, t)
            td = desired_acceleration(actual, desired, self.gains, R, self.center)
            return td, dynamics.P @ td + dynamics.z

    def _motion_matrix(self, q: Array) -> Array:
        """Return P_0, (6, n0), from the base's velocities to its twist; P_0^T maps wrenches to generalized forces."""
        return self.robot.base.motion_matrix(q[: self.robot.base.nq])

    def _split(self, F: Array) -> list[Array]:
        return np.split(F, np.cumsum([len(foot.rows) for foot in self.feet])[:-1])

    def _load_weights(self, loads: Sequence[Any]) -> Array:
        """Return the weights of the components of the feet's wrenches, (rows,), small for feet in the air."""
        factors = [k + _AIR_WEIGHT * (1.0 - k) for k, foot in zip(loads, self.feet, strict=True) for _ in foot.rows]
        return self.weights * np.array(factors)

    def _loads(self, wrenches: Array | None) -> list[Any]:
        """Return 1 for each standing foot and 0 for each foot in the air; 1 for all feet if all are in the air."""
        if self.threshold is None or wrenches is None:
            return [1.0] * len(self.feet)
        forces = [wrenches[foot.link][3:] for foot in self.feet]
        stands = [where(f @ f > self.threshold**2, 1.0, 0.0) for f in forces]
        flying = sum_of(stands) < 0.5
        return [where(flying, 1.0, k) for k in stands]
