"""`ClosedLoop`: time derivatives and time steps of a robot under a controller on a ground, and the outputs of runs.

The state is (q, s): the configuration and the rest s = [v; memory of the controller; memory of the ground; history of
the contacts; works], whose parts and equations are those of the base class `LoopEquations`. `semi_implicit`,
`linearly_implicit` and `runge_kutta` are rules of fixed steps, which `backend.advance` calls by `FixedStep.rule`;
`rate` and `recorded` serve variable steps, in which q is given by chart coordinates xi around a reference (`chart`).
The methods are plain NumPy on floats or expressions: a backend or an engine compiles them, or calls them in Python.

In all methods `phase` is the number of switch times of the controller that have passed, and `loads` are the external
wrenches with their points in their own frames, from which `pushed` computes wrenches on the links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.ground.ground import Ground
from legged.simulation.loop.contact_memory import ContactHistory
from legged.simulation.loop.equations import WORKS, LoopEquations
from legged.simulation.loop.external_wrenches import loads_at
from legged.simulation.loop.results import ContactStep, ExternalForces, Observation

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ClosedLoop(LoopEquations):
    """A robot under a controller on a ground, with the methods that integrators and runs need.

    It is also the loop on a compliant ground or without one; subclasses are those on rigid ground and of closed chains.
    """

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts, in the order of every array over contacts."""
        return tuple(contact.name for contact in self.robot.contacts)

    def rate(self, t: Any, phase: Any, y: Array, q_ref: Array, loads: Array | None = None) -> Array:
        """Return the time derivative of y = [xi; s], (nv + size,).

        Args:
            t: Time, [s]. phase: Number of switch times passed.
            y: State in the chart around q_ref, (nv + size,). q_ref: Reference configuration, (nq,), mixed units.
            loads: Loads of the external wrenches, (k, 9), mixed units and frames, by default those at t.
        """
        n = self.robot.nv
        xi, s = y[:n], y[n:]
        q = self.configuration(q_ref, xi)
        external, (pushed, push_power) = self.forces_of_rate(q, s), self._pushed(loads, t, q, s[:n])
        tau, memory_rate = self.actuation(t, phase, q, s, external.contact)
        motion = self.motion_rate(xi, q, s[:n], tau, external.contact + pushed)
        joint_power = self.dissipation(q, s[:n]) if self.has_joint_forces else 0.0
        powers = tau @ s[:n], external.power, push_power, joint_power
        history_rate = np.zeros(self.history_size)
        if self.history_size:  # impulses have a rate; peaks and times are added after the step
            history_rate = ContactHistory.of(history_rate)._replace(impulse=external.forces).flat()
        return np.concatenate([motion, memory_rate, external.memory_rate, history_rate, np.stack(powers)])

    def forces_of_rate(self, q: Array, s: Array) -> ExternalForces:
        """Return `external_forces`; a subclass may leave out the contact points, which a rate does not need.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        return self.external_forces(q, s)

    def semi_implicit(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> tuple[Array, Array]:
        """Return (q, s) after a semi-implicit Euler step: velocities first, then positions; (nq,) and (size,).

        The work of contacts increases by h times the power at the start of the step, a left sum of first order in h, as
        the positions are; actuators, joint friction, stops and external wrenches use the mean of start and end.

        Args:
            t: Time, [s]. h: Time step, [s]. phase: Number of switch times passed.
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        n = self.robot.nv
        external = self.external_forces(q, s)
        s = self.controller_update(t, phase, q, s, external.contact)
        tau, damping, memory_rate = self.step_actuation(t, h, phase, q, s, external.contact)
        pushed, loads = 0.0, None
        if self.pushes:
            loads = self.loads(t, h)
            pushed = self.pushed(loads, q, s[:n])[0]
        after = self.time_step(h, q, s[:n], tau, damping, external.contact + pushed)
        step = ContactStep(*after, external.memory_rate, external.power, external.forces)
        return after.q, self._rest_after(t, h, q, s, tau - damping * (after.v - s[:n]), memory_rate, step, loads)

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
        contact = self.external_forces(q, s).contact
        s = self.controller_update(t, phase, q, s, contact)
        tau, damping, memory_rate = self.step_actuation(t, h, phase, q, s, contact)
        part, pushed, loads = self.split(s), np.zeros(contact.shape), None
        if self.pushes:
            loads = self.loads(t, h)
            pushed = self.pushed(loads, q, part.v)[0]
        step = self.contact_step(h, q, part.v, part.ground_memory, tau, damping, pushed)
        return step.q, self._rest_after(t, h, q, s, tau - damping * (step.v - part.v), memory_rate, step, loads)

    def _rest_after(
        self,
        t: Any,
        h: Any,
        q: Array,
        s: Array,
        tau: Array,
        memory_rate: Array,
        step: ContactStep,
        loads: Array | None,
    ) -> Array:
        """Return s after a time step from (q, s) under generalized forces tau and loads, (size,)."""
        part, work = self.split(s), 0.0
        if loads is not None:
            work = 0.5 * (self.pushed(loads, q, part.v)[1] + self.pushed(loads, step.q, step.v)[1])
        works = np.stack([0.5 * h * (tau @ (part.v + step.v)), h * step.power, h * work, step.joint_work])
        history = part.history
        if self.history_size:
            history = ContactHistory.of(history).after(t + 0.5 * h, h, step.forces).flat()
        memories = part.memory + h * memory_rate, part.ground_memory + h * step.memory_rate
        return np.concatenate([step.v, *memories, history, part.works + works])

    def runge_kutta(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> tuple[Array, Array]:
        """Return (q, s) after a step of the classical Runge-Kutta method in the chart around q; (nq,) and (size,).

        The loads of external wrenches are linear in time over the step, with their means over both of its halves.

        Args:
            t, h, phase, q, s: As in `semi_implicit`.
        """
        n, loads = self.robot.nv, [None] * 3
        if self.controller.has_update:
            s = self.controller_update(t, phase, q, s, self.external_forces(q, s).contact)
        if self.pushes:
            early, late = self.loads(t, 0.5 * h), self.loads(t + 0.5 * h, 0.5 * h)
            loads = [1.5 * early - 0.5 * late, 0.5 * (early + late), 1.5 * late - 0.5 * early]
        y = np.concatenate([np.zeros(n), s])
        k_1 = self.rate(t, phase, y, q, loads[0])
        k_2 = self.rate(t + 0.5 * h, phase, y + 0.5 * h * k_1, q, loads[1])
        k_3 = self.rate(t + 0.5 * h, phase, y + 0.5 * h * k_2, q, loads[1])
        k_4 = self.rate(t + h, phase, y + h * k_3, q, loads[2])
        total = k_1 + 2.0 * k_2 + 2.0 * k_3 + k_4
        y = y + (h / 6.0) * total
        s_next = y[n:]
        if self.history_size:
            mean_forces = self.contact_history(total[n:]).impulse * (1.0 / 6.0)  # the rates of impulses
            history = self.contact_history(s).after(t + 0.5 * h, h, mean_forces)
            s_next = self._with_history(s_next, history)
        return self.configuration(q, y[:n]), s_next

    def recorded(self, t: Any, q: Array, s: Array) -> Array:
        """Return s with the contact forces at a time in the history, except for impulses, (size,); for variable steps.

        Args:
            t: Time, [s]. q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        forces = self.external_forces(q, s).forces
        return self._with_history(s, self.contact_history(s).recorded(t, np.sqrt((forces * forces).sum(axis=1))))

    def _with_history(self, s: Array, history: ContactHistory) -> Array:
        """Return s with another history of the contacts, (size,)."""
        at = self.history_entries
        return np.concatenate([s[: at.start], history.flat(), s[at.stop :]])

    def after_impulse(self, q: Array, s: Array, loads: Array) -> Array:
        """Return s after impulses in no time, (size,).

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
            loads: Rows [angular impulse; impulse; point] of the external wrenches, (k, 9), mixed units and frames.
        """
        v, none = s[: self.robot.nv], np.zeros(self.robot.nv)
        wrenches, before = self.pushed(loads, q, v)
        # The acceleration by impulses in place of forces is the change of velocity.
        v_next = v + self.acceleration(q, v, none, wrenches) - self.acceleration(q, v, none, 0.0 * wrenches)
        push_work = 0.5 * (before + self.pushed(loads, q, v_next)[1])
        works = self.split(s).works + np.array([0.0, 0.0, push_work, 0.0])
        end = self.history_entries.stop
        return np.concatenate([v_next, s[len(v) : end], works, s[end + WORKS :]])

    def observe(self, t: Any, phase: Any, q: Array, s: Array) -> Observation:
        """Return the outputs of one state that a run stores besides q and v.

        Args:
            t: Time, [s]. phase: Number of switch times passed.
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        external = self.external_forces(q, s)
        return self._observed(t, phase, q, self.controller_update(t, phase, q, s, external.contact), external)

    def observe_updated(self, t: Any, phase: Any, q: Array, s: Array) -> Observation:
        """Return the result of `observe` for s after the discrete update of the controller; arguments as there."""
        return self._observed(t, phase, q, s, self.external_forces(q, s))

    def _observed(self, t: Any, phase: Any, q: Array, s: Array, external: ExternalForces) -> Observation:
        tau, _ = self.actuation(t, phase, q, s, external.contact)
        wrenches = external.contact + self._pushed(None, t, q, s[: self.robot.nv])[0]
        memory, outputs = self.split(s).memory, self.outputs(q, s)
        return Observation(tau, external.points, external.forces, memory, wrenches, outputs)

    def _pushed(self, loads: Array | None, t: Any, q: Array, v: Array) -> tuple[Any, Any]:
        """Return the result of `pushed` for loads, or for those at a time; zero without external wrenches."""
        if not self.pushes:
            return 0.0, 0.0
        return self.pushed(loads_at(self.pushes, t) if loads is None else loads, q, v)
