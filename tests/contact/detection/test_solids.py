"""Distances of capsules compared with coal; rest of capsules, cylinders, ellipsoids and hulls on terrain and boxes."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import legged
from legged.compiler import compile as compile_function
from legged.contact import Box, Capsule, Cylinder, Ellipsoid, FreeBody, Hull, Rigid, Scene, Sphere
from legged.contact.detection.convex import Solid, support_points
from legged.contact.detection.pairs import dimensions, kind_of
from legged.contact.detection.round_shapes import (
    capsule_box,
    capsule_capsule,
    sphere_capsule,
)
from legged.ground import HeightMap, Stairs

coal: Any = import_module("coal") if find_spec("coal") else None  # a part of pin, which not every system has


needs_coal = pytest.mark.skipif(coal is None, reason="coal, of the extra test, is not installed")


def coal_distance(shape, R, d, other):
    """Return the distance of a shape at (R, d) and another at the origin by coal."""
    places = coal.Transform3s(R, d), coal.Transform3s(np.eye(3), np.zeros(3))
    return coal.distance(shape, places[0], other, places[1], coal.DistanceRequest(), coal.DistanceResult())


def random_place(rng, size=0.4):
    return Rotation.from_quat(rng.normal(size=4)).as_matrix(), rng.normal(size=3) * size


def capsules(rng):
    """Return radius and half length of a capsule, and the same of another."""
    return (*rng.uniform((0.02, 0.05), (0.1, 0.3)), *rng.uniform((0.02, 0.05), (0.1, 0.3)))


@needs_coal
@pytest.mark.parametrize("seed", range(100))
def test_capsule_distances_equal_those_of_coal(seed):
    rng = np.random.default_rng(seed)
    (radius, half, other, other_half), (R, d), box = capsules(rng), random_place(rng), rng.uniform(0.05, 0.3, 3)
    capsule = coal.Capsule(radius, 2 * half)
    spots = capsule_capsule(radius, half, R[:, 2], other, other_half, np.eye(3)[2], d)
    assert abs(spots[0][0] - coal_distance(capsule, R, d, coal.Capsule(other, 2 * other_half))) < 1e-12
    assert all(spot[0] >= spots[0][0] - 1e-15 for spot in spots)
    gap, *_ = sphere_capsule(radius, other, other_half, d)
    assert abs(gap - coal_distance(coal.Sphere(radius), R, d, coal.Capsule(other, 2 * other_half))) < 1e-12
    expected = coal_distance(capsule, R, d, coal.Box(*2 * box))
    spots = capsule_box(radius, half, R[:, 2], box, d)
    if expected > -0.9 * radius:  # the segment does not enter the box
        assert abs(spots[0][0] - expected) < 1e-9  # coal's tolerance
        assert all(spot[0] >= expected - 1e-9 for spot in spots)


@pytest.mark.parametrize("seed", range(20))
def test_capsules_do_not_depend_on_their_order(seed):
    rng = np.random.default_rng(seed)
    (radius, half, other, other_half), (R, d) = capsules(rng), random_place(rng)
    a, b = R[:, 2], np.eye(3)[2]
    gap, n, point = capsule_capsule(radius, half, a, other, other_half, b, d)[0]
    back = capsule_capsule(other, other_half, b, radius, half, a, -d)[0]
    assert abs(gap - back[0]) < 1e-14
    np.testing.assert_allclose(n, -back[1], atol=1e-12)
    np.testing.assert_allclose(point, back[2] + d, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_gap_of_capsules_changes_along_the_normal(seed):
    """Moving by a small step changes the gap by its component along the normal, wherever the distance is smooth."""
    rng = np.random.default_rng(seed)
    (radius, half, other, other_half), (R, d), box = capsules(rng), random_place(rng, 0.6), rng.uniform(0.05, 0.3, 3)
    step = 1e-6 * rng.normal(size=3)  # [m]
    pairs = (
        lambda d: capsule_capsule(radius, half, R[:, 2], other, other_half, np.eye(3)[2], d)[0],
        lambda d: capsule_box(radius, half, R[:, 2], box, d)[0],
    )
    for pair in pairs:
        gap, n, _ = pair(d)
        if gap > -0.9 * radius:
            assert abs(pair(d + step)[0] - gap - n @ step) < 1e-10  # [m]: curvature times the square of the step


def test_capsules_whose_axes_cross_separate_along_the_common_normal():
    a, b = np.array([0.6, 0.8, 0.0]), np.array([1.0, 0.0, 0.0])
    gap, n, point = capsule_capsule(0.05, 0.2, a, 0.1, 0.3, b, np.zeros(3))[0]
    assert gap == pytest.approx(-0.15, abs=1e-12) and abs(n @ a) < 1e-12 and np.linalg.norm(n) == pytest.approx(1.0)
    assert np.linalg.norm(point) < 0.15


@pytest.mark.parametrize("sense", [1.0, -1.0])
@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-4])
def test_parallel_capsules_rest_on_two_points(tilt, sense):
    R = Rotation.from_euler("zy", (tilt, np.pi / 2)).as_matrix()
    b, d = np.array([sense, 0.0, 0.0]), np.array([0.15, 0.0, 0.149])
    spots = capsule_capsule(0.05, 0.2, R[:, 2], 0.1, 0.3, b, d)
    near = sorted(point[0] for gap, _, point in spots if abs(gap + 0.001) < 1e-6)
    assert abs(near[0] + 0.05) < 1e-3 and abs(near[-1] - 0.3) < 1e-3  # the segments overlap from -0.05 to 0.3 m
    assert all(abs(n[2] - 1.0) < 1e-6 for gap, n, _ in spots if gap < 0.5)


def test_a_capsule_across_a_box_rests_on_its_edges():
    box = np.array([0.1, 0.3, 0.05])
    spots = capsule_box(0.02, 0.5, np.array([1.0, 0.0, 0.0]), box, np.array([0.03, 0.0, 0.069]))
    places = sorted(point[0] for gap, _, point in spots if abs(gap + 0.001) < 1e-12)
    assert abs(places[0] + 0.1) < 1e-12 and abs(places[-1] - 0.1) < 1e-12
    assert all(np.allclose(n, [0, 0, 1]) for gap, n, _ in spots if gap < 0.5)


def solid(shape):
    return Solid(*kind_of(shape), dimensions(shape))


def round_shapes(rng):
    """Return pairs of a shape and the same in coal."""
    radius, length, radii = *rng.uniform(0.05, 0.4, 2), rng.uniform(0.05, 0.3, 3)
    return (Cylinder(radius, length), coal.Cylinder(radius, length)), (Ellipsoid(radii), coal.Ellipsoid(*radii))


@needs_coal
@pytest.mark.parametrize("seed", range(20))
def test_lowest_points_equal_distances_to_a_plane(seed):
    rng = np.random.default_rng(seed)
    R, n = random_place(rng)
    n = n / np.linalg.norm(n)
    for shape, oracle in round_shapes(rng):
        low = min((R @ point) @ n for point, _ in support_points(solid(shape), R.T @ n))
        assert abs(low + 2.0 - coal_distance(oracle, R, np.zeros(3), coal.Halfspace(n, -2.0))) < 1e-12
    hull = Hull(rng.normal(size=(30, 3)))
    used = [point for point, extra in support_points(solid(hull), n) if extra == 0.0]
    assert abs(min(point @ n for point in used) - ((hull.vertices - hull.center) @ n).min()) < 1e-12
    assert len({tuple(point) for point in used}) == len(used)


@pytest.mark.parametrize("turn", [0.0, 0.4, 1.3])
def test_a_flat_hull_rests_on_the_corners_of_its_face(turn):
    R = Rotation.from_euler("z", turn).as_matrix()
    box = Box((0.3, 0.2, 0.1), rotation=R)
    lowest = support_points(solid(Hull(box.corners)), np.array([0.0, 0.0, 1.0]))
    used = [point for point, extra in lowest if extra == 0.0]
    assert {tuple(np.round(point, 9)) for point in used} == {tuple(np.round(p, 9)) for p in box.corners if p[2] < 0.0}


def test_an_upright_cylinder_rests_on_a_triangle_and_a_lying_one_on_a_line():
    points = np.array([point for point, _ in support_points(solid(Cylinder(0.1, 0.4)), np.array([0.0, 0.0, 1.0]))])
    assert np.allclose(sorted(points[:, 2]), [-0.2, -0.2, -0.2, 0.2])
    assert np.allclose(points[points[:, 2] < 0.0].mean(axis=0), [0.0, 0.0, -0.2])
    points = np.array([point for point, _ in support_points(solid(Cylinder(0.1, 0.4)), np.array([1.0, 0.0, 0.0]))])
    assert sorted(points[np.isclose(points[:, 0], -0.1)][:, 2]) == [-0.2, 0.2]


SOLIDS = {
    "capsule": (Capsule(0.05, 0.2, rotation=legged.rpy(0.0, np.pi / 2, 0.0)), 0.05),
    "cylinder": (Cylinder(0.05, 0.2), 0.1),
    "ellipsoid": (Ellipsoid((0.1, 0.08, 0.05)), 0.05),
    "hull": (Hull(Box((0.2, 0.1, 0.1)).corners), 0.05),
}


def test_solids_come_to_rest_on_the_ground_and_on_a_box():
    """Heights at rest are known; a third capsule lies across a box, at the height of box and radius."""
    block = FreeBody("box", legged.box_inertia(2.0, (0.2, 0.2, 0.2)), [Box((0.2, 0.2, 0.2))], (0.0, 0.0, 0.1))
    bodies = [block]
    for k, (name, (shape, height)) in enumerate(SOLIDS.items()):
        bodies.append(FreeBody(name, legged.box_inertia(1.0, (0.1, 0.1, 0.1)), [shape], (k + 1.0, 0.0, height + 0.01)))
    across = SOLIDS["capsule"][0]
    bodies.append(FreeBody("rod", legged.box_inertia(1.0, (0.1, 0.1, 0.1)), [across], (0.0, 0.0, 0.26)))
    robot = legged.RobotBuilder("post", legged.Link("base", legged.box_inertia(1, (1, 1, 1))), base=legged.FixedBase())
    pairs = (*((body.name, "terrain") for body in bodies[:-1]), ("rod", "box"))
    ground = Rigid(friction=0.5, pairs=pairs)
    run = legged.simulate(robot.build(), until=0.4, ground=ground, bodies=bodies, fall=False)
    for name, (_, height) in SOLIDS.items():
        assert abs(run.body(name).position[-1, 2] - height) < 1e-4  # [m]
    assert abs(run.body("rod").position[-1, 2] - 0.25) < 1e-4  # [m]
    assert np.abs(run.bodies.v[-1]).max() < 1e-3  # [rad/s] and [m/s]


def scene_of_all(terrain):
    """Return a scene of bodies of all shapes on a terrain, with a sphere against a capsule, and its configurations."""
    rng = np.random.default_rng(3)
    solids = {name: shape for name, (shape, _) in SOLIDS.items()} | {"ball": Sphere(0.1)}
    bodies = []
    for name, shape in solids.items():
        p = rng.normal(size=4)
        place = {"position": rng.uniform(0.1, 0.4, 3), "quaternion": p / np.linalg.norm(p)}
        bodies.append(FreeBody(name, legged.box_inertia(1.0, (0.1, 0.1, 0.1)), [shape], **place))
    pairs = (*((name, "terrain") for name in solids), ("capsule", "ball"))
    robot = legged.RobotBuilder("stand", legged.Link("base", legged.box_inertia(1, (1, 1, 1)))).build()
    scene = Scene.of(robot, Rigid(terrain=terrain, pairs=pairs), bodies)
    return scene, [robot.neutral(), *(body.state()[0] for body in bodies)], bodies


def test_kernels_of_all_shapes_equal_plain_geometry():
    scene, qs, _ = scene_of_all(Stairs((0.25,), (0.1,)))
    sizes = np.cumsum([len(q) for q in qs])
    kernel = compile_function(lambda q: scene.contact_geometry(np.split(q, sizes[:-1])), None, q=int(sizes[-1]))
    for traced, plain in zip(kernel(np.concatenate(qs)), scene.contact_geometry(qs), strict=True):
        np.testing.assert_allclose(traced, plain, atol=1e-12)


HILLS = HeightMap(np.random.default_rng(0).uniform(0.0, 0.02, (12, 12)), 0.1, (-0.3, -0.3))


@pytest.mark.parametrize("terrain", [Stairs((0.25,), (0.1,)), HILLS])
def test_gaps_of_corners_are_those_of_the_terrain_below_them(terrain):
    scene, qs, bodies = scene_of_all(terrain)
    geometry = scene.contact_geometry(qs)
    for candidate, gap, point in zip(scene.candidates, geometry.gap, geometry.point, strict=True):
        if candidate.second is None and gap < 1.0 and not candidate.name.startswith(("capsule", "ball")):
            x, y, z = point
            height, normal = terrain.height(x, y), terrain.normal(x, y)
            assert abs(gap - (z - height) * normal[2]) < 1e-12
            body = bodies[candidate.first.robot - 1]
            rotation, _ = scene.robots[candidate.first.robot].base.pose(qs[candidate.first.robot])
            shape, local = body.shapes[0], rotation.T @ (point - body.position)
            if isinstance(shape, Ellipsoid):
                assert abs(np.sum((local / shape.radii) ** 2) - 1.0) < 1e-12
            elif isinstance(shape, Cylinder):
                assert np.allclose((np.hypot(*local[:2]), abs(local[2])), (shape.radius, shape.length / 2))
            else:
                assert np.linalg.norm(shape.vertices - local, axis=1).min() < 1e-12
