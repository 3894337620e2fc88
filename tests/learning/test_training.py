"""Training: the learner, checkpoints, interruptions, and the reading of foreign files."""

import pickle

import numpy as np
import pytest

import legged
import robots
from legged import environments
from legged.environments.snapshots import restore, snapshot
from legged.errors import ArgumentError, FileError, ShapeError

torch = pytest.importorskip("torch", reason="torch, of the extra train, is not installed")
pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")

from legged.learning import checkpoint, evaluation  # noqa: E402
from legged.learning.ppo import PPO, Normalizer, Settings  # noqa: E402
from legged.learning.training import CHECKPOINT, Training, sparkline  # noqa: E402

ROBOT = robots.spatial_quadruped()
TASK = environments.velocity(ROBOT, episode=0.2)  # 10 control steps, so that episodes end by time
SMALL = Settings(steps=6, epochs=2, batches=2, hidden=(16,))


def training(folder=None, **options):
    return Training(TASK, folder, **{"num_envs": 8, "settings": SMALL, "threads": 1, **options})


@pytest.mark.quick
def test_a_resumed_training_gives_the_curve_of_an_uninterrupted_one(tmp_path):
    whole = training(tmp_path / "whole")
    whole.run(steps=5 * 48)
    begun = training(tmp_path / "parts")
    begun.run(steps=2 * 48)
    resumed = training(tmp_path / "parts", resume=tmp_path / "parts" / CHECKPOINT, num_envs=3, seed=9, dtype="float64")
    resumed.run(steps=5 * 48)
    assert resumed.curve == whole.curve and len(whole.curve) == 5
    for x, y in zip(whole.learner.net.parameters(), resumed.learner.net.parameters(), strict=True):
        assert torch.equal(x, y)
    for name, values in snapshot(whole.learner.env).items():
        assert np.array_equal(values, snapshot(resumed.learner.env)[name]), name
    other = training(seed=2)
    other.run(steps=48)
    assert other.curve[0] != whole.curve[0]


def test_an_interrupted_training_leaves_the_last_checkpoint(tmp_path):
    begun = training(tmp_path)
    begun.run(steps=48)
    before = (tmp_path / CHECKPOINT).read_bytes()

    def interrupt(figures):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begun.run(steps=96, report=interrupt)
    assert (tmp_path / CHECKPOINT).read_bytes() == before  # the state in the middle of an iteration is not stored
    assert not list(tmp_path.glob(".legged-*"))


def test_checkpoints_hold_task_robot_versions_and_seed_and_fit_no_other_training(tmp_path):
    training(tmp_path, seed=5).run(steps=48)
    content = checkpoint.read_checkpoint(tmp_path / CHECKPOINT)
    assert content["robot"]["name"] == ROBOT.name and content["seed"] == 5 and content["num_envs"] == 8
    assert content["versions"]["legged"] == legged.__version__ and content["settings"] == SMALL
    other = TASK.changed(rewards={"torques": None})
    with pytest.raises(ArgumentError, match="other rewards"):
        Training(other, resume=tmp_path / CHECKPOINT, threads=1)
    with pytest.raises(ArgumentError, match="hexapod"):
        Training(environments.velocity(robots.hexapod()), resume=tmp_path / CHECKPOINT, threads=1)


def test_foreign_files_are_refused_and_run_no_code(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (open, (str(tmp_path / "harm"), "w"))

    with pytest.raises(FileError, match="cannot be read"):
        checkpoint.read_checkpoint(tmp_path / "missing.pt")
    for name, write in {
        "text": lambda path: path.write_text("no checkpoint"),
        "empty": lambda path: path.write_bytes(b""),
        "pickle": lambda path: path.write_bytes(pickle.dumps(Harmful())),
        "torch": lambda path: torch.save({"x": Harmful()}, path),
        "other": lambda path: torch.save({"format": "other"}, path),
    }.items():
        path = tmp_path / f"{name}.pt"
        write(path)
        with pytest.raises(FileError, match="checkpoint"):
            checkpoint.read_checkpoint(path)
    assert not (tmp_path / "harm").exists()
    training(tmp_path).run(steps=48)
    whole = (tmp_path / CHECKPOINT).read_bytes()
    (tmp_path / "half.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="checkpoint"):
        checkpoint.read_checkpoint(tmp_path / "half.pt")


def test_the_policy_of_the_learner_is_the_network_that_it_returns():
    learner = training().learner
    learner.iterate()
    network, x = learner.network(), np.random.default_rng(0).normal(size=(5, 50)).astype(np.float32)
    expected = np.array([network(row.astype(float))[0] for row in x])
    np.testing.assert_allclose(learner.act(x), expected, atol=1e-5)  # single precision over two layers


def test_advantages_are_the_sums_of_their_definition():
    # One robot whose episodes of 10 steps end by time: delta_t summed with (gamma lambda)^k within an episode, where
    # the last reward holds the value of the last state.
    learner = training().learner
    s, data = SMALL, None
    data, _ = learner._collected()
    with torch.no_grad():
        value = learner.net.critic(data["critic"])[..., 0]
        after = learner.net.critic(learner.net.critic_input(learner.observed[1]))[:, 0]
    returns, final = data["returns"], torch.cat([value[1:], after[None]])
    advantage = returns - value
    for t in range(s.steps - 1):  # no episode of 10 steps ends within 6 steps without a fall
        reward = advantage[t] - s.gamma * s.lam * advantage[t + 1] - s.gamma * final[t] + value[t]
        assert torch.isfinite(reward).all() and (reward.abs() < 1.0).all()


def test_normalization_has_the_mean_and_variance_of_all_observations():
    normal, x = Normalizer(3), 5.0 + 2.0 * torch.randn(1000, 3)
    for part in x.split([1, 99, 400, 500]):
        normal.update(normal(part))
    np.testing.assert_allclose(normal.mean, x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(normal.variance, x.var(0, unbiased=False), rtol=1e-4)  # sums in single precision


def test_the_value_of_the_last_state_stands_for_the_rest_of_an_episode_whose_time_is_over():
    # Discounted sums of rewards of one per second without end: a critic that knows them stays at its value.
    task = TASK.changed(
        rewards={**dict.fromkeys(TASK.rewards), "one": environments.Reward(lambda s: 1.0 + 0.0 * s.height, 1.0)},
        terminations={"fallen": None},
        disturbance=None,
    )
    learner = PPO(environments.make(task, num_envs=4, groups=True, threads=1), SMALL)
    true = task.period / (1.0 - SMALL.gamma)
    with torch.no_grad():
        for parameter in learner.net.critic.parameters():
            parameter.zero_()
        learner.net.critic[-1].bias.fill_(true)
    for _ in range(3):  # the second collection contains the ends of the episodes
        data, _ = learner._collected()
        np.testing.assert_allclose(data["returns"], true, rtol=1e-5)


def test_an_environment_goes_back_to_its_snapshot():
    env = environments.make(TASK, num_envs=4, threads=1)
    env.reset(seed=1)
    actions = np.random.default_rng(0).normal(size=(12, 4, ROBOT.nj))
    for action in actions[:5]:
        env.step(action)
    values, ends = snapshot(env), []
    for _ in range(2):
        for action in actions[5:]:
            observed, reward, *_ = env.step(action)
        ends.append((observed, reward, env.q))
        restore(env, values)
    for x, y in zip(*ends, strict=True):
        assert np.array_equal(x, y)
    with pytest.raises(ShapeError, match="another task"):
        restore(env, {**values, "state": values["state"][:2]})


def test_the_table_of_velocities_is_in_heading_axes():
    still = evaluation.tracking(TASK, lambda x: np.zeros((len(x), ROBOT.nj)), [(0.0, 0.0, 0.0)], robots=3, duration=2.4)
    assert still.errors.max() < 0.2 and still.fallen.max() == 0.0  # [m/s], [rad/s]: soft servos sway after the start
    assert "largest errors" in still.table().text()
    moving = evaluation.heading_velocities(
        np.array([[np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5), 0, 0, 0.3]]), np.array([[0, 0, 0.2, 0.5, 0.1, 0.0]])
    )
    np.testing.assert_allclose(moving, [[0.5, 0.1, 0.2]], atol=1e-12)  # heading axes turn with the robot
    with pytest.raises(ArgumentError, match="velocity"):
        evaluation.tracking(TASK.changed(command=None), np.tanh)


def test_the_deviation_of_actions_falls_with_the_transitions_alone():
    settings = Settings(steps=6, epochs=1, batches=1, hidden=(16,), halving=48.0, least_deviation=0.3)
    learner = training(settings=settings).learner
    for bound in (0.35, 0.3, 0.3):  # 0.7 halves in the 48 transitions of an iteration
        learner.iterate()
        deviation = learner.net.log_deviation.detach().exp()
        assert float(deviation.max()) <= bound * (1.0 + 1e-6) and float(deviation.min()) > 0.9 * bound
    assert SMALL.bound(10**9) == np.inf


def test_curves_in_the_terminal():
    assert sparkline([0.0, 1.0]) == "▁█" and len(sparkline([*range(100)], 10)) == 10
