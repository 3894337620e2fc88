"""Graphs of links and joints: round trips change nothing, partitions obey the paper's rules, errors have names."""

from dataclasses import fields as fields_of
from importlib.metadata import PackageNotFoundError, files
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from oracles import mjcf_models, urdf_texts
from oracles.cases import case_of
from oracles.contents import data_key

import legged
import robots
from legged import Fixed, Link, Prismatic, Revolute, Robot, RobotBuilder, Universal
from legged.errors import ArgumentError, DefinitionError, LeggedError, ModuleError, UnknownNameError
from legged.robot.construction.random_tree import ALL_JOINTS

BODY = legged.box_inertia(1.0, (0.1, 0.2, 0.3), (0.05, 0.0, -0.1))
SEEDS = [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 200))]
FILES = ("g1_29dof_rev_1_0.urdf", "go2.urdf", "talos_full_v2.urdf", "solo12.urdf", "centauro.urdf")


def parts_of(robot):
    """Return everything that a robot holds, by content; a group's members are not part of its tree."""
    return data_key([getattr(robot, field.name) for field in fields_of(Robot) if field.name != "audit"])


def assert_unchanged(robot):
    """Check that the graph of a robot gives the robot, the same dynamics bit for bit, and the graph again."""
    graph = robot.graph
    again = Robot.from_graph(graph)
    assert parts_of(again) == parts_of(robot) is not None
    assert again.audit is robot.audit
    assert graphs_are_equal(again.graph, graph)
    case = case_of(robot, 0)
    forces = (legged.inverse_dynamics(r, case.q, case.v, case.vdot) for r in (robot, again))
    assert np.array_equal(*forces)
    assert np.array_equal(*(legged.inertia_matrix(r, case.q) for r in (robot, again)))
    modules = legged.partition(graph)
    assert data_key(list(modules)) == data_key(list(robot.modules)) is not None


def graphs_are_equal(one, other):
    """Return whether nodes and edges have the same order and the same attributes, by content."""
    contents = [[g.graph | {"audit": None}, [*g.nodes.items()], [*g.edges.items()]] for g in (one, other)]
    return data_key(contents[0]) == data_key(contents[1]) is not None


@pytest.mark.parametrize("name", robots.__all__)
def test_round_trips_of_ready_made_robots_change_nothing(name):
    made = getattr(robots, name)(*([8] if name in ("chain", "star", "tree") else []))
    robot = made if isinstance(made, Robot) else made.robot
    assert_unchanged(robot)
    if isinstance(
        made, legged.loops.ClosedRobot
    ):  # a robot with closed loops: its tree makes a round trip, the loops refer to names of links
        loops = legged.loops.ClosedRobot(Robot.from_graph(robot.graph), made.loops, made.rows)
        case = case_of(robot, 1)
        vdot = (legged.loops.forward_dynamics(r, case.q, case.v, case.tau) for r in (made, loops))
        assert np.array_equal(*vdot)


@pytest.mark.parametrize("seed", SEEDS)
def test_round_trips_of_random_trees_change_nothing(seed):
    options = {"physics": True, "coupled": seed % 3 > 0, "shuffled": bool(seed % 2), "gravity": (0.1, 0.2, -1.0 - seed)}
    robot = legged.random_tree(seed, joints=ALL_JOINTS, branching=(None, 0.0, 1.0)[seed % 3], **options)
    assert_unchanged(robot)


def strange_robot():
    """Return a robot with what random trees lack: shapes, materials, soles, impossible inertias, modules by hand."""
    shapes = [legged.Box((0.1, 0.2, 0.3), (0.0, 0.0, 0.1), legged.rpy(0.1, 0.2, 0.3)), legged.Sphere(0.2)]
    impossible = legged.Inertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.3), checked=False)
    limits = legged.JointPhysics(lower=[-1.0, -np.inf], upper=[np.inf, 1.0], effort=[3.0, np.inf], speed=2.0)
    ball = legged.Sphere(0.03, (0, 0, -0.4))
    limb = legged.Limb().add(Universal("hip", "x", [0.0, 0.6, 0.8], physics=limits), Link("thigh"))
    limb.add(Revolute("knee", "y"), Link("shank", BODY, {"ball": ball}), at=(0, 0, -0.3), rotation=legged.rpy(1, 2, 3))
    limb.add(Fixed("ankle"), Link("foot", BODY, {"heel": (-0.1, 0, 0), "toe": (0.1, 0, 0)}), at=(0, 0, -0.4))
    builder = RobotBuilder("odd", Link("trunk", impossible, {}, shapes), base=legged.EulerBase("zxy"))
    builder.attach(limb, to="trunk", at=(0.1, 0, 0), rotation=legged.rpy(0.3, 0.2, 0.1), prefix="a_")
    builder.attach(limb, to="trunk", at=(-0.1, 0, 0), rotation=legged.rpy(0.1, 0.2, 0.3), prefix="b_")
    builder.couple("a_knee", "b_knee", -0.5, 0.1)
    return builder.build([["b_thigh"], ["a_thigh", "a_shank"], ["b_shank"]], ["b_knee", "a_hip", "b_hip"])


def test_round_trips_keep_modules_and_order_given_by_hand():
    robot = strange_robot()
    assert_unchanged(robot)
    numbers = robot.graph.nodes(data="module")
    assert [numbers[name] for name in ("trunk", "b_thigh", "a_thigh", "a_foot", "b_foot")] == [0, 1, 2, 2, 3]
    assert robot.graph.graph["order"] == ["b_knee", "a_hip", "b_hip"]
    assert_unchanged(legged.combine({"left": robots.spatial_quadruped(), "right": robots.humanoid()}))


@pytest.mark.parametrize("text", [urdf_texts.BIPED, urdf_texts.GRIPPER, *map(urdf_texts.random_urdf, range(5))])
@pytest.mark.parametrize("fuse", [False, True])
def test_round_trips_of_robots_from_urdf_change_nothing(tmp_path, text, fuse):
    path = tmp_path / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    assert_unchanged(legged.load(path, fuse=fuse, order="file"))


@pytest.mark.parametrize("name", [*mjcf_models.MODELS, "coupled"])
def test_round_trips_of_robots_from_mjcf_change_nothing(tmp_path, name):
    pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(mjcf_models.MODELS.get(name, mjcf_models.COUPLED), encoding="utf-8")
    assert_unchanged(legged.load(path))


@pytest.mark.parametrize("name", FILES)
def test_round_trips_of_known_robots_change_nothing(name):
    try:
        entries = files("example-robot-data") or ()
    except PackageNotFoundError:
        pytest.skip("needs example-robot-data")
    path = next((entry.locate() for entry in entries if entry.name == name), None)
    if path is None:
        pytest.skip(f"example-robot-data has no {name}")
    assert_unchanged(legged.load(str(path), repair="weld"))


@pytest.mark.parametrize("seed", SEEDS)
def test_partitions_of_random_graphs_obey_the_rules_and_are_the_coarsest(seed):
    """Section 2: M_0 is the base; serial runs; each from its parent's last link; children have higher numbers."""
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    names = [f"link {i}" for i in rng.permutation(int(rng.integers(1, 40)))]  # nodes in an order that means nothing
    graph.add_nodes_from((name, {"link": Link(name, BODY)}) for name in sorted(names))
    for i, name in enumerate(names[1:], start=1):
        parent = names[int(rng.integers(i)) if rng.uniform() < 0.4 else i - 1]
        joint = [Revolute(name, "y"), Universal(name), Fixed(name), Prismatic(name)][int(rng.integers(4))]
        graph.add_edge(parent, name, joint=joint)
    modules = legged.partition(graph)
    parent_of = {child: parent for parent, child in graph.edges}
    is_fixed = {child: isinstance(joint, Fixed) for _, child, joint in graph.edges(data="joint")}
    rigid = nx.DiGraph((a, b) for a, b in graph.edges if is_fixed[b])
    rigid.add_nodes_from(graph)
    head_of = {name: next(n for n in group if not is_fixed.get(n)) for group in
               nx.weakly_connected_components(rigid) for name in group}  # fmt: skip
    assert sorted(name for module in modules for name in module.links) == sorted(names)
    assert head_of[modules[0].links[0]] == names[0]
    assert {head_of[name] for name in modules[0].links} == {names[0]}
    assert [module.index for module in modules] == [*range(len(modules))]
    branches = {head: {c for c, p in parent_of.items() if head_of[p] == head and not is_fixed[c]} for head in names}
    for module in modules[1:]:
        heads = list(dict.fromkeys(head_of[name] for name in module.links))
        last = [head_of[name] for name in modules[module.parent].links][-1]
        assert head_of[parent_of[heads[0]]] == last
        assert module.parent < module.index
        assert all(head_of[parent_of[b]] == a for a, b in pairwise(heads))
        assert module.parent == 0 or len(branches[last]) > 1  # the parent's run could not be longer


def forked():
    """Return the graph of a trunk, an arm a-b that branches into c-d and e, and a tail f with a fixed tip g."""
    graph = nx.DiGraph(name="forked")
    graph.add_nodes_from((name, {"link": Link(name, BODY)}) for name in ("g", "trunk", *"abcdef"))
    for name, parent in zip("abcdef", ("trunk", "a", "b", "c", "b", "trunk"), strict=True):
        graph.add_edge(parent, name, joint=Revolute(f"to_{name}", "y"), at=(0, 0, -0.3))
    graph.add_edge("f", "g", joint=Fixed("to_g"))
    return graph


def numbered(**modules):
    """Return the forked graph with numbers of modules: name of a link -> number, omitted for None."""
    graph = forked()
    numbers = {"trunk": 0, "a": 1, "b": 1, "c": 2, "d": 2, "e": 3, "f": 4, "g": 4} | modules
    nx.set_node_attributes(graph, {k: n for k, n in numbers.items() if n is not None}, "module")
    return graph


def test_a_graph_and_a_builder_give_the_same_robot():
    builder = RobotBuilder("forked", Link("trunk", BODY))
    for name, parent in zip("abcdef", ("trunk", "a", "b", "c", "b", "trunk"), strict=True):
        builder.add(Revolute(f"to_{name}", "y"), Link(name, BODY), to=parent, at=(0, 0, -0.3))
    built = builder.add(Fixed("to_g"), Link("g", BODY), to="f").build()
    assert parts_of(Robot.from_graph(forked())) == parts_of(built)
    assert [module.links for module in built.modules] == [("trunk",), ("a", "b"), ("c", "d"), ("e",), ("f", "g")]


def test_defaults_of_a_graph_are_those_of_a_builder():
    graph = nx.DiGraph()
    graph.add_node("ball", link=Link("ball", BODY))
    robot = Robot.from_graph(graph)
    assert (robot.name, robot.base.kind, robot.gravity.tolist()) == ("robot", "floating", [0.0, 0.0, -9.81])


def test_joints_of_a_graph_may_follow_others():
    graph = forked()
    graph.edges["a", "b"].update(master="to_f", ratio=-2.0, offset=0.3)
    robot = Robot.from_graph(graph)
    (follower,) = robot.followers
    assert (follower.name, follower.master, follower.ratio, follower.offset) == ("to_b", "to_f", -2.0, 0.3)
    assert {name: edge["master"] for *_, edge in robot.graph.edges(data=True) if "master" in edge
            for name in [edge["joint"]]} == {"to_b": "to_f"}  # fmt: skip


def test_modules_may_be_given_by_numbers_of_nodes():
    graph = numbered(b=2, c=4, d=5, e=3, f=1, g=None)
    nx.set_node_attributes(graph, {"a": 1, "f": 6}, "module")
    actual = [(m.links, m.parent) for m in Robot.from_graph(graph).modules]
    wanted = [(("trunk",), -1), (("a",), 0), (("b",), 1), (("e",), 2), (("c",), 2), (("d",), 4), (("f", "g"), 0)]
    assert actual == wanted
    assert [(m.links, m.parent) for m in legged.partition(graph)] == wanted


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ({"a": 0}, "the first module is the base alone, ['trunk'], got ['trunk', 'a']"),
        ({"e": 2, "f": 3, "g": 3}, "module 2 is not serial: 'e' follows 'c' in it, but its parent is 'b'"),
        ({"c": 1, "d": 1, "e": 2, "f": 3, "g": 3}, "module 2 emerges from 'b', the middle of module 1"),
        ({"a": 2, "b": 2, "c": 1, "d": 1}, "the parent of module 1 is module 2: a child must have a higher number"),
        ({"f": 6, "g": 6}, "module 4 has no links; the numbers of modules are 0, 1, 2 without gaps"),
        ({"f": None, "g": None}, "link 'f' has no number of a module, 'trunk' has one"),
        ({"g": 3}, "link 'g' is fixed to 'f' and moves with it: put it in the same module"),
        ({"trunk": 1}, "the base 'trunk' is in module 1; module 0 is the base alone"),
    ],
)
def test_a_partition_by_numbers_that_violates_a_rule_raises_an_error_with_the_rule(modules, words):
    for use in (Robot.from_graph, legged.partition):
        with pytest.raises(ModuleError) as caught:
            use(numbered(**modules))
        assert words in str(caught.value)


def changed(change):
    """Return the forked graph after a change."""
    graph = forked()
    result = change(graph)
    return result if isinstance(result, nx.Graph) else graph


def adds(node, **attributes):
    return lambda graph: graph.add_node(node, **attributes)


def joins(parent, child, **attributes):
    return lambda graph: graph.add_edge(parent, child, **attributes)


def sets(**attributes):
    return lambda graph: graph.graph.update(attributes)


HINGE = Revolute("hinge", "y")
MALFORMED = {
    "an undirected graph": (lambda g: g.to_undirected(), ArgumentError, "got an undirected Graph"),
    "a multigraph": (nx.MultiDiGraph, ArgumentError, "got a MultiDiGraph, whose nodes may have several edges"),
    "an empty graph": (lambda g: nx.DiGraph(), DefinitionError, "the graph has no links: add the base"),
    "a number as a node": (adds(3, link=Link("3", BODY)), ArgumentError, "must be names of links, got 3"),
    "no link": (adds("h"), DefinitionError, "node 'h' lacks the attribute 'link': add_node('h', link=legged.Link('h'"),
    "a name misspelled": (joins("trunkk", "a", joint=HINGE), DefinitionError, "did you mean 'trunk'"),
    "no Link": (adds("h", link="h"), ArgumentError, "'link' of node 'h' must be a legged.Link, got 'h'"),
    "another name": (adds("h", link=Link("i")), DefinitionError, "node 'h' has a link named 'i'"),
    "an unknown attribute of a node": (adds("a", modul=1), DefinitionError, "did you mean 'module'"),
    "a module that is no number": (adds("a", module="M1"), ArgumentError, "the module of link 'a' must be a whole"),
    "a negative module": (adds("a", module=-1), ArgumentError, "the module of link 'a'"),
    "no joint": (lambda g: g.edges["a", "b"].clear(), DefinitionError, "from 'a' to 'b' lacks the attribute 'joint'"),
    "no Joint": (joins("a", "b", joint="knee"), ArgumentError, "the edge from 'a' to 'b' must be a legged.Joint"),
    "a class of joints": (joins("a", "b", joint=Revolute), ArgumentError, "got the class Revolute itself"),
    "an unknown attribute of an edge": (joins("a", "b", weight=1.0), DefinitionError, "unknown attribute 'weight'"),
    "a wrong place": (joins("a", "b", at=(0, 0)), DefinitionError, "the position of joint 'to_b' must be three"),
    "a place that is not finite": (joins("a", "b", at=(0, 0, np.nan)), DefinitionError, "'to_b' must be finite"),
    "no rotation": (joins("a", "b", rotation=2 * np.eye(3)), DefinitionError, "of joint 'to_b' is not a rotation"),
    "text for a rotation": (joins("a", "b", rotation="x"), LeggedError, "rotation of joint 'to_b'"),
    "another name of the joint": (
        joins("a", "b", joint="x", definition=HINGE), DefinitionError, "the definition of joint 'hinge'"
    ),
    "another kind": (joins("a", "b", kind="prismatic"), DefinitionError, "the kind 'prismatic', but its joint is"),
    "a ratio alone": (joins("a", "b", ratio=2.0), DefinitionError, "joint 'to_b' has a ratio or an offset, but lacks"),
    "a ratio that is no number": (joins("a", "b", master="to_f", ratio="2"), ArgumentError, "ratio of joint 'to_b'"),
    "a ratio of zero": (joins("a", "b", master="to_f", ratio=0.0), DefinitionError, "a ratio of zero"),
    "an unknown master": (joins("a", "b", master="to_z"), UnknownNameError, "there is no joint named 'to_z'"),
    "itself as master": (joins("a", "b", master="to_b"), DefinitionError, "are coupled in a cycle"),
    "two joints of one name": (
        joins("a", "b", joint=Revolute("to_a", "y")), DefinitionError, "two joints are named 'to_a'"
    ),
    "two contacts of one name": (
        lambda g: [g.add_node(n, link=Link(n, BODY, {"foot": (0, 0, 0)})) for n in "ab"],
        DefinitionError,
        "two contact points are named 'foot'",
    ),
    "two parents": (joins("trunk", "b", joint=HINGE), DefinitionError, "'b' is the child of two joints, 'hinge' and"),
    "a cycle of all": (joins("d", "trunk", joint=HINGE), DefinitionError, "form a cycle of a, b, c, d, trunk"),
    "a link as its own parent": (joins("trunk", "trunk", joint=HINGE), DefinitionError, "form a cycle of trunk"),
    "two roots": (adds("h", link=Link("h", BODY)), DefinitionError, "no joint connects it to the base"),
    "no path": (
        lambda g: [g.remove_edge("trunk", "a"), g.add_edge("d", "a", joint=HINGE)],
        DefinitionError,
        "form a cycle of a, b, c, d, apart from the base 'trunk'",
    ),
    "no Base": (sets(base="floating"), ArgumentError, "the base of the graph must be a Base"),
    "wrong gravity": (sets(gravity=9.81), LeggedError, "gravity must be three numbers"),
    "a name that is no text": (sets(name=3), ArgumentError, "the name of the graph must be a text"),
    "an unknown attribute": (sets(gravitiy=(0, 0, 0)), DefinitionError, "did you mean 'gravity'"),
    "text for an order": (sets(order="to_a"), ArgumentError, "the order of the graph must be a list of names"),
    "an order that lacks joints": (sets(order=["to_a"]), DefinitionError, "order must name every joint that moves"),
    "no graph": (lambda g: nx.Graph(), ArgumentError, "got an undirected Graph"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_graphs_raise_errors_by_name(case):
    change, error, words = MALFORMED[case]
    for use in (Robot.from_graph, legged.partition):
        with pytest.raises(error) as caught:
            use(changed(change))
        assert words in str(caught.value)


@pytest.mark.parametrize("value", [None, 3, "graph", {}, [("a", "b")], RobotBuilder("r", Link("a", BODY))])
def test_other_objects_are_no_graphs(value):
    for use in (Robot.from_graph, legged.partition):
        with pytest.raises(ArgumentError, match=r"graph must be a networkx.DiGraph with edges from parent to child"):
            use(value)


def test_robots_and_graphs_are_independent_of_each_other():
    graph = forked()
    at = graph.edges["a", "b"]["at"] = np.array([0.0, 0.0, -0.3])
    robot = Robot.from_graph(graph)
    key = parts_of(robot)
    at += 1.0
    graph.remove_node("f")
    own = robot.graph.copy()
    own.edges["a", "b"]["at"] = np.full(3, 7.0)
    own.remove_node("trunk")
    assert parts_of(Robot.from_graph(robot.graph)) == parts_of(robot) == key
    robot.graph.edges["a", "b"]["at"][:] = 7.0
    assert parts_of(robot) == key


def test_traced_numbers_are_refused():
    """A robot whose numbers are inputs of a traced function has a graph, from which no robot can be built."""

    def built(robot, q, v, vdot, mass):
        loaded = robot.with_parameters({"trunk.mass": mass})
        with pytest.raises(DefinitionError, match="link 'trunk' cannot be copied, since it holds traced numbers"):
            Robot.from_graph(loaded.graph)
        return legged.inverse_dynamics(loaded, q, v, vdot)

    robot = robots.planar_biped()
    states = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv)
    assert legged.jacobian(built, "mass")(robot, *states, 3.0).shape == (robot.nv,)


def test_an_edited_graph_gives_the_edited_robot():
    """Removing a limb from the graph, without the numbers of modules, equals `Robot.without`."""
    robot = robots.humanoid()
    graph = robot.graph.copy()
    limb = robot.modules[2].links[0]
    for name in (*nx.descendants(graph, limb), limb):
        graph.remove_node(name)
    with pytest.raises(ModuleError, match="module 2 has no links"):
        Robot.from_graph(graph)
    nx.remove_node_attributes(graph, "module")
    assert parts_of(Robot.from_graph(graph)) == parts_of(robot.without(limb))
