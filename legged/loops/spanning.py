"""Robots defined with all their joints, cycles too: a spanning tree is picked, the joints left over close its loops."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from heapq import heappop, heappush
from typing import Any

from legged.errors import DefinitionError, UnknownNameError
from legged.loops.closing import Closing, plain
from legged.loops.loop import ClosedRobot
from legged.robot.builder import RobotBuilder
from legged.robot.joint import Connection, Fixed


class LoopBuilder(RobotBuilder):
    """Collects links, joints and limbs as `RobotBuilder` does, but links may hang on several joints.

    builder = LoopBuilder("parallelogram", Link("ground", ...), base=FixedBase())
    builder.add(Revolute("a", "-y"), crank, to="ground").add(Revolute("b", "-y"), coupler, to="crank", at=(0, 0, 1))
    builder.add(Revolute("c", "-y"), rocker, to="ground", at=(2, 0, 0))
    closed = builder.close(Revolute("d", "-y"), parent="rocker", child="coupler", at=..., child_at=...).build()
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._closing: list[tuple[Closing, dict[str, Any]]] = []

    def close(self, joint: Closing, **where: Any) -> LoopBuilder:
        """Close a loop by a joint at any place of its child; the arguments are those of `legged.loops.close`."""
        self._closing.append((joint, where))
        return self

    def build(  # type: ignore[override]
        self,
        modules: Sequence[Sequence[str]] | None = None,
        order: Sequence[str] | None = None,
        cut: Sequence[str] = (),
    ) -> ClosedRobot:
        """Return the robot: a spanning tree of the links, and loops for the joints left over.

        From the base outward, along the joints' own directions, the tree takes joints that only it can have (coupled
        ones, those with springs, friction or limits) before others, and joints of few freedoms before those of many,
        so that few constraints remain.

        Args:
            modules, order: As in `RobotBuilder.build`, of the tree.
            cut: Names of joints that shall close loops.

        Raises:
            DefinitionError: as `RobotBuilder.build`, for a link that no joint outward from the base reaches, and for
                a joint that would have to close a loop and cannot. UnknownNameError: for a name.
        """
        names = [c.joint.name for c in self._connections]
        for name in cut:
            if name not in names:
                raise UnknownNameError("joint", name, names)
        for c in self._connections:
            for end in (c.parent, c.child):
                if end not in {link.name for link in self._links}:
                    raise UnknownNameError("link", end, (link.name for link in self._links))
        kept = self._spanning([c for c in self._connections if c.joint.name not in cut])
        tree = copy(self)
        tree._connections = kept
        closed = ClosedRobot(RobotBuilder.build(tree, modules, order), (), ())
        for c in self._connections:
            if not any(c is other for other in kept):
                place = {"at": c.start.position, "rotation": c.start.rotation}
                closed = closed.close(c.joint, parent=c.parent, child=c.child, **place)
        for joint, where in self._closing:
            closed = closed.close(joint, **where)
        return closed

    def _spanning(self, connections: Sequence[Connection]) -> list[Connection]:
        """Return the joints of the tree, in the order of their definition."""
        leaving: dict[str, list[tuple[tuple, int]]] = {}
        for i, c in enumerate(connections):
            leaving.setdefault(c.parent, []).append((self._preference(c), i))
        reached, taken = {self._root}, set()
        waiting: list[tuple[tuple, int]] = []
        for entry in leaving.get(self._root, []):
            heappush(waiting, entry)
        while waiting:
            _, i = heappop(waiting)
            child = connections[i].child
            if child not in reached:
                reached.add(child)
                taken.add(i)
                for entry in leaving.get(child, []):
                    heappush(waiting, entry)
        self._refuse_unreached(reached)
        return [c for i, c in enumerate(connections) if i in taken]

    def _preference(self, c: Connection) -> tuple:
        coupled = {name for pair in self._couplings for name in (pair.follower, pair.master)}
        replaceable = plain(c.joint) and c.joint.name not in coupled
        return not isinstance(c.joint, Fixed), replaceable, c.joint.nv

    def _refuse_unreached(self, reached: set[str]) -> None:
        loose = [link.name for link in self._links if link.name not in reached]
        if loose:
            raise DefinitionError(
                f"no way along the joints, from parents to children, leads from the base {self._root!r} to "
                f"{', '.join(repr(name) for name in loose)}: turn a joint round, or cut another one"
            )
