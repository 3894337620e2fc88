"""The whole system's equations as plain functions: robot, ground and controller in one, over any element.

The state is a configuration q and one vector s of everything else,

    s = [v | controller's memory | ground's memory | work of actuators, ground, pushes and joints],

or, around a reference configuration q_ref, y = [xi; s] with q = integrate(q_ref, xi); see `chart`.

Joints do work by their friction and their stops; motors give what the controller asks as far as they can; see `limits`.
The equations are separate methods (`configuration`, `external_forces`, `actuation`, `motion_rate`, `dissipation`,
`outputs`), so that most of them can be compiled when one of them cannot; `rate` and `observe` combine them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.forward import accelerations
from legged.dynamics.kinematics import kinetic_energy, point_positions, potential_energy
from legged.dynamics.passive import friction_forces, friction_slopes
from legged.ground.ground import Ground, contact_motion, contact_wrenches
from legged.robot.configuration import integrate, scatter_add
from legged.robot.robot import Robot
from legged.simulation.chart import chart_rate, normalized, semi_implicit_euler
from legged.simulation.controller import Controller, full_torque
from legged.simulation.disturbance import Push, edges, push_wrenches
from legged.simulation.limits import Stop, motor_forces, stop_forces, stop_slopes, stops_of

Array = np.ndarray
WORKS = 4  # actuators, ground, pushes, joints


class StateParts(NamedTuple):
    """The pieces of s, see the module."""

    v: Array
    memory: Array
    ground_memory: Array
    works: Array


class ExternalForces(NamedTuple):
    """What the world does to the robot at one moment.

    Attributes:
        contact: Wrenches of the ground on the links, (n_links, 6), about each link's origin in its axes.
        wrenches: Those of the ground and of pushes.
        points, forces: Contact points and the ground's forces on them, (n, 3) each, [m], [N], world.
        memory_rate: Rate of the ground's memory.
        powers: Of the ground and of pushes, (2,), [W].
    """

    contact: Array
    wrenches: Array
    points: Array
    forces: Array
    memory_rate: Array
    powers: Array


class Outputs(NamedTuple):
    """What a run stores of a state: energies [J], pose of the base in the world, places of the nodes (n, 3) [m]."""

    kinetic: Any
    potential: Any
    base_rotation: Array
    base_position: Array
    skeleton: Array


class Observation(NamedTuple):
    """What a run stores of a moment besides q and v.

    Attributes:
        tau: Forces of motors, (nv,).
        points, forces: Contact points, and the forces on them, (n, 3) each, [m], [N], world.
        memory: The controller's, as a step from here begins with it.
        look: Energies and poses.
    """

    tau: Array
    points: Array
    forces: Array
    memory: Array
    outputs: Outputs


BreakTimes = tuple[tuple[float, ...], tuple[float, ...]]
"""Times at which a controller switches, and other times at which steps begin anew, [s]."""


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A robot under a controller on a ground.

    Attributes:
        robot: The robot.
        controller: With all methods, see `adapt`, and started.
        ground: None for free flight.
        memory: Length of the controller's memory.
        pushes: Disturbances.
        nodes: Points (link index, position in link axes) whose positions `outputs` reports.
    """

    robot: Robot
    controller: Controller
    ground: Ground | Rigid | None = None
    memory: int = 0
    pushes: Sequence[Push] = ()
    nodes: list[tuple[int, Array]] = field(default_factory=list)

    @property
    def ground_memory(self) -> int:
        """Length of the ground's memory."""
        return len(self.ground.memory(len(self.robot.contacts))) if isinstance(self.ground, Ground) else 0

    @property
    def size(self) -> int:
        """Length of s."""
        return self.robot.nv + self.memory + self.ground_memory + WORKS

    def initial(self, v: Array, memory: Array, bodies: Sequence[FreeBody] | None = None) -> Array:
        """Return s at the start; with free bodies as they start here, or as these others do."""
        return np.concatenate([v, memory, np.zeros(self.ground_memory + WORKS)])

    def perturbed(self, s: Array, noise: Array) -> Array:
        """Return a state near s, as far as noise, (size,), can be added to it."""
        return s + noise

    def split(self, s: Array) -> StateParts:
        """Return the pieces of s, (..., size)."""
        bounds = np.cumsum([0, self.robot.nv, self.memory, self.ground_memory, WORKS])
        return StateParts(*[s[..., i:j] for i, j in pairwise(bounds)])

    def break_times(self, until: float) -> BreakTimes:
        """Return the times at which steps begin anew: jumps of the reference, and clocks and edges of pushes."""
        update_times = tuple(float(t) for t in self.controller.update_times(until))
        return tuple(float(t) for t in self.controller.switches(until)), update_times + edges(self.pushes)

    def controller_update(self, t: Any, phase: Any, q: Array, s: Array, contact: Array) -> Array:
        """Return s as a step begins with it: a controller with a clock of its own may change its memory."""
        if not self.controller.has_update:
            return s
        part, n = self.split(s), self.robot.nv
        memory = self.controller.update(t, phase, q, part.v, contact, part.memory)
        return np.concatenate([part.v, memory, s[n + self.memory :]])

    # The pieces.

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        """Return q, (nq,), its quaternions of length one, from the chart around q_ref."""
        return normalized(self.robot, integrate(self.robot, q_ref, xi))

    def external_forces(self, t: Any, q: Array, s: Array) -> ExternalForces:
        """Return contact points -> ground forces -> wrenches, and the pushes."""
        robot, ground, part, none = self.robot, self.ground, self.split(s), np.zeros((0, 3))
        contact, points, forces, rate, power = np.zeros((len(robot.links), 6)), none, none, part.ground_memory, 0.0
        if robot.contacts:
            points, velocities = contact_motion(robot, q, part.v)
            forces = 0.0 * points
            if isinstance(ground, Ground):
                forces, rate = ground.forces(points, velocities, part.ground_memory)
                contact, power = contact_wrenches(robot, q, forces), (forces * velocities).sum()
        pushed, push_power = push_wrenches(robot, self.pushes, t, q, part.v) if self.pushes else (0.0, 0.0)
        return ExternalForces(contact, contact + pushed, points, forces, rate, np.stack([power, push_power]))

    def actuation(self, t: Any, phase: Any, q: Array, s: Array, contact: Array) -> tuple[Array, Array]:
        """Return (generalized forces (nv,), rate of the controller's memory): what it asks and motors can give."""
        part = self.split(s)
        arguments = t, phase, q, part.v, contact, part.memory
        asked = full_torque(self.robot, self.controller.torque(*arguments))
        return motor_forces(self.robot, part.v, asked), self.controller.rate(*arguments)

    def motion_rate(self, xi: Array, q: Array, v: Array, tau: Array, wrenches: Array) -> Array:
        """Return the rates of [xi; v], (2 nv,)."""
        vdot = self.acceleration(q, v, tau, wrenches, np.zeros(self.robot.nv))
        return np.concatenate([chart_rate(self.robot, xi, v), vdot])

    def time_step(self, h: Any, q: Array, v: Array, tau: Array, wrenches: Array) -> tuple[Array, Array]:
        """Return (q, v) a time h later by the semi-implicit Euler rule, see `semi_implicit_euler`.

        Friction and stops of the joints are taken at the end of the step, so that they may be as stiff as they are.
        """
        return semi_implicit_euler(
            self.robot, q, v, self.acceleration(q, v, tau, wrenches, h * self.implicit_damping(h, q, v)), h
        )

    def dissipation(self, h: Any, q: Array, v: Array, v_next: Array) -> Any:
        """Return the mean power of friction and stops of the joints, [W], over a step that takes v to v_next."""
        friction = scatter_add(self.robot, [friction_forces(body, v) for body in self.robot.bodies])
        force = stop_forces(self.robot, self._stops, q, v) - friction - self.implicit_damping(h, q, v) * (v_next - v)
        return 0.5 * (v + v_next) @ force

    def outputs(self, q: Array, s: Array) -> Outputs:
        """Return what a run stores of a state."""
        robot, v = self.robot, self.split(s).v
        energies = kinetic_energy(robot, q, v), potential_energy(robot, q)
        return Outputs(*energies, *robot.base.pose(q[: robot.base.nq]), point_positions(robot, q, list(self.nodes)))

    # Together.

    def rate(self, t: Any, phase: Any, y: Array, q_ref: Array) -> Array:
        """Return the time derivative of y = [xi; s], (nv + size,).

        Args:
            t: Time, [s]. phase: Number of the controller's switches that have passed.
            y: State in the chart around q_ref. q_ref: Reference configuration, (nq,).
        """
        n = self.robot.nv
        xi, s = y[:n], y[n:]
        q = self.configuration(q_ref, xi)
        external = self.external_forces(t, q, s)
        tau, memory_rate = self.actuation(t, phase, q, s, external.contact)
        moved = self.motion_rate(xi, q, s[:n], tau, external.wrenches)
        power = self._dissipation(0.0, q, s[:n], s[:n])
        return np.concatenate([moved, self._memory_and_work_rates(s, tau, memory_rate, external, power)])

    def semi_implicit(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> tuple[Array, Array]:
        """Return (q, s) a time h later by the semi-implicit Euler rule: velocities first, then positions."""
        n = self.robot.nv
        external = self.external_forces(t, q, s)
        s = self.controller_update(t, phase, q, s, external.contact)
        tau, memory_rate = self.actuation(t, phase, q, s, external.contact)
        q_next, v_next = self.time_step(h, q, s[:n], tau, external.wrenches)
        power = self._dissipation(h, q, s[:n], v_next)
        return q_next, np.concatenate(
            [v_next, s[n:] + h * self._memory_and_work_rates(s, tau, memory_rate, external, power)]
        )

    def runge_kutta(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> tuple[Array, Array]:
        """Return (q, s) a time h later by the classical Runge-Kutta rule in the chart around q."""
        n = self.robot.nv
        if self.controller.has_update:
            s = self.controller_update(t, phase, q, s, self.external_forces(t, q, s).contact)
        y = np.concatenate([np.zeros(n), s])
        k_1 = self.rate(t, phase, y, q)
        k_2 = self.rate(t + 0.5 * h, phase, y + 0.5 * h * k_1, q)
        k_3 = self.rate(t + 0.5 * h, phase, y + 0.5 * h * k_2, q)
        k_4 = self.rate(t + h, phase, y + h * k_3, q)
        y = y + (h / 6.0) * (k_1 + 2.0 * k_2 + 2.0 * k_3 + k_4)
        return self.configuration(q, y[:n]), y[n:]

    def observe(self, t: Any, phase: Any, q: Array, s: Array) -> Observation:
        """Return what a run stores of one moment."""
        external = self.external_forces(t, q, s)
        s = self.controller_update(t, phase, q, s, external.contact)
        tau, _ = self.actuation(t, phase, q, s, external.contact)
        part = self.split(s)
        return Observation(tau, external.points, external.forces, part.memory, self.outputs(q, s))

    @cached_property
    def _stops(self) -> tuple[Stop, ...]:
        return stops_of(self.robot)

    @cached_property
    def _dissipative(self) -> bool:
        return bool(self._stops) or any(body.has_friction for body in self.robot.bodies)

    def implicit_damping(self, h: Any, q: Array, v: Array) -> Array:
        """Return how much friction and stops of the joints take more per rate of v over a step of length h, (nv,)."""
        friction = scatter_add(self.robot, [friction_slopes(body, v) for body in self.robot.bodies])
        return stop_slopes(self.robot, self._stops, h, q, v) + friction

    def acceleration(self, q: Array, v: Array, tau: Array, wrenches: Array, extra: Array) -> Array:
        tau = tau + stop_forces(self.robot, self._stops, q, v)
        return accelerations(self.robot, q, v, tau, wrenches, extra)

    def _dissipation(self, h: Any, q: Array, v: Array, v_next: Array) -> Any:
        return self.dissipation(h, q, v, v_next) if self._dissipative else 0.0

    def _memory_and_work_rates(
        self, s: Array, tau: Array, memory_rate: Array, external: ExternalForces, resistance: Any
    ) -> Array:
        """Return the rates of s behind v."""
        power = np.stack([tau @ s[: self.robot.nv]])
        return np.concatenate([memory_rate, external.memory_rate, power, external.powers, np.stack([resistance])])
