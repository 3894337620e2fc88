"""A scene with many contact candidates, in parts: kernels of equal robots, of all free bodies, of each kind of pair.

A kernel of the whole time step contains every pair and every contact. Its compilation takes minutes for hundreds of
contacts. Here the same equations are evaluated by kernels that do not depend on the number of bodies and pairs, and by
matrices in blocks of the contacts that may close in the step; see `legged.contact.pair_tables` and
`legged.contact.touching`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from legged.compiler import BatchKernel
from legged.compiler.ir import gc_paused
from legged.contact.bodies import Bodies
from legged.contact.impulses.contact_pattern import BodyLayout
from legged.contact.pair_tables import Detected, PairTables, Poses
from legged.contact.recording import Recording
from legged.contact.rigid import FreeBody
from legged.contact.touching import ContactSolver, Solver, newton_solution
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import kinetic_energy, motion, potential_energy
from legged.robot.configuration import drift, normalized
from legged.robot.construction.group import RobotGroup
from legged.robot.inertia import Inertia
from legged.robot.robot import Robot
from legged.simulation.equal_robots import EqualRobots, equal_robots
from legged.simulation.loop.chart import flight
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.momentum import FreePart, Momentum, free_parts
from legged.simulation.loop.results import ExternalForces, Outputs
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.scene_steps import SceneStep, StepMemory
from legged.spatial import Array, cross, join

MANY_CONTACTS = 8
"""Number of contact candidates besides feet above which a scene runs in parts, unless `compiled` is True.

Up to here a start in one kernel takes at most as long as that of a robot on its feet: 1.3 s for three spheres, with 6
candidates, and 1.5 s for a quadruped beside a box, which starts beside three boxes in 1.1 s in parts. As a whole that
takes 8.6 s with dry friction in the joints (`python -m benchmarks.contact --starts`)."""
_Q, _V = 7, 6  # sizes of the state of a free body


@dataclass(frozen=True, eq=False)
class SceneInParts(RigidLoop):
    """A robot under a controller on a `Rigid` ground among free bodies, with many contact candidates.

    Its steps write to arrays that it keeps, so that two threads must not step the same scene at once.

    Attributes:
        solver: Method that solves the contact problem of a step.
    """

    solver: ClassVar[Solver] = staticmethod(newton_solution)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for `pickle` and `copy`, without calls, which hold addresses of arrays."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    # Kernels.

    def _batch(self, function: Callable[..., Any], **shapes: Any) -> BatchKernel:
        """Return the kernel of a function that is called for all free bodies, and keep it under the function's name."""
        kernels = self.__dict__.setdefault("_kernels", {})
        if function.__name__ not in kernels:
            kernels[function.__name__] = BatchKernel(function, shapes)
        return kernels[function.__name__]

    @cached_property
    def tables(self) -> PairTables:
        """The pairs of the scene by kind."""
        return PairTables(self.scene)

    @cached_property
    def _kinds(self) -> list[EqualRobots]:
        """The robots by kind."""
        sides = [side for pair in self.scene.pairs for side in (pair.first, pair.second) if side is not None]
        bodies = {side.body for side in sides if side.robot == 0}
        return equal_robots(self, {body for body in bodies if self._robot_of[body] is not None})

    def _layout_kinds(self) -> list[tuple[Array, Array]]:
        """Return the `kinds` of a `BodyLayout`: robots with generalized velocities, and bodies with Jacobians."""
        starts, moves = {part.start: k for k, part in enumerate(self._robots)}, [x is not None for x in self._robot_of]
        kinds = list[tuple[Array, Array]]()
        for kind in self._kinds:
            robots = np.array([starts[row[0]] if len(row) else -1 for row in kind.v.tolist()])
            bodies = kind.bodies[:, kind.touching]
            kinds.append((robots, np.where(np.array(moves)[bodies], bodies, -1)))
        return kinds

    @cached_property
    def _robots(self) -> list[slice]:
        """Entries of v of each robot of a group, or of the one robot, without robots that do not move."""
        parts = [m.v for m in self.robot.members] if isinstance(self.robot, RobotGroup) else [slice(0, self.robot.nv)]
        return [part for part in parts if part.stop > part.start]

    @cached_property
    def _robot_of(self) -> list[slice | None]:
        """Entries of v of the robot to which each body belongs; None for bodies that do not move."""
        robot, robots = self.robot, list[slice | None]()
        for body in range(len(robot.bodies)):
            moving = [robot.bodies[j].v.start for j in robot.ancestors(body) if robot.bodies[j].P.shape[1]]
            robots.append(next((own for own in self._robots if moving and own.start <= moving[0] < own.stop), None))
        return robots

    @cached_property
    def _coefficients(self) -> Array:
        """Friction and restitution of each candidate, (m, 2), dimensionless."""
        ground, pairs = self.scene.ground, self.scene.pairs
        known = {materials: ground.coefficients(*materials) for materials in {pair.materials for pair in pairs}}
        return np.array([known[pair.materials] for pair in pairs for _ in pair.names]).reshape(-1, 2)

    @cached_property
    def _body(self) -> Any:
        """A robot of one free body, whose parameters are a vector of mass, center and inertia tensor, (13,)."""
        robot = FreeBody("body", Inertia(1.0, np.zeros(3), np.eye(3)), ()).robot(self.robot.gravity)
        return robot.parameter_vector(["body.mass", "body.center", "body.tensor"])

    @cached_property
    def _inertias(self) -> Array:
        """Mass [kg], center [m] and inertia tensor [kg m^2] of each free body, (n, 13), body axes."""
        inertias = [robot.links[0].inertia for robot in self.scene.robots[1:]]
        return np.array([[i.mass, *i.center, *np.ravel(i.tensor)] for i in inertias]).reshape(-1, 13)

    def _bodies_start(self, h: Any, q: Array, v: Array, inertia: Array, *wrench: Array) -> tuple[Array, ...]:
        """Return q and v in the middle of a step, v after it without impulses, the `Momentum` before it, (k, 3, 3),
        and rotation and origin in the middle."""
        robot = self._body.applied(inertia)
        momenta = np.array([part.momentum(q, v) for part in self._free(robot)]).reshape(-1, 3, 3)
        q, v = drift(robot, q, v, 0.5 * h)
        at, wrenches = motion(robot, q), wrench[0][None] if wrench else None
        return q, v, flight(robot, h, q, v, wrenches), momenta, at.rotation[0], at.origin[0]

    def _free(self, body: Robot) -> Sequence[FreePart]:
        """Return the free parts of a free body whose momentum is kept up to rounding."""
        return free_parts(body) if self.balances_momentum else ()

    def _pushed_bodies_start(self, h: Any, q: Array, v: Array, inertia: Array, wrench: Array) -> tuple[Array, ...]:
        """Return the same under a wrench [n; f] on the body in the step, body axes."""
        return self._bodies_start(h, q, v, inertia, wrench)

    @cached_property
    def _pushed_bodies(self) -> list[int]:
        """Numbers of the free bodies with external wrenches, 0 for the first body."""
        return [k for k, rows in enumerate(self.wrench_rows[1:]) if rows]

    @cached_property
    def _body_wrenches(self) -> Array:
        """Wrenches on the free bodies in a step, (n, 6), [N m] and [N], body axes."""
        return np.zeros((len(self.bodies), 6))

    def _body_inertia(self, q: Array, inertia: Array) -> Array:
        """Return the inertia matrix of a free body, (6, 6), mixed units, body axes."""
        return inertia_matrix(self._body.applied(inertia), q)

    def _body_pose(self, q: Array) -> Poses:
        """Return the pose of a free body."""
        at = motion(self._body.robot, q)
        return Poses(at.rotation[0], at.origin[0])

    def _bodies_end(
        self, h: Any, q: Array, v: Array, v_free: Array, momenta: Array, inertia: Array, *wrench: Array
    ) -> tuple[Array, Array]:
        """Return q and v after a step, from q in the middle of it, and v with and without impulses."""
        robot = self._body.applied(inertia)
        end, wrenches = drift(robot, q, v, 0.5 * h), wrench[0][None] if wrench else None
        for part, momentum in zip(self._free(robot), momenta, strict=True):
            gained = inertia_matrix(robot, q)[part.v] @ (v - v_free)
            total = part.impulse(h, q, np.zeros(_V), wrenches) + part.on_root(q, gained)
            end = part.balanced(h, Momentum(*momentum), total, *end)
        return normalized(robot, end[0]), end[1]

    def _pushed_bodies_end(
        self, h: Any, q: Array, v: Array, v_free: Array, momenta: Array, inertia: Array, wrench: Array
    ) -> tuple[Array, Array]:
        """Return the same under a wrench [n; f] on the body in the step, body axes."""
        return self._bodies_end(h, q, v, v_free, momenta, inertia, wrench)

    def _body_energies(self, q: Array, v: Array, inertia: Array) -> Array:
        """Return kinetic and potential energy of a free body, (2,), [J]."""
        robot = self._body.applied(inertia)
        return np.stack([kinetic_energy(robot, q, v), potential_energy(robot, q)])

    # Equations.

    def _body_states(self, s: Array) -> tuple[Array, Array]:
        """Return q, (..., n, 7), and v, (..., n, 6), of the free bodies."""
        parts = s[..., s.shape[-1] - (_Q + _V) * len(self.bodies) :].reshape(*s.shape[:-1], -1, _Q + _V)
        return parts[..., :_Q], parts[..., _Q:]

    def impact_step(
        self, t: Any, h: Any, loads: Array, q: Array, s: Array, tau: Array, damping: Array, memory_rate: Array
    ) -> tuple[Array, Array]:
        """Return (q, s) after a time step with impulses, (nq,) and (size,); arguments as in `RigidLoop.impact_step`."""
        step, memory, n = self._step, self._step.memory, self.robot.nv
        step.write(t, h, q, s, tau, damping)
        for kind in self._kinds:
            if kind.wrench_rows:
                kind.loads[:] = loads[kind.wrench_rows]
        starts = [(self.scene.robots[k + 1], memory.states[k]) for k in self._pushed_bodies]
        middle = [drift(robot, state[:_Q], state[_Q:], 0.5 * h) for robot, state in starts]
        for k, state in zip(self._pushed_bodies, middle, strict=True):
            self._body_wrenches[k] = self.pushed(loads, *state, robot=k + 1)[0][0]
        step.take(float(h))
        v_next = step.bodies.v_next[n:].reshape(-1, _V)
        for k, (x, v) in zip(self._pushed_bodies, middle, strict=True):
            memory.works[2] += h * self.pushed(loads, x, 0.5 * (v + v_next[k]), robot=k + 1)[1]
        s_next = memory.state[len(q) :].copy()
        if self.memory:
            s_next[n : n + self.memory] += h * memory_rate
        return memory.q.copy(), s_next

    @cached_property
    @gc_paused()
    def _step(self) -> SceneStep:
        """The prepared calls of a time step."""
        count, tables, own, n = len(self.scene.robots) - 1, self.tables, len(self.robot.bodies), self.robot.nv
        memory = StepMemory(self.robot.nq, n, count, self.memory, len(self.scene.candidates))
        neutral = np.tile([1.0, *np.zeros(6)], (count, 1))
        inertia = self._batch(self._body_inertia, q=(_Q,), inertia=(13,))(neutral, self._inertias)
        bodies = Bodies(self._layout, tables.poses, tables.reach, inertia, memory.h)
        begin = Recording()
        robots = [kind.record(begin, memory, bodies, number) for number, kind in enumerate(self._kinds)]
        middle, poses = np.empty((count, _Q)), [part[own : own + count] for part in bodies.poses]
        v, v_free, v_next = (part[n:].reshape(count, _V) for part in (bodies.v, bodies.v_free, bodies.v_next))
        states, ends = ((part[:, :_Q], part[:, _Q:]) for part in (memory.states, memory.states_end))
        shapes = {"h": (), "q": (_Q,), "v": (_V,)}
        momenta = np.empty((count, len(self._free(self._body.robot)), 3, 3))
        known = {"v_free": (_V,), "momenta": momenta.shape[1:], "inertia": (13,)}
        is_pushed = {"wrench": (_V,)} if self._pushed_bodies else {}
        pushed = [self._body_wrenches] if self._pushed_bodies else []
        start = self._pushed_bodies_start if self._pushed_bodies else self._bodies_start
        kernel = self._batch(start, **shapes, inertia=(13,), **is_pushed)
        results = [middle, v, v_free, momenta, *poses]
        begin.each(kernel, count, memory.h, *states, self._inertias, *pushed, results=results)
        bodies.record_reach(begin, bodies.padded[1])
        finish = self._pushed_bodies_end if self._pushed_bodies else self._bodies_end
        kernel = self._batch(finish, **shapes, **known, **is_pushed)
        end = kernel.prepare(count, memory.h, middle, v_next, v_free, momenta, self._inertias, *pushed, results=ends)
        solver = ContactSolver(self.scene.ground, bodies, self._coefficients, memory.contacts.forces, self.solver)
        last, works = [*(call for call, _ in robots), end], [work for _, work in robots]
        return SceneStep(memory, bodies, self.tables, begin.sequence(), last, works, solver)

    @cached_property
    def _layout(self) -> BodyLayout:
        """The generalized velocities of all bodies in the order of `Poses`."""
        nv, count = self.robot.nv, len(self.scene.robots) - 1
        starts = [0 if part is None else part.start for part in self._robot_of]
        first = np.concatenate([starts, nv + _V * np.arange(count), [0]]).astype(int)
        is_free = np.repeat([False, True, False], [len(starts), count, 1])
        sizes = [*(part.stop - part.start for part in self._robots), *[_V] * count]
        return BodyLayout(first, is_free, self._layout_kinds(), np.cumsum([0, *sizes]), self.tables.extent)

    def poses(self, q: Array, s: Array) -> Poses:
        """Return the poses of all bodies of the scene, (..., B, 3, 3) and (..., B, 3).

        Args:
            q: Configurations, (..., nq). s: Rests of states, (..., size).
        """
        count, total = len(self.robot.bodies), len(self.robot.bodies) + len(self.bodies) + 1  # with the world
        lead = q.shape[:-1]
        rotation, origin = np.tile(np.eye(3), (*lead, total, 1, 1)), np.zeros((*lead, total, 3))
        for kind in self._kinds:
            rotation[..., kind.bodies, :, :], origin[..., kind.bodies, :] = kind.poses(q)
        own = self._batch(self._body_pose, q=(_Q,))(self._body_states(s)[0])
        rotation[..., count:-1, :, :], origin[..., count:-1, :] = own
        return Poses(rotation, origin)

    def external_forces(self, q: Array, s: Array) -> ExternalForces:
        """Return the contact forces of the last step at the present contact points.

        Points of candidates whose bodies are apart are the origins of their first bodies.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        return self.forces_at(self.poses(q, s), s)

    def forces_at(self, poses: Poses, s: Array) -> ExternalForces:
        """Return `external_forces` of bodies at given poses.

        Args:
            poses: Of all bodies. s: Rest of the state, (size,).
        """
        forces, detected = self.forces(s), self.tables.detect(poses)
        points, world = poses.origin[self._first_bodies], np.zeros((len(forces), 3))
        points[detected.numbers] = detected.point
        world[detected.numbers] = (detected.frame * forces[detected.numbers][:, :, None]).sum(axis=1)
        contact = self._wrenches(poses, detected, world)
        return ExternalForces(contact, points, world, np.zeros(self.ground_memory), 0.0)

    def contact_wrenches(self, q: Array, s: Array) -> Array:
        """Return the wrenches of the contact forces of `external_forces`; zero if the controller does not read them.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        if not self.controller.takes_wrenches:
            return np.zeros((len(self.robot.links), 6))
        return self._contact_on_robot(q, s)

    def forces_of_rate(self, q: Array, s: Array) -> ExternalForces:
        """Return `external_forces` with contact points at zero.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        none = np.zeros((len(self.scene.candidates), 3))
        return ExternalForces(self._contact_on_robot(q, s), none, none, np.zeros(self.ground_memory), 0.0)

    def _contact_on_robot(self, q: Array, s: Array) -> Array:
        """Return the wrenches of the contact forces of the last step on the links of the robot, (n_links, 6)."""
        forces = self.forces(s)
        pressed = np.flatnonzero(forces.any(axis=1) & self._on_robot)
        if not len(pressed):
            return np.zeros((len(self.robot.links), 6))
        poses = self.poses(q, s)
        detected = self.tables.detect(poses, only=pressed)
        world = np.zeros((len(forces), 3))
        world[detected.numbers] = (detected.frame * forces[detected.numbers][:, :, None]).sum(axis=1)
        return self._wrenches(poses, detected, world)

    @cached_property
    def _on_robot(self) -> Array:
        """Whether each candidate acts on the robot, (m,)."""
        sides = [[side is not None and side.robot == 0 for side in (c.first, c.second)] for c in self.scene.candidates]
        return np.array([any(both) for both in sides], dtype=bool)

    @cached_property
    def _first_bodies(self) -> Array:
        starts, pairs = self.tables.starts, self.scene.pairs
        return np.array([starts[p.first.robot] + p.first.body for p in pairs for _ in p.names], dtype=int)

    def _wrenches(self, poses: Poses, detected: Detected, world: Array) -> Array:
        """Return the wrenches of contact forces on the links of the robot, (n_links, 6), link axes."""
        wrenches = np.zeros((len(self.robot.links), 6))
        pressed = np.flatnonzero(world[detected.numbers].any(axis=1))
        bodies = self.tables.starts[1]  # of the robot
        own = (detected.first[pressed] < bodies) | (detected.second[pressed] < bodies)
        for k in pressed[own].tolist():
            candidate = self.scene.candidates[detected.numbers[k]]
            force = world[detected.numbers[k]]
            for side, f in ((candidate.first, force), (candidate.second, -force)):
                if side is not None and side.robot == 0:
                    link, R_body = self.robot.links[side.link], poses.rotation[side.body]
                    R = R_body @ link.rotation
                    r = R.T @ (detected.point[k] - poses.origin[side.body] - R_body @ link.position)
                    wrenches[side.link] += join(cross(r, R.T @ f), R.T @ f)
        return wrenches

    def pushed(self, loads: Array, q: Array, v: Array, robot: int = 0) -> tuple[Array, Any]:
        """Return wrenches and power of loads, (n_links, 6) and [W]; see `RigidLoop.pushed`."""
        return RigidLoop.pushed(self, loads, q, v, robot)  # part of the kernels of a step for robots

    def dissipation(self, q: Array, v: Array) -> Any:
        """Return the power of joint friction and stops, [W]; see `ClosedLoop.dissipation`.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,).
        """
        return ClosedLoop.dissipation(self, q, v)  # of a large group, whose kernel would take long to compile

    def outputs(self, q: Array, s: Array) -> Outputs:
        """Return energies of the robot and the bodies, and the pose of the base.

        Args:
            q: Configurations, (..., nq). s: Rests of states, (..., size).
        """
        energies, base = self.energies(q, s), self.robot.base
        poses = [base.pose(row) for row in q[..., : base.nq].reshape(math.prod(q.shape[:-1]), base.nq)]
        rotation, origin = (np.array(part).reshape(*q.shape[:-1], *part[0].shape) for part in zip(*poses, strict=True))
        return Outputs(energies[..., 0], energies[..., 1], rotation, origin)

    def compile_energies(self) -> None:
        """Trace the kernels of `energies` of the robots, which another thread compiles if a processor is free."""
        for kind in self._kinds:
            _ = kind.energy_kernel

    def energies(self, q: Array, s: Array) -> Array:
        """Return kinetic and potential energy of robot and free bodies, (..., 2), [J].

        Args:
            q: Configurations, (..., nq). s: Rests of states, (..., size).
        """
        own = [kind.energies(q, s[..., : self.robot.nv]) for kind in self._kinds]
        return sum(own, self._body_energies_of(s))

    def _body_energies_of(self, s: Array) -> Array:
        """Return kinetic and potential energy of all free bodies together, (..., 2), [J]."""
        kernel = self._batch(self._body_energies, q=(_Q,), v=(_V,), inertia=(13,))
        return kernel(*self._body_states(s), self._inertias).sum(axis=-2)
