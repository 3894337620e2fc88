"""Wrenches that joints transmit: virtual work, Newton's laws on single links, Pinocchio, and forms by hand."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.cases import case_of, random_case
from oracles.looped import JOINTS as CLOSING
from oracles.looped import looped
from oracles.rebuild import rebuild

import legged
from legged import loops
from legged.robot.construction.random_tree import ALL_JOINTS

EXACT = 1e-12  # relative to the size of the wrenches; 3e-15 is the worst seen


def relative_twists(robot, q, v):
    """Return the twist of every link relative to its parent link, (n_links, 6), about its origin in its axes."""
    R, o = legged.link_poses(robot, q)
    twist = legged.link_twists(robot, q, v)
    relative = twist.copy()
    for c in robot.connections:
        i, j = robot.link(c.child).index, robot.link(c.parent).index
        omega, velocity = R[j] @ twist[j, :3], R[j] @ twist[j, 3:]
        relative[i, :3] -= R[i].T @ omega
        relative[i, 3:] -= R[i].T @ (velocity + np.cross(omega, o[i] - o[j]))
    return relative


def rigid_body_wrenches(robot, q, v, vdot):
    """Return the wrench on every link that its motion takes, (n_links, 6), about the world's origin in world axes."""
    R, o = legged.link_poses(robot, q)
    twists = legged.link_twists(robot, q, v)
    applied = np.zeros((len(robot.links), 6))
    for link in robot.links:
        k, body = link.index, link.inertia
        omega = R[k] @ twists[k, :3]
        c = o[k] + R[k] @ body.center
        rate = legged.point_accelerations(robot, q, v, vdot, [(k, body.center)])[0]
        turning = legged.frame_acceleration(robot, q, v, vdot, link.name)[:3]
        inertia = R[k] @ body.tensor @ R[k].T
        f = body.mass * (rate - robot.gravity)
        applied[k] = *(inertia @ turning + np.cross(omega, inertia @ omega) + np.cross(c, f)), *f
    return applied


def in_world(robot, q, rows):
    """Return wrenches by link, (n_links, 6), about the world's origin in world axes."""
    R, o = legged.link_poses(robot, q)
    n, f = np.einsum("kij,kj->ki", R, rows[:, :3]), np.einsum("kij,kj->ki", R, rows[:, 3:])
    return np.concatenate([n + np.cross(o, f), f], axis=1)


@pytest.mark.parametrize("seed", range(20))
def test_joint_wrenches_do_the_work_of_the_generalized_forces_and_constraint_wrenches_none(seed):
    """For any virtual velocity: h^T f^J = tau, (8), summed and for each joint."""
    case = random_case(seed, joints=ALL_JOINTS)
    robot, q = case.robot, case.q
    wrenches = legged.joint_wrenches(robot, q, case.v, case.vdot, case.wrenches)
    tau = legged.inverse_dynamics(robot, q, case.v, case.vdot, case.wrenches)
    virtual = np.random.default_rng(seed).normal(size=robot.nv)
    relative = relative_twists(robot, q, virtual)
    scale = np.abs(wrenches.transmitted).max() * max(np.abs(relative).max(), 1.0)
    assert (wrenches.transmitted * relative).sum() == pytest.approx(tau @ virtual, abs=30 * EXACT * scale)
    assert np.abs((wrenches.constraint * relative).sum(axis=1)).max() < EXACT * scale
    assert wrenches.active + wrenches.constraint == pytest.approx(wrenches.transmitted, abs=EXACT * scale)


@pytest.mark.parametrize("seed", range(10))
def test_joint_wrenches_move_every_link_by_newtons_laws(seed):
    """f_i = f_i^J + f_i^x - sum of f_j^J, (5) and (6), link by link, those of fixed joints included."""
    case = random_case(seed, joints=ALL_JOINTS)
    robot, q = case.robot, case.q
    wrenches = legged.joint_wrenches(robot, q, case.v, case.vdot, case.wrenches)
    transmitted = in_world(robot, q, wrenches.transmitted)
    on_link = transmitted + in_world(robot, q, case.wrenches)
    for c in robot.connections:
        on_link[robot.link(c.parent).index] -= transmitted[robot.link(c.child).index]
    needed = rigid_body_wrenches(robot, q, case.v, case.vdot)
    assert on_link == pytest.approx(needed, abs=100 * EXACT * np.abs(transmitted).max())


@pytest.mark.parametrize("seed", range(6))
def test_joint_wrenches_equal_pinocchios(seed):
    pin = pytest.importorskip("pinocchio")
    from oracles.programs.pinocchio_model import pinocchio_twin

    kinds = tuple(kind for kind in ALL_JOINTS if kind not in ("fixed", "constantvelocity"))
    case = random_case(seed, joints=kinds, bases=("floating",))
    robot, twin = case.robot, pinocchio_twin(case.robot)
    twin.inverse_dynamics(robot, case.q, case.v, case.vdot, case.wrenches)
    wrenches = legged.joint_wrenches(robot, case.q, case.v, case.vdot, case.wrenches).transmitted
    for link, w in zip(robot.links, wrenches, strict=True):
        joint, place = twin.where[link.name]
        assert place.isApprox(pin.SE3.Identity())
        theirs = twin.data.f[joint]
        size = np.abs(wrenches).max()
        assert w == pytest.approx(np.concatenate([theirs.angular, theirs.linear]), abs=10 * EXACT * size)


def test_the_parts_of_a_joint_wrench_by_hand():
    """A pendulum: m (g cos + l omega^2) along the rod and nothing across it; its motor holds the rest."""
    m, length, angle, rate, torque = 2.0, 0.7, 0.4, 1.5, 0.3
    bob = legged.Link("bob", legged.point_mass(m, (0.0, 0.0, -length)))
    builder = legged.RobotBuilder("pendulum", legged.Link("mount"), base=legged.FixedBase())
    robot = builder.add(legged.Revolute("pin", "y"), bob, to="mount").build()
    vdot = legged.forward_dynamics(robot, [angle], [rate], [torque])
    wrenches = legged.joint_wrenches(robot, [angle], [rate], vdot)
    tension = m * (9.81 * np.cos(angle) + length * rate**2)
    assert wrenches.active[1] == pytest.approx([0, torque, 0, 0, 0, 0], abs=1e-12)
    # the tangential force at the pin carries the motor's torque to the bob
    assert wrenches.constraint[1] == pytest.approx([0, 0, 0, -torque / length, 0, tension], abs=1e-12)
    assert wrenches.constraint[0] == pytest.approx(in_world(robot, [angle], wrenches.transmitted)[1], abs=1e-12)
    assert not wrenches.active[0].any()


def test_a_gyroscopic_rotor_loads_its_parent_as_a_flywheel_on_it_does():
    """The robot with the rotor as a link of its own, geared to the joint, has the same wrenches in its other joints."""
    spin, gear = 0.02, 7.0
    disk = legged.Inertia(0.5, (0.0, 0.0, 0.0), (spin / 2, spin / 2, spin))
    arm = legged.Inertia(2.0, (0.1, -0.2, 0.1), (0.05, 0.04, 0.03))
    axis = {"axis": "z"}

    def build(explicit):
        rotor = None if explicit else legged.Rotor(spin, gear, gyroscopic=True)
        carrier = arm if explicit else arm + disk
        builder = legged.RobotBuilder("arm", legged.Link("base", arm), base=legged.FloatingBase())
        builder.add(legged.Revolute("shoulder", "x"), legged.Link("upper", carrier), to="base", at=(0.1, 0.2, 0.3))
        joint = legged.Revolute("elbow", **axis, physics=legged.JointPhysics(rotor=rotor))
        builder.add(joint, legged.Link("lower", arm), to="upper")
        if explicit:
            builder.add(legged.Revolute("spin", **axis), legged.Link("disk", disk), to="upper")
            builder.couple("spin", "elbow", gear)
        return builder.build()

    simple, explicit = build(False), build(True)
    case = case_of(simple, 3)
    rows = [legged.joint_wrenches(robot, case.q, case.v, case.vdot).transmitted for robot in (simple, explicit)]
    assert rows[0] == pytest.approx(rows[1][:3], rel=1e-12, abs=1e-10)
    without = rebuild(simple, joint=lambda joint: replace(joint, physics=legged.JointPhysics()))
    assert np.abs(legged.joint_wrenches(without, case.q, case.v, case.vdot).transmitted - rows[0]).max() > 0.01  # N m


def test_traced_joint_wrenches_equal_plain_ones():
    case = random_case(3, joints=ALL_JOINTS, physics=True)
    kernel = legged.compile(legged.joint_wrenches, case.robot, wrenches=True)
    arguments = case.q, case.v, case.vdot, case.wrenches
    for plain, traced in zip(legged.joint_wrenches(case.robot, *arguments), kernel(*arguments), strict=True):
        assert traced == pytest.approx(plain, abs=10 * EXACT * np.abs(plain).max())


@pytest.mark.parametrize("name", ["ball", "revolute", "rod", "rolling"])
def test_joint_wrenches_of_a_closed_robot_do_the_work_of_the_motors(name):
    """For any virtual velocity of the tree, also one that breaks the loop."""
    closed, q, rng = looped(2, CLOSING[name][0])
    robot = closed.robot
    v, tau, virtual = rng.normal(size=(3, robot.nv))
    v = loops.consistent_velocity(closed, q, v)
    wrenches = {robot.links[-1].name: rng.normal(size=6)}
    motor = {"closing": 1.7} if name == "revolute" else {}
    vdot, multipliers, *_ = loops.solve(closed, q, v, tau, wrenches, loop_forces=motor)
    joint_wrenches = loops.joint_wrenches(closed, q, v, vdot, multipliers, wrenches, loop_forces=motor)
    scale = np.abs(joint_wrenches.transmitted).max() * np.abs(virtual).max()
    work = (joint_wrenches.transmitted * relative_twists(robot, q, virtual)).sum()
    assert work == pytest.approx(tau @ virtual, abs=1e-9 * scale)  # of the solution of (21)
    alone = legged.joint_wrenches(robot, q, v, vdot, wrenches).transmitted
    assert np.abs(alone - joint_wrenches.transmitted).max() > 1e-3 * np.abs(alone).max()
