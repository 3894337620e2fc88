"""The closed loop on rigid ground with free bodies: time stepping with impulses.

Moreau's method in leapfrog form evaluates contacts at the positions q_m in the middle of the step,

    q_m = q (+) h/2 v,    v_f = v + h vdot(q_m, v),    v+ = v_f + M^-1 J^T p,    q+ = q_m (+) h/2 v+,

with the impulses p of `legged.contact` at q_m. Joint friction and stops are integrated implicitly. Velocity-product
terms are evaluated in the middle of the step, so that the error of free flight is of second order in h, and zero
without rotation.

The states of the bodies are appended to s,

    s = [v | controller's memory | ground's memory | works | q and v of each body].

The ground's memory is a `ContactMemory`. Works use the mean of the velocities before and after the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from legged.contact.impulses.dense import LoopRows
from legged.contact.impulses.impact import SOLVER, Impact, ImpulseSolver
from legged.contact.impulses.solver import maximum_of
from legged.contact.rigid import FreeBody, Rigid
from legged.contact.scene import Scene
from legged.dynamics.forward import accelerations
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import kinetic_energy, potential_energy
from legged.dynamics.passive import friction_forces, without_friction
from legged.robot.configuration import drift, normalized, scatter_add
from legged.robot.robot import Robot
from legged.simulation.loop.chart import flight, midpoint, velocity_product
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.contact_memory import ContactHistory as ContactHistory
from legged.simulation.loop.contact_memory import ContactMemory as ContactMemory
from legged.simulation.loop.external_wrenches import push_wrenches
from legged.simulation.loop.joint_laws import JointStep
from legged.simulation.loop.momentum import FreePart, contact_impulse, free_parts
from legged.simulation.loop.results import ExternalForces, Outputs

Array = np.ndarray
Pair = tuple[Array, Array]
_TINY = 1e-30  # [rad/s] or [m/s], avoids 0 / 0 without a change of velocities


@dataclass(frozen=True, eq=False)
class RigidLoop(ClosedLoop):
    """A robot under a controller on a `Rigid` ground, among free bodies.

    Attributes:
        bodies: The free bodies with their initial states.
        impulse_solver: Solves the contact problem of a step.
    """

    bodies: Sequence[FreeBody] = ()
    impulse_solver: ImpulseSolver = field(default=SOLVER, kw_only=True)

    @cached_property
    def scene(self) -> Scene:
        """The robot and the bodies as a contact scene, with all contact candidates."""
        assert isinstance(self.ground, Rigid)
        return Scene.of(self.robot, self.ground, self.bodies)

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contact candidates of the scene, in their order."""
        return tuple(candidate.name for candidate in self.scene.candidates)

    @property
    def ground_memory(self) -> int:
        """Length of the ground's memory, a `ContactMemory`."""
        return ContactMemory.size(len(self.scene.candidates))

    @property
    def history_size(self) -> int:
        """Zero: the history of contacts is a part of the ground's memory."""
        return 0

    @property
    def history_entries(self) -> slice:
        """Entries of s that hold the `ContactHistory`."""
        begin, m = self.robot.nv + self.memory, len(self.scene.candidates)
        return slice(begin + 3 * m, begin + 9 * m)

    def forces(self, s: Array) -> Array:
        """Return the contact forces of the last step, (m, 3), [N], in contact frames.

        Args:
            s: Rest of the state, (size,).
        """
        return ContactMemory.of(self.split(s).ground_memory).forces

    @property
    def size(self) -> int:
        return super().size + sum(robot.nq + robot.nv for robot in self.scene.robots[1:])

    def initial(self, v: Array, memory: Array, bodies: Sequence[FreeBody] | None = None) -> Array:
        """Return s at the start, (size,); see `ClosedLoop.initial`.

        Args:
            v: Velocity, (nv,). memory: Memory of the controller, (m,).
            bodies: Free bodies whose states replace those of the loop's bodies.
        """
        states = [part for body in (self.bodies if bodies is None else bodies) for part in body.state()]
        return np.concatenate([super().initial(v, memory), *states])

    def perturbed(self, s: Array, noise: Array) -> Array:
        """Return s plus noise, (size,), except for the states of bodies, which contain unit quaternions.

        Args:
            s: Rest of the state, (size,). noise: Perturbation, (size,), mixed units.
        """
        own = super().size
        return np.concatenate([super().perturbed(s[:own], noise[:own]), s[own:]])

    def states(self, q: Array, s: Array) -> list[Pair]:
        """Return (q, v) of the robot and of each body, (..., nq) and (..., nv) each.

        Args:
            q: Configurations of the robot, (..., nq). s: Rests of states, (..., size).
        """
        pairs, at = [(q, s[..., : self.robot.nv])], super().size
        for robot in self.scene.robots[1:]:
            pairs.append((s[..., at : at + robot.nq], s[..., at + robot.nq : at + robot.nq + robot.nv]))
            at += robot.nq + robot.nv
        return pairs

    # Equations.

    @cached_property
    def free_parts(self) -> tuple[tuple[FreePart, ...], ...]:
        """The freely moving parts of each robot of the scene whose momentum a step keeps up to rounding."""
        return tuple(free_parts(robot) if self.balances_momentum else () for robot in self.scene.robots)

    @property
    def balances_momentum(self) -> bool:
        """Whether a step keeps momentum up to rounding; see `Rigid.balances_momentum`."""
        asked, candidates = self.scene.ground.balances_momentum, self.scene.candidates
        return not candidates or any(c.second is not None for c in candidates) if asked is None else asked

    def closed_state(self, q: Array, v: Array) -> Pair:
        """Return (q (nq,), v (nv,)) of the robot after a step, which satisfies the constraints of its closed loops.

        Args:
            q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
        """
        return q, v

    def loops(self, q: Array) -> LoopRows | None:
        """Return the constraints of closed kinematic loops of the robot; None without loops.

        Args:
            q: Configuration, (nq,).
        """
        return None

    @cached_property
    def wrench_rows(self) -> list[list[int]]:
        """Numbers of the external wrenches on the robot and on each body."""
        names = [{link.name for link in self.robot.links}, *({body.name} for body in self.bodies)]
        return [[k for k, push in enumerate(self.pushes) if push.link in known] for known in names]

    def pushed(self, loads: Array, q: Array, v: Array, robot: int = 0) -> tuple[Array, Any]:
        """Return the wrenches of loads on the links of the robot or of a body, (n_links, 6), and their power, [W].

        Args:
            loads: Of all external wrenches, (k, 9), mixed units and frames.
            q: Configuration of the robot or body, (nq,).
            v: Its velocity, (nv,). robot: 0 for the robot, 1, 2, ... for the bodies.
        """
        rows, which = self.wrench_rows[robot], self.scene.robots[robot] if robot else self.robot
        return push_wrenches(which, [self.pushes[k] for k in rows], [loads[k] for k in rows], q, v)

    def with_pushed(self, contact: Array | None, loads: Array, q: Array, v: Array, robot: int = 0) -> Array | None:
        """Return contact wrenches with those of `pushed`, (n_links, 6); None for none of both.

        Args:
            contact: Contact wrenches, (n_links, 6), [N m] and [N], link axes; None for none.
            loads: As in `pushed`, (nl,), mixed units.
            q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
            robot: Number of the robot.
        """
        if not self.wrench_rows[robot]:
            return contact
        pushed = self.pushed(loads, q, v, robot)[0]
        return pushed if contact is None else contact + pushed

    def external_forces(self, q: Array, s: Array) -> ExternalForces:
        """Return the contact forces of the last step at the present contact points.

        Their power is returned as zero: `impact_step` computes their work.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        qs, part = [x for x, _ in self.states(q, s)], self.split(s)
        geometry, forces = self.scene.contact_geometry(qs), self.forces(s)
        contact = self.scene.wrenches(qs, geometry, forces)[0]
        world = np.array([frame.T @ f for frame, f in zip(geometry.frame, forces, strict=True)]).reshape(-1, 3)
        return ExternalForces(contact, geometry.point, world, 0.0 * part.ground_memory, 0.0)

    def contact_wrenches(self, q: Array, s: Array) -> Array:
        """Return the contact wrenches [n; f] of `external_forces` for the controller, (n_links, 6), link axes.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        return self.external_forces(q, s).contact

    def impact_step(
        self, t: Any, h: Any, loads: Array, q: Array, s: Array, tau: Array, damping: Array, memory_rate: Array
    ) -> Pair:
        """Return (q, s) after a time step with impulses, (nq,) and (size,).

        Args:
            t: Time, [s]. h: Time step, [s].
            loads: Mean loads of the external wrenches in the step, (k, 9), mixed units and frames.
            q: Configuration, (nq,). s: Rest of the state, (size,).
            tau, damping, memory_rate: See `StepActuation`, (nv,), (nv,) and (m,), mixed units.
        """
        part, scene = self.split(s), self.scene
        starts = zip(scene.robots, self.states(q, s), strict=True)
        middle = [drift(robot, *state, 0.5 * h) for robot, state in starts]
        qs, vs = [x for x, _ in middle], [v for _, v in middle]
        geometry, guess = scene.contact_geometry(qs), h * self.forces(s)
        # The laws of joints are rows of the contact problem, and are guessed with the contact forces of the last step.
        pressed = bool(self.joint_laws.rows) and len(guess) > 0
        contact = scene.wrenches(qs, geometry, self.forces(s)) if pressed else [None] * len(qs)
        viscous = h * (self.viscous_damping(vs[0]) + damping)
        joints = self.free_motion(h, loads, tau, viscous, qs[0], vs[0], contact[0])
        rows = self.joint_laws.rows_of(h, qs[0], vs[0], self.ground, joints) if pressed else None
        extra = [viscous, *(np.zeros(robot.nv) for robot in scene.robots[1:])]
        free = [vs[0] + h * joints.vdot]
        for k, (robot, state) in enumerate(zip(scene.robots[1:], middle[1:], strict=True), 1):
            free.append(flight(robot, h, *state, self.with_pushed(contact[k], loads, *state, robot=k)))
        impact = scene.impulses(qs, vs, free, extra, h, geometry, guess, self.loops(qs[0]), rows, self.impulse_solver)
        tau = tau - damping * (impact.v_next[0] - part.v)
        works = self.works(h, loads, tau, *middle[0], impact, joints)
        for k, (x, v) in enumerate(middle[1:], 1):
            if self.wrench_rows[k]:
                works[2] = works[2] + h * self.pushed(loads, x, 0.5 * (v + impact.v_next[k]), robot=k)[1]
        ends = [drift(robot, x, v, 0.5 * h) for robot, x, v in zip(scene.robots, qs, impact.v_next, strict=True)]
        ends[0] = self.closed_state(*ends[0])
        for k, (robot, start) in enumerate(zip(scene.robots, self.states(q, s), strict=True)):
            forces = tau if k == 0 else np.zeros(robot.nv)
            wrenches = self.with_pushed(None, loads, *middle[k], robot=k)
            for own in self.free_parts[k]:
                impulse = own.impulse(h, qs[k], forces, wrenches)
                impulse = impulse + contact_impulse(scene, k, own.bodies, geometry, impact.p)
                ends[k] = own.balanced(h, own.momentum(*start), impulse, *ends[k])
        ends = [(normalized(robot, x), v) for robot, (x, v) in zip(scene.robots, ends, strict=True)]
        (q_next, v_next), others = ends[0], [part for pair in ends[1:] for part in pair]
        memory = part.memory + h * memory_rate
        ground = ContactMemory.of(part.ground_memory).after(t + 0.5 * h, h, geometry.frame, impact)
        return q_next, np.concatenate([v_next, memory, ground.flat(), part.works + np.stack(works), *others])

    def outputs(self, q: Array, s: Array) -> Outputs:
        """Return energies of the robot and the bodies, and the pose of the base.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        own, states = super().outputs(q, s), self.states(q, s)[1:]
        kinetic, potential = own.kinetic, own.potential
        for robot, (x, v) in zip(self.scene.robots[1:], states, strict=True):
            kinetic, potential = kinetic + kinetic_energy(robot, x, v), potential + potential_energy(robot, x)
        return own._replace(kinetic=kinetic, potential=potential)

    # Combinations.

    def rate(self, t: Any, phase: Any, y: Array, q_ref: Array, loads: Array | None = None) -> Array:
        """Return the time derivative of y under the contact forces of the last step, (nv + size,); zero for bodies.

        Args:
            t: Time, [s]. phase: Number of switch times passed.
            y: State in the chart around q_ref, (nv + size,). q_ref: Reference configuration, (nq,), mixed units.
            loads: Loads of the external wrenches, (k, 9), mixed units and frames, by default those at t.
        """
        return np.concatenate([super().rate(t, phase, y, q_ref, loads), np.zeros(self.size - super().size)])

    def time_stepping(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> Pair:
        """Return (q, s) after a time step with impulses, (nq,) and (size,).

        Args:
            t: Time, [s]. h: Time step, [s]. phase: Number of switch times passed.
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        contact = self.contact_wrenches(q, s)
        s = self.controller_update(t, phase, q, s, contact)
        actuation = self.step_actuation(t, h, phase, q, s, contact)
        return self.impact_step(t, h, self.loads(t, h), q, s, *actuation)

    def free_motion(
        self, h: Any, loads: Array, tau: Array, viscous: Array, q: Array, v: Array, contact: Array | None = None
    ) -> JointStep:
        """Return the joints in a step without contacts, with vdot in axes that do not rotate.

        Args:
            h: Time step, [s]. loads: Mean loads of the external wrenches in the step, (k, 9), mixed units and frames.
            tau: Generalized forces of the actuators, (nv,), [N m] or [N], joint axes.
            viscous: Inertia added at the joints for friction and gains, (nv,), [kg m^2] or [kg].
            q: Configuration in the middle of the step, (nq,). v: Velocity before it, (nv,), mixed units.
            contact: Wrenches of contacts on the links, (n_links, 6), [N m] and [N], link axes, which act in the step.
        """
        robot, laws, wrenches = self.robot, self.joint_laws, self.with_pushed(contact, loads, q, v)
        repeats = contact is None or not (isinstance(self.ground, Rigid) and self.ground.iterations)
        own = laws.at(h, q, v, self.ground)
        tau = tau - scatter_add(robot, [friction_forces(body, v) for body in self.smooth_robot.bodies])
        bias_forces(self.frictionless_robot, q, v, wrenches)  # terms that the loop of the laws may not compute again

        def accelerate(extra: Array, more: Array, last: Callable[[Array], Array]) -> Array:
            def at(v_at: Array) -> Array:
                vdot = self.frictionless_acceleration(q, v_at, tau + more, wrenches, viscous + extra)
                return vdot + velocity_product(robot, v_at)

            if not laws.rows:
                return at(midpoint(h, v, at))
            # A stop may turn a joint around within the step: the mean of products, not the product of mean velocities.
            begin = at(v)
            change = h * last(begin)
            if not repeats:  # the contact forces of the last step may be those of an impact, which does not repeat
                change = change * np.minimum(maximum_of(np.abs(v)) / (maximum_of(np.abs(change)) + _TINY), 1.0)
            return 0.5 * (begin + at(v + change))

        return laws.step(own, h, v, tau, accelerate, refines=True, repeats=repeats)

    def frictionless_acceleration(self, q: Array, v: Array, tau: Array, wrenches: Any, extra: Array) -> Array:
        """Return vdot without stops and joint friction, (nv,); arguments as in `accelerations`."""
        return accelerations(self.frictionless_robot, q, v, tau, wrenches, extra)

    @cached_property
    def frictionless_robot(self) -> Robot:
        """The robot without the friction of its joints."""
        return without_friction(self.robot)

    def works(
        self, h: Any, loads: Array, tau: Array, q: Array, v: Array, impact: Impact, joints: JointStep
    ) -> list[Any]:
        """Return the works of actuators, contacts, external wrenches on the robot, and joints in a step, [J].

        Args:
            h: Time step, [s]. loads: Mean loads of the external wrenches in the step, (k, 9), mixed units and frames.
            tau: Generalized forces of the actuators, (nv,), [N m] or [N], joint axes.
            q: Configuration in the middle of the step, (nq,). v: Velocity before it, (nv,), mixed units.
            impact: The impulses of the step. joints: The joints in it.
        """
        v_next = impact.v_next[0]
        mean = 0.5 * (v + v_next)
        pushed = self.pushed(loads, q, mean)[1] if self.wrench_rows[0] else 0.0
        return [h * (tau @ mean), impact.work, h * pushed, self.joint_work(h, v, v_next, joints, impact.joints)]
