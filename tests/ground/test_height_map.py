"""Height maps: the interpolated surface, its slope and its edges, in plain NumPy, compiled and under a trot."""

import pickle

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

import controllers
import legged
import robots
from legged.contact import Rigid
from legged.errors import ArgumentError, DefinitionError, NotFiniteError, ShapeError
from legged.ground import Ground, HeightMap, HuntCrossley, VectorFriction, realistic_ground
from legged.simulation.stepping.parameter_tree import flatten

HEIGHTS = np.random.default_rng(4).uniform(-0.1, 0.2, size=(6, 8))
MAP = HeightMap(HEIGHTS, 0.25, (-0.5, 1.0))
"""A map over x from -0.5 to 0.75 m and y from 1.0 to 2.75 m."""
HALO = 4


def points(count):
    """Return random places in and around the map, among them heights of the grid, edges and corners."""
    rng = np.random.default_rng(7)
    x, y = rng.uniform(-1.5, 1.75, count), rng.uniform(0.0, 3.75, count)
    corners = [(-0.5, 1.0), (0.75, 2.75), (-0.5, 2.75), (0.0, 1.5), (-0.6, 1.3), (0.8, 2.8), (9.0, -9.0), (-9.0, 2.1)]
    return np.array([*corners, *zip(x, y, strict=True)]).T


def bounded(values):
    """Return the slope at each inner number of each row, see `HeightMap`: the smallest of mean and both bounds."""
    least = np.zeros(values.shape)
    for i, k in np.ndindex(len(values), values.shape[1] - 2):
        a, b = np.diff(values[i, k : k + 3])
        three = sorted([0.5 * (a + b), 2.0 * a, 2.0 * b], key=abs)
        least[i, k + 1] = three[0] if a * b > 0.0 else 0.0
    return least


def oracle(x, y, heights=HEIGHTS):
    """Return height and both slopes by one-dimensional splines of SciPy, along y and then along x."""
    padded = np.pad(heights, HALO, mode="edge")
    along_x, along_y = bounded(padded.T).T, bounded(padded)
    one, other = bounded(along_x), bounded(along_y.T).T
    mixed = np.where(one * other > 0.0, np.where(np.abs(one) < np.abs(other), one, other), 0.0)
    rows, columns = (np.arange(n) - HALO for n in padded.shape)
    u, v = np.clip((x + 0.5) / 0.25, *rows[[0, -1]]), np.clip((y - 1.0) / 0.25, *columns[[0, -1]])
    values, slopes = (CubicHermiteSpline(columns, *pair, axis=1) for pair in ((padded, along_y), (along_x, mixed)))
    surface = CubicHermiteSpline(rows, values(v), slopes(v))
    across = CubicHermiteSpline(rows, values.derivative()(v), slopes.derivative()(v))
    return surface(u), surface.derivative()(u) / 0.25, across(u) / 0.25


def test_height_and_normal_equal_splines_of_scipy_also_outside_of_the_map():
    for x, y in points(200).T:
        height, slope_x, slope_y = oracle(x, y)
        assert MAP.height(x, y) == pytest.approx(height, abs=1e-14)
        n = np.array([-slope_x, -slope_y, 1.0])
        np.testing.assert_allclose(MAP.normal(x, y), n / np.linalg.norm(n), atol=1e-13)


def test_the_error_on_smooth_ground_falls_with_the_third_power_of_the_spacing():
    """The surface rises everywhere along both axes, so that all slopes are central differences."""
    errors = []
    for spacing in (0.1, 0.05, 0.025):
        grid = np.arange(0.0, 1.0 + spacing, spacing)
        terrain = HeightMap(np.exp(grid[:, None] + 0.7 * grid), spacing)
        x, y = np.random.default_rng(3).uniform(0.2, 0.8, (2, 300))
        errors.append(np.abs(terrain.height(x, y) - np.exp(x + 0.7 * y)).max())
    assert errors[1] < 2.0**-2.8 * errors[0] and errors[2] < 2.0**-2.8 * errors[1]


def test_the_surface_does_not_rise_over_the_heights_of_its_cell():
    """Tops of steps stay level up to their edges, where a surface from central differences is 0.07 higher."""
    random = np.random.default_rng(2)
    s, t = np.meshgrid(np.linspace(0.0, 1.0, 11), np.linspace(0.0, 1.0, 11), indexing="ij")
    steep = np.cumsum(np.cumsum(random.exponential(size=(12, 12)) ** 3, axis=0), axis=1)
    for heights in (random.integers(0, 2, (12, 12)), random.uniform(size=(12, 12)), steep):
        terrain = HeightMap(heights, 0.25)
        for i, j in np.ndindex(11, 11):
            corners, inside = terrain.heights[i : i + 2, j : j + 2], terrain.height(0.25 * (i + s), 0.25 * (j + t))
            most = 1e-3 * np.ptp(corners) + 1e-13
            assert corners.min() - most <= inside.min() and inside.max() <= corners.max() + most
    edge = HeightMap([[0.0], [0.0], [1.0], [1.0]], 0.25)
    x = np.linspace(0.0, 0.75, 31)
    np.testing.assert_allclose(edge.height(x, 0.0 * x), np.interp(x, [0.25, 0.5], [0.0, 1.0]), atol=0.1)
    np.testing.assert_array_equal(edge.normal(x, 0.0 * x)[[5, 25]], [[0.0, 0.0, 1.0]] * 2)


def test_the_surface_passes_through_the_heights_and_planes_are_exact():
    x, y = np.meshgrid(-0.5 + 0.25 * np.arange(6), 1.0 + 0.25 * np.arange(8), indexing="ij")
    np.testing.assert_allclose(MAP.height(x, y), HEIGHTS, atol=1e-15)
    plane = HeightMap(0.3 * x - 0.2 * y, 0.25, (-0.5, 1.0))
    inner_x, inner_y = np.random.default_rng(1).uniform([[-0.25], [1.25]], [[0.5], [2.5]], (2, 30))  # off the edges
    np.testing.assert_allclose(plane.height(inner_x, inner_y), 0.3 * inner_x - 0.2 * inner_y, atol=1e-15)
    expected = np.array([-0.3, 0.2, 1.0]) / np.sqrt(1.13)
    np.testing.assert_allclose(plane.normal(inner_x, inner_y), np.broadcast_to(expected, (30, 3)), atol=1e-14)


def test_the_edge_heights_continue_outside_of_the_map():
    far = 1e9
    assert MAP.height(-far, -far) == pytest.approx(HEIGHTS[0, 0], abs=1e-15)
    assert MAP.height(far, 1.25) == pytest.approx(HEIGHTS[-1, 1], abs=1e-15)
    np.testing.assert_allclose(MAP.normal(-far, far), [0.0, 0.0, 1.0], atol=1e-15)
    assert MAP.height(0.25, 2.75 + 1e-6) == pytest.approx(HEIGHTS[3, -1], abs=1e-15)
    assert HeightMap([[0.3]], 1.0).height(0.4, -7.0) == pytest.approx(0.3, abs=1e-15)


def test_height_and_normal_have_no_jumps():
    """Over 1e-9 m the slopes, up to 3, whose rates are below 100 / m, change by less than 1e-7."""
    gaps = 1e-9
    for k in range(-3, 10):
        x, y = -0.5 + 0.25 * k, 1.0 + 0.25 * k
        for before, after in (((x - gaps, 1.6), (x + gaps, 1.6)), ((0.1, y - gaps), (0.1, y + gaps))):
            assert abs(MAP.height(*after) - MAP.height(*before)) < 1e-7
            assert np.abs(MAP.normal(*after) - MAP.normal(*before)).max() < 2e-6


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_derivative_of_the_height_gives_the_normal(mode):
    gradient = legged.jacobian(lambda r: MAP.height(r[0], r[1]), mode=mode)
    kernel = legged.compile(gradient, r=(2,))
    places = points(20).T
    slopes = kernel(places)
    for place, slope in zip(places, slopes, strict=True):
        n = np.array([-slope[0], -slope[1], 1.0])
        np.testing.assert_allclose(MAP.normal(*place), n / np.linalg.norm(n), atol=1e-13)
    np.testing.assert_allclose(gradient(places[-1]), slopes[-1], atol=1e-13)


def test_graphs_do_not_grow_with_the_map_and_a_million_heights_compile_like_a_hundred(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))

    def kernel(n):
        heights = np.random.default_rng(n).uniform(size=(n, n))
        return legged.compile(lambda r: HeightMap(heights, 0.1).height(r[0], r[1]), r=(2,)), heights

    (small, _), (large, heights) = kernel(10), kernel(1000)
    assert small.graph.size == large.graph.size < 150
    assert large.counts.lookups == 16 and large.counts == small.counts
    i, j = np.array([[0, 0], [999, 999], [500, 123]]).T
    np.testing.assert_allclose(large(0.1 * np.stack([i, j], axis=-1)), heights[i, j], atol=1e-12)
    assert (
        max(file.stat().st_size for file in (tmp_path / "legged").iterdir()) < 100_000
    )  # [bytes]; the heights are 8 MB


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([1.0, 2.0], 0.1), ShapeError, "heights of a height map"),
        ((np.zeros((0, 3)), 0.1), ShapeError, "grid of numbers"),
        (([[0.0, np.nan]], 0.1), NotFiniteError, "entry 0, 1"),
        (([["a"]], 0.1), ArgumentError, "real numbers"),
        (([[0.0]], 0.0), DefinitionError, "positive, got 0.0 m"),
        (([[0.0]], -1.0), DefinitionError, "positive"),
        (([[0.0]], np.inf), NotFiniteError, "spacing"),
        (([[0.0]], 0.1, (0.0, np.nan)), NotFiniteError, "origin"),
        (([[0.0]], 0.1, (0.0,)), ShapeError, "origin"),
    ],
)
def test_maps_without_sense_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        HeightMap(*arguments)


def test_a_map_keeps_its_own_heights():
    heights = HEIGHTS.copy()
    terrain = HeightMap(heights, 0.25, (-0.5, 1.0))
    heights[:] = 5.0
    again = pickle.loads(pickle.dumps(terrain))
    assert terrain.height(0.1, 1.6) == again.height(0.1, 1.6) == MAP.height(0.1, 1.6)
    assert str(terrain).startswith("6 x 8 heights from -0.0") and "array" not in repr(terrain)
    with pytest.raises(ValueError, match="read-only"):
        terrain.heights[0, 0] = 1.0


class InPython:
    """A terrain that cannot be traced, since it wants plain numbers."""

    def __init__(self, terrain):
        self.terrain = terrain

    def height(self, x, y):
        return self.terrain.height(np.asarray(x, float), np.asarray(y, float))

    def normal(self, x, y):
        return self.terrain.normal(np.asarray(x, float), np.asarray(y, float))


def bumps():
    """Return bumps of 8 mm, under the feet by chance: 0.9 m apart along x and 0.7 m along y."""
    x = np.arange(-2.0, 2.0, 0.1)
    return HeightMap(0.002 * np.add.outer(np.cos(7.0 * x), np.sin(9.0 * x)), 0.1, (-2.0, -2.0))


@pytest.mark.parametrize("rigid", [False, True])
def test_a_quadruped_trots_over_bumps_alike_compiled_and_in_python(rigid, tmp_path):
    robot, terrain = robots.spatial_quadruped(), bumps()
    law = controllers.ComputedTorque(controllers.Trot(period=0.4, stride=0.1))

    def trot(terrain, until):
        ground = Rigid(terrain=terrain) if rigid else realistic_ground(robot, terrain=terrain)
        integrator = legged.TimeStepping(1e-3) if rigid else legged.SemiImplicitEuler(2e-4)
        return legged.simulate(robot, law, ground=ground, until=until, integrator=integrator, sample=0.002)

    run, plain = trot(terrain, 0.4), trot(InPython(terrain), 0.004)
    assert run.backend == "compiled closed loop" and plain.backend.startswith("compiled robot")
    early = slice(len(plain))
    np.testing.assert_allclose(run.q[early], plain.q, atol=1e-13)
    np.testing.assert_allclose(run.v[early], plain.v, atol=1e-10)  # [rad/s], of about 1
    forces, weight = run.contacts.forces, robot.mass * 9.81
    assert np.isfinite(forces).all() and np.abs(forces).max() < 15.0 * weight  # touchdown on level ground: 13
    feet = run.contacts.points[forces[..., 2] > 0.1 * weight]
    heights = terrain.height(feet[:, 0], feet[:, 1])
    assert np.abs(feet[:, 2] - heights).max() < 2.5e-3 < np.ptp(heights)  # loaded feet follow the bumps
    run.save(tmp_path / "run.npz")
    lines = legged.Run.load(tmp_path / "run.npz").ground.lines
    np.testing.assert_allclose(lines[..., 2], terrain.height(lines[..., 0], lines[..., 1]), atol=1e-15)
    assert np.ptp(lines[..., 2]) > 4e-3  # the drawing shows them


def test_members_of_a_rollout_share_a_map_whose_heights_are_constants_of_the_kernel():
    robot = robots.spatial_quadruped()
    terrain, again = bumps(), bumps()
    assert terrain == again and terrain != HeightMap(terrain.heights + 1.0, 0.1, (-2.0, -2.0))
    law = controllers.ComputedTorque(controllers.Trot(period=0.4, stride=0.1))
    options = {"until": 0.004, "integrator": legged.SemiImplicitEuler(2e-4), "sample": 0.002}
    grounds = [realistic_ground(robot, friction=0.5, terrain=x) for x in (terrain, again)]
    assert len(flatten(grounds[0])[0]) < 20
    runs = legged.rollout(
        robot, law, ground=grounds[0], vary={"ground.friction.coefficient": [0.5, 0.7]}, compiled=True, **options
    )
    run = legged.simulate(robot, law, ground=grounds[1], **options)
    np.testing.assert_allclose(runs.q[0], run.q, atol=1e-12)


def test_forces_of_single_states_and_batches_are_those_of_the_laws_on_a_surface_of_splines():
    """Hunt and Crossley's force along the normal and the arctangent of the sliding speed, from heights by SciPy."""
    K, a, mu, viscosity = 1e5, 0.4, 0.7, 1500.0
    ground = Ground(HuntCrossley(K, a), VectorFriction(mu, viscosity), MAP)
    kernel = legged.compile(ground.forces, None, points=(2, 3), velocities=(2, 3), memory=(0,))
    rng = np.random.default_rng(3)
    places = np.stack([*points(150)[:, :150], rng.uniform(-0.1, 0.2, 150)], axis=-1)
    velocities = rng.normal(size=places.shape)

    def force(place, velocity):
        height, *slopes = oracle(*place[:2])
        n = np.array([-slopes[0], -slopes[1], 1.0]) / np.sqrt(1.0 + slopes[0] ** 2 + slopes[1] ** 2)
        depth, rate = (height - place[2]) * n[2], -n @ velocity
        pressure = K * max(depth, 0.0) ** 1.5 * max(1.0 + 1.5 * a * rate, 0.0)
        sliding = velocity - (n @ velocity) * n
        speed, limit = np.linalg.norm(sliding), 2.0 / np.pi * mu * pressure
        size = limit * np.arctan2(viscosity * speed, limit)
        return pressure * n - size * sliding / speed

    wanted = np.array([force(*state) for state in zip(places, velocities, strict=True)]).reshape(75, 2, 3)
    states = places.reshape(75, 2, 3), velocities.reshape(75, 2, 3)
    many, _ = kernel(*states, np.zeros((75, 0)))
    one = np.array([kernel(*state, np.zeros(0))[0] for state in zip(*states, strict=True)])
    scale = np.abs(wanted).max()
    assert scale > 100.0 and (np.abs(wanted).max(axis=2) > 1.0).sum() > 30
    np.testing.assert_allclose(many, wanted, atol=1e-11 * scale)
    np.testing.assert_allclose(one, wanted, atol=1e-11 * scale)
