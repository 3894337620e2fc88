"""Adapters: learners of other libraries take a few updates in a small environment."""

import numpy as np
import pytest

import robots
from legged import environments
from legged.errors import ArgumentError

torch = pytest.importorskip("torch", reason="torch, of the extra train, is not installed")
gymnasium = pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")
ROBOT = robots.spatial_quadruped()
TASK = environments.velocity(ROBOT, episode=0.2)  # 10 control steps, so that episodes end by time
NJ = ROBOT.nj


def made(groups=False, **options):
    return environments.make(TASK, num_envs=4, groups=groups, threads=1, **options)


@pytest.fixture
def rsl_rl_env():
    pytest.importorskip("tensordict", reason="tensordict, which rsl_rl needs, is not installed")
    from legged.learning.rsl_rl import RslRlEnv

    return RslRlEnv(made(groups=True))


def test_environments_of_rsl_rl_are_those_of_gymnasium(rsl_rl_env):
    env = made(groups=True)
    observed, _ = env.reset(seed=1)
    assert rsl_rl_env.max_episode_length == 10 and rsl_rl_env.num_actions == NJ
    for k in range(10):
        for group, values in observed.items():
            np.testing.assert_array_equal(rsl_rl_env.get_observations()[group], values)
        assert rsl_rl_env.episode_length_buf.tolist() == [k] * 4
        action = torch.full((4, NJ), 0.1 * (k % 3))
        observed, reward, terminated, truncated, _ = env.step(action.numpy())
        _, rewards, dones, extras = rsl_rl_env.step(action)
        np.testing.assert_array_equal(rewards, reward.astype(np.float32))
        np.testing.assert_array_equal(dones.bool(), terminated | truncated)
        np.testing.assert_array_equal(extras["time_outs"], truncated)
    assert extras["time_outs"].all() and "/reward.torques" in extras["log"]
    rsl_rl_env.episode_length_buf = torch.tensor([9, 0, 0, 3])
    *_, extras = rsl_rl_env.step(action)
    assert extras["time_outs"].tolist() == [True, False, False, False]


def test_rsl_rl_learns(rsl_rl_env, tmp_path):
    runners = pytest.importorskip("rsl_rl.runners", reason="rsl-rl-lib is not installed")
    model = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu", "obs_normalization": True}
    noise = {"distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}}
    config = {
        "num_steps_per_env": 6,
        "save_interval": 100,
        "obs_groups": {"actor": ["actor"], "critic": ["critic"]},
        "actor": {**model, **noise},
        "critic": model,
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": 1,
            "num_mini_batches": 2,
            "schedule": "adaptive",
            "desired_kl": 0.01,
            "rnd_cfg": None,
            "symmetry_cfg": None,
        },
    }
    runner = runners.OnPolicyRunner(rsl_rl_env, config, None, "cpu")
    before = [x.detach().clone() for x in runner.alg.actor.parameters()]
    runner.learn(2, init_at_random_ep_len=True)
    after = [*runner.alg.actor.parameters()]
    assert all(torch.isfinite(x).all() for x in after)
    assert any(not torch.equal(x, y) for x, y in zip(before, after, strict=True))


@pytest.mark.parametrize("groups, policy", [(False, "MlpPolicy"), (True, "MultiInputPolicy")])
def test_stable_baselines3_learns(groups, policy):
    library = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    from legged.learning.stable_baselines3 import StableBaselines3Env

    env = StableBaselines3Env(made(groups=groups))
    learner = library.PPO(policy, env, n_steps=12, batch_size=24, n_epochs=1, seed=3, device="cpu")
    learner.learn(96)
    assert learner.num_timesteps == 96
    assert {info["l"] for info in learner.ep_info_buffer} <= {*range(1, 11)} and len(learner.ep_info_buffer) >= 4
    env.seed(5)
    first = env.reset()
    env.seed(5)
    for x, y in zip(*(np.concatenate([*o.values()], 1) if groups else o for o in (first, env.reset())), strict=True):
        np.testing.assert_array_equal(x, y)
    dones = np.zeros(4, bool)
    for _ in range(10):
        _, _, dones, infos = env.step(np.zeros((4, NJ), np.float32))
    assert dones.all() and all(info["TimeLimit.truncated"] and "terminal_observation" in info for info in infos)


def test_skrl_takes_the_standard_interface():
    wrap = pytest.importorskip("skrl.envs.wrappers.torch", reason="skrl is not installed").wrap_env
    env = wrap(made(), wrapper="gymnasium", verbose=False)
    observed, _ = env.reset()
    assert observed.shape == (4, 48) and env.num_envs == 4
    for _ in range(10):
        observed, reward, _, truncated, _ = env.step(torch.zeros(4, NJ))
    assert observed.shape == (4, 48) and reward.shape == (4, 1) and truncated.all()


def test_environments_that_start_anew_at_other_times_are_refused():
    pytest.importorskip("tensordict", reason="tensordict, which rsl_rl needs, is not installed")
    from legged.learning.rsl_rl import RslRlEnv

    with pytest.raises(ArgumentError, match="groups=True"):
        RslRlEnv(made())
    with pytest.raises(ArgumentError, match="same_step"):
        RslRlEnv(made(groups=True, autoreset="disabled"))
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    from legged.learning.stable_baselines3 import StableBaselines3Env

    with pytest.raises(ArgumentError, match="same_step"):
        StableBaselines3Env(made(autoreset="next_step"))
