"""Reduced robots: equivalent to the full robot with the same joints at rest, or without the same mass."""

import numpy as np
import pytest
from oracles.cases import case_of

import legged
import robots
from legged.errors import DefinitionError, ShapeError, UnknownNameError
from legged.robot.construction.graph import links_of
from legged.robot.construction.random_tree import ALL_JOINTS
from legged.robot.physics import JointPhysics

SEEDS = range(25)
EQUAL = 1e-11  # rounding relative to the size of the terms, for up to forty links


def random_held(seed):
    """Return (robot in a random state, values of some joints by name, names of the other joints)."""
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(
        seed, links=int(rng.integers(2, 20)), physics=True, coupled=True, shuffled=True, joints=ALL_JOINTS
    )
    case = case_of(robot, seed)
    names = [joint.name for joint in case.robot.joints]
    held = [name for name in names if rng.uniform() < 0.4]
    values = case.robot.joint_values(case.q)
    return case, {name: values[name] for name in held}, [name for name in names if name not in held]


def entries(robot, names):
    """Return the indices of the base and the named joints in q and in v."""
    of_q, of_v = list(range(robot.base.nq)), list(range(robot.base.nv))
    for joint in map(robot.joint, names):
        of_q += range(joint.q.start, joint.q.stop)
        of_v += range(joint.v.start, joint.v.stop)
    return np.array(of_q, int), np.array(of_v, int)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_robot_with_locked_joints_equals_the_full_robot_with_these_joints_at_rest(seed):
    """The rows of the unlocked joints in the full equations are the reduced equations."""
    case, values, moving = random_held(seed)
    robot, q = case.robot, case.q
    small = robot.locked(values)
    assert [joint.name for joint in small.joints] == moving
    of_q, of_v = entries(robot, moving)
    v, vdot = np.zeros(robot.nv), np.zeros(robot.nv)
    v[of_v], vdot[of_v] = case.v[of_v], case.vdot[of_v]
    inertia = legged.inertia_matrix(robot, q)
    ours = legged.inertia_matrix(small, q[of_q])
    np.testing.assert_allclose(ours, inertia[np.ix_(of_v, of_v)], atol=EQUAL * np.abs(inertia).max())
    wrenches = {link.name: w for link, w in zip(robot.links, case.wrenches, strict=True)}
    forces = legged.inverse_dynamics(robot, q, v, vdot, wrenches)
    ours = legged.inverse_dynamics(small, q[of_q], v[of_v], vdot[of_v], wrenches)
    np.testing.assert_allclose(ours, forces[of_v], atol=EQUAL * (1.0 + np.abs(forces).max()))
    for link in robot.links:
        one, two = (legged.frame_pose(r, x, link.name) for r, x in ((robot, q), (small, q[of_q])))
        np.testing.assert_allclose(one.position, two.position, atol=1e-12)
        np.testing.assert_allclose(one.rotation, two.rotation, atol=1e-12)
    assert {c.name for c in small.contacts} == {c.name for c in robot.contacts}


@pytest.mark.parametrize("seed", SEEDS)
def test_removing_limbs_removes_exactly_their_mass_and_energy(seed):
    """The kinetic energy is that of the full robot minus that of the removed links."""
    rng = np.random.default_rng(seed)
    case = case_of(
        legged.random_tree(seed, links=int(rng.integers(3, 20)), bases=("floating", "planar", "euler")), seed
    )
    robot, q, v = case.robot, case.q, case.v
    dropped = str(rng.choice([link.name for link in robot.links[1:]]))
    small = robot.without(dropped)
    gone = {link.name for link in robot.links} - {link.name for link in small.links}
    assert dropped in gone
    assert all(link.name in gone for link in robot.links if robot.graph.has_edge(dropped, link.name))
    of_q, of_v = entries(robot, [joint.name for joint in small.joints])
    lost = 0.0
    for link, t in zip(robot.links, legged.link_twists(robot, q, v), strict=True):
        if link.name in gone:
            i = link.inertia
            at_center = t[3:] + np.cross(t[:3], i.center)
            lost += 0.5 * (i.mass * at_center @ at_center + t[:3] @ i.tensor @ t[:3])
    energy = legged.kinetic_energy(robot, q, v)
    assert legged.kinetic_energy(small, q[of_q], v[of_v]) == pytest.approx(energy - lost, abs=1e-11 * energy)
    assert small.mass == pytest.approx(robot.mass - sum(robot.link(name).inertia.mass for name in gone))
    order = [joint.name for joint in robot.joints if joint.child not in gone]
    assert [joint.name for joint in small.joints] == order


@pytest.mark.parametrize("seed", SEEDS)
def test_fused_robots_have_the_same_dynamics_with_fewer_links(seed):
    case = case_of(legged.random_tree(seed, links=12, joints=("revolute", "fixed", "universal", "ball")), seed)
    robot, q, v = case.robot, case.q, case.v
    small = robot.fused()
    assert len(small.links) == 1 + len(small.joints)
    assert [joint.name for joint in small.joints] == [joint.name for joint in robot.joints]
    forces = legged.inverse_dynamics(robot, q, v, case.vdot)
    ours = legged.inverse_dynamics(small, q, v, case.vdot)
    np.testing.assert_allclose(ours, forces, atol=EQUAL * (1.0 + np.abs(forces).max()))
    assert {c.name for c in small.contacts} == {c.name for c in robot.contacts}
    for contact in robot.contacts:
        one, two = (legged.frame_pose(r, q, contact.name).position for r in (robot, small))
        np.testing.assert_allclose(one, two, atol=1e-12)


def gripper():
    """Return an arm with a wrist that has friction and a rotor, and three fingers, two coupled to the first."""
    physics = JointPhysics(damping=0.3, friction=0.1, armature=0.02, stiffness=2.0, rest=0.4, lower=-1.0)
    palm = legged.Link("palm", legged.sphere_inertia(1.0, 0.1, (0.1, 0.0, 0.0)))
    builder = legged.RobotBuilder("gripper", legged.Link("arm", legged.box_inertia(2.0, (0.1, 0.2, 0.4))))
    builder.add(legged.Revolute("wrist", "y", physics=physics), palm, to="arm", at=(0.0, 0.1, 0.3))
    for side in "abc":
        finger = legged.Link("finger", legged.sphere_inertia(0.1, 0.02, (0.0, 0.03, 0.1)))
        builder.add(legged.Revolute(side, "x", physics=physics), finger.prefixed(side), to="palm", at=(0.2, 0.0, 0.0))
    return builder.couple("b", "a", ratio=-2.0, offset=0.1).couple("c", "b", ratio=0.5).build(order=["a", "wrist"])


def test_coupled_joints_are_locked_with_their_masters():
    robot = gripper()
    q, _ = robot.state(base_orientation=(0.1, 0.2, 0.3), joints={"a": 0.3, "wrist": -0.5})
    small = robot.locked({"a": 0.3})
    assert [joint.name for joint in small.joints] == ["wrist"]
    assert not small.followers
    of_q, of_v = entries(robot, ["wrist"])
    for name in ("afinger", "bfinger", "cfinger"):
        one, two = legged.frame_pose(robot, q, name), legged.frame_pose(small, q[of_q], name)
        np.testing.assert_allclose(one.rotation, two.rotation, atol=1e-14)
    inertia = legged.inertia_matrix(robot, q)[np.ix_(of_v, of_v)]
    np.testing.assert_allclose(legged.inertia_matrix(small, q[of_q]), inertia, atol=1e-14)
    other = robot.locked({"wrist": -0.5})
    assert [(f.name, f.master, f.ratio, f.offset) for f in other.followers] == [
        (f.name, f.master, f.ratio, f.offset) for f in robot.followers
    ]
    with pytest.raises(DefinitionError, match="joint 'b' follows 'a': lock that joint instead"):
        robot.locked({"b": 0.1})
    with pytest.raises(DefinitionError, match="joint 'b' follows 'a', which is removed: remove link 'bfinger' as well"):
        robot.without("afinger")
    assert [joint.name for joint in robot.without("afinger", "bfinger", "cfinger").joints] == ["wrist"]


def test_reduced_robots_keep_joint_physics_and_order():
    robot = gripper()
    for small in (robot.locked({}), robot.fused(), robot.without("bfinger")):
        assert [joint.name for joint in small.joints] == ["a", "wrist"]
        for joint in small.joints:
            assert repr(joint.definition) == repr(robot.joint(joint.name).definition)


def test_locking_a_joint_keeps_the_passive_forces_of_the_others():
    robot = gripper()
    rng = np.random.default_rng(0)
    q, v = robot.state(joints={"a": 0.3, "wrist": -0.5}, joint_velocities={"wrist": 2.0})
    vdot = rng.normal(size=robot.nv)
    v[:6], vdot[robot.joint("a").v] = rng.normal(size=6), 0.0
    of_q, of_v = entries(robot, ["wrist"])
    forces = legged.inverse_dynamics(robot, q, v, vdot)[of_v]
    ours = legged.inverse_dynamics(robot.locked({"a": 0.3}), q[of_q], v[of_v], vdot[of_v])
    np.testing.assert_allclose(ours, forces, atol=1e-12)  # [N], [N m]; forces are near 30 N


def test_modules_and_operation_counts_of_a_reduced_quadruped():
    robot = robots.spatial_quadruped()
    three = robot.without("leg2_thigh")
    assert len(three.modules) == 4
    assert three.alike_modules == ((1, 2, 3),)
    assert [c.name for c in three.contacts] == [c.name for c in robot.contacts if c.name != "leg2_foot"]
    stiff = robot.locked({joint.name: 0.0 for joint in robot.joints if "knee" in joint.name})
    assert (stiff.nv, len(stiff.links)) == (6 + 8, len(robot.links))
    assert legged.count(legged.forward_dynamics, stiff).multiplications < 0.8 * (
        legged.count(legged.forward_dynamics, robot).multiplications
    )
    plain = robot.locked({})
    assert legged.count(legged.forward_dynamics, plain) == legged.count(legged.forward_dynamics, robot)
    assert [link.name for link in links_of(plain)] == [link.name for link in robot.links]


def test_misfits_raise_errors_by_name():
    robot = robots.spatial_quadruped()
    for call, error, words in (
        (lambda: robot.locked({"leg1_kne": 0.0}), UnknownNameError, "did you mean 'leg1_knee'"),
        (lambda: robot.locked({"leg1_hip": 0.0}), ShapeError, r"the value of joint 'leg1_hip' must be \(2,\)"),
        (lambda: robot.without("leg1_thig"), UnknownNameError, "did you mean 'leg1_thigh'"),
        (lambda: robot.without(robot.links[0].name), DefinitionError, "is the base .* cannot be removed"),
    ):
        with pytest.raises(error, match=words):
            call()
