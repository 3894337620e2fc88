"""States by name: setting and reading of named parts, and errors for invalid values."""

import numpy as np
import pytest
from mpmath import mp, mpf
from oracles.cases import random_case

import legged
from legged import EulerBase, FixedBase, PlanarBase
from legged.errors import NotFiniteError, ShapeError, StateError, UnknownNameError
from legged.robot.construction.random_tree import ALL_JOINTS
from legged.rotations import quaternion_matrix

SEEDS = range(30)
TURN = np.array([0.3, -0.4, 1.2])  # roll, pitch, yaw [rad]


def robot_on(base):
    """Return a trunk on a base with a revolute, a prismatic, a universal and a quaternion ball joint."""
    builder = legged.RobotBuilder("dog", legged.Link("trunk", legged.box_inertia(4.0, (1.0, 0.5, 0.2))), base=base)
    for joint in (
        legged.Revolute("FL_hip", "x"),
        legged.Prismatic("FR_slide", "z"),
        legged.Universal("RL_hip", "x", "y"),
        legged.Spherical("RR_ball"),
    ):
        builder.add(
            joint, legged.Link(f"{joint.name}_leg", legged.sphere_inertia(1.0, 0.1, (0.1, 0.2, -0.3))), to="trunk"
        )
    return builder.build()


@pytest.fixture(scope="module")
def dog():
    return robot_on(legged.FloatingBase())


def test_kinematics_of_a_named_state_give_its_poses_and_velocities(dog):
    """Pose and twist of the trunk from kinematics are those given by name."""
    omega, velocity = np.array([0.1, 0.2, -0.3]), np.array([1.0, -2.0, 0.5])
    for base in (legged.FloatingBase(), EulerBase("xyz"), EulerBase("zxz")):
        robot = robot_on(base)
        q, v = robot.state(
            base_position=(1.0, 2.0, 0.4),
            base_orientation=TURN,
            base_linear_velocity=velocity,
            base_angular_velocity=omega,
            joints={"FL_hip": 0.1, "RL_hip": (0.2, 0.3)},
            joint_velocities={"FR_slide": -0.7, "RR_ball": (1.0, 2.0, 3.0)},
        )
        R, o = legged.frame_pose(robot, q, "trunk")
        np.testing.assert_allclose(R, legged.rpy(*TURN), atol=1e-14)
        np.testing.assert_allclose(o, (1.0, 2.0, 0.4))
        np.testing.assert_allclose(legged.frame_twist(robot, q, v, "trunk"), [*omega, *velocity], atol=1e-13)
        assert q[robot.joint("FL_hip").q] == 0.1
        assert q[robot.joint("RL_hip").q].tolist() == [0.2, 0.3]
        assert v[robot.joint("FR_slide").v] == -0.7
        assert v[robot.joint("RR_ball").v].tolist() == [1.0, 2.0, 3.0]
        assert q[robot.joint("RR_ball").q].tolist() == [1.0, 0.0, 0.0, 0.0]
        assert np.count_nonzero(q[base.nq :]) == 4  # the three angles, and the ball's w
        assert np.count_nonzero(v[base.nv :]) == 4


@pytest.mark.parametrize("seed", SEEDS)
def test_named_state_is_the_inverse_of_state(seed):
    others = {"links": 8, "joints": ALL_JOINTS, "coupled": True, "shuffled": True}
    case = random_case(seed, **others) if seed % 2 else random_case(seed)
    robot, q, v = case.robot, case.q, case.v
    again = robot.state(**robot.named_state(q, v))
    np.testing.assert_allclose(again.q[robot.base.nq :], q[robot.base.nq :], atol=1e-15)
    R, o = legged.link_poses(robot, q)
    R_again, o_again = legged.link_poses(robot, again.q)
    np.testing.assert_allclose(R_again, R, atol=1e-12)
    np.testing.assert_allclose(o_again, o, atol=1e-12)
    np.testing.assert_allclose(legged.link_twists(robot, *again), legged.link_twists(robot, q, v), atol=1e-10)


def test_orientations_are_the_same_in_every_form(dog):
    R = legged.rpy(*TURN)
    (p, _), (q, _) = dog.state(base_orientation=TURN), dog.state(base_orientation=R)
    np.testing.assert_allclose(p, q, atol=1e-15)
    quaternion = -p[:4]  # the same orientation; the sign is preserved
    q, _ = dog.state(base_orientation=quaternion, joints={"RR_ball": R})
    np.testing.assert_allclose(q[:4], quaternion, atol=1e-15)
    np.testing.assert_allclose(quaternion_matrix(q[dog.joint("RR_ball").q]), R, atol=1e-15)


def test_the_default_state_is_neutral_and_at_rest(dog):
    q, v = dog.state()
    np.testing.assert_array_equal(q, dog.neutral())
    assert not v.any()


def test_values_are_read_by_name_along_a_motion(dog):
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(7, dog.nq)), rng.normal(size=(7, dog.nv))
    values, rates = dog.joint_values(q), dog.joint_rates(v)
    assert list(values) == list(rates) == [joint.name for joint in dog.joints]
    np.testing.assert_array_equal(values["FL_hip"], q[:, dog.joint("FL_hip").q.start])
    assert values["RR_ball"].shape == (7, 4)
    assert rates["RL_hip"].shape == (7, 2)


def test_bases_reject_poses_and_velocities_that_they_cannot_have():
    planar, fixed = robot_on(PlanarBase()), robot_on(FixedBase())
    q, v = planar.state(base_position=(1.0, 0.0, 0.5), base_orientation=(0.0, 0.3, 0.0), base_linear_velocity=(1, 0, 2))
    np.testing.assert_allclose(q[:3], (0.3, 1.0, 0.5))
    np.testing.assert_allclose(v[:3], (0.0, 1.0, 2.0))
    for wrong in (
        {"base_position": (1.0, 0.1, 0.5)},
        {"base_orientation": TURN},
        {"base_linear_velocity": (0.0, 1.0, 0.0)},
        {"base_angular_velocity": (0.0, 0.0, 1.0)},
    ):
        (what,) = wrong
        with pytest.raises(StateError, match=f"the base of 'dog' is planar, .* cannot have {what}"):
            planar.state(**wrong)
    for wrong in ({"base_position": (0.0, 0.0, 0.1)}, {"base_angular_velocity": (0.0, 1.0, 0.0)}):
        with pytest.raises(StateError, match="the base of 'dog' is fixed"):
            fixed.state(**wrong)
    locked = robot_on(EulerBase("zyx"))
    with pytest.raises(StateError, match="gimbal lock: it cannot have base_angular_velocity"):
        locked.state(base_orientation=(0.0, np.pi / 2, 0.0), base_angular_velocity=(1.0, 0.0, 0.0))
    assert set(fixed.named_state(*fixed.state())) == {"joints", "joint_velocities"}


def test_a_value_for_a_coupled_joint_raises_an_error():
    finger = legged.Link("finger", legged.sphere_inertia(0.1, 0.02, (0.0, 0.0, 0.1)))
    builder = legged.RobotBuilder("gripper", legged.Link("palm"), base=FixedBase())
    for side in "ab":
        builder.add(legged.Prismatic(side, "x"), finger.prefixed(f"{side}_"), to="palm")
    robot = builder.couple("b", "a", ratio=-2.0, offset=0.01).build()
    q, _ = robot.state(joints={"a": 0.03})
    assert legged.frame_pose(robot, q, "b_finger").position[0] == pytest.approx(-0.05)
    for part in ("joints", "joint_velocities"):
        with pytest.raises(
            StateError, match="joint 'b' follows 'a' and has no value of its own: its position is -2 times"
        ):
            robot.state(**{part: {"b": 0.1}})


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"joints": {"FL_hipp": 0.1}}, UnknownNameError, "no joint named 'FL_hipp'; did you mean 'FL_hip'"),
        ({"joint_velocities": {"FL": 0.1}}, UnknownNameError, "no joint named 'FL'"),
        ({"joints": {"RL_hip": 0.1}}, ShapeError, r"the value of joint 'RL_hip' must be \(2,\), got shape \(\)"),
        ({"joints": {"FL_hip": (0.1, 0.2)}}, ShapeError, "must be one number, got shape"),
        ({"joint_velocities": {"RR_ball": 1.0}}, ShapeError, r"the velocity of joint 'RR_ball' must be \(3,\)"),
        ({"joints": {"FL_hip": np.nan}}, NotFiniteError, "the value of joint 'FL_hip' must be finite"),
        ({"base_position": (0.0, 1.0)}, ShapeError, r"base_position must be \(3,\)"),
        ({"base_orientation": (0.0, 1.0)}, ShapeError, r"quaternion \(4,\), roll-pitch-yaw \(3,\) or a matrix"),
        ({"base_orientation": (1.0, 1.0, 0.0, 0.0)}, StateError, "norm 1.41421356, it must be 1 .w first."),
        ({"base_orientation": np.diag([1.0, 1.0, -1.0])}, StateError, "base_orientation is not a rotation"),
        ({"base_orientation": (np.inf, 0.0, 0.0)}, NotFiniteError, "base_orientation must be finite"),
    ],
)
def test_misfits_raise_errors_by_name(dog, wrong, error, words):
    with pytest.raises(error, match=words):
        dog.state(**wrong)


@pytest.mark.parametrize("seed", range(12))
def test_differences_are_traced_and_exact_in_any_type(seed):
    """difference is the inverse of integrate, and its derivative at equal configurations is the identity."""
    case = random_case(seed, joints=ALL_JOINTS)
    robot, q = case.robot, case.q
    kernel = legged.compile(legged.difference, robot)
    for size in (0.0, 1e-9, 0.4):
        moved = legged.integrate(robot, q, size * case.v)
        assert kernel(q, moved) == pytest.approx(legged.difference(robot, q, moved), abs=1e-14)
        if size * np.abs(case.v).max() < 2.0:  # rotations within pi
            assert kernel(q, moved) == pytest.approx(size * case.v, abs=1e-12)

    def forth_and_back(dq):
        return legged.difference(robot, q, legged.integrate(robot, q, dq))

    derivative = legged.jacobian(forth_and_back, 0)
    assert derivative(np.zeros(robot.nv)) == pytest.approx(np.eye(robot.nv), abs=1e-12)
    with mp.workdps(30):
        exact = [mpf(x) for x in q]
        moved = legged.integrate(robot, exact, np.array([mpf(1) / 7] * robot.nv, object))
        unit = legged.difference(robot, exact, moved)
        assert max(abs(x - mpf(1) / 7) for x in unit) < 1e-14  # the quaternions of q have a rounded norm
