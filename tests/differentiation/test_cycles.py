"""Floquet multipliers and regulators of periodic motions, and smoothed gradients, against closed forms."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

import legged
from legged.compiler.ir import repeat_while
from legged.differentiation import DifferentiableSimulation, LimitCycle, limit_cycle, periodic_lqr, smoothed_gradient
from legged.errors import ArgumentError, LeggedError, ShapeError, SingularError, TraceError

G, E, PERIOD, H = 9.81, 0.7, 0.5, 5e-4


def slider():
    """A mass of 1 kg on a vertical rail over the ground."""
    mass = legged.Link("mass", legged.box_inertia(1.0, (0.1, 0.1, 0.1)), {"foot": (0.0, 0.0, 0.0)})
    builder = legged.RobotBuilder("slider", legged.Link("rail"), base=legged.FixedBase())
    return builder.add(legged.Prismatic("lift", "z"), mass, to="rail").build()


@pytest.fixture(scope="module")
def bouncing():
    ground = legged.Rigid(restitution=E, tolerance=1e-13)
    return DifferentiableSimulation(slider(), ground=ground, integrator=legged.TimeStepping(H))


def orbit():
    """Return forces (T, 1), the state (z, v) and the multipliers of a mass that bounces once in a period.

    A force acts between 0.1 s and 0.3 s after the impact, whose speed w after it follows from z(T) = 0 and
    v(T) = -w / e. The motion begins 0.05 s after the impact. The saltation matrix S of the impact is
    [[-e, 0], [g (1 + e) e / w, -e]], and the multipliers are the eigenvalues of S [[1, T], [0, 1]].
    """
    late = PERIOD - 0.2
    w = (G * PERIOD**2 / 2 - G * PERIOD * late) / (PERIOD - (1 + 1 / E) * late)
    push = (G * PERIOD - w * (1 + 1 / E)) / 0.2
    times = 0.05 + H * (np.arange(round(PERIOD / H)) + 0.5)
    forces = np.where((times > 0.1) & (times < 0.3), push, 0.0)[:, None]
    S = np.array([[-E, 0.0], [G * (1 + E) * E / w, -E]])
    multipliers = np.linalg.eigvals(S @ [[1.0, PERIOD], [0.0, 1.0]])
    return forces, np.array([w * 0.05 - G / 2 * 0.05**2, w - G * 0.05]), multipliers[np.argsort(-np.abs(multipliers))]


def test_the_multipliers_of_a_mass_that_bounces_are_those_of_its_saltation_matrix(bouncing):
    forces, (z, v), exact = orbit()
    assert abs(exact[0]) > 1.0  # unstable
    run = bouncing.rollout(forces, q=[z], v=[v], impact_times=True)
    cycle = limit_cycle(run, tolerance=0.05)  # the first order of the step, times the multiplier
    np.testing.assert_allclose(cycle.multipliers[:2], exact, rtol=0.02, atol=2e-3)
    assert np.abs(cycle.multipliers[2:]).max() < 1e-9  # contact forces
    np.testing.assert_allclose(cycle.monodromy, run.sensitivities(np.eye(bouncing.nx))[-1], rtol=1e-12, atol=1e-9)
    # The steps themselves do not change the time of the impact: det = -e, not e^2.
    steps = limit_cycle(bouncing.rollout(forces, q=[z], v=[v]), tolerance=0.05)
    assert np.prod(steps.multipliers[:2]).real == pytest.approx(-E, rel=1e-3)


def test_a_regulator_holds_the_unstable_orbit(bouncing):
    forces, (z, v), _ = orbit()
    run = bouncing.rollout(forces, q=[z], v=[v], impact_times=True)
    Q = np.diag([1e2, 1.0, 0.0, 0.0, 0.0])
    regulator = periodic_lqr(limit_cycle(run, tolerance=0.05), Q, [[1e-2]])
    assert np.abs(regulator.multipliers).max() < 0.9

    def errors(gains):
        state, start = bouncing.state([z + 2e-3], [v]), run.states[0]
        apart = []
        for _ in range(4):
            for k, clock in enumerate(run.clocks):
                away = bouncing.deviation(run.states[k], state)
                # Near the impact the motion and the orbit are on two sides of it.
                close = np.abs(away[1]) < 0.5
                command = forces[k] - (gains[k] @ away if close else 0.0)
                state = bouncing.step(clock, run.parameters, command, state).state
            apart.append(np.abs(bouncing.deviation(start, state)[:2]).max())
        return apart

    held, free = errors(regulator.gains), errors(0.0 * regulator.gains)
    assert held[-1] < 0.05 and free[-1] > 10 * held[-1]


def test_the_regulator_of_constant_steps_is_that_of_the_algebraic_riccati_equation():
    rng = np.random.default_rng(0)
    A, B, Q, R = rng.normal(size=(3, 3)), rng.normal(size=(3, 2)), np.eye(3), np.eye(2)
    cycle = LimitCycle(A @ A, np.zeros(3), np.stack([A, A]), np.stack([B, B]), 0.0)
    P = solve_discrete_are(A, B, Q, R)
    regulator = periodic_lqr(cycle, Q, R)
    np.testing.assert_allclose(regulator.costs, [P, P], rtol=1e-8)  # 1e-10 of a period, times their number
    np.testing.assert_allclose(regulator.gains[0], np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), rtol=1e-7, atol=1e-7)
    with pytest.raises(ShapeError, match="Q must be"):
        periodic_lqr(cycle, np.eye(2), R)
    stuck = cycle._replace(A=np.stack([np.eye(3)] * 2), B=np.zeros((2, 3, 2)))
    with pytest.raises(SingularError, match="does a command change each"):
        periodic_lqr(stuck, Q, R, periods=50)


def test_motions_that_are_not_periodic_are_refused(bouncing):
    with pytest.raises(ArgumentError, match="not periodic: a velocity after it differs by"):
        limit_cycle(bouncing.rollout(until=10 * H, q=[1.0]))
    with pytest.raises(LeggedError, match="begins in the first step"):
        bouncing.rollout(until=2 * H, q=[1e-4], v=[-1.0], impact_times=True).jacobians()
    with pytest.raises(ArgumentError, match="motion of one member"):
        limit_cycle(bouncing.rollout(np.zeros((2, 3, 1)), q=[1.0]))


def test_a_law_that_iterates_is_refused_in_words():
    def law(t, q, v, wrenches):
        return repeat_while(lambda x: np.stack([0.5 * x[0], x[1]]), np.stack([q[0], 0.0 * q[0] + 1.0]), 3)[:1]

    sim = DifferentiableSimulation(slider(), law, ground=legged.Rigid())
    with pytest.raises(TraceError, match=r"'slider' have no derivative, .*: does the controller iterate"):
        sim.rollout(until=2e-3, q=[1.0]).jacobians()


def test_smoothed_gradients_agree_with_the_mean_of_a_quadratic_cost(bouncing):
    """z(T) is linear in the forces, so that the gradient of the mean of z(T)^2 is that at the mean of the forces."""
    u = np.full((4, 1), 3.0)
    cost = {"final": lambda q, v: 1e4 * v[0] ** 2, "stage": lambda q, v, u: u @ u}
    _, exact = bouncing.rollout(u, q=[1.0]).gradient(**cost)
    options = {"spread": 0.5, "samples": 2000, "q": [1.0], **cost}
    for order in (0, 1):
        estimate = smoothed_gradient(bouncing, u, order=order, seed=1, **options)
        assert (np.abs(estimate.commands - exact.commands) < 4.0 * estimate.error + 1e-9).all()  # four standard errors
    with pytest.raises(ArgumentError, match="order must be 0 or 1"):
        smoothed_gradient(bouncing, u, order=2, **options)
    with pytest.raises(ArgumentError, match="samples must be even"):
        smoothed_gradient(bouncing, u, **{**options, "samples": 7})


def test_a_smoothed_gradient_leads_out_of_a_region_without_slope(bouncing):
    """A mass that its force cannot lift has no slope; forces that vary lift it in some of the motions."""
    u = np.full((6, 1), 8.0)
    cost = {"final": lambda q, v: -v[0]}
    _, exact = bouncing.rollout(u, q=[-1e-6]).gradient(**cost)
    assert np.abs(exact.commands).max() < 1e-6
    estimate = smoothed_gradient(bouncing, u, spread=3.0, samples=2000, q=[-1e-6], **cost)
    assert (estimate.commands.sum() + 4.0 * np.sqrt((estimate.error**2).sum())) < 0.0
