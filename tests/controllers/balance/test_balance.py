"""Walking and trotting on stiff ground: laws of the balance feedback, and runs without a fall."""

from typing import Any

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers.balance.divergent_component import DivergentComponent, Support
from controllers.balance.whole_body import distribute_forces, swing_acceleration
from legged.errors import ArgumentError, DefinitionError, SimulationError
from legged.ground import realistic_ground
from legged.simulation import Push, Stiff, simulate

STIFF = Stiff(rtol=1e-4, atol=1e-6)


def biped_walk(**changes):
    return robots.planar_biped(), controllers.Walk(**{"hip_height": 0.93, "clearance": 0.06} | changes)


def quadruped_trot(**changes):
    return robots.spatial_quadruped(), controllers.Trot(**{"period": 0.4, "stride": 0.15, "clearance": 0.06} | changes)


def test_pressure_of_two_points_moves_only_along_their_line():
    support = Support.of(np.array([[0.3, 0.2, 0.0], [-0.3, -0.2, 0.0], [5.0, 5.0, 0.0]]), [1.0, 1.0, 0.0])
    along, across = np.array([0.3, 0.2]) / np.hypot(0.3, 0.2), np.array([-0.2, 0.3]) / np.hypot(0.3, 0.2)
    # The support's own width of 1 cm against its half length of 0.36 m leaves (0.01 / 0.36)^2 of the motion along it.
    assert support.project(along) @ along == pytest.approx(1.0, abs=1e-3)
    assert np.abs(support.project(across)).max() < 1e-12


def test_pressure_stays_within_its_share_of_the_support():
    support = Support.of(np.array([[0.075, 0.0, 0.0], [-0.075, 0.0, 0.0]]), [1.0, 1.0])
    divergent = DivergentComponent(omega=3.2, period=1.0, stride=0.3, reach=0.8)
    for error in (-1.0, -0.01, 0.02, 3.0):
        pressure = divergent.center_of_pressure(np.array([error, 0.0]), support)
        assert abs(pressure[0]) <= 0.8 * np.hypot(0.075, 0.01)


# A line of support 20 m long along y, beside whose width of 1 cm (5e-7 of its square) is negligible.
LINE = Support.of(np.array([[1.0, 10.0, 0.0], [1.0, -10.0, 0.0]]), [1.0, 1.0])


def test_the_nominal_motion_repeats_from_phase_to_phase():
    """xi' = omega (xi - p) with p at the support: after a phase the error to the support one stride ahead is zero."""
    divergent = DivergentComponent(omega=3.2, period=0.6, stride=0.2)
    xi = LINE.center[:2] + np.array([divergent.offset, 0.0])
    assert divergent.error(0.0, xi, LINE) == pytest.approx([0.0, 0.0], abs=1e-15)
    at_end = LINE.center[:2] + (xi - LINE.center[:2]) * np.exp(3.2 * 0.6)
    following = Support(LINE.center + np.array([0.2, 0.0, 0.0]), LINE.spread)
    assert divergent.error(0.0, at_end, following) == pytest.approx([0.0, 0.0], abs=1e-15)


def test_pressure_goes_beyond_the_error_by_the_gain_up_to_its_limit():
    divergent = DivergentComponent(omega=3.2, period=0.6, stride=0.2, gain=2.5, reach=0.7)
    for error, move in ((0.4, 2.5 * 0.4), (-1.0, -2.5), (5.0, 7.0), (-30.0, -7.0)):
        pressure = divergent.center_of_pressure(np.array([0.3, error]), LINE)
        assert pressure == pytest.approx([1.0, move], rel=1e-5)


@pytest.mark.parametrize("error", [(0.02, 0.0), (0.02, 4.0), (-0.03, 9.0), (0.0, -12.0)])
@pytest.mark.parametrize("t", [0.0, 0.4])
def test_the_next_support_meets_the_divergent_component(t, error):
    """Along the line of support the pressure removes what it can in the rest of the phase; the feet step by the rest.

    xi' = omega (xi - p) is integrated exactly with the pressure at its limit, or where it brings xi to its nominal
    motion at the end of the phase.
    """
    divergent = DivergentComponent(omega=3.2, period=0.6, stride=0.2, reach=0.7, tracking=0.0)
    growth, center = np.exp(3.2 * (0.6 - t)), LINE.center[:2]
    xi = center + np.array([divergent.offset * np.exp(3.2 * t), 0.0]) + error
    needed = error[1] * growth / (growth - 1.0)
    pressure = center + np.array([0.0, np.clip(needed, -7.0, 7.0)])
    at_end = pressure + (xi - pressure) * growth
    landing = divergent.next_support(t, 5.0, divergent.error(t, xi, LINE), LINE, LINE)
    # The width takes 5e-7 of the error along the line from the pressure's part, and it grows.
    assert landing == pytest.approx(at_end - [divergent.offset, 0.0], abs=1e-6 * max(abs(error[1]), 1.0) * growth)


def test_a_deviation_from_the_plan_decays_by_the_tracking_fraction():
    """Along the support at the next step, across it after the divergent motion of another phase."""
    divergent = DivergentComponent(omega=3.2, period=0.6, stride=0.2, tracking=0.4)
    center = LINE.center[:2]  # at the plan in x at phase 5
    nominal = np.array([divergent.offset, 0.0])
    deviated = Support(LINE.center + np.array([0.05, 0.06, 0.0]), LINE.spread)
    error = divergent.error(0.0, deviated.center[:2] + nominal, deviated)
    landing = divergent.next_support(0.0, 5.0, error, deviated, deviated)
    assert landing[1] == pytest.approx((1 - 0.4) * 0.06, rel=1e-5)
    # xi at the end of this phase is that of an undisturbed step; it diverges from the support during the next one.
    at_start = center + np.array([0.2 + 0.05, 0.0]) + nominal
    at_end = landing + (at_start - landing) * divergent.growth
    settled = DivergentComponent(omega=3.2, period=0.6, stride=0.2, tracking=0.0)
    following = Support(np.append(landing, 0.0), LINE.spread)
    support = settled.next_support(0.0, 6.0, settled.error(0.0, at_start, following), following, following)
    assert support[0] == pytest.approx((at_end - nominal)[0], rel=1e-12)
    assert support[0] - (center[0] + 0.4) == pytest.approx((1 - 0.4) * 0.05, rel=1e-9)


@pytest.mark.parametrize("case", [biped_walk, quadruped_trot])
def test_the_legs_that_support_a_phase_are_those_of_the_gait(case):
    robot, gait = case()
    q, v = gait.on(robot).initial_state(robot)
    law: Any = controllers.Balanced(gait).start(robot, realistic_ground(robot), q, v)[0]
    for phase in range(4):
        standing = {leg.leg.name for leg, k in zip(law._legs, law._supporting(phase), strict=True) if k}
        assert standing == set(gait.on(robot).supporting(phase))


def test_undisturbed_gait_steps_by_its_stride():
    divergent = DivergentComponent(omega=3.2, period=0.6, stride=0.2)
    center = np.array([1.0, 0.0, 0.0])
    support = Support(center, np.diag([0.005, 0.0]))
    for t in (0.0, 0.3, 0.6):
        xi = center[:2] + np.array([divergent.offset * np.exp(divergent.omega * t), 0.0])
        error = divergent.error(t, xi, support)
        landing = divergent.next_support(t, 5.0, error, support, support)  # step 5 began on its plan, at 5 * 0.2
        assert landing == pytest.approx([1.2, 0.0], abs=1e-12)


@pytest.mark.parametrize("case", [biped_walk, quadruped_trot])
def test_distributed_forces_leave_nothing_to_drive_the_base(case):
    """With the distributed forces, forward dynamics requires no generalized force at the base."""
    robot, gait = case()
    q, v = gait.initial_state(robot)
    fitted, half = gait.on(robot), gait.period / 2  # the middle of a step, where both feet can push
    q[robot.base.nq :], v[robot.base.nv :], _ = fitted.reference(half, 0)
    q[: robot.base.nq] = robot.base.configuration(fitted.base(half, 0)[0], np.eye(3))
    rng = np.random.default_rng(0)
    n0 = robot.base.nv
    follow = np.concatenate([np.eye(n0), 0.3 * rng.normal(size=(robot.nj, n0))])
    inertia = legged.inertia_matrix(robot, q)
    tau = inertia @ rng.normal(size=robot.nv) * 0.1 + legged.bias_forces(robot, q, v)
    weights = [1.0 if point.name.startswith(("a_", "leg1", "leg4")) else 0.0 for point in robot.contacts]
    torque, forces = distribute_forces(robot, q, inertia, tau, follow, weights)
    assert (forces[:, 2] >= 0).all() and np.abs(forces[np.array(weights) == 0]).max() == 0
    assert np.abs(torque[:n0]).max() == 0
    generalized = torque + sum(
        legged.point_jacobian(robot, q, point.link, point.position)[3:].T @ force
        for point, force in zip(robot.contacts, forces, strict=True)
    )
    # What is left must be a motion that the base gives way to: I follow d for some d.
    felt = inertia @ follow
    d, *_ = np.linalg.lstsq(felt, generalized - tau, rcond=None)
    scale = np.abs(tau).max()
    assert np.abs(felt @ d - (generalized - tau)).max() < 1e-9 * scale  # a 6x6 solve with weights 1e-7 to 1


@pytest.mark.parametrize("angular", [True, False])
def test_distributed_forces_are_the_cheapest_with_the_base_hardly_giving_way(angular):
    """Every other force, with the base motion d that it needs, costs more: the sum of f^2 and d^2 over compliances.

    These are 1e-3 for the base's horizontal acceleration and 1e-7 for the others, per squared mass, in world axes.
    """
    robot = robots.spatial_quadruped()
    q, rng = robot.neutral(), np.random.default_rng(1)
    q[:4] = [np.cos(0.1), 0.0, np.sin(0.1), 0.0]
    slope = np.concatenate([np.eye(6), 0.1 * rng.normal(size=(robot.nj, 6))])
    inertia = legged.inertia_matrix(robot, q)
    tau = legged.bias_forces(robot, q, np.zeros(robot.nv))
    weights = [1.0 if point.name.startswith(("leg1", "leg4")) else 0.0 for point in robot.contacts]
    _, forces = distribute_forces(robot, q, inertia, tau, slope, weights)
    assert (forces[:, 2] >= 0).all()
    J = np.concatenate([legged.point_jacobian(robot, q, p.link, p.position)[3:] for p in robot.contacts])
    G, W = J[:, :6].T, (inertia @ slope)[:6]
    d = np.linalg.solve(W, G @ forces.reshape(-1) - tau[:6])
    R = legged.link_poses(robot, q)[0][0]
    world = np.kron(np.eye(2), R) @ d
    compliance = np.array([1e-7, 1e-7, 1e-7, 1e-3, 1e-3, 1e-7]) / robot.mass**2
    other = np.repeat(weights, 3) * rng.normal(size=G.shape[1])
    if not angular:  # a pair of forces along the line between the feet, which moves nothing
        first, second = (legged.frame_pose(robot, q, p.name).position for p in robot.contacts[::3])
        other = np.concatenate([first - second, np.zeros(6), second - first])
    change = np.kron(np.eye(2), R) @ np.linalg.solve(W, G @ other)
    terms = np.concatenate([forces.reshape(-1) * other, world * change / compliance])
    assert abs(terms.sum()) < 1e-6 * np.abs(terms).max()


def test_a_swinging_foot_follows_the_cubic_that_ends_at_rest_at_its_landing():
    rng = np.random.default_rng(0)
    (foot, velocity), landing, T = rng.normal(size=(2, 3)), rng.normal(size=2), 0.3
    vdot = swing_acceleration(foot, velocity, landing, T, (0.0, 0.0, 0.0), (0.0, 0.0))
    for k in range(2):
        # Position and velocity at both ends of p(t) = c0 + c1 t + c2 t^2 + c3 t^3; its acceleration at zero is 2 c2.
        A = [[1, 0, 0, 0], [0, 1, 0, 0], [1, T, T**2, T**3], [0, 1, 2 * T, 3 * T**2]]
        c = np.linalg.solve(A, [foot[k], velocity[k], landing[k], 0.0])
        assert vdot[k] == pytest.approx(2.0 * c[2], rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "velocity"), [(biped_walk, (0.1, 0, 0)), (quadruped_trot, (0, 0.3, 0))])
def test_walks_twenty_seconds_on_a_stiff_floor_at_its_speed_and_survives_a_push(case, velocity):
    robot, gait = case()
    ground = realistic_ground(robot)
    push = Push("trunk", tuple(robot.mass * np.array(velocity)), at=8.0)
    run = simulate(robot, controllers.Balanced(gait), ground=ground, until=20.0, pushes=[push], integrator=STIFF)
    speed = (run.base.position[-1, 0] - run.base.position[0, 0]) / run.times[-1]
    assert speed == pytest.approx(gait.stride / gait.period, rel=0.1)
    assert np.abs(run.base.rotation - np.eye(3)).max() < 0.05  # [rad], the trunk stays level
    assert abs(run.base.position[-1, 1]) < 0.05  # [m], and on its line
    assert abs(run.energy_drift) < 1e-2 * run.energy.kinetic.max() * run.times[-1]


@pytest.mark.slow
def test_a_hexapod_keeps_its_line_on_tripods_that_lie_beside_it():
    """The middle of a tripod's feet lies 8 cm to one side of the trunk, then to the other."""
    robot, gait = robots.hexapod(), controllers.Tripod(stride=0.2)
    run = simulate(robot, controllers.Balanced(gait), ground=realistic_ground(robot), until=4.0, integrator=STIFF)
    assert run.mean_velocity[0] == pytest.approx(gait.stride / gait.period, rel=0.1)
    assert np.abs(run.base.position[:, 1]).max() < 0.01  # [m]
    assert np.abs(run.base.rotation - np.eye(3)).max() < 0.01  # [rad]


def test_the_bare_gait_of_the_biped_falls_on_that_floor():
    robot, gait = biped_walk()
    with pytest.raises(SimulationError, match=r"fell|leaned"):
        simulate(robot, controllers.ComputedTorque(gait), ground=realistic_ground(robot), until=20.0, integrator=STIFF)


@pytest.mark.slow
def test_the_bare_trot_rocks_ten_times_as_much():
    """Without feedback the quadruped continues its trot, but rocks between its diagonal pairs of feet."""
    robot, gait = quadruped_trot()
    ground = realistic_ground(robot)
    laws = controllers.ComputedTorque(gait), controllers.Balanced(gait)
    bare, balanced = (simulate(robot, law, ground=ground, until=6.0, integrator=STIFF) for law in laws)
    tilt = [np.abs(run.base.rotation - np.eye(3)).max() for run in (bare, balanced)]
    assert tilt[0] > 10 * tilt[1]


def test_balance_is_refused_where_it_has_no_meaning():
    with pytest.raises(ArgumentError, match=r"gait must be a controllers\.Alternating, a controllers\.Stand or"):
        controllers.Balanced(controllers.Crawl())  # pyright: ignore[reportArgumentType]
    weightless = robots.spatial_quadruped().edit().change_robot(gravity=(0.0, 0.0, 0.0)).build()
    with pytest.raises(DefinitionError, match="has no gravity"):
        controllers.Balanced(controllers.Trot(hip_height=0.5)).initial_state(weightless)
