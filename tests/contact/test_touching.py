"""Impulses of scenes in parts: block matrices, and solutions from zero impulses."""

import numpy as np
import pytest

import legged
from legged.contact import Box, Capsule, FreeBody, Rigid, Sphere
from legged.contact.bodies import contact_velocities
from legged.contact.contact_tables import ContactTables
from legged.contact.impulses.impact import target_velocity
from legged.contact.impulses.solver import spread_group
from legged.contact.pair_tables import Detected
from legged.contact.touching import TouchingSystem, newton_solution
from legged.simulation.controller import adapt
from legged.simulation.many_contacts import SceneInParts

STEP = 2e-3  # [s]


def arms():
    """Return a group of two arms of two links that collide with each other and between the arms."""
    builder, above = legged.RobotBuilder("arm", legged.Link("post"), base=legged.FixedBase()), "post"
    for k in range(3):
        inertia = legged.box_inertia(1.0, (0.1, 0.1, 0.4), (0, 0, 0.2))
        link = legged.Link(f"l{k}", inertia, shapes=[Capsule(0.05, 0.3, (0, 0, 0.2))])
        builder.add(legged.Revolute(f"j{k}", "y"), link, to=above, at=(0.0, 0.0, 0.4 if k else 0.0))
        above = link.name
    return legged.combine({"a": builder.build(), "b": builder.build()}, at={"b": (0.1, 0.1, 0.0)})


def heap(count, seed, x=0.0):
    """Return bodies on top of each other at a place, [m], that fall and turn."""
    rng, stones = np.random.default_rng(seed), []
    for k in range(count):
        shape = [Sphere(0.08), Capsule(0.06, 0.15), Box((0.15, 0.12, 0.1))][k % 3]
        turn, inertia = rng.normal(size=4), legged.box_inertia(rng.uniform(0.2, 2.0), (0.15, 0.12, 0.1))
        place, velocity = (
            (x + rng.uniform(-0.15, 0.15), rng.uniform(-0.15, 0.15), 0.05 * (k + 1)),
            (*rng.normal(size=2), -2.0),
        )
        stones.append(
            FreeBody(f"b{k}", inertia, [shape], place, turn / np.linalg.norm(turn), velocity, rng.normal(size=3))
        )
    return stones


def problem(bodies, ground):
    """Return a system of contacts of two arms and bodies that are near, the targets of a step, bodies and contacts."""
    robot = arms()
    q, v = np.array([0.0, 1.5, 2.6] * 2), np.linspace(-1.0, 1.0, robot.nv)  # both ends near the first links
    started, memory = adapt(None).start(robot, ground, q, v)
    loop = SceneInParts(robot, started, ground, len(memory), (), bodies)
    s = loop.initial(v, memory)
    loop._step.write(0.0, STEP, q, s, 0.0, 0.0)
    loop._step.begin()
    everything = loop._step.bodies
    detected = loop.tables.detect(everything.poses)
    detected = Detected(*(part[detected.gap < 0.05] for part in detected))
    system = system_of(everything, detected)
    return (
        system,
        np.array([target_velocity(Rigid().recovery, gap, STEP) for gap in detected.gap]),
        everything,
        detected,
    )


def system_of(bodies, detected):
    coefficients, rows = np.tile([0.5, 0.0], (len(detected.gap), 1)), np.arange(len(detected.gap))
    forces = np.zeros((detected.numbers.max() + 1, 3))
    return TouchingSystem(ContactTables(bodies, detected, rows, coefficients, Rigid(), forces))


@pytest.fixture(scope="module")
def mixed():
    return problem(heap(6, 0), Rigid(0.5, self_collision=True))


def test_products_of_blocks_are_those_of_dense_matrices(mixed):
    system, _, bodies, _ = mixed
    system._tables.update()
    rng, pattern = np.random.default_rng(1), system.pattern
    (M, J), used = system.matrices(), ~system.pattern.unused
    dense, k, n = J.dense, pattern.count, pattern.size
    assert set(np.bincount(pattern.contact)) == {1, 2}  # a body or two, of arms with one block and free ones
    assert not dense[:, ~used].any()
    inertia = np.eye(n)
    for (row, column), block in zip(pattern.inertia_blocks.T, bodies.inertia_blocks[pattern.inertia], strict=True):
        own = np.ix_(*(np.flatnonzero(used[6 * i : 6 * i + 6]) + 6 * i for i in (row, column)))
        inertia[own] = block[: own[0].size, : own[1].size]
    v, p, slopes = used * rng.normal(size=n), rng.normal(size=(4, k, 3)), rng.normal(size=(k, 3, 3))
    np.testing.assert_allclose(M @ v, inertia @ v, atol=1e-12)
    np.testing.assert_allclose(M.diagonal(), inertia.diagonal())
    np.testing.assert_allclose(system.mobility @ v, np.linalg.solve(inertia, v), atol=1e-9)
    np.testing.assert_allclose(J.velocities(v), (dense @ v).reshape(-1, 3), atol=1e-12)
    np.testing.assert_allclose(J.momentum(p), p.reshape(4, -1) @ dense, atol=1e-12)
    delassus = dense @ np.linalg.solve(inertia, dense.T)
    diagonal = [delassus[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] for i in range(k)]
    np.testing.assert_allclose(system._tables.diagonal, diagonal, atol=1e-9)
    H = inertia + sum(dense[3 * i : 3 * i + 3].T @ slopes[i] @ dense[3 * i : 3 * i + 3] for i in range(k))
    np.testing.assert_allclose(H @ system.direction(M, J, slopes, v), v, atol=1e-9)


def test_velocities_after_impulses_are_those_of_the_inertia_matrix(mixed):
    system, target, bodies, detected = mixed
    p = np.abs(np.random.default_rng(2).normal(size=(len(detected.gap), 3)))
    solution = system.solution(system, target, p)
    np.testing.assert_allclose(solution.u, contact_velocities(bodies, detected, bodies.v_next), atol=1e-9)
    written = bodies.v_next.copy()
    bodies.v_next[:] = 0.0
    p, residual = solution.p.copy(), 2.0 * solution.residual
    system._tables.p[:] = 0.0
    system.write(solution._replace(p=p, residual=residual))
    np.testing.assert_allclose(written, bodies.v_next, atol=1e-9)
    np.testing.assert_array_equal(system._tables.p, p)
    assert system._tables.residual == residual


def test_velocities_of_contacts_are_those_of_points_of_both_bodies(mixed):
    system, _, bodies, detected = mixed
    velocity, layout = [], bodies.layout
    for body in range(len(layout.first)):
        J = np.eye(6) if layout.is_free[body] else np.zeros((6, 1))
        if body in layout.articulated[0][0]:  # both arms are of one kind
            J = bodies.jacobians[0][layout.jacobians[body]]
        velocity.append(J @ bodies.v_free[bodies.layout.first[body] :][: J.shape[1]])
    for k, u in enumerate(system.u_free):
        ends = []
        for body in (detected.first[k], detected.second[k]):
            R, d = bodies.poses.rotation[body], detected.point[k] - bodies.poses.origin[body]
            ends.append(R @ velocity[body][3:] + np.cross(R @ velocity[body][:3], d))
        np.testing.assert_allclose(u, detected.frame[k] @ (ends[0] - ends[1]), atol=1e-12)


def test_robots_without_contact_are_left_out(mixed):
    _, _, bodies, detected = mixed
    only = Detected(*(part[:1] for part in detected))
    one = system_of(bodies, only)
    whole = contact_velocities(bodies, only, bodies.v_free)
    assert len(one.pattern.velocities) <= 12 < len(bodies.v_free)
    np.testing.assert_allclose(one.u_free, whole, atol=1e-12)


@pytest.mark.parametrize("scale", (1.0, 3.0))
@pytest.mark.parametrize("seed", range(6))
def test_semismooth_iterations_solve_contact_problems_from_zero_impulses(seed, scale):
    """They converge quadratically: the last one before the goal of 1e-8 m/s leaves less than 1e-7 m/s of the law."""
    system, target, _, detected = problem(heap(8, seed, 2.0), Rigid(0.5))
    start = system.solution(system, target, np.zeros((len(detected.gap), 3)))
    assert start.residual > 0.5  # [m/s]
    assert system.semismooth(target, start, 1e-8, 1e-5, scale).residual < 1e-7
    assert newton_solution(Rigid(0.5), system, target, start.p).residual < 1e-7


@pytest.mark.parametrize("size", (3, 4, 6))
@pytest.mark.parametrize("width", (0.0, 0.1))
@pytest.mark.parametrize("seed", range(6))
def test_impulses_spread_over_a_point_a_line_or_a_face_keep_their_sum_and_moments(seed, width, size):
    """Rounding gives contacts at one point or in a line distances of 1e-17 m, whose quotients are arbitrary."""
    rng = np.random.default_rng(seed)
    for extent in (0.0, 0.1):
        normal, place, angle = rng.uniform(0.5, 1.0, size), rng.normal(size=2), rng.choice([0.0, rng.uniform(0, 3)])
        p = np.column_stack([normal, 0.1 * rng.normal(size=(size, 2))])
        along = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        at = place + rng.integers(2, size=(size, 2)) * [extent, width] @ along + 1e-17 * rng.integers(9, size=(size, 2))
        change = spread_group(p, np.column_stack([at, np.full(size, 0.3)]), [0.8] * size) - p
        moments = at[:, 0] * change[:, 2] - at[:, 1] * change[:, 1], at[:, 0] * change[:, 0], at[:, 1] * change[:, 0]
        np.testing.assert_allclose(change.sum(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.sum(moments, axis=1), 0.0, atol=1e-12)


def test_contacts_that_close_by_the_impulses_of_the_same_step_are_added():
    """A fast heavy sphere throws a light one at rest at a third one, which is out of reach without the impact."""
    gap, radius = 5e-3, 0.1  # [m]
    inertias = [legged.box_inertia(mass, (0.1, 0.1, 0.1)) for mass in (10.0, 1.0, 1.0)]
    places = [(x, 0.0, 5.0) for x in (0.0, 2 * radius, 4 * radius + gap)]
    spheres = [
        FreeBody(f"s{k}", inertia, [Sphere(radius)], place, velocity=(10.0 if k == 0 else 0.0, 0.0, 0.0))
        for k, (inertia, place) in enumerate(zip(inertias, places, strict=True))
    ]
    robot, ground = arms(), Rigid(0.0)
    q, v = robot.neutral(), np.zeros(robot.nv)
    started, memory = adapt(None).start(robot, ground, q, v)
    loop = SceneInParts(robot, started, ground, len(memory), (), spheres)
    after = loop.time_stepping(0.0, STEP, 0, q, loop.initial(v, memory))
    speeds = [x[3] for _, x in loop.states(*after)[1:]]
    assert speeds[1] > 5.0  # [m/s], thrown
    assert speeds[2] > 1.0  # [m/s], hit in the same step
    assert (speeds[1] - speeds[2]) * STEP <= gap + 1e-9  # [m], they do not overlap; 1e-9 allows for the residual
