"""Reflections from left to right: laws of mechanics, observations, and policies that learn from reflected data."""

from dataclasses import replace

import numpy as np
import pytest

import legged
import robots
from legged import environments
from legged.environments import Observation, terms
from legged.errors import DefinitionError

torch = pytest.importorskip("torch", reason="torch, of the extra train, is not installed")
pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")

from legged.environments.tasks.common import Stance  # noqa: E402
from legged.learning.mirror import Mirror, mirrored_joints  # noqa: E402
from legged.learning.ppo import PPO, Settings  # noqa: E402
from tests.environments.test_terms import feet, state  # noqa: E402

ROBOT = robots.spatial_quadruped()
TASK = environments.velocity(ROBOT)
FLIP = np.array([1.0, -1.0, 1.0])


@pytest.mark.quick
@pytest.mark.parametrize("name", ["spatial_quadruped", "hexapod", "spatial_biped"])
def test_reflected_forces_give_reflected_accelerations(name):
    robot, random = getattr(robots, name)(), np.random.default_rng(3)
    joints = mirrored_joints(robot)
    np.testing.assert_array_equal(joints(joints(np.arange(float(robot.nj)))), np.arange(float(robot.nj)))

    def velocity(x):
        return np.concatenate([-FLIP * x[:3], FLIP * x[3:6], joints(x[6:])])

    turn = random.normal(size=4)
    q = np.concatenate([turn / np.linalg.norm(turn), random.normal(size=3 + robot.nj)])
    p = np.concatenate([q[:4] * [1, -1, 1, -1], FLIP * q[4:7], joints(q[7:])])
    v, tau = random.normal(size=(2, robot.nv))
    # Both sides are the same sums in another order: rounding alone, times the condition of the inertia matrix.
    expected = velocity(legged.forward_dynamics(robot, q, v, tau))
    acceleration = legged.forward_dynamics(robot, p, velocity(v), velocity(tau))
    np.testing.assert_allclose(acceleration, expected, atol=1e-7 * np.abs(expected).max())


def test_observations_of_terrain_and_command_have_reflections():
    seen = {"command": Observation(terms.command), "heights": Observation(terms.heights_around(0.2, 0.2))}
    seen["velocity"] = Observation(terms.base_linear_velocity, scale=2.0)
    reflection = Mirror.of(TASK.changed(observations={"actor": seen})).observation
    x = np.arange(15.0)
    expected = [0, -1, -2, 5, 4, 3, 8, 7, 6, 11, 10, 9, 12, -13, 14]  # heights: three rows from right to left
    np.testing.assert_array_equal(reflection(x), expected)


def test_observations_of_memory_need_a_reflection():
    task = environments.velocity(robots.spatial_biped())
    mean = task.observations["actor"]["mean_velocity_error"]
    alone = task.changed(observations={"actor": {"mean": mean}})
    np.testing.assert_array_equal(Mirror.of(alone).observation(np.array([1.0, 2.0, 3.0])), [1.0, -2.0, -3.0])
    with pytest.raises(DefinitionError, match=r"actor\.mean reads the memory of the task: give its reflection"):
        Mirror.of(task.changed(observations={"actor": {"mean": replace(mean, reflection=None)}}))


@pytest.mark.parametrize("name", ["spatial_quadruped", "hexapod", "humanoid"])
def test_the_clock_of_a_gait_is_reflected_by_half_a_period(name):
    robot, random = getattr(robots, name)(), np.random.default_rng(0)
    task, stance = environments.velocity(robot), Stance.of(robot)
    hips = np.array([leg.hip for leg in stance.home.legs])
    other = [int(np.argmin(np.linalg.norm(FLIP * hip - hips, axis=1))) for hip in hips]
    period = stance.gait().period
    for _ in range(10):  # the reflected state, half a period later, has the reward and the clock of the state
        on, time = random.integers(0, 2, len(hips)).astype(float), random.uniform(0.0, 5.0)
        values, clocks = [], []
        for touching, t in ((on, time), (on[other], time + 0.5 * period)):
            contacts = np.zeros(len(robot.contacts))
            for foot, value in zip(stance.gait().contacts, touching, strict=True):
                contacts[foot] = value
            s = state(task, feet(contacts), command=np.array([0.5, 0.0, 0.0]), steps=t / task.period)
            values.append(task.rewards["gait_contacts"].function(s))
            clocks.append(task.observations["actor"]["clock"].function(s))
        assert values[0] == values[1]
        np.testing.assert_allclose(clocks[1], -clocks[0], atol=1e-12)
    alone = task.changed(observations={"actor": {"clock": task.observations["actor"]["clock"]}})
    np.testing.assert_array_equal(Mirror.of(alone).observation(np.array([1.0, 2.0])), [-1.0, -2.0])
    wrong = replace(task.observations["actor"]["clock"], reflection=(1.0, 1.0, 1.0))
    with pytest.raises(DefinitionError, match=r"actor\.clock needs 2 signs, got 3"):
        Mirror.of(task.changed(observations={"actor": {"clock": wrong}}))


def test_what_is_not_symmetric_is_named():
    random = legged.random_tree(1, 6, bases=("floating",))
    with pytest.raises(DefinitionError, match=r"joint .* of robot .* has no reflection"):
        mirrored_joints(random)
    with pytest.raises(DefinitionError, match=r"actor\.skew"):
        Mirror.of(TASK.changed(observations={"actor": {"skew": Observation(lambda s: s.v[3:5].sum())}}))
    posture = TASK.posture.copy()
    posture[0] += 0.1
    with pytest.raises(DefinitionError, match="posture"):
        Mirror.of(TASK.changed(posture=posture))


@pytest.mark.parametrize("mirrored", [True, False])
def test_what_one_side_learns_the_other_learns_too_if_data_are_reflected(mirrored):
    settings = Settings(steps=8, batches=2, hidden=(16,), mirrored=mirrored)
    learner = PPO(environments.make(TASK, num_envs=4, groups=True, threads=1), settings)
    shape, joints = (8, 4), mirrored_joints(ROBOT)
    actor, critic = (torch.zeros(*shape, x.shape[1]) for x in learner.observed)
    data = {"actor": actor, "critic": critic}
    with torch.no_grad():
        data["mean"] = learner.net.actor(actor)
    sign = torch.tensor([1.0, -1.0]).repeat(16).reshape(shape)
    one = torch.nn.functional.one_hot(torch.tensor(0), ROBOT.nj)
    data |= {"action": data["mean"] + 0.5 * sign[..., None] * one, "advantage": sign, "returns": torch.zeros(shape)}
    before = data["mean"][0, 0].clone()
    learner._updated(data)
    with torch.no_grad():
        change = (learner.net.actor(torch.zeros(50)) - before).numpy()
    other = int(joints.order[0])
    gain = change[other] * joints.signs[0] / change[0]
    assert change[0] > 0.01
    assert gain > 0.5 if mirrored else gain < 0.3
