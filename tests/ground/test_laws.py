"""Thought experiments on the ground laws: one mass point, integrated with small steps."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import robots
from benchmarks.studies.restitution import small_loss
from legged.errors import DefinitionError, ShapeError
from legged.ground import (
    AxisFriction,
    AzadFeatherstone,
    BristleFriction,
    Flat,
    Frictionless,
    Ground,
    HuntCrossley,
    KelvinVoigt,
    PaperNormal,
    Slope,
    VectorFriction,
    center_of_pressure,
    coefficient_of_restitution,
    paper_ground,
    realistic_ground,
)

G = 9.81
STIFF = [KelvinVoigt(5e4, 80.0), HuntCrossley(2e6, 0.3), AzadFeatherstone(2e6, 3e3)]
ALL = [*STIFF, PaperNormal(2500.0, 60.0)]


def point(x=0.0, y=0.0, z=0.0):
    return np.array([[x, y, z]])


def drop(law, mass=1.0, height=0.2, until=1.5):
    """Return (t, z, zd) of a mass point dropped on the law."""

    def rate(t, y):
        f = law.force(-y[0], -y[1])
        return [y[1], f / mass - G]

    run = solve_ivp(rate, (0.0, until), [height, 0.0], method="LSODA", rtol=1e-9, atol=1e-11, max_step=1e-3)
    return run.t, run.y[0], run.y[1]


@pytest.mark.parametrize("law", ALL, ids=lambda law: type(law).__name__)
def test_apexes_of_a_bouncing_ball_never_grow(law):
    _, z, zd = drop(law)
    apexes = [z[0], *z[1:][(zd[:-1] > 0.0) & (zd[1:] <= 0.0) & (z[1:] > 0.0)]]
    assert len(apexes) >= 3
    assert np.all(np.diff(apexes) < 1e-6)


@pytest.mark.parametrize("law", [AzadFeatherstone(2e6, 20.0), HuntCrossley(2e6, 0.02)], ids=lambda law: str(law)[:5])
def test_loss_of_restitution_grows_with_the_fifth_root_of_the_impact_speed_or_with_the_speed(law):
    """1 - e is proportional to u^(1/5) for viscoelastic spheres and to u for Hunt and Crossley, to first order."""
    for u in (0.01, 0.1, 1.0):
        loss = 1.0 - coefficient_of_restitution(law, 0.1, u)
        assert loss == pytest.approx(small_loss(law, 0.1, u), rel=1.5 * loss)  # the next term is smaller by about 1 - e


def test_loss_of_viscoelastic_spheres_has_the_published_factor():
    """Ramirez, Poeschel, Brilliantov, Schwager 1999: 1 - e = 1.15344 A k^(2/5) u^(1/5), k = (3/2)^(5/2) K / m."""
    m, K, A, u = 0.1, 2e6, 1e-6, 1.0
    published = 1.15344 * A * 1.5 * (K / m) ** 0.4 * u**0.2
    assert small_loss(AzadFeatherstone(K, 1.5 * A * K), m, u) == pytest.approx(published, rel=1e-5)


def test_restitution_of_elastic_and_overdamped_laws_and_of_invalid_impacts():
    assert coefficient_of_restitution(HuntCrossley(2e6, 0.0), 0.1, 1.0) == pytest.approx(1.0, abs=1e-9)
    assert coefficient_of_restitution(AzadFeatherstone(2e6, 1e7), 0.1, 1.0) < 1e-5
    with pytest.raises(DefinitionError, match=r"must be positive, got 0\.1 kg and -1 m/s"):
        coefficient_of_restitution(HuntCrossley(2e6, 0.0), 0.1, -1.0)


@pytest.mark.parametrize("law", STIFF, ids=lambda law: type(law).__name__)
def test_ground_without_adhesion_never_pulls(law):
    p, rate = np.meshgrid(np.linspace(-0.01, 0.05, 61), np.linspace(-50.0, 50.0, 101))
    f = law.force(p, rate)
    assert f.min() == 0.0
    assert np.all(f[p <= 0.0] == 0.0)
    assert np.all(f[(p > 0.0) & (rate > 0.0)] > 0.0)


@pytest.mark.parametrize("law", ALL, ids=lambda law: type(law).__name__)
def test_the_formula_depth_carries_the_load(law):
    assert law.force(law.rest_penetration(2.0 * G), 0.0) == pytest.approx(2.0 * G, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("law", ALL, ids=lambda law: type(law).__name__)
def test_a_mass_comes_to_rest_at_the_formula_depth(law):
    _, z, _ = drop(law, mass=2.0, height=-0.9 * law.rest_penetration(2.0 * G), until=60.0)
    assert z[-1] == pytest.approx(-law.rest_penetration(2.0 * G), rel=1e-4)


def test_authors_law_has_the_printed_branches():
    law = PaperNormal(2000.0, 2742.262)
    assert law.rebound_depth == pytest.approx(7.404, abs=5e-4)  # [m], the authors' z_l of the biped
    assert law.force(0.9e-5, 1.0) == 0.0
    assert law.force(0.01, 0.2) == pytest.approx(2000.0 * 0.01 + 2742.262 * 0.2)
    s = 0.01 / law.rebound_depth
    assert law.force(0.01, -0.2) == pytest.approx(20.0 - 2742.262 * (3 * s**2 - 2 * s**3) * 0.2)
    assert law.force(10.0, -0.2) == pytest.approx(2e4 - 2742.262 * 0.2)


@pytest.mark.parametrize(
    ("kind", "damping", "depth"),
    [("biped", 2742.262, 7.404), ("quadruped", 3464.102, 7.482), ("hexapod", 4098.780, 7.38)],
)
def test_paper_ground_has_the_authors_constants(kind, damping, depth):
    ground: Any = paper_ground(kind)
    assert ground.normal.damping == pytest.approx(damping, abs=5e-4)
    assert ground.normal.rebound_depth == pytest.approx(depth, abs=5e-3)
    assert ground.friction.coefficient == 0.7
    assert kind in ground.describe()


def test_paper_ground_of_another_robot_follows_its_mass():
    robot = robots.centipede(2)
    ground: Any = paper_ground(robot)
    assert ground.normal.stiffness == pytest.approx(210.0 * robot.mass)
    assert ground.normal.damping == pytest.approx(20.0 * np.sqrt(210.0) * robot.mass)
    assert ground.friction.viscosity == pytest.approx(0.6 * 210.0 * robot.mass)
    for name in ("centipede", "small biped"):
        with pytest.raises(DefinitionError, match="pass a robot"):
            paper_ground(name)


@pytest.mark.parametrize("law", ["azad-featherstone", "hunt-crossley", "kelvin-voigt"])
def test_realistic_ground_carries_the_robot_at_the_wanted_depth(law):
    robot = robots.spatial_quadruped()
    share = robot.mass / 2
    ground: Any = realistic_ground(robot, penetration=0.4e-3, law=law)
    assert ground.normal.rest_penetration(share * G) == pytest.approx(0.4e-3)
    k = ground.friction.stiffness
    assert ground.normal.force(0.401e-3, 0.0) - ground.normal.force(0.399e-3, 0.0) == pytest.approx(2e-6 * k, rel=1e-4)
    d = ground.normal.force(0.4e-3, 1e-4) - ground.normal.force(0.4e-3, 0.0)
    assert d == pytest.approx(1e-4 * 2 * 0.7 * np.sqrt(k * share), rel=1e-6)
    assert "0.4 mm" in str(ground)
    assert "damping ratio 0.7" in str(ground)


@pytest.mark.parametrize("friction", [VectorFriction(0.6, 500.0), BristleFriction(0.6, 1e4, 50.0)])
def test_turning_the_world_turns_vector_friction(friction):
    rng = np.random.default_rng(3)
    for _ in range(20):
        a = rng.uniform(-np.pi, np.pi)
        R = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        v, z = rng.normal(size=2), 1e-3 * rng.normal(size=friction.memory)
        f, rate = friction.force(30.0, v, z)
        turn = R if friction.memory else np.zeros((0, 0))
        f_turned, rate_turned = friction.force(30.0, R @ v, turn @ z)
        np.testing.assert_allclose(f_turned, R @ f, atol=1e-12 * 30.0)
        np.testing.assert_allclose(rate_turned, turn @ rate, atol=1e-12)


def test_friction_limit_is_mu_load_along_an_axis_and_root_two_more_across_axes():
    """The authors' law is not the same in every direction; the vector laws are."""
    fast = 1e6  # [m/s], so that the arctangent is at its limit
    axis, vector = AxisFriction(0.7, 1000.0), VectorFriction(0.7, 1000.0)
    along, across = np.array([fast, 0.0]), np.array([fast, fast])
    size = lambda law, v: np.linalg.norm(law.force(100.0, v, np.zeros(0))[0])  # noqa: E731
    assert size(axis, along) == pytest.approx(70.0, rel=1e-6)
    assert size(axis, across) == pytest.approx(70.0 * np.sqrt(2.0), rel=1e-6)
    assert size(vector, along) == pytest.approx(70.0, rel=1e-6)
    assert size(vector, across) == pytest.approx(70.0, rel=1e-6)


@pytest.mark.parametrize(
    "friction", [AxisFriction(0.7, 1e3), VectorFriction(0.7, 1e3), BristleFriction(0.7, 1e4, 50.0)]
)
def test_friction_vanishes_without_load_and_opposes_motion(friction):
    rng = np.random.default_rng(4)
    empty = np.zeros(friction.memory)
    for v in rng.normal(size=(20, 2)):
        assert np.all(friction.force(0.0, v, empty)[0] == 0.0)
        assert friction.force(10.0, v, empty)[0] @ v < 0.0
    assert np.all(friction.force(10.0, np.zeros(2), empty)[0] == 0.0)


def test_authors_friction_has_slope_c_h_at_zero():
    f, _ = AxisFriction(0.7, 1500.0).force(100.0, np.array([1e-6, -2e-6]), np.zeros(0))
    np.testing.assert_allclose(f, [-1.5e-3, 3e-3], rtol=1e-6)


def test_bristle_is_passive_and_stays_in_the_cone_under_any_load():
    rng = np.random.default_rng(5)
    law = BristleFriction(0.8, 2e4, 70.0)
    for _ in range(500):
        load, v, z = rng.uniform(0, 200), rng.normal(size=2), 5e-3 * rng.normal(size=2)
        friction, rate = law.force(load, v, z)
        assert np.linalg.norm(friction) <= 0.8 * load * (1 + 1e-12)
        stored = law.stiffness * z @ rate
        assert -friction @ v - stored > -1e-9


def slide(mu, friction, seconds, angle=0.4, k=2e5):
    """Return the displacement [m] and the change of speed [m/s] since t = 0.5 s of a 1 kg mass point on a slope."""
    ground = Ground(KelvinVoigt(k, 400.0), friction(mu), Slope(angle))
    down = np.array([-np.cos(angle), 0.0, -np.sin(angle)])

    def rate(t, y):
        f, memory_rate = ground.forces(y[None, :3], y[None, 3:6], y[6:])
        return np.concatenate([y[3:6], f[0] + [0.0, 0.0, -G], memory_rate])

    depth = G * np.cos(angle) / k
    start = np.concatenate([-depth * ground.terrain.normal(0.0, 0.0), np.zeros(3), ground.memory(1)])
    run = solve_ivp(rate, (0.0, seconds), start, method="BDF", rtol=1e-6, atol=1e-8, t_eval=[0.5, seconds])
    assert run.success, run.message
    return down @ (run.y[:3, 1] - run.y[:3, 0]), down @ (run.y[3:6, 1] - run.y[3:6, 0])


def bristle(mu):
    return BristleFriction(mu, 1e5, 300.0)


def test_block_on_a_slope_below_the_friction_angle_does_not_creep_in_a_minute():
    moved, _ = slide(1.02 * np.tan(0.4), bristle, 60.0)
    assert abs(moved) < 1e-7  # [m], ten times the integrator's tolerance


def test_block_on_a_slope_above_the_friction_angle_slides_as_coulomb_says():
    mu = 0.9 * np.tan(0.4)
    a = G * (np.sin(0.4) - mu * np.cos(0.4))
    _, gained = slide(mu, bristle, 2.0)
    assert gained == pytest.approx(a * 1.5, rel=1e-4)


def test_smoothed_friction_creeps_where_the_bristle_sticks():
    moved, _ = slide(1.02 * np.tan(0.4), lambda mu: VectorFriction(mu, 1000.0), 10.0)
    assert moved > 0.05  # [m]


def test_ball_on_ice_keeps_its_sliding_speed():
    ground = Ground(KelvinVoigt(1e4, 0.0), Frictionless())
    f, memory_rate = ground.forces(point(z=-0.01), np.array([[3.0, 1.0, 0.0]]), ground.memory(1))
    np.testing.assert_allclose(f, [[0.0, 0.0, 100.0]])
    assert memory_rate.shape == (0,)


def test_forces_refuse_wrong_shapes():
    ground = Ground(KelvinVoigt(1e4, 0.0), bristle(0.5))
    with pytest.raises(ShapeError, match=r"memory must be \(2,\), got shape \(3,\)"):
        ground.forces(point(), point(), np.zeros(3))
    with pytest.raises(ShapeError, match=r"velocities must be \(1, 3\)"):
        ground.forces(point(), np.zeros((2, 3)), np.zeros(2))


def test_a_robot_without_contact_points_feels_no_ground():
    f, rate = Ground(KelvinVoigt(1e4, 0.0), bristle(0.5)).forces(np.zeros((0, 3)), np.zeros((0, 3)))
    assert f.shape == (0, 3)
    assert rate.shape == (0,)


@pytest.mark.parametrize(
    "make",
    [
        lambda: KelvinVoigt(-1.0, 0.0),
        lambda: HuntCrossley(1e4, -0.1),
        lambda: AzadFeatherstone(0.0, 1.0),
        lambda: PaperNormal(1e3, np.nan),
        lambda: AxisFriction(-0.1, 1.0),
        lambda: BristleFriction(0.5, 0.0, 1.0),
        lambda: HuntCrossley(1e4, 0.1).rest_penetration(-1.0),
    ],
)
def test_laws_without_sense_are_refused(make):
    with pytest.raises(DefinitionError, match="must"):
        make()


def test_center_of_pressure_divides_by_load_and_is_nowhere_in_flight():
    points = np.array([[[0.0, 0, 0], [1.0, 0, 0]], [[0.0, 0, 1], [1.0, 0, 1]]])
    forces = np.array([[[5.0, 0, 1], [0, 0, 3]], [[0.0, 0, 0], [0, 0, 0]]])
    cop = center_of_pressure(points, forces)
    np.testing.assert_allclose(cop[0], [0.75, 0.0, 0.0])
    assert np.isnan(cop[1]).all()


def test_flat_ground_at_a_height_shifts_the_forces():
    law, friction = KelvinVoigt(1e4, 10.0), VectorFriction(0.5, 100.0)
    v = np.array([[0.3, -0.2, -0.5]])
    low, _ = Ground(law, friction).forces(point(z=-0.01), v)
    high, _ = Ground(law, friction, Flat(0.3)).forces(point(z=0.29), v)
    np.testing.assert_allclose(low, high, rtol=1e-9)
