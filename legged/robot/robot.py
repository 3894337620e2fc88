"""The robot: an immutable description of its structure, the first argument of every algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from legged.arguments import known_name, whole
from legged.checked import checked
from legged.output import from_above
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
    from matplotlib.figure import Figure

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
    def graph(self) -> nx.DiGraph[str]:
        """The robot as a directed graph with links as nodes and joints as edges, from parent to child.

        `Robot.from_graph` builds the same robot from it, and lists the attributes of graph, nodes and edges. Here each
        node has a `link` and the number of its `module`; each edge has a `joint` (its name), `kind` (its type),
        `definition` (the Joint), `at` and `rotation`. Change a copy of it, since the robot keeps the graph.
        """
        from legged.robot.construction.graph import graph_of

        return graph_of(self)

    @staticmethod
    def from_graph(graph: nx.DiGraph[str]) -> Robot:
        """Return the robot of a graph whose nodes are links and whose edges, from parent to child, are joints.

            import networkx as nx

            graph = nx.DiGraph(name="monopod", base=FloatingBase())
            graph.add_node("trunk", link=Link("trunk", box_inertia(4.0, (0.3, 0.3, 0.2))))
            graph.add_node("leg", link=Link("leg", rod_inertia(1.0, (0, 0, 0), (0, 0, -0.4)), {"foot": (0, 0, -0.4)}))
            graph.add_edge("trunk", "leg", joint=Universal("hip", "x", "-y"), at=(0.0, 0.0, -0.1))
            robot = Robot.from_graph(graph)

        Attributes of the graph are `name`; `base`, a `Base`, by default a `FloatingBase`; `gravity`, (3,), [m/s^2],
        world axes, by default (0, 0, -9.81); `order`, the names of the moving joints in the order of q and v, by
        default module by module, parent before child; and `audit`, the report on the file of a loaded robot, which
        names the file of its visual meshes.

        A node has the name of its link. Its attributes are `link`, a `Link`, and by choice `module`, the number of the
        kinematic module of the link; without these numbers the modules are the longest serial runs (`partition`).

        An edge has the attributes `joint`, a `Joint`; `at`, parent link's origin to the joint, (3,), [m], parent link
        axes, by default zero; `rotation`, a rotation matrix, (3, 3), joint axes to parent link axes, by default the
        identity; and for a joint that follows another, q_joint = ratio q_master + offset, the name of its `master`,
        the `ratio`, by default 1, and the `offset`, [rad] or [m], by default 0. Instead of a joint as `joint`, its name
        may be given there and the joint as `definition`, as in the `graph` of a robot.

        Args:
            graph: The graph; it is copied. Links that are children of one link have the order of their edges.

        Raises:
            ArgumentError: The graph is no directed graph with one edge between two nodes, or an attribute has a wrong
                type.
            DefinitionError: An attribute is missing, unknown or wrong; two joints or contact points have one name; the
                graph is no tree, because of a cycle, several roots or a link with two parents; and as
                `RobotBuilder.build`.
            ModuleError: The numbers of modules violate a rule of modules.
            UnknownNameError: A joint follows an unknown joint, or the order of joints contains one.
        """
        from legged.robot.construction.assemble import assemble

        return assemble(graph)

    def draw_modules(self) -> Figure:
        """Return a picture of the robot's architecture: modules in colors with numbers, links, joints and feet.

        The base M_0 is at the top; each module is a dotted column below its parent. The label #k^i of a link is its
        number among the bodies of module i, in which a joint of several degrees of freedom counts as several. Letters
        in circles, or in a square for a translation, are the types of joints, explained below the picture. The size of
        the figure follows from the robot; its method `savefig` writes it.

        Source:
            Shah, Saha, Dutt 2012, figures 1, 5 and 15.
        """
        return from_above("draw")(self)

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
        children: list[list[int]] = [[] for _ in self.bodies]
        for body in self.bodies:
            if not body.is_base:
                children[body.parent].append(body.index)
        return tuple(map(tuple, children))

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
        for body in self.bodies[1:]:
            q[body.q] = body.motion.neutral()
        return q


def _range(joint: PlacedJoint) -> str:
    """Return the range of a joint in words; "" without limits, and for joints with several coordinates."""
    lower, upper = (np.asarray(limit) for limit in (joint.definition.physics.lower, joint.definition.physics.upper))
    is_limited = not lower.ndim and not upper.ndim and bool(np.isfinite([lower, upper]).any())
    return f"{lower:.4g} to {upper:.4g}" if is_limited else ""


def _by_name(what: str, items: Iterable[Named], name: str) -> Named:
    by_name = {item.name: item for item in items}
    return by_name[known_name(what, name, by_name)]
