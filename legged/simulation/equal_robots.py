"""`EqualRobots`: the robots of a scene in parts that have the same description, computed by one set of kernels.

A scene with many contacts is evaluated in parts, see `many_contacts.SceneInParts`, which gets its robots from the
function `equal_robots`. The members of a `RobotGroup` that have the same description differ by their states and places.
The kernels of the first of them compute all, in the lanes of vectors, so that code and its compilation do not grow with
the number of equal robots.

In a time step each kind of equal robots takes part twice. Before contacts are detected, `_start` moves the robots to
the middle of the step, computes their velocities without impulses, and writes poses, inertia and Jacobians to
`contact.bodies.Bodies`. After the contact problem is solved, `_end` computes the states after the step from the
velocities with impulses. `EqualRobots.record` records the calls of both for the arrays of a `StepMemory`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import BatchKernel, PreparedCall, Rows, windows
from legged.contact.bodies import Bodies
from legged.contact.impulses.dense import screws
from legged.contact.impulses.impact import Impact
from legged.contact.pair_tables import Poses
from legged.contact.recording import Recording
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import Motion, kinetic_energy, motion, potential_energy
from legged.dynamics.passive import without_dry_friction
from legged.robot.base import FloatingBase
from legged.robot.configuration import drift, normalized
from legged.robot.construction.group import SEPARATOR, Member, RobotGroup, separated
from legged.robot.robot import Robot
from legged.simulation.loop.external_wrenches import LOAD, StepWrench
from legged.simulation.loop.joint_laws import JointLaws, JointStep
from legged.simulation.loop.momentum import Momentum, free_parts
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.scene_steps import StepMemory
from legged.spatial import Array

_SAMPLES = 4
"""Number of samples, of robots outside of steps, that a kernel computes together; more take longer to compile."""


class MiddleOfStep(NamedTuple):
    """Robots in the middle of a step, with a leading axis of robots; as values, or as the places of these in arrays.

    Attributes:
        q, v: Configuration, (..., nq), and velocity, (..., nv), mixed units, in the middle of the step.
        v_free: Velocity after the step without impulses, (..., nv), mixed units.
        slope, impulse: Those of stops, see `JointStep`, (..., nv) each, mixed units.
        momenta: `Momentum` of each free part before the step, (..., k, 3, 3), mixed units, world axes.
        rows: Rows of the inertia matrix of the roots of the free parts, (..., r, nv), mixed units.
    """

    q: Array
    v: Array
    v_free: Array
    slope: Array
    impulse: Array
    momenta: Array
    rows: Array


class Geometry(NamedTuple):
    """Poses and inertia of m robots with b bodies.

    Attributes:
        rotation: Body to world axes, (m, b, 3, 3).
        origin: Origins of the bodies, (m, b, 3), [m], world axes.
        inertia: Inertia matrices, (m, nv, nv), mixed units; in a step with what implicit forces add to the diagonal.
        screws: Motions that the joint rates cause, see `dense.screws`, (m, c, 9), mixed units, world axes.
    """

    rotation: Array
    origin: Array
    inertia: Array
    screws: Array


class PlacedRobot(NamedTuple):
    """Where a robot is in the arrays of the scene, and in space.

    Attributes:
        q, v: Its entries in the q and v of the scene's robot, (nq,) and (nv,).
        bodies: Numbers in the scene's robot of its bodies with links, (b,).
        shift: Its place relative to that of the robot alone, (3,), [m], world axes.
    """

    q: Array
    v: Array
    bodies: Array
    shift: Array


@dataclass(frozen=True, eq=False)
class _RobotInParts(RigidLoop):
    """The equations of one robot of a scene in parts, in which joint friction and stops do not know contact forces.

    Stops are decided without them. Dry friction, which would need them to hold a joint, is a part of the smooth forces:
    it is regularized, see `legged.robot.physics`.
    """

    @cached_property
    def smooth_robot(self) -> Robot:
        """The robot with its dry friction, which other loops leave to `joint_laws`."""
        return self.robot

    @cached_property
    def joint_laws(self) -> JointLaws:
        """The stops of joints in time steps."""
        return JointLaws.of(without_dry_friction(self.robot))


class EqualRobots:
    """Robots of a scene that share kernels: equal members of a group, or its one robot.

    Attributes:
        loop: The equations of motion of one of them alone.
        q, v: Their entries in the q and v of the scene's robot, (m, nq) and (m, nv).
        bodies: Numbers in the scene's robot of their bodies with links, (m, b).
        touching: Which of these b bodies have Jacobians: those that move and touch something in the scene, (c,).
        wrench_rows: Numbers of the external wrenches of the scene that act on them.
        loads: Mean loads of the external wrenches on the robot in a step, (k, 9), mixed units and frames, which each
            step writes; see `external_wrenches`.
    """

    def __init__(
        self,
        loop: RigidLoop,
        placed: Sequence[PlacedRobot],
        touching: Collection[int],
        wrench_rows: list[int],
        balances: bool,
    ):
        """Collect robots.

        Args:
            loop: The equations of motion of one of them alone. placed: The robots in the scene.
            wrench_rows: Numbers of the external wrenches of the scene that act on them.
            touching: Numbers of the bodies of the scene's robot that move and have shapes or contact points.
            balances: Whether steps keep momentum up to rounding.
        """
        self._free_parts = free_parts(loop.robot) if balances else ()
        self.loop = loop
        self.q, self.v, self.bodies, self._shift = (np.array(column) for column in zip(*placed, strict=True))
        self._carriers, self.loads = carriers(loop.robot), np.zeros((len(wrench_rows), LOAD))
        self.wrench_rows = wrench_rows
        self.touching = np.flatnonzero(np.isin(self.bodies, list(touching)).any(axis=0))
        self._shift_of_bodies = np.where((self.bodies > 0)[..., None], self._shift[:, None], 0.0)  # 0 is the world
        self._pose_kernel = BatchKernel(self._poses, {"q": self.q.shape[1:]}, states=_SAMPLES).compile_ahead()

    def record(self, do: Recording, memory: StepMemory, bodies: Bodies, kind: int) -> tuple[PreparedCall, Array]:
        """Record the calls that begin a time step of the robots, and return the one that ends it.

        The first ones write poses, velocities and inertia of the bodies in the middle of the step, the last one the
        states after it, and the works without that of contacts, (m, 4), [J], which are the second result.

        Args:
            do: The recording. memory: Of all robots of the scene. bodies: All bodies.
            kind: Number of these robots in `Bodies`.
        """
        robot, gains = self.loop.robot, self.loop.controller.implicit_gains
        is_free = isinstance(robot.base, FloatingBase) and not robot.bodies[0].has_friction
        if is_free and not robot.joints and gains is None:  # body axes, no damping
            bodies.constant.add(kind)
        middle, geometry = self._record_start(do, memory, bodies)
        self._record_geometry(do, geometry, bodies, kind)
        return self._prepared_end(memory, bodies, middle)

    def _record_start(self, do: Recording, memory: StepMemory, bodies: Bodies) -> tuple[MiddleOfStep, Geometry]:
        """Record the call of `_start`, and return the places of its results; velocities are written to `bodies`."""
        (count, nq), nv = self.q.shape, self.v.shape[1]
        shapes = {"q": (nq,), **dict.fromkeys(("v", "tau", "damping"), (nv,)), "shift": (3,)}
        kernel = BatchKernel(self._start, {"h": (), **shapes, **self._shape_of_loads}, states=count).compile_ahead()
        results: list[Any] = [np.empty((count, *shape)) for shape in kernel.graph.outputs]
        middle, geometry = MiddleOfStep(*results[:7]), Geometry(*results[7:])
        middle = middle._replace(v=self._rows_of_v(bodies.v), v_free=self._rows_of_v(bodies.v_free))
        v, tau, damping = map(self._rows_of_v, (memory.v, memory.tau, memory.damping))
        arguments = memory.h, self._rows_of_q(memory.q), v, tau, damping, self._shift, *self._loads_of_kernel
        do.each(kernel, count, *arguments, results=[*middle, *geometry])
        return middle, geometry

    def _record_geometry(self, do: Recording, geometry: Geometry, bodies: Bodies, kind: int) -> None:
        """Record the calls that write poses and Jacobians to `bodies`, which keeps the array of inertia matrices."""
        (body, screw, entry), touching, nv = self._columns, len(self.touching), self.v.shape[1]
        robot = np.arange(len(self.v))[:, None]

        def rows(array: Array, numbers: Array) -> Rows:
            """Return rows of all robots in an array (m, n, ...)."""
            return Rows(array.reshape(-1, *array.shape[2:]), (array.shape[1] * robot + numbers).ravel())

        pose = [rows(part, self.touching[body]) for part in (geometry.rotation, geometry.origin)]
        places = (touching * robot + body).ravel(), np.tile(entry, len(robot))
        size, is_coupled = (touching * len(robot), nv), bool(self.loop.robot.coupled_joints)
        bodies.record_jacobians(do, kind, size, places, [rows(geometry.screws, screw), *pose], is_coupled)
        bodies.inertia[kind] = geometry.inertia
        numbers = self.bodies.ravel()
        do.scatter(geometry.rotation.reshape(-1, 9), bodies.poses.rotation.reshape(-1), 9 * numbers)
        do.scatter(geometry.origin.reshape(-1, 3), bodies.poses.origin.reshape(-1), 3 * numbers)

    def _prepared_end(self, memory: StepMemory, bodies: Bodies, middle: MiddleOfStep) -> tuple[PreparedCall, Array]:
        """Return the call of `_end`, and the works that it writes, (m, 4), [J]."""
        (count, nq), nv = self.q.shape, self.v.shape[1]
        shapes = dict.fromkeys(("v", "v_free", "v_next", "before", "tau", "damping", "slope", "impulse"), (nv,))
        shapes |= {"momenta": middle.momenta.shape[1:], "rows": middle.rows.shape[1:], **self._shape_of_loads}
        shapes = {"h": (), "q": (nq,), **shapes}
        kernel = BatchKernel(self._end, shapes, states=count).compile_ahead()
        arrays = bodies.v_next, memory.v, memory.tau, memory.damping
        # In the order of the arguments of `_end`.
        arguments = memory.h, *middle[:3], *map(self._rows_of_v, arrays), *middle[3:], *self._loads_of_kernel
        works = np.empty((count, 4))
        results = [self._rows_of_q(memory.q_end), self._rows_of_v(memory.v_end), works]
        return kernel.prepare(count, *arguments, results=results), works

    def _rows_of_q(self, array: Array) -> Rows:
        """Return the entries of each robot in an array of the configurations of the scene."""
        return _rows(array, self.q)

    def _rows_of_v(self, array: Array) -> Rows:
        """Return the entries of each robot in an array of the generalized velocities, or forces, of the scene."""
        return _rows(array, self.v)

    @property
    def _shape_of_loads(self) -> dict[str, tuple[int, ...]]:
        """The further argument of kernels of robots with external wrenches."""
        return {"loads": self.loads.shape} if len(self.loads) else {}

    @property
    def _loads_of_kernel(self) -> list[Array]:
        """The value of this argument, with an axis of one robot: robots with pushes share no kernels."""
        return [self.loads[None]] if len(self.loads) else []

    @cached_property
    def _columns(self) -> Array:
        """Parts of the Jacobians of the touching bodies: rows of numbers of these, of screws, and entries of v, (3, n).

        The twist of a body depends on the joints between it and the base.
        """
        robot = self.loop.robot
        places = [(body.index, i) for body in robot.bodies for i in range(body.v.start, body.v.stop)]
        before = [set(robot.ancestors(self._carriers[k])) for k in self.touching]
        parts = [(k, c, i) for k, own in enumerate(before) for c, (body, i) in enumerate(places) if body in own]
        return np.array(parts, dtype=int).reshape(-1, 3).T

    def poses(self, q: Array) -> Poses:
        """Return the poses of the bodies with links of the robots, (..., m, b, 3, 3) and (..., m, b, 3).

        Args:
            q: Configurations of all robots of the scene, (..., nq), mixed units.
        """
        poses = self._pose_kernel(q[..., self.q])
        return Poses(poses.rotation, poses.origin + self._shift_of_bodies)

    def energies(self, q: Array, v: Array) -> Array:
        """Return kinetic and potential energy of all of the robots together, (..., 2), [J].

        Args:
            q: Configurations of all robots of the scene, (..., nq), mixed units. v: (..., nv), mixed units.
        """
        energies = self.energy_kernel(q[..., self.q], v[..., self.v]).sum(axis=-2)
        robot = self.loop.robot
        return energies - np.array([0.0, robot.mass * (self._shift @ robot.gravity).sum()])

    # Equations of one robot.

    def _start(
        self, h: Any, q: Array, v: Array, tau: Array, damping: Array, shift: Array, *loads: Array
    ) -> tuple[MiddleOfStep, Geometry]:
        """Return the robot in the middle of a step h from (q, v), and its geometry there, origins moved by `shift`."""
        loop, momenta = self.loop, np.array([part.momentum(q, v) for part in self._free_parts]).reshape(-1, 3, 3)
        q, v = drift(loop.robot, q, v, 0.5 * h)
        viscous = h * (loop.viscous_damping(v) + damping)
        joints = loop.free_motion(h, _all(loads), tau, viscous, q, v)
        geometry = self._geometry(q, shift)
        rows = np.concatenate([np.zeros((0, len(v))), *(geometry.inertia[part.v] for part in self._free_parts)])
        inertia = geometry.inertia + np.diag(viscous + joints.slope)
        middle = MiddleOfStep(q, v, v + h * joints.vdot, joints.slope, joints.impulse, momenta, rows)
        return middle, geometry._replace(inertia=inertia)

    def _geometry(self, q: Array, shift: Array) -> Geometry:
        robot, first = self.loop.robot, int(self.bodies[0, 0] == 0)  # number 0 is the world in a group
        at = motion(robot, q)
        at = at._replace(origin=[*at.origin[:first], *(o + shift for o in at.origin[first:])])
        return Geometry(*self._of_links(at), inertia_matrix(robot, q), screws(robot, q, at))

    def _poses(self, q: Array) -> Poses:
        return self._of_links(motion(self.loop.robot, q))

    def _of_links(self, at: Motion) -> Poses:
        return Poses(*(np.array([part[k] for k in self._carriers]) for part in (at.rotation, at.origin)))

    def _end(
        self,
        h: Any,
        q: Array,
        v: Array,
        v_free: Array,
        v_next: Array,
        before: Array,
        tau: Array,
        damping: Array,
        slope: Array,
        impulse: Array,
        momenta: Array,
        rows: Array,
        *loads: Array,
    ) -> tuple[Array, Array, Array]:
        """Return q, v and the works of a step without that of contacts, (4,), from the velocity with impulses, v_next.

        `before` is the velocity before the step; q, v, v_free and what follows `damping` are those of `MiddleOfStep`.
        """
        loop, impact = self.loop, Impact(np.zeros((0, 3)), [v_next], 0.0, 0.0)
        joints = JointStep(v, slope, impulse)
        works = loop.works(h, _all(loads), tau - damping * (v_next - before), q, v, impact, joints)
        end, forces = drift(loop.robot, q, v_next, 0.5 * h), tau - damping * (v_free - before)
        wrenches = loop.with_pushed(None, _all(loads), q, v)
        for part, momentum in zip(self._free_parts, momenta, strict=True):
            own, rows = np.split(rows, [part.v.stop - part.v.start])
            total = part.impulse(h, q, forces, wrenches) + part.on_root(q, own @ (v_next - v_free))
            end = part.balanced(h, Momentum(*momentum), total, *end)
        return normalized(loop.robot, end[0]), end[1], np.stack(works)

    def _energies(self, q: Array, v: Array) -> Array:
        return np.stack([kinetic_energy(self.loop.robot, q, v), potential_energy(self.loop.robot, q)])

    @cached_property
    def energy_kernel(self) -> BatchKernel:
        """The kernel of `energies` of one robot, which another thread compiles if a processor is free."""
        shapes = {"q": self.q.shape[1:], "v": self.v.shape[1:]}
        return BatchKernel(self._energies, shapes, states=_SAMPLES).compile_ahead()


def _rows(array: Array, entries: Array) -> Rows:
    """Return the rows of consecutive entries, (m, n), in an array of a scene."""
    count, size = entries.shape
    return Rows(windows(array, size), entries[:, 0] if size else np.zeros(count, dtype=int))


def _all(loads: tuple[Array, ...]) -> Array:
    """Return the loads of external wrenches, (k, 9), of which a kernel without them has no argument."""
    return loads[0] if loads else np.zeros((0, LOAD))


def equal_robots(loop: RigidLoop, touching: Collection[int]) -> list[EqualRobots]:
    """Return the robots of a scene by kind. Robots with pushes have a kind of their own.

    Args:
        loop: The scene. touching: As in `EqualRobots`, dimensionless.
    """
    robot, rows, balances = loop.robot, loop.wrench_rows[0], loop.balances_momentum
    if not isinstance(robot, RobotGroup):
        alone = _RobotInParts(robot, loop.controller, loop.ground, 0, [loop.pushes[k] for k in rows])
        placed = PlacedRobot(np.arange(robot.nq), np.arange(robot.nv), np.array(carriers(robot)), np.zeros(3))
        return [EqualRobots(alone, [placed], touching, rows, balances)]
    kinds: list[tuple[RigidLoop, list[PlacedRobot], list[int]]] = []
    without_pushes: list[tuple[dict[str, Any], list[PlacedRobot]]] = []  # of each of these kinds, its description
    for member in robot.members:
        prefix, (alone, place) = member.name + SEPARATOR, separated(robot, member)
        placed = _placed(robot, member, alone, place)
        own_rows = [k for k in rows if loop.pushes[k].link.startswith(prefix)]
        description = alone.describe()
        equal = [robots for known, robots in without_pushes if known == description and not own_rows]
        if equal:
            equal[0].append(placed)
            continue
        pushes = [_on(loop.pushes[k], loop.pushes[k].link.removeprefix(prefix)) for k in own_rows]
        kinds.append((_RobotInParts(alone, loop.controller, loop.ground, 0, pushes), [placed], own_rows))
        if not own_rows:
            without_pushes.append((description, kinds[-1][1]))
    return [EqualRobots(one, placed, touching, own_rows, balances) for one, placed, own_rows in kinds]


def _placed(group: RobotGroup, member: Member, alone: Robot, place: Array) -> PlacedRobot:
    """Return where a member is in the arrays of a group; `alone` is its robot, `place` its place."""
    index_of = {link.name: link.index for link in group.links}
    links = [(link, group.links[index_of[member.name + SEPARATOR + link.name]]) for link in alone.links[1:]]
    body_of = {own.body: in_group.body for own, in_group in links}
    return PlacedRobot(
        np.arange(member.q.start, member.q.stop),
        np.arange(member.v.start, member.v.stop),
        np.array([body_of.get(k, 0) for k in carriers(alone)]),
        place,
    )


def _on(wrench: Any, link: str) -> Any:
    """Return an external wrench under another name of its link."""
    return wrench.on(link) if isinstance(wrench, StepWrench) else replace(wrench, link=link)


def carriers(robot: Robot) -> list[int]:
    """Return the numbers of the bodies of a robot that carry links, in order.

    Args:
        robot: The robot.
    """
    return sorted({link.body for link in robot.links})
