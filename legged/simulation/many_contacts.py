"""A scene with many contact candidates, in parts: kernels of equal robots, of all free bodies, of each kind of pair.

A kernel of the whole time step contains every pair and every contact. Its compilation takes minutes for hundreds of
contacts. Here the same equations are evaluated by kernels that do not depend on the number of bodies and pairs, and by
matrices in blocks of the contacts that may close in the step; see `legged.contact.pair_tables` and
`legged.contact.touching`.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel, PreparedCall, Rows
from legged.compiler.runtime.call_sequence import CallSequence
from legged.contact.bodies import Bodies
from legged.contact.contact_tables import ContactTables
from legged.contact.impulses.contact_pattern import BodyLayout
from legged.contact.pair_tables import Detected, PairTables, Poses
from legged.contact.rigid import FreeBody
from legged.contact.touching import ContactSolver, Solver, newton_solution
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import kinetic_energy, motion, potential_energy
from legged.robot.construction.group import RobotGroup
from legged.robot.inertia import Inertia
from legged.simulation.equal_robots import EqualRobots, Geometry, StepMemory, equal_robots
from legged.simulation.forces import push_wrenches
from legged.simulation.loop.chart import drift, normalized
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.results import ExternalForces, Outputs
from legged.simulation.loop.rigid_loop import RigidLoop, flight, memory_after
from legged.spatial import Array, cross, join

MANY_CONTACTS = 64
"""Number of contact candidates above which a scene runs in parts, unless `compiled` is True."""
_Q, _V = 7, 6  # sizes of the state of a free body


class _Step(NamedTuple):
    """The prepared calls of a time step.

    Attributes:
        memory: Their arguments and results. bodies: The bodies.
        begin: Writes the bodies in the middle of the step, and how far they may move in it.
        ends: Write robots and free bodies after the step.
        works: Works of the robots of each kind without that of contacts, (m, 4), [J].
        solver: Solves the contact problem.
        by_contacts: The end of a step with the contacts of index tables.
    """

    memory: StepMemory
    bodies: Bodies
    begin: CallSequence
    ends: Sequence[PreparedCall]
    works: Sequence[Array]
    solver: ContactSolver
    by_contacts: MutableMapping[ContactTables, _End]


class _End(NamedTuple):
    """The calls that end a step with k contacts.

    Attributes:
        calls: Write robots and free bodies after the step, and `after`.
        places: Entries of the rest of the state with the `ContactMemory` of each contact, (k, 8).
        before, after: These entries before and after the step, (k, 8), mixed units.
    """

    calls: CallSequence
    places: Array
    before: Array
    after: Array


@dataclass(frozen=True, eq=False)
class SceneInParts(RigidLoop):
    """A robot under a controller on a `Rigid` ground among free bodies, with many contact candidates.

    Its steps write to arrays that it keeps, so that two threads must not step the same scene at once.

    Attributes:
        solver: Method that solves the contact problem of a step.
    """

    solver: ClassVar[Solver] = staticmethod(newton_solution)

    # Kernels.

    def _batch(self, function: Callable[..., Any], **shapes: Any) -> BatchKernel:
        """Return the kernel of a function that is called with all free bodies, or with many results."""
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

    def _numbers(self) -> list[tuple[Array, Array]]:
        """Return the `kinds` of a `BodyLayout`: robots with generalized velocities, and bodies with Jacobians."""
        starts, moves = {part.start: k for k, part in enumerate(self._robots)}, [x is not None for x in self._robot_of]
        found = list[tuple[Array, Array]]()
        for kind in self._kinds:
            robots = np.array([starts[row[0]] if len(row) else -1 for row in kind.v.tolist()])
            bodies = kind.bodies[:, kind.touching]
            found.append((robots, np.where(np.array(moves)[bodies], bodies, -1)))
        return found

    @cached_property
    def _robots(self) -> list[slice]:
        """Generalized velocities of each robot of a group that has some, or of the one robot."""
        parts = [m.v for m in self.robot.members] if isinstance(self.robot, RobotGroup) else [slice(0, self.robot.nv)]
        return [part for part in parts if part.stop > part.start]

    @cached_property
    def _robot_of(self) -> list[slice | None]:
        """Generalized velocities of the robot of each body; None for bodies that do not move."""
        robot, found = self.robot, list[slice | None]()
        for body in range(len(robot.bodies)):
            moving = [robot.bodies[j].v.start for j in robot.ancestors(body) if robot.bodies[j].P.shape[1]]
            found.append(next((own for own in self._robots if moving and own.start <= moving[0] < own.stop), None))
        return found

    @cached_property
    def _coefficients(self) -> Array:
        """Friction and restitution of each candidate, (m, 2)."""
        ground, found = self.scene.ground, []
        for pair in self.scene.pairs:
            found += [ground.coefficients(*pair.materials)] * len(pair.names)
        return np.array(found).reshape(-1, 2)

    @cached_property
    def _body(self) -> Any:
        """A free body whose mass, center and tensor are those of a vector, (13,)."""
        robot = FreeBody("body", Inertia(1.0, np.zeros(3), np.eye(3)), ()).robot(self.robot.gravity)
        return robot.parameter_vector(["body.mass", "body.center", "body.tensor"])

    @cached_property
    def _inertias(self) -> Array:
        """Mass, center and tensor of each free body, (n, 13)."""
        inertias = [robot.links[0].inertia for robot in self.scene.robots[1:]]
        return np.array([[i.mass, *i.center, *np.ravel(i.tensor)] for i in inertias]).reshape(-1, 13)

    def _bodies_start(self, h: Any, q: Array, v: Array, inertia: Array) -> tuple[Array, ...]:
        robot = self._body.applied(inertia)
        q, v = drift(robot, q, v, 0.5 * h)
        at = motion(robot, q)
        return q, v, flight(robot, h, q, v), at.rotation[0], at.origin[0]

    def _bodies_geometry(self, q: Array, inertia: Array) -> Geometry:
        robot = self._body.applied(inertia)
        at, M = motion(robot, q), inertia_matrix(robot, q)
        return Geometry(at.rotation[0], at.origin[0], M, np.zeros(0), np.zeros(0))

    def _bodies_end(self, h: Any, q: Array, v: Array) -> tuple[Array, Array]:
        q, v = drift(self._body.robot, q, v, 0.5 * h)
        return normalized(self._body.robot, q), v

    def _body_energies(self, q: Array, v: Array, inertia: Array) -> Array:
        robot = self._body.applied(inertia)
        return np.stack([kinetic_energy(robot, q, v), potential_energy(robot, q)])

    # Equations.

    def _body_states(self, s: Array) -> tuple[Array, Array]:
        """Return q, (..., n, 7), and v, (..., n, 6), of the free bodies."""
        parts = s[..., ClosedLoop.size.fget(self) :].reshape(*s.shape[:-1], -1, _Q + _V)  # type: ignore[attr-defined]
        return parts[..., :_Q], parts[..., _Q:]

    def impact_step(
        self, t: Any, h: Any, q: Array, s: Array, tau: Array, damping: Array, memory_rate: Array
    ) -> tuple[Array, Array]:
        """Return (q, s) after a time step with impulses, (nq,) and (size,); arguments as in `RigidLoop.impact_step`."""
        step, n, count = self._step, self.robot.nv, ClosedLoop.size.fget(self)  # type: ignore[attr-defined]
        memory, bodies, own = step.memory, step.bodies, n + self.memory
        self._begin(t, h, q, s, tau, damping)
        detected = self.tables.detect(bodies.poses, bodies.reach)
        forces, (drift, worst) = s[own : own + 3 * len(self.scene.candidates)], s[count - 6 : count - 4]
        tables, impact = step.solver.impulses(detected, float(h), forces.reshape(-1, 3))
        end = self._end(tables) if tables else self._without_contacts
        end.before[:] = s[end.places]
        end.calls()
        found = s.copy()
        found[own : own + len(forces)] = 0.0
        found[end.places] = end.after
        found[count - 6], found[count - 5] = drift + h * impact.residual, max(worst, impact.residual)
        found[count - 3] += impact.work
        for works in step.works:
            found[count - 4 : count] += works.sum(axis=0)
        found[:n], found[count:] = memory.v_end, memory.states_end.ravel()
        if self.memory:
            found[n:own] += h * memory_rate
        return memory.q_end.copy(), found

    def _begin(self, t: Any, h: Any, q: Array, s: Array, tau: Array, damping: Array) -> None:
        """Write robots and bodies in the middle of a step, and how far they may move in it."""
        memory, n, free = self._step.memory, self.robot.nv, self._step.memory.states.size
        memory.t[...], memory.h[...], memory.middle[...], memory.q[:], memory.v[:] = t, h, t + 0.5 * h, q, s[:n]
        memory.tau[:], memory.damping[:], memory.states[:] = tau, damping, s[len(s) - free :].reshape(-1, _Q + _V)
        self._step.begin()

    @cached_property
    def _without_contacts(self) -> _End:
        none = np.zeros((0, 8))
        return _End(CallSequence(self._step.ends), none.astype(int), none, none)

    def _end(self, tables: ContactTables) -> _End:
        """Return the end of a step with contacts, and keep it."""
        step, m = self._step, len(self.scene.candidates)
        found = step.by_contacts.get(tables)
        if found is None:
            numbers, frames = tables.numbers, Rows(tables.detected.frame, tables.rows)
            vector, place = 3 * numbers[:, None] + np.arange(3), numbers[:, None]
            places = self.robot.nv + self.memory + np.hstack([vector, 3 * m + vector, 6 * m + place, 7 * m + place])
            before, after = np.empty(places.shape), np.empty(places.shape)
            kernel = self._batch(memory_after, t=(), h=(), frame=(3, 3), p=(3,), before=(8,))
            arguments = step.memory.middle, step.memory.h, frames, tables.p, before
            call = kernel.prepare(len(numbers), *arguments, results=[after])
            step.by_contacts[tables] = found = _End(CallSequence([*step.ends, call]), places, before, after)
        return found

    @cached_property
    def _step(self) -> _Step:
        """The prepared calls of a step."""
        count, tables, own, n = len(self.scene.robots) - 1, self.tables, len(self.robot.bodies), self.robot.nv
        memory, neutral = StepMemory(self.robot.nq, n, count), np.tile([1.0, *np.zeros(6)], (count, 1))
        inertia = self._batch(self._bodies_geometry, q=(_Q,), inertia=(13,))(neutral, self._inertias).inertia
        bodies = Bodies(self._layout, tables.poses, tables.reach, inertia, memory.h)
        robots = [kind.prepare(memory, bodies, number) for number, kind in enumerate(self._kinds)]
        middle, poses = np.empty((count, _Q)), [part[own : own + count] for part in bodies.poses]
        v, v_free, v_next = (part[n:].reshape(count, _V) for part in (bodies.v, bodies.v_free, bodies.v_next))
        states, ends = ((part[:, :_Q], part[:, _Q:]) for part in (memory.states, memory.states_end))
        kernel = self._batch(self._bodies_start, h=(), q=(_Q,), v=(_V,), inertia=(13,))
        start = kernel.prepare(count, memory.h, *states, self._inertias, results=[middle, v, v_free, *poses])
        kernel = self._batch(self._bodies_end, h=(), q=(_Q,), v=(_V,))
        end = kernel.prepare(count, memory.h, middle, v_next, results=ends)
        solver = ContactSolver(self.scene.ground, bodies, self._coefficients, self.solver)
        starts = [call for calls, _, _ in robots for call in calls]
        begin = CallSequence([*starts, start, *bodies.reach_calls(bodies.wide[1])])
        last, works = [*(call for _, call, _ in robots), end], [work for _, _, work in robots]
        return _Step(memory, bodies, begin, last, works, solver, WeakKeyDictionary())

    def _poses(self, robots: Sequence[Geometry], bodies: Geometry) -> Poses:
        """Return the poses of the bodies of the robots, of the free bodies, and of the world."""
        own = len(self.robot.bodies)
        rotation, origin = np.tile(np.eye(3), (own, 1, 1)), np.zeros((own, 3))
        for kind, geometry in zip(self._kinds, robots, strict=True):
            rotation[kind.bodies], origin[kind.bodies] = geometry.rotation, geometry.origin
        rotation = np.concatenate([rotation, bodies.rotation, np.eye(3)[None]])
        return Poses(rotation, np.concatenate([origin, bodies.origin, np.zeros((1, 3))]))

    @cached_property
    def _layout(self) -> BodyLayout:
        """The generalized velocities of all bodies in the order of `Poses`."""
        nv, count = self.robot.nv, len(self.scene.robots) - 1
        starts = [0 if part is None else part.start for part in self._robot_of]
        first = np.concatenate([starts, nv + _V * np.arange(count), [0]]).astype(int)
        is_free = np.repeat([False, True, False], [len(starts), count, 1])
        sizes = [*(part.stop - part.start for part in self._robots), *[_V] * count]
        return BodyLayout(first, is_free, self._numbers(), np.cumsum([0, *sizes]), self.tables.extent)

    def poses(self, q: Array, s: Array) -> Poses:
        """Return the poses of all bodies of the scene.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        kernel = self._batch(self._bodies_geometry, q=(_Q,), inertia=(13,))
        free = kernel(self._body_states(s)[0], self._inertias)
        return self._poses([kind.geometry(q) for kind in self._kinds], free)

    def external_forces(self, t: Any, q: Array, s: Array) -> ExternalForces:
        """Return the contact forces of the last step at the present contact points, and the pushes.

        Points of candidates whose bodies are apart are the origins of their first bodies.

        Args:
            t: Time, [s]. q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        part, poses = self.split(s), self.poses(q, s)
        forces, detected = self.forces(s), self.tables.detect(poses)
        points, world = poses.origin[self._first_bodies], np.zeros((len(forces), 3))
        points[detected.numbers] = detected.point
        world[detected.numbers] = (detected.frame * forces[detected.numbers][:, :, None]).sum(axis=1)
        contact = self._wrenches(poses, detected, world)
        pushed, power = 0.0, 0.0
        if self.pushes:
            pushed, power = push_wrenches(self.robot, self.pushes, t, q, part.v)
        rate = np.zeros(self.ground_memory)
        return ExternalForces(contact, contact + pushed, points, world, rate, np.array([0.0, power]))

    def contact_wrenches(self, t: Any, q: Array, s: Array) -> Array:
        """Return the wrenches of the contact forces of `external_forces`; zero if the controller does not read them.

        Args:
            t: Time, [s]. q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        none = np.zeros((len(self.robot.links), 6))
        if not self.controller.takes_wrenches:
            return none
        forces = self.forces(s)
        pressed = np.flatnonzero(forces.any(axis=1) & self._on_robot)
        if not len(pressed):
            return none
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
        found = np.zeros((len(self.robot.links), 6))
        pressed = np.flatnonzero(world[detected.numbers].any(axis=1))
        bodies = np.arange(self.tables.starts[1])  # of the robot
        own = np.isin(detected.first[pressed], bodies) | np.isin(detected.second[pressed], bodies)
        for k in pressed[own].tolist():
            candidate = self.scene.candidates[detected.numbers[k]]
            force = world[detected.numbers[k]]
            for side, f in ((candidate.first, force), (candidate.second, -force)):
                if side is not None and side.robot == 0:
                    link, R_body = self.robot.links[side.link], poses.rotation[side.body]
                    R = R_body @ link.rotation
                    r = R.T @ (detected.point[k] - poses.origin[side.body] - R_body @ link.position)
                    found[side.link] += join(cross(r, R.T @ f), R.T @ f)
        return found

    def dissipation(self, h: Any, q: Array, v: Array, v_next: Array) -> Any:
        """Return the mean power of joint friction and stops, [W]; see `ClosedLoop.dissipation`.

        Args:
            h: Time step, [s]. q: Configuration, (nq,).
            v: Velocity before the step, (nv,), mixed units. v_next: Velocity after it, (nv,), mixed units.
        """
        return ClosedLoop.dissipation(self, h, q, v, v_next)  # part of the kernels of a step

    def outputs(self, q: Array, s: Array) -> Outputs:
        """Return energies of the robot and the bodies, the pose of the base and the positions of the nodes.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        positions = np.zeros((len(self.nodes), 3))
        for k, (link, point) in enumerate(self.nodes):  # of the world link of a group; the others follow
            positions[k] = self.robot.links[link].position + self.robot.links[link].rotation @ point
        for kind in self._kinds:
            positions[kind.nodes] = kind.positions(q)
        (kinetic, potential), base = self.energies(q, s), self.robot.base
        rotation, origin = base.pose(q[: base.nq])
        return Outputs(kinetic, potential, rotation, origin, positions)

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
