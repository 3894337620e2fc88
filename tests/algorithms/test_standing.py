"""Robots stand within the limits of their joints: which limbs are legs, soles on several links, postures on slopes."""

from dataclasses import replace

import numpy as np
import pytest

import controllers
import legged
import robots
from legged import Limb, Link, Revolute, RobotBuilder, box_inertia, rod_inertia
from legged.algorithms.legs.leg_chains import leg_chains, legs_text
from legged.algorithms.legs.posture_search import inner_limits
from legged.algorithms.legs.standing import home_of, standing_torques
from legged.dynamics.kinematics import center_of_mass, link_poses, point_positions
from legged.errors import DefinitionError, ReachError, SimulationWarning
from legged.ground import Slope

SOLVED = 1e-6  # [m], ten times the tolerance of an exact posture of legs of 1 m
INSIDE = 1e-9  # [rad], rounding of joint positions at a limit


def leg(sole, toe=None, is_foot=None, ankle=(-1.5, 1.5)):
    """Return a leg with hip roll, hip, knee and ankle, a sole at given points and a toe by choice."""
    limb = Limb()
    limb.add(Revolute("roll", "x"), Link("hip", rod_inertia(0.3, (0, 0, 0), (0, 0, -0.05))))
    limb.add(Revolute("hip", "y"), Link("thigh", rod_inertia(2.0, (0, 0, 0), (0, 0, -0.4))), at=(0, 0, -0.05))
    limb.add(Revolute("knee", "y"), Link("shank", rod_inertia(1.5, (0, 0, 0), (0, 0, -0.4))), at=(0, 0, -0.4))
    physics = legged.JointPhysics(lower=ankle[0], upper=ankle[1])
    foot = Link("foot", box_inertia(0.8, (0.2, 0.1, 0.05)), sole, is_foot=is_foot)
    limb.add(Revolute("ankle", "y", physics=physics), foot, at=(0, 0, -0.4))
    if toe is not None:
        limb.add(Revolute("toe", "y"), Link("toe", box_inertia(0.2, (0.08, 0.1, 0.03)), toe), at=(0.12, 0, -0.04))
    return limb


SOLE = {f"{x}{y}": (0.1 * x, 0.04 * y, -0.06) for x in (-1, 1) for y in (-1, 1)}
HEEL = {f"heel{y}": (-0.08, 0.04 * y, -0.06) for y in (-1, 1)}
TOE = {f"toe{y}": (0.06, 0.04 * y, -0.02) for y in (-1, 1)}


def with_arms(hand: bool | None, sole=SOLE, toe=None, is_foot=None, ankle=(-1.5, 1.5)):
    """Return a biped with two arms that have contact points on their hands."""
    builder = RobotBuilder("biped with arms", Link("trunk", box_inertia(20.0, (0.2, 0.3, 0.5))))
    arm = Limb()
    arm.add(Revolute("shoulder", "y"), Link("upper", rod_inertia(1.0, (0, 0, 0), (0, 0, -0.3))))
    lower = Link("lower", rod_inertia(0.8, (0, 0, 0), (0, 0, -0.3)), {"hand": (0, 0, -0.3)}, is_foot=hand)
    arm.add(Revolute("elbow", "y"), lower, at=(0, 0, -0.3))
    for side, y in (("left", 0.1), ("right", -0.1)):
        builder.attach(leg(sole, toe, is_foot, ankle), to="trunk", at=(0, y, -0.25), prefix=f"{side}_")
        builder.attach(arm, to="trunk", at=(0, 2 * y, 0.25), prefix=f"{side}_arm_")
    return builder.build()


def test_a_joint_about_an_axis_of_45_degrees_is_no_pitch_joint():
    """The hip yaws of NAO, whose second pitch joint would otherwise count as the knee."""
    limb, c = Limb(), np.sqrt(0.5)
    limb.add(Revolute("yaw pitch", (0, c, -c)), Link("waist", rod_inertia(0.1, (0, 0, 0), (0, 0, -0.05))))
    limb.add(Revolute("hip", "y"), Link("thigh", rod_inertia(2.0, (0, 0, 0), (0, 0, -0.4))))
    shank = Link("shank", rod_inertia(1.5, (0, 0, 0), (0, 0, -0.4)), {"tip": (0, 0, -0.4)})
    limb.add(Revolute("knee", "y"), shank, at=(0, 0, -0.4))
    builder = RobotBuilder("inclined", Link("trunk", box_inertia(20.0, (0.2, 0.3, 0.5))))
    for side, y in (("left", 0.1), ("right", -0.1)):
        builder.attach(limb, to="trunk", at=(0, y, 0), prefix=f"{side}_")
    assert [leg.pitch_columns for leg in leg_chains(builder.build())] == [(1, 2), (4, 5)]


def test_a_hip_may_pitch_about_an_axis_of_45_degrees_and_its_soles_point_forward():
    """The hips of X1, which turn its soles out by 0.6 rad unless the hip yaws turn them back."""
    builder, c = RobotBuilder("oblique", Link("trunk", box_inertia(20.0, (0.2, 0.3, 0.5)))), np.sqrt(0.5)
    for side, y in (("left", 0.1), ("right", -0.1)):
        limb = Limb()
        for name, axis in (("pitch", (0, c, np.sign(y) * c)), ("roll", "x"), ("yaw", "z")):
            limb.add(Revolute(name, axis), Link(f"hip {name}", rod_inertia(1.0, (0, 0, 0), (0, 0, -0.1))))
        shank = Link("shank", rod_inertia(1.5, (0, 0, 0), (0, 0, -0.3)))
        limb.add(Revolute("knee", "y"), shank, at=(0, 0, -0.3))
        ankle = Link("ankle", rod_inertia(0.1, (0, 0, 0), (0, 0, -0.05)))
        limb.add(Revolute("ankle", "y"), ankle, at=(0, 0, -0.3))
        limb.add(Revolute("ankle roll", "x"), Link("sole", box_inertia(0.3, (0.2, 0.1, 0.02)), SOLE))
        builder.attach(limb, to="trunk", at=(0, y, -0.25), prefix=f"{side}_")
    robot = builder.build()
    home = home_of(robot)
    assert [leg.pitch_columns for leg in home.legs] == [(0, 3, 4), (6, 9, 10)]
    for leg in home.legs:
        assert home.angles[leg.pitch_columns[1]] > 0.3  # [rad]: the knee bends forward
        points = [robot.contact(name) for name in leg.contacts]
        q = np.concatenate([robot.base.configuration(np.array([0, 0, home.base_height]), np.eye(3)), home.angles])
        soles = point_positions(robot, q, [(point.link, point.position) for point in points])
        np.testing.assert_allclose(np.ptp(soles, axis=0), (0.2, 0.08, 0.0), atol=SOLVED)


def test_arms_with_contact_points_are_no_legs():
    legs = leg_chains(with_arms(None))
    assert [chain.name for chain in legs] == ["left", "right"]
    assert home_of(with_arms(None)).base_height > 0.7


def test_the_detection_says_what_it_assumed_and_what_was_stated():
    assert "one of the 2 lowest limbs" in legs_text(with_arms(None))
    assert "stated by is_foot" in legs_text(with_arms(None, is_foot=True))


def test_links_say_whether_they_are_feet():
    """Hands that are feet make four legs; a robot without a foot has none, and the message says how to state one."""
    assert len(leg_chains(with_arms(True, is_foot=True))) == 4
    with pytest.raises(DefinitionError, match=r"is_foot=False; give feet"):
        leg_chains(with_arms(False, is_foot=False))
    with pytest.raises(DefinitionError, match=r"a foot without contact points"):
        Link("foot", is_foot=True)


def test_a_knee_on_the_link_of_a_foot_is_no_part_of_its_sole():
    """The origin of a shank that ends in a foot touches the ground when the robot lies, not when it stands."""
    editor = robots.spatial_quadruped().edit()
    legs = leg_chains(robots.spatial_quadruped())
    for leg in legs:
        link = editor.build().links[leg.link].name
        old = {contact.name: contact.definition for contact in editor.build().contacts if contact.link == leg.link}
        editor.change_link(link, contacts={**old, f"{link}_knee": (0.0, 0.0, 0.0)}, is_foot=True)
    assert [leg.contacts for leg in leg_chains(editor.build())] == [leg.contacts for leg in legs]


def test_a_stated_foot_is_kept_in_data_and_edits():
    robot = with_arms(False, is_foot=True)
    again = legged.Robot.from_description(robot.describe()).fused()
    for name, foot in (("left_foot", True), ("left_arm_lower", False), ("trunk", None)):
        assert robot.link(name).is_foot is again.link(name).is_foot is foot
    assert robot.edit().change_link("left_foot", is_foot=False).build().link("left_foot").is_foot is False


def test_heels_and_toes_are_one_foot_and_both_touch_the_ground():
    robot = with_arms(None, sole=HEEL, toe=TOE)
    home = home_of(robot)
    assert [len(chain.contacts) for chain in home.legs] == [4, 4]
    q = np.concatenate([robot.base.configuration(np.array([0, 0, home.base_height]), np.eye(3)), home.angles])
    feet = [robot.contact(name) for chain in home.legs for name in chain.contacts]
    heights = point_positions(robot, q, [(point.link, point.position) for point in feet])[:, 2]
    np.testing.assert_allclose(heights, 0.0, atol=SOLVED)


@pytest.mark.parametrize("degrees", [-12.0, 0.0, 12.0])
@pytest.mark.parametrize("ankle", [(-1.5, 1.5), (-0.4, 0.4)])
def test_a_robot_on_a_slope_stands_on_it_inside_its_limits_with_its_mass_over_its_feet(degrees, ankle):
    robot, terrain = with_arms(None, ankle=ankle), Slope(float(np.radians(degrees)))
    q, _ = controllers.Locomotion("walk", terrain=terrain).initial_state(robot)
    feet = [point for point in robot.contacts if "hand" not in point.name]
    points = point_positions(robot, q, [(point.link, point.position) for point in feet])
    heights = [z - terrain.height(x, y) for x, y, z in points]
    assert min(heights) > -SOLVED
    assert np.linalg.norm((center_of_mass(robot, q) - points.mean(axis=0))[:2]) < 0.03  # half a foot's width
    lower, upper = inner_limits(robot)
    angles = q[robot.base.nq :]
    assert (angles >= lower - INSIDE).all() and (angles <= upper + INSIDE).all()


def test_a_refused_hip_height_names_a_possible_one():
    robot = with_arms(None)
    with pytest.raises(ReachError, match=r"hip_height=0.\d+ is possible"):
        home_of(robot, 1.2)
    assert home_of(robot, 1.2, nearest=True).hip_height < 0.9


def test_a_raised_tip_of_a_foot_is_no_part_of_its_sole():
    tip = {f"tip{y}": (0.16, 0.04 * y, -0.04) for y in (-1, 1)}
    robot = with_arms(None, sole=SOLE | tip)
    plain = home_of(with_arms(None))
    home = home_of(robot)
    assert [set(leg.contacts) for leg in home.legs] == [set(leg.contacts) for leg in plain.legs]
    assert np.allclose(home.angles, plain.angles, atol=1e-6) and home.base_height == pytest.approx(plain.base_height)


def test_no_contact_point_of_a_curved_sole_is_in_the_ground():
    sole = {name: (x, y, z + 0.1 * x * x) for name, (x, y, z) in SOLE.items()}
    robot = with_arms(None, sole=sole | {f"middle{y}": (0.0, 0.04 * y, -0.06) for y in (-1, 1)})
    home = home_of(robot)
    q = np.concatenate([robot.base.configuration(np.array([0.0, 0.0, home.base_height]), np.eye(3)), home.angles])
    heights = [legged.point_positions(robot, q, [(p.link, p.position)])[0][2] for p in robot.contacts]
    assert min(heights) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("angle", "words"), [(np.pi, r"\(0, 0, 1\)"), (0.5 * np.pi, r"\(0, 1, 0\)")])
def test_a_base_whose_z_axis_does_not_point_up_is_named(angle, words):
    limits, limb = legged.JointPhysics(lower=-0.7, upper=0.7), Limb()
    limb.add(Revolute("hip", "y", physics=limits), Link("thigh", rod_inertia(2.0, (0, 0, 0), (0, 0, -0.4))))
    shank = Link("shank", rod_inertia(1.5, (0, 0, 0), (0, 0, -0.4)), {"tip": (0, 0, -0.4)})
    limb.add(Revolute("knee", "y", physics=limits), shank, at=(0, 0, -0.4))
    builder = RobotBuilder("turned", Link("trunk", box_inertia(20.0, (0.2, 0.3, 0.5))))
    turn = np.array([[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]])
    for side, y in (("left", 0.1), ("right", -0.1)):
        builder.attach(limb, to="trunk", at=tuple(turn @ (0, y, 0)), rotation=turn, prefix=f"{side}_")
    with pytest.raises(ReachError, match=rf"feet lie in direction {words} .* link 'trunk', whose z axis must point up"):
        home_of(builder.build())


def insect(angle, length=0.15):
    """Return a leg whose first axis is vertical, whose foot is beside the body, and which is stretched at zero."""
    limb, out = Limb(), np.array([np.cos(angle), np.sin(angle), 0.0])
    across = (-out[1], out[0], 0.0)
    limb.add(Revolute("coxa", "z"), Link("coxa", rod_inertia(0.03, (0, 0, 0), tuple(0.05 * out))))
    thigh = Link("thigh", rod_inertia(0.08, (0, 0, 0), tuple(length * out)))
    limb.add(Revolute("femur", across), thigh, at=tuple(0.05 * out))
    tibia = Link("tibia", rod_inertia(0.05, (0, 0, 0), tuple(length * out)), {"tip": tuple(length * out)})
    limb.add(Revolute("tibia", across), tibia, at=tuple(length * out))
    return limb


def test_insect_legs_stand_beside_their_hips_with_raised_knees():
    builder = RobotBuilder("hexapod", Link("trunk", box_inertia(1.5, (0.3, 0.15, 0.05))))
    for k, angle in enumerate(np.radians([45.0, 90.0, 135.0, -45.0, -90.0, -135.0])):
        at = (0.12 * (1 - k % 3), 0.06 * np.sign(angle), 0.0)
        builder.attach(insect(angle), to="trunk", at=at, prefix=f"leg{k}_")
    robot = builder.build()
    home = home_of(robot)
    assert all(chain.swings_sideways for chain in home.legs)
    q = np.concatenate([robot.base.configuration(np.array([0, 0, home.base_height]), np.eye(3)), home.angles])
    tips = point_positions(robot, q, [(point.link, point.position) for point in robot.contacts])
    knees = point_positions(robot, q, [(robot.link(f"leg{k}_tibia").index, np.zeros(3)) for k in range(6)])
    np.testing.assert_allclose(tips[:, 2], 0.0, atol=SOLVED)
    hips = np.array([chain.hip for chain in home.legs])
    assert (np.linalg.norm((tips - hips)[:, :2], axis=1) > 0.5 * 0.3).all()
    assert (knees[:, 2] > home.base_height).all()


def straddling(roll: bool):
    """Return a biped with hips 0.7 m apart, with or without ankle roll."""
    builder = RobotBuilder("straddling", Link("trunk", box_inertia(20.0, (0.2, 0.3, 0.5))))
    for side, y in (("left", 0.35), ("right", -0.35)):
        limb = leg({} if roll else SOLE)
        if roll:
            limb.add(Revolute("ankle_roll", "x"), Link("sole", box_inertia(0.3, (0.2, 0.1, 0.02)), SOLE))
        builder.attach(limb, to="trunk", at=(0, y, -0.25), prefix=f"{side}_")
    return builder.build()


def test_two_soles_stand_side_by_side_where_the_ankles_roll():
    """The soles of wide hips are 0.2 of the length of a leg beside the middle, level and parallel; without ankle roll a
    level sole is below its hip."""
    for roll in (True, False):
        robot = straddling(roll)
        home = home_of(robot)
        q = np.concatenate([robot.base.configuration(np.array([0, 0, home.base_height]), np.eye(3)), home.angles])
        for chain, side in zip(home.legs, (1.0, -1.0), strict=True):
            points = [robot.contact(name) for name in chain.contacts]
            soles = point_positions(robot, q, [(point.link, point.position) for point in points])
            beside = 0.2 * chain.length if roll else 0.35
            assert soles[:, 1].mean() == pytest.approx(side * beside, abs=SOLVED)
            np.testing.assert_allclose(soles[:, 2], 0.0, atol=SOLVED)
            np.testing.assert_allclose(np.ptp(soles[:, :2], axis=0), (0.2, 0.08), atol=SOLVED)  # no yaw


def test_knees_that_only_bend_backward_do_not_point_to_the_side():
    """The legs of TRON2 have no ankle roll and are wider than 0.2 of their length; their soles could turn outward."""
    builder = RobotBuilder("backward", Link("trunk", box_inertia(20.0, (0.2, 0.3, 0.5))))
    for side, y in (("left", 1.0), ("right", -1.0)):
        limb, link = Limb(), lambda name, z: Link(name, rod_inertia(2.0, (0, 0, 0), (0, 0, -z)))
        yaw = sorted((-3.67 * y, 1.48 * y))
        limb.add(Revolute("pitch", (0, np.cos(0.087), -y * np.sin(0.087))), link("hip", 0.1))
        limb.add(Revolute("roll", "x"), link("waist", 0.14), at=(-0.032, 0.076 * y, -0.007))
        limits = legged.JointPhysics(lower=yaw[0], upper=yaw[1])
        limb.add(Revolute("yaw", "z", physics=limits), link("thigh", 0.2), at=(0.032, 0, -0.137))
        limits = legged.JointPhysics(lower=-2.6, upper=0.26)
        limb.add(Revolute("knee", "y", physics=limits), link("shank", 0.35), at=(0.004, 0.032 * y, -0.213))
        sole = {name: at + np.array([-0.02, 0.036 * y, -0.01]) for name, at in SOLE.items()}
        foot = Link("foot", box_inertia(0.8, (0.2, 0.1, 0.02)), sole)
        limb.add(Revolute("ankle", "y"), foot, at=(-0.004, -0.068 * y, -0.35))
        builder.attach(limb, to="trunk", at=(0, 0.092 * y, 0.055), prefix=f"{side}_")
    robot = builder.build()
    for height in np.linspace(0.6, 0.74, 8):  # [m]
        home = home_of(robot, height)
        for chain in home.legs:
            assert home.angles[chain.pitch_columns[1]] < -0.3  # [rad]
            assert abs(home.angles[chain.columns[2]]) < 0.2  # [rad], yaw


def monopod(effort: float):
    """Return a robot on one point foot whose hip and knee have a largest torque."""
    builder = RobotBuilder("monopod", Link("trunk", box_inertia(10.0, (0.3, 0.2, 0.2))))
    strong = legged.JointPhysics(effort=effort)
    thigh, shank = rod_inertia(2.0, (0, 0, 0), (0, 0, -0.4)), rod_inertia(1.0, (0, 0, 0), (0, 0, -0.4))
    builder.add(Revolute("hip", "y", physics=strong), Link("thigh", thigh), to="trunk", at=(0.05, 0, -0.1))
    foot = {"foot": (0, 0, -0.4)}
    builder.add(Revolute("knee", "y", physics=strong), Link("shank", shank, foot), to="thigh", at=(0, 0, -0.4))
    return builder.build()


def test_ball_joints_with_quaternions_are_refused():
    ball = RobotBuilder("ball", Link("trunk", legged.sphere_inertia(1.0, 0.1)), base=legged.FloatingBase())
    leg = Limb().add(legged.Spherical("hip"), Link("thigh", legged.sphere_inertia(1.0, 0.1)))
    leg.add(Revolute("knee", "y"), Link("shank", legged.sphere_inertia(1.0, 0.1), {"foot": (0.0, 0.0, -1.0)}))
    with pytest.raises(DefinitionError, match="has quaternion ball joints"):
        home_of(ball.attach(leg, to="trunk").build())


def test_standing_torques_are_moments_about_the_joints():
    """The force of the ground, the weight, acts at the foot; a joint bears its moment less that of the links below."""
    robot = monopod(100.0)
    home = home_of(robot)
    q = np.concatenate([robot.base.configuration(np.array([0, 0, home.base_height]), np.eye(3)), home.angles])
    torques, ratio, worst = standing_torques(robot, home)
    rotations, origins = link_poses(robot, q)
    foot = origins[2] + rotations[2] @ (0, 0, -0.4)
    middles = [origins[k] + rotations[k] @ (0, 0, -0.2) for k in (1, 2)]
    weights = 9.81 * np.array([2.0, 1.0])
    total = 9.81 * 13.0
    knee = total * (foot - origins[2])[0] - weights[1] * (middles[1] - origins[2])[0]
    hip = total * (foot - origins[1])[0] - weights @ [(x - origins[1])[0] for x in middles]
    assert abs(knee) > 5.0  # the knee is bent
    np.testing.assert_allclose(torques, (hip, knee), atol=1e-6)  # tolerance of the linear program, 1e-7 of the forces
    assert ratio == pytest.approx(max(abs(hip), abs(knee)) / 100.0, abs=1e-8)
    assert worst == int(abs(knee) > abs(hip))


def test_the_joint_that_bounds_the_load_is_that_whose_limit_changes_it():
    robot = robots.spatial_biped()
    home = home_of(robot, 0.8 * home_of(robot).legs[0].length, nearest=True)
    ratio, worst = standing_torques(robot, home)[1:]
    changes = []
    for joint in robot.joints:
        effort = joint.definition.physics.effort
        changes.append(ratio - standing_torques(robot.with_parameters({f"{joint.name}.effort": 1.1 * effort}), home)[1])
    assert changes[worst] > 0.9 * max(changes) > 0.0


def test_locomotion_refuses_a_robot_that_cannot_stand():
    robot = robots.spatial_biped()
    strong = robot.with_parameters({f"{joint.name}.effort": 100.0 for joint in robot.joints})
    law = controllers.Locomotion("walk")
    home = law.start(strong, None, *law.initial_state(strong))[0].home
    needed, law = 100.0 * standing_torques(strong, home)[1], replace(law, home=home)
    for share, words in ((1.01, ""), (0.99, "cannot stand: its joints need 1.01 times their largest torques, joint")):
        weak = robot.with_parameters({f"{joint.name}.effort": share * needed for joint in robot.joints})
        if not words:
            with pytest.warns(SimulationWarning, match="walking, which loads one leg at a time, takes more"):
                law.initial_state(weak)
            continue
        with pytest.raises(DefinitionError, match=words):
            law.initial_state(weak)


def test_standing_torques_are_found_for_every_posture():
    """The simplex method fails for some of these postures, the interior-point method for none."""
    pytest.importorskip("pinocchio")
    from oracles.urdfs import all_urdfs

    robot = legged.load(next(path for key, path in all_urdfs().items() if key.endswith("/talos_reduced")))
    home, generator = home_of(robot), np.random.default_rng(0)
    for size in 10.0 ** generator.uniform(-10.0, -1.0, 300):
        posture = replace(home, angles=home.angles + size * generator.standard_normal(home.angles.size))
        torques, ratio, _ = standing_torques(robot, posture)
        assert np.all(np.isfinite(torques)) and 0.1 < ratio < 1.0


def test_a_waist_between_the_base_and_the_legs_is_not_part_of_a_leg():
    """As of robots whose base is the torso, such as ToddlerBot; the law then keeps the waist in its posture."""
    builder = RobotBuilder("biped", Link("torso", box_inertia(10.0, (0.2, 0.3, 0.4))))
    pelvis = Link("pelvis", box_inertia(2.0, (0.1, 0.2, 0.1)))
    builder.add(Revolute("waist", "z"), pelvis, to="torso", at=(0, 0, -0.3))
    sole = {f"{x}{y}": (x, y, -0.05) for x in (-0.08, 0.12) for y in (-0.04, 0.04)}
    for name, side in (("left", 1.0), ("right", -1.0)):
        above, place = "pelvis", (0.0, 0.1 * side, -0.1)
        for joint, axis, length in (("roll", "x", 0.0), ("hip", "y", 0.3), ("knee", "y", 0.3), ("ankle", "y", 0.05)):
            foot = {f"{name}_{key}": place_ for key, place_ in sole.items()} if joint == "ankle" else {}
            link = Link(f"{name}_{joint}", rod_inertia(1.0, (0, 0, 0), (0, 0, -max(length, 0.05))), foot)
            builder.add(Revolute(f"{name}_{joint}", axis), link, to=above, at=place)
            above, place = link.name, (0.0, 0.0, -length)
    robot = builder.build()
    left, right = leg_chains(robot)
    assert (left.name, right.name) == ("left", "right")
    assert left.columns == (1, 2, 3, 4) and right.columns == (5, 6, 7, 8)
    home = home_of(robot, 0.5)
    assert home.angles[0] == 0.0
    assert np.min(np.abs(home.angles[[2, 3, 4]])) > 0.1  # the leg is bent
