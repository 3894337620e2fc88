"""Vectors carried to Pinocchio, MuJoCo, Drake and ROS and back say the same there as here.

Their programs are asked for inverse and forward dynamics of the same robot in the converted state; forces are compared
in parts of the largest, accelerations too. Random robots are conditioned up to 1e6: 1e-9 is promised.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from oracles.cases import case_of, random_case

import legged
from legged import conversions
from legged.conversions.charts import (
    DRAKE,
    MUJOCO,
    OUR_BASE,
    OUR_JOINT,
    PINOCCHIO,
    Ball,
    Chart,
    Circle,
    Free,
    TurningPlane,
)
from legged.errors import MismatchError, NotFiniteError, ShapeError, UnknownNameError
from legged.rotations import quaternion_exp, quaternion_matrix, quaternion_product

PROMISED = 1e-9
ROBOT = legged.random_tree(2, 12, joints=("revolute", "prismatic"), bases=("floating",))
NAMES = [joint.name for joint in ROBOT.joints]
CHARTS = {
    "the same": Chart(),
    "ball": Ball(),
    "circle": Circle(),
    "turning plane": TurningPlane(),
    "base to Pinocchio": Free(OUR_BASE, PINOCCHIO),
    "base to MuJoCo": Free(OUR_BASE, MUJOCO),
    "base to Drake": Free(OUR_BASE, DRAKE),
    "free joint to Pinocchio": Free(OUR_JOINT, PINOCCHIO),
    "free joint to MuJoCo": Free(OUR_JOINT, MUJOCO),
    "free joint to Drake": Free(OUR_JOINT, DRAKE),
}


def close(found, expected, tolerance=PROMISED):
    return np.abs(found - expected).max(initial=0.0) <= tolerance * max(np.abs(expected).max(initial=0.0), 1.0)


def vectors(conversion, seed):
    """Return random (q, v, vdot, tau) of a conversion's robot, with a leading axis of 5."""
    robot, rng = conversion.robot, np.random.default_rng(seed)
    q = np.stack([legged.random_configuration(robot, rng) for _ in range(5)])
    return q, *rng.normal(size=(3, 5, robot.nv))


def compare_dynamics(conversion, case, inverse, forward):
    """Check a program's inverse(q, v, a) and forward(q, v, f) in its own vectors against ours."""
    robot, q, v, vdot, tau = case.robot, case.q, case.v, case.vdot, case.tau
    their_q, their_v = conversion.to_configuration(q), conversion.to_velocity(q, v)
    forces = inverse(their_q, their_v, conversion.to_acceleration(q, v, vdot))
    assert close(conversion.from_force(their_q, forces), legged.inverse_dynamics(robot, q, v, vdot)), case.label
    rates = forward(their_q, their_v, conversion.to_force(q, tau))
    found = conversion.from_acceleration(their_q, their_v, rates)
    assert close(found, legged.forward_dynamics(robot, q, v, tau)), case.label


def loaded(case, tmp_path):
    """Return the robot of the case exported to URDF and loaded again, so that its joints are the file's."""
    path, base = tmp_path / "robot.urdf", "floating" if case.robot.base.kind == "floating" else "fixed"
    return path, legged.load(legged.save_urdf(case.robot, path), base=base)


def pinocchio_of(path, robot):
    pin = pytest.importorskip("pinocchio")
    floats = robot.base.kind == "floating"
    model = (
        pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer()) if floats else pin.buildModelFromUrdf(str(path))
    )
    model.gravity.linear = np.array(robot.gravity)
    return pin, model, model.createData()


@pytest.mark.parametrize("seed", range(20))
def test_dynamics_in_pinocchios_vectors_are_pinocchios(seed, tmp_path):
    """Through an exported URDF, whose joints are continuous: a cosine and a sine there."""
    case = random_case(seed, joints=("revolute", "prismatic", "universal", "spherical", "planar", "fixed"))
    path, robot = loaded(case, tmp_path)
    pin, model, data = pinocchio_of(path, robot)
    compare_dynamics(
        conversions.pinocchio(robot, model),
        case_of(robot, seed),
        lambda q, v, a: pin.rnea(model, data, q, v, a),
        lambda q, v, f: pin.aba(model, data, q, v, f),
    )


def test_pinocchios_ball_planar_and_free_joints_are_ours():
    pin = pytest.importorskip("pinocchio")
    body = legged.box(1.5, (0.2, 0.3, 0.1), (0.1, 0.05, -0.2))
    builder = legged.RobotBuilder("joints", legged.Link("trunk", body))
    builder.add(legged.Spherical("ball"), legged.Link("a", body), to="trunk", at=(0.1, 0.2, 0.3))
    builder.add(legged.Planar("plane"), legged.Link("b", body), to="a", at=(0.3, 0.0, 0.1))
    robot = builder.add(legged.Free("free"), legged.Link("c", body), to="trunk", at=(-0.3, 0.2, 0.0)).build()
    model = pin.Model()
    inertia = pin.Inertia(body.mass, np.asarray(body.center), np.asarray(body.tensor))
    trunk = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    ball = model.addJoint(trunk, pin.JointModelSpherical(), pin.SE3(np.eye(3), np.array([0.1, 0.2, 0.3])), "ball")
    plane = model.addJoint(ball, pin.JointModelPlanar(), pin.SE3(np.eye(3), np.array([0.3, 0.0, 0.1])), "plane")
    free = model.addJoint(trunk, pin.JointModelFreeFlyer(), pin.SE3(np.eye(3), np.array([-0.3, 0.2, 0.0])), "free")
    for joint in (trunk, ball, plane, free):
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    data = model.createData()
    for seed in range(5):
        compare_dynamics(
            conversions.pinocchio(robot, model),
            case_of(robot, seed),
            lambda q, v, a: pin.rnea(model, data, q, v, a),
            lambda q, v, f: pin.aba(model, data, q, v, f),
        )


@pytest.mark.parametrize("seed", range(20))
def test_dynamics_in_mujocos_vectors_are_mujocos(seed):
    """Of robots with joints of every kind, and bases of every kind."""
    pytest.importorskip("mujoco")
    from oracles.mujoco_model import acceleration, compiled, inverse

    case = random_case(seed)
    model = compiled(case.robot)
    compare_dynamics(
        conversions.mujoco(case.robot, model),
        case,
        lambda q, v, a: inverse(model, q, v, a),
        lambda q, v, f: acceleration(model, q, v, f),
    )


def test_mujoco_reads_an_exported_urdf_in_the_same_vectors(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    from oracles.mujoco_model import acceleration, inverse

    robot = legged.random_tree(5, 8, joints=("revolute", "prismatic", "ball"), bases=("fixed",))
    model = mujoco.MjModel.from_xml_path(str(legged.save_urdf(robot, tmp_path / "robot.urdf")))
    compare_dynamics(
        conversions.mujoco(robot, model),
        case_of(robot, 5),
        lambda q, v, a: inverse(model, q, v, a),
        lambda q, v, f: acceleration(model, q, v, f),
    )


@pytest.mark.parametrize("seed", range(10))
def test_dynamics_in_drakes_vectors_are_drakes(seed, tmp_path):
    """Where Drake is installed; `test_a_base_in_drakes_vectors...` checks its documented conventions without it."""
    plant_module = pytest.importorskip("pydrake.multibody.plant")
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.tree import MultibodyForces

    case = random_case(seed, joints=("revolute", "prismatic", "universal", "fixed"), bases=("floating",))
    path, robot = loaded(case, tmp_path)
    plant = plant_module.MultibodyPlant(0.0)
    Parser(plant).AddModels(str(path))
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    plant.Finalize()
    context = plant.CreateDefaultContext()

    def inverse(q, v, a):
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        return plant.CalcInverseDynamics(context, a, forces)

    def forward(q, v, f):
        mass = np.stack([inverse(q, v, a) for a in np.eye(len(v))], axis=1) - inverse(q, v, np.zeros(len(v)))[:, None]
        return np.linalg.solve(mass, f - inverse(q, v, np.zeros(len(v))))

    compare_dynamics(conversions.drake(robot, plant), case_of(robot, seed), inverse, forward)


@pytest.mark.parametrize("name", CHARTS)
def test_charts_go_there_and_back(name):
    chart, rng = CHARTS[name], np.random.default_rng(0)
    q, v = state_of(chart, rng)
    vdot, tau = rng.normal(size=(2, *v.shape))
    there = chart.theirs(q)
    assert close(chart.ours(there), q, 1e-14)
    assert close(chart.our_velocity(q, chart.their_velocity(q, v)), v, 1e-14)
    assert close(chart.our_acceleration(q, v, chart.their_acceleration(q, v, vdot)), vdot, 1e-13)
    assert close(chart.our_force(q, chart.their_force(q, tau)), tau, 1e-14)
    power = (tau * v).sum(-1)
    assert close((chart.their_force(q, tau) * chart.their_velocity(q, v)).sum(-1), power, 1e-13)


@pytest.mark.parametrize("name", CHARTS)
def test_their_acceleration_is_the_rate_of_their_velocity(name):
    """Along q(t) with constant vdot, to the error of a central difference with a step of 1e-5."""
    chart, rng, h = CHARTS[name], np.random.default_rng(1), 1e-5
    q, v = (x[0] for x in state_of(chart, rng))
    vdot = rng.normal(size=v.shape)
    ahead, behind = (chart.their_velocity(moved(chart, q, v, vdot, t), v + t * vdot) for t in (h, -h))
    assert close(chart.their_acceleration(q, v, vdot), (ahead - behind) / (2 * h), 1e-8)


def state_of(chart, rng):
    """Return random q and v of a chart, ours, with a leading axis of 4."""
    if isinstance(chart, Free):
        q = rng.normal(size=(4, 7))
        turn = q[:, :4] if chart.here == OUR_BASE else q[:, 3:]
        turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
        return q, rng.normal(size=(4, 6))
    if isinstance(chart, Ball):
        q = rng.normal(size=(4, 4))
        return q / np.linalg.norm(q, axis=-1, keepdims=True), rng.normal(size=(4, 3))
    n = 3 if isinstance(chart, TurningPlane) else 1
    return rng.uniform(-3, 3, (4, n)), rng.normal(size=(4, n))


def moved(chart, q, v, vdot, t):
    """Return q after a time t, ours, to t^2."""
    step = t * v + 0.5 * t * t * vdot
    if isinstance(chart, Ball):
        return quaternion_product(q, quaternion_exp(step))
    if not isinstance(chart, Free):
        return q + step
    if chart.here == OUR_JOINT:
        return np.concatenate([q[:3] + step[:3], quaternion_product(q[3:], quaternion_exp(step[3:]))])
    turned = quaternion_product(q[:4], quaternion_exp(step[:3]))
    middle = quaternion_matrix(quaternion_product(q[:4], quaternion_exp(0.5 * step[:3])))
    return np.concatenate([turned, q[4:] + middle @ step[3:]])


def plant_of(names, floating=True):
    """Return what `conversions.drake` asks of a plant, with joints in the given order after the base."""
    kinds = [("$world_trunk", "quaternion_floating", 7, 6)] * floating + [(name, "revolute", 1, 1) for name in names]
    joints, q, v = [], 0, 0
    for name, kind, nq, nv in kinds:
        joints.append(joint_of_plant(name, kind, q, v, nq, nv))
        q, v = q + nq, v + nv
    return SimpleNamespace(
        GetJointIndices=lambda: range(len(joints)),
        get_joint=lambda index: joints[index],
        world_body=lambda: SimpleNamespace(index=lambda: 0),
        num_positions=lambda: q,
        num_velocities=lambda: v,
    )


def joint_of_plant(name, kind, q, v, nq, nv):
    answers = {"name": name, "type_name": kind, "position_start": q, "velocity_start": v}
    answers |= {"num_positions": nq, "num_velocities": nv}
    answers |= {"parent_body": SimpleNamespace(index=lambda: 0 if kind == "quaternion_floating" else 1)}
    return SimpleNamespace(**{word: lambda answer=answer: answer for word, answer in answers.items()})


def test_a_base_in_drakes_vectors_is_a_quaternion_and_world_velocities():
    """q = [quaternion w first; position], v = [angular; linear], both of the body's origin in world axes."""
    robot = ROBOT
    theirs = conversions.drake(robot, plant_of(NAMES[::-1]))
    case = case_of(robot, 3)
    q, v = theirs.to_configuration(case.q), theirs.to_velocity(case.q, case.v)
    R, _ = robot.base.pose(case.q)
    assert np.array_equal(q, [*case.q[:7], *case.q[:6:-1]])
    assert close(v, np.concatenate([R @ case.v[:3], R @ case.v[3:6], case.v[:5:-1]]), 1e-15)
    (motion,) = legged.point_positions(robot, case.q, [("base", np.zeros(3))])
    assert close(q[4:7], motion, 1e-15)
    tau = theirs.to_force(case.q, case.tau)
    assert close(tau[:6], np.concatenate([R @ case.tau[:3], R @ case.tau[3:6]]), 1e-14)


def every_conversion():
    pytest.importorskip("mujoco")
    from oracles.mujoco_model import compiled

    tree = legged.random_tree(3)
    return [
        conversions.mujoco(tree, compiled(tree)),
        conversions.drake(ROBOT, plant_of(NAMES)),
        conversions.ros(ROBOT).vectors,
        conversions.legged(tree, legged.random_tree(3)),
    ]


def test_leading_axes_give_row_by_row_what_single_vectors_give():
    for conversion in every_conversion():
        q, v, vdot, tau = vectors(conversion, 1)
        rows = [
            (conversion.to_configuration(a), conversion.to_velocity(a, b), conversion.to_acceleration(a, b, c),
             conversion.to_force(a, d)) for a, b, c, d in zip(q, v, vdot, tau, strict=True)
        ]  # fmt: skip
        their_q, their_v = conversion.to_configuration(q), conversion.to_velocity(q, v)
        their_a, their_f = conversion.to_acceleration(q, v, vdot), conversion.to_force(q, tau)
        for found, expected in zip((their_q, their_v, their_a, their_f), zip(*rows, strict=True), strict=True):
            assert close(found, np.stack(expected), 1e-15)
        assert close(conversion.from_configuration(their_q), q, 1e-14)
        assert close(conversion.from_velocity(their_q, their_v), v, 1e-13)
        assert close(conversion.from_acceleration(their_q, their_v, their_a), vdot, 1e-13)
        assert close(conversion.from_force(their_q, their_f), tau, 1e-13)
        assert close(conversion.to_velocity(q[0], v), np.stack([conversion.to_velocity(q[0], x) for x in v]), 1e-15)


def test_joints_are_matched_by_name_whatever_their_order():
    shuffled = list(np.random.default_rng(0).permutation(NAMES))
    theirs = conversions.drake(ROBOT, plant_of(shuffled))
    q = ROBOT.neutral()
    for number, name in enumerate(NAMES):
        q[ROBOT.joint(name).q] = 0.1 * number
    for place, name in enumerate(shuffled):
        assert theirs.to_configuration(q)[7 + place] == 0.1 * NAMES.index(name)


def test_a_follower_gets_its_place_and_leaves_its_force_to_its_master():
    body = legged.box(1.0, (0.1, 0.1, 0.1))
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
    with pytest.raises(MismatchError, match="Drake has joints that robot 'random tree 2' has not: 'tail'"):
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
    with pytest.raises(MismatchError, match=f"lacks '{NAMES[0]}'; it has beyond the robot's own 'tail'"):
        ros.state(good._replace(name=("tail", *NAMES[1:])), odometry)
    with pytest.raises(MismatchError, match=f"has twice '{NAMES[0]}'"):
        ros.state(good._replace(name=(*NAMES, NAMES[0])), odometry)
    with pytest.raises(ShapeError, match=rf"{len(NAMES)} names and a velocity of shape \(0,\)"):
        ros.state(good._replace(velocity=[]), odometry)
    with pytest.raises(MismatchError, match="floats: give its base's odometry"):
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
