"""Robots with closed kinematic loops: a spanning tree, and the joints that close its loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.arguments import known_name
from legged.checked import checked
from legged.compiler.ir import where
from legged.dynamics.frames import Frame, Pose, frame_pose, resolve_frame
from legged.elements import Field
from legged.errors import DefinitionError
from legged.loops.closing_joints import ClosingJoint, ScalarConstraint, scalar_constraints
from legged.loops.redundancy import (
    UNSCALED,
    LoopScale,
    check_tolerance,
    independent_flags,
    loop_bodies,
    loop_frame_poses,
    loop_frames_jacobian,
    loop_scale,
)
from legged.output import from_above
from legged.robot.construction.lifted import lifted_array, lifted_rotation
from legged.robot.construction.parameters import ParameterVector
from legged.robot.joint import Closure, Spherical
from legged.robot.placement import Vector, rotation3, vector3
from legged.robot.robot import Robot
from legged.spatial import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Loop:
    """A joint that closes a kinematic loop.

    Attributes:
        joint: Any joint except `Free`, or `Rod`, `Rolling`, `Sliding`.
        parent: Name of a link or contact point; None for the world.
        child: Name of a link or contact point.
        frame: Pose of the joint frame in the parent frame, or in the world.
        child_frame: Pose of the joint frame in the child frame, with the joint at zero.
        scale: Sizes of the loop, for the rank of its constraints.
    """

    joint: ClosingJoint
    parent: str | None
    child: str
    frame: Pose
    child_frame: Pose
    scale: LoopScale

    @property
    def name(self) -> str:
        return self.joint.name

    @cached_property
    def constraints(self) -> tuple[ScalarConstraint, ...]:
        """The scalar constraints of the joint, six less its degrees of freedom."""
        return scalar_constraints(self.joint)

    @property
    def frames(self) -> tuple[Frame | None, Frame]:
        """The joint frame on the parent, None for the world, and on the child."""
        on_child = Frame(self.child, self.child_frame.position, self.child_frame.rotation)
        if self.parent is None:
            return None, on_child
        return Frame(self.parent, self.frame.position, self.frame.rotation), on_child


@dataclass(frozen=True, eq=False)
class ClosedRobot:
    """A robot with closed kinematic loops.

    Attributes:
        robot: The spanning tree, to which q, v and tau refer.
        loops: The joints that are not in the tree.
        rows: Numbers of the constraint rows that are imposed, among the constraints of all loops in sequence.
        independent_count: How many of the first rows are independent, if the rows were ordered by `independent_first`.
        rank_tolerance: Margin up to which a row counts as redundant, dimensionless, see `legged.loops.mobility`; None
            for that of each loop, 1e-4 or more.
    """

    robot: Robot
    loops: tuple[Loop, ...]
    rows: tuple[int, ...]
    independent_count: int | None = None
    rank_tolerance: float | None = None

    def __repr__(self) -> str:
        return f"<ClosedRobot {self.robot.name!r}: {self.robot.nv} DoF of its tree, {len(self.rows)} constraints>"

    def __lift__(self, field: Field) -> ClosedRobot:
        """Return the robot with numbers of another type as constants, for `legged.elements`."""

        def lifted(pose: Pose) -> Pose:
            return Pose(lifted_rotation(pose.rotation, field), lifted_array(pose.position, field))

        loops = (replace(x, frame=lifted(x.frame), child_frame=lifted(x.child_frame)) for x in self.loops)
        return replace(self, robot=self.robot.__lift__(field), loops=tuple(loops))

    @property
    def name(self) -> str:
        return self.robot.name

    @property
    def nq(self) -> int:
        """Number of entries of q, those of the spanning tree."""
        return self.robot.nq

    @property
    def nv(self) -> int:
        """Number of entries of v, those of the spanning tree."""
        return self.robot.nv

    @cached_property
    def serial_equivalents(self) -> dict[object, Any]:
        """The results of `legged.loops.serial_equivalent`, which takes seconds; members of a rollout share them."""
        return {}

    @cached_property
    def constraints(self) -> tuple[tuple[int, ScalarConstraint], ...]:
        """The constraints that are imposed, (number of the loop, constraint) each."""
        every = [(k, constraint) for k, loop in enumerate(self.loops) for constraint in loop.constraints]
        return tuple(every[i] for i in self.rows)

    @cached_property
    def holonomic(self) -> tuple[int, ...]:
        """Positions of the holonomic constraints in `constraints`."""
        return tuple(i for i, (_, constraint) in enumerate(self.constraints) if constraint.holonomic)

    def closing_errors(self, q: Array) -> tuple[Array, Array]:
        """Return (phi (m,), [m] or 1, phi' (m, nv)) of the holonomic constraints, redundant rows set to zero.

        Args:
            q: Configuration of the tree, (nq,).
        """
        poses = [loop_frame_poses(self.robot, q, loop) for loop in self.loops]
        J = [loop_frames_jacobian(self.robot, q, loop) for loop in self.loops]
        every = np.array([c.jacobian(*poses[k]) @ J[k] for k, c in self.constraints]).reshape(-1, self.robot.nv)
        flags = independent_flags(self, every)
        kept = [where(flags[i], 1.0, 0.0) for i in self.holonomic]
        values = [self.constraints[i][1].value(*poses[self.constraints[i][0]]) for i in self.holonomic]
        rows = [factor * every[i] for factor, i in zip(kept, self.holonomic, strict=True)]
        phi = np.array([factor * value for factor, value in zip(kept, values, strict=True)])
        return phi, np.array(rows).reshape(-1, self.robot.nv)

    def loop(self, name: str) -> Loop:
        """Return a loop by its joint's name, or raise UnknownNameError."""
        by_name = {loop.name: loop for loop in self.loops}
        return by_name[known_name("joint that closes a loop", name, by_name)]

    def bodies_around(self, name: str) -> tuple[int, ...]:
        """Return the indices of the bodies whose joints belong to a loop, in increasing order.

        A loop through the world contains the joints between the base and the world.
        """
        return tuple(sorted(loop_bodies(self.robot, self.loop(name))))

    @checked
    def with_rank_tolerance(self, rank_tolerance: float | None) -> ClosedRobot:
        """Return the robot with another tolerance for redundant constraints; see `legged.loops.mobility`.

        Args:
            rank_tolerance: Margin up to which a row counts as redundant, 1e-7 to 0.1, dimensionless; None for that of
                each loop, 1e-4 or more.
        """
        value = None if rank_tolerance is None else check_tolerance(rank_tolerance)
        return replace(self, rank_tolerance=value)

    def cycle(self, name: str) -> tuple[str, ...]:
        """Return the links around a loop, from its joint's parent, or the base if that is the world, to its child."""
        links, ends = self.robot.links, self.loop(name).frames
        parent, child = (f and links[resolve_frame(self.robot, f).link].name for f in ends)
        parents = {c.child: c.parent for c in self.robot.connections}
        from_parent, from_child = _path_to_root(parents, parent), _path_to_root(parents, child)
        while len(from_parent) > 1 and len(from_child) > 1 and from_parent[-2] == from_child[-2]:
            from_parent, from_child = from_parent[:-1], from_child[:-1]
        return (*from_parent[:-1], *reversed(from_child))

    def draw_modules(self) -> Figure:
        """Return a picture of the modules of the spanning tree, with the joints that close loops as dashed lines.

        See `legged.Robot.draw_modules`.
        """
        return from_above("draw")(self.robot, self.closures)

    @property
    def closures(self) -> tuple[Closure, ...]:
        """The joints that close loops with the names of their links, for pictures."""
        closures, links = [], self.robot.links
        for loop in self.loops:
            parent, child = (f and links[resolve_frame(self.robot, f).link].name for f in loop.frames)
            closures.append(Closure(loop.name, type(loop.joint).__name__.lower(), parent, child or loop.child))
        return tuple(closures)

    def parameters(self) -> dict[str, Any]:
        """Return the numbers of the spanning tree that can vary by name; see `legged.Robot.parameters`."""
        return self.robot.parameters()

    def with_parameters(self, values: Mapping[str, Any]) -> ClosedRobot:
        """Return the robot with some numbers of its spanning tree replaced; see `legged.Robot.with_parameters`.

        The closing joints keep their places on the links; configurations of the old robot may violate the new loops.
        """
        return replace(self, robot=self.robot.with_parameters(values))

    @checked
    def parameter_vector(self, names: Sequence[str]) -> ParameterVector:
        """Return some parameters of the spanning tree as one vector of numbers, for `legged.compile`."""
        return _ClosedParameters(self, names)

    @checked
    def close(
        self,
        joint: ClosingJoint,
        *,
        parent: str | None,
        child: str,
        at: Vector = _ORIGIN,
        rotation: Array | None = None,
        child_at: Vector = _ORIGIN,
        child_rotation: Array | None = None,
    ) -> ClosedRobot:
        """Return the robot with one more loop; arguments as in `legged.loops.close`."""
        if not joint.name:
            raise DefinitionError("a joint that closes a loop needs a name")
        if joint.name in {loop.name for loop in self.loops} | {c.joint.name for c in self.robot.connections}:
            raise DefinitionError(f"two joints are named {joint.name!r}; names must differ")
        poses = _pose(joint.name, at, rotation), _pose(joint.name, child_at, child_rotation)
        loop = Loop(joint, parent, child, *poses, UNSCALED)
        bodies = [resolve_frame(self.robot, frame).body for frame in loop.frames if frame is not None]
        if len(bodies) == 2 and bodies[0] == bodies[1]:
            raise DefinitionError(f"joint {joint.name!r} joins {parent!r} and {child!r}, which are one body")
        loop = replace(loop, scale=loop_scale(self.robot, loop))
        first = sum(len(other.constraints) for other in self.loops)
        rows = (*self.rows, *range(first, first + len(loop.constraints)))
        return replace(self, loops=(*self.loops, loop), rows=rows, independent_count=None)


class _ClosedParameters(ParameterVector):
    """Parameters of the spanning tree of a robot with closed loops."""

    def __init__(self, closed: ClosedRobot, names: Sequence[str]):
        super().__init__(closed.robot, names)
        self.closed = closed

    def applied(self, numbers: Array) -> ClosedRobot:
        """Return the robot with closed loops with these parameters, (n,), which may be traced."""
        return replace(self.closed, robot=super().applied(numbers))


@checked
def close(
    robot: Robot,
    joint: ClosingJoint,
    *,
    parent: str | None,
    child: str,
    at: Vector = _ORIGIN,
    rotation: Array | None = None,
    child_at: Vector = _ORIGIN,
    child_rotation: Array | None = None,
) -> ClosedRobot:
    """Return a robot with one loop, closed by a joint; the method `close` of the result adds further ones.

    Args:
        robot: The spanning tree.
        joint: The closing joint: `Fixed`, `Revolute`, `Prismatic`, `Cylindrical`, `Universal`, `ConstantVelocity`,
            `Spherical`, `Planar`, `Rod`, `Rolling` or `Sliding`; without springs, friction or limits.
        parent, child: Names of links or contact points; parent None for the world.
        at: Parent origin to joint, (3,), [m], parent axes. rotation: Joint axes to parent axes, a rotation (3, 3).
        child_at: Child origin to joint, (3,), [m], child axes, with the joint at zero.
        child_rotation: Joint axes to child axes, a rotation (3, 3), with the joint at zero.

    Raises:
        DefinitionError: For a joint that cannot close a loop, or that connects a body with itself.
        UnknownNameError: For an unknown link or contact point.
    """
    return ClosedRobot(robot, (), ()).close(
        joint,
        parent=parent,
        child=child,
        at=at,
        rotation=rotation,
        child_at=child_at,
        child_rotation=child_rotation,
    )


@checked
def pin_contacts(robot: Robot, q: Array, contacts: Sequence[str]) -> ClosedRobot:
    """Return the robot with contact points held in place at q by ball joints to the world.

    This models one phase of a gait in the configuration-dependent approach, with which Shah, Saha and Dutt 2012 compare
    their own: feet on the ground are joints, and constraints change with the phases of the gait. A compliant ground of
    `legged.ground` needs no phases; the two agree for motions that are slow compared with its springs. Several points
    of one foot, or points of a planar robot, give redundant constraints; `solve` returns the multipliers of least norm.

    Args:
        robot: The robot. q: Configuration, (nq,). contacts: Names of the contact points on the ground.

    Raises:
        UnknownNameError: For an unknown contact point.
    """
    closed = ClosedRobot(robot, (), ())
    for name in contacts:
        robot.contact(name)
        position = frame_pose(robot, np.asarray(q, float), name).position
        closed = closed.close(Spherical(f"{name} stands"), parent=None, child=name, at=position)
    return closed


def _pose(name: str, at: Vector, rotation: Array | None) -> Pose:
    return Pose(rotation3(f"the rotation of joint {name!r}", rotation), vector3(f"the position of joint {name!r}", at))


def _path_to_root(parents: dict[str, str], name: str | None) -> list[str]:
    path = [] if name is None else [name]
    while path and path[-1] in parents:
        path.append(parents[path[-1]])
    return path
