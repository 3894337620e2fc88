"""Hops of a planar robot with one actuator: balance, crouch, launch, flight, landing and balance again.

Source: Azad and Featherstone 2013, ICRA, "Balancing and hopping motion of a planar hopper with one actuator". The
abstract names the phases, a balance controller that is extended to track trajectories, and its result: hops survive
small slips of the foot. The laws here are reconstructed: the four-term balance controller of 2015, trajectories of the
actuated joint, and a plan of few numbers found by simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from controllers.balance.planar.control import PlanarBalanceControl
from controllers.balance.planar.model import PlanarBalance
from legged import arguments, bias_forces, frame_pose, inertia_matrix
from legged.checked import checked
from legged.compiler import where
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.spatial import Array

BALANCE, CROUCH, LAUNCH, FLIGHT = 0, 1, 2, 3
"""Phases, the first entry of the controller's memory."""
PHASES = ("balance", "crouch", "launch", "flight")
"""Names of the phases."""


@checked
@dataclass(frozen=True)
class HopPlan:
    """The trajectory of the actuated joint q2 during a hop.

    Attributes:
        stance: q2 of balance between hops, [rad].
        crouch: q2 of the balanced posture from which a hop starts, [rad]. crouch_time: Time of the crouch, [s].
        extended: q2 at the end of the extension, [rad]. rate: q2' there, [rad/s]. extension_time: Its time, [s].
        landing: q2 at landing, [rad]. tuck_time: Time from take-off until q2 has the value for landing, [s].
    """

    stance: float = 1.2
    crouch: float = 2.49
    crouch_time: float = 1.0
    extended: float = 0.74
    rate: float = -4.15
    extension_time: float = 0.275
    landing: float = 0.64
    tuck_time: float = 0.14

    def __post_init__(self) -> None:
        for name in ("crouch_time", "extension_time", "tuck_time"):
            arguments.number(name, getattr(self, name), "s", above=0.0)


def quintic(since: Any, duration: Any, start: Any, rate: Any, end: Any, end_rate: Any) -> tuple[Any, Any, Any]:
    """Return position, velocity and acceleration of the quintic without acceleration at both ends.

    The motion after it is uniform.

    Args:
        since: Time since the start, not negative, [s]. duration: Duration, [s].
        start, rate: Position and velocity at the start, [rad] and [rad/s]. end, end_rate: At the end.
    """
    x = np.minimum(since / duration, 1.0)
    a, b, d = rate * duration, end_rate * duration, end - start
    c3, c4, c5 = 10.0 * d - 6.0 * a - 4.0 * b, -15.0 * d + 8.0 * a + 7.0 * b, 6.0 * d - 3.0 * a - 3.0 * b
    after = np.maximum(since - duration, 0.0) * end_rate
    position = start + x * (a + x * x * (c3 + x * (c4 + x * c5))) + after
    velocity = (a + x * x * (3.0 * c3 + x * (4.0 * c4 + x * 5.0 * c5))) / duration
    return position, velocity, x * (6.0 * c3 + x * (12.0 * c4 + x * 20.0 * c5)) / duration**2


@checked
@dataclass(frozen=True, eq=False)
class HoppingControl:
    """A controller that balances a robot with one motor, and lets it hop.

    The memory is [phase, time of its start, hops so far, q2 and q2' at take-off].

    Attributes:
        model: The balance model of a robot on a planar base with one joint.
        plan: The motion of a hop.
        hops: Number of hops. rest: Time of balance before each crouch, at least, [s].
        settled: Largest lean of the center of mass and error of q2 with which a crouch or a launch starts, [rad].
        bandwidth: Natural frequency with which trajectories are tracked, critically damped, [rad/s].
    """

    model: PlanarBalance
    plan: HopPlan
    hops: int = 1
    rest: float = 0.2
    settled: float = 5e-3
    bandwidth: float = 40.0

    def __post_init__(self) -> None:
        arguments.whole("hops", self.hops, 0)
        arguments.number("rest", self.rest, "s", least=0.0)
        arguments.number("settled", self.settled, "rad", above=0.0)
        arguments.number("bandwidth", self.bandwidth, "rad/s", above=0.0)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) of balance at rest before the first hop, (nq,) and (nv,).

        Args:
            robot: The robot.
        """
        q = self.model.balanced(np.array([self.plan.stance]))
        assert self.model.contact is not None
        lift = frame_pose(robot, q, self.model.contact).position[2]
        return q - np.array([0.0, 0.0, lift, 0.0]), np.zeros(robot.nv)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (controller, memory): this controller and its initial memory, (5,).

        Args:
            robot: The robot. ground: The ground. q: Initial configuration, (nq,). v: Initial velocity, (nv,).

        Raises:
            DefinitionError: The robot has more than one joint, or balances on a pivot instead of a contact point.
        """
        if len(self.model.direction) != 1 or self.model.contact is None:
            raise DefinitionError("a hop needs a robot on a planar base with one joint and a contact point")
        return self, np.zeros(5)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,), [N m]; zero at the base.

        Args:
            t: Time, [s]. phase: Not used. q: Configuration, (nq,). v: Velocity, (nv,).
            wrenches: Not used, (n_links, 6). memory: The memory, (5,).
        """
        now = memory[0]
        balance = PlanarBalanceControl(self.model, lambda time: self._command(time, memory), preview=False)(t, q, v)[3]
        tracking = self._tracking(t, q, v, memory)
        return np.concatenate([np.zeros(3), np.stack([where(now < LAUNCH - 0.5, balance, tracking)])])

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the time derivative of the memory, (5,): zero; arguments as in `torque`."""
        return 0.0 * memory

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the memory at the start of a time step, (5,), with the phase that the state demands.

        Args:
            t: Time, [s]. phase: Not used. q: Configuration, (nq,). v: Velocity, (nv,).
            wrenches: Contact wrenches on the links, (n_links, 6). memory: The memory, (5,).
        """
        plan = self.plan
        now, since, hops = memory[0], t - memory[1], memory[2]
        loaded = (wrenches[:, 3:] ** 2).sum() > 0.0
        state, center = self.model.state(q, v), self.model.center(q)
        calm = loaded & (np.abs(center[0]) < self.settled * center[2])
        for error in (state.q2 - self._command(t, memory), state.q2_rate * state.time_constant):
            calm = calm & (np.abs(error) < self.settled)
        ends = [
            calm & (since > self.rest) & (hops < self.hops - 0.5),
            calm & (since > plan.crouch_time),
            (since > 0.5 * plan.extension_time) & ~loaded,
            (since > 0.5 * plan.tuck_time) & loaded,
        ]
        next_phase = now
        for k, end in enumerate(ends):
            here = (now > k - 0.5) & (now < k + 0.5)
            next_phase = where(here & end, (k + 1.0) % len(ends), next_phase)
        changed = np.abs(next_phase - now) > 0.5
        takes_off = changed & (next_phase > FLIGHT - 0.5)
        return np.stack(
            [
                next_phase,
                where(changed, t, memory[1]),
                where(takes_off, hops + 1.0, hops),
                where(takes_off, q[3], memory[3]),
                where(takes_off, v[3], memory[4]),
            ]
        )

    def _command(self, t: Any, memory: Array) -> Any:
        """Return q2 that the balance controller follows, [rad]."""
        plan = self.plan
        down = quintic(t - memory[1], plan.crouch_time, plan.stance, 0.0, plan.crouch, 0.0)[0]
        return where(memory[0] > CROUCH - 0.5, down, plan.stance + 0.0 * t)

    def _tracking(self, t: Any, q: Array, v: Array, memory: Array) -> Any:
        """Return the torque that tracks the trajectory of launch and flight, [N m]."""
        plan, since = self.plan, t - memory[1]
        extending = quintic(since, plan.extension_time, plan.crouch, 0.0, plan.extended, plan.rate)
        tucking = quintic(since, plan.tuck_time, memory[3], memory[4], plan.landing, 0.0)
        flies = memory[0] > FLIGHT - 0.5
        pairs = zip(tucking, extending, strict=True)
        position, velocity, acceleration = (where(flies, tuck, extend) for tuck, extend in pairs)
        desired = acceleration + self.bandwidth**2 * (position - q[3]) + 2.0 * self.bandwidth * (velocity - v[3])
        return where(flies, self._flying(q, v, desired), self._standing(q, v, desired))

    def _standing(self, q: Array, v: Array, desired: Any) -> Any:
        """Return the torque for a joint acceleration of the robot that stands on its foot, [N m]."""
        at = self.model.equations(q, v)
        pivot = -(at.H[0, 1] * desired + at.h[0]) / at.H[0, 0]
        return at.H[1, 0] * pivot + at.H[1, 1] * desired + at.h[1]

    def _flying(self, q: Array, v: Array, desired: Any) -> Any:
        """Return the torque for a joint acceleration of the robot in flight, [N m]."""
        M, h = inertia_matrix(self.model.robot, q), bias_forces(self.model.robot, q, v)
        # M vdot + h = [0; tau]: elimination of the base leaves one equation.
        rows = np.concatenate([M, h[:, None]], axis=1)
        for k in range(3):
            rest = rows[k + 1 :] - (rows[k + 1 :, k] / rows[k, k])[:, None] * rows[k]
            rows = np.concatenate([rows[: k + 1], rest])
        return rows[3, 3] * desired + rows[3, 4]
