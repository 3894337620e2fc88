"""Pendulum and acrobot against the equations of motion and the rewards of Gymnasium."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import legged
from legged import environments
from legged.errors import DefinitionError

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")


def pendulum_rates(theirs, y, u):
    """Return (dq, dv) by the source of Pendulum-v1, with its own numbers."""
    g, m, length = theirs.g, theirs.m, theirs.l
    return [y[1], 3.0 * g / (2.0 * length) * np.sin(y[0]) + 3.0 / (m * length**2) * u]


@pytest.mark.parametrize("refinement", [1, 4])
def test_the_pendulum_moves_by_the_equations_of_gymnasium(refinement):
    theirs = gymnasium.make("Pendulum-v1").unwrapped
    env = environments.make("pendulum", num_envs=4, time_step=0.0125 / refinement, substeps=4 * refinement)
    assert env.task.period == pytest.approx(theirs.dt)
    env.reset(seed=3)
    y = np.stack([env.q[:, 0], env.v[:, 0]], axis=1)
    random = np.random.default_rng(0)
    for _ in range(20):
        action = random.uniform(-1.0, 1.0, (4, 1))
        env.step(action)
        y = np.stack(
            [
                solve_ivp(lambda t, x, u=u: pendulum_rates(theirs, x, u), (0, theirs.dt), start, rtol=1e-10).y[:, -1]
                for start, u in zip(y, theirs.max_torque * action[:, 0], strict=True)
            ]
        )
    # The time steps are of second order: 2e-3 rad in 1 s with steps of 12.5 ms, and a sixteenth with a quarter of it.
    np.testing.assert_allclose(env.q[:, 0], y[:, 0], atol=4e-3 / refinement**2)


def test_the_pendulum_has_the_reward_and_observation_of_gymnasium():
    theirs = gymnasium.make("Pendulum-v1").unwrapped
    theirs.reset(seed=0)
    env = environments.make("pendulum")
    env.reset(seed=5)
    random = np.random.default_rng(1)
    for _ in range(60):
        q, v = env.many.q[0, 0], env.many.v[0, 0]
        action = random.uniform(-1.0, 1.0, 1)
        theirs.state = np.array([q, v])
        np.testing.assert_allclose(theirs._get_obs(), [np.cos(q), np.sin(q), v], atol=1e-6)
        expected = theirs.step(2.0 * action)[1]
        observed, reward, terminated, _, _ = env.step(action)
        assert reward == pytest.approx(expected, rel=1e-9) and not terminated
        np.testing.assert_allclose(observed[:2] ** 2 @ np.ones(2), 1.0, rtol=1e-6)


def test_episodes_of_the_pendulum_last_200_steps_and_start_as_in_gymnasium():
    env = environments.make("pendulum", num_envs=256)
    env.reset(seed=0)
    # Angles from -pi to pi and rates from -1 to 1; deviations of uniform numbers, of which 256 have an error of 4 %.
    assert env.q.std() == pytest.approx(np.pi / np.sqrt(3), rel=0.1) and abs(env.q).max() <= np.pi
    assert env.v.std() == pytest.approx(1 / np.sqrt(3), rel=0.1) and abs(env.v).max() <= 1.0
    for _ in range(200):
        *_, truncated, infos = env.step(np.zeros((256, 1)))
    assert truncated.all() and (infos["episode"]["l"] == 200).all()


@pytest.mark.parametrize("refinement", [1, 4])
def test_the_acrobot_moves_by_the_equations_of_gymnasium(refinement):
    theirs = gymnasium.make("Acrobot-v1").unwrapped
    env = environments.make("acrobot", num_envs=3, time_step=0.01 / refinement, substeps=20 * refinement)
    assert env.task.period == pytest.approx(theirs.dt)
    env.reset(seed=3)
    y = np.concatenate([env.q, env.v], axis=1)
    random = np.random.default_rng(0)
    for _ in range(20):
        action = np.stack([np.ones(3), random.uniform(-1.0, 1.0, 3)], axis=1)  # the first entry has no effect
        *_, terminated, _, _ = env.step(action)
        assert not terminated.any()
        y = np.stack(
            [
                solve_ivp(
                    lambda t, x, u=u: theirs._dsdt(np.array([*x, u]))[:4], (0, theirs.dt), start, rtol=1e-10, atol=1e-12
                ).y[:, -1]
                for start, u in zip(y, action[:, 1], strict=True)
            ]
        )
    # Second order: 1.5e-3 rad in 4 s with steps of 10 ms.
    np.testing.assert_allclose(env.q, y[:, :2], atol=3e-3 / refinement**2)


def test_the_acrobot_costs_one_each_step_until_its_tip_is_above_the_goal():
    task = environments.acrobot(start=lambda s: (np.array([2.9, 0.0]), np.zeros(2)))
    env = environments.make(task, num_envs=2, autoreset="disabled")
    env.reset(seed=0)
    observed, reward, terminated, _, _ = env.step(np.zeros((2, 2)))
    q1, q2 = env.q[0]
    assert -np.cos(q1) - np.cos(q1 + q2) > 1.0 and terminated.all() and (reward == 0.0).all()
    np.testing.assert_allclose(observed[0], [np.cos(q1), np.sin(q1), np.cos(q2), np.sin(q2), *env.v[0]], atol=1e-6)
    low = environments.make("acrobot", num_envs=2)
    low.reset(seed=0)
    _, reward, terminated, _, _ = low.step(np.zeros((2, 2)))
    np.testing.assert_allclose(reward, -1.0)
    assert not terminated.any()


def test_any_pendulum_swings_up_from_its_own_upright_position():
    rod = legged.Inertia(2.0, (0.3, 0.0, 0.0), np.diag([0.0, 0.02, 0.02]))
    builder = legged.RobotBuilder("crank", legged.Link("wall"), base=legged.FixedBase())
    robot = builder.add(legged.Revolute("axle", "y"), legged.Link("arm", rod), to="wall", at=(0.0, 0.0, 1.3)).build()
    env = environments.make("pendulum", robot, num_envs=2)
    env.reset(seed=0)
    observed = env.step(np.zeros((2, 1)))[0]
    # A quarter turn about -y lifts the arm, which points along x at zero.
    np.testing.assert_allclose(observed[:, 0], np.cos(env.q[:, 0] + 0.5 * np.pi), atol=1e-6)
    with pytest.raises(DefinitionError, match="fixed base and 2 joints"):
        environments.acrobot(robot)
