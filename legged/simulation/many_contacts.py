"""A scene with many contact candidates, in parts: kernels of the robot, of all free bodies, and of each kind of pair.

A kernel of the whole time step contains every pair and every contact. Its compilation takes minutes for hundreds of
contacts. Here the same equations are evaluated by kernels that do not depend on the number of bodies and pairs, and by
matrices in blocks of the contacts that may close in the step; see `legged.contact.pair_tables` and
`legged.contact.touching`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import compile as compile_function
from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.contact.bodies import Bodies
from legged.contact.impulses.contact_pattern import BodyLayout
from legged.contact.impulses.dense import twist_jacobian
from legged.contact.impulses.impact import Impact
from legged.contact.pair_tables import Detected, PairTables, Poses
from legged.contact.rigid import FreeBody
from legged.contact.touching import impulses
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import kinetic_energy, motion, potential_energy
from legged.robot.construction.group import RobotGroup
from legged.robot.inertia import Inertia
from legged.simulation.forces import push_wrenches
from legged.simulation.loop.chart import drift, normalized
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.results import ExternalForces, Outputs
from legged.simulation.loop.rigid_loop import ContactMemory, RigidLoop, flight
from legged.spatial import Array, cross, join

MANY_CONTACTS = 64
"""Number of contact candidates above which a scene runs in parts, unless `compiled` is True."""
_Q, _V = 7, 6  # sizes of the state of a free body


class _Start(NamedTuple):
    """The robot or free bodies in the middle of a step: q and v there, v without impulses, and the diagonal of the
    inertia that implicit forces add."""

    q: Array
    v: Array
    v_free: Array
    extra: Array


class _Geometry(NamedTuple):
    """Poses of the bodies of the robot or of free bodies and inertia matrices; of the robot also the Jacobians of its
    touching bodies in one vector, of the columns of their robot in a group."""

    rotation: Array
    origin: Array
    inertia: Array
    jacobians: Array


@dataclass(frozen=True, eq=False)
class SceneInParts(RigidLoop):
    """A robot under a controller on a `Rigid` ground among free bodies, with many contact candidates."""

    # Kernels.

    def _kernel(self, function: Callable[..., Any], **shapes: Any) -> Callable[..., Any]:
        """Return the kernel of a function of the robot."""
        kernels = self.__dict__.setdefault("_kernels", {})
        if function.__name__ not in kernels:
            kernels[function.__name__] = compile_function(function, None, **shapes)
        return kernels[function.__name__]

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
    def _touching_bodies(self) -> dict[int, slice]:
        """Bodies of the robot that move and have shapes or contact points -> velocities of their robot in a group."""
        sides = [side for pair in self.scene.pairs for side in (pair.first, pair.second) if side is not None]
        bodies = sorted({side.body for side in sides if side.robot == 0})
        return {body: self._robot_of[body] for body in bodies if self._robot_of[body] is not None}  # type: ignore[misc]

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

    def _robot_start(self, t: Any, h: Any, q: Array, v: Array, tau: Array, damping: Array) -> tuple[_Start, _Geometry]:
        q, v = drift(self.robot, q, v, 0.5 * h)
        extra = h * (self.implicit_damping(h, q, v) + damping)
        return _Start(q, v, self._free(h, t, tau, extra, q, v), extra), self._robot_geometry(q)

    def _robot_geometry(self, q: Array) -> _Geometry:
        robot, at = self.robot, motion(self.robot, q)
        J = [twist_jacobian(robot, q, body, np.eye(6))[:, own].ravel() for body, own in self._touching_bodies.items()]
        M = inertia_matrix(robot, q)
        return _Geometry(np.array(at.rotation), np.array(at.origin), M, np.concatenate([np.zeros(0), *J]))

    def _robot_end(
        self, t: Any, h: Any, q: Array, v: Array, v_next: Array, start: Array, tau: Array, damping: Array, work: Any
    ) -> tuple[Array, Array, Array]:
        impact = Impact(np.zeros((0, 3)), [v_next], 0.0, work)
        works = self._works(t, h, tau - damping * (v_next - start), q, v, impact)
        q, v = drift(self.robot, q, v_next, 0.5 * h)
        return normalized(self.robot, q), v, np.stack(works)

    def _bodies_start(self, h: Any, q: Array, v: Array, inertia: Array) -> tuple[_Start, _Geometry]:
        robot = self._body.applied(inertia)
        q, v = drift(robot, q, v, 0.5 * h)
        return _Start(q, v, flight(robot, h, q, v), np.zeros(_V)), self._bodies_geometry(q, inertia)

    def _bodies_geometry(self, q: Array, inertia: Array) -> _Geometry:
        robot = self._body.applied(inertia)
        at, M = motion(robot, q), inertia_matrix(robot, q)
        return _Geometry(at.rotation[0], at.origin[0], M, np.zeros(0))

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
        t, h, part, n = float(t), float(h), self.split(s), self.robot.nv
        vectors = {"q": self.robot.nq, "v": n, "tau": n, "damping": n}
        start, own = self._kernel(self._robot_start, t=(), h=(), **vectors)(t, h, q, part.v, tau, damping)
        begin = self._batch(self._bodies_start, h=(), q=(_Q,), v=(_V,), inertia=(13,))
        others, free = begin(h, *self._body_states(s), self._inertias)
        bodies = self._bodies(start, own, others, free)
        memory = ContactMemory.of(part.ground_memory)
        reach = bodies.reach(h)
        detected = self.tables.detect(bodies.poses, reach)
        arguments = self._coefficients[detected.numbers], np.concatenate([start.v, others.v.ravel()]), h
        guess = h * memory.forces[detected.numbers]
        rows, impact = impulses(self.scene.ground, bodies, detected, *arguments, guess, reach)
        shapes = {"t": (), "h": (), "v_next": n, "start": n, "work": (), **vectors}
        end = self._kernel(self._robot_end, **shapes)
        v_next, v_others = impact.v_next[0][:n], impact.v_next[0][n:].reshape(-1, _V)
        q_next, v_next, works = end(t, h, start.q, start.v, v_next, part.v, tau, damping, float(impact.work))
        ends = self._batch(self._bodies_end, h=(), q=(_Q,), v=(_V,))
        q_others, v_others = ends(h, others.q, v_others)
        frames = detected.frame[np.searchsorted(detected.numbers, rows)]
        ground = memory.after_some(rows, t + 0.5 * h, h, frames, impact)
        states = np.concatenate([q_others, v_others], axis=1).ravel()
        return q_next, np.concatenate(
            [v_next, part.memory + h * memory_rate, ground.flat(), part.works + works, states]
        )

    def _geometry(self, q: Array, others: Array) -> tuple[_Geometry, _Geometry]:
        """Return the geometry of the robot and of the free bodies at their configurations, (nq,) and (n, 7)."""
        own = _Geometry(*(part[0] for part in self._batch(self._robot_geometry, q=(self.robot.nq,))(q[None])))
        return own, self._batch(self._bodies_geometry, q=(_Q,), inertia=(13,))(others, self._inertias)

    @cached_property
    def _layout(self) -> BodyLayout:
        """The generalized velocities of all bodies in the order of `Poses`."""
        nv, count = self.robot.nv, len(self.scene.robots) - 1
        starts = [0 if part is None else part.start for part in self._robot_of]
        first = np.concatenate([starts, nv + _V * np.arange(count), [0]]).astype(int)
        is_free = np.repeat([False, True, False], [len(starts), count, 1])
        sizes = [*(part.stop - part.start for part in self._robots), *[_V] * count]
        articulated = np.array(list(self._touching_bodies), dtype=int)
        return BodyLayout(first, is_free, articulated, np.cumsum([0, *sizes]), self.tables.extent)

    def _bodies(self, start: _Start, own: _Geometry, others: _Start, free: _Geometry) -> Bodies:
        """Return all bodies in the middle of a step."""
        M = own.inertia + np.diag(start.extra)
        inertia = [*(M[part, part] for part in self._robots), *free.inertia]
        widths = [part.stop - part.start for part in self._touching_bodies.values()]
        columns = np.split(own.jacobians, np.cumsum([6 * width for width in widths])[:-1]) if widths else []
        jacobians = {
            body: J.reshape(6, width) for body, J, width in zip(self._touching_bodies, columns, widths, strict=True)
        }
        v_free = np.concatenate([start.v_free, others.v_free.ravel()])
        return Bodies(_with_world(own, free), self._layout, jacobians, inertia, v_free)

    def poses(self, q: Array, s: Array) -> Poses:
        """Return the poses of all bodies of the scene.

        Args:
            q: Configuration, (nq,). s: Rest of the state, (size,).
        """
        return _with_world(*self._geometry(q, self._body_states(s)[0]))

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
        forces = self.forces(s)
        pressed = np.flatnonzero(forces.any(axis=1) & self._on_robot)
        if not (len(pressed) and self.controller.takes_wrenches):
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
        n = self.robot.nv
        own = self._kernel(self._robot_outputs, q=self.robot.nq, v=n)(q, s[:n])
        kinetic, potential = self._body_energies_of(s)
        return own._replace(kinetic=own.kinetic + kinetic, potential=own.potential + potential)

    def _robot_outputs(self, q: Array, v: Array) -> Outputs:
        return ClosedLoop.outputs(self, q, np.concatenate([v, np.zeros(self.size - self.robot.nv)]))

    def energies(self, q: Array, s: Array) -> Array:
        """Return kinetic and potential energy of robot and free bodies, (..., 2), [J].

        Args:
            q: Configurations, (..., nq). s: Rests of states, (..., size).
        """
        n = self.robot.nv
        own = self._kernel(self._robot_outputs, q=self.robot.nq, v=n)(q, s[..., :n])
        return np.stack([own.kinetic, own.potential], axis=-1) + self._body_energies_of(s)

    def _body_energies_of(self, s: Array) -> Array:
        """Return kinetic and potential energy of all free bodies together, (..., 2), [J]."""
        kernel = self._batch(self._body_energies, q=(_Q,), v=(_V,), inertia=(13,))
        return kernel(*self._body_states(s), self._inertias).sum(axis=-2)


def _with_world(robot: _Geometry, bodies: _Geometry) -> Poses:
    """Return the poses of the bodies of the robot, of the free bodies, and of the world."""
    rotation = np.concatenate([robot.rotation, bodies.rotation, np.eye(3)[None]])
    return Poses(rotation, np.concatenate([robot.origin, bodies.origin, np.zeros((1, 3))]))
