"""Energy and momentum balances of random robots.

Rates are finite differences along the motion with relative errors near 1e-9; see `oracles.differences`. An algebraic
error would change the first digit.
"""

import numpy as np
import pytest
from oracles.cases import case_of
from oracles.differences import rate

import legged
from legged import denoc

SEEDS = range(24)
FREE = range(16)
RATE = 1e-7  # of the largest term: finite differences on robots of up to 12 links


def small_case(seed, **options):
    return case_of(legged.random_tree(seed, 1 + seed % 12, **options), seed)


def energy(robot):
    return lambda q, v: legged.kinetic_energy(robot, q, v) + legged.potential_energy(robot, q)


@pytest.mark.parametrize("seed", SEEDS)
def test_power_of_the_joints_is_the_rate_of_energy(seed):
    case = small_case(seed)
    vdot = legged.forward_dynamics(case.robot, case.q, case.v, case.tau)
    gained = rate(case.robot, energy(case.robot), case.q, case.v, vdot)
    flows = np.abs(case.tau * case.v).sum() + np.abs(legged.bias_forces(case.robot, case.q, case.v) * case.v).sum()
    assert gained == pytest.approx(case.tau @ case.v, abs=RATE * flows)


@pytest.mark.parametrize("seed", SEEDS)
def test_power_of_outside_wrenches_is_the_rate_of_energy(seed):
    case = small_case(seed)
    vdot = legged.forward_dynamics(case.robot, case.q, case.v, np.zeros(case.robot.nv), case.wrenches)
    gained = rate(case.robot, energy(case.robot), case.q, case.v, vdot)
    powers = legged.link_twists(case.robot, case.q, case.v) * case.wrenches
    flows = np.abs(powers).sum() + np.abs(legged.bias_forces(case.robot, case.q, case.v) * case.v).sum()
    assert gained == pytest.approx(powers.sum(), abs=RATE * flows)


@pytest.mark.parametrize("seed", FREE)
@pytest.mark.parametrize("base", ["floating", "euler"])
def test_outside_wrench_is_the_rate_of_momentum_whatever_the_joints_do(seed, base):
    case = small_case(seed, bases=(base,))
    robot, q, v = case.robot, case.q, case.v
    tau = np.concatenate([np.zeros(6), case.tau[6:]])
    vdot = legged.forward_dynamics(robot, q, v, tau, case.wrenches)
    gained = rate(robot, lambda q, v: legged.momentum(robot, q, v), q, v, vdot)
    R, o = legged.link_poses(robot, q)
    n, f = (np.einsum("kij,kj->ki", R, part) for part in (case.wrenches[:, :3], case.wrenches[:, 3:]))
    moment = (n + np.cross(o - legged.center_of_mass(robot, q), f)).sum(axis=0)
    wrench = np.concatenate([moment, f.sum(axis=0) + robot.mass * robot.gravity])
    # the momenta of the links cancel in the sum, so that the error is relative to their size
    size = legged.inertia_matrix(robot, q)[:6, :6].max() * (1 + np.abs(vdot).max())
    assert gained == pytest.approx(wrench, abs=RATE * size)


def test_momentum_of_a_robot_at_rest_grows_by_its_weight():
    case = small_case(5, bases=("floating",))
    rest = np.zeros(case.robot.nv)
    vdot = legged.forward_dynamics(case.robot, case.q, rest, rest)
    gained = rate(case.robot, lambda q, v: legged.momentum(case.robot, q, v), case.q, rest, vdot)
    weight = case.robot.mass * case.robot.gravity
    assert gained == pytest.approx(np.concatenate([np.zeros(3), weight]), abs=1e-9 * np.abs(weight).max())


@pytest.mark.parametrize("form", ["skew", "paper"])
@pytest.mark.parametrize("seed", SEEDS)
def test_convective_matrix_times_velocity_is_the_bias_without_gravity(seed, form):
    case = small_case(seed, gravity=(0.0, 0.0, 0.0))
    C = denoc.convective_inertia_matrix(case.robot, case.q, case.v, form)
    h = legged.bias_forces(case.robot, case.q, case.v)
    assert C @ case.v == pytest.approx(h, abs=1e-12 * (np.abs(C) @ np.abs(case.v)).max(initial=0))


@pytest.mark.parametrize("seed", SEEDS)
def test_inertia_rate_less_twice_the_convective_matrix_is_skew(seed):
    case = small_case(seed)
    C = denoc.convective_inertia_matrix(case.robot, case.q, case.v, "skew")
    inertia_rate = rate(case.robot, lambda q, v: legged.inertia_matrix(case.robot, q), case.q, case.v)
    K = inertia_rate - 2 * C
    size = np.abs(inertia_rate).max(initial=0) + np.abs(C).max(initial=0)
    assert np.abs(K + K.T).max(initial=0) <= RATE * size


def test_the_papers_convective_matrix_is_not_skew():
    case = small_case(7, bases=("floating",))
    C = denoc.convective_inertia_matrix(case.robot, case.q, case.v, "paper")
    inertia_rate = rate(case.robot, lambda q, v: legged.inertia_matrix(case.robot, q), case.q, case.v)
    K = inertia_rate - 2 * C
    assert np.abs(K + K.T).max() > 0.01 * np.abs(C).max()


def flight(robot, q, v, until, steps):
    """Return (q, v) after a free flight by the classical Runge-Kutta method."""

    def f(q, v):
        return legged.configuration_rate(robot, unit(q), v), legged.forward_dynamics(
            robot, unit(q), v, np.zeros(robot.nv)
        )

    def unit(q):
        q = q.copy()
        q[:4] /= np.linalg.norm(q[:4])
        return q

    h = until / steps
    for _ in range(steps):
        q1, v1 = f(q, v)
        q2, v2 = f(q + h / 2 * q1, v + h / 2 * v1)
        q3, v3 = f(q + h / 2 * q2, v + h / 2 * v2)
        q4, v4 = f(q + h * q3, v + h * v3)
        q, v = unit(q + h / 6 * (q1 + 2 * q2 + 2 * q3 + q4)), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
    return q, v


@pytest.fixture(scope="module")
def flights():
    """A robot in free flight: the states at the start and after 0.4 s, with 40 and with 80 steps."""
    robot = legged.random_tree(3, 4, joints=("revolute", "prismatic"), bases=("floating",))
    case = case_of(robot, 3)
    return robot, (case.q, case.v), *(flight(robot, case.q, case.v, 0.4, steps) for steps in (40, 80))


def drift(law, flights):
    robot, start, coarse, fine = flights
    first = law(robot, *start)
    return [np.abs(law(robot, *end) - first).max() / np.abs(first).max() for end in (coarse, fine)]


def test_energy_of_free_flight_drifts_with_the_fourth_power_of_the_step(flights):
    coarse, fine = drift(lambda robot, q, v: energy(robot)(q, v), flights)
    assert fine < 1e-5
    assert fine < coarse / 12  # 16 for a method of order four


def test_angular_momentum_of_free_flight_drifts_with_the_fourth_power_of_the_step(flights):
    coarse, fine = drift(lambda robot, q, v: legged.momentum(robot, q, v)[:3], flights)
    assert fine < 1e-5
    assert fine < coarse / 12


def test_center_of_mass_of_free_flight_falls_on_a_parabola(flights):
    robot, (q, v), _, (q_end, _) = flights
    velocity = legged.momentum(robot, q, v)[3:] / robot.mass
    fallen = legged.center_of_mass(robot, q) + 0.4 * velocity + 0.5 * robot.gravity * 0.4**2
    assert legged.center_of_mass(robot, q_end) == pytest.approx(fallen, abs=1e-5)
