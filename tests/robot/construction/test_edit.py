"""Edited robots equal the robot built from scratch with the changed parts; wrong edits raise errors by name."""

import json
from dataclasses import replace

import numpy as np
import pytest
from oracles.cases import case_of
from oracles.contents import data_key

import legged
import robots
from legged.errors import ArgumentError, DefinitionError, InertiaError, LeggedError, ShapeError, UnknownNameError
from legged.robot.construction.graph import links_of
from legged.robot.construction.random_tree import ALL_JOINTS

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 20))]
EQUAL = 1e-11  # rounding relative to the size of the terms, for up to twenty links


def random_robot(seed):
    rng = np.random.default_rng(seed)
    return rng, legged.random_tree(seed, links=int(rng.integers(3, 20)), physics=True, coupled=True, shuffled=True)


def built(robot, links=None, connections=None, gravity=None):
    """Return a robot of the given parts, by default those of another robot, built without the editor."""
    links, connections = links or links_of(robot), connections or robot.connections
    gravity = robot.gravity if gravity is None else gravity
    builder = legged.RobotBuilder(robot.name, links[0], base=robot.base, gravity=gravity)
    for link in links[1:]:
        builder.link(link)
    for c in connections:
        builder.joint(c.joint, parent=c.parent, child=c.child, at=c.start.position, rotation=c.start.rotation)
    for f in robot.followers:
        builder.couple(f.name, f.master, f.ratio, f.offset)
    names = [joint.name for joint in robot.joints]
    followers = {f.name for f in robot.followers}
    new = [c.joint.name for c in connections if c.joint.nv and c.joint.name not in followers.union(names)]
    return builder.build(order=names + new)


def test_infinite_limits_remove_the_limits_of_a_joint():
    physics = legged.JointPhysics(lower=-1.0, upper=2.0, effort=30.0, speed=8.0)
    joint = legged.Revolute("j", physics=physics)
    trunk, limb = (legged.Link(name, legged.sphere_inertia(1.0, 0.1)) for name in ("trunk", "limb"))
    robot = legged.RobotBuilder("r", trunk).add(joint, limb, to="trunk").build()
    editor = robot.edit().change_joint("j", lower=-np.inf, upper=np.inf, effort=np.inf, speed=np.inf)
    assert repr(editor.build().joint("j").definition.physics) == repr(legged.JointPhysics())
    with pytest.raises(LeggedError, match="lower"):
        robot.edit().change_joint("j", lower=np.nan)


def assert_equal_dynamics(one, other, seed):
    """Compare inverse and forward dynamics in random states, joints in the same order."""
    assert [joint.nv for joint in one.joints] == [joint.nv for joint in other.joints]
    case = case_of(one, seed)
    forces, torques = (legged.inverse_dynamics(r, case.q, case.v, case.vdot) for r in (one, other))
    np.testing.assert_allclose(torques, forces, atol=EQUAL * (1.0 + np.abs(forces).max(initial=0.0)))
    rates, torques = (legged.forward_dynamics(r, case.q, case.v, case.tau) for r in (one, other))
    # accelerations lose the condition number of the inertia matrix, up to 1e6
    np.testing.assert_allclose(torques, rates, atol=1e-7 * (1.0 + np.abs(rates).max(initial=0.0)))


@pytest.mark.parametrize("seed", SEEDS)
def test_changed_links_joints_and_gravity_equal_a_new_robot(seed):
    rng, robot = random_robot(seed)
    editor, links, connections = robot.edit(), links_of(robot), list(robot.connections)
    for i, link in enumerate(links):
        mass, center = rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3)
        tensor = mass / link.inertia.mass * np.asarray(link.inertia.tensor)
        editor.change_link(link.name, mass=mass, center=center)
        links[i] = replace(link, inertia=legged.Inertia(mass, center, tensor))
    for i, c in enumerate(connections):
        at = rng.uniform(-0.5, 0.5, 3)
        editor.change_joint(c.joint.name, at=at)
        connections[i] = replace(c, start=replace(c.start, position=at))
        if c.joint.nv:
            changes = {"damping": rng.uniform(0.0, 1.0, c.joint.nv), "armature": 0.1, "friction": 0.2}
            editor.change_joint(c.joint.name, **changes)
            physics = replace(c.joint.physics, **changes)
            connections[i] = replace(connections[i], joint=replace(c.joint, physics=physics))
    gravity = rng.normal(size=3)
    before = data_key(robot)
    edited = editor.change_robot(gravity=gravity).build()
    assert data_key(robot) == before
    new = built(robot, links, connections, gravity)
    assert_equal_dynamics(new, edited, seed)
    assert data_key(edited) == data_key(new)
    assert [module.links for module in edited.modules] == [module.links for module in robot.modules]


@pytest.mark.parametrize("seed", SEEDS)
def test_added_links_equal_a_new_robot(seed):
    rng, robot = random_robot(seed)
    names = [link.name for link in robot.links]
    payload = legged.Link("payload", legged.box_inertia(2.0, (0.1, 0.2, 0.3)), {"corner": (0.1, 0.1, 0.1)})
    arm = legged.Link("arm", legged.rod_inertia(0.5, (0, 0, 0), (0, 0, 0.4)))
    mount, shoulder = legged.Fixed("mount"), legged.Revolute("shoulder", "y", physics=legged.JointPhysics(0.1))
    on, at = str(rng.choice(names)), rng.uniform(-0.2, 0.2, 3)
    editor = robot.edit().add(mount, payload, to=on, at=at, rotation=legged.rpy(0.1, 0.2, 0.3))
    same_tree = editor.build()
    edited = editor.add(shoulder, arm, to="payload", at=(0.0, 0.0, 0.2)).build()
    connection = robot.connections[0]
    added = [
        replace(connection, joint=mount, parent=on, child="payload", start=place(at, legged.rpy(0.1, 0.2, 0.3))),
        replace(connection, joint=shoulder, parent="payload", child="arm", start=place((0.0, 0.0, 0.2), np.eye(3))),
    ]
    new = built(robot, [*links_of(robot), payload, arm], [*robot.connections, *added])
    assert_equal_dynamics(new, edited, seed)
    assert [joint.name for joint in edited.joints] == [*(joint.name for joint in robot.joints), "shoulder"]
    assert edited.contact("corner").name == "corner"
    assert [m.v.tolist() for m in same_tree.modules] == [m.v.tolist() for m in robot.modules]
    assert same_tree.mass == pytest.approx(robot.mass + 2.0)


def place(at, rotation):
    from legged.robot.placement import Placement

    return Placement(np.asarray(rotation, float), np.asarray(at, float))


@pytest.mark.parametrize("seed", SEEDS)
def test_renaming_changes_names_alone(seed):
    _, robot = random_robot(seed)
    names = [link.name for link in robot.links]
    there = dict(zip(names, [*names[1:], names[0]], strict=True))  # each link gets the name of the next
    joints = {c.joint.name: f"left {c.joint.name}" for c in robot.connections}
    points = {c.name: f"{c.name} 2" for c in robot.contacts}
    renamed = robot.edit().rename(links=there, joints=joints, contacts=points).build()
    assert [link.name for link in renamed.links] == [there[name] for name in names]
    assert [joint.name for joint in renamed.joints] == [joints[joint.name] for joint in robot.joints]
    assert [f.master for f in renamed.followers] == [joints[f.master] for f in robot.followers]
    assert [c.name for c in renamed.contacts] == [points[c.name] for c in robot.contacts]
    assert_equal_dynamics(robot, renamed, seed)
    back = ({new: old for old, new in words.items()} for words in (there, joints, points))
    again = renamed.edit().rename(**dict(zip(("links", "joints", "contacts"), back, strict=True))).build()
    assert data_key(again) == data_key(robot)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_description_gives_the_identical_robot(seed):
    robot = legged.random_tree(
        seed, physics=True, coupled=True, shuffled=bool(seed % 2), joints=ALL_JOINTS, gravity=(0.1, 0.2, -seed)
    )
    text = json.dumps(robot.describe(), allow_nan=False, sort_keys=True)
    again = legged.Robot.from_description(json.loads(text))
    assert data_key(again) == data_key(robot) is not None
    assert again.describe() == robot.describe()
    case = case_of(robot, seed)
    forces = (legged.inverse_dynamics(r, case.q, case.v, case.vdot) for r in (robot, again))
    assert np.array_equal(*forces)
    assert data_key(robot.edit().build()) == data_key(robot)


def strange_robot():
    """Return a robot with whatever the random trees lack: shapes, soles, impossible inertias, modules given by hand."""
    shapes = [legged.Box((0.1, 0.2, 0.3), (0.0, 0.0, 0.1), legged.rpy(0.1, 0.2, 0.3)), legged.Sphere(0.2)]
    impossible = legged.Inertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.3), checked=False)
    sole = {"heel": (-0.1, 0.0, 0.0), "toe": (0.1, 0.0, 0.0)}
    limits = legged.JointPhysics(lower=[-1.0, -np.inf], upper=[np.inf, 1.0], effort=[3.0, np.inf], speed=2.0)
    shank = legged.Link("shank", legged.point_mass(1.0, (0.0, 0.0, -0.2)), {"ball": legged.Sphere(0.03, (0, 0, -0.4))})
    limb = legged.Limb().add(legged.Universal("hip", "x", [0.0, 0.6, 0.8], physics=limits), legged.Link("thigh"))
    limb.add(legged.Revolute("knee", (0.0, 1.0, 0.0)), shank, at=(0, 0, -0.3), rotation=legged.rpy(1, 2, 3))
    builder = legged.RobotBuilder("odd", legged.Link("trunk", impossible, sole, shapes), base=legged.EulerBase("zxy"))
    builder.attach(limb, to="trunk", at=(0.1, 0, 0), rotation=legged.rpy(0.3, 0.2, 0.1), prefix="a_")
    builder.attach(limb, to="trunk", at=(-0.1, 0, 0), rotation=legged.rpy(0.1, 0.2, 0.3), prefix="b_")
    return builder.build(
        modules=[["b_thigh"], ["a_thigh", "a_shank"], ["b_shank"]], order=["a_knee", "b_hip", "a_hip", "b_knee"]
    )


@pytest.mark.parametrize("make", [strange_robot, robots.spatial_quadruped, robots.humanoid, robots.planar_biped])
def test_descriptions_contain_everything(make):
    robot = make()
    again = legged.Robot.from_description(json.loads(json.dumps(robot.describe(), allow_nan=False)))
    assert again.describe() == robot.describe()
    assert data_key(again) == data_key(robot) == data_key(robot.edit().build())
    graphs = (legged.compile(legged.forward_dynamics, r).graph.digest for r in (robot, again))
    assert len(set(graphs)) == 1
    for one, two in ((robot, again), (robot.edit().build(), robot)):
        assert [m.links for m in one.modules] == [m.links for m in two.modules]
        assert [j.name for j in one.joints] == [j.name for j in two.joints]
        assert [(c.name, c.radius) for c in one.contacts] == [(c.name, c.radius) for c in two.contacts]
        assert [len(link.shapes) for link in one.links] == [len(link.shapes) for link in two.links]


def test_mass_alone_scales_the_tensor_and_contacts_and_shapes_are_replaced():
    robot = robots.spatial_quadruped()
    trunk = robot.links[0]
    editor = robot.edit().change_link(trunk.name, mass=2.0 * trunk.inertia.mass, shapes=[legged.Box((1.0, 0.5, 0.1))])
    editor.change_contact("leg1_foot", legged.Sphere(0.02, (0.0, 0.0, -0.3)))
    foot = robot.links[robot.contact("leg2_foot").link].name
    editor.change_link(foot, contacts={"heel": (-0.1, 0.0, -0.3), "toe": (0.1, 0.0, -0.3)})
    edited = editor.change_robot(name="heavy", base=legged.FixedBase()).build()
    inertia = edited.links[0].inertia
    np.testing.assert_allclose(inertia.tensor, 2.0 * np.asarray(trunk.inertia.tensor), rtol=1e-15)
    assert edited.contact("leg1_foot").radius == 0.02
    assert {"heel", "toe"} < {c.name for c in edited.contacts}
    assert "leg2_foot" not in {c.name for c in edited.contacts}
    assert (edited.name, edited.base.kind, len(edited.links[0].shapes)) == ("heavy", "fixed", 1)
    removed = robot.edit().remove("leg2_thigh").build()
    assert data_key(removed) == data_key(robot.without("leg2_thigh"))


WRONG_EDITS = (
    (lambda e: e.change_link("trun", mass=1.0), UnknownNameError, "did you mean 'trunk'"),
    (lambda e: e.change_link("trunk", mass=-1.0), ArgumentError, "mass of link 'trunk' must be at least 0"),
    (lambda e: e.change_link("trunk", mass="heavy"), ArgumentError, r"change_link\('trunk'\): mass must be a number"),
    (lambda e: e.change_link("trunk", center=(1.0, 2.0)), ShapeError, r"change_link\('trunk'\): center must be \(3,\)"),
    (lambda e: e.change_link("trunk", tensor=(1.0, 1.0, 9.0)), InertiaError, "link 'trunk': principal inertias"),
    (lambda e: e.change_link("trunk", mass=1.0, inertia=legged.Inertia()), DefinitionError, "give either inertia"),
    (lambda e: e.change_link("trunk", shapes=["box"]), ArgumentError, r"change_link\('trunk'\): shapes must be"),
    (lambda e: e.change_joint("a_kne", damping=1.0), UnknownNameError, "did you mean 'a_knee'"),
    (lambda e: e.change_joint("a_knee", damping=-1.0), DefinitionError, "joint 'a_knee': .*damping must not be neg"),
    (lambda e: e.change_joint("a_knee", damping="much"), ArgumentError, r"change_joint\('a_knee'\): damping must be"),
    (lambda e: e.change_joint("a_knee", damping=[1.0, 2.0]), DefinitionError, "damping of joint 'a_knee' must be one"),
    (lambda e: e.change_joint("a_knee", lower=1.0, upper=0.0), DefinitionError, "joint 'a_knee': the lower limit"),
    (lambda e: e.change_joint("mount", damping=1.0), DefinitionError, "'mount' is fixed .* it has no damping"),
    (lambda e: e.change_joint("a_knee", rotation=2 * np.eye(3)), DefinitionError, "the rotation of joint 'a_knee'"),
    (lambda e: e.change_contact("a_hee", (0, 0, 0)), UnknownNameError, "did you mean 'a_heel'"),
    (lambda e: e.change_contact("a_heel", (0, 0)), ShapeError, r"change_contact\('a_heel'\): at must be \(3,\)"),
    (lambda e: e.rename(links={"trun": "x"}), UnknownNameError, "did you mean 'trunk'"),
    (lambda e: e.rename(links={"trunk": "box"}), DefinitionError, "two links are named 'box'"),
    (lambda e: e.rename(joints={"a_knee": ""}), DefinitionError, "joint 'a_knee' needs a name"),
    (lambda e: e.remove("trunk"), DefinitionError, "is the base .* cannot be removed"),
    (lambda e: e.change_robot(gravity=(0, 0)), ShapeError, "gravity must be"),
    (lambda e: e.change_robot(base="fixed"), ArgumentError, "base must be a legged.Base"),
    (lambda e: e.change_link("a_foot", inertia=legged.Inertia()).build(), DefinitionError, "'a_foot' is the last"),
)  # fmt: skip


@pytest.mark.parametrize(("edit", "error", "words"), WRONG_EDITS)
def test_wrong_edits_are_refused_by_name(edit, error, words):
    editor = robots.planar_biped().edit()
    editor.add(legged.Fixed("mount"), legged.Link("box", legged.sphere_inertia(1.0, 0.1)), to="trunk")
    with pytest.raises(error, match=words):
        edit(editor)


WRONG_DATA = (
    (lambda d: d.pop("links"), DefinitionError, "the robot lacks the entry 'links'"),
    (lambda d: d.update(version=99), DefinitionError, "version 99"),
    (lambda d: d.update(linkz=[]), UnknownNameError, "did you mean 'links'"),
    (lambda d: d.update(links={}), ArgumentError, "links must be a list"),
    (lambda d: d.update(links=[]), DefinitionError, "has no links"),
    (lambda d: d["links"][1].pop("name"), DefinitionError, "a link lacks the entry 'name'"),
    (lambda d: d["links"][0].update(mass=-1.0), InertiaError, "link 'trunk': mass -1.0"),
    (lambda d: d["links"][0].update(center=[1.0]), ShapeError, "center of link 'trunk'"),
    (lambda d: d["joints"][0].update(kind="hinge"), UnknownNameError, "kind of joint named 'hinge'"),
    (lambda d: d["joints"][0].update(axes="x"), UnknownNameError, "entry of joint"),
    (lambda d: d["joints"][0].update(physics={"damping": None}), ArgumentError, "damping of joint .* must be a number"),
    (lambda d: d["joints"][0].update(physics={"lower": "low"}), ArgumentError, "lower of joint .* must be a number"),
    (lambda d: d["joints"][0].update(physics={"lower": [], "upper": [1.0, 2.0]}), DefinitionError, "one per degree of"),
    (lambda d: d.update(base={"kind": "flying"}), UnknownNameError, "base named 'flying'"),
    (lambda d: d.update(order=["a_knee"]), DefinitionError, "order must name every joint"),
)  # fmt: skip


@pytest.mark.parametrize(("damage", "error", "words"), WRONG_DATA)
def test_wrong_descriptions_are_refused_by_name(damage, error, words):
    data = robots.planar_biped().describe()
    damage(data)
    with pytest.raises(error, match=words):
        legged.Robot.from_description(data)


@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_every_damaged_entry_is_a_named_error(stride):
    """Replace each entry of a description in turn: the answer is a robot or an error of the toolkit."""
    original = strange_robot().describe()
    for path in list(paths(original))[::stride]:
        for value in (None, "x", -1.0, float("nan"), [], {}, True):
            data = json.loads(json.dumps(original))
            *inner, last = path
            target = data
            for key in inner:
                target = target[key]
            target[last] = value
            try:
                legged.Robot.from_description(data)
            except LeggedError as error:
                assert len(str(error).split()) > 2, (path, value)


def paths(data, path=()):
    """Yield the keys to each entry of nested dicts and lists, without the single numbers of arrays."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if not isinstance(data, list) or isinstance(value, dict):
            yield (*path, key)
        yield from paths(value, (*path, key))


def test_products_of_rotations_are_stored_at_full_precision():
    """A limb attached with a rotation gives products of matrices, which building a robot again must not change."""
    rng, inexact = np.random.default_rng(0), 0
    for _ in range(10):
        inner, mount = ((1.0 + 4e-16) * legged.rpy(*angles) for angles in rng.normal(size=(2, 3)))  # left as they are
        product = mount @ inner
        inexact += bool(np.abs(product.T @ product - np.eye(3)).max() > 1e-15)  # where `rotation3` corrects a matrix
        ball = legged.Link("ball", legged.sphere_inertia(1.0, 0.1))
        limb = legged.Limb().add(legged.Revolute("j"), ball, rotation=inner)
        builder = legged.RobotBuilder("robot", legged.Link("trunk", legged.sphere_inertia(1.0, 0.1)))
        robot = builder.attach(limb, to="trunk", rotation=mount).build()
        assert robot.edit().build().describe() == robot.describe()
        assert legged.Robot.from_description(robot.describe()).describe() == robot.describe()
    assert inexact
