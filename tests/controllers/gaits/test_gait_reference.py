"""Properties of all gaits: consistent rates, continuity at switches, planned feet, and the initial state."""

from __future__ import annotations

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers import Crawl, Leg, Posture, Stand, Tripod, Trot, Walk
from legged.compiler import compile as compiled
from legged.errors import DefinitionError, NotFiniteError, ReachError, ShapeError, UnknownNameError

SPATIAL_LEGS = tuple(
    Leg(name, (0.0, y, -0.1), 0.45, 0.45, abducts=True, flat_foot=True) for name, y in (("right", -0.1), ("left", 0.1))
)
GAITS = {
    "walk": Walk(),
    "fast backward walk": Walk(period=0.6, stride=-0.2, path="smooth"),
    "swaying walk": Walk(hip_height=0.8, stride=0.2, legs=SPATIAL_LEGS, sway=True, path="cycloid"),
    "trot": Trot(),
    "tripod": Tripod(),
    "crawl": Crawl(),
    "stand": Stand(),
}
ROBOTS = {
    "walk": robots.planar_biped,
    "trot": robots.spatial_quadruped,
    "tripod": robots.hexapod,
    "crawl": robots.spatial_quadruped,
}
H = 2e-4  # [s], of central differences


def instants(gait):
    """Return (t, phase) of times inside the steps of two cycles, away from where formulas change."""
    shares = np.array([0.03, 0.21, 0.37, 0.62, 0.83, 0.98])
    return [((k + share) * gait.period, k) for k in range(2 * gait.cycle) for share in shares]


@pytest.mark.parametrize("gait", GAITS.values(), ids=GAITS)
def test_rates_are_the_derivatives_of_the_positions(gait):
    for t, k in instants(gait):
        _, rates, accelerations = gait.reference(t, k)
        around = [gait.reference(t + i * H, k) for i in (-2, -1, 1, 2)]
        differences = [
            (a - 8 * b + 8 * c - d) / (12 * H) for a, b, c, d in zip(*around, strict=True)
        ]  # of fourth order: h^4 / 30 of fifth derivatives, which reach 1e6 and 1e8 in the fast tripod
        np.testing.assert_allclose(rates, differences[0], atol=1e-7)
        np.testing.assert_allclose(accelerations, differences[1], atol=1e-5)


@pytest.mark.parametrize("gait", GAITS.values(), ids=GAITS)
def test_positions_and_velocities_are_continuous_where_legs_exchange(gait):
    for k in range(1, 2 * gait.cycle + 1):
        t = k * gait.period
        for part in range(2):
            np.testing.assert_allclose(gait.reference(t, k - 1)[part], gait.reference(t, k)[part], atol=1e-11)
            np.testing.assert_allclose(gait.base(t, k - 1)[part], gait.base(t, k)[part], atol=1e-12)
            np.testing.assert_allclose(gait.feet(t, k - 1)[part], gait.feet(t, k)[part], atol=1e-12)


@pytest.mark.parametrize("gait", GAITS.values(), ids=GAITS)
def test_everything_repeats_after_a_cycle_but_for_the_way_made(gait):
    way = [gait.cycle * gait.stride, 0, 0]
    for t, k in instants(gait)[::3]:
        later = t + gait.cycle * gait.period
        np.testing.assert_allclose(gait.reference(later)[0], gait.reference(t)[0], atol=1e-11)
        np.testing.assert_allclose(gait.base(later)[0], gait.base(t, k)[0] + way, atol=1e-12)
        np.testing.assert_allclose(gait.feet(later)[0], gait.feet(t, k)[0] + way, atol=1e-12)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_robots_feet_are_where_the_plan_has_them(name):
    robot = ROBOTS[name]()
    gait = GAITS[name].on(robot)
    points = [(point.link, point.position) for point in robot.contacts]
    legs = [next(i for i, leg in enumerate(gait.geometry) if c.name.startswith(leg.name)) for c in robot.contacts]
    for t, k in instants(gait)[::2]:
        angles, rates, _ = gait.reference(t, k)
        position, velocity, _ = gait.base(t, k)
        q = np.concatenate([robot.base.configuration(position, np.eye(3)), angles])
        v = np.concatenate([robot.base.velocity(q[: robot.base.nq], np.zeros(3), velocity), rates])
        places, speeds = legged.point_motion(robot, q, v, points)
        feet, foot_speeds, _ = gait.feet(t, k)
        for contact, leg, place, speed in zip(robot.contacts, legs, places, speeds, strict=True):
            offset = contact.position if "foot" in robot.links[contact.link].name else np.zeros(3)
            np.testing.assert_allclose(place, feet[leg] + offset, atol=1e-12)
            np.testing.assert_allclose(speed, foot_speeds[leg], atol=1e-11)


@pytest.mark.parametrize("gait", GAITS.values(), ids=GAITS)
def test_supporting_feet_stand_still_on_the_ground(gait):
    for t, k in instants(gait):
        place, speed, _ = gait.feet(t, k)
        names = gait.support(t)
        assert names
        for leg, p, v in zip(gait.geometry, place, speed, strict=True):
            if leg.name in names:
                assert p[2] == 0
                np.testing.assert_array_equal(v, 0)
            elif gait.clearance:
                assert p[2] > 0


@pytest.mark.parametrize("gait", GAITS.values(), ids=GAITS)
def test_traced_references_are_those_of_plain_numbers(gait):
    kernel = compiled(lambda t, phase: gait.reference(t, phase), None, t=(), phase=())
    for t, k in instants(gait)[::3]:
        for values, wanted in zip(kernel(t, float(k)), gait.reference(t, k), strict=True):
            np.testing.assert_allclose(values, wanted, atol=1e-10)


@pytest.mark.parametrize("gait", GAITS.values(), ids=GAITS)
def test_many_instants_at_once_are_each_of_them(gait):
    t = np.array([t for t, _ in instants(gait)])
    for method in (gait.reference, gait.base, gait.feet):
        for together, alone in zip(method(t), zip(*map(method, t), strict=True), strict=True):
            np.testing.assert_allclose(together, alone, atol=1e-12)


@pytest.mark.parametrize(
    "name, robot",
    [
        ("walk", robots.planar_biped()),
        ("trot", robots.spatial_quadruped()),
        ("trot", robots.spatial_quadruped(legged.EulerBase("xyz"))),
        ("trot", robots.spatial_quadruped(legged.EulerBase("zxy"))),
        ("trot", robots.spatial_quadruped(legged.FixedBase())),
        ("tripod", robots.hexapod()),
        ("crawl", robots.spatial_quadruped()),
    ],
)
def test_a_run_starts_level_and_under_way_with_feet_at_rest_on_the_ground(name, robot):
    gait = GAITS[name]
    q, v = gait.initial_state(robot)
    assert q.shape == (robot.nq,)
    assert v.shape == (robot.nv,)
    if not robot.base.nv:
        return
    R, o = robot.base.pose(q[: robot.base.nq])
    np.testing.assert_allclose(R, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(o, gait.on(robot).base(0.0)[0], atol=1e-15)
    points, speeds = legged.point_motion(robot, q, v, [(c.link, c.position) for c in robot.contacts])
    np.testing.assert_allclose(points[:, 2], 0, atol=1e-14)
    np.testing.assert_allclose(speeds, 0, atol=1e-14)
    twist = legged.link_twists(robot, q, v)[0]
    np.testing.assert_allclose(twist, [0, 0, 0, *gait.on(robot).base(0.0)[1]], atol=1e-14)


def test_the_papers_start():
    q, v = controllers.paper_walk().initial_state(robots.planar_biped())
    np.testing.assert_allclose(q[:3], [0, -0.15, 1.21], atol=1e-15)
    np.testing.assert_allclose(v[:3], [0, 0.520395, 0], atol=5.01e-7)


def test_diagonals_and_tripods_carry_in_turn():
    assert Walk().groups == (("a",), ("b",))
    assert Trot().groups == (("leg1", "leg4"), ("leg2", "leg3"))
    assert Tripod().groups == (("leg1", "leg4", "leg5"), ("leg2", "leg3", "leg6"))
    assert Trot(first=("leg2", "leg3")).support(0.5) == ("leg2", "leg3")
    assert Trot().support(1.0) == ("leg2", "leg3")
    with pytest.raises(UnknownNameError, match="did you mean 'leg1'"):
        Trot(first=("leg_1",)).reference(0.0)


def test_switches_are_the_exchanges_before_the_end():
    np.testing.assert_allclose(Walk(period=0.5).switches(2.0), [0.5, 1.0, 1.5])
    np.testing.assert_allclose(Walk(period=0.1).switches(0.35), [0.1, 0.2, 0.3])
    assert len(Walk().switches(0.9)) == 0
    assert len(Stand().switches(10.0)) == 0


def test_swaying_takes_the_base_over_the_supporting_foot():
    gait = GAITS["swaying walk"]
    start, middle = gait.base(0.0), gait.base(0.5)
    assert start[0][1] == pytest.approx(0, abs=1e-15)
    assert -0.1 < middle[0][1] < -0.01  # towards the right foot, which carries first, and not beyond it [m]
    assert gait.base(1.5)[0][1] == pytest.approx(-middle[0][1], rel=1e-12)


def test_a_plan_beyond_the_legs_is_refused_when_it_meets_a_robot():
    with pytest.raises(ReachError, match="leg 'a' cannot reach"):
        Walk(hip_height=0.96, stride=0.9).on(robots.planar_biped())
    with pytest.raises(ReachError, match=r"between 0 m and 0\.6 m"):
        Trot(hip_height=0.62).initial_state(robots.spatial_quadruped())


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"period": 0.0}, "period must be positive"),
        ({"hip_height": -1.0}, "hip_height must be positive"),
        ({"clearance": -0.1}, "clearance must be from 0"),
        ({"stride": np.nan}, "stride must be finite"),
    ],
)
def test_gaits_that_cannot_be_are_refused(wrong, words):
    with pytest.raises(DefinitionError, match=words):
        Walk(**wrong)


def test_legs_that_a_robot_does_not_have_are_refused():
    with pytest.raises(ShapeError, match="joints must be at least 12, the number of joints of the legs, got 6"):
        Trot(legs=Trot().geometry).on(robots.planar_biped())


def test_a_posture_holds_its_angles():
    posture = Posture((0.1, -0.2, 0.3), base_height=0.7)
    for part, wanted in zip(posture.reference(1.0, 0), ([0.1, -0.2, 0.3], [0, 0, 0], [0, 0, 0]), strict=True):
        np.testing.assert_array_equal(part, wanted)
    assert posture.reference(np.zeros(5))[0].shape == (5, 3)
    with pytest.raises(ShapeError, match=r"the posture must be \(6,\)"):
        posture.initial_state(robots.planar_biped())
    q, v = Posture(np.zeros(6), base_height=1.25).initial_state(robots.planar_biped())
    np.testing.assert_array_equal(q, [0, 0, 1.25, *[0] * 6])
    np.testing.assert_array_equal(v, 0)
    with pytest.raises(NotFiniteError, match="angles must be finite"):
        Posture((0.1, np.nan))
