"""Contact of cylinders, ellipsoids and hulls with all shapes beside coal and closed forms; stacks and an arch."""

from importlib import import_module
from importlib.util import find_spec
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import legged
from legged.compiler import BatchKernel, Kernel, record
from legged.contact import Box, Capsule, Cylinder, Ellipsoid, FreeBody, Hull, Rigid, Sphere
from legged.contact.detection.convex import Solid, crossing, hull_size
from legged.contact.detection.pairs import (
    BodyShape,
    ShapePair,
    are_apart,
    candidate_count,
    dimensions,
    kind_of,
    shape_contacts,
)
from legged.ground.terrain import Flat
from legged.simulation import backend

coal: Any = import_module("coal") if find_spec("coal") else None  # a part of pin, which not every system has

KINDS = (Sphere, Capsule, Box, Cylinder, Ellipsoid, Hull)
PAIRS = [pair for pair in combinations_with_replacement(KINDS, 2) if pair[1] in (Cylinder, Ellipsoid, Hull)]


def random_shape(kind, rng):
    sizes = rng.uniform(0.05, 0.3, 3)  # [m]
    if kind in (Box, Ellipsoid):
        return kind(sizes)
    if kind is Hull:
        return Hull(rng.normal(size=(10, 3)) * sizes)
    return kind(*sizes[: 1 if kind is Sphere else 2])


def contacts(one, other, R, d):
    """Return the contacts of a shape at (R, d), relative to the center of another."""
    return shape_contacts(
        kind_of(one), dimensions(one), R, d, kind_of(other), dimensions(other), np.eye(3), np.zeros(3)
    )


def coal_shape(shape):
    if isinstance(shape, Hull):
        points = coal.StdVec_Vec3s()
        for point in shape.vertices - shape.center:
            points.append(point)
        return coal.Convex.convexHull(points, False, "")
    sizes = {Box: "size", Ellipsoid: "radii"}
    if type(shape) in sizes:
        return getattr(coal, type(shape).__name__)(*getattr(shape, sizes[type(shape)]).tolist())
    return coal.Sphere(shape.radius) if isinstance(shape, Sphere) else type_of(shape)(shape.radius, shape.length)


def type_of(shape):
    return getattr(coal, type(shape).__name__)


def coal_distance(one, other, R, d):
    request, places = coal.DistanceRequest(), (coal.Transform3s(R, d), coal.Transform3s(np.eye(3), np.zeros(3)))
    request.gjk_tolerance = 1e-9  # [m]
    return coal.distance(one, places[0], other, places[1], request, coal.DistanceResult())


@pytest.mark.parametrize("kinds", PAIRS, ids=lambda pair: "-".join(kind.__name__ for kind in pair))
def test_shapes_that_are_known_to_be_apart_have_no_contact_and_most_polytopes_apart_are_known(kinds):
    """Of boxes and hulls within their bounding spheres a tenth is missed: those that only two edges separate."""
    rng, apart, known, near = np.random.default_rng(3), 0, 0, 0
    for _ in range(60):
        one, other = (random_shape(kind, rng) for kind in kinds)
        R, d = Rotation.from_quat(rng.normal(size=4)).as_matrix(), rng.normal(size=3)
        one = one.moved(R, d * rng.uniform(0.1, 0.4) / np.linalg.norm(d))
        other = other.moved(Rotation.from_quat(rng.normal(size=4)).as_matrix(), 0.1 * rng.normal(size=3))
        pair = ShapePair(BodyShape(None, one), BodyShape(None, other), ())
        gap = min(contact.gap for contact in pair.detect([], Flat()))
        known += are_apart(pair, [])
        apart += gap > 1e-6
        near += gap > 0.0
        assert gap > 0.0 or not are_apart(pair, [])
    assert 0 < known <= apart <= near < 60
    if set(kinds) <= {Box, Hull}:
        assert known >= 0.9 * apart


@pytest.mark.skipif(coal is None, reason="coal, of the extra test, is not installed")
@pytest.mark.parametrize("kinds", PAIRS, ids=lambda pair: "-".join(kind.__name__ for kind in pair))
def test_distances_equal_those_of_coal(kinds):
    """At contact the difference is coal's error; the gap of shapes apart is a separation, which the distance exceeds by
    0.4 mm at most at 3 mm here, where corners or tight curves are nearest."""
    rng = np.random.default_rng(KINDS.index(kinds[0]) + 10 * KINDS.index(kinds[1]))
    for _ in range(5):
        shapes = [random_shape(kind, rng) for kind in kinds]
        R, u = Rotation.from_quat(rng.normal(size=4)).as_matrix(), rng.normal(size=3)
        theirs = [coal_shape(shape) for shape in shapes]
        for distance, tolerance in ((1e-6, 5e-7), (0.003, 5e-4)):  # [m]
            low, high = 0.0, 2.0 / np.linalg.norm(u)
            for _ in range(40):
                middle = 0.5 * (low + high)
                apart = coal_distance(*theirs, R, middle * u) > distance
                low, high = (low, middle) if apart else (middle, high)
            detected = contacts(*shapes, R, low * u)
            assert len(detected) == candidate_count(*shapes)
            assert -tolerance < min(contact.gap for contact in detected) - distance < 5e-7


@pytest.mark.parametrize("seed", range(5))
def test_an_ellipsoid_and_a_sphere_have_the_gap_and_normal_of_the_closed_form(seed):
    """A sphere that touches the ellipsoid at a point of its surface has its center on the normal there."""
    rng = np.random.default_rng(seed)
    radii, n = rng.uniform(0.1, 0.3, 3), rng.normal(size=3)
    n /= np.linalg.norm(n)
    surface = radii * radii * n / np.linalg.norm(radii * n)
    for depth in (0.0, 1e-4):  # [m]
        (detected,) = contacts(Sphere(0.1), Ellipsoid(radii), np.eye(3), surface + (0.1 - depth) * n)
        assert abs(detected.gap + depth) < 1e-7  # [m]: curvature times the square of the depth
        np.testing.assert_allclose(detected.frame[0], n, atol=1e-5 + 20.0 * depth)  # depth over radius of curvature
        np.testing.assert_allclose(detected.point, surface, atol=1e-5 + 2.0 * depth)


@pytest.mark.parametrize("shift", [(0.0, 0.0), (0.11, 0.05)])
@pytest.mark.parametrize("depth", [-1e-4, 1e-4])
def test_faces_of_hulls_and_boxes_meet_in_the_corners_of_their_overlap(depth, shift):
    size = np.array([0.3, 0.2, 0.1])
    box, hull = Box(size), Hull(Box(size).corners)
    for shapes in ((box, hull), (hull, hull)):
        detected = contacts(*shapes, np.eye(3), np.array([*shift, 0.1 - depth]))
        points = np.array([contact.point for contact in detected])
        np.testing.assert_allclose([contact.gap for contact in detected], -depth, atol=1e-12)
        np.testing.assert_allclose([contact.frame[0] for contact in detected], [[0.0, 0.0, 1.0]] * 4, atol=1e-12)
        np.testing.assert_allclose(np.sort(points[:, :2].max(axis=0)), np.sort(size[:2] / 2), atol=1e-9)
        np.testing.assert_allclose(np.ptp(points[:, :2], axis=0), size[:2] - shift, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_face_of_a_hull_that_faces_a_direction_has_four_corners_in_its_plane(seed):
    rng = np.random.default_rng(seed)
    hull, n = Hull(rng.normal(size=(32, 3))), rng.normal(size=3)
    for vertices in (len(hull.vertices), 32):
        solid = Solid(Hull, vertices, hull_size(hull, vertices))
        normal, corners = solid.face(n)
        normals, offsets = hull.faces
        best = np.argmax(normals @ n)
        np.testing.assert_array_equal(normal, normals[best])
        height = np.array(corners) @ normal - (offsets[best] - hull.center @ normal)
        np.testing.assert_allclose(height, 0.0, atol=1e-8)  # faces are rounded to 1e-9
        assert len({tuple(corner) for corner in corners}) >= 3
        assert {tuple(corner) for corner in corners} <= {tuple(corner) for corner in solid.corners()}


def test_the_kernel_of_two_hulls_stays_small():
    """Compiling it is the longest part of the start of a robot whose links collide; so is that of its arguments."""
    size, pose = (3 * 32 + 4 * 60 + 2,), {"R": (3, 3), "c": (3,), "Q": (3, 3), "o": (3,)}
    assert hull_size(Hull(np.random.default_rng(0).normal(size=(20, 3))), 32).shape == size

    def pair(a, b, R, c, Q, o):
        return [contact.gap for contact in shape_contacts((Hull, 32), a, R, c, (Hull, 32), b, Q, o)]

    assert len(record(pair, {"a": size, "b": size, **pose}).nodes) < 5200  # 4911, and 6400 with corners for each face


def test_a_lying_cylinder_rests_on_a_line_and_an_upright_one_on_a_disc():
    slab = Hull(Box((1.0, 1.0, 0.2)).corners)
    lying = Rotation.from_euler("y", np.pi / 2).as_matrix()
    gaps = sorted(
        (contact.gap, abs(contact.point[0])) for contact in contacts(Cylinder(0.1, 0.4), slab, lying, [0, 0, 0.2])
    )
    np.testing.assert_allclose(gaps[:2], [(0.0, 0.2)] * 2, atol=1e-9)
    assert gaps[2][0] > 0.5
    detected = contacts(Cylinder(0.1, 0.4), slab, np.eye(3), np.array([0.0, 0.0, 0.3]))
    np.testing.assert_allclose([contact.gap for contact in detected], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.ptp([contact.point for contact in detected], axis=0), [0.2, 0.2, 0.0], atol=1e-9)


@pytest.mark.parametrize("kinds", [(Capsule, Cylinder), (Ellipsoid, Hull), (Cylinder, Hull)])
def test_kernels_equal_plain_contacts(kinds):
    rng = np.random.default_rng(4)
    shapes = [random_shape(kind, rng) for kind in kinds]
    R, d = Rotation.from_quat(rng.normal(size=4)).as_matrix(), np.array([0.2, 0.1, 0.15])
    kernel = BatchKernel(
        lambda R, d: np.array([[c.gap, *c.point, *c.frame[0]] for c in contacts(*shapes, R, d)]),
        {"R": (3, 3), "d": (3,)},
    )
    plain = [[c.gap, *c.point, *c.frame[0]] for c in contacts(*shapes, R, d)]
    np.testing.assert_allclose(kernel(R[None], d[None])[0], plain, atol=1e-9)


def simulated(bodies, pairs, friction, until, monkeypatch):
    """Return a run of free bodies in parts beside a robot without coordinates."""
    monkeypatch.setattr(backend, "MANY_CONTACTS", 0)
    base = legged.Link("base", legged.box_inertia(1.0, (1.0, 1.0, 1.0)))
    robot = legged.RobotBuilder("post", base, base=legged.FixedBase()).build()
    ground = Rigid(friction=friction, pairs=pairs)
    return legged.simulate(robot, until=until, ground=ground, bodies=bodies, fall=False)


def test_cylinders_and_hulls_stand_on_each_other(monkeypatch):
    inertia, prism = legged.box_inertia(1.0, (0.2, 0.2, 0.1)), Hull(Box((0.2, 0.2, 0.1)).corners)
    shapes = [prism, prism, Cylinder(0.1, 0.1), Cylinder(0.1, 0.1)]
    bodies = [FreeBody(f"b{k}", inertia, [s], (0.01 * k, 0.0, 0.05 + 0.1 * k)) for k, s in enumerate(shapes)]
    names = ["terrain", *(body.name for body in bodies)]
    run = simulated(bodies, tuple((upper, lower) for lower, upper in pairwise(names)), 0.5, 0.004, monkeypatch)
    for body in bodies:
        moved = run.body(body.name).position[-1] - body.position
        assert np.abs(moved).max() < 1e-7  # [m], in 4 ms at the solver's tolerance of 1e-5 m/s


def arch():
    """Return the seven wedges of a half circle and the pairs of neighbors."""
    steps, bodies = np.linspace(0.0, np.pi, 8), []
    for k, (low, high) in enumerate(pairwise(steps)):
        middle = 0.5 * (low + high)
        center = 0.475 * np.array([np.cos(middle), 0.0, np.sin(middle)])  # [m]
        points = [(r * np.cos(a), y, r * np.sin(a)) for a in (low, high) for r in (0.4, 0.55) for y in (-0.1, 0.1)]
        inertia = legged.box_inertia(1.0, (0.2, 0.2, 0.15))
        bodies.append(FreeBody(f"wedge{k}", inertia, [Hull(np.array(points) - center)], tuple(center)))
    names = [body.name for body in bodies]
    return bodies, ((names[0], "terrain"), (names[-1], "terrain"), *pairwise(names))


@pytest.mark.parametrize(("friction", "stands"), [(0.8, True), (0.15, False)])
def test_an_arch_of_wedges_stands_with_enough_friction(friction, stands, monkeypatch):
    run = simulated(*arch(), friction, 0.003, monkeypatch)
    height = run.body("wedge3").position[:, 2]
    sag = height[0] - height[-1]  # [m]; without any support 0.04 mm
    assert sag < 1e-7 if stands else sag > 1e-5


@pytest.mark.parametrize("kinds", PAIRS, ids=lambda pair: "-".join(kind.__name__ for kind in pair))
def test_single_precision_finds_the_same_contact(kinds):
    """The depth of a triangle of side s on a surface of curvature 1 is s^2 / 8, which floats resolve to 1e-7 m: its
    normal then has an error of some 1e-3. Doubles that are rounded to floats move shapes by less."""
    rng = np.random.default_rng(7 + KINDS.index(kinds[0]) + 10 * KINDS.index(kinds[1]))
    one, other = (Solid(*kind_of(shape), dimensions(shape)) for shape in (random_shape(kind, rng) for kind in kinds))
    graph = record(lambda C, d: tuple(crossing(one, other, C, d)), {"C": (3, 3), "d": (3,)})
    double, single = (Kernel(graph, "crossing", dtype=dtype) for dtype in ("float64", "float32"))
    C, d = Rotation.from_quat(rng.normal(size=(64, 4))).as_matrix(), rng.normal(size=(64, 3))
    for _ in range(20):  # until the shapes touch
        gap, normal, _ = double(C, d)
        d = d - gap[:, None] * normal
    expected, actual = double(C, d), single(C.astype(np.float32), d.astype(np.float32))
    assert np.abs(actual[0] - expected[0]).max() < 2e-4  # [m]; where an edge is nearest, normals are ambiguous
    assert np.quantile(np.abs(actual[0] - expected[0]), 0.9) < 1e-5
    assert np.quantile(np.abs(actual[1] - expected[1]).max(axis=1), 0.8) < 3e-3
