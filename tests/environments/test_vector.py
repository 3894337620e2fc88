"""Vector environments: determinism, new starts in every mode, and the physics of `Simulation`."""

import numpy as np
import pytest

import legged
import robots
from legged import environments
from legged.environments import Reward, terms
from legged.errors import ArgumentError, NotFiniteError, ShapeError

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")
ROBOT = robots.spatial_quadruped()


def actions(steps, count, scale=0.5):
    """Return the same actions of a robot for any number of robots, (steps, count, nj)."""
    rows = [np.random.default_rng(i).normal(size=(steps, ROBOT.nj)) for i in range(count)]
    return scale * np.stack(rows, axis=1).astype(np.float32)


def run(env, given, seed=7):
    env.reset(seed=seed)
    return [env.step(a)[:4] for a in given]


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.fixture(scope="module")
def task():
    return environments.velocity(ROBOT, episode=0.6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_depend_neither_on_threads_nor_on_the_number_of_robots(task, dtype):
    given = actions(60, 19)
    whole = run(environments.make(task, num_envs=19, threads=1, dtype=dtype), given)
    assert_same(whole, run(environments.make(task, num_envs=19, threads=2, dtype=dtype), given))
    ended = np.array([terminated | truncated for *_, terminated, truncated in whole])
    assert ended.any(axis=0).all()  # each robot has started anew
    for first, count in ((0, 1), (5, 1), (4, 9)):
        part = run(environments.make(task, num_envs=count, first=first, dtype=dtype), given[:, first : first + count])
        assert_same([[x[first : first + count] for x in row] for row in whole], part)


@pytest.mark.parametrize("name", ["velocity", "rough"])
def test_equal_seeds_give_equal_episodes_and_others_do_not(name):
    """Also after episodes that change the memory of the task, such as the level of its curriculum."""
    env, given = environments.make(environments.TASKS[name](ROBOT, episode=0.2), num_envs=3), actions(20, 3)
    first = run(env, given, seed=1)
    assert_same(first, run(env, given, seed=1))
    assert not np.array_equal(first[0][0], run(env, given, seed=2)[0][0])
    assert not np.array_equal(env.reset()[0], env.reset()[0])  # without a seed, random numbers go on


def test_each_mode_starts_anew_when_gymnasium_says(task):
    given = actions(60, 4)
    same = environments.make(task, num_envs=4, autoreset="same_step")
    following = environments.make(task, num_envs=4, autoreset="next_step")
    off = environments.make(task, num_envs=4, autoreset="disabled")
    first = [env.reset(seed=5)[0] for env in (same, following, off)]
    np.testing.assert_array_equal(first[0], first[1])
    for a in given:
        in_same, in_next, in_off = (env.step(a) for env in (same, following, off))
        over = in_same[2] | in_same[3]
        np.testing.assert_array_equal(over, in_next[2] | in_next[3])
        if over.any():
            break
        np.testing.assert_array_equal(in_same[0], in_next[0])
    final = np.stack([in_same[4]["final_obs"][i] for i in np.flatnonzero(over)])
    np.testing.assert_array_equal(in_same[4]["_final_obs"], over)
    np.testing.assert_array_equal(final, in_next[0][over])
    np.testing.assert_array_equal(final, in_off[0][over])
    episode = in_same[4]["episode"]
    assert (episode["l"][over] > 0).all() and (episode["l"][~over] == 0).all()
    parts = sum(value for name, value in episode.items() if name.startswith("reward."))
    np.testing.assert_allclose(parts, episode["r"], rtol=1e-12)
    observed, reward, terminated, truncated, _ = following.step(a)
    assert (reward[over] == 0.0).all() and not (terminated | truncated)[over].any()
    assert not np.array_equal(observed[over], final)
    with pytest.raises(ArgumentError, match="reset_mask"):
        off.step(a)
    kept = off.q[~over]
    off.reset(options={"reset_mask": over})
    np.testing.assert_array_equal(off.q[~over], kept)
    off.step(a)


def test_time_outs_are_truncations_and_falls_are_terminations():
    task = environments.velocity(ROBOT, episode=0.1)
    env = environments.make(task, num_envs=3)
    env.reset(seed=0)
    for _ in range(4):
        *_, terminated, truncated, _ = env.step(np.zeros((3, ROBOT.nj)))
        assert not (terminated | truncated).any()
    *_, terminated, truncated, infos = env.step(np.zeros((3, ROBOT.nj)))
    assert truncated.all() and not terminated.any() and (infos["episode"]["l"] == 5).all()
    always = environments.make(task.changed(terminations={"always": lambda s: 1.0}), num_envs=2)
    always.reset(seed=0)
    *_, terminated, truncated, _ = always.step(np.zeros((2, ROBOT.nj)))
    assert terminated.all() and not truncated.any()


def test_the_motion_is_that_of_a_simulation_with_the_same_servos():
    task = environments.velocity(
        ROBOT, variations=dict.fromkeys(environments.velocity(ROBOT).variations), disturbance=None
    )
    env = environments.make(task, num_envs=2)
    env.reset(seed=3)
    q, v = env.q, env.v
    given = actions(25, 2, 0.2)

    class Servos:
        implicit_gains = task.kp, task.kd

        def torque(self, t, phase, q, v, wrenches, memory, command):
            return task.kp * (command - q[7:]) - task.kd * v[6:]

    sim = legged.Simulation(
        ROBOT, Servos(), ground=task.ground, num=2, q=q, v=v, integrator=legged.TimeStepping(task.time_step), fall=False
    )
    for a in given:
        env.step(a)
        sim.step(task.targets(a.astype(float)), n=task.substeps)
    # Rounding that contacts amplify in half a second.
    np.testing.assert_allclose(env.q, sim.q, atol=1e-8)


def test_actions_of_zero_stand():
    task = environments.velocity(ROBOT, disturbance=None)
    env = environments.make(task, num_envs=32)
    env.reset(seed=0)
    for _ in range(200):
        *_, terminated, _, _ = env.step(np.zeros((32, ROBOT.nj)))
        assert not terminated.any()
    # The gravity of the robot bends each knee by less than 0.3 rad, which lowers the base by less than a tenth.
    assert (env.q[:, 6] > 0.9 * task.height).all()


def test_a_late_target_acts_after_its_delay():
    late = environments.velocity(ROBOT, variations={"servo.delay": environments.Range(0.02, 0.02)}, disturbance=None)
    prompt = late.changed(variations={"servo.delay": environments.Range(0.0, 0.0)})
    one, other = (environments.make(task, num_envs=2) for task in (late, prompt))
    for env in (one, other):
        env.reset(seed=3)
    np.testing.assert_array_equal(one.q, other.q)
    a = actions(1, 2)[0]
    one.step(a)
    other.step(np.zeros_like(a))  # the whole period is late: the target of the start acts
    np.testing.assert_allclose(one.q, other.q, atol=1e-14)  # b + (a - b) is a up to rounding
    other.reset(seed=3)
    other.step(a)
    assert abs(one.q - other.q).max() > 1e-3


def test_rewards_are_those_of_their_formulas():
    task = environments.velocity(ROBOT, disturbance=None, episode=100.0)
    env = environments.make(task, num_envs=2, autoreset="disabled")
    env.reset(seed=1)
    a, b = actions(2, 2, 0.1)
    env.step(a)
    v_before = env.v
    _, reward, *_, infos = env.step(b)
    terms = dict(zip(task.rewards, infos["terms"].T, strict=True))
    np.testing.assert_allclose(infos["terms"].sum(axis=1), reward, rtol=1e-12)
    weights = {name: reward.weight * task.period for name, reward in task.rewards.items()}
    np.testing.assert_allclose(terms["action_rate"], weights["action_rate"] * ((b - a).astype(float) ** 2).sum(axis=1))
    qdd = (env.v - v_before)[:, 6:] / task.period
    np.testing.assert_allclose(terms["joint_accelerations"], weights["joint_accelerations"] * (qdd**2).sum(axis=1))
    w, x, y, z = env.q[:, :4].T
    up = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x**2 + y**2)], axis=1)
    np.testing.assert_allclose(terms["tilt"], weights["tilt"] * (up[:, :2] ** 2).sum(axis=1), atol=1e-15)
    rate = (up * env.v[:, :3]).sum(axis=1)
    error = env.commands[:, 2] - rate
    np.testing.assert_allclose(terms["track_yaw_rate"], weights["track_yaw_rate"] * np.exp(-(error**2) / 0.25))
    np.testing.assert_allclose(terms["yaw_rate_error"], weights["yaw_rate_error"] * abs(error))


def test_numbers_of_robots_differ_within_their_ranges():
    base = ROBOT.links[0].name
    task = environments.velocity(ROBOT, variations={f"{base}.mass": environments.Range(0.5, 2.0, is_factor=True)})
    env = environments.make(task, num_envs=200)
    env.reset(seed=0)
    masses = env.parameters[f"{base}.mass"] / ROBOT.links[0].inertia.mass
    assert masses.min() >= 0.5 and masses.max() < 2.0 and masses.std() == pytest.approx(1.5 / np.sqrt(12), rel=0.1)
    friction = env.parameters["ground.friction"]
    assert friction.min() >= 0.5 and friction.max() < 1.25 and len(np.unique(friction)) == 200


def test_wrong_actions_and_terms_are_refused_and_named(task):
    env = environments.make(task, num_envs=2)
    with pytest.raises(ArgumentError, match="reset"):
        env.step(np.zeros((2, ROBOT.nj)))
    env.reset(seed=0)
    q = env.q
    with pytest.raises(ShapeError, match="actions"):
        env.step(np.zeros((2, 3)))
    wrong = np.zeros((2, ROBOT.nj))
    wrong[1, 2] = np.nan
    with pytest.raises(NotFiniteError, match="robot 1"):
        env.step(wrong)
    np.testing.assert_array_equal(env.q, q)
    broken = task.changed(rewards={"mine": Reward(lambda s: {}["missing"], 1.0)})
    with pytest.raises(KeyError) as raised:
        environments.make(broken, num_envs=2)
    assert "reward mine" in " ".join(raised.value.__notes__)
    with pytest.raises(ShapeError, match="reward mine"):
        environments.make(task.changed(rewards={"mine": Reward(terms.command, 1.0)}), num_envs=2)


@pytest.mark.filterwarnings("ignore:.*symmetric and normalized")
def test_gymnasium_accepts_the_environment_of_one_robot(task):
    from gymnasium.utils.env_checker import check_env

    env = environments.make(task)
    check_env(env, skip_render_check=True)
    many = environments.make(task, num_envs=1)
    one, first = env.reset(seed=4)[0], many.reset(seed=4)[0][0]
    np.testing.assert_array_equal(one, first)
    action = actions(1, 1)[0]
    np.testing.assert_array_equal(env.step(action[0])[0], many.step(action)[0][0])


@pytest.mark.filterwarnings("ignore:.*symmetric and normalized")
@pytest.mark.parametrize(
    "checked", [("velocity", "pendulum"), pytest.param(tuple(environments.TASKS), marks=pytest.mark.slow)]
)
def test_gymnasium_makes_environments_by_name(checked):
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("legged/velocity-v0", robot=ROBOT)
    assert env.reset(seed=1)[0].shape == (50,)
    for name in checked:
        given = {} if name in ("pendulum", "acrobot") else {"robot": ROBOT}
        check_env(gymnasium.make(f"legged/{name}-v0", render_mode="rgb_array", **given).unwrapped)
    many = gymnasium.make_vec("legged/velocity-v0", 3, "vector_entry_point", robot=ROBOT)
    assert many.reset(seed=1)[0].shape == (3, 50)
    assert all(f"legged/{name}-v0" in gymnasium.registry for name in environments.TASKS)  # by the import alone
    assert gymnasium.make("legged.environments:legged/acrobot-v0").reset(seed=0)[0].shape == (6,)
    assert gymnasium.make("legged/pendulum-v0").reset(seed=0)[0].shape == (3,)
    assert gymnasium.make("legged/jumping-v0", robot=ROBOT, episode=1.0).reset(seed=0)[0].shape == (48,)
