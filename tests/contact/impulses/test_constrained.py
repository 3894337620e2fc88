"""Rigid contact of robots with joints that follow others and with closed loops: dense oracle, balances, MuJoCo."""

import mujoco
import numpy as np
import pytest

import legged
import robots
from legged import loops
from legged.contact import FreeBody, Rigid, Scene, Sphere
from legged.contact.detection.pairs import Side
from legged.contact.impulses.delassus import Contacts
from legged.contact.impulses.dense import LoopRows
from legged.contact.impulses.newton import GeneralizedSystem
from legged.contact.impulses.solver import ContactProblem, velocities
from legged.loops.redundancy import independent_flags

G = 9.81  # [m/s^2]


def gripper(gravity=(0.0, 0.0, -G)):
    """Return a floating palm with two fingers, the right one of which follows the left one."""
    builder = legged.RobotBuilder(
        "gripper", legged.Link("palm", legged.box_inertia(1, (0.1, 0.1, 0.1))), gravity=gravity
    )
    for name, y in (("left", 0.05), ("right", -0.05)):
        inertia = legged.box_inertia(0.2, (0.02, 0.02, 0.1), (0, 0, -0.05))
        tip = legged.Link(name, inertia, {f"{name}_tip": (0.0, 0.01, -0.1)}, [Sphere(0.02, (0, 0, -0.1))])
        builder.add(legged.Revolute(f"{name}_joint", "x"), tip, to="palm", at=(0, y, -0.05))
    return builder.couple("right_joint", "left_joint", -1.0).build()


def linkage(gravity=(0.0, 0.0, -G)):
    """Return a floating base with two arms whose ends a ball joint connects, and a state on the constraints."""
    closed = robots.five_bar_leg(legged.FloatingBase(), gravity)
    q = loops.assemble(closed, closed.robot.neutral() + np.r_[np.zeros(7), 0.5, -0.9, -0.5, 0.9])
    return loops.independent_first(closed, q), q


def loop_rows(closed, q):
    J = loops.jacobian(closed, q)
    return LoopRows(J, independent_flags(closed, J))


def weights(n, rng):
    return rng.uniform(0.0, 0.5, n)


def problem(robot, q, rows, rng):
    """Return contacts at random points and frames of all links, with a free body, and their dense Jacobian."""
    body = FreeBody("ball", legged.sphere_inertia(0.7, 0.1), [Sphere(0.1)]).robot(robot.gravity)
    system, qs = (robot, body), [q, legged.random_configuration(body, rng)]
    extra = [np.r_[np.zeros(6), weights(robot.nv - 6, rng)], np.zeros(6)]
    sides, m = [], len(robot.links) + 1
    F = np.array([np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(m)])
    points, n = rng.normal(size=(m, 3)), robot.nv
    J = np.zeros((3 * m, n + 6))
    for i in range(m):
        link = robot.links[i % len(robot.links)]
        other = Side(1, 0, 0) if i % 2 else None
        sides.append((Side(0, link.index, link.body), other))
        for number, sign, index, at in ((0, 1.0, link.index, 0), (1, -1.0, 0, n)):
            if number == 0 or other:
                R, o = legged.link_poses(system[number], qs[number])
                local = R[index].T @ (points[i] - o[index])
                own = legged.point_jacobian(system[number], qs[number], index, local)[3:]
                J[3 * i : 3 * i + 3, at : at + own.shape[1]] = sign * F[i] @ own
    contacts = Contacts.of(system, sides, qs, extra, F, points, rows)
    M = np.zeros((n + 6, n + 6))
    M[:n, :n] = legged.inertia_matrix(robot, q) + np.diag(extra[0])
    M[n:, n:] = legged.inertia_matrix(body, qs[1])
    return contacts, J, M


def cases():
    """Yield (robot, q, loop rows or None) of a robot with a follower and of one with a redundant closed loop."""
    rng = np.random.default_rng(3)
    robot = gripper()
    yield robot, legged.random_configuration(robot, rng), None
    closed, q = linkage()
    yield closed.robot, q, loop_rows(closed, q)


@pytest.mark.parametrize("number", [0, 1])
def test_delassus_operator_equals_the_inverse_of_the_constrained_system(number):
    """The dense oracle is the inverse of [M L^T; L 0] with independent rows L."""
    robot, q, rows = list(cases())[number]
    rng = np.random.default_rng(number)
    contacts, J, M = problem(robot, q, rows, rng)
    n, m = len(M), len(contacts.sides)
    L = (
        np.zeros((0, n))
        if rows is None
        else np.pad(rows.jacobian[np.array(rows.independent)], ((0, 0), (0, n - robot.nv)))
    )
    system = np.block([[M, L.T], [L, np.zeros((len(L), len(L)))]])
    W = np.linalg.inv(system)[:n, :n]
    near, groups = contacts.delassus()
    known = ContactProblem(near, np.zeros((m, 3)), [0.0] * m, groups)
    A = np.array([velocities(known, unit.reshape(m, 3)).ravel() for unit in np.eye(3 * m)]).T
    scale = np.abs(A).max()
    assert np.abs(A - J @ W @ J.T).max() < 1e-11 * scale
    p = rng.normal(size=(m, 3))
    vs = [np.zeros(robot.nv), np.zeros(6)]
    joints = rng.normal(size=robot.nv)  # generalized impulses
    for generalized in (None, joints):
        momentum = J.T @ p.ravel() + (0.0 if generalized is None else np.r_[joints, np.zeros(6)])
        after = np.concatenate(contacts.after(vs, p, generalized))
        assert np.abs(after - W @ momentum).max() < 1e-11 * np.abs(W).max() * np.abs(momentum).max()
    inertia, jacobian = GeneralizedSystem(contacts, vs).matrices()
    projected = np.array([jacobian.velocities(unit).ravel() for unit in np.eye(n)]).T
    assert np.abs(projected @ np.linalg.solve(inertia, projected.T) - A).max() < 1e-11 * scale
    if rows is not None:
        assert np.abs(rows.jacobian @ contacts.after(vs, p)[0]).max() < 1e-10  # the loops stay closed


def momentum(systems, qs, vs):
    """Return linear momentum and angular momentum about the world's origin of all robots, (6,)."""
    total = np.zeros(6)
    for robot, q, v in zip(systems, qs, vs, strict=True):
        own, c = legged.momentum(robot, q, v), legged.center_of_mass(robot, q)
        total += np.r_[own[3:], own[:3] + np.cross(c, own[3:])]
    return total


@pytest.mark.parametrize("number", [0, 1])
def test_a_hit_in_free_space_keeps_momentum_and_energy(number):
    """A ball with restitution 1 hits a link of the mechanism, without gravity and friction, in one step."""
    gravity, rows = (0.0, 0.0, 0.0), None
    if number:
        closed, q = linkage(gravity)
        tree, link = closed.robot, closed.robot.links[2].name
        rows = loop_rows(closed, q)
        tree = tree.edit().change_link(link, shapes=[Sphere(0.05, (0, 0, -0.1))]).build()
    else:
        tree, link = gripper(gravity), "left"
        q = tree.neutral()
    R, o = legged.link_poses(tree, q)
    index = tree.link(link).index
    at = o[index] + R[index] @ (0.0, 0.0, -0.1) + (0.005, 0.071, 0.004)
    ball = FreeBody("ball", legged.sphere_inertia(0.5, 0.05), [Sphere(0.05)], position=at, velocity=(0.0, -2.0, 0.3))
    scene = Scene.of(tree, Rigid(0.0, 1.0, pairs=((link, "ball"),)), [ball])
    qs, vs, h = [q, ball.state()[0]], [np.zeros(tree.nv), ball.state()[1]], 0.02
    extra, geometry = [np.zeros(robot.nv) for robot in scene.robots], scene.contact_geometry(qs)
    solution = scene.impulses(qs, vs, vs, extra, h, geometry, np.zeros((1, 3)), rows)
    assert solution.p[0, 0] > 0.1  # [N s], it was hit
    before, after = momentum(scene.robots, qs, vs), momentum(scene.robots, qs, solution.v_next)
    assert np.abs(after - before).max() < 1e-12
    energies = [
        sum(legged.kinetic_energy(robot, x, v) for robot, x, v in zip(scene.robots, qs, each, strict=True))
        for each in (vs, solution.v_next)
    ]
    assert abs(energies[1] - energies[0]) < 1e-12
    assert rows is None or np.abs(rows.jacobian @ solution.v_next[0]).max() < 1e-10


def test_a_closed_leg_stands_with_the_weight_on_its_foot():
    """Five-bar leg on a planar base with joint servos: normal force m g, no creep, closed loop."""
    closed = robots.five_bar_leg()
    tree = closed.robot
    guess = tree.neutral()
    guess[3:] = [0.5, -0.9, -0.5, 0.9]
    q = loops.assemble(closed, guess, hold_base=True)
    q[2] -= legged.point_positions(tree, q, [(tree.contacts[0].link, tree.contacts[0].position)])[0][2]
    kp = np.r_[np.zeros(3), 200.0 * np.ones(tree.nj)]

    def hold(t, x, v, wrenches):
        return kp * (q - x) - 0.01 * kp * v

    run = legged.simulate(closed, hold, ground=Rigid(0.8), q=q, until=0.15, sample=0.01, fall=False)
    weight = G * sum(link.inertia.mass for link in tree.links)
    vertical = run.contacts.impulse[:, 0, 2].sum() / run.times[-1]
    assert abs(vertical / weight - 1.0) < 0.2
    assert np.abs(legged.simulation.loop_errors(closed, run)).max() < 1e-9
    foot = [legged.point_positions(tree, x, [(tree.contacts[0].link, tree.contacts[0].position)])[0] for x in run.q]
    assert np.abs(np.array(foot) - foot[0]).max() < 1e-6


FOLLOWER = """<mujoco><option timestep="2e-4" gravity="0 0 -9.81" cone="elliptic" impratio="100"/><worldbody>
<geom type="plane" size="9 9 1" friction="0.8" condim="3" solref="0.0008 1" solimp="0.999 0.9999 1e-4"/>
<body name="trunk" pos="0 0 0.75"><joint name="z" type="slide" axis="0 0 1"/>
<geom type="box" size="0.1 0.1 0.05" mass="5" contype="0" conaffinity="0"/>
<body name="thigh"><joint name="hip" axis="0 1 0" stiffness="120" springref="0.6" damping="3"/>
<inertial pos="0 0 -0.2" mass="0.8" diaginertia="0.01 0.01 0.001"/>
<body name="shank" pos="0 0 -0.4"><joint name="knee" axis="0 1 0"/>
<inertial pos="0 0 -0.2" mass="0.4" diaginertia="0.006 0.006 0.0006"/>
<geom name="foot" type="sphere" size="0.03" pos="0 0 -0.4" mass="0" friction="0.8" condim="3"
 solref="0.0008 1" solimp="0.999 0.9999 1e-4"/>
</body></body></body></worldbody>
<equality><joint joint1="knee" joint2="hip" polycoef="0 -2 0 0 0" solref="0.0008 1" solimp="0.9999 0.9999 1e-4"/>
</equality></mujoco>"""


def test_a_leg_with_a_coupled_knee_lands_as_in_mujoco(tmp_path):
    """A vertical slide, a hip with a spring and a knee that follows it: the heights of 0.5 s agree."""
    path = tmp_path / "leg.xml"
    path.write_text(FOLLOWER)
    robot = legged.load(path, feet={"foot": ("shank", legged.Sphere(0.03, (0.0, 0.0, -0.4)))})
    assert robot.coupled_joints
    q = np.array([0.1, 0.5])
    run = legged.simulate(robot, None, ground=Rigid(0.8), q=q, until=0.5, sample=0.05, fall=False)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:] = [0.1, 0.5, -1.0]
    heights = []
    for k in range(2501):
        if k % 250 == 0:
            heights.append(data.qpos[:2].copy())
        mujoco.mj_step(model, data)
    assert np.abs(run.q - np.array(heights)).max() < 4e-3  # [m], [rad]; half a step of 1 ms at 8 rad/s
    assert run.contacts.impulse[:, 0, 2].sum() > 10.0  # [N s], it has landed
