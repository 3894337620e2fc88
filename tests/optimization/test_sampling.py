"""Optimal control by sampling."""

import numpy as np
import pytest

import legged
import robots
from legged import optimization as oc
from legged.errors import ArgumentError, SimulationError


@pytest.fixture(scope="module")
def simulation() -> legged.Simulation:
    return legged.Simulation(robots.planar_hopper(), ground=legged.Rigid(friction=0.8), num=64, fall=False)


@pytest.mark.parametrize("method", ["path integral", "predictive"])
def test_a_hopper_on_rigid_ground_is_pushed_to_a_height_without_given_contacts(simulation, method):
    def height(robot, at, target):
        return legged.center_of_mass(robot, at.q)[2:] - target

    def slow(robot, at):
        return at.v

    terms = [oc.Cost(height, 100.0, target=0.66), oc.Cost(slow, 0.02)]
    q = np.array([0.0, 0.0, 0.6, 0.0, 0.0])
    hold = np.array([0.0, -simulation.robot.mass * 9.81])
    plan = oc.Sampling(
        simulation, terms, horizon=0.3, command=hold, noise=[2.0, 25.0], knots=4, interval=0.01, method=method
    )
    first = None
    for _ in range(8):
        plan.improve(q, np.zeros(5))
        first = plan.costs[0] if first is None else first
    assert plan.costs.min() < 0.5 * first  # costs[0] is that of the plan before
    before = plan.mean.copy()
    plan.shift(0.1)
    np.testing.assert_allclose(plan.mean[-1], before[-1])


def test_wrong_arguments_are_refused(simulation):
    with pytest.raises(ArgumentError, match="method"):
        oc.Sampling(simulation, [], horizon=0.3, command=np.zeros(2), noise=1.0, method="best")
    with pytest.raises(ArgumentError, match="num=256"):
        oc.Sampling(legged.Simulation(robots.planar_hopper()), [], horizon=0.3, command=np.zeros(2), noise=1.0)


def test_samples_that_end_early_have_no_weight(simulation, monkeypatch):
    plan = oc.Sampling(simulation, [], horizon=0.1, command=np.zeros(2), noise=1.0)
    costs = np.where(np.arange(64) < 48, np.inf, 1.0 + np.arange(64))
    monkeypatch.setattr(plan, "_evaluate", lambda samples, q, v: costs)
    plan.improve(np.zeros(5), np.zeros(5))
    assert np.isfinite(plan.mean).all()
    assert plan.mean.any()
    before = plan.mean.copy()
    monkeypatch.setattr(plan, "_evaluate", lambda samples, q, v: np.full(64, np.inf))
    with pytest.raises(SimulationError, match="all 64 simulated commands end early"):
        plan.improve(np.zeros(5), np.zeros(5))
    assert np.array_equal(plan.mean, before)
