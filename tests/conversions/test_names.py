"""Joints and messages are matched by name; mismatches raise errors with the name."""

import numpy as np
import pytest
from oracles.cases import case_of
from oracles.programs.drake_plant import plant_of

import legged
from legged import conversions
from legged.errors import MismatchError, NotFiniteError, ShapeError, UnknownNameError

ROBOT = legged.random_tree(2, 12, joints=("revolute", "prismatic"), bases=("floating",))
NAMES = [joint.name for joint in ROBOT.joints]


def test_joints_are_matched_by_name_whatever_their_order():
    shuffled = list(np.random.default_rng(0).permutation(NAMES))
    theirs = conversions.drake(ROBOT, plant_of(shuffled))
    q = ROBOT.neutral()
    for number, name in enumerate(NAMES):
        q[ROBOT.joint(name).q] = 0.1 * number
    for place, name in enumerate(shuffled):
        assert theirs.to_configuration(q)[7 + place] == 0.1 * NAMES.index(name)


def test_a_follower_gets_its_place_and_leaves_its_force_to_its_master():
    body = legged.box_inertia(1.0, (0.1, 0.1, 0.1))
    builder = legged.RobotBuilder("hand", legged.Link("palm", body), base=legged.FixedBase())
    builder.add(legged.Revolute("finger"), legged.Link("a", body), to="palm")
    builder.add(legged.Revolute("thumb"), legged.Link("b", body), to="palm", at=(0.1, 0, 0))
    robot = builder.couple("thumb", "finger", -0.5, 0.2).build()
    theirs = conversions.drake(robot, plant_of(["thumb", "finger"], floating=False))
    q, v, vdot, tau = (np.array([x]) for x in (0.8, 2.0, 3.0, 7.0))
    assert np.allclose(theirs.to_configuration(q), [0.2 - 0.4, 0.8])
    assert np.allclose(theirs.to_velocity(q, v), [-1.0, 2.0])
    assert np.allclose(theirs.to_acceleration(q, v, vdot), [-1.5, 3.0])
    assert np.allclose(theirs.to_force(q, tau), [0.0, 7.0])
    assert np.allclose(theirs.from_force([0.0, 0.8], [4.0, 7.0]), [7.0 - 0.5 * 4.0])
    assert np.allclose(theirs.from_configuration([9.0, 0.8]), [0.8])  # what follows is not asked
    alone = conversions.drake(robot, plant_of(["finger"], floating=False))
    assert np.allclose(alone.to_configuration(q), [0.8])


def test_ros_messages_hold_joints_by_name_and_the_base_as_odometry():
    case = case_of(ROBOT, 4)
    message = conversions.ros(ROBOT, NAMES[::-1]).joint_state(case.q, case.v, case.tau)
    assert message.name == tuple(NAMES[::-1])
    assert np.array_equal(message.position, case.q[:6:-1]) and np.array_equal(message.velocity, case.v[:5:-1])
    assert np.array_equal(message.effort, case.tau[:5:-1])
    ros = conversions.ros(ROBOT)
    odometry = ros.odometry(case.q, case.v)
    assert np.array_equal(odometry.position, case.q[4:7]) and np.array_equal(odometry.orientation, case.q[[1, 2, 3, 0]])
    assert np.array_equal(odometry.linear, case.v[3:6]) and np.array_equal(odometry.angular, case.v[:3])
    q, v = ros.state(message, odometry)
    assert np.array_equal(q, case.q) and np.array_equal(v, case.v)
    assert np.array_equal(ros.forces(case.q, message)[6:], case.tau[6:]) and not ros.forces(case.q, message)[:6].any()


def test_ros_messages_of_a_fixed_robot_need_no_odometry():
    robot = legged.random_tree(3, 5, joints=("revolute", "universal"), bases=("fixed",))
    case, ros = case_of(robot, 0), conversions.ros(robot)
    q, v = ros.state(ros.joint_state(case.q, case.v))
    assert np.array_equal(q, case.q) and np.array_equal(v, case.v)
    with pytest.raises(MismatchError, match="no floating base"):
        ros.odometry(case.q, case.v)


def test_missing_and_foreign_joints_are_named():
    with pytest.raises(UnknownNameError, match=f"joint in Drake named '{NAMES[-1]}'"):
        conversions.drake(ROBOT, plant_of(NAMES[:-1]))
    with pytest.raises(MismatchError, match="Drake has joints that robot 'random tree 2' does not have: 'tail'"):
        conversions.drake(ROBOT, plant_of([*NAMES, "tail"]))
    with pytest.raises(MismatchError, match="needs one free joint between the world and it; found: none"):
        conversions.drake(ROBOT, plant_of(NAMES, floating=False))
    ball = legged.random_tree(0, 1, joints=("ball",), bases=("fixed",))
    with pytest.raises(MismatchError, match="has 3 degrees of freedom of kind 'spherical' here, and in Drake 1"):
        conversions.drake(ball, plant_of([ball.joints[0].name], floating=False))
    with pytest.raises(MismatchError, match="'spherical' here, and in the joint state 1"):
        conversions.ros(ball)


def test_joint_states_that_do_not_fit_are_refused():
    ros = conversions.ros(ROBOT)
    case = case_of(ROBOT, 0)
    good, odometry = ros.joint_state(case.q, case.v), ros.odometry(case.q, case.v)
    with pytest.raises(MismatchError, match=f"lacks '{NAMES[0]}'; it has unknown joints 'tail'"):
        ros.state(good._replace(name=("tail", *NAMES[1:])), odometry)
    with pytest.raises(MismatchError, match=f"has twice '{NAMES[0]}'"):
        ros.state(good._replace(name=(*NAMES, NAMES[0])), odometry)
    with pytest.raises(ShapeError, match=rf"{len(NAMES)} names and a velocity of shape \(0,\)"):
        ros.state(good._replace(velocity=[]), odometry)
    with pytest.raises(MismatchError, match="has a floating base; pass its odometry"):
        ros.state(good)
    with pytest.raises(ShapeError, match="must have norm 1, got 0; divide"):
        ros.state(good, odometry._replace(orientation=np.zeros(4)))


def test_vectors_of_the_wrong_form_are_refused():
    theirs = conversions.drake(ROBOT, plant_of(NAMES))
    q, v = ROBOT.neutral(), np.zeros(ROBOT.nv)
    with pytest.raises(ShapeError, match=r"^q must be \(..., 19\), got shape \(18,\)"):
        theirs.to_configuration(q[1:])
    with pytest.raises(ShapeError, match=r"^Drake's v must be \(..., 18\), got shape \(19,\)"):
        theirs.from_velocity(q, q)
    with pytest.raises(NotFiniteError, match="tau must be finite, got nan"):
        theirs.to_force(q, v * np.nan)
    with pytest.raises(ShapeError, match="quaternion of Drake's q must have norm 1, got 2"):
        theirs.from_configuration(q * 2.0)
    with pytest.raises(ShapeError, match="leading axes of q, v differ"):
        theirs.to_velocity(np.tile(q, (3, 1)), np.tile(v, (2, 1)))
