"""Closed-loop robots from definitions with cycles, of which a spanning tree is chosen, and from MJCF files."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import known_name
from legged.checked import checked
from legged.errors import DefinitionError, FileError, LoopError
from legged.files.load import load as load_tree
from legged.files.mjcf.equalities import ClosingEquality, closing_equalities
from legged.files.mjcf.export import write as write_mjcf
from legged.files.mjcf.scene import on_floor
from legged.loops.assembly import assemble
from legged.loops.closed_robot import ClosedRobot, Loop
from legged.loops.closing_joints import ClosingJoint, has_default_physics
from legged.loops.constraints import mobility
from legged.loops.redundancy import loop_bodies
from legged.robot.construction.builder import RobotBuilder
from legged.robot.construction.graph import ORIGIN
from legged.robot.joint import Connection, Fixed, Revolute, Screw, Spherical
from legged.robot.placement import Placement, Vector, placement
from legged.spatial import Array


@checked
class LoopBuilder(RobotBuilder):
    """A `RobotBuilder` whose links may have several joints to parents.

    builder = LoopBuilder("parallelogram", Link("ground", ...), base=FixedBase())
    builder.add(Revolute("a", "-y"), crank, to="ground").add(Revolute("b", "-y"), coupler, to="crank", at=(0, 0, 1))
    builder.add(Revolute("c", "-y"), rocker, to="ground", at=(2, 0, 0))
    closed = builder.close(Revolute("d", "-y"), parent="rocker", child="coupler", at=..., child_at=...).build()
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._closing: list[tuple[ClosingJoint, dict[str, Any]]] = []

    def close(
        self,
        joint: ClosingJoint,
        *,
        parent: str | None,
        child: str,
        at: Vector = ORIGIN,
        rotation: Array | None = None,
        child_at: Vector = ORIGIN,
        child_rotation: Array | None = None,
    ) -> LoopBuilder:
        """Close a loop by a joint at any point of its child; arguments as in `legged.loops.close`."""
        on_parent = placement(f"joint {joint.name!r}", at, rotation)
        on_child = placement(f"joint {joint.name!r} in the child", child_at, child_rotation)
        places = {"at": on_parent.position, "rotation": on_parent.rotation}
        places |= {"child_at": on_child.position, "child_rotation": on_child.rotation}
        self._closing.append((joint, {"parent": parent, "child": child, **places}))
        return self

    def build(  # type: ignore[override]
        self,
        modules: Sequence[Sequence[str]] | None = None,
        order: Sequence[str] | None = None,
        cut: Sequence[str] = (),
    ) -> ClosedRobot:
        """Return the robot: a spanning tree of the links, and loops for the remaining joints.

        The tree grows from the base along the directions of the joints. Joints that cannot close a loop (coupled ones,
        those with springs, friction or limits) are taken first, then joints with few degrees of freedom, so that few
        constraints remain.

        Args:
            modules, order: As in `RobotBuilder.build`, of the tree.
            cut: Names of joints that must close loops.

        Raises:
            DefinitionError: As `RobotBuilder.build`; for a link that is not connected to the base; for a joint that
                would have to close a loop and cannot. UnknownNameError: For an unknown link or joint.
        """
        joints, links = [c.joint.name for c in self._connections], [link.name for link in self._links]
        for name in cut:
            known_name("joint", name, joints)
        for c in self._connections:
            for name in (c.parent, c.child):
                known_name("link", name, links)
        in_tree = self._spanning_tree([c for c in self._connections if c.joint.name not in cut])
        tree = copy(self)
        tree._connections = in_tree
        closed = ClosedRobot(RobotBuilder.build(tree, modules, order), (), ())
        for c in self._connections:
            if not any(c is other for other in in_tree):
                place = {"at": c.start.position, "rotation": c.start.rotation}
                closed = closed.close(c.joint, parent=c.parent, child=c.child, **place)
        for joint, where in self._closing:
            closed = closed.close(joint, **where)
        return closed

    def _spanning_tree(self, connections: Sequence[Connection]) -> list[Connection]:
        """Return the joints of the tree, in the order of their definition, by Prim's algorithm."""
        leaving: dict[str, list[tuple[tuple, int]]] = {}
        for i, c in enumerate(connections):
            leaving.setdefault(c.parent, []).append((self._preference(c), i))
        reached, taken = {self._root}, set()
        candidates: list[tuple[tuple, int]] = []
        for entry in leaving.get(self._root, []):
            heappush(candidates, entry)
        while candidates:
            _, i = heappop(candidates)
            child = connections[i].child
            if child not in reached:
                reached.add(child)
                taken.add(i)
                for entry in leaving.get(child, []):
                    heappush(candidates, entry)
        self._refuse_unconnected(reached)
        return [c for i, c in enumerate(connections) if i in taken]

    def _preference(self, c: Connection) -> tuple:
        coupled = {name for pair in self._couplings for name in (pair.follower, pair.master)}
        can_close = has_default_physics(c.joint) and not isinstance(c.joint, Screw) and c.joint.name not in coupled
        return not isinstance(c.joint, Fixed), can_close, c.joint.nv

    def _refuse_unconnected(self, reached: set[str]) -> None:
        unconnected = [link.name for link in self._links if link.name not in reached]
        if unconnected:
            raise DefinitionError(
                f"no joints lead from the base {self._root!r} outward to "
                f"{', '.join(repr(name) for name in unconnected)}: reverse a joint, or cut another one"
            )


@checked
def load(
    path: str | Path, base: str | None = None, *, rank_tolerance: float | None = None, **options: Any
) -> ClosedRobot:
    """Return the robot of a file with its loops: MJCF's `connect` as ball joints, its `weld` as fixed joints.

    Equalities between several moving bodies on the world make them one robot, as `root="world"` does. The constraints
    are rigid here and soft in MuJoCo. A file without them, such as a URDF, gives a robot without loops.
    `closed.robot.audit` lists the elements of the file that the tree omits, these equalities included, and under
    `decided` the constraints that count as redundant because of rounding in the file, see `mobility`.

    Args:
        path, base, options: As for `legged.load`, of the spanning tree, which is the tree of the file's bodies.
        rank_tolerance: As in `ClosedRobot.with_rank_tolerance`.

    Raises:
        FileError: As `legged.load`, and for an equality with a body that is no link of the robot.
    """
    closed, equalities = ClosedRobot(load_tree(path, base, **options), (), ()), tuple(closing_equalities(path))
    links = {link.name for link in closed.robot.links}
    ends = {name for equality in equalities for name in (equality.parent, equality.child) if name is not None}
    if "root" not in options and not ends <= links:  # they join several moving bodies on the world
        closed = ClosedRobot(load_tree(path, base, root="world", **options), (), ())
    for equality in equalities:
        closed = _close_equality(closed, equality, str(path))
    if "feet" not in options and (feet := _feet_of_loops(closed)):
        return load(path, base, rank_tolerance=rank_tolerance, feet=feet, **options)
    return _with_notes_on_rank(closed.with_rank_tolerance(rank_tolerance))


def _feet_of_loops(closed: ClosedRobot) -> list[str]:
    """Return the links with contact points but those that carry others of a loop with a foot, such as a foot's crank.

    Empty if there are no such links, and the feet that were found are right.
    """
    robot = closed.robot
    touching = {robot.links[point.link].name: robot.links[point.link].body for point in robot.contacts}
    left = set()
    for loop in closed.loops:
        bodies = loop_bodies(robot, loop)
        inner = {k for body in bodies for k in robot.ancestors(body)[1:]}
        own = {name: body for name, body in touching.items() if body in bodies}
        if any(body not in inner for body in own.values()):
            left |= {name for name, body in own.items() if body in inner}
    return [name for name in touching if name not in left] if left else []


def _with_notes_on_rank(closed: ClosedRobot) -> ClosedRobot:
    """Return the robot, whose audit names the constraints that are nearly redundant where its loops are closed."""
    report = closed.robot.audit
    if not closed.loops or report is None:
        return closed
    try:
        freedoms = mobility(closed, assemble(closed, closed.robot.neutral()))
    except LoopError as error:
        note = f"the rank of the loop constraints was not tested: {error}"
    else:
        if not freedoms.uncertain:
            return closed
        note = f"the loops have {freedoms}"
    return replace(closed, robot=replace(closed.robot, audit=replace(report, decided=(*report.decided, note))))


def _close_equality(closed: ClosedRobot, equality: ClosingEquality, source: str) -> ClosedRobot:
    """Return the robot with the loop that an equality closes."""
    robot = closed.robot
    for name in (equality.parent, equality.child):
        if name is not None and name not in {link.name for link in robot.links}:
            raise FileError(source, f"equality {equality.name!r} fixes {name!r}, which is no link of the robot")
    if equality.parent is None and robot.base.nv == 0 and robot.links[0].name != "world":
        raise FileError(
            source,
            f"equality {equality.name!r} fixes the robot to the world, but base='fixed' puts the free body "
            f"{robot.links[0].name!r} at the origin; omit base",
        )
    name, known = equality.name, {loop.name for loop in closed.loops} | {c.joint.name for c in robot.connections}
    while name in known:  # in MJCF an equality may have the name of a joint
        name = f"{name} {equality.kind}"
    return closed.close(
        Spherical(name) if equality.kind == "connect" else Fixed(name),
        parent=equality.parent,
        child=equality.child,
        at=equality.on_parent.position,
        rotation=equality.on_parent.rotation,
        child_at=equality.on_child.position,
        child_rotation=equality.on_child.rotation,
    )


@checked
def save_mjcf(
    closed: ClosedRobot,
    path: str | Path,
    *,
    scene: bool = False,
    ground: Any = None,
    home: Array | None = None,
    kp: Any = None,
    kd: Any = None,
    time_step: float = 0.002,
) -> Path:
    """Write a robot with closed loops to an MJCF file, and return its path; see `legged.save_mjcf`.

    A ball joint becomes an equality of type `connect`, a fixed joint a `weld`, and a revolute joint two `connect`s on
    its axis, 0.1 m apart; MuJoCo enforces them softly.

    Args:
        closed: The robot. path, scene, ground, kp, kd, time_step: As in `legged.save_mjcf`.
        home: Configuration of the key frame, (nq,), [rad] and [m]. None: one near zero that closes the loops, with the
            lowest foot on the ground.

    Raises:
        DefinitionError: A loop that another joint closes, or at a link without mass. LoopError: The loops cannot be
            closed. Others as `legged.save_mjcf`.
    """
    equalities = [equality for loop in closed.loops for equality in _equalities_of(loop)]
    if scene and home is None:
        home = on_floor(closed.robot, assemble(closed, closed.robot.neutral()), ground)
    options = {"ground": ground, "home": home, "kp": kp, "kd": kd, "time_step": time_step}
    return write_mjcf(closed.robot, path, equalities, scene, **options)


def _equalities_of(loop: Loop) -> list[ClosingEquality]:
    """Return the equalities of MJCF that close a loop."""
    kind = {Spherical: "connect", Revolute: "connect", Fixed: "weld"}.get(type(loop.joint))
    if kind is None:
        raise DefinitionError(
            f"joint {loop.name!r} closes a loop as {type(loop.joint).__name__}; MJCF has equalities for Fixed, "
            f"Revolute and Spherical alone, so let another joint of the loop close it"
        )
    ends = [Placement(pose.rotation, pose.position) for pose in (loop.frame, loop.child_frame)]
    equality = ClosingEquality(loop.name, kind, loop.parent, loop.child, *ends)
    if not isinstance(loop.joint, Revolute):
        return [equality]
    along = Placement(np.eye(3), 0.1 * loop.joint.stages[0].axis)
    second = equality._replace(name=f"{loop.name} axis", on_parent=ends[0] @ along, on_child=ends[1] @ along)
    return [equality, second]
