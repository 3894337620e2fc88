"""The viewer: what it sends for runs, robots and simulations, its controls, and its errors."""

import builtins
import time

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import ArgumentError, LeggedError, MissingError, UnknownNameError
from legged.ground import paper_ground
from legged.rotations import quaternion_matrix
from legged.simulation import Rollouts
from legged.viewer.motion import quaternions

pytest.importorskip("viser", reason="viser, of the extra view, is not installed")


@pytest.fixture
def show():
    """Open viewers without their own motion, and stop them after the test."""
    opened = []

    def show(what, **options):
        opened.append(legged.view(what, port=0, wait=False, **options))
        return opened[-1]

    yield show
    for viewer in opened:
        viewer.stop()


def wait(condition):
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def parts(viewer, actor):
    return {name: handle for name, handle in viewer.server.scene._handle_from_node_name.items() if actor in name}


def test_run_plays_and_stops_at_its_end(show, trot):
    viewer = show(trot)
    timeline, frame = viewer.content, parts(viewer, "/run 0/")["/world/run 0/0"]
    timeline.loop.value, timeline.playing.value = False, True
    wait(lambda: not timeline.playing.value)
    assert timeline.time == pytest.approx(0.6)
    wait(lambda: frame.position[0] == pytest.approx(trot.base.position[-1, 0], abs=1e-6))
    timeline.step(-1)
    wait(lambda: frame.position[0] == pytest.approx(trot.base.position[-2, 0], abs=1e-6))


def test_the_world_stands_still_while_the_robot_is_not_followed(show, trot):
    """The displacement of the world stays when the box "follow the robot" is unchecked, and continues from there."""
    viewer = show(trot)
    viewer.camera(np.zeros(3), 1.0)
    viewer.follow(np.array([2.0, 1.0, 0.5]))
    np.testing.assert_array_equal(viewer.displacement, (-2.0, -1.0, 0.0))
    viewer._follow.value = False
    viewer.follow(np.array([3.0, 1.0, 0.5]))
    np.testing.assert_array_equal(viewer.displacement, (-2.0, -1.0, 0.0))
    viewer._follow.value = True
    viewer.follow(np.array([3.5, 1.0, 0.5]))
    np.testing.assert_array_equal(viewer.displacement, (-2.5, -1.0, 0.0))


def test_runs_rollouts_and_files_are_shown(show, trot, drop, tmp_path):
    pair = show([trot, trot], beside=2.0)
    assert parts(pair, "/run 1")["/world/run 1"].position.tolist() == [0.0, -2.0, 0.0]
    grounds = [parts(pair, f"/ground {k}")[f"/world/ground {k}"].position.tolist() for k in (1, 2)]
    assert grounds == [[0.0, 0.0, 0.0], [0.0, -2.0, 0.0]]
    fan = show(legged.rollout(robots.planar_hopper(), until=0.1, vary={"robot.trunk.mass": [4.0, 5.0, 6.0]}))
    assert len(parts(fan, "/path ")) == 3 and "/world/member 2" in parts(fan, "/member 2")
    runs = legged.rollout(robots.planar_hopper(), until=0.1, vary={"robot.trunk.mass": [4.0, 5.0]})
    fan = show(Rollouts.load(runs.save(tmp_path / "runs")))
    assert len(parts(fan, "/path ")) == 2 and "/world/member 1" in parts(fan, "/member 1")
    log = show(legged.Run.from_motion(robots.spatial_quadruped(), trot.times, trot.q))
    log.content.seek(0.5)
    wait(lambda: np.allclose(parts(log, "/run 0")["/world/run 0/0"].position, trot.base.position[trot.at(0.5)]))
    saved = show(drop.save(tmp_path / "drop"))
    assert "/world/run 0/obstacle 0" in parts(saved, "/run 0")
    assert np.allclose(parts(saved, "/run 0")["/world/run 0/1"].position, drop.bodies.q[0, 0, 4:])


def test_sliders_and_handles_move_a_robot_within_its_limits(show):
    poser = show(robots.spatial_quadruped()).content
    assert list(poser.sliders)[:3] == ["leg1_hip[0]", "leg1_hip[1]", "leg1_knee"] and len(poser.sliders) == 12
    name = next(iter(poser.handles))
    wanted = poser._points([name])[0] + np.array([0.05, 0.02, 0.05])
    assert poser.drag(name, wanted)
    assert poser._points([name])[0] == pytest.approx(wanted, abs=2e-4)
    assert np.allclose(poser.handles[name].position, wanted, atol=2e-4)
    others = [contact for contact in poser.handles if contact != name]
    before = poser._points(others)
    assert not poser.drag(name, wanted + np.array([0.0, 0.0, 5.0]))  # out of reach
    assert np.allclose(poser._points(others), before, atol=1e-9)
    joints = np.concatenate([poser.q[joint.q] for joint in poser.robot.joints])
    assert [slider.value for slider in poser.sliders.values()] == pytest.approx(joints.tolist(), abs=1e-9)


def test_refused_calls_of_what_is_shown_change_nothing(show, trot):
    robot = robots.spatial_quadruped()
    poser, timeline = show(robot).content, show(trot).content
    live = show(legged.Simulation(robots.chain(1))).content
    live.pause.value, timeline.playing.value = True, True
    foot, link = next(iter(poser.handles)), live.simulation.robot.links[1].name
    for call in (
        lambda: poser.move(np.full(robot.nq, np.nan)),
        lambda: poser.move(np.zeros(3)),
        lambda: poser.drag("no such foot", np.zeros(3)),
        lambda: poser.drag(foot, [0.0, np.nan, 0.0]),
        lambda: live.push("no such link", np.ones(3)),
        lambda: live.push(link, [np.inf, 0.0, 0.0]),
        lambda: live.push(link, [1.0, 0.0]),
        lambda: live.change("robot.gravity", np.nan),
        lambda: timeline.seek(np.nan),
        lambda: timeline.step("one"),
    ):
        states = poser.q.copy(), live.simulation.q, live.simulation.v
        with pytest.raises(LeggedError):
            call()
        assert all(map(np.array_equal, (poser.q, live.simulation.q, live.simulation.v), states))
        assert timeline.playing.value and np.isfinite(timeline.time)


def test_simulation_goes_on_pauses_steps_and_resets(show):
    robot = robots.spatial_quadruped()
    law = controllers.ComputedTorque(controllers.Trot(period=1.0, stride=0.3, clearance=0.08))
    simulation = legged.Simulation(robot, law, ground=paper_ground(robot))
    live = show(simulation).content
    wait(lambda: simulation.t > 0.1)
    live.pause.value = True
    time.sleep(0.2)  # [s], more than a picture takes
    t = simulation.t
    time.sleep(0.1)
    assert simulation.t == t
    live.step()
    assert simulation.t == pytest.approx(t + simulation.time_step)
    live.reset()
    assert simulation.t == 0.0


@pytest.mark.parametrize("num", [None, 2])
def test_a_push_acts_through_the_next_time_step_and_once(show, num):
    """In flight the momentum of the links gains the impulses of all pushes and of gravity; later steps gain no more."""
    robot = robots.spatial_quadruped()
    simulation = legged.Simulation(robot, num=num)
    live = show(simulation).content
    live.pause.value = True
    time.sleep(0.2)  # [s], more than a picture takes
    names, h = [link.name for link in robot.links], simulation.time_step
    with pytest.raises(UnknownNameError, match="no link named 'tail'"):
        live.push("tail", (0.0, 1.0, 0.0))

    def momentum():
        q, v = np.atleast_2d(simulation.q), np.atleast_2d(simulation.v)
        return np.array([legged.momentum(robot, *state)[3:] for state in zip(q, v, strict=True)])

    for impulse in (np.array([0.0, 2.0, 0.0]), np.zeros(3)):
        before = momentum()
        if impulse.any():
            live.push(names[0], impulse / 2.0)
            live.push(names[-1], impulse / 2.0)
            assert np.array_equal(momentum(), before)
        live.step()
        expected = impulse + robot.mass * robot.gravity * h
        assert np.abs(momentum() - before - expected).max() < 1e-3  # [N s], error of a first-order step of 1 ms
    live.push(names[0], (0.0, 2.0, 0.0))
    live.reset()
    before = momentum()
    live.step()
    assert np.abs(momentum() - before - robot.mass * robot.gravity * h).max() < 1e-9  # reset forgets the push


def test_planned_footsteps_are_recorded_and_shown(show, planned, tmp_path):
    assert planned.footsteps[:, 0, 0] == pytest.approx(0.5 + planned.times, abs=1e-9)
    assert np.array_equal(legged.Run.load(planned.save(tmp_path / "run")).footsteps, planned.footsteps, equal_nan=True)
    viewer = show(planned)
    viewer.content.seek(0.05)
    viewer.overlays["footsteps"].value = True
    wait(lambda: parts(viewer, "/footsteps"))
    (places,) = parts(viewer, "/footsteps").values()
    wait(lambda: places.points.tolist() == [pytest.approx([0.55, 0.1, 0.0], abs=1e-3)])


def test_commands_have_sliders(show):
    def law(t, q, v, wrenches, command):
        return 10.0 * (command - q[0:1]) - v

    simulation = legged.Simulation(robots.chain(1), law)
    live = show(simulation, commands={"angle": (-1.0, 1.0, 0.5)}).content
    wait(lambda: simulation.t > 0.05)
    live._set_command(0, -0.5)
    assert live.command.tolist() == [-0.5]


def test_gains_and_the_controller_change_while_a_simulation_goes_on(show):
    gait = controllers.Trot(period=1.0, stride=0.3, clearance=0.08)
    robot = robots.spatial_quadruped()
    simulation = legged.Simulation(robot, controllers.FeedForward(gait, kp=49.0, kd=14.0), ground=paper_ground(robot))
    other = controllers.ComputedTorque(gait)
    live = show(simulation, controllers={"feed-forward": simulation.loop.controller, "computed torque": other}).content
    assert {"controller.kp", "controller.kd", "gait.stride"} <= set(live.gains)
    wait(lambda: simulation.t > 0.02)
    live.gains["controller.kp"].value = 60.0
    wait(lambda: simulation.parameters["controller.kp"] == 60.0)
    t = simulation.t
    wait(lambda: simulation.t > t + 0.02)
    live.change_controller(other)
    assert simulation.t > t and "controller.kd" not in simulation.parameters
    live.pause.value = True
    with pytest.raises(UnknownNameError, match="named 'kq'"):
        live.change("controller.kq", 1.0)


def test_quaternions_give_the_rotations_back():
    rng = np.random.default_rng(3)
    p = rng.normal(size=(200, 4))
    p[:4] = np.eye(4)
    R = np.array([quaternion_matrix(x / np.linalg.norm(x)) for x in p])
    assert np.array([quaternion_matrix(x) for x in quaternions(R)]) == pytest.approx(R, abs=1e-14)


def test_wrong_arguments_and_missing_libraries_are_named(monkeypatch, trot):
    with pytest.raises(ArgumentError, match="view shows a Run, runs, Rollouts, a Robot, a Simulation or a file, got 3"):
        legged.view(3)
    plain = builtins.__import__

    def without_viser(name, *arguments, **options):
        if name == "viser":
            raise ImportError(name)
        return plain(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_viser)
    with pytest.raises(MissingError, match=r"pip install 'legged\[view\]'"):
        legged.view(trot)
