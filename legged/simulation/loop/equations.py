"""The equations of a closed loop: robot, ground and controller together, as functions that can be traced.

The state is a configuration q and a vector s of everything else,

    s = [v | controller's memory | ground's memory | history of contacts | work of actuators, contacts, pushes, joints],

or, in a chart around a reference configuration q_ref, y = [xi; s] with q = integrate(q_ref, xi); see `chart`. Joints do
work by friction and stops; actuators give the commanded forces within their limits; see `forces`.

The equations are separate methods (`configuration`, `external_forces`, `actuation`, `motion_rate`, `dissipation`,
`outputs`), so that most of them can be compiled when one of them cannot; `ClosedLoop` combines them.
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
from legged.dynamics.kinematics import kinetic_energy, potential_energy
from legged.dynamics.passive import friction_forces, friction_slopes, without_dry_friction
from legged.ground.ground import Ground, contact_masses, contact_motion, contact_wrenches, implicit_forces
from legged.robot.configuration import integrate, normalized, scatter_add
from legged.robot.robot import Robot
from legged.simulation.checks.law import gains_of
from legged.simulation.controller import Controller, full_torque
from legged.simulation.forces import Stop, actuator_forces, motor_forces, stop_forces, stops_of
from legged.simulation.loop.chart import chart_rate, semi_implicit_euler
from legged.simulation.loop.contact_memory import ContactHistory
from legged.simulation.loop.external_wrenches import External, mean_loads, push_wrenches
from legged.simulation.loop.joint_laws import JointLaws, JointStep
from legged.simulation.loop.results import (
    BreakTimes,
    ContactStep,
    ExternalForces,
    Outputs,
    StateParts,
    Step,
    StepActuation,
)

Array = np.ndarray
WORKS = 4
"""Entries of s: work of actuators, contacts, external wrenches, joints."""


@dataclass(frozen=True, eq=False)
class LoopEquations:
    """A robot under a controller on a ground, and the equations of its motion.

    Attributes:
        robot: The robot.
        controller: A started controller with all methods, see `adapt`.
        ground: The ground; None for free flight.
        memory: Length of the controller's memory, m.
        pushes: External wrenches on links.
        notices: Warnings about what the equations have met in Python, by their subject; shared by copies of the loop.
    """

    robot: Robot
    controller: Controller
    ground: Ground | Rigid | None = None
    memory: int = 0
    pushes: Sequence[External] = ()
    notices: dict[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def ground_memory(self) -> int:
        """Length of the ground's memory, g."""
        return len(self.ground.memory(len(self.robot.contacts))) if isinstance(self.ground, Ground) else 0

    @property
    def history_size(self) -> int:
        """Length of the history of contacts that is a part of s of its own."""
        return ContactHistory.size(len(self.robot.contacts)) if isinstance(self.ground, Ground) else 0

    @property
    def history_entries(self) -> slice:
        """Entries of s that hold the `ContactHistory`."""
        begin = self.robot.nv + self.memory + self.ground_memory
        return slice(begin, begin + self.history_size)

    @property
    def size(self) -> int:
        """Length of s."""
        return self.robot.nv + self.memory + self.ground_memory + self.history_size + WORKS

    def initial(self, v: Array, memory: Array, bodies: Sequence[FreeBody] | None = None) -> Array:
        """Return s at the start, (size,).

        Args:
            v: Velocity, (nv,). memory: Memory of the controller, (m,).
            bodies: Free bodies whose states replace those of the loop's bodies.
        """
        return np.concatenate([v, memory, np.zeros(self.ground_memory + self.history_size + WORKS)])

    def perturbed(self, s: Array, noise: Array) -> Array:
        """Return s plus noise, (size,), in the entries to which it can be added.

        The memory of a controller, such as the small covariance of an estimator, changes by the noise times its entries
        where these are less than one.

        Args:
            s: Rest of the state, (size,). noise: Perturbation, (size,), mixed units.
        """
        own, scale = slice(self.robot.nv, self.robot.nv + self.memory), np.ones(len(s))
        scale[own] = np.minimum(np.abs(s[own]), 1.0)
        return s + scale * noise

    def split(self, s: Array) -> StateParts:
        """Return the parts of s.

        Args:
            s: Rest of the state, (..., size).
        """
        bounds = np.cumsum([0, self.robot.nv, self.memory, self.ground_memory, self.history_size, WORKS])
        return StateParts(*[s[..., i:j] for i, j in pairwise(bounds)])

    def contact_history(self, s: Array) -> ContactHistory:
        """Return impulses, peaks, first and last touch of the contacts.

        Args:
            s: Rest of the state, (..., size).
        """
        return ContactHistory.of(s[..., self.history_entries])

    def break_times(self, until: float, edges: bool = False) -> BreakTimes:
        """Return the switch times of the controller, and other times at which a time step must begin, [s].

        Args:
            until: End time, [s].
            edges: Whether the times at which external wrenches are not smooth are among them; fixed steps need them
                not.
        """
        others = tuple(float(t) for t in self.controller.update_times(until))
        if edges:
            others += tuple(float(t) for push in self.pushes for t in push.edges)
        return tuple(float(t) for t in self.controller.switches(until)), others

    # Equations.

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        """Return the configuration q, (nq,), with unit quaternions.

        Args:
            q_ref: Reference configuration, (nq,), mixed units. xi: Chart coordinates, (nv,).
        """
        return normalized(self.robot, integrate(self.robot, q_ref, xi))

    def external_forces(self, q: Array, s: Array) -> ExternalForces:
        """Return the forces of the ground on the robot.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        robot, ground, part, none = self.robot, self.surface, self.split(s), np.zeros((0, 3))
        contact, points, forces, rate, power = np.zeros((len(robot.links), 6)), none, none, part.ground_memory, 0.0
        if robot.contacts:
            points, velocities = contact_motion(robot, q, part.v)
            forces = 0.0 * points
            if isinstance(ground, Ground):
                forces, rate = ground.forces(points, velocities, part.ground_memory)
                contact, power = contact_wrenches(robot, q, forces), (forces * velocities).sum()
        return ExternalForces(contact, points, forces, rate, power)

    def loads(self, t: Any, h: Any) -> Array:
        """Return the mean loads of the external wrenches over a time step, (k, 9); see `external_wrenches`.

        Args:
            t: Start of the step, [s]. h: The step, [s].
        """
        return mean_loads(self.pushes, t, h)

    def pushed(self, loads: Array, q: Array, v: Array) -> tuple[Array, Any]:
        """Return the wrenches of loads on the links, (n_links, 6), and their power, [W].

        Args:
            loads: See `loads`, (k, 9), mixed units and frames. q: Configuration, (nq,). v: Velocity, (nv,).
        """
        return push_wrenches(self.robot, self.pushes, loads, q, v)

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

        so that stiff servos do not limit the step. A motor at a limit gives that limit without the last term while it
        accelerates. While it brakes, the last term is scaled by limit / torque without limits: at the velocity at which
        that torque would be zero, it is zero too. A constant limit would reverse the velocity of a light link in every
        step.

        Args:
            t, phase, q, s, contact: As in `controller_update`. h: Time step, [s].
        """
        gains = self.controller.implicit_gains
        if gains is None:
            tau, memory_rate = self.actuation(t, phase, q, s, contact)
            return StepActuation(tau, np.zeros(self.robot.nv), memory_rate)
        sizes = self.robot.nj, self.robot.nv
        part, (kp, kd) = self.split(s), (full_torque(self.robot, gain) for gain in gains_of(gains, sizes))
        arguments = phase, q, part.v, contact, part.memory
        commanded = full_torque(self.robot, self.controller.torque(t + h, *arguments))
        commanded = actuator_forces(self.robot, commanded, self.notices) - h * kp * part.v
        tau = motor_forces(self.robot, part.v, commanded)
        slopes = zip(tau, commanded, kd + h * kp, part.v, strict=True)
        damping = []
        for limited, wanted, slope, speed in slopes:
            is_free = limited == wanted
            part_of_slope = where(limited * speed < 0.0, limited, 0.0) / where(is_free, 1.0, wanted)
            damping.append(where(is_free, slope, slope * part_of_slope))
        return StepActuation(tau, np.stack(damping), self.controller.rate(t, *arguments))

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
        joints = self._joint_step(h, q, v, tau, damping, wrenches)
        q_next, v_next = semi_implicit_euler(self.robot, q, v, joints.vdot, h)
        return Step(q_next, v_next, self.joint_work(h, v, v_next, joints))

    def _joint_step(
        self,
        h: Any,
        q: Array,
        v: Array,
        tau: Array,
        damping: Array,
        wrenches: Array,
        masses: Mapping[int, Array] | None = None,
    ) -> JointStep:
        """Return accelerations and impulses of the joints in a time step that is implicit in friction and stops.

        Arguments are as in `time_step`, `masses` as in `accelerations`.
        """
        viscous, laws = h * (self.viscous_damping(v) + damping), self.joint_laws

        def acceleration(extra: Array, more: Array, last: Any) -> Array:
            return self.smooth_acceleration(q, v, tau + more, wrenches, viscous + extra, masses)

        return laws.step(laws.at(h, q, v, self.ground), h, v, tau, acceleration)

    def viscous_damping(self, v: Array) -> Array:
        """Return the decrease of friction forces per unit of velocity over a time step, (nv,), [N m s/rad] or [N s/m].

        Dry friction is included if it is regularized.

        Args:
            v: Velocity, (nv,), mixed units.
        """
        return scatter_add(self.robot, [friction_slopes(body, v) for body in self.smooth_robot.bodies])

    @property
    def has_joint_forces(self) -> bool:
        """Whether joints have friction or stops."""
        return bool(self.joint_laws.rows) or any(body.has_friction for body in self.robot.bodies)

    def joint_work(self, h: Any, v: Array, v_next: Array, joints: JointStep, impulse: Array | None = None) -> Any:
        """Return the work of joint friction and stops in a time step, [J]; negative where energy is lost.

        Args:
            h: Time step, [s]. v, v_next: Velocity before and after it, (nv,), mixed units.
            joints: Result of the joint laws in it.
            impulse: Impulse of stops and dry friction, (nv,), [N m s] or [N s]; by default that of `joints`.
        """
        if not self.has_joint_forces:
            return 0.0
        friction = scatter_add(self.robot, [friction_forces(body, v) for body in self.smooth_robot.bodies])
        whole = joints.impulse_at(v_next) if impulse is None else impulse
        rest = whole - h * (friction + self.viscous_damping(v) * (v_next - v))
        return 0.5 * (v + v_next) @ rest

    def dissipation(self, q: Array, v: Array) -> Any:
        """Return the power of joint friction and stops of `acceleration`, [W].

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,).
        """
        friction = scatter_add(self.robot, [friction_forces(body, v) for body in self.robot.bodies])
        return v @ (stop_forces(self.robot, self._stops, q, v) - friction)

    def outputs(self, q: Array, s: Array) -> Outputs:
        """Return energies and the pose of the base.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        robot, v = self.robot, self.split(s).v
        energies = kinetic_energy(robot, q, v), potential_energy(robot, q)
        return Outputs(*energies, *robot.base.pose(q[: robot.base.nq]))

    def contact_step(
        self, h: Any, q: Array, v: Array, ground_memory: Array, tau: Array, damping: Array, wrenches: Array
    ) -> ContactStep:
        """Return the motion of a step with the contact forces at its end; see `ClosedLoop.linearly_implicit`.

        Args:
            h: Time step, [s]. q: Configuration, (nq,). v: Velocity, (nv,).
            ground_memory: Memory of the ground, (g,), [m].
            tau, damping: See `StepActuation`, (nv,) each. wrenches: External wrenches on the links, (n_links, 6).
        """
        robot, ground = self.robot, self.surface
        assert isinstance(ground, Ground)
        points, before = contact_motion(robot, q, v)
        linear = implicit_forces(ground, points, before, ground_memory, h)
        wrenches = wrenches + contact_wrenches(robot, q, linear.forces)
        masses = contact_masses(robot, q, h * linear.damping)
        joints = self._joint_step(h, q, v, tau, damping, wrenches, masses)
        q_next, v_next = semi_implicit_euler(robot, q, v, joints.vdot, h)
        moved, after = contact_motion(robot, q_next, v_next)
        change = (linear.damping * (after - before)[:, None, :]).sum(axis=-1)
        forces = linear.forces - change
        power = 0.5 * (forces * (before + after)).sum()
        memory_rate = ground.forces(moved, after, ground_memory)[1]
        return ContactStep(q_next, v_next, self.joint_work(h, v, v_next, joints), memory_rate, power, forces)

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
