"""Vectors converted to Pinocchio, MuJoCo, Drake and ROS and back give the same motion and forces.

Their programs are asked for inverse and forward dynamics of the same robot in the converted state; forces are compared
in parts of the largest, accelerations too. Random robots are conditioned up to 1e6: 1e-9 is promised.
"""

import numpy as np
import pytest
from oracles.cases import case_of, random_case
from oracles.programs.drake_plant import plant_of

import legged
from legged import conversions

PROMISED = 1e-9
ROBOT = legged.random_tree(2, 12, joints=("revolute", "prismatic"), bases=("floating",))
NAMES = [joint.name for joint in ROBOT.joints]


def close(actual, expected, tolerance=PROMISED):
    return np.abs(actual - expected).max(initial=0.0) <= tolerance * max(np.abs(expected).max(initial=0.0), 1.0)


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
    accelerations = conversion.from_acceleration(their_q, their_v, rates)
    assert close(accelerations, legged.forward_dynamics(robot, q, v, tau)), case.label


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


@pytest.mark.parametrize("seed", range(16))
def test_dynamics_in_pinocchios_vectors_are_pinocchios(seed, tmp_path):
    """Through an exported URDF, whose joints are continuous: a cosine and a sine there."""
    kinds = ("revolute", "prismatic", "universal", "spherical", "planar", "fixed")
    case = random_case(seed, links=1 + seed, joints=kinds)
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
    body = legged.box_inertia(1.5, (0.2, 0.3, 0.1), (0.1, 0.05, -0.2))
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


def test_integration_moves_the_base_straight_where_pinocchio_follows_a_screw(tmp_path):
    """Yaw by 1 rad and 1 m forward end at (1, 0) here, and on the circle at (sin 1, 1 - cos 1) in Pinocchio."""
    path, robot = loaded(random_case(0, links=4, joints=("revolute",), bases=("floating",)), tmp_path)
    pin, model, _ = pinocchio_of(path, robot)
    to, q, step = conversions.pinocchio(robot, model), robot.neutral(), np.zeros(robot.nv)
    step[2], step[3] = 1.0, 1.0
    straight = legged.integrate(robot, q, step)
    assert close(straight[4:7], [1.0, 0.0, 0.0], 1e-15)
    assert close(legged.difference(robot, q, straight), step, 1e-14)
    screw = pin.integrate(model, to.to_configuration(q), to.to_velocity(q, step))
    assert close(to.from_configuration(screw)[4:7], [np.sin(1.0), 1.0 - np.cos(1.0), 0.0], 1e-14)
    assert close(straight[:4], to.from_configuration(screw)[:4], 1e-14)  # the same rotation


@pytest.mark.parametrize("mimic", [False, True])
def test_joints_that_follow_others_are_pinocchios_with_and_without_its_mimic(mimic, tmp_path):
    physics, body = legged.JointPhysics(lower=-4.0, upper=4.0), legged.box_inertia(1.0, (0.1, 0.2, 0.3))
    builder = legged.RobotBuilder("hand", legged.Link("palm", body), base=legged.FixedBase())
    builder.add(legged.Revolute("a", "x", physics=physics), legged.Link("a", body), to="palm", at=(0.1, 0, 0))
    builder.add(legged.Revolute("b", "y", physics=physics), legged.Link("b", body), to="a", at=(0, 0.1, 0))
    builder.add(legged.Revolute("c", "z", physics=physics), legged.Link("c", body), to="b", at=(0, 0.1, 0.1))
    robot = builder.couple("c", "a", -0.5, 0.2).build()
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(legged.save_urdf(robot, tmp_path / "hand.urdf")), mimic=mimic)
    conversion, data, case = conversions.pinocchio(robot, model), model.createData(), case_of(robot, 0)
    q, v = conversion.to_configuration(case.q), conversion.to_velocity(case.q, case.v)
    forces = pin.rnea(model, data, q, v, conversion.to_acceleration(case.q, case.v, case.vdot))
    expected = legged.inverse_dynamics(robot, case.q, case.v, case.vdot)
    assert model.nv == 3 - mimic and close(conversion.from_force(q, forces), expected)


@pytest.mark.parametrize("seed", range(16))
def test_dynamics_in_mujocos_vectors_are_mujocos(seed):
    """Of robots with joints of every kind, and bases of every kind."""
    pytest.importorskip("mujoco")
    from oracles.programs.mujoco_model import acceleration, inverse

    case = random_case(seed, links=1 + seed)
    model = conversions.mujoco_model(case.robot)
    compare_dynamics(
        conversions.mujoco(case.robot, model),
        case,
        lambda q, v, a: inverse(model, q, v, a),
        lambda q, v, f: acceleration(model, q, v, f),
    )


def test_mujoco_reads_an_exported_urdf_in_the_same_vectors(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    from oracles.programs.mujoco_model import acceleration, inverse

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
    Parser = pytest.importorskip("pydrake.multibody.parsing").Parser
    MultibodyForces = pytest.importorskip("pydrake.multibody.tree").MultibodyForces

    kinds = ("revolute", "prismatic", "universal", "fixed")
    case = random_case(seed, links=1 + seed, joints=kinds, bases=("floating",))
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
    tree = legged.random_tree(3)
    return [
        conversions.mujoco(tree, conversions.mujoco_model(tree)),
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
        for actual, expected in zip((their_q, their_v, their_a, their_f), zip(*rows, strict=True), strict=True):
            assert close(actual, np.stack(expected), 1e-15)
        assert close(conversion.from_configuration(their_q), q, 1e-14)
        assert close(conversion.from_velocity(their_q, their_v), v, 1e-13)
        assert close(conversion.from_acceleration(their_q, their_v, their_a), vdot, 1e-13)
        assert close(conversion.from_force(their_q, their_f), tau, 1e-13)
        assert close(conversion.to_velocity(q[0], v), np.stack([conversion.to_velocity(q[0], x) for x in v]), 1e-15)
