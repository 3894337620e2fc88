"""Invariance under a change of world frame, names, numbering, partition, merged links and coordinates.

Both sides are equal in exact arithmetic, so they agree to rounding: 1e-11 of |I| |vdot| + |h|.
"""

from dataclasses import replace

import numpy as np
import pytest
from oracles.cases import case_of, size_of_forces
from oracles.differences import derivative
from oracles.rebuild import rebuild, renumbering

import legged
from legged.rotations import euler_matrix, euler_rate_matrix, quaternion_of, quaternion_product

SEEDS = range(12)
ROUNDING = 1e-11
TURN = legged.rpy(0.4, -1.1, 2.3)


def case(seed, **options):
    return case_of(legged.random_tree(seed, **options), seed)


def forces_of(case):
    """Return (tau, size of its terms) at the acceleration of the case."""
    robot, q, v = case.robot, case.q, case.v
    inertia, h = legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v, case.wrenches)
    return legged.inverse_dynamics(robot, q, v, case.vdot, case.wrenches), size_of_forces(inertia, case.vdot, h)


@pytest.mark.parametrize("base", ["floating", "euler"])
@pytest.mark.parametrize("seed", SEEDS)
def test_rotating_and_translating_the_world_changes_no_joint_torque(seed, base):
    before = case(seed, bases=(base,))
    robot, q, v = before.robot, before.q, before.v
    R, o = robot.base.pose(q[: robot.base.nq])
    R_new, o_new = TURN @ R, TURN @ o + [3.0, -2.0, 1.0]
    turned = rebuild(robot, gravity=TURN @ robot.gravity)
    n = robot.base.nq
    q_new = np.concatenate([robot.base.configuration(o_new, R_new), q[n:]])
    if base == "floating":
        v_new, vdot_new = v, before.vdot
    else:  # the same angular velocity and acceleration in new angles: L_new v_new = L v, and its rate
        v_new, vdot_new = v.copy(), before.vdot.copy()
        b, qb = robot.base, q_new[:n]
        P, P_new = b.motion_matrix(q[:n]), b.motion_matrix(qb)
        v_new[:6] = np.linalg.solve(P_new, P @ v[:6])
        bias = b.motion_bias(q[:n], v[:6]) - b.motion_bias(qb, v_new[:6])
        vdot_new[:6] = np.linalg.solve(P_new, P @ before.vdot[:6] + bias)
    tau, size = forces_of(before)
    tau_new, _ = forces_of(replace(before, robot=turned, q=q_new, v=v_new, vdot=vdot_new))
    lost = 1.0 if base == "floating" else np.linalg.cond(P_new)  # larger rounding errors near gimbal lock
    assert tau_new[6:] == pytest.approx(tau[6:], abs=ROUNDING * lost * size)


@pytest.mark.parametrize("seed", SEEDS)
def test_renumbering_links_and_joints_changes_nothing(seed):
    before = case(seed)
    other = rebuild(before.robot, shuffle=np.random.default_rng(seed))
    assert_same_dynamics(before, other)


@pytest.mark.parametrize("seed", SEEDS)
def test_modules_of_one_link_each_change_nothing(seed):
    before = case(seed, joints=("revolute", "prismatic", "universal", "ball", "planar"))
    other = rebuild(before.robot, modules=[[link.name] for link in before.robot.links])
    assert len(other.modules) == len(other.links)
    assert_same_dynamics(before, other)


@pytest.mark.parametrize("seed", SEEDS)
def test_another_partition_changes_nothing(seed):
    before = case(seed)
    rng = np.random.default_rng(seed)
    cut = [list(module.links) for module in before.robot.modules[:1]]
    for module in before.robot.modules[1:]:
        heads = [link for link in before.robot.links if link.name in module.links]
        at = int(rng.integers(1, len(heads) + 1))
        at = next((k for k in range(at, len(heads)) if heads[k].body != heads[k - 1].body), len(heads))
        cut += [part for part in ([i.name for i in heads[:at]], [i.name for i in heads[at:]]) if part]
    other = rebuild(before.robot, modules=cut)
    assert len(other.modules) == len(cut)
    assert_same_dynamics(before, other)


@pytest.mark.parametrize("seed", SEEDS)
def test_splitting_links_and_fixing_the_parts_together_changes_nothing(seed):
    before = case(seed, links=8)
    other = rebuild(before.robot, split=True)
    assert len(other.links) == 2 * len(before.robot.links)
    assert len(other.bodies) == len(before.robot.bodies)
    assert_same_dynamics(before, other)


def assert_same_dynamics(before, other):
    """Assert that another robot has the same dynamics, with joints and links matched by name."""
    robot = before.robot
    of_q, of_v = renumbering(robot, other)
    wrenches = {link.name: w for link, w in zip(robot.links, before.wrenches, strict=True)}
    q, v, vdot = before.q[of_q], before.v[of_v], before.vdot[of_v]
    tau, size = forces_of(before)
    new = legged.inverse_dynamics(other, q, v, vdot, wrenches)
    assert np.abs(new - tau[of_v]).max(initial=0) <= ROUNDING * size
    inertia = legged.inertia_matrix(robot, before.q)[np.ix_(of_v, of_v)]
    assert np.abs(legged.inertia_matrix(other, q) - inertia).max(initial=0) <= ROUNDING * np.abs(inertia).max(initial=0)
    rates = legged.forward_dynamics(other, q, v, tau[of_v], wrenches)
    back = legged.inverse_dynamics(robot, before.q, before.v, rates[np.argsort(of_v)], before.wrenches)
    assert np.abs(back - tau).max(initial=0) <= ROUNDING * size


def lifted(robot, T, Td, q, before):
    """Return (T^T tau', size of its terms) for a less constrained robot with v' = T v in the same motion."""
    v, vdot = T @ before.v, T @ before.vdot + Td @ before.v
    tau = legged.inverse_dynamics(robot, q, v, vdot, before.wrenches)
    inertia, h = legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v, before.wrenches)
    return T.T @ tau, size_of_forces(inertia, vdot, h)


def base_map(base, q, nv):
    """Return T with v' = T v, from a base's coordinates to the body twist of a floating base."""
    T = np.zeros((nv - base.nv + 6, nv))
    T[:6, : base.nv] = base.motion_matrix(q)
    T[6:, base.nv :] = np.eye(nv - base.nv)
    return T


@pytest.mark.parametrize("base", ["fixed", "planar", "euler"])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_base_is_a_floating_base_with_its_motion_restricted(seed, base):
    before = case(seed, bases=(base,), links=1 + seed % 12)
    robot, q, v = before.robot, before.q, before.v
    free = rebuild(robot, base=legged.FloatingBase())
    b, n, m = robot.base, robot.base.nq, robot.base.nv
    R, o = b.pose(q[:n])
    q_free = np.concatenate([quaternion_of(R), o, q[n:]])
    T = base_map(b, q[:n], robot.nv)
    Td = derivative(lambda t: base_map(b, q[:n] + t * v[:m], robot.nv))
    tau, size = lifted(free, T, Td, q_free, before)
    # Td is a finite difference, good to 1e-9
    assert np.abs(forces_of(before)[0] - tau).max(initial=0) <= 1e-8 * size


@pytest.mark.parametrize("sequence", ["xyz", "zyx", "zxz", "yxy", "xzy"])
@pytest.mark.parametrize("seed", range(4))
def test_three_euler_angles_are_a_quaternion_ball_joint_in_other_coordinates(seed, sequence):
    before = case(seed, links=1 + seed, joints=("ball",), bases=("floating",))
    balls = before.robot
    robot = rebuild(balls, joint=lambda joint: legged.Spherical(joint.name, sequence))
    start = case_of(robot, seed)

    def q_of(angles_at):
        q = [angles_at[: robot.base.nq]]
        for joint in robot.joints:
            q.append(quaternion_of(euler_matrix(sequence, angles_at[joint.q])))
        return np.concatenate(q)

    def T_of(angles_at):
        T = np.eye(robot.nv)
        for joint in robot.joints:
            T[joint.v, joint.v] = euler_rate_matrix(sequence, angles_at[joint.q])
        return T

    moved = derivative(lambda t: T_of(legged.integrate(robot, start.q, t * start.v)))
    tau, size = lifted(balls, T_of(start.q), moved, q_of(start.q), start)
    assert np.abs(forces_of(start)[0] - tau).max() <= 1e-8 * size  # the rate of T is a finite difference


def test_joints_of_several_degrees_of_freedom_are_chains_with_massless_links_between():
    body, base = (
        legged.box_inertia(2.0, (0.3, 0.2, 0.5), (0.1, 0.0, -0.2)),
        legged.Link("base", legged.box_inertia(5.0, (1, 1, 1))),
    )
    whole = (
        legged.RobotBuilder("whole", base)
        .add(legged.Universal("u", "x", "-y"), legged.Link("a", body), to="base", at=(0.1, 0.2, 0.3))
        .add(legged.Planar("p", "z", "x"), legged.Link("b", body), to="a", at=(0, 0, -0.4))
        .add(legged.Spherical("s", "zxz"), legged.Link("c", body), to="b", at=(0, 0.1, -0.4))
        .build()
    )
    parts = (
        legged.RobotBuilder("parts", base)
        .add(legged.Revolute("u1", "x"), legged.Link("a1"), to="base", at=(0.1, 0.2, 0.3))
        .add(legged.Revolute("u2", "-y"), legged.Link("a", body), to="a1")
        .add(legged.Prismatic("p1", "z"), legged.Link("b1"), to="a", at=(0, 0, -0.4))
        .add(legged.Prismatic("p2", "x"), legged.Link("b2"), to="b1")
        .add(legged.Revolute("p3", "y"), legged.Link("b", body), to="b2")
        .add(legged.Revolute("s1", "z"), legged.Link("c1"), to="b", at=(0, 0.1, -0.4))
        .add(legged.Revolute("s2", "x"), legged.Link("c2"), to="c1")
        .add(legged.Revolute("s3", "z"), legged.Link("c", body), to="c2")
        .build()
    )
    before = case_of(whole, 11)
    wrenches = {link.name: w for link, w in zip(whole.links, before.wrenches, strict=True)}
    tau, size = forces_of(before)
    assert legged.inverse_dynamics(parts, before.q, before.v, before.vdot, wrenches) == pytest.approx(
        tau, abs=ROUNDING * size
    )


@pytest.mark.parametrize("seed", range(8))
def test_both_signs_of_a_quaternion_are_one_configuration(seed):
    before = case(seed, links=6, joints=("ball", "revolute"), bases=("floating",))
    q = before.q.copy()
    for where in [slice(0, 4), *(body.q for body in before.robot.bodies if body.kind == "ball")]:
        q[where] = -q[where]
    tau, size = forces_of(before)
    assert forces_of(replace(before, q=q))[0] == pytest.approx(tau, abs=ROUNDING * size)


def test_planar_robot_on_a_floating_base_stays_in_its_plane():
    import robots

    planar = robots.planar_biped()
    before = case_of(planar, 4)
    free = rebuild(planar, base=legged.FloatingBase())
    phi, x, z = before.q[:3]
    half = np.array([np.cos(phi / 2), 0.0, np.sin(phi / 2), 0.0])
    q = np.concatenate([quaternion_product(half, np.array([1.0, 0, 0, 0])), [x, 0.0, z], before.q[3:]])
    v = np.concatenate([planar.base.motion_matrix(before.q[:3]) @ before.v[:3], before.v[3:]])
    tau = np.concatenate([np.zeros(6), before.tau[3:]])
    vdot = legged.forward_dynamics(free, q, v, tau)
    assert vdot[[0, 2, 4]] == pytest.approx(0, abs=1e-12 * np.abs(vdot).max())
    inside = legged.forward_dynamics(planar, before.q, before.v, np.concatenate([np.zeros(3), tau[6:]]))
    assert vdot[6:] == pytest.approx(inside[3:], abs=1e-11 * np.abs(inside).max())


@pytest.mark.parametrize("seed", range(8))
def test_zero_gravity_is_equivalent_to_a_base_in_free_fall(seed):
    before = case(seed, bases=("floating",))
    robot, q = before.robot, before.q
    weightless = rebuild(robot, gravity=np.zeros(3))
    R, _ = robot.base.pose(q[:7])
    lifted_rates = before.vdot.copy()
    lifted_rates[3:6] -= R.T @ robot.gravity
    tau, size = forces_of(before)
    assert forces_of(replace(before, robot=weightless, vdot=lifted_rates))[0] == pytest.approx(tau, abs=ROUNDING * size)
