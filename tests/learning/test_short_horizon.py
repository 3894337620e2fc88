"""The example of short-horizon actor-critic: its derivatives, its episodes, and that it learns."""

import runpy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch, of the extra train, is not installed")
pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")


@pytest.fixture(scope="module")
def example():
    return runpy.run_module("examples.learning.short_horizon")


def returned(learner, start, actions):
    """Return the sum of rewards of some actions from given states, and of the last observations, as a tensor."""
    model, state, last = learner.model, start, torch.zeros_like(actions[0])
    deviation, total = torch.zeros(len(start), model.sim.nx, dtype=torch.float64), 0.0
    for action in actions:
        state, deviation = model.advance(state, deviation, action)
        seen, reward, _ = model.see(state, deviation, action, last, learner.env.commands)
        total, last = total + reward.sum(), action
    return total + seen.sum(), state


@pytest.mark.parametrize("name", ["pendulum", "hopper"])
def test_gradients_through_control_steps_are_those_of_differences(example, name):
    """Single precision of observations and rewards allows an accuracy of 1e-3 of the largest entry."""
    learner = example["ShortHorizon"](example["TASKS"][name](), example["Horizon"](robots=2, hidden=(8,)))
    nj = learner.model.task.robot.nj
    actions = 0.3 * torch.randn(5, 2, nj, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    actions.requires_grad_()
    returned(learner, learner.state, actions)[0].backward()
    differences, h = torch.zeros_like(actions), 1e-3
    with torch.no_grad():
        for k in np.ndindex(*actions.shape):
            change = torch.zeros_like(actions)
            change[k] = h
            up, down = (returned(learner, learner.state, actions + sign * change)[0] for sign in (1, -1))
            differences[k] = (up - down) / (2.0 * h)
    largest = float(differences.abs().max())
    assert largest > 1e-2
    assert float((actions.grad - differences).abs().max()) < 2e-2 * largest


@pytest.mark.parametrize("name", ["pendulum", "hopper"])
def test_control_steps_are_those_of_the_environment(example, name):
    learner = example["ShortHorizon"](example["TASKS"][name](), example["Horizon"](robots=4, hidden=(8,)))
    env, model = learner.env, learner.model
    state, last = learner.state, torch.zeros(4, model.task.robot.nj)
    deviation = torch.zeros(4, model.sim.nx, dtype=torch.float64)
    random = np.random.default_rng(0)
    for _ in range(10):
        action = random.uniform(-0.3, 0.3, last.shape).astype(np.float32)
        seen, reward, fell, _, _ = env.step(action)
        state, deviation = model.advance(state, deviation, torch.from_numpy(action))
        got, earned, ended = model.see(state, deviation, torch.from_numpy(action), last, env.commands)
        last = torch.from_numpy(action)
        assert got.numpy() == pytest.approx(seen["actor"], abs=1e-4)  # single precision, and solvers of 1e-9
        assert earned.numpy() == pytest.approx(reward, abs=1e-4)
        assert np.array_equal(ended, fell)
