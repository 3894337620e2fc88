"""Distances of spheres, boxes and terrain compared with closed forms and MuJoCo; invalid shapes."""

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import legged
from legged.compiler import compile as compile_function
from legged.contact import Box, Capsule, Cylinder, Ellipsoid, FreeBody, Hull, Rigid, Scene, Sphere
from legged.contact.detection.box_box import box_box
from legged.contact.detection.frames import contact_frame, terrain_frame
from legged.contact.detection.round_shapes import (
    sphere_box,
    sphere_sphere,
)
from legged.errors import DefinitionError
from legged.ground import Slope, paper_ground

DAILY_SEEDS = 100

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
        assert -0.006 < spots.separation - distance < 1e-12
        assert -0.006 < min(spots.gaps) - distance < 1e-3
        assert abs(np.linalg.norm(spots.n) - 1.0) < 1e-14


@pytest.mark.parametrize("seed", range(20))
def test_moving_a_box_along_the_normal_separates_the_boxes(seed):
    a, b, R, d, distance = near_boxes(seed, -0.005)
    spots = box_box(a, b, R, d)
    parted = Pair(a, "box", b).distance(R, d + (0.01 - spots.separation) * spots.n)
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
    assert abs(spots.separation + 0.001) < 1e-12
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
    F = contact_frame(n)
    assert np.array_equal(F[0], n)
    assert np.abs(F @ F.T - np.eye(3)).max() < 5e-15  # of 1 / (1 + n_z) at most 2.3
    assert np.linalg.det(F) > 0.0
    assert np.array_equal(contact_frame(np.array([0.0, 0.0, 1.0])), np.eye(3)[[2, 0, 1]])
    up = np.array([*n[:2], abs(n[2])])
    assert np.array_equal(terrain_frame(up), contact_frame(up))
    wall = np.array([*n[:2], 0.0]) / np.hypot(*n[:2]) if n[:2].any() else np.array([1.0, 0.0, 0.0])
    up, down = (contact_frame(wall + rounding) for rounding in ([0, 0, 1e-16], [0, 0, -1e-16]))
    assert np.abs(up - down).max() < 1e-15  # the tangents on a wall do not depend on rounding


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


def test_parallel_edges_that_lean_on_each_other_have_a_unit_normal_and_the_ends_of_their_common_part():
    a, b = np.array([0.3, 0.1, 0.02]), np.array([0.2, 0.1, 0.02])
    roll = [Rotation.from_euler("x", angle).as_matrix() for angle in (1.1, -1.1)]  # two cards, leaning
    ends = [2.0 * (roll[0] @ [0.0, y, z])[1] for y in (0.1, -0.1) for z in (0.02, -0.02)]
    d = np.array([0.0, max(ends) - 0.001, 0.0])
    for (one, A), (other, B), sign in (((a, roll[0]), (b, roll[1]), 1.0), ((b, roll[1]), (a, roll[0]), -1.0)):
        spots = box_box(one, other, A.T @ B, sign * A.T @ d)
        np.testing.assert_allclose(A @ spots.n, [0.0, sign, 0.0], atol=1e-12)
        assert spots.separation == pytest.approx(-0.001, abs=1e-12)
        assert sorted(abs(point[0]) for point in spots.points) == pytest.approx([0.2] * 4)  # half the shorter edge
