"""The tasks: every start stands on its terrain, curricula, references, random numbers, and Gymnasium's own check."""

from types import SimpleNamespace

import numpy as np
import pytest

import controllers
import legged
import robots
from legged import environments
from legged.contact.scene import Scene
from legged.dynamics.kinematics import point_motion
from legged.environments import Reference, TiledTerrain
from legged.environments.tasks.standing_up import with_body_contacts
from legged.environments.tasks.velocity import next_level
from legged.errors import ArgumentError, DefinitionError, FileError, ShapeError, UnknownNameError
from tests.environments.test_terms import state, walk

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")
ROBOT, BIPED = robots.spatial_quadruped(), robots.spatial_biped()
TILES = TiledTerrain.of(levels=4, columns=6, side=4.0)
TASKS = {
    "velocity": lambda: environments.velocity(ROBOT),
    "velocity of a biped": lambda: environments.velocity(BIPED),
    "rough": lambda: environments.rough(ROBOT, TILES),
    "standing_up": lambda: environments.standing_up(ROBOT, poses=24),
    "jumping": lambda: environments.jumping(ROBOT),
    "tracking": lambda: environments.tracking(ROBOT, walk()),
    "pendulum": environments.pendulum,
    "acrobot": environments.acrobot,
}


@pytest.fixture(scope="module", params=TASKS)
def task(request):
    return TASKS[request.param]()


def gaps(task, q):
    """Return the least gap between the robot and the ground at each configuration, (n,), [m]."""
    scene = Scene.of(task.robot, task.ground)
    return np.array([scene.deepest([x])[0] for x in q])


@pytest.mark.filterwarnings("ignore:.*symmetric and normalized")
def test_gymnasium_accepts_every_task(task):
    from gymnasium.utils.env_checker import check_env

    check_env(environments.make(task), skip_render_check=True)


def test_episodes_start_without_penetration_and_repeat_with_their_seed(task):
    env = environments.make(task, num_envs=40)
    first = env.reset(seed=2)[0]
    q = env.q
    if task.robot.contacts and task.ground.pairs is None:
        # Flat parts of the terrain and the tops of its steps: the gap below a foot is the height over the terrain.
        least = gaps(task, q)
        assert least.min() > -1e-9
        assert least.max() < (0.1 if "motion_feet" in task.rewards else 2e-3)
    random = np.random.default_rng(0)
    actions = random.normal(size=(15, 40, task.robot.nj))
    once = [env.step(a)[:4] for a in actions]
    again = environments.make(task, num_envs=40, threads=1)
    np.testing.assert_array_equal(again.reset(seed=2)[0], first)
    for a, before in zip(actions, once, strict=True):
        for x, y in zip(again.step(a)[:4], before, strict=True):
            assert np.isfinite(x).all()
            np.testing.assert_array_equal(x, y)
    assert not np.array_equal(again.reset(seed=3)[0], first)


def test_robots_with_two_legs_stand_and_observe_mean_errors_of_the_velocity():
    task = environments.velocity(robots.humanoid())
    nj = task.robot.nj
    env = environments.make(task, num_envs=8)
    assert env.reset(seed=0)[0].shape == (8, 17 + 3 * nj)
    for _ in range(25):
        *_, terminated, _, _ = env.step(np.zeros((8, nj)))
        assert not terminated.any()


@pytest.mark.filterwarnings("ignore::legged.errors.FileWarning")
def test_robots_of_the_field_have_the_observations_of_the_field():
    from benchmarks.locomotion.walkers import walkers

    robots_of_files = {walker.name: walker.robot for walker in walkers(["Go2", "G1"])}
    if not robots_of_files:
        pytest.skip("example-robot-data, of the extra test, is not installed")
    for name, sizes in (("Go2", (48, 50, 237)), ("G1", (102, 104, 291))):
        robot = robots_of_files[name]
        defined = (
            environments.velocity(robot, gait_period=None),
            environments.velocity(robot),
            environments.rough(robot, TILES),
        )
        for task, size in zip(defined, sizes, strict=True):
            q = np.concatenate([[1.0, 0, 0, 0, 0, 0, task.height], task.posture])
            seen = task.observed(q, np.zeros(robot.nv), *np.zeros((2, robot.nj)), np.zeros(3), 0.0)
            assert seen.shape == (size,) and np.isfinite(seen).all()
    torques = environments.velocity(robots_of_files["G1"]).kp
    assert torques.max() / torques.min() > 5.0  # wrists are much weaker than hips


def test_the_row_of_a_robot_rises_with_success_and_falls_with_failure():
    task = environments.rough(ROBOT, TILES)
    level = next_level(TILES)

    def after(last, walked, command, seconds=20.0):
        q = state(task).q.copy()
        q[4:6] = TILES.middle(last, 2.0)
        q[4] += walked
        memory = {"level": float(last), "column": 2.0}
        s = state(task, q=q, memory=memory, command=np.array([command, 0.0, 0.0]), steps=seconds / task.period)
        return float(level(s))

    assert after(1, 2.1, 1.0) == 2.0  # more than half a side
    assert after(1, 1.0, 0.08) == 1.0  # more than half of the 1.6 m that were asked for
    assert after(1, 1.0, 0.5) == 0.0
    assert after(1, 0.3, 0.5, seconds=1.0) == 0.0  # fell soon
    assert after(0, 0.0, 0.5) == 0.0
    assert 0.0 <= after(3, 2.1, 1.0) <= 3.0  # any row after the last one
    assert 0.0 <= after(-1, 0.0, 0.0) < 2.0  # the lower half at first


def test_robots_start_on_their_tiles():
    task = environments.rough(ROBOT, TILES)
    env = environments.make(task, num_envs=200)
    env.reset(seed=0)
    places = env.q[:, 4:6] / TILES.side
    tiles = np.round(places)
    assert abs(places - tiles).max() <= 0.5 / TILES.side  # within 0.5 m of the middle
    assert set(tiles[:, 0]) == {0.0, 1.0} and set(tiles[:, 1]) == set(range(6))
    kinds = TiledTerrain.of(("slope", "stairs"), levels=3, columns=2, side=8.0)
    ground = kinds.terrain
    for level, (slope, step) in enumerate(((0.0, 0.02), (0.2, 0.085), (0.4, 0.15))):
        x, y = kinds.middle(level, 0)
        assert ground.nearest(x + 1.8, y) - ground.nearest(x + 0.8, y) == pytest.approx(slope)
        x, y = kinds.middle(level, 1)
        assert ground.nearest(x, y) - ground.nearest(x + 1.0, y) == pytest.approx(step)  # stairs go down


def test_tiles_meet_without_cliffs():
    """Between neighboring heights of different tiles, no step is higher than the highest one of stairs."""
    tiles = TiledTerrain.of(columns=6)
    n = round(tiles.side / tiles.terrain.spacing)
    for heights in (tiles.terrain.heights, tiles.terrain.heights.T):
        assert abs(heights[n::n] - heights[n - 1 : -1 : n]).max() <= 0.15


def test_the_center_of_mass_differs_by_a_bounded_offset():
    task = environments.velocity(ROBOT)
    env = environments.make(task, num_envs=300)
    env.reset(seed=0)
    trunk = ROBOT.links[0]
    offset = env.parameters[f"{trunk.name}.center"] - trunk.inertia.center
    bound = 0.05 * task.height
    assert offset.shape == (300, 3) and abs(offset).max() <= bound
    np.testing.assert_allclose(offset.std(axis=0), bound / np.sqrt(3), rtol=0.1)
    assert abs(np.corrcoef(offset.T) - np.eye(3)).max() < 0.2  # three numbers, not one


def test_robots_begin_to_stand_up_at_rest_in_any_rotation():
    task = environments.standing_up(ROBOT, poses=60)
    env = environments.make(task, num_envs=200)
    env.reset(seed=1)
    up = 1.0 - 2.0 * (env.q[:, 1] ** 2 + env.q[:, 2] ** 2)
    assert up.min() < -0.8 and up.max() > 0.5 and (abs(up) < 0.5).any()
    assert np.median(abs(env.v).max(axis=1)) < 0.1  # most have come to rest
    # A robot that holds its joints keeps lying: no pose springs up from a penetration.
    z = env.q[:, 6]
    action = (env.q[:, 7:] - task.posture) / task.action_scale
    for _ in range(25):
        env.step(action)
    assert np.median(abs(env.q[:, 6] - z)) < 0.02


def test_a_body_has_contact_points_where_it_touches_when_it_lies():
    robot = with_body_contacts(ROBOT)
    assert robot.nj == ROBOT.nj and robot.mass == pytest.approx(ROBOT.mass)
    assert [c.name for c in ROBOT.contacts] == [
        c.name for c in robot.contacts if c.name in {x.name for x in ROBOT.contacts}
    ]
    trunk = robot.links[0]
    corners = np.array([c.position for c in robot.contacts if c.link == 0])
    # The box with the inertia of the trunk: sides a with m (b^2 + c^2) / 12 about each axis.
    a, b, c = np.ptp(corners, axis=0)
    moments = trunk.inertia.mass / 12.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    np.testing.assert_allclose(moments, np.diag(trunk.inertia.tensor), rtol=1e-9)


def test_a_reference_is_sampled_at_control_steps_and_repeats():
    t, q, v = walk(101, 0.01)
    reference = Reference(ROBOT, (t, q, v), is_cyclic=True)
    assert len(reference) == 50 and reference.period == 0.02
    np.testing.assert_allclose(reference.q, q[:-1:2], atol=1e-12)
    np.testing.assert_allclose(reference.displacement, [0.4, 0.0], atol=1e-12)
    task = environments.tracking(ROBOT, reference)
    for steps, row, cycles in ((0.0, 0, 0), (7.0, 7, 0), (50.0, 0, 1), (149.0, 49, 2)):
        place, velocity = reference.at(state(task, steps=steps))
        expected = reference.q[row].copy()
        expected[4] += 0.4 * cycles
        np.testing.assert_allclose(place, expected, atol=1e-12)
        np.testing.assert_allclose(velocity, reference.v[row], atol=1e-12)
        assert reference.phase(state(task, steps=steps)) == pytest.approx(row / 50)
    once = Reference(ROBOT, (t, q, v))
    np.testing.assert_allclose(once.at(state(task, steps=1e4))[0], q[100], atol=1e-12)  # holds its end


def test_quaternions_of_a_reference_may_change_their_sign():
    t, q, v = walk(101, 0.013)
    flipped = q.copy()
    flipped[40:, :4] *= -1.0
    one, other = Reference(ROBOT, (t, q, v)), Reference(ROBOT, (t, flipped, v))
    np.testing.assert_allclose(one.q, other.q, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(one.q[:, :4], axis=1), 1.0)


def test_references_come_from_runs_files_and_trajectories(tmp_path):
    t, q, v = walk()
    expected = Reference(ROBOT, (t, q, v))
    np.savez(tmp_path / "motion.npz", t=t, q=q, v=v)
    run = legged.Run.from_motion(ROBOT, t, q, v)
    run.save(tmp_path / "run.npz")

    for motion in (
        run,
        {"t": t, "q": q, "v": v},
        SimpleNamespace(times=t, q=q, v=v),  # such as an optimized trajectory
        tmp_path / "motion.npz",
        str(tmp_path / "run.npz"),
    ):
        reference = Reference(ROBOT, motion)
        np.testing.assert_allclose(reference.q, expected.q, atol=1e-12)
        np.testing.assert_allclose(reference.v, expected.v, atol=1e-12)
    # Differences of q have errors of second order in the 20 ms between samples.
    np.testing.assert_allclose(Reference(ROBOT, (t, q)).v[5:-5, 2], 0.2, atol=1e-3)
    with pytest.raises(FileError, match="missing"):
        Reference(ROBOT, tmp_path / "missing.npz")
    with pytest.raises(ArgumentError, match="times t and configurations q"):
        Reference(ROBOT, 3.0)
    with pytest.raises(ShapeError):
        Reference(robots.humanoid(), run)
    with pytest.raises(ArgumentError, match="less than a control step"):
        Reference(ROBOT, (t[:2] * 0.1, q[:2], v[:2]))
    with pytest.raises(ArgumentError, match=r"every 0\.02 s"):
        environments.tracking(ROBOT, run, substeps=2)


def test_episodes_start_in_states_of_the_reference():
    reference = Reference(ROBOT, walk(), is_cyclic=True)
    task = environments.tracking(ROBOT, reference, variations={"ground.friction": environments.Range(0.8, 0.8)})
    env = environments.make(task, num_envs=100)
    env.reset(seed=0)
    errors = abs(env.q[:, None] - reference.q[None])
    errors[..., 6] = 0.0  # the height is lifted out of the ground
    nearest = errors.max(axis=2)
    assert nearest.min(axis=1).max() < 1e-12
    assert len(np.unique(nearest.argmin(axis=1))) > 40  # of 59 samples
    phases = environments.make(task, num_envs=100).reset(seed=0)[0]
    angle = 2.0 * np.pi * nearest.argmin(axis=1) / len(reference)
    at = task.robot.nj
    np.testing.assert_allclose(phases[:, -at - 2], np.cos(angle), atol=1e-6)


@pytest.mark.slow
def test_locomotion_is_a_reference_that_its_own_robot_follows():
    reference = Reference.of_locomotion(ROBOT, duration=2.0)
    assert reference.q[-1, 4] - reference.q[0, 4] > 0.2
    assert gaps(environments.velocity(ROBOT), reference.q).min() > -5e-3


def of_nothing(s):
    """Fail: states have no such attribute."""
    return s.nothing


@pytest.mark.parametrize(
    ("part", "field"),
    [
        (
            "observation actor.mine",
            {"observations": {"actor": {"mine": environments.Observation(of_nothing)}}},
        ),
        ("termination mine", {"terminations": {"mine": of_nothing}}),
        ("memory mine", {"memory": {"mine": environments.Memory(lambda s: 0.0, of_nothing)}}),
        ("start of memory mine", {"memory": {"mine": environments.Memory(of_nothing, lambda s: 0.0)}}),
        ("command", {"command": environments.Command(of_nothing)}),
        ("start", {"start": of_nothing}),
    ],
)
def test_errors_name_the_part_of_the_task(part, field):
    task = environments.velocity(ROBOT, **field)
    with pytest.raises(AttributeError, match="nothing") as raised:
        environments.make(task, num_envs=2).reset(seed=0)
    assert f"in the {part} of the task" in " ".join(raised.value.__notes__)


def test_a_policy_of_torques_moves_a_pendulum_as_its_environment():
    first = np.array([2.5, 0.0])
    start = environments.Memory(lambda s: first, lambda s: first, first)  # the pendulum starts in this memory
    # Steps of 10 ms, at which a run is also sampled.
    task = environments.pendulum(memory={"before": start}, time_step=0.01, substeps=5)
    env = environments.make(task, num_envs=2)
    env.reset(seed=0)
    for _ in range(20):
        env.step(np.full((2, 1), 0.4))
    law = controllers.Policy(lambda seen: np.array([0.4]), task)
    run = legged.simulate(
        task.robot,
        law,
        until=1.0,
        integrator=legged.TimeStepping(task.time_step),
        q=np.array([2.5]),
        v=np.zeros(1),
        ground=task.ground,
    )
    np.testing.assert_allclose(env.q[0], run.q[-1], atol=1e-9)


def test_terms_of_a_base_are_refused_for_a_fixed_one():
    task = environments.acrobot(rewards={"tilt": environments.Reward(environments.terms.tilt, 1.0)})
    with pytest.raises(DefinitionError, match="no floating base") as raised:
        environments.make(task, num_envs=2).reset(seed=0)
    assert "reward tilt" in " ".join(raised.value.__notes__)


def test_arguments_of_a_task_go_through_make():
    env = environments.make("velocity", ROBOT, num_envs=2, episode=4.0, threads=1)
    assert env.task.episode == 4.0
    assert environments.make("tracking", ROBOT, num_envs=2, reference=walk()).task.rewards["motion_feet"].weight == 0.15
    with pytest.raises(UnknownNameError, match="episod"):
        environments.make("velocity", ROBOT, num_envs=2, episod=4.0)
    with pytest.raises(ArgumentError, match="needs the robot"):
        environments.make("jumping")
    with pytest.raises(UnknownNameError, match="task"):
        environments.make("jump", ROBOT)
    with pytest.raises(DefinitionError, match="without disturbance"):
        environments.pendulum(disturbance=environments.Disturbance())


@pytest.mark.slow
@pytest.mark.parametrize("speed", [0.4, 0.8])
def test_a_trot_earns_more_than_standing(speed):
    """Penalties take less than a tenth of what a trot of `Locomotion` gains: a learner has a reason to walk."""
    task = environments.velocity(ROBOT, gait_period=None)  # the phases of the law are not those of a clock
    law = controllers.Locomotion("trot", command=controllers.Command(speed))
    run = legged.simulate(ROBOT, law, ground=task.ground, until=3.0, integrator=legged.TimeStepping(0.002))
    rows = [run.at(t) for t in np.arange(1.5, 2.99, task.period)]
    points = [(contact.link, contact.position) for contact in ROBOT.contacts]
    actions = (run.tau[:, 6:] + task.kd * run.v[:, 6:]) / task.kp + run.q[:, 7:] - task.posture
    actions /= task.action_scale
    air, before, earned = np.zeros(4), rows[0], dict.fromkeys(task.rewards, 0.0)
    for i in rows[1:]:
        positions, velocities = point_motion(ROBOT, run.q[i], run.v[i], points)
        on = (np.linalg.norm(run.contacts.forces[i], axis=1) > 1.0).astype(float)
        s = state(
            task,
            environments.Feet(positions, velocities, run.contacts.forces[i], on),
            q=run.q[i],
            v=run.v[i],
            v_before=run.v[before],
            action=actions[i],
            last_action=actions[before],
            command=np.array([speed, 0.0, 0.0]),
            memory={"air_time": air},
        )
        s.__dict__["torques"] = run.tau[i, 6:]
        for name, reward in task.rewards.items():
            earned[name] += reward.weight * reward.function(s) / (len(rows) - 1)
        air, before = environments.terms.air_time(s), i
    linear, yaw = (task.rewards[name].weight for name in ("track_linear_velocity", "track_yaw_rate"))
    lost = task.rewards["linear_velocity_error"].weight * speed
    standing = linear * np.exp(-((speed / 0.25) ** 2)) + yaw + task.rewards["alive"].weight + lost
    gain = sum(earned.values()) - standing
    errors = ("linear_velocity_error", "yaw_rate_error")
    costs = -sum(value for name, value in earned.items() if value < 0.0 and name not in errors)
    assert gain > 0.4 and costs < 0.2 * gain and earned["feet_air_time"] > 0.05
