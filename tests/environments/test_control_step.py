"""The control step in one call of machine code: memory, tensors, errors, motors, and what terms observe at its end."""

import numpy as np
import pytest

import robots
from legged import environments
from legged.environments import Observation, Reward, terms
from legged.environments.snapshots import restore, snapshot
from legged.errors import ArgumentError, NotFiniteError

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")
ROBOT = robots.spatial_quadruped()
RANDOM = np.random.default_rng(0)


def episodes(env, count, steps):
    """Return the rewards of all episodes of each robot under actions that depend on robot and step of its episode."""
    table = 3.0 * RANDOM.normal(size=(count, 100, ROBOT.nj))
    env.reset(seed=3)
    length, rewards, begins = np.zeros(count, int), [[[]] for _ in range(count)], np.zeros(count, bool)
    for _ in range(steps):
        _, reward, terminated, truncated, _ = env.step(table[np.arange(count), length])
        over = terminated | truncated
        for i in np.flatnonzero(~begins):
            rewards[i][-1].append(reward[i])
            length[i] += 1
        for i in np.flatnonzero(over):
            rewards[i].append([])
        length[over] = 0
        if env.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.NEXT_STEP:
            begins = over
        elif env.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.DISABLED:
            for i in RANDOM.permutation(np.flatnonzero(over)):  # one after the other, in any order
                env.reset(options={"reset_mask": np.arange(count) == i})
    return rewards


def test_robots_take_the_same_episodes_in_all_modes_and_orders_of_resets():
    task, all_rewards = environments.velocity(ROBOT, episode=0.8), []
    for mode in ("same_step", "next_step", "disabled"):
        RANDOM.bit_generator.state = np.random.default_rng(5).bit_generator.state
        all_rewards.append(episodes(environments.make(task, num_envs=5, autoreset=mode), 5, 130))
    for robot in zip(*all_rewards, strict=True):
        for same, following, off in zip(*(runs[:3] for runs in robot), strict=True):
            assert len(same) > 1 and same == following == off
    assert len({len(runs[0]) for runs in all_rewards[0]}) > 1  # some fall, some do not


def test_the_group_of_the_actor_does_not_depend_on_others():
    task = environments.velocity(ROBOT)
    noisy = {name: Observation(terms.joint_velocities, noise=1.0) for name in "ab"}
    task = task.changed(observations={"critic": noisy})
    one, both = (environments.make(task, num_envs=3, groups=groups) for groups in (False, True))
    np.testing.assert_array_equal(one.reset(seed=1)[0], both.reset(seed=1)[0]["actor"])
    a = RANDOM.normal(size=(3, ROBOT.nj))
    np.testing.assert_array_equal(one.step(a)[0], both.step(a)[0]["actor"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_memory_in_place_stays_until_the_next_step_but_one(dtype):
    task = environments.velocity(ROBOT)
    env = environments.make(task, num_envs=4, copy=False, dtype=dtype)
    other = environments.make(task, num_envs=4, dtype=dtype)
    first, _ = env.reset(seed=2)
    seen = [first.copy()]
    np.testing.assert_array_equal(first, other.reset(seed=2)[0])
    shown = [first]
    for _ in range(4):
        a = RANDOM.normal(size=(4, ROBOT.nj))
        observed, *_, infos = env.step(a)
        copied, *_, copied_infos = other.step(a)
        np.testing.assert_array_equal(observed, copied)
        np.testing.assert_array_equal(infos["terms"], copied_infos["terms"])
        np.testing.assert_array_equal(shown[-1], seen[-1])  # the observation before this step is still there
        shown.append(observed)
        seen.append(observed.copy())
    assert np.shares_memory(shown[0], shown[2]) and np.shares_memory(shown[1], shown[3])
    assert not np.shares_memory(shown[0], shown[1])


def test_tensors_of_torch_share_memory():
    torch = pytest.importorskip("torch", reason="torch, of the extra train, is not installed")
    env = environments.make("velocity", ROBOT, num_envs=3, copy=False, dtype="float32")
    observed, _ = env.reset(seed=1)
    tensor = torch.from_dlpack(observed)
    assert tensor.data_ptr() == observed.ctypes.data and tensor.dtype == torch.float32
    a = torch.randn(3, ROBOT.nj)
    observed = env.step(a)[0].copy()
    env.reset(seed=1)
    np.testing.assert_array_equal(env.step(a.numpy())[0], observed)
    for wrong in (a.requires_grad_(), a.detach().bfloat16()):
        with pytest.raises(ArgumentError, match=r"actions .* detach\(\)"):
            env.step(wrong)
    env.step(a.detach())


def test_a_term_without_a_finite_result_is_named_and_the_next_call_is_reset():
    def root(s):
        return np.sqrt(s.action[0])

    task = environments.velocity(ROBOT)
    wrong = {
        "reward mine": task.changed(rewards={"mine": Reward(root, 1.0)}),
        "observation actor.mine": task.changed(
            observations={"actor": {**task.observations["actor"], "mine": Observation(root)}}
        ),
    }
    for what, bad in wrong.items():
        env = environments.make(bad, num_envs=20)
        first, _ = env.reset(seed=1)
        a = np.ones((20, ROBOT.nj))
        env.step(a)
        a[13, 0] = -1.0
        with pytest.raises(NotFiniteError, match=rf"sqrt\(-1\).*{what}.*state 13"):
            env.step(a)
        with pytest.raises(ArgumentError, match="reset"):
            env.step(np.ones((20, ROBOT.nj)))
        np.testing.assert_array_equal(env.reset(seed=1)[0], first)


def test_motors_give_no_more_than_their_speed_torque_curves():
    """A strong servo of a light joint that turns fast: the torque is effort (1 - rate / speed), see `motor_force`."""
    effort, speed = 8.0, 12.0  # [N m], [rad/s]
    editor = ROBOT.edit()
    for joint in ROBOT.joints:
        editor.change_joint(joint.name, effort=effort, speed=speed)
    robot = editor.build()
    task = environments.velocity(robot, kp=200.0, kd=0.5, disturbance=None)
    task = task.changed(
        observations={"actor": {"torques": Observation(lambda s: s.torques), "rates": Observation(lambda s: s.v[6:])}},
        variations=dict.fromkeys(task.variations),
        terminations={"fallen": None},
    )
    env = environments.make(task, num_envs=8, autoreset="disabled")
    env.reset(seed=0)
    limited = 0
    for _ in range(20):
        observed, *_ = env.step(RANDOM.uniform(-4.0, 4.0, (8, robot.nj)))
        torque, rate = observed[:, : robot.nj].astype(float), observed[:, robot.nj :].astype(float)
        along = np.sign(torque) * rate
        most = effort * np.clip(1.0 - along / speed, 0.0, 1.0)
        assert (abs(torque) <= most + 1e-5).all()  # float32 observations
        limited += (abs(abs(torque) - most) < 1e-5)[along > 1.0].sum()
    assert limited > 20
    weak = environments.make(task.changed(robot=ROBOT), num_envs=8, autoreset="disabled")
    weak.reset(seed=0)
    assert abs(weak.step(np.full((8, robot.nj), 4.0))[0][:, : robot.nj]).max() > effort  # without motors


def test_observations_at_the_end_of_a_step_have_its_forces_and_accelerations():
    task = environments.velocity(ROBOT, disturbance=None)
    observed = {
        "forces": Observation(terms.foot_forces, limit=np.inf),
        "accelerations": Observation(lambda s: s.joint_accelerations, limit=np.inf),
        "rates": Observation(terms.joint_velocities, limit=np.inf),
    }
    task = task.changed(observations={"actor": observed}, variations=dict.fromkeys(task.variations))
    env = environments.make(task, num_envs=2)
    env.reset(seed=0)
    nj, before = ROBOT.nj, env.v[:, 6:]
    for _ in range(100):  # 2 s: standing
        seen, *_ = env.step(np.zeros((2, nj)))
        difference = (env.v[:, 6:] - before) / task.period
        np.testing.assert_allclose(seen[:, 12 : 12 + nj], difference, rtol=1e-6, atol=1e-4)
        before = env.v[:, 6:]
    weight = ROBOT.mass * np.linalg.norm(ROBOT.gravity)
    np.testing.assert_allclose(seen[:, 2:12:3].sum(axis=1), weight, rtol=1e-2)  # damped, not at rest


@pytest.mark.parametrize("speed", [2e3, 1e19])
def test_a_robot_beyond_what_time_steps_describe_starts_anew_without_a_reward(speed):
    task = environments.velocity(ROBOT, disturbance=None)
    env = environments.make(task, num_envs=3, dtype="float32", groups=True)
    env.reset(seed=0)
    values = snapshot(env)
    values["state"][1, ROBOT.nq + 3] = speed  # [m/s] of the base
    restore(env, values)
    observed, reward, terminated, truncated, _ = env.step(np.zeros((3, ROBOT.nj)))
    assert terminated.tolist() == [False, True, False] and not truncated.any()
    assert reward[1] == 0.0 and (reward[[0, 2]] != 0.0).all()
    assert all(np.isfinite(x).all() for x in (*observed.values(), reward)) and np.abs(env.v).max() < 10.0
