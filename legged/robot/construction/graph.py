"""Robots as graphs: a `networkx.DiGraph` whose nodes are links and whose edges, from parent to child, are joints.

Every robot is assembled from such a graph: `read_graph` checks its attributes and that it is a tree. `LinkGraph` has
the same nodes, edges and attributes in plain mappings; builders and readers of files make it, so that networkx, which
takes 0.1 s to load, is loaded only where a user handles its graphs. The attributes:

- of the graph: `name`; `base`, a `Base` (floating by default); `gravity`, (3,), [m/s^2], world axes; `order`, the names
  of the moving joints in the order of q and v (module by module by default); `audit`, as in `Robot`;
- of a node, which has the name of its link: `link`, a `Link`; `module`, the number of its kinematic module (by default
  the modules are the longest serial runs);
- of an edge: `joint`, a `Joint`; `at`, parent link's origin to the joint, (3,), [m], parent link axes; `rotation`, a
  rotation matrix, (3, 3), joint axes to parent link axes; `master`, `ratio`, `offset` of a joint that follows another,
  as in `Coupling`. The graph of a robot has the joint as `definition`, its name as `joint` and its type as `kind`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from legged.arguments import instance, number, shown, text, whole
from legged.errors import ArgumentError, DefinitionError, ModuleError
from legged.robot.base import Base, FloatingBase
from legged.robot.joint import Connection, Coupling, Joint
from legged.robot.link import Link
from legged.robot.placement import placement, vector3
from legged.robot.shapes import Sphere
from legged.spatial import Array

if TYPE_CHECKING:
    import networkx as nx

    from legged.robot.robot import Robot

T = TypeVar("T")
GRAVITY = (0.0, 0.0, -9.81)
ORIGIN = (0.0, 0.0, 0.0)
_OF_GRAPH = ("name", "base", "gravity", "order", "audit")
_OF_NODE = ("link", "module")
_OF_COUPLING = ("master", "ratio", "offset")
_OF_EDGE = ("joint", "definition", "kind", "at", "rotation", *_OF_COUPLING)
_NOT_IN_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, eq=False)
class Definition:
    """The content of a graph after its checks, independent of later changes of the graph.

    Attributes:
        name, base: Of the robot.
        gravity: Acceleration of free fall, (3,), [m/s^2], world axes.
        links: Links by name; the base is the first.
        connections: All joints, parent before child.
        couplings: Couplings of joints.
        modules: The partition into modules as lists of links, parent before child; None for the default.
        order: Names of the moving joints in the order of q and v; None for the default.
        audit: Report on the file of the robot, which is not read here.
    """

    name: str
    base: Base
    gravity: Array
    links: dict[str, Link]
    connections: tuple[Connection, ...]
    couplings: tuple[Coupling, ...]
    modules: list[list[str]] | None
    order: list[str] | None
    audit: Any


@dataclass(frozen=True, eq=False)
class LinkGraph:
    """A directed graph with the attributes of a `networkx.DiGraph`.

    Attributes:
        graph: Attributes of the graph.
        nodes: Node -> its attributes.
        edges: (parent, child) -> attributes of the edge.
    """

    graph: dict[str, Any]
    nodes: dict[str, dict[str, Any]]
    edges: dict[tuple[str, str], dict[str, Any]]

    @staticmethod
    def of(
        name: str,
        base: Base,
        gravity: Array,
        links: Iterable[Link],
        connections: Iterable[Connection],
        couplings: Mapping[str, Coupling],
    ) -> LinkGraph:
        """Return the graph of links and joints.

        Args:
            name, base: Of the robot. gravity: Acceleration of free fall, (3,), [m/s^2], world axes.
            links: Links of different names. connections: Joints, at most one from one link to another.
            couplings: Couplings of joints by the name of the follower.
        """
        return LinkGraph(
            {"name": name, "base": base, "gravity": np.array(gravity)},
            {link.name: {"link": link} for link in links},
            {(c.parent, c.child): _edge(c, couplings.get(c.joint.name)) for c in connections},
        )


def _edge(c: Connection, coupling: Coupling | None) -> dict[str, Any]:
    """Return the attributes of the edge of a joint, which may follow another joint."""
    attributes: dict[str, Any] = {"joint": c.joint.name, "kind": c.joint.kind, "definition": c.joint}
    attributes |= {"at": np.array(c.start.position), "rotation": np.array(c.start.rotation)}
    if coupling is not None:
        attributes |= {name: getattr(coupling, name) for name in _OF_COUPLING}
    return attributes


def graph_of(robot: Robot) -> nx.DiGraph[str]:
    """Return the graph from which `Robot.from_graph` builds the robot again; see `Robot.graph`.

    Args:
        robot: The robot.
    """
    import networkx as nx

    couplings = {f.name: Coupling(f.name, f.master, f.ratio, f.offset) for f in robot.followers}
    own = LinkGraph.of(robot.name, robot.base, robot.gravity, links_of(robot), robot.connections, couplings)
    for module in robot.modules:
        for name in module.links:
            own.nodes[name]["module"] = module.index
    joint_of = {joint.child: joint.name for joint in robot.joints}
    order = [joint.name for joint in robot.joints]
    if order != [joint_of[link.name] for link in robot.links if link.name in joint_of]:
        own.graph["order"] = order
    if robot.audit is not None:
        own.graph["audit"] = robot.audit
    graph: nx.DiGraph[str] = nx.DiGraph(**own.graph)
    graph.add_nodes_from(own.nodes.items())
    graph.add_edges_from((*ends, attributes) for ends, attributes in own.edges.items())
    return graph


def links_of(robot: Robot) -> list[Link]:
    """Return the definitions of the links with their contact points, base first."""
    contacts: list[dict[str, Array | Sphere]] = [{} for _ in robot.links]
    for point in robot.contacts:
        contacts[point.link][point.name] = point.definition
    return [
        Link(link.name, link.inertia, points, link.shapes, link.material, link.is_foot)
        for link, points in zip(robot.links, contacts, strict=True)
    ]


def read_graph(graph: nx.DiGraph[str] | LinkGraph) -> Definition:
    """Return the content of the graph of a robot.

    Args:
        graph: The graph; see the top of this file.

    Raises:
        ArgumentError: The graph is no directed graph with one edge between two nodes, or an attribute has a wrong type.
        DefinitionError: An attribute is missing, unknown or wrong; two parts have one name; the graph is no tree.
        ModuleError: Some links have a number of a module and others not, or the numbers have gaps.
    """
    if not isinstance(graph, LinkGraph):
        _check_type(graph)
    given, nodes = graph.graph, dict(graph.nodes.items())
    if not nodes:
        raise DefinitionError("the graph has no links: add the base as a node with a Link as its attribute 'link'")
    _check_known("the graph", given, _OF_GRAPH)
    links = {name: _link(name, nodes) for name in nodes}
    edges = {(a, b): _connection(a, b, attributes) for (a, b), attributes in graph.edges.items()}
    own_name = text("the name of the graph", given.get("name", "robot"))
    check_names("robot", [own_name])
    check_names("link", list(links))
    check_names("joint", [c.joint.name for c in edges.values()])
    check_names("contact point", [point for link in links.values() for point in link.contacts])
    joints = list(edges.values())
    root, numbers = outward(list(nodes), [(c.joint.name, c.parent, c.child) for c in joints])
    connections = tuple(joints[k] for k in numbers)
    names = [root, *(c.child for c in connections)]
    couplings = [_coupling(c.joint, graph.edges[c.parent, c.child]) for c in connections]
    stated = {name: nodes[name].get("module") for name in names}
    order = given.get("order")
    return Definition(
        own_name,
        instance("the base of the graph", given.get("base", FloatingBase()), Base, "a Base such as FloatingBase()"),
        vector3("gravity", given.get("gravity", GRAVITY)),
        {name: links[name] for name in names},
        connections,
        tuple(coupling for coupling in couplings if coupling is not None),
        _modules(stated, {c.child for c in connections if not c.joint.stages}),
        None if order is None else _names("the order of the graph", order),
        given.get("audit"),
    )


def _check_type(graph: Any) -> None:
    import networkx as nx

    wrong = ""
    if not isinstance(graph, nx.Graph):
        wrong = f"got {shown(graph)}"
    elif not graph.is_directed():
        wrong = f"got an undirected {type(graph).__name__}, in which no link is the parent of another"
    elif graph.is_multigraph():
        wrong = f"got a {type(graph).__name__}, whose nodes may have several edges between them; robots are trees"
    if wrong:
        raise ArgumentError(f"graph must be a networkx.DiGraph with edges from parent to child, {wrong}")


def _check_known(what: str, attributes: Mapping[Any, Any], known: Iterable[str]) -> None:
    for name in attributes:
        if name not in known:
            close = get_close_matches(str(name), list(known), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the attributes are {', '.join(known)}; remove it"
            raise DefinitionError(f"{what} has an unknown attribute {name!r}; {hint}")


def _link(name: Any, nodes: Mapping[Any, Mapping[str, Any]]) -> Link:
    """Return the link of a node, or raise ArgumentError or DefinitionError."""
    if not isinstance(name, str):
        raise ArgumentError(f"the nodes of the graph must be names of links, got {shown(name)}")
    attributes = nodes[name]
    _check_known(f"node {name!r}", attributes, _OF_NODE)
    if "link" not in attributes:
        close = get_close_matches(name, [str(node) for node, own in nodes.items() if "link" in own], n=1)
        hint = f"; did you mean {close[0]!r}?" if close and not attributes else ""
        raise DefinitionError(
            f"node {name!r} lacks the attribute 'link': add_node({name!r}, link=legged.Link({name!r}, ...)){hint}"
        )
    link = instance(f"the attribute 'link' of node {name!r}", attributes["link"], Link, "a legged.Link")
    if link.name != name:
        raise DefinitionError(f"node {name!r} has a link named {link.name!r}; give both the same name")
    return _copy(f"link {name!r}", link)


def _connection(parent: str, child: str, attributes: Mapping[str, Any]) -> Connection:
    """Return the joint of an edge with its place, or raise ArgumentError or DefinitionError."""
    edge = f"the edge from {parent!r} to {child!r}"
    _check_known(edge, attributes, _OF_EDGE)
    joint, name = attributes.get("definition", attributes.get("joint")), attributes.get("joint")
    if joint is None:
        raise DefinitionError(
            f"{edge} lacks the attribute 'joint': add_edge({parent!r}, {child!r}, joint=legged.Revolute(...))"
        )
    joint = instance(f"the joint of {edge}", joint, Joint, "a legged.Joint such as legged.Revolute('knee', 'y')")
    if name is not None and name is not joint and name != joint.name:
        raise DefinitionError(f"{edge} has the joint {shown(name)}, and the definition of joint {joint.name!r}")
    if attributes.get("kind", joint.kind) != joint.kind:
        raise DefinitionError(f"{edge} has the kind {attributes['kind']!r}, but its joint is {joint.kind!r}")
    what = f"joint {joint.name!r}"
    start = placement(what, attributes.get("at", ORIGIN), attributes.get("rotation"))
    return _copy(what, Connection(joint, parent, child, start))


def _copy(what: str, part: T) -> T:
    """Return an independent copy, which also gives equal robots equal keys in the cache of graphs."""
    try:
        return deepcopy(part)
    except TypeError:
        raise DefinitionError(
            f"{what} cannot be copied, since it holds traced numbers or other objects; build the robot from plain "
            f"numbers, and vary them with `robot.with_parameters`"
        ) from None


def _coupling(joint: Joint, attributes: Mapping[str, Any]) -> Coupling | None:
    """Return the coupling of a joint to another; None for a joint that follows no other."""
    if not any(name in attributes for name in _OF_COUPLING):
        return None
    what = f"joint {joint.name!r}"
    if "master" not in attributes:
        raise DefinitionError(f"{what} has a ratio or an offset, but lacks the 'master' that it follows")
    ratio, offset = attributes.get("ratio", 1.0), attributes.get("offset", 0.0)
    master = text(f"the master of {what}", attributes["master"])
    return Coupling(joint.name, master, number(f"the ratio of {what}", ratio), number(f"the offset of {what}", offset))


def outward(names: Sequence[str], joints: Sequence[tuple[str, str, str]]) -> tuple[str, list[int]]:
    """Return (the root of a tree of links, the numbers of all joints, parent before child, of one link in their order).

    Args:
        names: The links. joints: Name, parent and child of each joint.

    Raises:
        DefinitionError: The joints form no tree of all links.
    """
    above: dict[str, int] = {}
    below: dict[str, list[int]] = {name: [] for name in names}
    for k, (joint, parent, child) in enumerate(joints):
        if child in above:
            refuse_two_parents(child, joints[above[child]][0], joint)
        above[child] = k
        below[parent].append(k)
    parents = {child: joints[k][1] for child, k in above.items()}
    roots = [name for name in names if name not in above]
    if not roots:
        words = _cycle(names, parents)
        raise DefinitionError(f"the joints form a cycle of {words}: no link is the base, remove a joint")
    if len(roots) > 1:
        raise DefinitionError(
            f"link {roots[1]!r} is a second root: no joint connects it to the base {roots[0]!r}; add a joint"
        )
    ordered: list[int] = []
    reached = [roots[0]]
    for name in reached:
        ordered += below[name]
        reached += [joints[k][2] for k in below[name]]
    if len(reached) < len(names):
        cycle = _cycle([name for name in names if name not in set(reached)], parents)
        raise DefinitionError(f"the joints form a cycle of {cycle}, apart from the base {roots[0]!r}; remove one")
    return roots[0], ordered


def _cycle(names: Sequence[str], parents: Mapping[str, str]) -> str:
    """Return the links of a cycle in words, for links that all have a parent among them."""
    path = [names[0]]
    while (parent := parents[path[-1]]) not in path:
        path.append(parent)
    return ", ".join(sorted(path[path.index(parent) :]))


def _modules(stated: Mapping[str, Any], fixed: set[str]) -> list[list[str]] | None:
    """Return the partition that the nodes state, the links of each module parent before child; None without one.

    Args:
        stated: Link -> number of its module, or None; parent before child. fixed: Links on fixed joints.
    """
    numbers = {name: whole(f"the module of link {name!r}", n, 0) for name, n in stated.items() if n is not None}
    if not numbers:
        return None
    for name in stated:
        if name not in numbers and name not in fixed:
            raise ModuleError(
                f"link {name!r} has no number of a module, {next(iter(numbers))!r} has one: give each link an "
                f"attribute 'module', or none for the longest serial runs (networkx.remove_node_attributes(graph, "
                f"'module'))"
            )
    root = next(iter(stated))
    if numbers[root] != 0:
        raise ModuleError(f"the base {root!r} is in module {numbers[root]}; module 0 is the base alone")
    missing = set(range(max(numbers.values()))) - set(numbers.values())
    if missing:
        raise ModuleError(f"module {min(missing)} has no links; the numbers of modules are 0, 1, 2 without gaps")
    modules: list[list[str]] = [[] for _ in range(max(numbers.values()) + 1)]
    for name, n in numbers.items():
        modules[n].append(name)
    return modules


def _names(what: str, value: Any) -> list[str]:
    return [text(f"an entry of {what}", name) for name in instance(what, value, (list, tuple), "a list of names")]


def check_names(what: str, names: Sequence[str]) -> None:
    """Raise DefinitionError if two names are equal, or if a name has characters that robot files cannot contain.

    Args:
        what: What the names belong to, such as "link". names: The names.
    """
    seen: set[str] = set()
    for name in names:
        if _NOT_IN_XML.search(name):
            words = "has control characters or lone surrogates, which robot files cannot contain; choose another name"
            raise DefinitionError(f"the name {shown(name)} of a {what} {words}")
        if name in seen:
            raise DefinitionError(f"two {what}s are named {name!r}; names must differ (a limb's prefix helps)")
        seen.add(name)


def refuse_two_parents(child: str, first: str, second: str) -> NoReturn:
    """Raise DefinitionError for a link that is the child of two joints."""
    raise DefinitionError(
        f"link {child!r} is the child of two joints, {first!r} and {second!r}: that closes a cycle; robots are trees, "
        f"so remove one"
    )
