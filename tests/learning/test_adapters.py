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


def assert_learned(before, after):
    after = [*after]
    assert all(torch.isfinite(x).all() for x in after)
    assert any(not torch.equal(x, y) for x, y in zip(before, after, strict=True))


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
    assert_learned(before, runner.alg.actor.parameters())


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


def test_skrl_learns():
    agents, wrappers, memories, models, trainers = (
        pytest.importorskip(f"skrl.{name}", reason="skrl is not installed")
        for name in ("agents.torch.ppo", "envs.wrappers.torch", "memories.torch", "models.torch", "trainers.torch")
    )

    class Policy(models.GaussianMixin, models.Model):
        def __init__(self, **spaces):
            models.Model.__init__(self, **spaces)
            models.GaussianMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_observations, self.num_actions)
            self.deviation = torch.nn.Parameter(torch.zeros(self.num_actions))

        def compute(self, inputs, role):
            return self.net(inputs["observations"]), {"log_std": self.deviation}

    class Value(models.DeterministicMixin, models.Model):
        def __init__(self, **spaces):
            models.Model.__init__(self, **spaces)
            models.DeterministicMixin.__init__(self)
            self.net = torch.nn.Linear(self.num_observations, 1)

        def compute(self, inputs, role):
            return self.net(inputs["observations"]), {}

    env = wrappers.wrap_env(made(), wrapper="gymnasium", verbose=False)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": "cpu"}
    nets = {"policy": Policy(**spaces), "value": Value(**spaces)}
    memory = memories.RandomMemory(memory_size=12, num_envs=4, device="cpu")  # 12 steps with an end of all episodes
    silent = {"experiment": {"write_interval": 0, "checkpoint_interval": 0}}
    agent = agents.PPO(models=nets, memory=memory, cfg={"rollouts": 12, "learning_epochs": 1, **silent}, **spaces)
    before = [x.detach().clone() for net in nets.values() for x in net.parameters()]
    silent = {"disable_progressbar": True, "headless": True, "close_environment_at_exit": False}
    trainers.SequentialTrainer(env=env, agents=agent, cfg={"timesteps": 24, **silent}).train()
    after = [x for net in nets.values() for x in net.parameters()]
    assert_learned(before, after)


def test_torchrl_learns():
    envs, modules, objectives, values = (
        pytest.importorskip(f"torchrl.{name}", reason="torchrl is not installed")
        for name in ("envs", "modules", "objectives", "objectives.value")
    )
    from tensordict.nn import TensorDictModule, TensorDictSequential

    env = envs.GymWrapper(made(autoreset="disabled"), device="cpu")
    net = torch.nn.Sequential(torch.nn.Linear(50, 2 * NJ), modules.NormalParamExtractor())
    actor = modules.ProbabilisticActor(
        TensorDictSequential(TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"])),
        in_keys=["loc", "scale"],
        distribution_class=modules.TanhNormal,
        distribution_kwargs={"low": env.action_spec.space.low[0], "high": env.action_spec.space.high[0]},
        return_log_prob=True,
    )
    value = modules.ValueOperator(torch.nn.Linear(50, 1), in_keys=["observation"])
    loss = objectives.ClipPPOLoss(actor, value)
    advantage = values.GAE(gamma=0.99, lmbda=0.95, value_network=value)
    optimizer = torch.optim.Adam(loss.parameters(), 1e-3)
    before = [x.detach().clone() for x in loss.parameters()]
    with torch.no_grad():
        data = env.rollout(24, actor, break_when_any_done=False)
    ends = data["next", "truncated"][..., 0]
    assert ends[:, 9].all() and ends[:, 19].all() and ends.sum() == 8  # episodes of 10 steps, none of which falls
    assert torch.equal(data["observation"][:, 1:10], data["next", "observation"][:, :9])
    assert not torch.equal(data["observation"][:, 10], data["next", "observation"][:, 9])  # the last one stays
    with torch.no_grad():
        advantage(data)
    losses = loss(data.reshape(-1))
    (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
    optimizer.step()
    assert_learned(before, loss.parameters())


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
