"""Commands and parameters that change while a loop runs, and what happens when their source is lost."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from deployment.test_loops import FEET, SENSORS

import controllers
import robots
from legged import deployment, estimation
from legged.errors import DefinitionError, NotFiniteError, ShapeError, UnknownNameError


class Pygame:
    """Events and axes as those of pygame, from a list; each entry is one round of the loop that reads the gamepad."""

    JOYDEVICEREMOVED, JOYDEVICEADDED, QUIT = 1, 2, 3

    def __init__(self, rounds, axis):
        self.rounds, self.axis, self.seen = iter(rounds), axis, list[float]()
        self.live: Any = None
        self.event = SimpleNamespace(get=lambda: next(self.rounds))
        self.joystick = SimpleNamespace(get_count=lambda: 1, Joystick=self.pad)
        self.time = SimpleNamespace(wait=lambda ms: self.seen.append(float(self.live(0.0)[0])))

    def init(self):
        """Do nothing."""

    def pad(self, index):
        """Return a gamepad whose forward axis has a constant value."""
        axes = [0.0, -self.axis, 0.0, 0.0]
        return SimpleNamespace(get_instance_id=lambda: index + 7, get_axis=axes.__getitem__, get_button=lambda i: False)


def watched(monkeypatch, rounds):
    """Return (velocities after each round, notices) of a gamepad that is read until its events end in an exception."""
    notices, pygame = [], Pygame(rounds, 0.8)
    pygame.live = deployment.LiveVelocity(speed=0.5, notice=notices.append)
    monkeypatch.setitem(sys.modules, "pygame", pygame)
    pygame.live.watch_gamepad().join(10.0)
    return [*pygame.seen, float(pygame.live(0.0)[0])], notices


def test_an_unplugged_gamepad_returns_to_zero_and_a_connected_one_takes_over(monkeypatch):
    removed, other = (SimpleNamespace(type=1, instance_id=k) for k in (7, 99))
    added = SimpleNamespace(type=2, device_index=0)
    velocities, notices = watched(monkeypatch, [[], [other], [removed], [], [added], [SimpleNamespace(type=3)]])
    assert velocities == [0.4, 0.4, 0.0, 0.0, 0.4, 0.0]
    assert [text.split(":")[0] for text in notices] == [
        "the gamepad was unplugged",
        "a gamepad was connected",
        "the gamepad is not read any more",
    ]


def test_a_driver_that_fails_returns_to_zero(monkeypatch):
    velocities, notices = watched(monkeypatch, [[], [SimpleNamespace()]])  # an event without type
    assert velocities == [0.4, 0.0] and "failed (AttributeError" in notices[0]


def test_an_input_without_terminal_is_reported():
    notices = []
    live = deployment.LiveVelocity(notice=notices.append)
    live.press("w")
    live.watch_keyboard().join(10.0)
    assert "the keyboard is not available" in notices[0] and not live(0.0).any()


@pytest.fixture(scope="module")
def standing():
    """Return (robot, loop over the estimate with servos, names of its parameters)."""
    robot = robots.spatial_quadruped()
    law = controllers.JointPD(controllers.suited(controllers.Stand, robot), kp=300.0, kd=10.0)
    return robot, controllers.Estimated(law, estimation.InvariantFilter(feet=FEET), SENSORS), ("law.kp", "law.kd")


def test_parameters_change_while_the_loop_runs(standing):
    robot, loop, names = standing
    live = loop.live_parameters(robot, names)
    kernel, memory = loop.kernel(robot, parameters=names)
    q, _ = loop.initial_state(robot)

    def law(t, memory, reading, command, parameters):
        after, force, estimate, _ = kernel(t, memory, *reading, parameters)
        return after, force[6:], estimate

    interface = deployment.SimulatedRobot(robot, q, instruments=SENSORS)
    runner = deployment.Runner(interface, law, memory, parameters=live)
    new = np.linspace(200.0, 400.0, robot.nj)
    runner.change(
        command=lambda t: runner.change(parameters={"law.kp": new}) or np.zeros(0) if t > 0.049 else np.zeros(0)
    )
    log = runner.run(0.1).log
    assert np.array_equal(log.parameters[[0, -1], :12], [[300.0] * 12, new]) and (log.parameters[:, 12:] == 10.0).all()
    # The torques after the change are those of a loop that was defined with the new gains, from the same readings.
    changed = controllers.Estimated(controllers.JointPD(loop.law.gait, kp=new, kd=10.0), loop.estimator, SENSORS)
    other, own = changed.kernel(robot)
    parts = (log.gyro, log.specific_force, log.joints, log.joint_rates, log.torques, log.forces, log.contacts)
    torques = []
    for t, *reading in zip(log.times, *parts, strict=True):
        own, force, _, _ = other(t, own, *reading)
        torques.append(force[6:])
    late = log.parameters[:, 0] == 200.0
    assert 0 < late.sum() < len(late)
    assert np.allclose(log.commands[late, :12], np.array(torques)[late], rtol=1e-12, atol=1e-12)
    assert np.abs(log.commands[~late, :12] - np.array(torques)[~late]).max() > 0.1


def test_wrong_parameters_are_refused_without_effect(standing):
    robot, loop, _ = standing
    runner = deployment.Runner(
        deployment.SimulatedRobot(robot, loop.initial_state(robot)[0], instruments=SENSORS),
        lambda *arguments: None,
        np.zeros(1),
        parameters={"kp": np.full(12, 300.0), "height": 0.3},
    )
    for wrong, error in (
        ({"kq": 1.0}, UnknownNameError),
        ({"kp": np.ones(3)}, ShapeError),
        ({"height": np.nan}, NotFiniteError),
    ):
        with pytest.raises(error):
            runner.change(parameters={"kp": 200.0, **wrong})
    assert (runner.parameters["kp"] == 300.0).all() and runner.parameters["height"] == 0.3
    with pytest.raises(UnknownNameError, match="no part of JointPD named 'kq'"):
        loop.kernel(robot, parameters=["law.kq"])
    with pytest.raises(DefinitionError, match=r"'law\.gait' cannot change while a loop runs"):
        loop.live_parameters(robot, ["law.gait"])
