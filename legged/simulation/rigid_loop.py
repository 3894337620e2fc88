"""The closed loop on rigid ground, with free bodies beside the robot: one time step with impulses, over any element.

Moreau's rule in leapfrog form: positions meet the contacts in the middle of the step, velocities at its ends,

    q_m = q (+) h/2 v,    v_f = v + h vdot(q_m, v),    v+ = v_f + M^-1 J^T p,    q+ = q_m (+) h/2 v+,

where the impulses p are those of `legged.contact`, at q_m. Forces of joints that depend on their rate, friction and
stops, are taken at the end of the step. Velocity terms are those in the middle of the step, so that free flight errs by
the square of h, and not at all where nothing turns.

The state has the bodies behind the rest,

    s = [v | controller's memory | ground's memory | works | q and v of each body],

and the ground's memory holds the forces of the last step on the scene's candidates in their frames, (m, 3), [N], the
next step's guess and what controllers feel, and the solver's residual, [m/s]. Works are those of the mean of the
velocities before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from legged.contact.impact import Impact
from legged.contact.rigid import FreeBody, Rigid
from legged.contact.scene import Scene
from legged.dynamics.forward import accelerations
from legged.dynamics.kinematics import kinetic_energy, point_positions, potential_energy
from legged.dynamics.passive import friction_forces
from legged.ground.ground import Ground, refuse_round_feet
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.simulation.chart import drift, normalized, velocity_product
from legged.simulation.closed_loop import ClosedLoop, ExternalForces, Outputs
from legged.simulation.controller import Controller
from legged.simulation.disturbance import Push, push_wrenches
from legged.simulation.limits import stop_forces
from legged.simulation.stick_figure import wireframe

Array = np.ndarray
Pair = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class RigidLoop(ClosedLoop):
    """A robot under a controller on a `Rigid` ground, among free bodies.

    Attributes:
        bodies: The free bodies, as they start.
    """

    bodies: Sequence[FreeBody] = ()

    @cached_property
    def scene(self) -> Scene:
        """What may touch what; its robots are this one and the bodies."""
        assert isinstance(self.ground, Rigid)
        return Scene.of(self.robot, self.ground, self.bodies)

    @property
    def ground_memory(self) -> int:
        """Length of the forces of the last step with their residual."""
        return 3 * len(self.scene.candidates) + 1

    def forces(self, s: Array) -> Array:
        """Return the forces of the last step, (m, 3), [N], in contact frames."""
        return self.split(s).ground_memory[:-1].reshape(-1, 3)

    @property
    def size(self) -> int:
        return super().size + sum(robot.nq + robot.nv for robot in self.scene.robots[1:])

    def initial(self, v: Array, memory: Array, bodies: Sequence[FreeBody] | None = None) -> Array:
        states = [part for body in (self.bodies if bodies is None else bodies) for part in body.state()]
        return np.concatenate([super().initial(v, memory), *states])

    def perturbed(self, s: Array, noise: Array) -> Array:
        """Return a state near s in which bodies are where they were: their quaternions have length one."""
        own = super().size
        return np.concatenate([s[:own] + noise[:own], s[own:]])

    def states(self, q: Array, s: Array) -> list[Pair]:
        """Return (q, v) of the robot and of each body."""
        found, at = [(q, s[: self.robot.nv])], super().size
        for robot in self.scene.robots[1:]:
            found.append((s[at : at + robot.nq], s[at + robot.nq : at + robot.nq + robot.nv]))
            at += robot.nq + robot.nv
        return found

    # The pieces.

    def external_forces(self, t: Any, q: Array, s: Array) -> ExternalForces:
        """Return what the forces of the last step do here, and the pushes; impulses' power is not told."""
        qs, part = [x for x, _ in self.states(q, s)], self.split(s)
        geometry, forces = self.scene.contact_geometry(qs), self.forces(s)
        contact = self.scene.wrenches(qs, geometry, forces)[0]
        world = np.array([frame.T @ f for frame, f in zip(geometry.frame, forces, strict=True)]).reshape(-1, 3)
        pushed, power = push_wrenches(self.robot, self.pushes, t, q, part.v) if self.pushes else (0.0, 0.0)
        return ExternalForces(
            contact, contact + pushed, geometry.point, world, 0.0 * part.ground_memory, np.stack([0.0, power])
        )

    def impact_step(self, t: Any, h: Any, q: Array, s: Array, tau: Array, memory_rate: Array) -> Pair:
        """Return (q, s) a time h later under the forces tau of motors, (nv,)."""
        part, scene = self.split(s), self.scene
        starts = zip(scene.robots, self.states(q, s), strict=True)
        middle = [drift(robot, *state, 0.5 * h) for robot, state in starts]
        qs, vs = [x for x, _ in middle], [v for _, v in middle]
        slope = self.implicit_damping(h, *middle[0])
        free = [self._free(h, t, tau, slope, *middle[0])]
        free += [flight(robot, h, *state) for robot, state in zip(scene.robots[1:], middle[1:], strict=True)]
        geometry, guess = scene.contact_geometry(qs), h * self.forces(s)
        extra = [h * slope, *(np.zeros(robot.nv) for robot in scene.robots[1:])]
        impact = scene.impulses(qs, vs, free, extra, h, geometry, guess)
        works = self._works(t, h, tau, *middle[0], impact)
        ends = [drift(robot, x, v, 0.5 * h) for robot, x, v in zip(scene.robots, qs, impact.v_next, strict=True)]
        ends = [(normalized(robot, x), v) for robot, (x, v) in zip(scene.robots, ends, strict=True)]
        (q_next, v_next), others = ends[0], [part for pair in ends[1:] for part in pair]
        memory = part.memory + h * memory_rate
        ground = np.concatenate([(impact.p / h).reshape(-1), np.stack([impact.residual])])
        return q_next, np.concatenate([v_next, memory, ground, part.works + np.stack(works), *others])

    def outputs(self, q: Array, s: Array) -> Outputs:
        own, states = super().outputs(q, s), self.states(q, s)[1:]
        kinetic, potential, nodes = own.kinetic, own.potential, [own.skeleton]
        for robot, body, (x, v) in zip(self.scene.robots[1:], self.bodies, states, strict=True):
            kinetic, potential = kinetic + kinetic_energy(robot, x, v), potential + potential_energy(robot, x)
            if self.nodes:
                nodes.append(point_positions(robot, x, [(0, node) for node in wireframe(body.shapes)[0]]))
        return own._replace(kinetic=kinetic, potential=potential, skeleton=np.concatenate(nodes))

    # Together.

    def rate(self, t: Any, phase: Any, y: Array, q_ref: Array) -> Array:
        """Return the time derivative of y under the forces of the last step; bodies stand still."""
        return np.concatenate([super().rate(t, phase, y, q_ref), np.zeros(self.size - super().size)])

    def time_stepping(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> Pair:
        """Return (q, s) a time h later by the rule above."""
        external = self.external_forces(t, q, s)
        s = self.controller_update(t, phase, q, s, external.contact)
        tau, memory_rate = self.actuation(t, phase, q, s, external.contact)
        return self.impact_step(t, h, q, s, tau, memory_rate)

    def _free(self, h: Any, t: Any, tau: Array, slope: Array, q: Array, v: Array) -> Array:
        """Return the velocity after a step without contacts, at q in the middle of it."""
        robot = self.robot
        wrenches = push_wrenches(robot, self.pushes, t + 0.5 * h, q, v)[0] if self.pushes else None
        known = tau + stop_forces(robot, self._stops, q, v), wrenches, h * slope
        return flight(robot, h, q, v, *known)

    def _works(self, t: Any, h: Any, tau: Array, q: Array, v: Array, impact: Impact) -> list[Any]:
        """Return the works of a step, [J], at q in the middle of it."""
        v_next = impact.v_next[0]
        mean = 0.5 * (v + v_next)
        pushed = push_wrenches(self.robot, self.pushes, t + 0.5 * h, q, mean)[1] if self.pushes else 0.0
        return [h * (tau @ mean), impact.work, h * pushed, h * self._dissipation(h, q, v, v_next)]


def flight(robot: Robot, h: Any, q: Array, v: Array, tau: Any = None, wrenches: Any = None, extra: Any = None) -> Array:
    """Return the velocity after a step h without contacts, (nv,), its linear part in axes that do not turn.

    Velocity terms are taken in the middle of the step, at a first guess of it; friction of joints is taken at v, and
    the rest of it comes with `extra`.

    Args:
        robot: The robot. h: [s]. q: In the middle of the step, (nq,). v: Before it, (nv,).
        tau, wrenches, extra: As in `accelerations`; none if left out.
    """
    tau, extra = (np.zeros(robot.nv) if x is None else x for x in (tau, extra))
    half = v + 0.5 * h * (accelerations(robot, q, v, tau, wrenches, extra) + velocity_product(robot, v))
    if any(body.has_friction for body in robot.bodies):
        tau = tau + _joint_friction(robot, half) - _joint_friction(robot, v)
    return v + h * (accelerations(robot, q, half, tau, wrenches, extra) + velocity_product(robot, half))


def _joint_friction(robot: Robot, v: Array) -> Array:
    return scatter_add(robot, [friction_forces(body, v) for body in robot.bodies])


def closed_loop(
    robot: Robot,
    controller: Controller,
    ground: Ground | Rigid | None,
    memory: int,
    pushes: Sequence[Push],
    nodes: list[tuple[int, Array]],
    bodies: Sequence[FreeBody],
) -> ClosedLoop:
    """Return the closed loop that suits a ground."""
    if isinstance(ground, Ground):
        refuse_round_feet(robot)
    parts = robot, controller, ground, memory, pushes, nodes
    return RigidLoop(*parts, bodies) if isinstance(ground, Rigid) else ClosedLoop(*parts)
