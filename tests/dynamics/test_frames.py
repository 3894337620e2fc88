"""Frames by name against finite differences and Pinocchio, and the meaning of axes and names."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from oracles import differences
from oracles.cases import random_case

import legged
from legged import Frame
from legged.errors import UnknownNameError
from legged.rotations import rotation_error
from legged.spatial import factor_symmetric, skew

CASES = [
    *(random_case(seed) for seed in range(8)),
    *(random_case(seed, links=8, physics=True, coupled=True, shuffled=True) for seed in range(4)),
]
TURN = legged.rpy(0.4, -1.1, 2.0)


def frames_of(robot):
    """Return a link, a contact point if there is one, and a frame displaced from each."""
    rng = np.random.default_rng(robot.nv)
    link = str(rng.choice([link.name for link in robot.links]))
    frames = [link, Frame(link, (0.3, -0.2, 0.1), TURN)]
    if robot.contacts:
        contact = str(rng.choice([point.name for point in robot.contacts]))
        frames += [contact, Frame(contact, (0.0, 0.1, -0.3), TURN)]
    return frames


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_jacobian_and_twist_are_the_rate_of_the_pose(case):
    robot, q, v = case.robot, case.q, case.v
    for frame in frames_of(robot):
        R = legged.frame_pose(robot, q, frame).rotation
        turning = differences.rate(robot, lambda q, v, f=frame: legged.frame_pose(robot, q, f).rotation, q, v)
        velocity = differences.rate(robot, lambda q, v, f=frame: legged.frame_pose(robot, q, f).position, q, v)
        t = legged.frame_twist(robot, q, v, frame)
        np.testing.assert_allclose(turning, skew(t[:3]) @ R, atol=1e-7)  # differences: 1e-10 of 100 rad/s
        np.testing.assert_allclose(velocity, t[3:], atol=1e-7)
        np.testing.assert_allclose(legged.frame_jacobian(robot, q, frame) @ v, t, atol=1e-11)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_acceleration_is_the_rate_of_the_twist_in_world_axes(case):
    robot, q, v, vdot = case.robot, case.q, case.v, case.vdot
    for frame in frames_of(robot):
        rate = differences.rate(robot, lambda q, v, f=frame: legged.frame_twist(robot, q, v, f), q, v, vdot)
        ours = legged.frame_acceleration(robot, q, v, vdot, frame)
        np.testing.assert_allclose(rate, ours, atol=1e-8 * (1.0 + np.abs(ours).max()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_axes_only_rotate_the_components(case):
    robot, q, v, vdot = case.robot, case.q, case.v, case.vdot
    other = robot.links[-1].name
    for frame in frames_of(robot):
        for axes, R in (
            ("local", legged.frame_pose(robot, q, frame).rotation),
            (other, legged.frame_pose(robot, q, other).rotation),
            (Frame(other, rotation=TURN), legged.frame_pose(robot, q, other).rotation @ TURN),
        ):
            functions: list[tuple[Callable, tuple]] = [
                (legged.frame_jacobian, ()),
                (legged.frame_twist, (v,)),
                (legged.frame_acceleration, (v, vdot)),
            ]
            for function, rest in functions:
                world, turned = function(robot, q, *rest, frame), function(robot, q, *rest, frame, axes)
                np.testing.assert_allclose(R @ turned[:3], world[:3], atol=1e-11 * (1 + np.abs(world).max()))
                np.testing.assert_allclose(R @ turned[3:], world[3:], atol=1e-11 * (1 + np.abs(world).max()))


@pytest.mark.parametrize("seed", range(12))
def test_frames_equal_pinocchios(seed):
    pin = pytest.importorskip("pinocchio")
    from oracles.programs.pinocchio_model import pinocchio_twin

    case = random_case(seed)
    robot, q, v, vdot = case.robot, case.q, case.v, case.vdot
    twin = pinocchio_twin(robot)
    link, at = robot.links[len(robot.links) // 2].name, np.array([0.3, -0.2, 0.1])
    joint, place = twin.where[link]
    here = pin.Frame("sensor", joint, 0, place * pin.SE3(TURN, at), pin.FrameType.OP_FRAME)
    model = twin.model
    number = model.addFrame(here)
    data = model.createData()
    pin.forwardKinematics(model, data, twin.q(q), twin.v(v), twin.v(vdot))
    pin.computeJointJacobians(model, data, twin.q(q))
    pin.updateFramePlacements(model, data)
    frame = Frame(link, at, TURN)
    pose = legged.frame_pose(robot, q, frame)
    np.testing.assert_allclose(pose.rotation, data.oMf[number].rotation, atol=1e-12)
    np.testing.assert_allclose(pose.position, data.oMf[number].translation, atol=1e-12)
    for axes, theirs in (("world", pin.LOCAL_WORLD_ALIGNED), ("local", pin.LOCAL)):
        jacobian = twin.ours(pin.getFrameJacobian(model, data, number, theirs))[[3, 4, 5, 0, 1, 2]]
        np.testing.assert_allclose(legged.frame_jacobian(robot, q, frame, axes), jacobian, atol=1e-12)
        twist = pin.getFrameVelocity(model, data, number, theirs)
        ours = legged.frame_twist(robot, q, v, frame, axes)
        np.testing.assert_allclose(ours, np.concatenate([twist.angular, twist.linear]), atol=1e-10)
        rate = pin.getFrameClassicalAcceleration(model, data, number, theirs)
        ours = legged.frame_acceleration(robot, q, v, vdot, frame, axes)
        expected = np.concatenate([rate.angular, rate.linear])
        np.testing.assert_allclose(ours, expected, atol=1e-11 * (1 + np.abs(expected).max()))


def test_pose_relative_to_a_frame_composes():
    case = random_case(3)
    robot, q = case.robot, case.q
    first, last = robot.links[1].name, Frame(robot.links[-1].name, (0.1, 0.2, 0.3), TURN)
    a, b = legged.frame_pose(robot, q, first), legged.frame_pose(robot, q, last)
    ab = legged.frame_pose(robot, q, last, relative_to=first)
    np.testing.assert_allclose(a.rotation @ ab.rotation, b.rotation, atol=1e-13)
    np.testing.assert_allclose(a.rotation @ ab.position + a.position, b.position, atol=1e-12)
    assert np.abs(rotation_error(legged.frame_pose(robot, q, last, relative_to=last).rotation)).max() < 1e-14


def test_compiled_frames_take_batches():
    case = random_case(5)
    robot = case.robot
    q = np.array([legged.random_configuration(robot, np.random.default_rng(k)) for k in range(6)])
    frame = Frame(robot.links[-1].name, (0.1, 0.2, 0.3), TURN)
    jacobian = legged.compile(partial(legged.frame_jacobian, frame=frame, axes="local"), robot)
    twist = legged.compile(partial(legged.frame_twist, frame=frame, axes=robot.links[1].name), robot)
    for k in range(6):
        plain = legged.frame_jacobian(robot, q[k], frame, "local")
        np.testing.assert_allclose(jacobian(q)[k], plain, atol=1e-13)
        plain = legged.frame_twist(robot, q[k], case.v, frame, robot.links[1].name)
        np.testing.assert_allclose(twist(q, case.v)[k], plain, atol=1e-11)


def test_a_link_named_world_is_available_as_a_frame():
    robot = legged.RobotBuilder("globe", legged.Link("world", legged.sphere_inertia(2.0, 0.1))).build()
    q, _ = robot.state(base_position=(1.0, 2.0, 3.0))
    pose = legged.frame_pose(robot, q, Frame("world", (0.1, 0.0, 0.0)))
    np.testing.assert_allclose(pose.position, (1.1, 2.0, 3.0))
    np.testing.assert_allclose(legged.frame_pose(robot, q, Frame("world"), relative_to=Frame("world")).position, 0.0)


def test_links_take_precedence_over_contact_points_and_unknown_names_raise_errors():
    foot = legged.Link("foot", legged.point_mass(1.0), {"foot": (0.0, 0.0, -0.1), "heel": (-0.1, 0.0, 0.0)})
    builder = legged.RobotBuilder("hopper", legged.Link("trunk", legged.sphere_inertia(2.0, 0.1)))
    robot = builder.add(legged.Prismatic("leg", "z"), foot, to="trunk", at=(0, 0, -0.5)).build()
    q = robot.neutral()
    np.testing.assert_allclose(legged.frame_pose(robot, q, "foot").position, (0, 0, -0.5))
    np.testing.assert_allclose(legged.frame_pose(robot, q, "heel").position, (-0.1, 0, -0.5))
    for call in (
        lambda: legged.frame_pose(robot, q, "footh"),
        lambda: legged.frame_jacobian(robot, q, "heel", axes="footh"),
        lambda: legged.frame_pose(robot, q, "heel", relative_to="footh"),
    ):
        with pytest.raises(UnknownNameError, match="no link or contact point named 'footh'; did you mean 'foot'"):
            call()


def test_a_matrix_without_a_positive_pivot_gives_nan():
    for S in (np.zeros((1, 1)), np.ones((2, 2)), np.diag([1.0, -1.0])):
        _, reciprocal = factor_symmetric(S)
        assert np.isnan(reciprocal[-1])
