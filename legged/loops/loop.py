"""Robots with closed loops: a spanning tree, and the joints that close its loops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from legged.dynamics.frames import Frame, Pose, resolve_frame
from legged.errors import DefinitionError, UnknownNameError
from legged.loops.closing import Closing, Row, rows_of
from legged.robot.placement import Vector, rotation3, vector3
from legged.robot.robot import Robot
from legged.spatial import Array

_HERE = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Loop:
    """A joint that closes a loop of a robot's links.

    Attributes:
        joint: Any joint but a free one, or `Rod`, `Rolling`.
        parent: Name of a link or contact point; None for the world.
        child: Name of a link or contact point.
        frame: The joint's frame in the parent's (in the world's) axes, joint axes to these.
        child_frame: The same frame in the child's, where the joint is at zero.
    """

    joint: Closing
    parent: str | None
    child: str
    frame: Pose
    child_frame: Pose

    @property
    def name(self) -> str:
        return self.joint.name

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """What the joint demands, six rows less its freedoms."""
        return rows_of(self.joint)

    @property
    def ends(self) -> tuple[Frame | None, Frame]:
        """The frame on the parent, None for the world, and that on the child."""
        on_child = Frame(self.child, self.child_frame.position, self.child_frame.rotation)
        if self.parent is None:
            return None, on_child
        return Frame(self.parent, self.frame.position, self.frame.rotation), on_child


@dataclass(frozen=True, eq=False)
class ClosedRobot:
    """A robot whose links form loops.

    Attributes:
        robot: The spanning tree; q, v, tau are its own.
        loops: The joints left out of the tree.
        rows: Which rows are imposed, of all loops' one after the other; see `independent`.
        leading: How many of the first rows are independent where the robot was `ordered`; None if it was not.
    """

    robot: Robot
    loops: tuple[Loop, ...]
    rows: tuple[int, ...]
    leading: int | None = None

    def __repr__(self) -> str:
        return f"<ClosedRobot {self.robot.name!r}: {self.robot.nv} DoF of its tree, {len(self.rows)} constraints>"

    @property
    def name(self) -> str:
        return self.robot.name

    @cached_property
    def demands(self) -> tuple[tuple[int, Row], ...]:
        """The rows that are imposed, each with its loop's number."""
        every = [(k, row) for k, loop in enumerate(self.loops) for row in loop.rows]
        return tuple(every[i] for i in self.rows)

    @cached_property
    def holonomic(self) -> tuple[int, ...]:
        """Numbers of the rows (of those imposed) that bind positions."""
        return tuple(i for i, (_, row) in enumerate(self.demands) if row.holonomic)

    def loop(self, name: str) -> Loop:
        """Return a loop by its joint's name, or raise UnknownNameError."""
        for loop in self.loops:
            if loop.name == name:
                return loop
        raise UnknownNameError("joint that closes a loop", name, (loop.name for loop in self.loops))

    def cycle(self, name: str) -> tuple[str, ...]:
        """Return the links around a loop, from its joint's parent, or the base if that is the world, to its child."""
        parent, child = (None if end is None else _link_name(self.robot, end) for end in self.loop(name).ends)
        above = {c.child: c.parent for c in self.robot.connections}
        up, down = _to_root(above, parent), _to_root(above, child)
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up, down = up[:-1], down[:-1]
        return (*up[:-1], *reversed(down))

    def close(
        self,
        joint: Closing,
        *,
        parent: str | None,
        child: str,
        at: Vector = _HERE,
        rotation: Array | None = None,
        child_at: Vector = _HERE,
        child_rotation: Array | None = None,
    ) -> ClosedRobot:
        """Return the robot with one more loop; the arguments are those of `legged.loops.close`."""
        if joint.name in {loop.name for loop in self.loops} | {c.joint.name for c in self.robot.connections}:
            raise DefinitionError(f"two joints are named {joint.name!r}; names must differ")
        loop = Loop(joint, parent, child, _pose(joint.name, at, rotation), _pose(joint.name, child_at, child_rotation))
        for end in loop.ends:
            if end is not None:
                resolve_frame(self.robot, end)
        if parent is not None and _body(self.robot, parent) == _body(self.robot, child):
            raise DefinitionError(f"joint {joint.name!r} joins {parent!r} and {child!r}, which are one body")
        first = sum(len(other.rows) for other in self.loops)
        rows = (*self.rows, *range(first, first + len(loop.rows)))
        return replace(self, loops=(*self.loops, loop), rows=rows, leading=None)


def close(
    robot: Robot,
    joint: Closing,
    *,
    parent: str | None,
    child: str,
    at: Vector = _HERE,
    rotation: Array | None = None,
    child_at: Vector = _HERE,
    child_rotation: Array | None = None,
) -> ClosedRobot:
    """Return a robot with a loop closed by a joint; `.close` adds further ones.

    Args:
        robot: The spanning tree.
        joint: What closes the loop: `Fixed`, `Revolute`, `Prismatic`, `Universal`, `Spherical`, `Planar`, `Rod` or
            `Rolling`; without springs, friction or limits.
        parent, child: Names of links or contact points; parent None for the world.
        at: Parent's origin to the joint, (3,), [m], parent axes. rotation: Joint axes to parent axes, (3, 3).
        child_at, child_rotation: The same frame in the child, where the joint is at zero.

    Raises:
        DefinitionError: for a joint that cannot close a loop, or joins a body to itself. UnknownNameError: for a name.
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


def _pose(name: str, at: Vector, rotation: Array | None) -> Pose:
    return Pose(rotation3(f"the rotation of joint {name!r}", rotation), vector3(f"the position of joint {name!r}", at))


def _body(robot: Robot, name: str) -> int:
    return resolve_frame(robot, name).body


def _link_name(robot: Robot, frame: Frame) -> str:
    return robot.links[resolve_frame(robot, frame).link].name


def _to_root(above: dict[str, str], name: str | None) -> list[str]:
    way = [] if name is None else [name]
    while way and way[-1] in above:
        way.append(above[way[-1]])
    return way
