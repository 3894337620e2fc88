"""Equal robots of a scene in parts: one set of kernels, called with the states of all of them.

The members of a group that have the same description differ by their states and places. The kernels of the first of
them compute all, in the lanes of vectors, so that code and its compilation do not grow with the number of equal robots.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import BatchKernel, PreparedCall, Rows, windows
from legged.contact.bodies import Bodies
from legged.contact.impulses.contact_pattern import BLOCK, block_count
from legged.contact.impulses.dense import twist_jacobian
from legged.contact.impulses.impact import Impact
from legged.contact.pair_tables import Poses
from legged.contact.recording import Recording
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import kinetic_energy, motion, potential_energy
from legged.dynamics.passive import without_dry_friction
from legged.robot.base import FloatingBase
from legged.robot.configuration import drift, normalized
from legged.robot.construction.group import SEPARATOR, RobotGroup, separated
from legged.robot.robot import Robot
from legged.simulation.loop.contact_memory import ContactMemory
from legged.simulation.loop.external_wrenches import LOAD, StepWrench
from legged.simulation.loop.joint_laws import JointLaws, JointStep
from legged.simulation.loop.momentum import Momentum, free_parts
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.spatial import Array

_SAMPLES = 4
"""Number of samples, of robots outside of steps, that a kernel computes together; more take longer to compile."""


class Start(NamedTuple):
    """Robots in the middle of a step, with a leading axis of robots.

    Attributes:
        q, v: Configuration, (..., nq), and velocity, (..., nv), mixed units, in the middle of the step.
        v_free: Velocity after the step without impulses, (..., nv), mixed units.
        slope, impulse: Those of stops, see `JointStep`, (..., nv) each, mixed units.
        momenta: `Momentum` of each free part before the step, (..., k, 3, 3), mixed units, world axes.
    """

    q: Array
    v: Array
    v_free: Array
    slope: Array
    impulse: Array
    momenta: Array


class Geometry(NamedTuple):
    """Poses and inertia of m robots with b bodies.

    Attributes:
        rotation: Body to world axes, (m, b, 3, 3).
        origin: Origins of the bodies, (m, b, 3), [m], world axes.
        inertia: Inertia matrices, (m, nv, nv), mixed units; in a step with what implicit forces add to the diagonal.
        jacobians: Entries of the Jacobians of the touching bodies, row by row, of columns of the joints before each of
            them, which are not zero, (m, n), mixed units, body axes.
    """

    rotation: Array
    origin: Array
    inertia: Array
    jacobians: Array


class StepMemory:
    """The arguments and results of a time step, in arrays that every step writes again.

    Attributes:
        h, middle: The time step, and the time in its middle, (), [s].
        state: State [q; s] of the scene, see `rigid_loop`, (nq + size,).
        q, v: Its parts of all robots of the scene, (nq,) and (nv,), mixed units.
        contacts: Its `ContactMemory`. totals: Its last two entries, (2,), [m] and [m/s]. works: Works, (4,), [J].
        states: Its q and v of the free bodies, (f, 13), mixed units.
        tau, damping: See `StepActuation`, (nv,) each, mixed units.
        q_end, v_end, states_end: q, v and states after the step.
    """

    def __init__(self, nq: int, nv: int, free: int, memory: int, candidates: int):
        """Lay out the arrays.

        Args:
            nq, nv: Lengths of q and v of all robots. free: Number of free bodies.
            memory: Length of the controller's memory. candidates: Number of contact candidates.
        """
        self.h, self.middle = np.zeros(()), np.zeros(())
        begin = nq + nv + memory  # of the memory of the contacts
        end = begin + ContactMemory.size(candidates)
        self.state = np.zeros(end + 4 + 13 * free)
        self.q, self.v = self.state[:nq], self.state[nq : nq + nv]
        self.contacts = ContactMemory.of(self.state[begin:end])
        self.totals, self.works = self.state[end - 2 : end], self.state[end : end + 4]
        self.states = self.state[end + 4 :].reshape(free, 13)
        self.tau, self.damping = np.zeros(nv), np.zeros(nv)
        self.q_end, self.v_end, self.states_end = np.zeros(nq), np.zeros(nv), np.zeros((free, 13))


class Part(NamedTuple):
    """A robot of the scene.

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
    """A robot of a scene in parts, whose joints do not know the contact forces when their stops are decided.

    Dry friction, which would have to, is regularized, see `legged.robot.physics`.
    """

    @cached_property
    def smooth_robot(self) -> Robot:
        """The robot with its dry friction."""
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
        self, loop: RigidLoop, parts: Sequence[Part], touching: Collection[int], wrench_rows: list[int], balances: bool
    ):
        """Collect robots.

        Args:
            loop: The equations of motion of one of them alone. parts: The robots in the scene.
            wrench_rows: Numbers of the external wrenches of the scene that act on them.
            touching: Numbers of the bodies of the scene's robot that move and have shapes or contact points.
            balances: Whether steps keep momentum up to rounding.
        """
        self._free_parts = free_parts(loop.robot) if balances else ()
        self.loop, self._kernels = loop, dict[str, BatchKernel]()
        self.q, self.v, self.bodies, self._shift = (np.array(column) for column in zip(*parts, strict=True))
        self._carriers, self.loads = carriers(loop.robot), np.zeros((len(wrench_rows), LOAD))
        self.wrench_rows = wrench_rows
        self.touching = np.flatnonzero(np.isin(self.bodies, list(touching)).any(axis=0))
        # The world, which is the first body of a group, is not shifted.
        self._shift_of_bodies = np.where((self.bodies > 0)[..., None], self._shift[:, None], 0.0)

    def record(self, do: Recording, memory: StepMemory, bodies: Bodies, kind: int) -> tuple[PreparedCall, Array]:
        """Record the calls that begin a time step of the robots, and return the one that ends it.

        The first ones write poses, velocities and inertia of the bodies in the middle of the step, the last one the
        states after it, and the works without that of contacts, (m, 4), [J], which are the second result.

        Args:
            do: The recording. memory: Of all robots of the scene. bodies: All bodies.
            kind: Number of these robots in `Bodies`.
        """
        (count, nq), nv = self.q.shape, self.v.shape[1]
        first_q, first_v = (part[:, 0] if part.size else np.zeros(count, dtype=int) for part in (self.q, self.v))
        q, q_end = (Rows(windows(array, nq), first_q) for array in (memory.q, memory.q_end))
        arrays = memory.v, memory.v_end, memory.tau, memory.damping, bodies.v, bodies.v_free, bodies.v_next
        v, v_end, tau, damping, middle, free, v_next = (Rows(windows(array, nv), first_v) for array in arrays)
        shapes = {"q": (nq,), **dict.fromkeys(("v", "tau", "damping"), (nv,)), "shift": self._shift_of_bodies.shape[1:]}
        loads = {"loads": self.loads.shape} if len(self.loads) else {}
        kernel = BatchKernel(self._start, {"h": (), **shapes, **loads}, states=count)
        places: list[Any] = [np.empty((count, *shape)) for shape in kernel.graph.outputs]
        q_middle, slope, impulse, momenta = places[0], *places[3:6]
        places[1], places[2] = middle, free
        rotation, origin, inertia, entries = places[6:]
        pushed = [self.loads[None]] if loads else []  # of one robot, see `equal_robots`
        do.each(kernel, count, memory.h, q, v, tau, damping, self._shift_of_bodies, *pushed, results=places)
        bodies.inertia[kind], bodies.jacobians[kind] = inertia, np.zeros((count * len(self.touching), 6, nv))
        blocks = bodies.jacobian_blocks[bodies.layout.jacobian_parts[kind]]
        for array, starts in zip((bodies.jacobians[kind], blocks), self._entries(), strict=True):
            do.scatter(entries.reshape(-1, 1), array.reshape(-1), starts)
        robot, gains = self.loop.robot, self.loop.controller.implicit_gains
        is_free = isinstance(robot.base, FloatingBase) and not robot.bodies[0].has_friction
        if is_free and not robot.joints and gains is None:  # body axes, no damping
            bodies.constant.add(kind)
        numbers = self.bodies.ravel()
        for part, own, size in zip((rotation, origin), bodies.poses, (9, 3), strict=True):
            do.scatter(part.reshape(-1, size), own.reshape(-1), size * numbers)

        shapes = dict.fromkeys(("v", "v_free", "v_next", "before", "tau", "damping", "slope", "impulse"), (nv,))
        shapes = {"h": (), "q": (nq,), **shapes, "momenta": momenta.shape[1:], **loads}
        kernel = BatchKernel(self._end, shapes, states=count)
        works = np.empty((count, 4))
        arguments = memory.h, q_middle, middle, free, v_next, v, tau, damping, slope, impulse, momenta, *pushed
        return kernel.prepare(count, *arguments, results=[q_end, v_end, works]), works

    @cached_property
    def _columns(self) -> list[Array]:
        """Entries of v of the joints before each touching body, on which its twist depends."""
        robot = self.loop.robot
        chains = ([robot.bodies[j].v for j in robot.ancestors(self._carriers[k])] for k in self.touching)
        return [np.unique([i for v in chain for i in range(v.start, v.stop)]).astype(int) for chain in chains]

    def _entries(self) -> tuple[Array, Array]:
        """Return the places of the entries of `Geometry.jacobians` of all robots, and those in blocks, (m n,) each."""
        (count, nv), rows, numbers = self.v.shape, np.arange(6)[:, None], list[tuple[Array, ...]]()
        for k, columns in enumerate(self._columns):
            numbers.append(tuple(x.ravel() for x in np.broadcast_arrays(k, rows, columns)))
        body, row, column = np.concatenate(numbers, axis=1) if numbers else np.zeros((3, 0), dtype=int)
        body, wide = body + len(self.touching) * np.arange(count)[:, None], block_count(nv)
        places = (6 * body + row) * nv + column
        blocks = ((wide * body + column // BLOCK) * BLOCK + row) * BLOCK + column % BLOCK
        return places.ravel(), blocks.ravel()

    def poses(self, q: Array) -> Poses:
        """Return the poses of the bodies with links of the robots, (..., m, b, 3, 3) and (..., m, b, 3).

        Args:
            q: Configurations of all robots of the scene, (..., nq), mixed units.
        """
        poses = self._kernel(self._poses, q=self.q.shape[1:])(q[..., self.q])
        return Poses(poses.rotation, poses.origin + self._shift_of_bodies)

    def energies(self, q: Array, v: Array) -> Array:
        """Return kinetic and potential energy of all of the robots together, (..., 2), [J].

        Args:
            q: Configurations of all robots of the scene, (..., nq), mixed units. v: (..., nv), mixed units.
        """
        kernel = self._kernel(self._energies, q=self.q.shape[1:], v=self.v.shape[1:])
        energies = kernel(q[..., self.q], v[..., self.v]).sum(axis=-2)
        robot = self.loop.robot
        return energies - np.array([0.0, robot.mass * (self._shift @ robot.gravity).sum()])

    # Equations of one robot.

    def _start(
        self, h: Any, q: Array, v: Array, tau: Array, damping: Array, shift: Array, *loads: Array
    ) -> tuple[Start, Geometry]:
        loop, momenta = self.loop, np.array([part.momentum(q, v) for part in self._free_parts]).reshape(-1, 3, 3)
        q, v = drift(loop.robot, q, v, 0.5 * h)
        viscous = h * (loop.viscous_damping(v) + damping)
        joints = loop.free_motion(h, _all(loads), tau, viscous, q, v)
        geometry = self._geometry(q)
        inertia = geometry.inertia + np.diag(viscous + joints.slope)
        geometry = geometry._replace(origin=geometry.origin + shift, inertia=inertia)
        return Start(q, v, v + h * joints.vdot, joints.slope, joints.impulse, momenta), geometry

    def _geometry(self, q: Array) -> Geometry:
        robot, poses = self.loop.robot, self._poses(q)
        pairs = zip(self.touching, self._columns, strict=True)
        J = [twist_jacobian(robot, q, self._carriers[k], np.eye(6))[:, columns].reshape(-1) for k, columns in pairs]
        return Geometry(*poses, inertia_matrix(robot, q), np.concatenate([np.zeros(0), *J]))

    def _poses(self, q: Array) -> Poses:
        at = motion(self.loop.robot, q)
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
        *loads: Array,
    ) -> tuple[Array, Array, Array]:
        loop, impact = self.loop, Impact(np.zeros((0, 3)), [v_next], 0.0, 0.0)
        joints = JointStep(v, slope, impulse)
        works = loop.works(h, _all(loads), tau - damping * (v_next - before), q, v, impact, joints)
        end, forces = drift(loop.robot, q, v_next, 0.5 * h), tau - damping * (v_free - before)
        wrenches = loop.with_pushed(None, _all(loads), q, v)
        for part, momentum in zip(self._free_parts, momenta, strict=True):
            total = part.impulse(h, q, forces, wrenches) + part.gained(q, v_next - v_free)
            end = part.balanced(h, Momentum(*momentum), total, *end)
        return normalized(loop.robot, end[0]), end[1], np.stack(works)

    def _energies(self, q: Array, v: Array) -> Array:
        return np.stack([kinetic_energy(self.loop.robot, q, v), potential_energy(self.loop.robot, q)])

    def _kernel(self, function: Callable[..., Any], **shapes: Any) -> BatchKernel:
        """Return the kernel of a function of one robot, which is called for the samples of a run, not in steps."""
        if function.__name__ not in self._kernels:
            self._kernels[function.__name__] = BatchKernel(function, shapes, states=_SAMPLES)
        return self._kernels[function.__name__]


def _all(loads: tuple[Array, ...]) -> Array:
    """Return the loads of external wrenches, (k, 9), of which a kernel without them has no argument."""
    return loads[0] if loads else np.zeros((0, LOAD))


def equal_robots(loop: RigidLoop, touching: Collection[int]) -> list[EqualRobots]:
    """Return the robots of a scene by kind. Robots with pushes have a kind of their own.

    Args:
        loop: The scene. touching: As in `EqualRobots`, dimensionless.
    """
    robot = loop.robot
    if not isinstance(robot, RobotGroup):
        bodies = np.array(carriers(robot))
        numbers = np.arange(robot.nq), np.arange(robot.nv), bodies
        pushes = [loop.pushes[k] for k in loop.wrench_rows[0]]
        alone = _RobotInParts(robot, loop.controller, loop.ground, 0, pushes)
        balances = loop.balances_momentum
        return [EqualRobots(alone, [Part(*numbers, np.zeros(3))], touching, loop.wrench_rows[0], balances)]
    kinds: list[tuple[Any, RigidLoop, list[Part], list[int]]] = []
    index_of = {link.name: link.index for link in robot.links}
    for member in robot.members:
        prefix, (alone, place) = member.name + SEPARATOR, separated(robot, member)
        rows = [k for k in loop.wrench_rows[0] if loop.pushes[k].link.startswith(prefix)]
        pushes = [_on(loop.pushes[k], loop.pushes[k].link.removeprefix(prefix)) for k in rows]
        places = {index_of[prefix + link.name]: link.index for link in alone.links[1:]}
        bodies = {alone.links[own].body: robot.links[link].body for link, own in places.items()}
        part = Part(
            np.arange(member.q.start, member.q.stop),
            np.arange(member.v.start, member.v.stop),
            np.array([bodies.get(k, 0) for k in carriers(alone)]),
            place,
        )
        key = alone.describe()
        equal = [parts for known, other, parts, _ in kinds if known == key and not (pushes or other.pushes)]
        if equal:
            equal[0].append(part)
        else:
            kinds.append((key, _RobotInParts(alone, loop.controller, loop.ground, 0, pushes), [part], rows))
    balances = loop.balances_momentum
    return [EqualRobots(own, parts, touching, rows, balances) for _, own, parts, rows in kinds]


def _on(wrench: Any, link: str) -> Any:
    """Return an external wrench under another name of its link."""
    return wrench.on(link) if isinstance(wrench, StepWrench) else replace(wrench, link=link)


def carriers(robot: Robot) -> list[int]:
    """Return the numbers of the bodies of a robot that carry links, in order.

    Args:
        robot: The robot.
    """
    return sorted({link.body for link in robot.links})
