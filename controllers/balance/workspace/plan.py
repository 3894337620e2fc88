"""The six algorithms in a row, for a robot, its feet and a set point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from controllers.balance.workspace.distribution import STAGE_5, grasp, joint_torques, least_norm
from controllers.balance.workspace.dynamics import Inward, inward_pass, loaded
from controllers.balance.workspace.exact import stand_exactly
from controllers.balance.workspace.feet import Foot
from controllers.balance.workspace.limits import Program, of_points
from controllers.balance.workspace.passes import STAGE_1, Outward, outward_pass
from controllers.balance.workspace.poses import base_pose
from controllers.balance.workspace.posture import Servo
from controllers.balance.workspace.wrench import STAGE_4, Gains, Path, desired_acceleration, wanted_pose
from legged.compiler import Kernel, compile
from legged.compiler.ir import where
from legged.compiler.ir.annotations import stage
from legged.errors import LeggedError, SingularError
from legged.robot.configuration import scatter_add
from legged.robot.inertia import Inertia
from legged.robot.robot import Robot
from legged.spatial import Array, sum_of

_BARELY = 1e-6  # weight of a foot in the air beside those that stand: it gives what they cannot


class Plan(NamedTuple):
    """What the controller found out on the way to its torques, base axes.

    Attributes:
        P, z: Workspace inertia and bias, (6, 6) and (6,): a wrench F on the base accelerates it by td, F = P td + z.
        acceleration: The wanted td, (6,), [omega dot; acceleration of the origin].
        wrench: P td + z, (6,), about the base's origin.
        forces: What each foot is to give, [n; f] at its place, (6,) each.
        tau: Generalized forces, (nv,).
    """

    P: Array
    z: Array
    acceleration: Array
    wrench: Array
    forces: list[Array]
    tau: Array


@dataclass(frozen=True, eq=False)
class Workspace:
    """A robot's trunk over its feet.

    Attributes:
        robot: The robot.
        feet: Those that may stand. weights: Of each number of their wrenches, (rows,).
        central: What the trunk weighs. center: Its point, (3,), [m], base axes.
        target: Its set point, position and orientation. gains: K of algorithm 4.
        servo: Of joints that carry no stance.
        big_base: c of algorithm 3, or None for feet that stand exactly.
        touch: Force above which a foot stands, [N], or None for all that always do.
        program: For limits of feet and motors, or None.
    """

    robot: Robot
    feet: tuple[Foot, ...]
    weights: Array
    central: Inertia
    center: Array
    target: tuple[Array | Path, Array | Path]
    gains: Gains
    servo: Servo
    big_base: float | None
    touch: float | None
    program: Program | None

    def plan(self, t: Any, q: Array, v: Array, wrenches: Array | None = None) -> Plan:
        """Return what the six algorithms find at a state; it can be traced, unless there are limits.

        Args:
            t: [s]. q, v: The state. wrenches: On the links, (n_links, 6), [n; f] about their origins in their axes.

        Raises:
            SingularError: where feet that stand cannot hold the base.
        """
        if self.program is not None:
            return self._limited(self.program, t, q, v, wrenches)
        out = outward_pass(self.robot, q, v)
        loads = self._loads(wrenches)
        found = self._dynamics(t, q, v, out, loads)
        acceleration, wrench = self._wanted(t, q, out, found)
        with stage(STAGE_5):
            G, P_0 = grasp(self.robot, out, self.feet), self._ways(q)
            F = least_norm(P_0.T @ np.concatenate(G, axis=1), P_0.T @ wrench, self._shares(loads))
            forces = self._by_foot(F)
            brought = [(foot.body, G_f @ f) for foot, G_f, f in zip(self.feet, G, forces, strict=True)]
        tau = joint_torques(self.robot, out, brought)
        total = scatter_add(self.robot, [own + found.tau.get(k, 0.0) for k, own in enumerate(tau)])
        return Plan(found.P, found.z, acceleration, wrench, forces, self._finite(total))

    def _finite(self, tau: Array) -> Array:
        """Return the torques, or raise SingularError where plain ones are not numbers."""
        if tau.dtype != object and not np.isfinite(tau.astype(float)).all():
            raise SingularError(
                f"the feet {[foot.name for foot in self.feet]} of robot {self.robot.name!r} stand where they "
                f"cannot hold its base, or a joint meets no inertia"
            )
        return tau

    def _limited(self, program: Program, t: Any, q: Array, v: Array, wrenches: Array | None) -> Plan:
        """Return the plan whose forces keep to limits; what the quadratic program needs comes from a kernel."""
        if np.asarray(q).dtype == object:
            raise LeggedError("WorkspaceBalance with limits solves a quadratic program, which cannot be traced")
        felt = np.zeros((len(self.robot.links), 6)) if wrenches is None else wrenches
        P, z, acceleration, wrench, G, wanted, weights, S, T, own = self._kernel(t, q, v, felt)
        F = program.share(G, wanted, weights, S, T, own)
        return Plan(P, z, acceleration, wrench, self._by_foot(F), T @ F + own)

    @cached_property
    def _kernel(self) -> Kernel:
        """What a quadratic program needs, compiled, see `_programme`."""
        return compile(lambda robot, t, q, v, wrenches: self._programme(t, q, v, wrenches), self.robot, wrenches=True)

    def _programme(self, t: Any, q: Array, v: Array, wrenches: Array) -> tuple[Array, ...]:
        """Return (P, z, td, F) of `Plan`, and G, wanted, weights, S, T, own of `Program.share`."""
        robot, out = self.robot, outward_pass(self.robot, q, v)
        loads = self._loads(wrenches)
        found = self._dynamics(t, q, v, out, loads)
        acceleration, wrench = self._wanted(t, q, out, found)
        grasps, P_0, T = grasp(robot, out, self.feet), self._ways(q), []
        for foot, G in zip(self.feet, grasps, strict=True):
            T += [scatter_add(robot, joint_torques(robot, out, [(foot.body, column)])) for column in G.T]
        own = scatter_add(robot, [found.tau.get(body.index, np.zeros(body.nv)) for body in robot.bodies])
        S = of_points(robot, out, self.feet, robot.base.pose(q[: robot.base.nq])[0])
        ask = P_0.T @ np.concatenate(grasps, axis=1), P_0.T @ wrench, self._shares(loads)
        return found.P, found.z, acceleration, wrench, *ask, S, np.array(T).T, own

    def _dynamics(self, t: Any, q: Array, v: Array, out: Outward, loads: Sequence[Any]) -> Inward:
        robot, feet, drive = self.robot, self.feet, self.servo.drive(t, q, v, loads)
        if self.big_base is not None:
            return inward_pass(robot, out, *loaded(out, robot, feet, loads, self.central, self.big_base), drive)
        free = inward_pass(robot, out, [body.regrouped.M for body in robot.bodies], out.z, drive)
        return stand_exactly(robot, out, free, feet, loads)

    def _wanted(self, t: Any, q: Array, out: Outward, found: Inward) -> tuple[Array, Array]:
        """Return (td, F): algorithm 4, both (6,), about the base's origin in its axes."""
        with stage(STAGE_1):
            R, _ = self.robot.base.pose(q[: self.robot.base.nq])
            now = base_pose(self.robot, q, out.t[0], self.center)
        with stage(STAGE_4):
            td = desired_acceleration(now, wanted_pose(*self.target, t), self.gains, R, self.center)
            return td, found.P @ td + found.z

    def _ways(self, q: Array) -> Array:
        """Return P_0, (6, n0): a base that moves in fewer than six ways is asked for the wrench along these alone."""
        return self.robot.base.motion_matrix(q[: self.robot.base.nq])

    def _by_foot(self, F: Array) -> list[Array]:
        return np.split(F, np.cumsum([len(foot.rows) for foot in self.feet])[:-1])

    def _shares(self, loads: Sequence[Any]) -> Array:
        """Return the weight of each number of the feet's wrenches, (rows,)."""
        shares = [k + _BARELY * (1.0 - k) for k, foot in zip(loads, self.feet, strict=True) for _ in foot.rows]
        return self.weights * np.array(shares)

    def _loads(self, wrenches: Array | None) -> list[Any]:
        """Return 1 for each foot that stands, 0 for one in the air; 1 for all if all are in the air."""
        if self.touch is None or wrenches is None:
            return [1.0] * len(self.feet)
        felt = [wrenches[foot.link][3:] for foot in self.feet]
        stands = [where(f @ f > self.touch**2, 1.0, 0.0) for f in felt]
        flying = sum_of(stands) < 0.5
        return [where(flying, 1.0, k) for k in stands]
