"""Robots read from URDF: joints, masses, physics, root links, and the options of `legged.load`."""

import sys

import numpy as np
import pytest

import legged
from legged.errors import FileError, ShapeError, UnknownNameError

pytest.importorskip("lxml")
from oracles.urdf_texts import BIPED, GRIPPER, random_urdf


@pytest.fixture
def load(tmp_path):
    """Return a function that loads the text of a URDF."""

    def loaded(text, *args, **options):
        path = tmp_path / "robot.urdf"
        path.write_text(text)
        return legged.load(path, *args, **options)

    return loaded


def test_every_kind_of_joint_is_read(load):
    robot = load(BIPED)
    kinds = {joint.name: joint.kind for joint in robot.joints}
    assert kinds == {
        "left_hip": "revolute", "left_knee": "revolute", "right_hip": "revolute", "right_slide": "prismatic"
    }  # fmt: skip
    gripper = load(GRIPPER)
    assert {joint.name: joint.kind for joint in gripper.joints} == {
        "open": "prismatic", "table": "planar", "loose": "free"
    }  # fmt: skip
    assert [joint.name for joint in gripper.followers] == ["follow"]


def test_an_inertia_turned_in_its_origin_is_turned_in_the_link(load):
    inertia = load(BIPED).link("trunk").inertia
    written = np.array([[0.11, 0.001, -0.002], [0.001, 0.12, 0.003], [-0.002, 0.003, 0.08]])
    R = legged.rpy(0.1, 0.2, 0.3)
    assert np.allclose(inertia.tensor, R @ written @ R.T, rtol=0.0, atol=1e-16)
    assert np.array_equal(inertia.center, [0.01, 0.0, 0.05])
    assert inertia.mass == 8.5


def test_friction_limits_and_rotors_are_read(load):
    robot = load(BIPED)
    hip, knee = (robot.joint(name).definition.physics for name in ("left_hip", "left_knee"))
    assert (hip.damping, hip.friction, hip.lower, hip.upper, hip.effort, hip.speed) == (0.2, 0.1, -1.5, 1.2, 40.0, 12.0)
    assert (hip.rotor.inertia, hip.rotor.gear) == (0.0001, 9.0)
    assert (knee.lower, knee.upper, knee.effort) == (-np.inf, np.inf, 40.0)


def test_a_rotor_of_a_transmission_without_reduction_turns_with_the_joint(load):
    hip = load(BIPED.replace("<mechanicalReduction>9</mechanicalReduction>", "")).joint("left_hip").definition.physics
    assert (hip.rotor.inertia, hip.rotor.gear) == (0.0001, 1.0)


def test_a_rotor_is_felt_by_its_gear_ratio_squared(load):
    q = load(BIPED).neutral()
    without = BIPED.replace("<motorInertia>0.0001</motorInertia>", "")
    more = legged.inertia_matrix(load(BIPED), q) - legged.inertia_matrix(load(without), q)
    v = load(BIPED).joint("left_hip").v.start
    expected = np.zeros_like(more)
    expected[v, v] = 0.0001 * 9**2
    assert np.abs(more - expected).max() < 1e-14


def test_limits_of_zero_mean_unlimited_and_are_reported(load):
    text = BIPED.replace(
        'lower="-1.5" upper="1.2" effort="40" velocity="12"', 'lower="0" upper="0" effort="0" velocity="0"'
    )
    robot = load(text)
    physics = robot.joint("left_hip").definition.physics
    assert (physics.lower, physics.upper, physics.effort, physics.speed) == (-np.inf, np.inf, np.inf, np.inf)
    assert sum("treated as unlimited" in words for words in robot.audit.lost) == 3


def test_an_axis_of_any_length_is_a_direction(load):
    short, unit = (load(BIPED.replace('axis xyz="0 0 2"', f'axis xyz="0 0 {z}"')) for z in ("2", "1"))
    q = short.neutral() + 0.1 * (np.arange(short.nq) >= 7)
    assert np.array_equal(legged.inertia_matrix(short, q), legged.inertia_matrix(unit, q))


def test_a_massless_root_is_the_base_with_what_is_fixed_to_it(load):
    robot = load(BIPED)
    assert robot.links[0].name == "base_footprint"
    assert robot.link("trunk").body == 0
    assert robot.audit.fused == {"base_footprint": ("trunk",)}


def test_a_floating_joint_on_the_world_is_the_floating_base(load):
    robot = load(GRIPPER)
    assert robot.links[0].name == "palm"
    assert robot.base.kind == "floating"
    assert any("'drop' is the floating base" in words for words in robot.audit.decided)
    fixed = load(GRIPPER, "fixed")
    assert (fixed.links[0].name, fixed.nv) == ("world", robot.nv - 6)
    poses = legged.link_poses(fixed, fixed.neutral())
    assert np.array_equal(poses[1][[link.name for link in fixed.links].index("palm")], [0, 0, 1])


def test_followers_move_by_ratio_and_offset_or_alone_or_not_at_all(load):
    coupled, free, fixed = (load(GRIPPER, mimic=how) for how in ("coupled", "free", "fixed"))
    assert (coupled.nv, free.nv, fixed.nv) == (free.nv - 1, free.nv, coupled.nv)
    q = coupled.neutral()
    q[coupled.joint("open").q] = 0.02
    for robot, expected in ((coupled, -(0.5 * 0.02 + 0.01)), (fixed, -0.01)):
        at = [link.name for link in robot.links].index("thumb")
        assert legged.link_poses(robot, q)[1][at] == pytest.approx([0, expected, 0], abs=1e-15)
    assert free.joint("follow").kind == "prismatic"


def test_a_chain_of_followers_multiplies_ratios_and_carries_offsets(load):
    chain = """<link name="last"><inertial><mass value="1"/>
      <inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
      <joint name="second" type="prismatic"><parent link="palm"/><child link="last"/><axis xyz="1 0 0"/>
      <mimic joint="follow" multiplier="-3" offset="0.2"/></joint></robot>"""
    robot = load(GRIPPER.replace("</robot>", chain))
    followers = {joint.name: (joint.master, joint.ratio, joint.offset) for joint in robot.followers}
    assert followers["follow"] == ("open", 0.5, 0.01)
    assert followers["second"] == ("open", pytest.approx(-1.5), pytest.approx(0.2 - 3 * 0.01))
    locked = load(GRIPPER.replace("</robot>", chain), mimic="fixed")
    at = [link.name for link in locked.links].index("last")
    assert legged.link_poses(locked, locked.neutral())[1][at] == pytest.approx([0.17, 0, 0], abs=1e-15)


def test_a_follower_of_a_fixed_joint_is_locked(load):
    text = GRIPPER.replace('name="open" type="prismatic"', 'name="open" type="fixed"')
    robot = load(text)
    assert not robot.followers
    assert any("'follow' is locked, since it follows 'open'" in words for words in robot.audit.decided)


def test_order_is_the_files_or_the_users(load):
    swapped = BIPED.replace("left_hip", "zzz").replace("right_hip", "left_hip").replace("zzz", "right_hip")
    names = ["left_hip", "left_knee", "right_hip", "right_slide"]
    for text in (BIPED, swapped):
        robot = load(text, order="file")
        assert sorted(joint.name for joint in robot.joints) == sorted(names)
        assert [text.index(f'joint name="{joint.name}"') for joint in robot.joints] == sorted(
            text.index(f'joint name="{joint.name}"') for joint in robot.joints
        )
    robot = load(BIPED, order=names[::-1])
    assert [joint.name for joint in robot.joints] == names[::-1]
    assert robot.joint("right_slide").v.start == 6
    with pytest.raises(FileError, match="lacks"):
        load(BIPED, order=names[:2])


@pytest.mark.parametrize("seed", range(5))
def test_fusing_changes_the_links_and_not_the_dynamics(seed, load):
    whole, fused = (load(random_urdf(seed), fuse=fuse, order="file") for fuse in (False, True))
    fixed = sum(data["kind"] == "fixed" for _, _, data in whole.graph.edges(data=True))
    assert len(fused.links) == len(whole.links) - fixed
    assert not any(data["kind"] == "fixed" for _, _, data in fused.graph.edges(data=True))
    rng = np.random.default_rng(seed)
    q = legged.random_configuration(whole, rng)
    v, vdot = rng.normal(size=(2, whole.nv))
    apart = legged.inverse_dynamics(whole, q, v, vdot) - legged.inverse_dynamics(fused, q, v, vdot)
    assert np.abs(apart).max() <= 1e-12 * np.abs(legged.inverse_dynamics(whole, q, v, vdot)).max()
    assert fused.mass == pytest.approx(whole.mass, rel=1e-14)


def test_fusing_keeps_the_contact_points_where_they_are(load):
    footed = BIPED.replace('name="left_knee" type="continuous"', 'name="left_knee" type="fixed"')
    whole, fused = (load(footed, fuse=fuse) for fuse in (False, True))
    q = whole.neutral()
    assert [point.name for point in whole.contacts] == [point.name for point in fused.contacts]
    points = [legged.point_positions(r, q, [(c.link, c.position) for c in r.contacts]) for r in (whole, fused)]
    assert np.allclose(*points, rtol=0.0, atol=1e-15)
    assert "left_foot" not in [link.name for link in fused.links]


def test_a_gyroscopic_rotor_is_true_or_false(load):
    before = '<joint name="left_hip" type="revolute">'
    after = before + '<physics rotor_inertia="1e-4" gear="9" gyroscopic="{}"/>'
    for words, is_gyroscopic in (("true", True), ("false", False)):
        joint = load(BIPED.replace(before, after.format(words))).joint("left_hip")
        assert joint.definition.physics.rotor.gyroscopic == is_gyroscopic
    with pytest.raises(FileError, match=r"'gyroscopic' of .* must be true or false, got 'True'"):
        load(BIPED.replace(before, after.format("True")))


def test_joint_physics_can_be_left_out(load):
    bare = load(BIPED, joint_physics=False).joint("left_hip").definition.physics
    assert (bare.damping, bare.friction) == (0.0, 0.0)
    assert (bare.effort, bare.rotor.gear) == (40.0, 9.0)


def test_gravity_is_the_users_or_earths(load):
    assert np.array_equal(load(BIPED).gravity, [0, 0, -9.81])
    assert np.array_equal(load(BIPED, gravity=(0, 0, -1.62)).gravity, [0, 0, -1.62])


def test_what_the_robot_has_not_is_told(load):
    text = BIPED.replace("<dynamics damping", '<sensor/><dynamics spring="3" damping')
    lost = load(text).audit.lost
    assert {"<sensor> of <joint>", "attribute 'spring' of <dynamics>", "<mu1> of <gazebo>"} <= set(lost)


def test_unknown_options_are_rejected(load):
    for options, words in (
        ({"base": "flying"}, "no base named 'flying'"),
        ({"mimic": "loose"}, "mimic"),
        ({"repair": "glue"}, "no repair named 'glue'"),
    ):
        with pytest.raises(UnknownNameError, match=words):
            load(BIPED, **options)
    with pytest.raises(ShapeError, match="gravity"):
        load(BIPED, gravity=(0, 0))


def test_without_the_extra_the_error_tells_what_to_install(load, monkeypatch):
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(FileError, match=r"pip install 'legged\[urdf\]'"):
        load(BIPED)
