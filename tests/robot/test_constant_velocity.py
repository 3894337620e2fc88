"""The constant-velocity joint: closed form, the double Cardan joint and a mechanism with a loop that it equals."""

from itertools import pairwise

import numpy as np
import pytest
from oracles.cases import case_of, random_case

import legged
from legged import denoc, loops
from legged.algorithms import articulated
from legged.errors import DefinitionError
from legged.rotations import quaternion_matrix

BODY = legged.box_inertia(1.3, (0.1, 0.2, 0.3), (0.05, -0.02, 0.1))
ROUNDING = 1e-13


def shafts(joint=None, base=None, **options):
    """Return a base and an arm on a constant-velocity joint."""
    joint = joint or legged.ConstantVelocity("bend", **options)
    builder = legged.RobotBuilder("shafts", legged.Link("base", BODY), base=base or legged.FixedBase())
    return builder.add(joint, legged.Link("arm", BODY), to="base", at=(0.1, 0.2, 0.3)).build()


def rotation(robot, q):
    R, _ = legged.link_poses(robot, q)
    return R[0].T @ R[1]


@pytest.mark.parametrize("seed", range(5))
def test_the_rotation_is_about_an_axis_normal_to_the_shaft(seed):
    a, b = q = legged.random_configuration(shafts(), np.random.default_rng(seed))
    half = np.array([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b), 0.0])
    assert rotation(shafts(), q) == pytest.approx(quaternion_matrix(half), abs=ROUNDING)


@pytest.mark.parametrize("seed", range(5))
def test_angular_velocity_is_that_of_the_closed_form(seed):
    """S in the bisecting frame, which the rotation by half the bend reaches: two coordinates, no component along it."""
    robot, rng = shafts(), np.random.default_rng(seed)
    (a, b), v = q, _ = legged.random_configuration(robot, rng), rng.normal(size=2)
    half = legged.rotations.euler_matrix("xyx", np.array([a, b, 0.0]))
    S = np.array([[2.0 * np.cos(b), 0.0], [0.0, 2.0], [0.0, 0.0]])
    bias = np.array([-2.0 * np.sin(b) * v[0] * v[1], 0.0, 0.0])
    # The bisecting frame rotates by W v in its own axes, while S and v change.
    W = np.array([[np.cos(b), 0.0], [0.0, 1.0], [np.sin(b), 0.0]])
    acceleration = half @ (bias + np.cross(W @ v, S @ v))
    twist_rates = legged.point_twist_rates(robot, q, v, np.zeros(2), [("arm", np.zeros(3))])[0, :3]
    assert legged.point_jacobian(robot, q, "arm")[:3] == pytest.approx(half @ S, abs=ROUNDING)
    assert twist_rates == pytest.approx(acceleration, abs=ROUNDING * (1.0 + v @ v))


def test_both_shafts_rotate_at_the_same_speed_where_a_universal_joint_alternates():
    """Two shafts in fixed bearings at an angle: the output's speed is the input's for the constant-velocity joint."""
    ratios = {}
    for joint in (legged.ConstantVelocity("joint"), legged.Universal("joint")):
        builder = legged.RobotBuilder("drive", legged.Link("frame", BODY), base=legged.FixedBase())
        builder.add(legged.Revolute("in", "z"), legged.Link("input", BODY), to="frame")
        builder.add(joint, legged.Link("middle", BODY), to="input", at=(0.0, 0.0, 0.5))
        tree = builder.build()
        bent = legged.rpy(0.0, 0.6, 0.0)
        closed = loops.close(
            tree, legged.Revolute("out", "z"), parent="frame", child="middle", at=(0, 0, 0.5), rotation=bent
        )
        speeds = []
        for angle in np.linspace(0.0, np.pi / 2, 5):
            q = loops.assemble(closed, [angle, 0.0, 0.3], hold=["in"])
            v = loops.consistent_velocity(closed, q, [1.0, 0.0, 0.0], hold=["in"])
            speeds.append(bent[:, 2] @ legged.point_jacobian(tree, q, "middle")[:3] @ v)
        ratios[joint.kind] = np.array(speeds)
    assert ratios["constantvelocity"] == pytest.approx(1.0, abs=1e-9)  # tolerance of the assembly
    assert np.ptp(ratios["universal"]) == pytest.approx(1.0 / np.cos(0.6) - np.cos(0.6), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_dynamics_equal_those_of_a_double_cardan_joint_closed_by_couplings(seed):
    builder = legged.RobotBuilder("cardans", legged.Link("base", BODY), base=legged.FloatingBase())
    names = {"base": "base", "a": "cross", "b": "shaft", "b2": "cross2", "a2": "arm"}
    for (above, joint), axis in zip(pairwise(names), "xyyx", strict=True):
        link = legged.Link(names[joint], *([BODY] if joint == "a2" else []))
        at = (0.1, 0.2, 0.3) if joint == "a" else (0.0, 0.0, 0.0)
        builder.add(legged.Revolute(joint, axis), link, to=names[above], at=at)
    cardans = builder.couple("b2", "b").couple("a2", "a").build()
    robot = shafts(base=legged.FloatingBase())
    case = case_of(robot, seed)
    for function, rates in ((legged.inverse_dynamics, case.vdot), (legged.forward_dynamics, case.tau)):
        value = function(robot, case.q, case.v, rates)
        assert value == pytest.approx(function(cardans, case.q, case.v, rates), abs=1e-11 * np.abs(value).max())


def test_a_ball_joint_and_a_leg_with_equal_arms_bend_like_it():
    """A leg of two hinges with equal arms and a ball between them: its ball lies in the bisecting plane of the shafts.

    The leg removes one of the three motions of the ball joint at the center, the rotation about the shaft.
    """
    arm, drop = 0.4, 0.3
    builder = loops.LoopBuilder("coupling", legged.Link("input", BODY), base=legged.FixedBase())
    builder.add(legged.Spherical("center"), legged.Link("output", BODY), to="input")
    builder.add(legged.Revolute("lower", "y"), legged.Link("lower arm", BODY), to="input", at=(0, 0, -drop))
    builder.add(legged.Revolute("upper", "y"), legged.Link("upper arm", BODY), to="output", at=(0, 0, drop))
    ball = {"at": (arm, 0, drop), "child_at": (arm, 0, -drop)}
    closed = builder.close(legged.Spherical("ball"), parent="lower arm", child="upper arm", **ball).build()
    tree, rng = closed.robot, np.random.default_rng(0)
    start = tree.neutral()
    assert loops.residual(closed, start) == pytest.approx(np.zeros(3), abs=1e-14)
    assert loops.mobility(closed, start).freedoms == 2
    for _ in range(5):
        angles = rng.uniform(-0.5, 0.5, 2)
        q = start.copy()
        q[tree.joint("center").q] = legged.rotations.quaternion_exp(np.array([*angles, 0.3]))
        q = loops.assemble(closed, q)
        quaternion = q[tree.joint("center").q]
        assert quaternion[3] == pytest.approx(0.0, abs=1e-9)  # tolerance of the assembly
        bent = np.array([np.arctan2(quaternion[1], quaternion[0]), np.arcsin(quaternion[2])])
        assert rotation(shafts(), bent) == pytest.approx(quaternion_matrix(quaternion), abs=1e-8)


def test_it_transmits_bearing_loads_and_power_like_any_joint():
    """The rate of energy is the power of the two generalized forces."""
    case = case_of(shafts(base=legged.FloatingBase()), 3)
    robot, h = case.robot, 1e-6
    vdot = legged.forward_dynamics(robot, case.q, case.v, case.tau)
    energy = [
        legged.kinetic_energy(robot, q, case.v + s * vdot) + legged.potential_energy(robot, q)
        for s in (h, -h)
        for q in [legged.integrate(robot, case.q, s * case.v)]
    ]
    assert (energy[0] - energy[1]) / (2.0 * h) == pytest.approx(case.tau @ case.v, rel=1e-6)  # central differences


def test_any_perpendicular_axes_may_be_given():
    first, second = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    robot = shafts(first=first, second=second)
    a, b = q = np.array([0.4, -0.7])
    half = np.array([np.cos(a) * np.cos(b), *(np.sin(a) * np.cos(b) * first + np.sin(b) * second)])
    assert rotation(robot, q) == pytest.approx(quaternion_matrix(half), abs=ROUNDING)
    with pytest.raises(DefinitionError, match="two axes of constant-velocity joint 'bend' must be perpendicular"):
        shafts(first="x", second=(0.6, 0.8, 0.0))


def test_friction_springs_and_stops_act_on_the_two_coordinates():
    physics = legged.JointPhysics(damping=[0.5, 0.7], stiffness=[2.0, 3.0], armature=[0.1, 0.2], lower=-1.0, upper=1.0)
    robot, plain = shafts(physics=physics), shafts()
    q, v, zero = np.array([0.3, -0.4]), np.array([1.1, 0.6]), np.zeros(2)
    added = legged.inverse_dynamics(robot, q, v, zero) - legged.inverse_dynamics(plain, q, v, zero)
    assert added == pytest.approx([0.5 * 1.1 + 2.0 * 0.3, 0.7 * 0.6 - 3.0 * 0.4], abs=ROUNDING)
    difference = legged.inertia_matrix(robot, q) - legged.inertia_matrix(plain, q)
    assert difference == pytest.approx(np.diag([0.1, 0.2]), abs=ROUNDING)
    assert [body.stops for body in robot.bodies if body.stops] == [(-1.0, 1.0)] * 2
    changed = robot.with_parameters({"bend.damping": [1.5, 2.7]})
    assert legged.bias_forces(changed, q, v) - legged.bias_forces(robot, q, v) == pytest.approx([1.1, 1.2])


def test_algorithms_that_eliminate_joint_by_joint_refuse_it():
    robot = random_case(0, links=4, joints=("constantvelocity",)).robot
    assert set(robot.coupled_joints) == {joint.name for joint in robot.joints} and not robot.followers
    with pytest.raises(DefinitionError, match="constant-velocity joints do not allow: 'joint0'"):
        articulated.forward_dynamics(robot, *np.zeros((3, robot.nv)))
    with pytest.raises(DefinitionError, match="joint 'joint0' is a constant-velocity joint"):
        denoc.udu(robot, robot.neutral())


def test_a_file_has_four_hinges_of_which_two_follow(tmp_path):
    path = legged.save_urdf(shafts(), tmp_path / "shafts.urdf")
    assert legged.load(path).joint("bend").kind == "constantvelocity"  # of the description in the file
    chain = legged.load(path, "fixed", feet=[])  # of its elements
    assert [(f.name, f.master) for f in chain.followers] == [("bend_3", "bend_2"), ("bend_4", "bend_1")]
    q, vdot = np.array([0.3, -0.5]), np.array([0.2, 0.7])
    forces = legged.inverse_dynamics(shafts(), q, vdot, vdot)
    assert legged.inverse_dynamics(chain, q, vdot, vdot) == pytest.approx(forces, abs=1e-12)
