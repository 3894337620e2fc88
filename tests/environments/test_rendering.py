"""Pictures and recordings of environments: they show the motion, and replays hold each episode."""

import numpy as np
import pytest

import robots
from legged import environments
from legged.errors import ArgumentError, UnknownNameError

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")
ROBOT = robots.spatial_quadruped()
PERIOD = 0.02  # [s]


def zeros(count):
    return np.zeros((count, ROBOT.nj), np.float32)


@pytest.mark.parametrize("name", ["velocity", "rough"])
def test_pictures_show_the_robots_and_move_with_them(name):
    env = environments.make(name, ROBOT, num_envs=3, render_mode="rgb_array", rendered=[0, 2])
    env.reset(seed=0)
    first = env.render()
    assert len(first) == 2 and all(p.shape == (384, 512, 3) and p.dtype == np.uint8 for p in first)
    assert all(len(np.unique(p.reshape(-1, 3), axis=0)) > 10 for p in first)  # colored lines on white
    env.step(zeros(3))
    assert all((a != b).any() for a, b in zip(first, env.render(), strict=True))
    assert len(environments.make(name, ROBOT, num_envs=3, render_mode="rgb_array")._rendered) == 3


def test_render_modes_are_those_of_gymnasium():
    env = environments.make("velocity", ROBOT, num_envs=2)
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match="render_mode"):
        env.render()
    with pytest.raises(UnknownNameError, match="rgb_array"):
        environments.make("velocity", ROBOT, num_envs=2, render_mode="rgb")
    with pytest.raises(ArgumentError, match="rendered"):
        environments.make("velocity", ROBOT, num_envs=2, render_mode="rgb_array", rendered=[2])
    assert env.metadata["render_modes"] == ["rgb_array", "human"] and env.metadata["render_fps"] == 50


def test_the_viewer_shows_each_control_step():
    pytest.importorskip("viser", reason="viser, of the extra view, is not installed")
    env = environments.make("velocity", ROBOT, render_mode="human")
    env.reset(seed=0)
    actor = env.many._pictures._view.actor
    before = actor._last.positions.copy()
    env.step(np.ones(ROBOT.nj))
    assert env.render() is None and abs(actor._last.positions - before).max() > 0.0
    np.testing.assert_allclose(actor._last.base[0], env.many.q[0, 4:7], atol=1e-12)
    env.close()


def test_a_recording_has_a_run_for_each_episode(tmp_path):
    env = environments.make(environments.velocity(ROBOT, episode=0.1), num_envs=3)  # five control steps
    env.reset(seed=0)
    env.step(zeros(3))
    seen = [env.q[2]]
    with env.record([0, 2]) as recording:
        for _ in range(4):
            env.step(zeros(3))
            seen.append(env.q[2])  # the last one belongs to the next episode
        env.step(zeros(3))
    env.step(zeros(3))  # not recorded any more
    assert recording.names == ["robot 0, episode 1", "robot 2, episode 1", "robot 0, episode 2", "robot 2, episode 2"]
    lengths = [len(run) for run in recording.runs]
    assert lengths == [5, 5, 2, 2]  # the start of a run, and its control steps
    whole = recording.runs[1]
    np.testing.assert_allclose(whole.times, PERIOD * np.arange(5), atol=1e-15)
    np.testing.assert_allclose(whole.q[:4], seen[:4], atol=1e-15)  # quaternions are normalized again
    np.testing.assert_allclose(recording.runs[3].q[0], seen[4], atol=1e-15)
    assert abs(whole.q[4, 4:6] - seen[4][4:6]).max() > 1e-3  # the new episode starts elsewhere
    page = recording.save_html(tmp_path / "walk")
    assert page.suffix == ".html" and "robot 2, episode 2" in page.read_text()
    with pytest.raises(ArgumentError, match="ended before"):
        recording.stop()
    with pytest.raises(ArgumentError, match="reset"):
        environments.make("velocity", ROBOT, num_envs=2).record()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_environment_of_one_robot_is_recorded_until_the_end(dtype):
    env = environments.make(environments.velocity(ROBOT, episode=0.1), dtype=dtype)
    env.reset(seed=0)
    recording = env.record()
    for _ in range(5):
        *_, over, _ = env.step(np.zeros(ROBOT.nj))
    assert over
    env.reset()
    recording.stop()
    assert [len(run) for run in recording.runs] == [6, 1]


@pytest.mark.parametrize("count", [None, 3])
def test_videos_are_recorded_by_the_wrappers_of_gymnasium(tmp_path, count):
    pytest.importorskip("moviepy", reason="moviepy is not installed")
    from gymnasium.wrappers import RecordVideo
    from gymnasium.wrappers.vector import RecordVideo as RecordVideos

    wrapper = RecordVideo if count is None else RecordVideos
    options = {} if count is None else {"autoreset": "next_step"}
    env = environments.make("velocity", ROBOT, num_envs=count, render_mode="rgb_array", **options)
    env = wrapper(env, str(tmp_path / "videos"), step_trigger=lambda step: step == 0, video_length=3)
    env.reset(seed=0)
    for _ in range(4):
        env.step(zeros(count or 1).squeeze())
    env.close()
    assert len(list((tmp_path / "videos").glob("*.mp4"))) == 1
