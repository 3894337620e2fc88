"""Joints in a given order, coupled joints, and free joints inside the tree."""

import numpy as np
import pytest
from oracles.cases import random_case, size_of_forces
from oracles.differences import rate
from oracles.rebuild import rebuild, renumbering

import legged
from legged import denoc
from legged.errors import ArgumentError, DefinitionError, FileError, NotFiniteError, UnknownNameError
from legged.robot.construction.random_tree import ALL_JOINTS

KINDS = ("revolute", "prismatic", "universal", "spherical", "ball", "planar", "fixed", "free", "screw", "cylindrical")
EXACT = 1e-11  # relative to the size of the terms: the project's promise
BODY = legged.box_inertia(1.0, (0.1, 0.2, 0.3), (0.05, 0.0, -0.1))
every_seed = pytest.mark.parametrize("seed", range(16))


def coupled_case(seed):
    return random_case(seed, links=3 + seed % 9, joints=ALL_JOINTS, coupled=True, shuffled=True)


def freed(robot):
    """Return (the robot without couplings, G) with v_free = G v; `free_q` gives q_free."""
    free = rebuild(robot)
    G = np.zeros((free.nv, robot.nv))
    G[: free.base.nv, : free.base.nv] = np.eye(free.base.nv)
    for joint in robot.joints:
        G[free.joint(joint.name).v, joint.v] = np.eye(joint.nv)
    for joint in robot.followers:
        G[free.joint(joint.name).v, joint.v] = joint.ratio
    return free, G


def free_q(robot, free, q):
    whole_q = np.zeros(free.nq)
    whole_q[: free.base.nq] = q[: free.base.nq]
    for joint in robot.joints:
        whole_q[free.joint(joint.name).q] = q[joint.q]
    for joint in robot.followers:
        whole_q[free.joint(joint.name).q] = joint.ratio * q[joint.q] + joint.offset
    return whole_q


@every_seed
def test_dynamics_of_a_coupled_robot_are_the_projection_of_the_uncoupled_dynamics(seed):
    case = coupled_case(seed)
    robot, q, v, vdot = case.robot, case.q, case.v, case.vdot
    free, G = freed(robot)
    at = free_q(robot, free, q)
    inertia = G.T @ denoc.generalized_inertia_matrix(free, at) @ G
    by_name = {link.name: w for link, w in zip(robot.links, case.wrenches, strict=True)}
    h = G.T @ denoc.bias_forces(free, at, G @ v, by_name)
    allowed = EXACT * size_of_forces(inertia, vdot, h)
    assert legged.inertia_matrix(robot, q) == pytest.approx(inertia, abs=EXACT * np.abs(inertia).max(initial=0))
    assert legged.inverse_dynamics(robot, q, v, vdot, by_name) == pytest.approx(inertia @ vdot + h, abs=allowed)
    acceleration = legged.forward_dynamics(robot, q, v, case.tau, by_name)
    assert inertia @ acceleration + h == pytest.approx(case.tau, abs=EXACT * size_of_forces(inertia, acceleration, h))
    n0 = robot.base.nv
    base, torques = legged.floating_inverse_dynamics(robot, q, v, vdot[n0:], by_name)
    dense = denoc.floating_inverse_dynamics(robot, q, v, vdot[n0:], by_name)
    assert base == pytest.approx(dense[0], abs=10 * allowed)
    assert torques == pytest.approx(dense[1], abs=10 * allowed)
    assert legged.momentum(robot, q, v) == pytest.approx(legged.momentum(free, at, G @ v), abs=1e-12 * (1 + allowed))
    J = legged.point_jacobian(robot, q, robot.links[-1].name, (0.1, 0.2, 0.3))
    assert pytest.approx(legged.point_jacobian(free, at, robot.links[-1].name, (0.1, 0.2, 0.3)) @ G, abs=1e-12) == J


@every_seed
def test_twists_and_jacobians_of_a_coupled_robot_are_the_rates_of_its_poses(seed):
    case = coupled_case(seed)
    robot, link = case.robot, case.robot.links[-1].name
    moved = rate(robot, lambda q, v: legged.point_positions(robot, q, [(link, np.zeros(3))])[0], case.q, case.v)
    J = legged.point_jacobian(robot, case.q, link)
    assert J[3:] @ case.v == pytest.approx(moved, abs=1e-8 * (1 + np.abs(J).max(initial=0)))
    dq = 0.3 * case.v
    assert legged.difference(robot, case.q, legged.integrate(robot, case.q, dq)) == pytest.approx(dq, abs=1e-12)


@pytest.mark.parametrize("seed", range(0, 16, 4))
def test_compiled_forward_dynamics_of_a_coupled_robot_equals_plain_evaluation(seed):
    case = coupled_case(seed)
    plain = legged.forward_dynamics(case.robot, case.q, case.v, case.tau)
    fast = legged.compile(legged.forward_dynamics, case.robot)(case.q, case.v, case.tau)
    assert fast == pytest.approx(plain, abs=EXACT * (1 + np.abs(plain).max(initial=0)))


@every_seed
def test_the_order_of_the_joints_only_permutes_results(seed):
    given = random_case(seed, links=3 + seed % 9, joints=KINDS)
    shuffled = random_case(seed, links=3 + seed % 9, joints=KINDS, shuffled=True).robot
    of_q, of_v = renumbering(given.robot, shuffled)
    q, v, vdot = given.q[of_q], given.v[of_v], given.vdot[of_v]
    tau = legged.inverse_dynamics(given.robot, given.q, given.v, given.vdot, given.wrenches)
    assert np.array_equal(legged.inverse_dynamics(shuffled, q, v, vdot, given.wrenches), tau[of_v])
    inertia = legged.inertia_matrix(given.robot, given.q)
    assert np.array_equal(legged.inertia_matrix(shuffled, q), inertia[np.ix_(of_v, of_v)])
    acceleration = legged.forward_dynamics(given.robot, given.q, given.v, given.tau, given.wrenches)
    assert np.array_equal(legged.forward_dynamics(shuffled, q, v, given.tau[of_v], given.wrenches), acceleration[of_v])
    n0 = given.robot.base.nv
    base, torques = legged.floating_inverse_dynamics(given.robot, given.q, given.v, given.vdot[n0:])
    again = legged.floating_inverse_dynamics(shuffled, q, v, vdot[n0:])
    assert np.array_equal(again[0], base)
    assert np.array_equal(again[1], torques[of_v[n0:] - n0])
    rates = legged.configuration_rate(given.robot, given.q, given.v)
    assert np.array_equal(legged.configuration_rate(shuffled, q, v), rates[of_q])
    assert np.array_equal(legged.integrate(shuffled, q, v), legged.integrate(given.robot, given.q, given.v)[of_q])
    U, D = denoc.udu(shuffled, q)
    assert pytest.approx(legged.inertia_matrix(shuffled, q), abs=EXACT * np.abs(inertia).max(initial=0)) == U @ D @ U.T


def test_joints_have_the_given_order():
    robot = finger().build(order=["tip", "palm", "wrist"])
    assert [joint.name for joint in robot.joints] == ["tip", "palm", "wrist"]
    assert [(joint.q.start, joint.v.start) for joint in robot.joints] == [(7, 6), (8, 7), (12, 10)]
    assert [module.v.tolist() for module in robot.modules] == [[0, 1, 2, 3, 4, 5], [10, 7, 8, 9, 6]]


def finger():
    builder = legged.RobotBuilder("finger", legged.Link("arm", BODY))
    builder.add(legged.Revolute("wrist", "y"), legged.Link("hand", BODY), to="arm", at=(0, 0, -0.3))
    builder.add(legged.Spherical("palm"), legged.Link("first", BODY), to="hand", at=(0, 0, -0.3))
    builder.add(legged.Fixed("weld"), legged.Link("pad", BODY), to="first")
    return builder.add(legged.Revolute("tip", "x"), legged.Link("second", BODY), to="first", at=(0, 0, -0.3))


@pytest.mark.parametrize(
    ("order", "error", "words"),
    [
        (["tip", "palm"], DefinitionError, "order must name every joint that moves; it lacks 'wrist'"),
        (["tip", "palm", "wrist", "tip"], DefinitionError, "joint 'tip' is in order twice"),
        (
            ["tip", "palm", "wirst"],
            UnknownNameError,
            "there is no joint that moves named 'wirst'; did you mean 'wrist'?",
        ),
        (["tip", "palm", "wrist", "weld"], UnknownNameError, "there is no joint that moves named 'weld'"),
        ("wrist", ArgumentError, "order must be a sequence, each entry a text or None, got 'wrist'"),
    ],
)
def test_an_invalid_order_raises_an_error(order, error, words):
    with pytest.raises(error) as caught:
        finger().build(order=order)
    assert words in str(caught.value)


def test_an_order_with_a_coupled_joint_raises_an_error():
    with pytest.raises(DefinitionError, match="joint 'tip' follows 'wrist' and has no entry of its own: leave it out"):
        finger().couple("tip", "wrist").build(order=["wrist", "tip", "palm"])


def test_chained_couplings_resolve_to_the_first_master():
    builder = legged.RobotBuilder("tail", legged.Link("body", BODY), base=legged.FixedBase())
    for name, above in zip("abc", ("body", "a", "b"), strict=True):
        builder.add(legged.Revolute(f"to_{name}", "y"), legged.Link(name, BODY), to=above, at=(0, 0, -0.3))
    robot = builder.couple("to_c", "to_b", 2.0, 0.1).couple("to_b", "to_a", -0.5, 0.3).build()
    assert (robot.nq, robot.nv, len(robot.joints)) == (1, 1, 1)
    couplings = {joint.name: (joint.master, joint.ratio, joint.offset) for joint in robot.followers}
    assert couplings == {"to_b": ("to_a", -0.5, 0.3), "to_c": ("to_a", -1.0, 0.7)}
    R, _ = legged.link_poses(robot, np.array([0.4]))
    assert R[3] == pytest.approx(legged.rpy(0, 0.4 + (-0.2 + 0.3) + (-0.4 + 0.7), 0), abs=1e-15)


def test_a_limb_keeps_its_couplings_each_time_it_is_attached():
    leg = legged.Limb().add(legged.Revolute("hip", "y"), legged.Link("thigh", BODY))
    leg.add(legged.Revolute("knee", "y"), legged.Link("shank", BODY), at=(0, 0, -0.3)).couple("knee", "hip", -2.0)
    builder = legged.RobotBuilder("biped", legged.Link("trunk", BODY))
    robot = builder.attach(leg, to="trunk", prefix="l_").attach(leg, to="trunk", at=(0, 0.2, 0), prefix="r_").build()
    assert [(joint.name, joint.master) for joint in robot.followers] == [("l_knee", "l_hip"), ("r_knee", "r_hip")]
    assert [joint.name for joint in robot.joints] == ["l_hip", "r_hip"]


def test_invalid_couplings_raise_errors():
    cases = [
        (("tip", "wirst"), UnknownNameError, "there is no joint named 'wirst'; did you mean 'wrist'?"),
        (("palm", "wrist"), DefinitionError, "joint 'palm' has 3 degrees of freedom; only joints of one"),
        (("tip", "weld"), DefinitionError, "joint 'weld' has 0 degrees of freedom"),
        (("tip", "wrist", 0.0), DefinitionError, "joint 'tip' follows 'wrist' with a ratio of zero"),
        (("tip", "wrist", np.nan), NotFiniteError, "couple('tip'): ratio must be finite"),
        (("tip", "tip"), DefinitionError, "the joints tip are coupled in a cycle"),
    ]
    for coupling, error, words in cases:
        with pytest.raises(error) as caught:
            finger().couple(*coupling).build()
        assert words in str(caught.value)
    with pytest.raises(DefinitionError, match="joint 'tip' follows both 'wrist' and 'wrist'"):
        finger().couple("tip", "wrist").couple("tip", "wrist").build()
    with pytest.raises(DefinitionError, match="the joints tip, wrist are coupled in a cycle"):
        finger().couple("tip", "wrist").couple("wrist", "tip").build()


def test_a_coupled_motion_without_inertia_raises_an_error():
    """Two coupled links, both without inertia about their joint axes."""
    rod = legged.rod_inertia(1.0, (0, 0, 0), (0, 0, -1.0))
    builder = legged.RobotBuilder("shafts", legged.Link("wall"), base=legged.FixedBase())
    builder.add(legged.Revolute("a", "z"), legged.Link("one", rod), to="wall")
    builder.add(legged.Revolute("b", "z"), legged.Link("two", rod), to="wall", at=(1, 0, 0)).couple("b", "a", 2.0)
    with pytest.raises(DefinitionError, match="joint 'a' of link 'one' can move without inertia"):
        builder.build()


def test_a_motion_without_inertia_is_named_beside_coupled_joints():
    rod = legged.rod_inertia(1.0, (0, 0, 0), (0, 0, -1.0))
    builder = legged.RobotBuilder("shafts", legged.Link("wall"), base=legged.FixedBase())
    builder.add(legged.Revolute("a", "x"), legged.Link("one", rod), to="wall")
    builder.add(legged.Revolute("spin", "z"), legged.Link("shaft", rod), to="wall", at=(1, 0, 0))
    builder.add(legged.Revolute("b", "x"), legged.Link("two", rod), to="wall", at=(2, 0, 0)).couple("b", "a", 2.0)
    with pytest.raises(DefinitionError, match="joint 'spin' of link 'shaft' can move without inertia"):
        builder.build()


def test_udu_factors_of_a_coupled_robot_raise_an_error():
    with pytest.raises(DefinitionError, match="joint 'tip' follows 'wrist'"):
        denoc.udu(finger().couple("tip", "wrist").build(), np.array([1.0, 0, 0, 0, 0, 0, 0, 0.1, 1, 0, 0, 0]))


def test_a_free_joint_on_the_ground_is_equivalent_to_a_floating_base():
    """The velocity of a free joint is in parent axes, that of a floating base in base axes; the motion is the same."""
    base = legged.RobotBuilder("based", legged.Link("trunk", BODY))
    free = legged.RobotBuilder("free", legged.Link("ground"), base=legged.FixedBase())
    free.add(legged.Free("float"), legged.Link("trunk", BODY), to="ground")
    for builder in (base, free):
        builder.add(legged.Revolute("hip", "y"), legged.Link("leg", BODY), to="trunk", at=(0.1, 0, -0.1))
    base, free = base.build(), free.build()
    rng = np.random.default_rng(2)
    q, v, tau = legged.random_configuration(base, rng), rng.normal(size=7), rng.normal(size=7)
    R, p = base.base.pose(q)
    assert (free.nq, free.nv) == (8, 7)
    in_world = np.concatenate([R @ v[3:6], v[:3], v[6:]])
    force = np.concatenate([R @ tau[3:6], tau[:3], tau[6:]])
    accelerations = legged.forward_dynamics(free, np.concatenate([p, q[:4], q[7:]]), in_world, force)
    vdot = legged.forward_dynamics(base, q, v, tau)
    acceleration = R @ (vdot[3:6] + np.cross(v[:3], v[3:6]))
    assert accelerations == pytest.approx(np.concatenate([acceleration, vdot[:3], vdot[6:]]), abs=1e-12)


MIMIC = """<robot name="r"><link name="base">{0}</link><link name="a">{0}</link><link name="b">{0}</link>
<link name="c">{0}</link><link name="d">{0}</link>
<joint name="ja" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
  <origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="jb" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0.6 0.8"/>
  <origin xyz="0.1 0.2 0.3" rpy="-0.4 0.2 0.3"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="jc" type="revolute"><parent link="b"/><child link="c"/><axis xyz="1 0 0"/>
  <origin xyz="-0.1 0.2 0.3" rpy="0.1 1.2 0.3"/><limit lower="-3" upper="3" effort="1" velocity="1"/>
  <mimic joint="ja" multiplier="-0.7" offset="0.2"/></joint>
<joint name="jd" type="prismatic"><parent link="a"/><child link="d"/><axis xyz="1 0 0"/>
  <origin xyz="-0.1 0.2 0.3" rpy="0.1 1.2 0.3"/><limit lower="-3" upper="3" effort="1" velocity="1"/>
  <mimic joint="jb" multiplier="0.3" offset="-0.1"/></joint></robot>"""
INERTIAL = """<inertial><origin xyz="0.05 -0.1 0.15"/><mass value="2"/>
<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="0.002" iyz="-0.003"/></inertial>"""


def test_coupled_dynamics_equal_those_of_pinocchios_mimic_joints():
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(MIMIC.format(INERTIAL), mimic=True)
    tensor = np.array([[0.02, 0.001, 0.002], [0.001, 0.03, -0.003], [0.002, -0.003, 0.025]])
    body = legged.Inertia(2.0, (0.05, -0.1, 0.15), tensor)
    builder = legged.RobotBuilder("r", legged.Link("base", body), base=legged.FixedBase())
    for kind, name, axis, above, x, roll, pitch in (
        (legged.Revolute, "a", "z", "base", 0.1, 0.1, 0.2),
        (legged.Revolute, "b", (0.0, 0.6, 0.8), "a", 0.1, -0.4, 0.2),
        (legged.Revolute, "c", "x", "b", -0.1, 0.1, 1.2),
        (legged.Prismatic, "d", "x", "a", -0.1, 0.1, 1.2),
    ):
        place = {"at": (x, 0.2, 0.3), "rotation": legged.rpy(roll, pitch, 0.3)}
        builder.add(kind(f"j{name}", axis), legged.Link(name, body), to=above, **place)
    robot = builder.couple("jc", "ja", -0.7, 0.2).couple("jd", "jb", 0.3, -0.1).build()
    data, rng = model.createData(), np.random.default_rng(4)
    for _ in range(10):
        q, v, vdot = rng.normal(size=(3, 2))
        upper = np.triu(pin.crba(model, data, q))
        theirs = upper + np.triu(upper, 1).T
        assert legged.inertia_matrix(robot, q) == pytest.approx(theirs, rel=1e-12)
        tau = pin.rnea(model, data, q, v, vdot)
        assert legged.inverse_dynamics(robot, q, v, vdot) == pytest.approx(tau, rel=1e-11, abs=1e-11)
        assert legged.forward_dynamics(robot, q, v, tau) == pytest.approx(vdot, rel=1e-9, abs=1e-10)


def test_a_file_gets_couplings_that_it_does_not_state(tmp_path):
    """A coupled joint moves by ratio and offset, its motor acts on its master; unknown names are refused."""
    urdf = "<robot name='r'><link name='a'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' "
    urdf += "iyz='0'/></inertial></link>"
    for parent, child in (("a", "b"), ("b", "c")):
        urdf += f"<link name='{child}'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' "
        urdf += f"iyz='0'/></inertial></link><joint name='{parent}{child}' type='continuous'><parent link='{parent}'/>"
        urdf += f"<child link='{child}'/><axis xyz='0 1 0'/><limit effort='40' velocity='6'/></joint>"
    path = tmp_path / "r.urdf"
    path.write_text(urdf + "</robot>")
    assert legged.load(path).nj == 2
    robot = legged.load(path, mimic={"bc": ("ab", 2.0, 0.1)})
    (follower,) = robot.followers
    assert (robot.nj, follower.master, follower.ratio, follower.offset) == (1, "ab", 2.0, 0.1)
    motor = robot.joint("ab").definition.physics
    assert (motor.effort, motor.speed) == (
        40.0 + 2.0 * 40.0,
        6.0 / 2.0,
    )  # f on bc is 2 f on ab, and bc is twice as fast
    assert "the motor of joint 'bc' acts on 'ab': 120 in all" in str(legged.audit(path, mimic={"bc": ("ab", 2.0)}))
    assert legged.load(path, mimic={"bc": "ab"}).followers[0].ratio == 1.0
    with pytest.raises(FileError, match="no joint named 'x'"):
        legged.load(path, mimic={"bc": "x"})
    with pytest.raises(ArgumentError, match=r"must be a joint's name or \(name, ratio, offset\)"):
        legged.load(path, mimic={"bc": ("ab", 1.0, 2.0, 3.0)})
