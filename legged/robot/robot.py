"""The robot: an immutable description of its structure, the first argument of every algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from legged.arguments import known_name, whole
from legged.checked import checked
from legged.robot.base import Base
from legged.robot.body import Body
from legged.robot.joint import Connection, Follower, PlacedJoint
from legged.robot.link import ContactPoint, PlacedLink
from legged.robot.modules import Module
from legged.robot.state import State, joint_rates, joint_values, named_state, state
from legged.spatial import Array, sum_of
from legged.table import Table

if TYPE_CHECKING:
    import networkx as nx

    from legged.elements import Field
    from legged.robot.construction.edit import RobotEditor
    from legged.robot.construction.parameters import ParameterVector

Named = TypeVar("Named", bound=Any)


@dataclass(frozen=True, eq=False)
class Robot:
    """A tree of links on a base, partitioned into kinematic modules.

    Attributes:
        name: Name for titles and messages.
        base: The degrees of freedom of the base.
        gravity: Acceleration of free fall, (3,), [m/s^2], world axes.
        links: All links, base first, module by module, parent before child.
        joints: The moving joints in the order of v, without coupled joints.
        bodies: The bodies of the recursions; see `Body`.
        modules: The kinematic modules; modules[0] is the base.
        contacts: Contact points with the ground.
        connections: All joints (fixed ones too) as defined, parent before child.
        nq, nv: Lengths of q and v.
        followers: Coupled joints, which share the entries of q and v of their masters.
        audit: Report on the file that the robot was loaded from (`legged.files`); None for a robot built in code.
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
    audit: Any = None

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {len(self.links)} links, {self.nv} DoF, {self.base.kind} base>"

    def _repr_html_(self) -> str:
        """Return the joints of the robot as a table for a notebook."""
        rows = tuple((j.name, j.kind, j.parent, j.child, _range(j)) for j in self.joints)
        words = f"{self.name}: {len(self.links)} links, {self.nv} degrees of freedom, {self.base.kind} base"
        return Table(words, ("joint", "kind", "parent", "child", "range [rad] or [m]"), rows, left=5).html()

    @cached_property
    def graph(self) -> nx.DiGraph:
        """The tree of links as a directed graph with links as nodes and joints as edges.

        The edges have attributes `joint` (its name), `kind`, `definition` (the Joint), and its pose in the frame of the
        parent link: `at`, (3,), [m], and `rotation`, (3, 3), joint axes to parent axes.
        """
        import networkx as nx  # imported on demand, since loading it takes as long as loading NumPy

        graph = nx.DiGraph(name=self.name)
        graph.add_nodes_from(link.name for link in self.links)
        for c in self.connections:
            place = {"at": c.start.position, "rotation": c.start.rotation}
            graph.add_edge(c.parent, c.child, joint=c.joint.name, kind=c.joint.kind, definition=c.joint, **place)
        return graph

    @cached_property
    def mass(self) -> float:
        """Total mass, [kg]."""
        return sum_of(link.inertia.mass for link in self.links)

    @cached_property
    def is_traced(self) -> bool:
        """Whether some of its numbers are traced scalars; see `with_parameters`."""
        return any(body.is_traced for body in self.bodies)

    @cached_property
    def coupled_joints(self) -> tuple[str, ...]:
        """Names of the joints that cannot be eliminated body by body, because bodies share entries of q and v.

        They are the joints that follow others, and constant-velocity joints.
        """
        return tuple(dict.fromkeys(body.coupling.follower for body in self.bodies if body.coupling is not None))

    def __lift__(self, field: Field) -> Self:
        """Return the robot with numbers of another type as constants, for `legged.elements`."""
        from legged.robot.construction.lifted import lifted

        return lifted(self, field)

    @property
    def nj(self) -> int:
        """Number of joint degrees of freedom, without the base."""
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
        """Return the state (q, v) with given parts: `base_position`, `joints`, ...; see `legged.robot.state.state`."""
        return state(self, **parts)

    def named_state(self, q: Array, v: Array) -> dict[str, Any]:
        """Return the arguments of `state` that give (q, v).

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,).
        """
        return named_state(self, q, v)

    def joint_values(self, q: Array) -> dict[str, Any]:
        """Return the entries of q of each joint by name, with leading axes as in q.

        Args:
            q: Configurations, (..., nq).
        """
        return joint_values(self, q)

    def joint_rates(self, v: Array) -> dict[str, Any]:
        """Return the entries of v of each joint by name, with leading axes as in v.

        Args:
            v: Velocities, accelerations or generalized forces, (..., nv).
        """
        return joint_rates(self, v)

    def locked(self, values: Mapping[str, Any]) -> Robot:
        """Return the robot with some joints locked at given values."""
        from legged.robot.construction.reduced import locked

        return locked(self, values)

    def without(self, *links: str) -> Robot:
        """Return the robot without the named links and everything outward of them."""
        from legged.robot.construction.reduced import without

        return without(self, links)

    def fused(self) -> Robot:
        """Return the robot with links that are joined by fixed joints merged."""
        from legged.robot.construction.reduced import fused

        return fused(self)

    def edit(self) -> RobotEditor:
        """Return a builder that starts from this robot, to change, add, remove and rename parts; see `RobotEditor`."""
        from legged.robot.construction.edit import RobotEditor

        return RobotEditor(self)

    def parameters(self) -> dict[str, Any]:
        """Return the numbers that can vary by name, with their values."""
        from legged.robot.construction.parameters import parameters

        return parameters(self)

    @checked
    def with_parameters(self, values: Mapping[str, Any]) -> Self:
        """Return the robot with some numbers replaced."""
        from legged.robot.construction.parameters import with_parameters

        return with_parameters(self, values)

    @checked
    def parameter_vector(self, names: Sequence[str]) -> ParameterVector:
        """Return some parameters as one vector of numbers."""
        from legged.robot.construction.parameters import ParameterVector

        return ParameterVector(self, names)

    def describe(self) -> dict[str, Any]:
        """Return the robot as plain data, which JSON can store."""
        from legged.robot.construction.description import describe

        return describe(self)

    @staticmethod
    def from_description(data: Mapping[str, Any]) -> Robot:
        """Return the robot of plain data."""
        from legged.robot.construction.description import from_description

        return from_description(data)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The indices of each body's children."""
        return tuple(tuple(b.index for b in self.bodies if b.parent == body.index) for body in self.bodies)

    def ancestors(self, body: int) -> list[int]:
        """Return the indices of the bodies from the given one to the base, both included."""
        path = [whole("the index of a body", body, 0, len(self.bodies) - 1)]
        while self.bodies[path[-1]].parent >= 0:
            path.append(self.bodies[path[-1]].parent)
        return path

    @cached_property
    def alike_modules(self) -> tuple[tuple[int, ...], ...]:
        """Groups of numbers of modules with the same kinds of joints in the same order, without the base."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for module in self.modules[1:]:
            groups.setdefault(module.kind, []).append(module.index)
        return tuple(tuple(group) for group in groups.values())

    def neutral(self) -> Array:
        """Return the configuration, (nq,), with every joint at zero and the base frame at the world frame."""
        q = np.zeros(self.nq)
        q[: self.base.nq] = self.base.neutral()
        for body in self.bodies:
            if body.kind == "ball":
                q[body.q.start] = 1.0
        return q


def _range(joint: PlacedJoint) -> str:
    """Return the range of a joint in words; "" without limits, and for joints with several coordinates."""
    lower, upper = (np.asarray(limit) for limit in (joint.definition.physics.lower, joint.definition.physics.upper))
    is_limited = not lower.ndim and not upper.ndim and bool(np.isfinite([lower, upper]).any())
    return f"{lower:.4g} to {upper:.4g}" if is_limited else ""


def _by_name(what: str, items: Iterable[Named], name: str) -> Named:
    by_name = {item.name: item for item in items}
    return by_name[known_name(what, name, by_name)]
