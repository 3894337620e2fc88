"""The Delassus operator and velocity jumps by recursions, compared with dense matrices on random trees."""

import numpy as np
import pytest

import legged
from legged.contact import Box, FreeBody, Rigid, Scene, Sphere
from legged.contact.detection.pairs import Side
from legged.contact.impulses.delassus import Contacts
from legged.contact.impulses.dense import screws, twist_by, twist_jacobian
from legged.contact.impulses.solver import ContactProblem, velocities
from legged.dynamics.forward import accelerations
from legged.dynamics.kinematics import motion
from legged.robot.configuration import integrate
from legged.robot.construction.random_tree import random_tree


def frames(rng, m):
    """Return m random rotations."""
    return np.array([np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(m)])


def case(seed: int):
    """Return random trees, contacts anywhere on and between them, and the dense J, (3 m, all nv), of the contacts."""
    rng = np.random.default_rng(seed)
    robots = [random_tree(seed, int(rng.integers(1, 8)), physics=seed % 2 == 1), random_tree(seed + 1000, 3)]
    qs = [legged.random_configuration(robot, rng) for robot in robots]
    extra = [np.r_[np.zeros(robot.base.nv), rng.uniform(0.0, 2.0, robot.nj)] for robot in robots]
    m = int(rng.integers(1, 6))
    F, points = frames(rng, m), rng.normal(size=(m, 3))
    if m > 2:
        F[1] = F[0]  # two contacts of one frame
    sides, J = [], np.zeros((3 * m, sum(robot.nv for robot in robots)))
    for i in range(m):
        one = side(robots, 0, rng)
        other = [None, side(robots, 1, rng), side(robots, 0, rng)][int(rng.integers(3))]
        if i == 1 and m > 2 and seed % 2:
            one, other = sides[0]  # and of the same bodies: they are a group
        sides.append((one, other))
        for end, sign in ((one, 1.0), (other, -1.0)):
            if end is not None:
                J[3 * i : 3 * i + 3] += sign * F[i] @ dense(robots, qs, end, points[i])
    return robots, qs, extra, Contacts.of(robots, sides, qs, extra, F, points), J, rng


def side(robots, number, rng):
    link = robots[number].links[int(rng.integers(len(robots[number].links)))]
    return Side(number, link.index, link.body)


def dense(robots, qs, end, point):
    """Return the Jacobian of a point in the world that moves with a link, (3, all nv)."""
    robot, q = robots[end.robot], qs[end.robot]
    R, o = legged.link_poses(robot, q)
    J = legged.point_jacobian(robot, q, end.link, R[end.link].T @ (point - o[end.link]))[3:]
    before = sum(other.nv for other in robots[: end.robot])
    after = sum(other.nv for other in robots[end.robot + 1 :])
    return np.hstack([np.zeros((3, before)), J, np.zeros((3, after))])


def inertias(robots, qs, extra):
    """Return M + diag(extra) of all robots, (all nv, all nv)."""
    n = [robot.nv for robot in robots]
    M = np.zeros((sum(n), sum(n)))
    for k, (robot, q, more) in enumerate(zip(robots, qs, extra, strict=True)):
        at = slice(sum(n[:k]), sum(n[: k + 1]))
        M[at, at] = legged.inertia_matrix(robot, q) + np.diag(more)
    return M


@pytest.mark.parametrize("seed", range(15))
def test_delassus_operator_equals_dense_matrices(seed):
    robots, qs, extra, contacts, J, _ = case(seed)
    M, m = inertias(robots, qs, extra), len(contacts.sides)
    near, groups = contacts.delassus()
    problem = ContactProblem(near, np.zeros((m, 3)), [0.0] * m, groups)
    A = np.array([velocities(problem, unit.reshape(m, 3)).ravel() for unit in np.eye(3 * m)]).T
    expected = J @ np.linalg.solve(M, J.T)
    assert A.shape == (3 * m, 3 * m)
    for blocks in (near, groups.mobility):
        for i, j in np.ndindex(len(blocks), len(blocks)):
            there, back = blocks[i][j], blocks[j][i]
            assert (there is None) == (back is None)
            assert there is None or np.array_equal(there, back.T)
    rounding = 1e-14 * np.linalg.cond(M)  # of the dense solution
    assert np.abs(A - expected).max() <= max(rounding, 1e-12) * max(np.abs(expected).max(), 1.0)


@pytest.mark.parametrize("seed", range(15))
def test_velocity_jumps_equal_dense_matrices(seed):
    robots, qs, extra, contacts, J, rng = case(seed)
    vs = [rng.normal(size=robot.nv) for robot in robots]
    p = rng.normal(size=(len(contacts.sides), 3))
    M, after = inertias(robots, qs, extra), np.concatenate(contacts.after(vs, p))
    expected = np.concatenate(vs) + np.linalg.solve(M, J.T @ p.ravel())
    rounding = max(1e-14 * np.linalg.cond(M), 1e-12)
    assert np.abs(after - expected).max() <= rounding * max(np.abs(expected).max(), 1.0)
    assert np.abs(contacts.velocities(vs).ravel() - J @ np.concatenate(vs)).max() < 1e-11 * max(np.abs(J).max(), 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_impulses_are_forces_of_a_short_time(seed):
    """A constant force p over a unit of time changes the velocity as the impulse p; `wrenches` gives its wrenches."""
    rng = np.random.default_rng(seed)
    robot = random_tree(seed, 6, physics=False)
    q, none = legged.random_configuration(robot, rng), np.zeros(robot.nv)
    contact = robot.links[-1]
    named = robot_with_point(robot, contact.name, rng.normal(size=3))
    scene = Scene.of(named, Rigid())
    geometry, p = scene.contact_geometry([q]), rng.normal(size=(1, 3))
    (wrenches,) = scene.wrenches([q], geometry, p)
    held = accelerations(named, q, none, none, wrenches, none) - accelerations(named, q, none, none, None, none)
    sides = [(candidate.first, candidate.second) for candidate in scene.candidates]
    contacts = Contacts.of(scene.robots, sides, [q], [none], geometry.frame, geometry.point)
    (jump,) = contacts.after([none], p)
    assert np.abs(jump - held).max() < 1e-9 * max(np.abs(held).max(), 1.0)


def robot_with_point(robot, link: str, at):
    """Return the robot with one contact point."""
    editor = robot.edit()
    for other in robot.links:
        editor.change_link(other.name, contacts={"tip": at} if other.name == link else {})
    return editor.build()


def momenta(robots, qs, vs):
    """Return [angular momentum about the world's origin; linear], (6,), of all robots together."""
    total = np.zeros(6)
    for robot, q, v in zip(robots, qs, vs, strict=True):
        own, c = legged.momentum(robot, q, v), legged.center_of_mass(robot, q)
        total += np.r_[own[:3] + np.cross(c, own[3:]), own[3:]]
    return total


@pytest.mark.parametrize("seed", range(12))
def test_impulses_inside_a_scene_keep_its_momentum(seed):
    """Robot, box and ball hit each other in free space, with friction and restitution: linear and angular momentum."""
    rng = np.random.default_rng(seed)
    hand = legged.Link("hand", legged.box_inertia(3, (0.3, 0.2, 0.1)), shapes=[Box((0.3, 0.2, 0.1))])
    builder = legged.RobotBuilder("arm", hand)
    finger = legged.Link("finger", legged.box_inertia(0.5, (0.1, 0.1, 0.3)), shapes=[Sphere(0.08, (0, 0, 0.15))])
    robot = builder.add(legged.Revolute("knuckle", "x"), finger, to="hand", at=(0.0, 0.1, 0.05)).build()
    cube = FreeBody("cube", legged.box_inertia(1.0, (0.2, 0.2, 0.2)), [Box((0.2, 0.2, 0.2))])
    ball = FreeBody("ball", legged.sphere_inertia(0.4, 0.1), [Sphere(0.1)])
    pairs = (("hand", "cube"), ("finger", "cube"), ("ball", "cube"), ("ball", "hand"), ("ball", "finger"))
    scene = Scene.of(robot, Rigid(0.5, 0.7, pairs=pairs), [cube, ball])
    qs = [legged.random_configuration(r, rng) for r in scene.robots]
    vs = [rng.normal(size=r.nv) for r in scene.robots]
    for r, q, v in zip(scene.robots, qs, vs, strict=True):
        v[3:6] = -20.0 * r.base.pose(q)[0].T @ q[4:7]  # all meet at the origin after 0.05 s
    extra = [np.zeros(r.nv) for r in scene.robots]
    geometry = scene.contact_geometry(qs)
    impact = scene.impulses(qs, vs, vs, extra, 0.05, geometry, np.zeros((len(scene.candidates), 3)))
    assert np.abs(impact.p).max() > 1e-3  # they do hit
    before, after = momenta(scene.robots, qs, vs), momenta(scene.robots, qs, impact.v_next)
    assert np.abs(after - before).max() < 1e-12 * max(np.abs(before).max(), np.abs(impact.p).max())


@pytest.mark.parametrize("seed", range(12))
def test_jacobians_of_all_bodies_are_those_of_each_body(seed):
    """The first have a motion of each joint rate in world axes, the others carry rows from the body to the base."""
    robot = random_tree(seed, 7, coupled=bool(seed % 2))
    q = integrate(robot, robot.neutral(), np.random.default_rng(seed).normal(size=robot.nv))
    at = motion(robot, q)
    columns = [(one.index, i) for one in robot.bodies for i in range(one.v.start, one.v.stop)]
    for body, (R, o) in enumerate(zip(at.rotation, at.origin, strict=True)):
        J, whole = np.zeros((6, robot.nv)), twist_jacobian(robot, q, body, np.eye(6))
        for (own, i), screw in zip(columns, screws(robot, q, at), strict=True):
            if own in robot.ancestors(body):
                J[:, i] += twist_by(screw, R, o)
        np.testing.assert_allclose(J, whole, rtol=0.0, atol=1e-13 * max(1.0, np.abs(whole).max()))
