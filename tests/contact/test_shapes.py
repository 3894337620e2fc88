"""Distances of spheres, boxes and terrain compared with closed forms and MuJoCo; invalid shapes."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import legged
from legged.compiler import compile as compile_function
from legged.contact import Box, Capsule, Cylinder, Ellipsoid, FreeBody, Hull, Rigid, Scene, Sphere
from legged.contact.detection.box_box import box_box, sign_of
from legged.contact.detection.convex import Solid
from legged.contact.detection.pairs import dimensions, frame_of, kind_of
from legged.contact.detection.round_shapes import (
    capsule_box,
    capsule_capsule,
    sphere_box,
    sphere_capsule,
    sphere_sphere,
)
from legged.contact.detection.support import support_points
from legged.errors import DefinitionError
from legged.ground import HeightMap, Slope, Stairs, paper_ground

DAILY_SEEDS = 100
coal: Any = import_module("coal") if find_spec("coal") else None  # a part of pin, which not every system has

WORLD = """<mujoco><worldbody><body><freejoint/><geom type="box" size="{} {} {}"/></body>
<body><freejoint/><geom type="{}" size="{} {} {}"/></body></worldbody></mujoco>"""


def points_on_a_sphere(count):
    points = np.random.default_rng(0).normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1)[:, None]


class Pair:
    """A box at the origin and another shape in MuJoCo."""

    def __init__(self, half, kind, size):
        self.model = mujoco.MjModel.from_xml_string(WORLD.format(*half, kind, *size))
        self.data = mujoco.MjData(self.model)

    def distance(self, R, d):
        x, y, z, w = Rotation.from_matrix(R).as_quat()
        self.data.qpos[:] = [0, 0, 0, 1, 0, 0, 0, *d, w, x, y, z]
        mujoco.mj_kinematics(self.model, self.data)
        return mujoco.mj_geomDistance(self.model, self.data, 0, 1, 10.0, np.zeros(6))


def near_boxes(seed, gap):
    """Return half edges, turn and place of two random boxes brought to a distance, and that distance by MuJoCo."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.05, 0.3, (2, 3))
    R, u = Rotation.from_quat(rng.normal(size=4)).as_matrix(), rng.normal(size=3)
    pair, (low, high) = Pair(a, "box", b), (0.0, 2.0 / np.linalg.norm(u))
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if pair.distance(R, middle * u) > gap else (middle, high)
    return a, b, R, low * u, pair.distance(R, low * u)


@pytest.mark.parametrize("seed", range(60))
def test_box_distances_equal_mujocos(seed):
    """The separation is exact but for preferring faces, which costs FACES_FIRST of a half edge, up to 6 mm here.

    Gaps of the four points come as near as the separation, but for a corner of the overlap that is passed over for one
    that lies farther out, if it is not deeper by more than a tenth of the way: 0.3 mm in 300 cases.
    """
    for gap in (-0.01, -0.002, 0.002):
        *boxes, distance = near_boxes(seed, gap)
        spots = box_box(*boxes)
        assert -0.006 < spots.axis - distance < 1e-12
        assert -0.006 < min(spots.gaps) - distance < 1e-3
        assert abs(np.linalg.norm(spots.n) - 1.0) < 1e-14


@pytest.mark.parametrize("seed", range(20))
def test_moving_a_box_along_the_normal_separates_the_boxes(seed):
    a, b, R, d, distance = near_boxes(seed, -0.005)
    spots = box_box(a, b, R, d)
    parted = Pair(a, "box", b).distance(R, d + (0.01 - spots.axis) * spots.n)
    assert distance < -0.004
    assert parted > 0.01 - 1e-6  # MuJoCo's tolerance


@pytest.mark.parametrize("turn", [0.0, 0.3, np.pi / 4, 1.2])
def test_parallel_faces_have_four_different_contact_points(turn):
    a, b = np.array([0.3, 0.2, 0.1]), np.array([0.1, 0.15, 0.05])
    R = Rotation.from_euler("z", turn).as_matrix()
    for (A, B, C, d), offset in (((a, b, R, [0.0, 0.0, 0.149]), 0.0), ((b, a, R.T, [0.0, 0.0, 0.149]), 0.0)):
        spots = box_box(A, B, C, np.array(d))
        assert np.allclose(spots.gaps, -0.001, atol=1e-12)
        assert np.allclose(spots.n, [0, 0, 1])
        points = np.array(spots.points)
        assert min(np.linalg.norm(p - q) for i, p in enumerate(points) for q in points[:i]) > 0.05
        assert np.abs(points[:, :2].mean(axis=0)).max() < 1e-12 + offset  # they hold the box in the middle


@pytest.mark.parametrize("seed", range(20))
def test_aligned_boxes_meet_at_their_corners_whatever_the_rounding(seed):
    """Edges of both faces lie in each other up to rounding and cross anywhere, which must not hide the corners."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-13, -9)
    a, d = np.array([0.05, 0.05, 0.05]), np.array([0.0, 0.0, 0.1]) + size * rng.normal(size=3)
    points = np.array(box_box(a, a, Rotation.from_rotvec(size * rng.normal(size=3)).as_matrix(), d).points)
    assert np.allclose(np.abs(points), 0.05, atol=1e-8)
    assert min(np.linalg.norm(p - q) for i, p in enumerate(points) for q in points[:i]) > 0.09


def test_crossed_edges_touch_at_one_point():
    a = np.array([0.5, 0.1, 0.1])
    R = Rotation.from_euler("z", 90, degrees=True).as_matrix()
    roll = Rotation.from_euler("x", 45, degrees=True).as_matrix()
    d = np.array([0.0, 0.0, 2 * 0.1 * np.sqrt(2) - 0.001])  # two bars on their edges, crossed
    spots = box_box(a, a, roll.T @ R @ roll, roll.T @ d)
    assert abs(spots.axis + 0.001) < 1e-12
    assert np.allclose(roll @ spots.n, [0, 0, 1])
    assert np.allclose(roll @ spots.points[0], d / 2)
    assert min(spots.gaps[1:]) > 0.9


@pytest.mark.parametrize("seed", range(40))
def test_sphere_box_distances_equal_mujocos(seed):
    rng = np.random.default_rng(seed)
    half, radius, d = rng.uniform(0.05, 0.3, 3), 0.1, rng.normal(size=3) * 0.25
    gap, n, point = sphere_box(radius, half, d)
    expected = Pair(half, "sphere", (radius, 0, 0)).distance(np.eye(3), d)
    if expected > -radius:  # beyond, MuJoCo's iteration and the nearest face part
        assert abs(gap - expected) < 1e-9
    assert abs(np.linalg.norm(n) - 1.0) < 1e-14
    assert np.allclose(point, d - (radius + gap / 2) * n)


def test_a_sphere_center_inside_a_box_leaves_by_the_nearest_face():
    gap, n, _ = sphere_box(0.1, np.array([0.3, 0.2, 0.4]), np.array([-0.05, -0.15, 0.1]))
    assert abs(gap + 0.15) < 1e-15
    assert np.array_equal(n, [0, -1, 0])


def test_two_spheres():
    gap, n, point = sphere_sphere(0.1, 0.2, np.array([0.0, 0.3, 0.4]))
    assert abs(gap - 0.2) < 1e-15
    assert np.allclose(n, [0, 0.6, 0.8])
    assert np.allclose(point, 0.3 * n)
    gap, n, point = sphere_sphere(0.1, 0.2, np.zeros(3))  # one in the other: some normal, and no NaN
    assert abs(gap + 0.3) < 1e-15
    assert np.array_equal(n, [0, 0, 1])
    assert np.isfinite(point).all()


@pytest.mark.parametrize("seed", range(20))
def test_frames_are_orthonormal_and_right_handed(seed):
    n = np.random.default_rng(seed).normal(size=3)
    n = [n, np.eye(3)[seed % 3], -np.eye(3)[seed % 3]][seed % 3]
    n = n / np.linalg.norm(n)
    F = frame_of(n, sign_of(n[2]))
    assert np.array_equal(F[0], n)
    assert np.abs(F @ F.T - np.eye(3)).max() < 1e-15
    assert np.linalg.det(F) > 0.0
    assert np.array_equal(frame_of(np.array([0.0, 0.0, 1.0])), np.eye(3)[[2, 0, 1]])


@pytest.mark.parametrize("seed", range(10))
def test_a_box_over_a_slope_is_as_high_as_its_lowest_corner(seed):
    rng, terrain = np.random.default_rng(seed), Slope(0.3, 1.0)
    size = rng.uniform(0.1, 0.5, 3)
    p = rng.normal(size=4)
    block = FreeBody("block", legged.box_inertia(1.0, size), [Box(size)], rng.normal(size=3), p / np.linalg.norm(p))
    robot = legged.RobotBuilder("stand", legged.Link("base", legged.box_inertia(1, (1, 1, 1)))).build()
    scene = Scene.of(robot, Rigid(terrain=terrain), [block])
    q, _ = block.state()
    corners = Box(size).corners @ scene.robots[1].base.pose(q)[0].T + q[4:7]
    normal = terrain.normal(0.0, 0.0)
    geometry = scene.contact_geometry([robot.neutral(), q])
    assert abs(geometry.gap.min() - (corners @ normal).min()) < 1e-12
    assert np.abs(geometry.frame[:, 0] - normal).max() < 1e-15
    assert np.abs(geometry.point[:, None] - corners).max(axis=-1).min(axis=1).max() < 1e-12


def test_a_round_foot_touches_below_its_center():
    foot = legged.Link("ball", legged.sphere_inertia(1.0, 0.1), {"sole": Sphere(0.1, (0.0, 0.2, 0.0))})
    robot = legged.RobotBuilder("roller", foot).build()
    q = np.r_[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5]
    geometry = Scene.of(robot, Rigid()).contact_geometry([q])
    assert np.allclose(geometry.point, [[0.0, 0.2, 0.4]])
    assert np.allclose(geometry.gap, 0.4)
    assert robot.contacts[0].radius == 0.1


def test_a_compliant_ground_refuses_round_feet():
    foot = legged.Link("ball", legged.sphere_inertia(1.0, 0.1), {"sole": Sphere(0.1)})
    robot = legged.RobotBuilder("roller", foot).build()
    with pytest.raises(DefinitionError, match="'sole' is a ball"):
        legged.simulate(robot, ground=paper_ground(robot), until=0.01)


def test_traced_distances_equal_plain_ones():
    def flat(a, b, C, d):
        spots = box_box(a, b, C, d)
        return spots.n, np.array(spots.gaps), np.array(spots.points)

    boxes = compile_function(flat, None, a=(3,), b=(3,), C=(3, 3), d=(3,))
    ball = compile_function(lambda half, d: sphere_box(0.1, half, d), None, half=(3,), d=(3,))
    for seed in range(20):
        a, b, C, d, _ = near_boxes(seed, -0.002)
        for ours, plain in zip(boxes(a, b, C, d), flat(a, b, C, d), strict=True):
            assert np.abs(ours - plain).max() < 1e-12
        for ours, plain in zip(ball(a, d), sphere_box(0.1, a, d), strict=True):
            assert np.abs(ours - plain).max() < 1e-14


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sphere(0.0), "radius"),
        (lambda: Sphere(float("nan")), "radius"),
        (lambda: Sphere(0.1, (0.0, 1.0)), "center"),
        (lambda: Box((0.1, 0.0, 0.2)), "edges"),
        (lambda: Box((0.1, 0.2)), "size"),
        (lambda: Box((0.1, 0.1, 0.1), rotation=2.0 * np.eye(3)), "orthonormal"),
        (lambda: legged.Link("foot", shapes=[0.1]), "one of Sphere, Box, Capsule"),
        (lambda: Capsule(0.0, 0.1), "capsule's radius must be a length above 0 m"),
        (lambda: Cylinder(0.1, -1.0), "cylinder's length"),
        (lambda: Ellipsoid((0.1, 0.1, 0.0)), "ellipsoid's radii"),
        (lambda: Hull(np.eye(3)), "four different vertices or more, got 3"),
        (lambda: Hull(np.random.default_rng(0).normal(size=(9, 3)) * (1, 1, 0)), "lie in a plane"),
        (lambda: Hull(np.outer(np.arange(5.0), (1, 1, 1))), "lie in a plane"),
        (lambda: Hull(points_on_a_sphere(200)), "has at most 32 vertices, got 200"),
        (lambda: FreeBody("block", legged.Inertia(), [Sphere(0.1)]), "mass"),
        (lambda: FreeBody("block", legged.sphere_inertia(1.0, 0.1), [Sphere(0.1)], quaternion=(1, 1, 0, 0)), "norm 1"),
        (lambda: FreeBody("block", legged.sphere_inertia(1.0, 0.1), [Sphere(0.1)], velocity=(1, 0)), "velocity"),
        (lambda: Rigid(friction=-0.1), "friction"),
        (lambda: Rigid(restitution=1.1), "restitution"),
        (lambda: Rigid(restitution=float("nan")), "restitution"),
        (lambda: Rigid(sweeps=0), "sweeps"),
        (lambda: Rigid(threshold=-1.0), "threshold"),
        (lambda: Rigid(recovery=float("inf")), "recovery"),
        (lambda: Rigid(pairs=("foot", "terrain")), "two names each"),
    ],
)
def test_invalid_shapes_and_grounds_are_refused(make, words):
    with pytest.raises(DefinitionError, match=words):
        make()


needs_coal = pytest.mark.skipif(coal is None, reason="coal is not installed")


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


@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-4])
def test_parallel_capsules_rest_on_two_points(tilt):
    R = Rotation.from_euler("zy", (tilt, np.pi / 2)).as_matrix()
    spots = capsule_capsule(0.05, 0.2, R[:, 2], 0.1, 0.3, np.array([1.0, 0.0, 0.0]), np.array([0.15, 0.0, 0.149]))
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


def test_parallel_edges_that_lean_on_each_other_have_a_unit_normal_and_the_ends_of_their_common_part():
    a, b = np.array([0.3, 0.1, 0.02]), np.array([0.2, 0.1, 0.02])
    roll = [Rotation.from_euler("x", angle).as_matrix() for angle in (1.1, -1.1)]  # two cards, leaning
    ends = [2.0 * (roll[0] @ [0.0, y, z])[1] for y in (0.1, -0.1) for z in (0.02, -0.02)]
    d = np.array([0.0, max(ends) - 0.001, 0.0])
    for (one, A), (other, B), sign in (((a, roll[0]), (b, roll[1]), 1.0), ((b, roll[1]), (a, roll[0]), -1.0)):
        spots = box_box(one, other, A.T @ B, sign * A.T @ d)
        np.testing.assert_allclose(A @ spots.n, [0.0, sign, 0.0], atol=1e-12)
        assert spots.axis == pytest.approx(-0.001, abs=1e-12)
        assert sorted(abs(point[0]) for point in spots.points) == pytest.approx([0.2] * 4)  # half the shorter edge
