"""A finished robot: structure only, frozen; every algorithm is a function of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from legged.errors import UnknownNameError
from legged.robot.base import Base
from legged.robot.body import Body
from legged.robot.joint import Follower, PlacedJoint
from legged.robot.link import ContactPoint, PlacedLink
from legged.robot.modules import Module
from legged.spatial import Array

if TYPE_CHECKING:
    import networkx as nx

    from legged.files.audit import Audit
    from legged.robot.builder import Connection
    from legged.robot.state import State

Named = TypeVar("Named", bound=Any)


@dataclass(frozen=True, eq=False)
class Robot:
    """A tree of links on a base, partitioned into kinematic modules.

    Attributes:
        name: For titles and messages.
        base: What the base may do.
        gravity: Acceleration of free fall, (3,), [m/s^2], world axes.
        links: All links, base first, module by module, parent before child.
        joints: The joints that move, in the order of v; those that follow others are not among them.
        bodies: The computational links; see `Body`.
        modules: The partition; modules[0] is the base.
        contacts: Points that may touch the ground.
        connections: All joints (fixed ones too) as they were defined, parent before child.
        nq, nv: Lengths of q and v.
        followers: Joints that move as others do, which have no entries of their own.
        audit: What was made of the file that the robot was loaded from; None for one built in code.
    """

    name: str
    base: Base
    gravity: Array
    links: tuple[PlacedLink, ...]
    joints: tuple[PlacedJoint, ...]
    bodies: tuple[Body, ...]
    modules: tuple[Module, ...]
    contacts: tuple[ContactPoint, ...]
    connections: tuple[Connection, ...]
    nq: int
    nv: int
    followers: tuple[Follower, ...] = ()
    audit: Audit | None = None

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {len(self.links)} links, {self.nv} DoF, {self.base.kind} base>"

    @cached_property
    def graph(self) -> nx.DiGraph:
        """Links as nodes, joints as directed edges.

        The edges have attributes `joint` (its name), `kind`, `definition` (the Joint), and where it sits: `at`, (3,),
        [m], and `rotation`, (3, 3), joint axes to parent axes, both in the parent link's frame.
        """
        import networkx as nx  # it takes as long to load as NumPy, and most programs do without

        graph = nx.DiGraph(name=self.name)
        graph.add_nodes_from(link.name for link in self.links)
        for c in self.connections:
            place = {"at": c.start.position, "rotation": c.start.rotation}
            graph.add_edge(c.parent, c.child, joint=c.joint.name, kind=c.joint.kind, definition=c.joint, **place)
        return graph

    @cached_property
    def mass(self) -> float:
        """Total mass, [kg]."""
        return float(sum(link.inertia.mass for link in self.links))

    @property
    def nj(self) -> int:
        """Number of joint degrees of freedom, base not counted."""
        return self.nv - self.base.nv

    def link(self, name: str) -> PlacedLink:
        """Return a link by name, or raise UnknownNameError."""
        return _by_name("link", self.links, name)

    def joint(self, name: str) -> PlacedJoint:
        """Return a moving joint by name, or raise UnknownNameError."""
        return _by_name("joint", self.joints, name)

    def contact(self, name: str) -> ContactPoint:
        """Return a contact point by name, or raise UnknownNameError."""
        return _by_name("contact point", self.contacts, name)

    def state(self, **parts: Any) -> State:
        """Return (q, v) from named parts: `base_position`, `joints`, ...; see `legged.robot.state.state`."""
        from legged.robot.state import state

        return state(self, **parts)

    def named_state(self, q: Array, v: Array) -> dict[str, Any]:
        """Return the named parts of a state, which `state` takes."""
        from legged.robot.state import named_state

        return named_state(self, q, v)

    def joint_values(self, q: Array) -> dict[str, Any]:
        """Return each joint's entries of q, (..., nq), by name: a number, or an array for several."""
        from legged.robot.state import joint_values

        return joint_values(self, q)

    def joint_rates(self, v: Array) -> dict[str, Any]:
        """Return each joint's entries of a velocity, acceleration or generalized forces, (..., nv), by name."""
        from legged.robot.state import joint_rates

        return joint_rates(self, v)

    def locked(self, values: Mapping[str, Any]) -> Robot:
        """Return the robot with joints held at values by name; see `legged.robot.reduced`."""
        from legged.robot.reduced import locked

        return locked(self, values)

    def without(self, *links: str) -> Robot:
        """Return the robot without the named links and everything outward of them."""
        from legged.robot.reduced import without

        return without(self, links)

    def fused(self) -> Robot:
        """Return the robot without links that are fixed to others, whose mass and contacts these take over."""
        from legged.robot.reduced import fused

        return fused(self)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each body, the indices of its children."""
        return tuple(tuple(b.index for b in self.bodies if b.parent == body.index) for body in self.bodies)

    def ancestors(self, body: int) -> list[int]:
        """Return the bodies from the given one to the base, both included."""
        path = [body]
        while self.bodies[path[-1]].parent >= 0:
            path.append(self.bodies[path[-1]].parent)
        return path

    @cached_property
    def alike_modules(self) -> tuple[tuple[int, ...], ...]:
        """Groups of module numbers of one kind (same joints, same order), the base left out."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for module in self.modules[1:]:
            groups.setdefault(module.kind, []).append(module.index)
        return tuple(tuple(group) for group in groups.values())

    def neutral(self) -> Array:
        """Return q with every joint at zero and the base at the world's origin, (nq,)."""
        q = np.zeros(self.nq)
        q[: self.base.nq] = self.base.neutral()
        for body in self.bodies:
            if body.kind == "ball":
                q[body.q.start] = 1.0
        return q


def _by_name(what: str, items: Iterable[Named], name: str) -> Named:
    items = tuple(items)
    for item in items:
        if item.name == name:
            return item
    raise UnknownNameError(what, name, (item.name for item in items))
