"""Momentum of robots with joints in time steps with impulses: the closed form of each is exact up to rounding."""

import warnings

import numpy as np
import pytest

import legged
import robots
from legged.contact import Box, FreeBody, Rigid, Sphere
from legged.errors import SimulationWarning
from legged.robot.construction.random_tree import ALL_JOINTS
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.many_contacts import SceneInParts
from tests.contact.test_groups import loop_of, stepped

QUICK = "test_the_flight_of_a_robot_that_swings_its_limbs_is_exact"

STEP = 1e-3  # [s]
ROUNDING = 1e-12  # [kg m/s] and [kg m^2/s], of sums of some 10 over some hundred steps
WEIGHTLESS = (0.0, 0.0, 0.0)
JOINTS = legged.JointPhysics(damping=0.01, lower=-2.0, upper=2.0, armature=0.01)


def figure(base=None, gravity=WEIGHTLESS, physics=JOINTS):
    """Return a trunk with two limbs, whose centers of mass are not at the joints."""
    trunk = legged.Link("trunk", legged.box_inertia(2.0, (0.2, 0.2, 0.2), (0.02, 0.01, 0.0)), shapes=[Box((0.2,) * 3)])
    builder = legged.RobotBuilder("figure", trunk, base=base or legged.FloatingBase(), gravity=gravity)
    for name, axis, x in (("left", "y", 0.1), ("right", "z", -0.1)):
        axis = "y" if isinstance(base, legged.PlanarBase) else axis
        inertia, shape = legged.box_inertia(0.7, (0.3, 0.05, 0.05), (0.15, 0, 0)), Box((0.3, 0.05, 0.05), (0.15, 0, 0))
        limb = legged.Link(name, inertia, shapes=[shape])
        builder.add(legged.Revolute(f"{name}_joint", axis, physics=physics), limb, to="trunk", at=(x, 0, 0))
    return builder.build()


def colliding():
    """Return two figures, the state in which they approach each other, and the pairs that meet."""
    group = legged.combine({"a": figure(), "b": figure()})
    q_of = {"a": [1, 0, 0, 0, 0, 0, 0, 1.8, 1.8], "b": [1, 0, 0, 0, 0.3, 0.05, 0.02, 0.2, 1.0]}
    v_of = {"a": [1, 2, 1, 3, 0, 0.5, 2, -1], "b": np.random.default_rng(0).normal(size=8)}
    pairs = (("a/trunk", "b/trunk"), ("a/left", "b/trunk"), ("a/left", "b/right"))
    return group, *group.join_states(q_of, v_of), pairs


def momenta(robot, q, v):
    """Return angular momentum about the center of mass and about the origin, and linear momentum, (9,)."""
    momentum, c = legged.momentum(robot, q, v), legged.center_of_mass(robot, q)
    return np.concatenate([momentum, momentum[:3] + np.cross(c, momentum[3:])])


@pytest.mark.parametrize("kind", [RigidLoop, SceneInParts])
def test_robots_with_joints_that_collide_keep_their_momentum_in_every_step(kind):
    group, q, v, pairs = colliding()
    for is_balanced in (None, False):
        ground = Rigid(0.5, 0.3, pairs=pairs, balances_momentum=is_balanced)
        loop, x, s = loop_of(kind, group, ground, None, (), q, v)
        before, errors, jumps = momenta(group, q, v), [], []
        for _ in range(60):
            x, s_next = stepped(loop, x, s, 1)
            jumps.append(np.abs(s_next[: group.nv] - s[: group.nv]).max())
            s = s_next
            errors.append(np.abs(momenta(group, x, s[: group.nv]) - before).max())
        assert max(jumps) > 1.0  # they have met
        if is_balanced is None:
            assert max(errors) < ROUNDING
        else:  # the error of the first order that the balance removes
            assert max(errors) > 1e-4


def test_bodies_and_robots_keep_their_momentum_together():
    """A figure is hit by a brick that tumbles, whose center of mass is not at its origin."""
    robot = figure(physics=legged.JointPhysics())  # stops are decided without contacts in parts
    brick = FreeBody(
        "brick",
        legged.box_inertia(1.0, (0.1, 0.2, 0.3), (0.01, 0.02, 0.03)),
        [Box((0.1, 0.2, 0.3))],
        (0.32, 0.05, 0.0),
        velocity=(-4.0, 0.0, 0.0),
        spin=(5.0, -3.0, 2.0),
    )
    q, v = np.array([1.0, 0, 0, 0, 0, 0, 0, 1.0, 1.5]), np.array([0.5, 1.0, -1.0, 1.0, 0.0, 0.5, 1.0, 1.0])
    ends = []
    for kind in (RigidLoop, SceneInParts):
        loop, x, s = loop_of(kind, robot, Rigid(tolerance=1e-9, pairs=(("trunk", "brick"),)), None, [brick], q, v)
        totals = []
        for _ in range(50):
            x, s = stepped(loop, x, s, 1)
            parts = zip(loop.scene.robots, loop.states(x, s), strict=True)
            totals.append(sum(momenta(each, *state)[3:] for each, state in parts))
        assert np.abs(s[:6] - v[:6]).max() > 0.5  # it has been hit
        assert np.abs(np.array(totals) - totals[0]).max() < ROUNDING
        ends.append(np.concatenate([x, s[: robot.nv]]))
    assert np.abs(ends[0] - ends[1]).max() < 1e-7  # the tolerance of the contact solver over the steps


KINDS = tuple(kind for kind in ALL_JOINTS if kind != "free")


def tree(seed, count):
    """Return a weightless random robot with all kinds of joints and a ball on each link."""
    robot = legged.random_tree(
        seed, count, joints=KINDS, bases=["floating"], gravity=WEIGHTLESS, physics=True, coupled=True
    )
    editor = robot.edit()
    for link in robot.links:
        editor.change_link(link.name, shapes=[Sphere(0.3)])
    return editor.build()


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_robots_that_collide_keep_their_momentum_in_every_step(seed, restitution):
    rng = np.random.default_rng(seed)
    group = legged.combine({name: tree(2 * seed + k, 4 - k) for k, name in enumerate("ab")})
    q_of, v_of = {}, {}
    for m, place, velocity in zip(group.members, ((0, 0, 0), (1.0, 0.1, 0.0)), (0.0, -4.0), strict=True):
        q, v = legged.random_configuration(m.robot, rng), 0.5 * rng.normal(size=m.robot.nv)
        q[4:7] += place - legged.center_of_mass(m.robot, q)
        v[3:6] += m.robot.base.pose(q[:7])[0].T @ [velocity, 0.0, 0.0]
        q_of[m.name], v_of[m.name] = q, v
    q, v = group.join_states(q_of, v_of)
    first, second = ([link.name for link in m.robot.links] for m in group.members)
    pairs = [(f"a/{one}", f"b/{other}") for one in first for other in second]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # balls of a random robot may overlap at the start
        run = legged.simulate(
            group, ground=Rigid(0.5, restitution, pairs=pairs), q=q, v=v, until=0.25, sample=STEP, fall=False
        )
    sums = np.array([momenta(group, *state)[3:] for state in zip(run.q, run.v, strict=True)])
    assert np.abs(run.contacts.impulse).max() > 0.5  # [N s]: they have met
    assert np.abs(sums - sums[0]).max() < ROUNDING


def drive(t, q, v, wrenches):
    """Swing the limbs."""
    return np.array([np.sin(9.0 * t), np.cos(7.0 * t)])  # [N m]


@pytest.mark.parametrize("base", [legged.FloatingBase(), legged.EulerBase(), legged.PlanarBase()])
def test_the_flight_of_a_robot_that_swings_its_limbs_is_exact(base):
    """Parabola of the center of mass, and angular momentum about it."""
    gravity = (0.0, 0.0, -9.81)
    robot = figure(base, gravity)
    rng = np.random.default_rng(2)
    q, v = robot.neutral(), rng.normal(size=robot.nv)
    run = legged.simulate(robot, drive, ground=Rigid(pairs=()), q=q, v=v, until=0.3, fall=False)
    sums = [legged.momentum(robot, *state) for state in zip(run.q, run.v, strict=True)]
    wanted = legged.momentum(robot, q, v) + np.outer(run.times, [0, 0, 0, *robot.mass * np.array(gravity)])
    assert np.abs(run.q[-1] - q)[-2:].min() > 0.1  # the limbs have moved
    kept = [1, 3, 5] if robot.nv == 5 else range(6)  # those of the plane
    assert np.abs(np.array(sums) - wanted)[:, kept].max() < ROUNDING
    c = np.array([legged.center_of_mass(robot, x) for x in run.q])
    path = c[0] + np.outer(run.times, wanted[0, 3:] / robot.mass) + 0.5 * np.outer(run.times**2, gravity)
    assert np.abs(c - path).max() < ROUNDING


def test_pushes_change_the_momentum_by_their_impulses():
    robot = figure()
    q, v = robot.neutral(), np.random.default_rng(3).normal(size=robot.nv)
    push = legged.Push("left", (0.1, 0.2, -0.3), at=0.05, duration=0.1, point=(0.1, 0.0, 0.05))
    run = legged.simulate(robot, ground=Rigid(pairs=()), pushes=[push], q=q, v=v, until=0.2, sample=STEP, fall=False)
    momentum = np.array([legged.momentum(robot, *state) for state in zip(run.q, run.v, strict=True)])
    change = momentum[-1] - momentum[0]
    assert np.abs(momentum[:51] - momentum[0]).max() < ROUNDING
    assert np.abs(momentum[151:] - momentum[-1]).max() < ROUNDING
    assert np.abs(change[3:] - np.array([0.1, 0.2, -0.3])).max() < ROUNDING
    assert np.abs(change[:3]).max() > 0.01


def test_forces_on_the_base_change_the_momentum_by_their_impulses():
    robot, h = figure(), STEP
    q, v = legged.random_configuration(robot, np.random.default_rng(5)), np.zeros(robot.nv)
    loop, x, s = loop_of(RigidLoop, robot, Rigid(pairs=()), None, (), q, v)
    tau = np.array([0.3, -0.2, 0.1, 1.0, 2.0, 3.0, 0.0, 0.0])  # [N m] and [N], base axes
    none = np.zeros(robot.nv)
    x, s = loop.impact_step(0.0, h, loop.loads(0.0, h), x, s, tau, none, np.zeros(0))
    R, _ = robot.base.pose(q[:7])
    arm = q[4:7] - legged.center_of_mass(robot, q)
    f = R @ tau[3:6]
    expected = h * np.concatenate([R @ tau[:3] + np.cross(arm, f), f])
    assert np.abs(legged.momentum(robot, x, s[: robot.nv]) - expected).max() < 1e-14


def test_a_robot_with_closed_loops_in_flight_keeps_its_momentum():
    closed = robots.five_bar_leg(base=legged.FloatingBase(), gravity=WEIGHTLESS)
    q = legged.loops.assemble(closed, closed.robot.neutral())
    v = legged.loops.consistent_velocity(closed, q, np.random.default_rng(1).normal(size=closed.nv))
    run = legged.simulate(closed, ground=Rigid(pairs=()), q=q, v=v, until=0.1, fall=False)
    sums = np.array([momenta(closed.robot, *state) for state in zip(run.q, run.v, strict=True)])
    assert np.abs(run.q[-1] - q)[7:].max() > 0.05  # its joints have moved
    assert np.abs(sums - sums[0]).max() < ROUNDING


def test_robots_on_the_ground_alone_do_not_pay_for_the_balance():
    """Nothing in their scenes conserves momentum; the switch balances them too, which changes the motion slightly."""
    robot = robots.spatial_biped()
    alone, asked = (RigidLoop(robot, None, Rigid(balances_momentum=flag), 0) for flag in (None, True))
    assert [len(loop.free_parts[0]) for loop in (alone, asked)] == [0, 1]
