"""The closed loop: equations of motion of robot, ground and controller together, as functions that can be traced.

The state is a configuration q and a vector s of everything else,

    s = [v | controller's memory | ground's memory | work of actuators, contacts, pushes and joints],

or, in a chart around a reference configuration q_ref, y = [xi; s] with q = integrate(q_ref, xi); see `chart`. Joints do
work by friction and stops; actuators give the commanded forces within their limits; see `forces`.

The equations are separate methods (`configuration`, `external_forces`, `actuation`, `motion_rate`, `dissipation`,
`outputs`), so that most of them can be compiled when one of them cannot; `rate` and `observe` combine them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.forward import accelerations
from legged.dynamics.kinematics import kinetic_energy, point_positions, potential_energy
from legged.dynamics.passive import friction_forces
from legged.ground.ground import Ground, contact_masses, contact_motion, contact_wrenches, implicit_forces
from legged.robot.configuration import integrate, scatter_add
from legged.robot.construction.parameters import without_dry_friction
from legged.robot.robot import Robot
from legged.simulation.controller import Controller, full_torque
from legged.simulation.forces import (
    Push,
    Stop,
    actuator_forces,
    motor_forces,
    push_times,
    push_wrenches,
    stop_forces,
    stops_of,
)
from legged.simulation.loop.chart import chart_rate, normalized, semi_implicit_euler
from legged.simulation.loop.joint_laws import JointLaws, has_joint_forces, joint_step, joint_work
from legged.simulation.loop.results import (
    BreakTimes,
    ContactStep,
    ExternalForces,
    Observation,
    Outputs,
    StateParts,
    Step,
    StepActuation,
)

Array = np.ndarray
_WORKS = 4  # entries of s: work of actuators, contacts, pushes, joints


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A robot under a controller on a ground.

    Attributes:
        robot: The robot.
        controller: A started controller with all methods, see `adapt`.
        ground: The ground; None for free flight.
        memory: Length of the controller's memory, m.
        pushes: Pushes on links.
        nodes: Points (link index, position (3,) [m] in link axes) whose positions `outputs` returns.
        notices: Warnings about what the equations have met in Python, by their subject; shared by copies of the loop.
    """

    robot: Robot
    controller: Controller
    ground: Ground | Rigid | None = None
    memory: int = 0
    pushes: Sequence[Push] = ()
    nodes: list[tuple[int, Array]] = field(default_factory=list)
    notices: dict[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def ground_memory(self) -> int:
        """Length of the ground's memory, g."""
        return len(self.ground.memory(len(self.robot.contacts))) if isinstance(self.ground, Ground) else 0

    @property
    def size(self) -> int:
        """Length of s."""
        return self.robot.nv + self.memory + self.ground_memory + _WORKS

    def initial(self, v: Array, memory: Array, bodies: Sequence[FreeBody] | None = None) -> Array:
        """Return s at the start, (size,).

        Args:
            v: Velocity, (nv,). memory: Memory of the controller, (m,).
            bodies: Free bodies whose states replace those of the loop's bodies.
        """
        return np.concatenate([v, memory, np.zeros(self.ground_memory + _WORKS)])

    def perturbed(self, s: Array, noise: Array) -> Array:
        """Return s plus noise, (size,), in the entries to which it can be added.

        Args:
            s: Rest of the state, (size,). noise: Perturbation, (size,), mixed units.
        """
        return s + noise

    def split(self, s: Array) -> StateParts:
        """Return the parts of s.

        Args:
            s: Rest of the state, (..., size).
        """
        bounds = np.cumsum([0, self.robot.nv, self.memory, self.ground_memory, _WORKS])
        return StateParts(*[s[..., i:j] for i, j in pairwise(bounds)])

    def break_times(self, until: float) -> BreakTimes:
        """Return the switch times of the controller, and its update times with the start and end times of pushes, [s].

        Args:
            until: End time, [s].
        """
        update_times = tuple(float(t) for t in self.controller.update_times(until))
        return tuple(float(t) for t in self.controller.switches(until)), update_times + push_times(self.pushes)

    # Equations.

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        """Return the configuration q, (nq,), with unit quaternions.

        Args:
            q_ref: Reference configuration, (nq,), mixed units. xi: Chart coordinates, (nv,).
        """
        return normalized(self.robot, integrate(self.robot, q_ref, xi))

    def external_forces(self, t: Any, q: Array, s: Array) -> ExternalForces:
        """Return the forces of the ground and of pushes on the robot.

        Args:
            t: Time, [s]. q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        robot, ground, part, none = self.robot, self.surface, self.split(s), np.zeros((0, 3))
        contact, points, forces, rate, power = np.zeros((len(robot.links), 6)), none, none, part.ground_memory, 0.0
        if robot.contacts:
            points, velocities = contact_motion(robot, q, part.v)
            forces = 0.0 * points
            if isinstance(ground, Ground):
                forces, rate = ground.forces(points, velocities, part.ground_memory)
                contact, power = contact_wrenches(robot, q, forces), (forces * velocities).sum()
        pushed, push_power = push_wrenches(robot, self.pushes, t, q, part.v) if self.pushes else (0.0, 0.0)
        return ExternalForces(contact, contact + pushed, points, forces, rate, np.stack([power, push_power]))

    def controller_update(self, t: Any, phase: Any, q: Array, s: Array, contact: Array) -> Array:
        """Return s after the discrete update of the controller at the start of a time step, (size,).

        Args:
            t: Time, [s]. phase: Number of switch times passed. q: Configuration, (nq,). s: Rest of the state, (size,).
            contact: Contact wrenches [n; f], (n_links, 6), [N m] and [N], link axes.
        """
        if not self.controller.has_update:
            return s
        part, n = self.split(s), self.robot.nv
        memory = self.controller.update(t, phase, q, part.v, contact, part.memory)
        return np.concatenate([part.v, memory, s[n + self.memory :]])

    def actuation(self, t: Any, phase: Any, q: Array, s: Array, contact: Array) -> tuple[Array, Array]:
        """Return the generalized forces within the motor limits, (nv,), and the rate of the controller's memory, (m,).

        Args:
            t, phase, q, s, contact: As in `controller_update`.
        """
        part = self.split(s)
        arguments = t, phase, q, part.v, contact, part.memory
        commanded = full_torque(self.robot, self.controller.torque(*arguments))
        commanded = actuator_forces(self.robot, commanded, self.notices)
        return motor_forces(self.robot, part.v, commanded), self.controller.rate(*arguments)

    def step_actuation(self, t: Any, h: Any, phase: Any, q: Array, s: Array, contact: Array) -> StepActuation:
        """Return the actuation of a time step, implicit in the gains that the controller states.

        A controller with `implicit_gains` K_p and K_d acts with its torques at the end of the step,

            tau(t + h, q + h v_next, v_next) = tau(t + h, q, v) - h K_p v - (K_d + h K_p) (v_next - v),

        so that stiff servos do not limit the step. A motor at a limit gives that limit, without the last term.

        Args:
            t, phase, q, s, contact: As in `controller_update`. h: Time step, [s].
        """
        gains = self.controller.implicit_gains
        if gains is None:
            tau, memory_rate = self.actuation(t, phase, q, s, contact)
            return StepActuation(tau, np.zeros(self.robot.nv), memory_rate)
        part, (kp, kd) = self.split(s), (full_torque(self.robot, gain) for gain in gains)
        arguments = phase, q, part.v, contact, part.memory
        commanded = full_torque(self.robot, self.controller.torque(t + h, *arguments))
        commanded = actuator_forces(self.robot, commanded, self.notices) - h * kp * part.v
        tau = motor_forces(self.robot, part.v, commanded)
        slopes = zip(tau, commanded, kd + h * kp, strict=True)
        damping = np.stack([where(limited == wanted, slope, 0.0) for limited, wanted, slope in slopes])
        return StepActuation(tau, damping, self.controller.rate(t, *arguments))

    def acceleration(self, q: Array, v: Array, tau: Array, wrenches: Array) -> Array:
        """Return the generalized acceleration with compliant stops and regularized dry friction, (nv,).

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,). tau: Generalized forces of the actuators, (nv,).
            wrenches: Wrenches on the links, (n_links, 6).
        """
        tau = tau + stop_forces(self.robot, self._stops, q, v)
        return accelerations(self.robot, q, v, tau, wrenches, np.zeros(self.robot.nv))

    def smooth_acceleration(
        self, q: Array, v: Array, tau: Array, wrenches: Any, extra: Array, masses: Mapping[int, Array] | None = None
    ) -> Array:
        """Return vdot without stops, and without dry friction unless regularized, (nv,); see `accelerations`."""
        return accelerations(self.smooth_robot, q, v, tau, wrenches, extra, masses)

    def motion_rate(self, xi: Array, q: Array, v: Array, tau: Array, wrenches: Array) -> Array:
        """Return the time derivatives of [xi; v], (2 nv,).

        Args:
            xi: Chart coordinates, (nv,). q: Configuration, (nq,). v: Velocity, (nv,).
            tau: Generalized forces of the actuators, (nv,). wrenches: Wrenches on the links, (n_links, 6).
        """
        vdot = self.acceleration(q, v, tau, wrenches)
        return np.concatenate([chart_rate(self.robot, xi, v), vdot])

    def time_step(self, h: Any, q: Array, v: Array, tau: Array, damping: Array, wrenches: Array) -> Step:
        """Return the motion of a semi-implicit Euler step.

        Joint friction and stops are implicit, see `joint_laws`, and do not limit the step.

        Args:
            h: Time step, [s]. q: Configuration, (nq,). v: Velocity, (nv,).
            tau, damping: See `StepActuation`, (nv,) each. wrenches: Wrenches on the links, (n_links, 6).
        """
        joints = joint_step(self, h, q, v, tau, damping, wrenches)
        q_next, v_next = semi_implicit_euler(self.robot, q, v, joints.vdot, h)
        return Step(q_next, v_next, joint_work(self, h, v, v_next, joints))

    def dissipation(self, q: Array, v: Array) -> Any:
        """Return the power of joint friction and stops of `acceleration`, [W].

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,).
        """
        friction = scatter_add(self.robot, [friction_forces(body, v) for body in self.robot.bodies])
        return v @ (stop_forces(self.robot, self._stops, q, v) - friction)

    def outputs(self, q: Array, s: Array) -> Outputs:
        """Return energies, the pose of the base and the positions of the nodes.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        robot, v = self.robot, self.split(s).v
        energies = kinetic_energy(robot, q, v), potential_energy(robot, q)
        return Outputs(*energies, *robot.base.pose(q[: robot.base.nq]), point_positions(robot, q, list(self.nodes)))

    # Combinations.

    def rate(self, t: Any, phase: Any, y: Array, q_ref: Array) -> Array:
        """Return the time derivative of y = [xi; s], (nv + size,).

        Args:
            t: Time, [s]. phase: Number of switch times passed.
            y: State in the chart around q_ref, (nv + size,). q_ref: Reference configuration, (nq,), mixed units.
        """
        n = self.robot.nv
        xi, s = y[:n], y[n:]
        q = self.configuration(q_ref, xi)
        external = self.external_forces(t, q, s)
        tau, memory_rate = self.actuation(t, phase, q, s, external.contact)
        motion = self.motion_rate(xi, q, s[:n], tau, external.wrenches)
        power = self.dissipation(q, s[:n]) if has_joint_forces(self) else 0.0
        return np.concatenate([motion, self._memory_and_work_rates(s, tau, memory_rate, external, power)])

    def semi_implicit(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> tuple[Array, Array]:
        """Return (q, s) after a semi-implicit Euler step: velocities first, then positions; (nq,) and (size,).

        The works of actuators, contacts and pushes increase by h times the power at the start of the step, a left sum
        of first order in h, as the positions are; joint friction and stops use the mean velocity of the step.

        Args:
            t: Time, [s]. h: Time step, [s]. phase: Number of switch times passed.
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        n = self.robot.nv
        external = self.external_forces(t, q, s)
        s = self.controller_update(t, phase, q, s, external.contact)
        tau, damping, memory_rate = self.step_actuation(t, h, phase, q, s, external.contact)
        after = self.time_step(h, q, s[:n], tau, damping, external.wrenches)
        applied = tau - damping * (after.v - s[:n])
        rates = self._memory_and_work_rates(s, applied, memory_rate, external, after.joint_work * (1.0 / h))
        return after.q, np.concatenate([after.v, s[n:] + h * rates])

    def linearly_implicit(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> tuple[Array, Array]:
        """Return (q, s) after a step that is implicit in the forces of the ground and of joints; (nq,) and (size,).

        The contact forces are those at the end of the step, linear in the change of the velocities of the contact
        points, see `implicit_forces`; their work uses the mean velocity of the step. The controller receives the forces
        at its start.

        Args:
            t, h, phase, q, s: As in `semi_implicit`.
        """
        if not (isinstance(self.ground, Ground) and self.robot.contacts):
            return self.semi_implicit(t, h, phase, q, s)
        n = self.robot.nv
        external = self.external_forces(t, q, s)
        s = self.controller_update(t, phase, q, s, external.contact)
        tau, damping, memory_rate = self.step_actuation(t, h, phase, q, s, external.contact)
        part = self.split(s)
        pushed = external.wrenches - external.contact
        after = self.contact_step(h, q, part.v, part.ground_memory, tau, damping, pushed)
        powers = np.stack([after.power, external.powers[1]])
        external = external._replace(memory_rate=after.memory_rate, powers=powers)
        applied = tau - damping * (after.v - part.v)
        rates = self._memory_and_work_rates(s, applied, memory_rate, external, after.joint_work * (1.0 / h))
        return after.q, np.concatenate([after.v, s[n:] + h * rates])

    def contact_step(
        self, h: Any, q: Array, v: Array, ground_memory: Array, tau: Array, damping: Array, wrenches: Array
    ) -> ContactStep:
        """Return the motion of a step with the contact forces at its end; see `linearly_implicit`.

        Args:
            h: Time step, [s]. q: Configuration, (nq,). v: Velocity, (nv,).
            ground_memory: Memory of the ground, (g,), [m].
            tau, damping: See `StepActuation`, (nv,) each. wrenches: Wrenches of pushes on the links, (n_links, 6).
        """
        robot, ground = self.robot, self.surface
        assert isinstance(ground, Ground)
        points, before = contact_motion(robot, q, v)
        linear = implicit_forces(ground, points, before, ground_memory, h)
        wrenches = wrenches + contact_wrenches(robot, q, linear.forces)
        masses = contact_masses(robot, q, h * linear.damping)
        joints = joint_step(self, h, q, v, tau, damping, wrenches, masses)
        q_next, v_next = semi_implicit_euler(robot, q, v, joints.vdot, h)
        moved, after = contact_motion(robot, q_next, v_next)
        change = (linear.damping * (after - before)[:, None, :]).sum(axis=-1)
        power = 0.5 * ((linear.forces - change) * (before + after)).sum()
        memory_rate = ground.forces(moved, after, ground_memory)[1]
        return ContactStep(q_next, v_next, joint_work(self, h, v, v_next, joints), memory_rate, power)

    def runge_kutta(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> tuple[Array, Array]:
        """Return (q (nq,), s (size,)) after a Runge-Kutta step in the chart around q; see `semi_implicit`."""
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
        """Return the outputs of one state that a run stores besides q and v.

        Args:
            t: Time, [s]. phase: Number of switch times passed.
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        external = self.external_forces(t, q, s)
        s = self.controller_update(t, phase, q, s, external.contact)
        tau, _ = self.actuation(t, phase, q, s, external.contact)
        return Observation(tau, external.points, external.forces, self.split(s).memory, self.outputs(q, s))

    @cached_property
    def surface(self) -> Ground | Rigid | None:
        """The ground, a compliant one with the coefficient of friction of each contact point; see `Ground.under`."""
        return self.ground.under(self.robot) if isinstance(self.ground, Ground) else self.ground

    @cached_property
    def _stops(self) -> tuple[Stop, ...]:
        return stops_of(self.robot)

    @cached_property
    def smooth_robot(self) -> Robot:
        """The robot without the dry friction that `joint_laws` describe."""
        return without_dry_friction(self.robot) if self.joint_laws.has_friction else self.robot

    @cached_property
    def joint_laws(self) -> JointLaws:
        """The stops and the dry friction of joints in time steps."""
        return JointLaws.of(self.robot)

    def _memory_and_work_rates(
        self, s: Array, tau: Array, memory_rate: Array, external: ExternalForces, dissipation: Any
    ) -> Array:
        """Return the time derivative of s after v, (size - nv,)."""
        power = np.stack([tau @ s[: self.robot.nv]])
        return np.concatenate([memory_rate, external.memory_rate, power, external.powers, np.stack([dissipation])])
