"""Integrators: equations with known solutions, sample times and break times."""

from itertools import pairwise

import numpy as np
import pytest

import legged
import robots
from legged.errors import DefinitionError, DivergenceError, NotFiniteError
from legged.simulation import RungeKutta4, SemiImplicitEuler, Stiff, TimeStepping
from legged.simulation.integrators import smooth_intervals

DAMPING = 1e5  # [1/s] of the stiff mode


class Oscillator:
    """xdd = -x as (xi, v), with a third state z = cos(t), to which `fast` [1/s] drives it; q is x alone."""

    nv = 1
    failure = ""
    loop = None

    def __init__(self, fast=0.0):
        self.fast, self.calls = fast, 0

    def rate(self, t, phase, y, q_ref):
        self.calls += 1
        x, v, z = q_ref[0] + y[..., 0], y[..., 1], y[..., 2]
        return np.stack([v, -x, -self.fast * (z - np.cos(t)) - np.sin(t)], axis=-1)

    def step_function(self, rule):
        def semi_implicit(t, h, phase, q, s):
            v = s[0] - h * q[0]
            return q + h * v, np.array([v, s[1] + h * self.rate(t, phase, np.array([0.0, *s]), q)[2]])

        def runge_kutta(t, h, phase, q, s):
            y = np.array([0.0, *s])
            k_1 = self.rate(t, phase, y, q)
            k_2 = self.rate(t + h / 2, phase, y + h / 2 * k_1, q)
            k_3 = self.rate(t + h / 2, phase, y + h / 2 * k_2, q)
            k_4 = self.rate(t + h, phase, y + h * k_3, q)
            y = y + h / 6 * (k_1 + 2 * k_2 + 2 * k_3 + k_4)
            return q + y[:1], y[1:]

        return {"semi_implicit": semi_implicit, "runge_kutta": runge_kutta}[rule]

    def configuration(self, q_ref, xi):
        return q_ref + xi

    def largest_rotation(self, xi):
        return abs(float(xi[0]))

    def recorded(self, t, q, s):
        return s


def solve(integrator, until=2.0, sample=0.25, switches=(), system=None):
    times = np.arange(0.0, until + sample / 2, sample)
    system = system or Oscillator()
    plan = smooth_intervals(times, switches)
    return list(integrator.solve(system, np.array([1.0]), np.array([0.0, 1.0]), plan)), times


@pytest.mark.parametrize("integrator", [Stiff(1e-8, 1e-10), RungeKutta4(0.01), SemiImplicitEuler(1e-4)])
@pytest.mark.parametrize("switches", [(), (0.6, 1.25)])
def test_every_sample_comes_once_and_in_order(integrator, switches):
    states, times = solve(integrator, switches=switches)
    np.testing.assert_array_equal([state.t for state in states], times)
    assert [state.phase for state in states] == [sum(t >= s for s in switches) for t in times]
    np.testing.assert_allclose([state.q[0] for state in states], np.cos(times), atol=2e-4)
    np.testing.assert_allclose([state.s[0] for state in states], -np.sin(times), atol=2e-4)
    np.testing.assert_allclose([state.s[1] for state in states], np.cos(times), atol=2e-4)  # depends on t alone


@pytest.mark.parametrize(("kind", "order"), [(RungeKutta4, 4), (SemiImplicitEuler, 1), (TimeStepping, 2)])
def test_error_falls_with_the_stated_order(kind, order):
    """Without contacts. Runs with steps of h and h / 2 differ by a constant share of the error of the first run."""
    robot, ends = robots.chain(2, twist=0.7, base=legged.FixedBase()), []
    options = {"q": np.array([0.6, -0.4]), "v": np.array([1.0, -0.5]), "until": 0.2, "sample": 0.2}
    for h in (0.01, 0.005, 0.0025, 0.00125):
        ground = legged.Rigid() if kind is TimeStepping else None
        run = legged.simulate(robot, integrator=kind(h), ground=ground, **options)
        ends.append(np.concatenate([run.q[-1], run.v[-1]]))
    errors = [np.abs(coarse - fine).max() for coarse, fine in pairwise(ends)]
    for coarse, fine in pairwise(errors):
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.1)


def test_tighter_tolerance_means_smaller_error():
    errors = [abs(solve(Stiff(tol, 0.01 * tol))[0][-1].q[0] - np.cos(2.0)) for tol in (1e-4, 1e-6, 1e-8)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-7


def test_stiff_solver_does_not_pay_for_a_fast_mode():
    slow, stiff = Oscillator(), Oscillator(fast=DAMPING)
    solve(Stiff(), system=slow)
    states, times = solve(Stiff(), system=stiff)
    np.testing.assert_allclose([state.s[1] for state in states], np.cos(times), atol=1e-5)
    assert stiff.calls < 3 * slow.calls


def test_explicit_step_on_a_fast_mode_ends_in_words():
    class Guarded(Oscillator):
        def step_function(self, rule):
            step_on = super().step_function(rule)

            def checked(*state):
                with np.errstate(all="ignore"):
                    q, s = step_on(*state)
                if not np.isfinite(s).all():
                    raise NotFiniteError("the state grew without bound")
                return q, s

            return checked

    with pytest.raises(DivergenceError, match="grew without bound"):
        solve(RungeKutta4(1e-2), system=Guarded(fast=DAMPING))


def test_solution_that_ends_is_reported_where_it_ends():
    """ydot = y^2 from y = 1 goes to infinity at t = 1."""

    class Explosive(Oscillator):
        def rate(self, t, phase, y, q_ref):
            rate = super().rate(t, phase, y, q_ref)
            rate[..., 2] = y[..., 2] ** 2
            return rate

    with pytest.raises(DivergenceError) as error:
        solve(Stiff(), system=Explosive())
    assert error.value.t == pytest.approx(1.0, abs=0.01)


def test_steps_fit_between_samples():
    times = []

    class Counting(Oscillator):
        def step_function(self, rule):
            step_on = super().step_function(rule)
            return lambda t, h, *rest: (times.append((t, h)), step_on(t, h, *rest))[1]

    solve(RungeKutta4(0.1), until=0.5, sample=0.25, system=Counting())
    assert len(times) == 6
    assert all(h == pytest.approx(0.25 / 3) for _, h in times)


def test_segments_count_the_controllers_switches_only():
    plan = smooth_intervals(np.arange(0.0, 1.01, 0.25), switches=[0.5], break_times=[0.3, 0.5])
    assert [(s.phase, s.start, s.end) for s in plan] == [(0, 0.0, 0.3), (0, 0.3, 0.5), (1, 0.5, 1.0)]
    assert [s.samples.tolist() for s in plan] == [[0.0, 0.25], [], [0.5, 0.75, 1.0]]


@pytest.mark.parametrize("make", [lambda: Stiff(rtol=0.0), lambda: RungeKutta4(-1.0), lambda: Stiff(max_step=0.0)])
def test_integrators_without_sense_are_refused(make):
    with pytest.raises(DefinitionError):
        make()
