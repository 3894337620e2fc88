"""Robots written to URDF and MJCF and read again are the same mechanisms, to rounding.

Numbers are written to the last digit. What rounds is a rotation that becomes roll, pitch and yaw or a quaternion, and
MJCF's principal axes of inertia: 1e-15 each. Forces are compared in parts of the largest, 1e-12 is promised;
accelerations lose the condition number of the inertia matrix, up to 1e6 here.
"""

import warnings
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from oracles.cases import case_of, random_case
from oracles.rebuild import rebuild

import legged
import robots
from legged import JointPhysics, Rotor, conversions
from legged.errors import DefinitionError, FileError, FileWarning, MismatchError
from legged.files.mjcf.export import to_mjcf
from legged.robot.construction.random_tree import ALL_JOINTS

OPTIONS = {
    "plain": {},
    "with joint physics": {"physics": True},
    "with coupled joints": {"coupled": True, "physics": True},
    "in another order": {"shuffled": True},
    "with every type of joint": {"joints": ALL_JOINTS, "physics": True, "coupled": True},
}
BODY = legged.box_inertia(1.2, (0.1, 0.2, 0.3), (0.05, -0.02, 0.1))


def through_urdf(robot, folder, **options):
    """Return the robot written and read from the elements; its whole description is ignored, as feet are given."""
    path = legged.save_urdf(robot, folder / "robot.urdf")
    base = "floating" if robot.base.kind == "floating" else "fixed"
    return legged.load(path, base, **{"feet": [c.name for c in robot.contacts], "gravity": robot.gravity, **options})


def through_mjcf(robot, folder):
    pytest.importorskip("mujoco")
    return legged.load(legged.save_mjcf(robot, folder / "robot.xml"), feet=())


def compare(case, other, tolerance=1e-12):
    """Check that another robot's dynamics, joints matched by name, are those of the case."""
    to = conversions.legged(case.robot, other)
    q, v = to.to_configuration(case.q), to.to_velocity(case.q, case.v)
    forces = legged.inverse_dynamics(case.robot, case.q, case.v, case.vdot)
    vdot = to.to_acceleration(case.q, case.v, case.vdot)
    torques = to.from_force(q, legged.inverse_dynamics(other, q, v, vdot))
    assert np.abs(torques - forces).max(initial=0.0) <= tolerance * np.abs(forces).max(initial=0.0), case.label
    rates = legged.forward_dynamics(case.robot, case.q, case.v, case.tau)
    torques = to.from_acceleration(q, v, legged.forward_dynamics(other, q, v, to.to_force(case.q, case.tau)))
    assert np.abs(torques - rates).max(initial=0.0) <= 100 * tolerance * np.abs(rates).max(initial=0.0), case.label


def one_joint(joint):
    """Return a robot on a fixed base with one joint."""
    builder = legged.RobotBuilder("one joint", legged.Link("trunk", BODY), base=legged.FixedBase())
    return builder.add(joint, legged.Link("limb", BODY), to="trunk", at=(0.1, 0.2, 0.3)).build()


def physics_of(robot):
    return {joint.name: joint.definition.physics for joint in robot.joints}


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("seed", range(6))
def test_a_robot_goes_through_urdf_unchanged(seed, kind, tmp_path):
    case = random_case(seed, links=1 + seed, **OPTIONS[kind])
    compare(case, through_urdf(case.robot, tmp_path))


@pytest.mark.parametrize("seed", range(6))
def test_a_robot_goes_through_mjcf_unchanged(seed, tmp_path):
    """Return joints that MJCF can represent: no gyroscopic rotors, ball joints with equal properties about all axes."""
    robot = rebuild(legged.random_tree(seed, 1 + seed, physics=True), joint=simple)
    compare(case_of(robot, seed), through_mjcf(robot, tmp_path))


def simple(joint):
    physics = joint.physics
    if physics.rotor is not None:
        return replace(joint, physics=replace(physics, rotor=replace(physics.rotor, gyroscopic=False)))
    if any(stage.kind == "ball" for stage in joint.stages):
        same = {"damping": physics.damping[0], "friction": physics.friction[0], "rest": 0.0}
        return replace(joint, physics=replace(physics, **same))
    return joint


def test_screws_go_through_mjcf_as_a_slide_that_follows_a_hinge(tmp_path):
    kinds = ("screw", "cylindrical", "revolute")
    robot = rebuild(legged.random_tree(1, 6, joints=kinds, physics=True, coupled=True), joint=simple)
    other = through_mjcf(robot, tmp_path)
    screws = {c.joint.name for c in robot.connections if isinstance(c.joint, legged.Screw)}
    assert {f"{name}_slide" for name in screws} <= {joint.name for joint in other.followers}
    assert len(screws) > 1
    compare(case_of(robot, 1), other)


def test_ready_made_robots_go_through_urdf_and_mjcf_unchanged(tmp_path):
    for robot in (robots.spatial_quadruped(), robots.humanoid(), robots.hexapod(), robots.planar_biped()):
        compare(case_of(robot, 0), through_urdf(robot, tmp_path))
        compare(case_of(robot, 0), through_mjcf(robot, tmp_path), 1e-9)  # thin rods are made a little thicker


def test_coupled_joints_go_through_mjcf(tmp_path):
    builder = legged.RobotBuilder("hand", legged.Link("palm", BODY))
    builder.add(legged.Revolute("finger", "x"), legged.Link("a", BODY), to="palm", at=(0.1, 0, 0))
    builder.add(legged.Revolute("thumb", "y"), legged.Link("b", BODY), to="a", at=(0.1, 0, 0.2))
    robot = builder.couple("thumb", "finger", -0.7, 0.3).build()
    other = through_mjcf(robot, tmp_path)
    assert [joint.name for joint in other.followers] == ["thumb"]
    compare(case_of(robot, 1), other)


def test_mjcf_has_links_that_are_fixed_to_others_as_one_body(tmp_path):
    """As in public files: massless trunks, sensors with inconsistent inertias, a root named world."""
    strange = legged.Inertia(0.2, (0.01, 0.02, 0.0), np.diag([1e-6, 1e-6, 5e-6]), checked=False)
    builder = legged.RobotBuilder("dog", legged.Link("world"), base=legged.FloatingBase())
    builder.add(
        legged.Fixed("weld"), legged.Link("trunk", BODY), to="world", at=(0.1, 0, 0), rotation=legged.rpy(0.1, 0.2, 0)
    )
    builder.add(legged.Fixed("mount"), legged.Link("sensor", strange), to="trunk", at=(0, 0.1, 0.2))
    builder.add(legged.Fixed("lens"), legged.Link("camera"), to="sensor", at=(0.1, 0, 0))
    builder.add(legged.Revolute("neck", "y"), legged.Link("yoke"), to="sensor", at=(0.2, 0, 0))
    builder.add(legged.Fixed("face"), legged.Link("head", BODY), to="yoke", at=(0, 0, 0.1))
    builder.add(legged.Revolute("jaw", "z"), legged.Link("chin", BODY), to="yoke", at=(0, 0, -0.1))
    robot = builder.build()
    other = through_mjcf(robot, tmp_path)
    compare(case_of(robot, 0), other)
    q = case_of(robot, 0).q
    here, there = (
        legged.link_poses(each, conversions.legged(robot, each).to_configuration(q)) for each in (robot, other)
    )
    for name in ("trunk", "sensor", "camera", "head", "chin"):
        one, same = robot.link(name).index, other.link(name).index
        assert np.allclose(here[0][one], there[0][same], atol=1e-14) and np.allclose(
            here[1][one], there[1][same], atol=1e-14
        )


@pytest.mark.parametrize("seed", range(6))
def test_names_orders_masses_and_contact_points_go_through_urdf(seed, tmp_path):
    robot = legged.random_tree(
        seed, 12, joints=("revolute", "prismatic", "fixed", "ball"), bases=("floating",), shuffled=True
    )
    other = through_urdf(robot, tmp_path, order=[joint.name for joint in robot.joints])
    assert [joint.name for joint in other.joints] == [joint.name for joint in robot.joints]
    assert {link.name for link in robot.links} <= {link.name for link in other.links}
    for link in robot.links:
        same = other.link(link.name).inertia
        assert same.mass == link.inertia.mass
        assert np.allclose(same.tensor, link.inertia.tensor, rtol=0.0, atol=1e-16)  # a random one is symmetric to this
    q = case_of(robot, seed).q
    for contact, same in zip(robot.contacts, other.contacts, strict=True):
        assert contact.name == same.name
        here = legged.point_positions(robot, q, [(contact.link, contact.position)])
        assert np.allclose(here, legged.point_positions(other, q, [(same.link, same.position)]), atol=1e-14)


def test_a_contact_point_with_the_name_of_a_link_keeps_its_place(tmp_path):
    foot = legged.Link("foot", BODY, {"foot": (0.1, 0.0, -0.2), "foot_": (0, 0, 0)})
    robot = (
        legged.RobotBuilder("hopper", legged.Link("trunk", BODY)).add(legged.Revolute("j"), foot, to="trunk").build()
    )
    other = through_urdf(robot, tmp_path, feet=["foot_", "foot__"])
    assert [other.links[contact.link].name for contact in other.contacts] == ["foot_", "foot__"]
    here, there = (legged.link_poses(each, each.neutral())[1] for each in (robot, other))
    assert np.allclose(there[other.link("foot_").index] - here[robot.link("foot").index], [0.1, 0.0, -0.2])


def test_limits_go_through_urdf_and_mjcf(tmp_path):
    physics = JointPhysics(0.3, 0.2, 0.01, 5.0, 0.4, lower=-1.0, upper=2.0, effort=30.0, speed=8.0)
    for joint in (legged.Revolute("j", "y", physics=physics), legged.Prismatic("j", (0.6, 0.8, 0), physics=physics)):
        (same,) = physics_of(through_urdf(one_joint(joint), tmp_path)).values()
        assert repr(same) == repr(physics)
        (same,) = physics_of(through_mjcf(one_joint(joint), tmp_path)).values()
        assert repr(same) == repr(replace(physics, speed=np.inf))


def test_a_joint_without_limits_has_none_after_urdf(tmp_path):
    for joint in (legged.Revolute("j"), legged.Prismatic("j"), legged.Spherical("j")):
        (same,) = physics_of(through_urdf(one_joint(joint), tmp_path)).values()
        assert repr(same) == repr(JointPhysics())


def test_a_stop_on_one_side_and_a_joint_without_motor_go_through_urdf(tmp_path):
    joint = legged.Revolute("j", physics=JointPhysics(lower=-0.5, effort=0.0))
    (same,) = physics_of(through_urdf(one_joint(joint), tmp_path)).values()
    assert same.lower == -0.5 and same.upper >= 1e9 and same.effort < 1e-50


def test_rotors_go_through_urdf_as_they_are(tmp_path):
    rotor = Rotor(2e-4, -9.0, gyroscopic=True)
    (same,) = physics_of(
        through_urdf(one_joint(legged.Revolute("j", physics=JointPhysics(rotor=rotor))), tmp_path)
    ).values()
    assert same.rotor == rotor or repr(same.rotor) == repr(rotor)


def test_damping_that_differs_by_axis_goes_through_urdf(tmp_path):
    ball = legged.Spherical(
        "j", physics=JointPhysics([0.1, 0.2, 0.3], armature=0.05, stiffness=2.0, rest=[0.1, 0.2, -0.3])
    )
    compare(case_of(one_joint(ball), 0), through_urdf(one_joint(ball), tmp_path))
    compare(
        case_of(one_joint(legged.Planar("p", physics=ball.physics)), 0),
        through_urdf(one_joint(legged.Planar("p", physics=ball.physics)), tmp_path),
    )


def test_other_readers_find_plain_urdf(tmp_path):
    """One root; joints as the URDF specification knows them, each with the elements that it demands."""
    robot = legged.random_tree(
        3, joints=("revolute", "prismatic", "universal", "planar"), bases=("planar",), physics=True
    )
    root = ElementTree.parse(legged.save_urdf(robot, tmp_path / "robot.urdf")).getroot()
    links, joints = [link.get("name") for link in root.iter("link")], root.findall("joint")
    assert len(set(links)) == len(links) == len(joints) + 1 and links[0] == "world"
    for joint in joints:
        assert joint.get("type") in ("continuous", "prismatic", "fixed")
        limit = joint.find("limit")
        assert joint.get("type") != "prismatic" or {"effort", "velocity"} <= set(limit.attrib)
    assert [joint.get("name") for joint in joints][:3] == ["base_x", "base_z", "base_phi"]
    pin = pytest.importorskip("pinocchio")
    assert pin.buildModelFromUrdf(str(tmp_path / "robot.urdf")).nv == robot.nv


PHYSICS = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/>{}</joint>'
URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>{}</robot>"""


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ('<physics stiffness="soft"/>', "'stiffness' of <physics> of joint 'j' .* got 'soft'"),
        ('<physics stiffness="1e10"/>', "at most 1e.09"),
        ('<physics damping="-1"/>', "damping must not be negative"),
        ('<physics damping="nan"/>', "damping must be finite"),
        ('<physics damping="1 2"/>', "must be one number or 1"),
        ('<physics rotor_inertia="1 2"/>', "'rotor_inertia'"),
        ('<physics rotor_inertia="-1"/>', "inertia that is not negative"),
        ('<physics springiness="1"/>', r"unknown attributes \['springiness'\]; known are damping"),
    ],
)
def test_invalid_joint_physics_is_rejected(element, words, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(URDF.format(PHYSICS.format(element)))
    with pytest.raises(FileError, match=words):
        legged.load(path, base="fixed")


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (legged.Free("j"), "joint 'j' is free; MJCF allows such joints between the world and a body only"),
        (legged.Revolute("j", physics=JointPhysics(rotor=Rotor(1e-3, 2.0, True))), "has a gyroscopic rotor"),
        (legged.Spherical("j", physics=JointPhysics(damping=[1, 1, 2])), "has damping that differ by axis"),
        (
            legged.Spherical("j", physics=JointPhysics(stiffness=1, rest=[1, 0, 0])),
            "a spring with a nonzero rest position",
        ),
    ],
)
def test_joints_that_mjcf_cannot_represent_are_refused_for_mujoco_and_named_when_saved(joint, words, tmp_path):
    robot = one_joint(joint)
    with pytest.raises(DefinitionError, match=words):
        to_mjcf(robot)
    assert words in written(robot, "MJCF", tmp_path)
    assert legged.load(tmp_path / "robot.xml").describe() == robot.describe()


def test_rejection_by_mujoco_is_reported():
    pytest.importorskip("mujoco")
    strange = legged.Inertia(1.0, (0, 0, 0), np.diag([1e-3, 1e-3, 5e-3]), checked=False)
    robot = legged.RobotBuilder("brick", legged.Link("brick", strange)).build()
    with pytest.raises(MismatchError, match="MuJoCo rejects robot 'brick': Error: inertia must satisfy"):
        conversions.mujoco_model(robot)


def written(robot, file_format, folder):
    """Return the words of the warning while a robot is written."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (legged.save_urdf if file_format == "URDF" else legged.save_mjcf)(robot, folder / "robot.xml")
    assert all(issubclass(each.category, FileWarning) for each in caught)
    return " ".join(str(each.message) for each in caught)
