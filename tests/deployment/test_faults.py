"""Loops on a robot whose clock jumps, whose measurements repeat, and whose readings are not finite, end in damping."""

import numpy as np
import pytest

from legged import deployment, estimation

NJ = 3


class FaultyRobot:
    """A robot at rest with a clock of its own; a function may change the time of its clock or a measurement."""

    def __init__(self, clock=lambda t: t, change=lambda measured: measured):
        self.time, self.written, self.slept, self._clock, self._change = 0.0, [], 0.0, clock, change

    def read(self):
        force, zero = np.array([0.0, 0.0, 9.81]), np.zeros((3, NJ))
        reading = estimation.Reading(np.zeros(3), force, *zero, np.zeros((4, 3)), np.ones(4))
        return self._change(deployment.Measurement(self.time, reading, np.zeros(0)))

    def write(self, command):
        self.written.append(command)

    def clock(self):
        return self._clock(self.time)

    def sleep_until(self, time):
        rest = max(0.0, time - self.clock())
        self.slept += rest
        self.time += rest

    def close(self):
        pass


def operated(robot):
    """Return the operation of a loop with torques of one, and whether its last commands damp the joints."""

    def law(t, memory, reading, command):
        return memory, np.ones(NJ), np.zeros(0)

    operation = deployment.Runner(robot, law, np.zeros(1), watchdog=0.05).run(0.5)
    last = robot.written[-1]
    return operation, not last.torques.any() and (last.kd == 2.0).all()


def test_a_clock_that_goes_back_ends_in_damping_without_a_wait():
    robot = FaultyRobot(clock=lambda t: t - 3600.0 if t > 0.1 else t)
    operation, damped = operated(robot)
    assert "the clock of the robot went back by 3600" in operation.reason and damped
    assert robot.slept < 0.3  # of the loop until then, and of the damping commands


def test_a_clock_that_jumps_ahead_ends_in_damping():
    operation, damped = operated(FaultyRobot(clock=lambda t: t + 3600.0 if t > 0.1 else t))
    assert "the loop paused for" in operation.reason and damped


@pytest.mark.parametrize("time", [0.1, 0.05, -1e9, np.nan])
def test_a_measurement_that_is_not_later_is_no_new_one(time):
    """Such as those of a sensor board that has stopped and whose last message is read again."""
    robot = FaultyRobot(change=lambda m: m._replace(time=m.time if m.time < 0.1 else time))
    operation, damped = operated(robot)
    assert "no measurement for" in operation.reason and damped
    assert operation.log.times[-1] < 0.101


def test_measurements_in_another_order_are_left_out():
    robot = FaultyRobot()
    early = iter(np.tile([0.0, 0.0, 0.004], 1000))  # every third measurement is older than the one before
    robot._change = lambda m: m._replace(time=m.time - next(early))
    operation, _ = operated(robot)
    assert not operation.stopped and (np.diff(operation.log.times) > 0.0).all()
    assert 0.3 < operation.silent / 250 < 0.36


@pytest.mark.parametrize("name", estimation.Reading._fields)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_reading_that_is_not_finite_is_named(name, value):
    def damaged(measured):
        array = getattr(measured.reading, name).copy()
        array.flat[-1] = value
        return (
            measured._replace(reading=measured.reading._replace(**{name: array})) if measured.time > 0.1 else measured
        )

    robot = FaultyRobot(change=damaged)
    operation, damped = operated(robot)
    assert operation.reason == f"the reading {name!r} is not finite" and damped
    assert np.isfinite([command.flat() for command in robot.written]).all()
