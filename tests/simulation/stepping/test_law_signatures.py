"""Every signature of a law through every function that simulates, also where a long step examines its reaction."""

import warnings

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import ArgumentError, DefinitionError
from tests.simulation.stepping.hopper_laws import SPRINGS, servo, standing

TARGETS = np.array([0.1, 0.02])  # [rad], [m]
EQUAL = 1e-9  # relative, of steps in machine code and in Python, over two steps


def positional(t, q, v, wrenches, command, /):
    return servo(t, q, v, wrenches, command)


def optional(t, q, v, wrenches, command=TARGETS):
    return servo(t, q, v, wrenches, command)


class Law:
    def torque(self, t, phase, q, v, wrenches, memory, command):
        return servo(t, q, v, wrenches, command)


class LateKeyword:
    def torque(self, t, phase, q, v, wrenches, memory, gain=1.0, *, command):
        return gain * servo(t, q, v, wrenches, command)


class OfMemory:
    """A law whose memory alone depends on the command."""

    def start(self, robot, ground, q, v):
        return TARGETS.copy()

    def torque(self, t, phase, q, v, wrenches, memory):
        return servo(t, q, v, wrenches, memory)


class Rate(OfMemory):
    def rate(self, t, phase, q, v, wrenches, memory, command):
        return 1e3 * (command - memory)


class Update(OfMemory):
    def update(self, t, phase, q, v, wrenches, memory, *, command):
        return command


class Start:
    def start(self, robot, ground, q, v):
        return Law(), np.zeros(0)


NEEDS = {
    "function": servo,
    "positional": positional,
    "torque": Law(),
    "after a default": LateKeyword(),
    "rate": Rate(),
    "update": Update(),
    "start": Start(),
    "hold": controllers.ZeroOrderHold(servo, 1000.0),
}
MAY_TAKE = {"default": optional, "hold of a default": controllers.ZeroOrderHold(optional, 1000.0)}


def options(step):
    robot = robots.planar_hopper()
    q = robot.neutral()
    q[2] = robot.neutral()[2] + 0.05  # [m]
    return robot, {"ground": SPRINGS, "q": q, "integrator": legged.SemiImplicitEuler(step), "fall": False}


def quiet(function, *arguments, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the long step is the point
        return function(*arguments, **named)


def stepped(law, compiled, step, *command):
    robot, given = options(step)
    sim = quiet(legged.Simulation, robot, law, compiled=compiled, **given)
    quiet(sim.step, *command, n=2)
    return np.concatenate([sim.q, sim.v])


@pytest.mark.parametrize("step", [1e-4, 2e-2])
@pytest.mark.parametrize("name", [*NEEDS, *MAY_TAKE])
def test_a_simulation_gives_the_command_to_every_signature(name, step):
    law = (NEEDS | MAY_TAKE)[name]
    compiled, plain = (stepped(law, how, step, TARGETS) for how in (True, False))
    assert np.abs(compiled - plain).max() < EQUAL * (1.0 + np.abs(plain).max())
    if name in ("function", "positional", "torque", "start", "default", "update"):
        assert np.array_equal(compiled, stepped(servo, True, step, TARGETS))
    if name in NEEDS:
        assert np.abs(compiled - stepped(law, True, step, 2.0 * TARGETS)).max() > 1e-6


@pytest.mark.parametrize("step", [1e-4, 2e-2])
@pytest.mark.parametrize("door", [legged.simulate, legged.rollout])
@pytest.mark.parametrize("name", [*NEEDS, *MAY_TAKE])
def test_runs_without_commands_refuse_a_law_that_needs_one_and_take_a_default(name, door, step):
    robot, given = options(step)
    if name in MAY_TAKE:
        run = quiet(door, robot, MAY_TAKE[name], until=2 * step, sample=2 * step, **given)
        if name == "default":
            q, v = (np.atleast_3d(x)[..., -1, :] if x.ndim == 3 else x[-1] for x in (run.q, run.v))
            assert np.array_equal(np.concatenate([q, v], axis=-1).ravel(), stepped(servo, True, step, TARGETS))
        return
    with pytest.raises((ArgumentError, DefinitionError), match=r"command|a function of 4 arguments"):
        quiet(door, robot, NEEDS[name], until=2 * step, **given)


@pytest.mark.parametrize("name", [*NEEDS, *MAY_TAKE])
def test_a_controller_changes_to_every_signature(name):
    robot, given = options(2e-2)
    sim = quiet(legged.Simulation, robot, standing, **given)
    quiet(sim.step)
    quiet(sim.change_controller, (NEEDS | MAY_TAKE)[name])
    quiet(sim.step, TARGETS)
    assert np.isfinite(sim.q).all()


def test_the_error_of_an_object_that_is_no_law_names_the_missing_method():
    class Motor:
        def voltage(self):
            return 0.0

    with pytest.raises(ArgumentError, match=r"object with torque\(...\).*which has no 'torque'"):
        legged.simulate(robots.chain(1), Motor(), until=0.01)
