"""Kinematic modules: the default partition, and checks of a given one."""

import networkx as nx
import numpy as np
import pytest

import legged
import robots
from legged import Fixed, Limb, Link, Revolute, RobotBuilder
from legged.errors import ModuleError, UnknownNameError

BODY = legged.box_inertia(1.0, (0.1, 0.2, 0.3), (0.05, 0.0, -0.1))
SEEDS = range(40)


def forked():
    """A trunk, an arm a-b that branches into c-d and e, and a tail f with a fixed tip g."""
    builder = RobotBuilder("forked", Link("trunk", BODY))
    for name, parent in zip("abcdef", ("trunk", "a", "b", "c", "b", "trunk"), strict=True):
        builder.add(Revolute(f"to_{name}", "y"), Link(name, BODY), to=parent, at=(0, 0, -0.3))
    return builder.add(Fixed("to_g"), Link("g", BODY), to="f")


def test_modules_are_the_longest_serial_runs_that_branch_at_their_ends():
    robot = forked().build()
    assert [list(module.links) for module in robot.modules] == [["trunk"], ["a", "b"], ["c", "d"], ["e"], ["f", "g"]]
    assert [module.parent for module in robot.modules] == [-1, 0, 1, 1, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_default_modules_satisfy_the_papers_rules(seed):
    robot = legged.random_tree(seed)
    base, *others = robot.modules
    assert base.index == 0
    assert base.bodies == (0,)
    seen = list(base.bodies)
    for module in others:
        assert module.parent < module.index
        assert robot.bodies[module.bodies[0]].parent == robot.modules[module.parent].bodies[-1]
        for before, body in zip(module.bodies, module.bodies[1:], strict=False):
            assert robot.bodies[body].parent == before
        if module.parent > 0:  # a chain ends only at a branch
            assert len(robot.children[robot.modules[module.parent].bodies[-1]]) > 1
        seen += module.bodies
    assert seen == list(range(len(robot.bodies)))
    assert [name for module in robot.modules for name in module.links] == [link.name for link in robot.links]


@pytest.mark.parametrize("seed", SEEDS)
def test_joints_follow_modules_and_fill_q_and_v(seed):
    robot = legged.random_tree(seed)
    at_q, at_v = robot.base.nq, robot.base.nv
    for joint in robot.joints:
        assert (joint.q.start, joint.v.start) == (at_q, at_v)
        assert (joint.q.stop - at_q, joint.v.stop - at_v) == (joint.nq, joint.nv)
        at_q, at_v = joint.q.stop, joint.v.stop
    assert (at_q, at_v) == (robot.nq, robot.nv)
    assert [*np.concatenate([module.v for module in robot.modules])] == [*range(robot.nv)]
    for link in robot.links:
        assert robot.link(link.name) is link
        assert robot.links[link.index] is link


@pytest.mark.parametrize("seed", SEEDS)
def test_graph_contains_every_link_and_joint_as_defined(seed):
    robot = legged.random_tree(seed)
    assert nx.is_arborescence(robot.graph)
    assert list(robot.graph.nodes) == [link.name for link in robot.links]
    moving = {joint.name: joint for joint in robot.joints}
    for parent, child, edge in robot.graph.edges(data=True):
        assert edge["at"].shape == (3,)
        assert edge["rotation"].shape == (3, 3)
        if edge["kind"] == "fixed":
            assert edge["joint"] not in moving
            assert robot.link(child).body == robot.link(parent).body
        else:
            joint = moving.pop(edge["joint"])
            assert joint.child == child
            assert joint.definition is edge["definition"]
            assert joint.kind == edge["kind"]
    assert not moving


def test_alike_legs_are_recognized_as_modules_of_one_kind():
    assert robots.spatial_quadruped().alike_modules == ((1, 2, 3, 4),)
    assert robots.hexapod().alike_modules == ((1, 2, 3, 4, 5, 6),)
    robot = forked().build()
    assert robot.alike_modules == ((1, 2), (3, 4))


def test_a_leg_is_defined_once_and_attached_many_times():
    leg = Limb().add(Revolute("hip", "y"), Link("thigh", BODY, {"foot": (0, 0, -0.3)}))
    builder = RobotBuilder("dog", Link("trunk", BODY))
    for prefix, x in (("fore_", 0.3), ("hind_", -0.3)):
        builder.attach(leg, to="trunk", at=(x, 0, 0), prefix=prefix)
    robot = builder.build()
    assert [joint.name for joint in robot.joints] == ["fore_hip", "hind_hip"]
    assert [contact.name for contact in robot.contacts] == ["fore_foot", "hind_foot"]
    feet = legged.point_positions(robot, robot.neutral(), [(c.link, c.position) for c in robot.contacts])
    assert feet == pytest.approx(np.array([[0.3, 0, -0.3], [-0.3, 0, -0.3]]), abs=1e-15)


def test_a_finer_partition_may_be_given():
    robot = forked().build([["trunk"], ["a"], ["b"], ["c", "d"], ["e"], ["f", "g"]])
    assert [list(module.links) for module in robot.modules][1:3] == [["a"], ["b"]]


def test_the_base_may_be_left_out_of_a_given_partition_and_fixed_links_too():
    robot = forked().build([["a", "b"], ["f"], ["e"], ["c", "d"]])
    assert [list(module.links) for module in robot.modules] == [["trunk"], ["a", "b"], ["f", "g"], ["e"], ["c", "d"]]
    assert [joint.child for joint in robot.joints] == ["a", "b", "f", "e", "c", "d"]


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ([["trunk", "a", "b"], ["c", "d"], ["e"], ["f"]], "the first module is the base alone, ['trunk']"),
        (
            [["a", "b"], ["c", "e"], ["d"], ["f"]],
            "module 2 is not serial: 'e' follows 'c' in it, but its parent is 'b'",
        ),
        ([["b", "a"], ["c", "d"], ["e"], ["f"]], "module 1 is not serial"),
        ([["a", "b", "c", "d"], ["e"], ["f"]], "module 2 emerges from 'b', the middle of module 1"),
        (
            [["c", "d"], ["a", "b"], ["e"], ["f"]],
            "the parent of module 1 is module 2: a child must have a higher number",
        ),
        ([["a", "b"], ["c", "d"], ["f"]], "no module contains link 'e'; every link belongs to one"),
        ([["a", "b"], ["c", "d"], ["d"], ["e"], ["f"]], "link 'd' is in module 2 and in module 3; it must be in one"),
        ([["a", "b"], [], ["c", "d"], ["e"], ["f"]], "module 2 is empty"),
        ([["a", "b", "g"], ["c", "d"], ["e"], ["f"]], "link 'g' is fixed to 'f' and moves with it"),
        ([["a", "b"], ["c", "d"], ["e"], ["f"], ["g"]], "link 'g' is fixed to 'f' and moves with it"),
    ],
)
def test_an_invalid_partition_raises_an_error_with_the_violated_rule(modules, words):
    with pytest.raises(ModuleError) as caught:
        forked().build(modules)
    assert words in str(caught.value)


def test_an_unknown_link_in_a_partition_raises_an_error():
    with pytest.raises(UnknownNameError, match="there is no link named 'aa'; did you mean 'a'"):
        forked().build([["aa", "b"], ["c", "d"], ["e"], ["f"]])
