"""Feet are found by name, as ends of limbs, or given by the user; their contact points are the lowest points."""

import numpy as np
import pytest

import controllers
import legged
from legged.algorithms.legs.leg_chains import leg_chains
from legged.errors import ArgumentError, DefinitionError, FileError, ReachError, ShapeError, SimulationWarning

pytest.importorskip("lxml")
from oracles.urdf_texts import BIPED

FOUR = {
    "a1/a1": "FR_foot FL_foot RR_foot RL_foot",
    "anymal_b_simple/anymal": "LF_FOOT RF_FOOT LH_FOOT RH_FOOT",
    "anymal_b_simple/anymal-kinova": "LF_FOOT RF_FOOT LH_FOOT RH_FOOT",
    "anymal_c_simple/anymal": "LF_FOOT RF_FOOT LH_FOOT RH_FOOT",
    "b1/b1": "FR_foot FL_foot RR_foot RL_foot",
    "b1/b1-z1": "FR_foot FL_foot RR_foot RL_foot",
    "centauro/centauro": "ankle2_1 ankle2_2 ankle2_3 ankle2_4",
    "go1/go1": "FR_foot FL_foot RR_foot RL_foot",
    "go2/go2": "FL_foot FR_foot RL_foot RR_foot",
    "hyq/hyq_no_sensors": "lf_foot rf_foot lh_foot rh_foot",
    "laikago/laikago": "FR_foot FL_foot RR_foot RL_foot",
    "quadruped/quadruped": "FL_contact FR_contact BL_contact BR_contact",
    "solo/solo": "FL_FOOT FR_FOOT HL_FOOT HR_FOOT",
    "solo/solo12": "FL_FOOT FR_FOOT HL_FOOT HR_FOOT",
}
TWO = {
    "alexander/alexander_v1.lowerBodyOnly": "LEFT_FOOT RIGHT_FOOT",
    "bolt/bolt": "FL_FOOT FR_FOOT",
    "g1/g1_29dof_rev_1_0": "left_ankle_roll_link right_ankle_roll_link",
    "g1/g1_29dof_with_hand_rev_1_0": "left_ankle_roll_link right_ankle_roll_link",
    "human/human": "left_foot right_foot",
    "icub/icub": "l_sole r_sole",
    "icub/icub_reduced": "l_sole r_sole",
    "romeo/romeo_small": "l_sole r_sole",
    "simple_humanoid/simple_humanoid": "r_ankle l_ankle",
    "simple_humanoid/simple_humanoid_classical": "r_ankle l_ankle",
    "talos/talos_full_v2": "left_sole_link right_sole_link",
    "talos/talos_full_v2_box": "left_sole_link right_sole_link",
    "talos/talos_reduced": "left_sole_link right_sole_link",
    "talos/talos_reduced_box": "left_sole_link right_sole_link",
    "talos/talos_reduced_corrected": "left_sole_link right_sole_link",
}
NONE = (
    "allegro_hand/allegro_left_hand", "alex/alex_nub_hands", "baxter/baxter", "iris/iris", "panda/panda", "pr2/pr2",
    "talos/talos_left_arm", "tiago/tiago", "tiago_pro/tiago_pro", "ur/ur5_robot", "z1/z1",
)  # fmt: skip


def files():
    pytest.importorskip("pinocchio")
    from oracles.urdfs import all_urdfs

    paths = all_urdfs()
    if not paths:
        pytest.skip("example_robot_data, of the extra test, is not installed")
    return paths


def touching(robot):
    """Return the contact points in the world, all joints at zero."""
    return legged.point_positions(robot, robot.neutral(), [(c.link, c.position) for c in robot.contacts])


@pytest.mark.parametrize("name", [*FOUR, *TWO])
def test_legged_robots_have_their_feet(name):
    robot = legged.load(files()[name])
    assert sorted(foot.link for foot in robot.audit.feet) == sorted((FOUR | TWO)[name].split())


def test_robots_without_legs_have_no_feet():
    for name in NONE:
        assert legged.load(files()[name]).contacts == (), name


def test_no_feet_are_looked_for_on_a_fixed_base():
    assert legged.load(files()["go2/go2"], "fixed").contacts == ()


def test_soles_of_boxes_and_of_four_spheres_lie_flat():
    for name in ("talos/talos_full_v2_box", "g1/g1_29dof_rev_1_0"):
        robot = legged.load(files()[name])
        points = touching(robot)
        assert len(points) == 8
        assert np.ptp(points[:, 2]) < 1e-3, name  # [m]
        left, right = points[:4], points[4:]
        assert left[:, 1].min() > 0.0 > right[:, 1].max()
        for foot in (left, right):
            assert (np.ptp(foot[:, :2], axis=0) > [0.1, 0.04]).all()  # [m]: a sole's length and width


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(BIPED)
    return path


def test_a_sphere_touches_with_its_lowest_point_and_a_box_with_its_lower_corners(path):
    robot = legged.load(path)
    where = dict(zip([point.name for point in robot.contacts], touching(robot), strict=True))
    tilt = legged.rpy(0.05, 0.0, 0.0)  # of the left hip
    ball = np.array([0.0, 0.1, 0.6]) + tilt @ [0.0, 0.0, -0.6] - [0.0, 0.0, 0.02]
    assert where.pop("left_foot") == pytest.approx(ball, abs=1e-15)
    corners = {f"right_foot_{x}_{y}" for x in ("front", "rear") for y in ("left", "right")}
    assert set(where) == corners
    ankle = 0.6 - 0.2  # [m], height of the right foot's link, whose box is 0.3 m below and turned by 0.3 rad
    middle = np.mean([at[2] for at in where.values()])
    assert middle == pytest.approx(ankle - 0.32 * np.cos(0.3), abs=1e-15)
    assert where["right_foot_front_left"][0] > where["right_foot_rear_left"][0]
    assert where["right_foot_front_left"][1] > where["right_foot_front_right"][1]


def test_ends_of_limbs_are_feet_where_no_name_tells(path):
    path.write_text(BIPED.replace("_foot", "_end"))
    feet = legged.load(path).audit.feet
    assert [foot.link for foot in feet] == ["left_end", "right_end"]
    assert all(foot.how.startswith("found as the end of a limb") for foot in feet)


@pytest.mark.parametrize(
    "changes",
    [
        {'size="0.2 0.3 0.4"': 'size="1.2 0.3 0.4"'},  # a trunk that is longer than high
        {'rpy="0.05 0 0"': 'rpy="0 -1.57 0"', '<origin xyz="0 -0.1 0"/>': '<origin xyz="0 -0.1 0" rpy="0 -1.57 0"/>'},
    ],
    ids=["long trunk", "level legs"],
)
def test_ends_of_limbs_are_found_below_long_trunks_and_on_legs_that_are_level_at_zero(path, changes):
    text = BIPED.replace("_foot", "_end").replace('"prismatic"', '"revolute"').replace("0 0 2", "0 1 0")
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text)
    assert [foot.link for foot in legged.load(path).audit.feet] == ["left_end", "right_end"]


SHANK = """<robot name="robot"><link name="base">{body}</link>{legs}</robot>"""
INERTIAL = (
    """<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>"""
)
LEG = """
<link name="{side}_thigh">{inertial}</link>
<joint name="{side}_hip" type="revolute"><parent link="base"/><child link="{side}_thigh"/><origin xyz="0 {y} 0"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="20"/></joint>
<link name="{side}_shank">{inertial}<collision>
<origin xyz="{middle} 0 0"/><geometry><box size="0.3 0.04 0.02"/></geometry></collision></link>
<joint name="{side}_knee" type="revolute"><parent link="{side}_thigh"/><child link="{side}_shank"/>
<origin xyz="0 0 -0.3"/><axis xyz="{axis}"/><limit lower="-2" upper="2" effort="50" velocity="20"/></joint>"""


@pytest.mark.parametrize(
    ("middle", "axis", "lies"), [(0.14, "0 1 0", True), (0.08, "0 1 0", False), (0.14, "0 0 1", False)]
)
def test_a_shank_that_is_level_touches_the_ground_with_its_end(tmp_path, middle, axis, lies):
    path = tmp_path / "robot.urdf"
    texts = (
        LEG.format(side=side, y=y, middle=middle, axis=axis, inertial=INERTIAL) for side, y in (("a", 0.1), ("b", -0.1))
    )
    path.write_text(SHANK.format(body=INERTIAL, legs="".join(texts)))
    robot = legged.load(path, feet=["a_shank", "b_shank"])
    at = np.array([contact.position for contact in robot.contacts])
    end = middle + 0.15
    if lies:  # the end face of the box, 4 x 2 cm, is a sole
        assert at[:, 0] == pytest.approx(end, abs=1e-12)
        assert "a shank that is level" in robot.audit.feet[0].how
    else:
        assert at[:, 2] == pytest.approx(-0.01, abs=1e-12)
    assert len(at) == 8


def test_a_link_named_like_a_foot_is_none_if_it_carries_a_moving_ankle_but_a_foot_may_carry_a_toe(path):
    motors = "".join(
        f'<link name="{side}_toe_motor"/><joint name="{side}_motor" type="fixed"><parent link="{shank}"/>'
        f'<child link="{side}_toe_motor"/></joint>'
        for side, shank in (("left", "left_thigh"), ("right", "right_leg"))
    )
    path.write_text(BIPED.replace("_foot", "_ankle").replace("</robot>", motors + "</robot>"))
    assert [foot.link for foot in legged.load(path).audit.feet] == ["left_ankle", "right_ankle"]
    toes = BIPED.replace("_foot", "_toe")
    path.write_text(toes.replace("left_thigh", "left_foot").replace("right_leg", "right_foot"))
    assert [foot.link for foot in legged.load(path).audit.feet] == ["left_foot", "right_foot"]


@pytest.mark.parametrize("toes", ["ltoes rtoes", "left_tip right_tip"])
def test_feet_named_with_the_letters_of_their_leg_are_found(path, toes):
    ends = dict(zip(("left_foot", "right_foot"), toes.split(), strict=True))
    text = BIPED
    for old, new in {**ends, "left_thigh": "lfoot", "right_leg": "BRfoot"}.items():
        text = text.replace(old, new)
    path.write_text(text)
    feet = legged.load(path).audit.feet
    assert [(foot.link, foot.how.split(";")[0]) for foot in feet] == [(n, "found by name") for n in ("lfoot", "BRfoot")]


def test_the_user_says_where_the_feet_are(path):
    assert legged.load(path, feet=()).contacts == ()
    named = legged.load(path, feet=["left_thigh"])
    assert [(foot.link, foot.how.split(";")[0]) for foot in named.audit.feet] == [("left_thigh", "given")]
    placed = legged.load(path, feet={"heel": ("left_foot", (0.0, 0.0, -0.3)), "toe": ("left_foot", (0.1, 0.0, -0.3))})
    assert [point.name for point in placed.contacts] == ["heel", "toe"]
    assert np.array_equal(placed.contacts[1].position, [0.1, 0.0, -0.3])
    with pytest.raises(FileError, match="no link named 'left_foo'; did you mean 'left_foot'"):
        legged.load(path, feet=["left_foo"])


def test_soles_of_several_points_and_round_feet_are_given_by_link(path):
    ball = legged.Sphere(0.03, (0.0, 0.0, -0.1))
    sole = [(0.1, 0.05, -0.02), (0.1, -0.05, -0.02), (-0.1, 0.05, -0.02), (-0.1, -0.05, -0.02)]
    robot = legged.load(path, feet={"left_foot": ball, "right_foot": sole})
    assert robot.contacts[0].name == "left_foot" and robot.contact("left_foot").radius == 0.03
    points = {c.name: c.position for c in robot.contacts[1:]}
    assert {name.removeprefix("right_foot_") for name in points} == {
        "front_left", "front_right", "rear_left", "rear_right",
    }  # fmt: skip
    assert {tuple(at) for at in points.values()} == set(sole)
    named = legged.load(path, feet={"right_foot": {"heel": (-0.1, 0, 0), "ball": ball}, "tip": ("left_foot", ball)})
    assert [(c.name, c.radius) for c in named.contacts] == [("tip", 0.03), ("heel", 0.0), ("ball", 0.03)]


@pytest.mark.parametrize("fuse", [False, True])
def test_collision_spheres_become_round_feet(path, fuse):
    """The lowest point of the sphere is the contact point that the default finds."""
    flat = legged.load(path, fuse=fuse)
    lowest = dict(zip([c.name for c in flat.contacts], touching(flat), strict=True))
    for feet in ("spheres", {"left_foot": "sphere", "right_foot": [(0, 0, 0)]}):
        robot = legged.load(path, feet=feet, fuse=fuse)
        where = dict(zip([c.name for c in robot.contacts], touching(robot), strict=True))
        radius = robot.contact("left_foot").radius
        assert radius == 0.02  # [m], of the sphere in the file
        assert where["left_foot"] - [0, 0, radius] == pytest.approx(lowest["left_foot"], abs=1e-15)
    assert len(legged.load(path, feet="spheres").contacts) == 5  # the corners of the other foot's box stay


@pytest.mark.parametrize(
    ("feet", "error", "words"),
    [
        ("left_foot", ArgumentError, "feet must be a list .* got the text 'left_foot'"),
        (3, ArgumentError, "feet must be names of links or a mapping"),
        ({"left_foo": legged.Sphere(0.1)}, FileError, "did you mean 'left_foot'"),
        ({"right_foot": "sphere"}, FileError, "foot 'right_foot' has no collision sphere"),
        ({"right_foot": (0.0, 0.0, 0.0)}, ShapeError, "foot 'right_foot' must be .n, 3., the points of a sole"),
        ({"tip": ("right_foot", (0.0, 0.0))}, ShapeError, "foot 'tip' must be .3,."),
        ({"right_foot": {"heel": "low"}}, ArgumentError, "foot 'right_foot', point 'heel' must"),
    ],
)
def test_wrong_feet_are_refused_by_name(path, feet, error, words):
    with pytest.raises(error, match=words):
        legged.load(path, feet=feet)


def four_legged(along="x", mesh=False) -> str:
    """Return a URDF with four legs, whose trunk is long in the direction of an axis, and which walks along it."""
    forward, across = ("1 0 0", "0 1 0") if along == "x" else ("0 1 0", "1 0 0")
    inertia = (
        '<inertial><mass value="{}"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    shape = '<collision><geometry><mesh filename="meshes/shank.obj"/></geometry></collision>' if mesh else ""
    text = f'<robot name="dog"><link name="trunk">{inertia.format(8.0)}</link>'
    for name, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("hl", -0.2, 0.1), ("hr", -0.2, -0.1)):
        x, y = (x, y) if along == "x" else (-y, x)
        above = "trunk"
        rows = (("hip", forward, (x, y, 0.0)), ("thigh", across, (0.0, 0.0, 0.0)), ("shank", across, (0.0, 0.0, -0.2)))
        for joint, axis, place in rows:
            link = f"{name}_{joint}"
            text += (
                f'<link name="{link}">{inertia.format(0.5)}{shape if joint == "shank" else ""}</link>'
                f'<joint name="{link}_joint" type="continuous"><parent link="{above}"/><child link="{link}"/>'
                f'<origin xyz="{" ".join(map(str, place))}"/><axis xyz="{axis}"/></joint>'
            )
            above = link
        text += (
            f'<link name="{name}_foot"/><joint name="{name}_end" type="fixed"><parent link="{above}"/>'
            f'<child link="{name}_foot"/><origin xyz="0 0 -0.2"/></joint>'
            if not mesh
            else ""
        )
    return text + "</robot>"


def findings_of(tmp_path, text, kind):
    path = tmp_path / "dog.urdf"
    path.write_text(text)
    return [finding for finding in legged.load(path).audit.findings if finding.kind == kind], path


def test_a_foot_whose_mesh_is_missing_is_a_finding_of_which_locomotion_warns(tmp_path):
    found, path = findings_of(tmp_path, four_legged(mesh=True), "feet")
    assert [finding.severity for finding in found] == ["suspicious"]
    assert "'fl_shank'" in found[0].where and "meshes/shank.obj' was not found" in found[0].words
    robot = legged.load(path)
    warned = pytest.warns(SimulationWarning, match="may fall: 4 links: .*cannot be measured")
    with warned, pytest.raises(ReachError):  # it would stand on its knees
        controllers.Locomotion("trot").initial_state(robot)
    feet = {f"{name}_shank": [(0.0, 0.0, -0.2)] for name in ("fl", "fr", "hl", "hr")}
    assert not [finding for finding in legged.load(path, feet=feet).audit.findings if finding.kind == "feet"]
    assert not findings_of(tmp_path, four_legged(), "feet")[0]


def test_legs_that_swing_along_y_are_a_finding(tmp_path):
    found, _ = findings_of(tmp_path, four_legged("y"), "forward")
    assert [finding.where for finding in found] == ["link 'trunk'"]
    assert "8 joints of its legs turn about x and 4 about y" in found[0].words
    assert not findings_of(tmp_path, four_legged("x"), "forward")[0]


def on_wheels(limits="") -> str:
    """Return `four_legged` with wheels of 5 cm at the ends of its legs."""
    text = four_legged()
    for name in ("fl", "fr", "hl", "hr"):
        inertia = '<inertial><mass value="0.3"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/>'
        shape = '<origin rpy="1.5708 0 0"/><geometry><cylinder radius="0.05" length="0.03"/></geometry>'
        wheel = f'<link name="{name}_foot">{inertia}</inertial><collision>{shape}</collision></link>'
        text = text.replace(f'<link name="{name}_foot"/>', wheel)
        kind = f'type="{"revolute" if limits else "continuous"}">{limits}<axis xyz="0 1 0"/>'
        text = text.replace(f'<joint name="{name}_end" type="fixed">', f'<joint name="{name}_end" {kind}')
    return text


def test_the_audit_names_joints_that_turn_wheels_and_locomotion_refuses_them(path):
    wheels = ["fl_end", "fr_end", "hl_end", "hr_end"]
    path.write_text(on_wheels())
    robot = legged.load(path)
    assert [foot.wheel for foot in robot.audit.feet] == wheels
    assert robot.audit.feet[0].how.endswith("; a wheel turned by joint 'fl_end'")
    assert not any(link.shapes for link in robot.links)
    with pytest.raises(
        DefinitionError, match=r"stands on wheels, turned by the joints 'fl_end', 'fr_end', 'hl_end', 'hr_end'"
    ):
        controllers.Locomotion("trot").initial_state(robot)
    controllers.Locomotion("trot").initial_state(robot.locked(dict.fromkeys(wheels, 0.0)))
    points = {f"{name}_foot": legged.Sphere(0.05) for name in ("fl", "fr", "hl", "hr")}
    assert [foot.wheel for foot in legged.load(path, feet=points).audit.feet] == wheels
    assert not legged.load(path, feet={"trunk": [(0.0, 0.0, -0.1)]}).audit.feet[0].wheel
    path.write_text(on_wheels().replace("collision>", "visual>"))
    assert [foot.wheel for foot in legged.load(path).audit.feet] == wheels
    follower = '<joint name="fl_end" type="continuous"><mimic joint="fr_end"/>'
    path.write_text(on_wheels().replace('<joint name="fl_end" type="continuous">', follower))
    coupled = legged.load(path)
    assert (
        [foot.wheel for foot in coupled.audit.feet] == [leg.wheel for leg in leg_chains(coupled)] == ["", *wheels[1:]]
    )
    path.write_text(on_wheels('<limit lower="-1" upper="1" effort="9" velocity="9"/>'))
    assert not any(foot.wheel for foot in legged.load(path).audit.feet)


def test_a_wheel_of_an_mjcf_file_may_turn_beside_the_origin_of_its_body(tmp_path):
    pytest.importorskip("mujoco")
    legs = "".join(
        f'<body name="{name}" pos="0 {y} -0.1"><joint name="{name}_hip" axis="0 1 0" range="-60 60"/>'
        f'<geom size="0.02"/><body name="{name}_foot" pos="0.1 0 -0.3"><joint name="{name}_wheel" axis="0 1 0" '
        f'pos="{at} 0 0.02"/><geom type="cylinder" size="0.06 0.02" euler="90 0 0" pos="-0.05 0 0.02"/></body></body>'
        for name, y, at in (("left", 0.1, -0.05), ("right", -0.1, 0.0))
    )
    path = tmp_path / "rover.xml"
    trunk = f'<body name="trunk" pos="0 0 0.5"><freejoint/><geom size="0.1"/>{legs}</body>'
    path.write_text(f"<mujoco><worldbody>{trunk}</worldbody></mujoco>")
    assert [foot.wheel for foot in legged.load(path).audit.feet] == ["left_wheel", ""]
