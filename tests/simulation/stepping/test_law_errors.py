"""Laws with wrong methods and results, and parameters of wrong ranks, at every function that simulates.

Each ends in an error of the toolkit that names the method or the parameter; an error that a law itself raises passes.
"""

import numpy as np
import pytest

import legged
import robots
from legged import environments, sweeps
from legged.errors import ArgumentError, DefinitionError, LeggedError, NotFiniteError, ShapeError
from tests.simulation.rollouts.test_declared_parameters import Policy, numbers

ROBOT = robots.planar_hopper()
STEP = 1e-3  # [s]
OPTIONS = {"integrator": legged.SemiImplicitEuler(STEP), "fall": False}
SAMPLES = {"number": np.array([1.0, 2.0])}


def law(**members):
    """Return an object without forces, with other members."""

    def torque(self, t, phase, q, v, wrenches, memory):
        return 0.0 * v

    return type("Law", (), {"torque": torque, **members})()


def memory(*numbers):
    return lambda self, robot, ground, q, v: np.array(numbers)


def state(result):
    """Return a method of time and state with a result."""
    return lambda self, t, phase, q, v, wrenches, memory: result


WRONG = {
    "torque must be callable as": law(torque=lambda self, t, q, v, w: v),
    "torque must be a method": law(torque=3),
    "got the class": Policy,
    "needs a method `torque`": type("Law", (), {"start": lambda self, robot, ground, q, v: None})(),
    "start must be callable as": law(start=lambda self, robot: None),
    "memory must hold real numbers, got text": law(start=lambda self, robot, ground, q, v: "abc"),
    r"memory must be \(n,\), got shape \(1, 2\)": law(start=memory([1.0, 2.0])),
    r"memory must be \(n,\), got shape \(\)": law(start=lambda self, robot, ground, q, v: 0.0),
    "memory must be finite": law(start=memory(np.nan)),
    "rate must be callable as": law(start=memory(0.0), rate=lambda self, t, q, v: q),
    r"rate must return an array \(1,\)": law(start=memory(0.0), rate=state(np.zeros(2))),
    "rate must return an array of numbers, got None": law(start=memory(0.0), rate=state(None)),
    r"update must return an array \(1,\)": law(start=memory(0.0), update=state(np.zeros(2))),
    r"update must return an array \(0,\)": law(update=state(np.zeros(2))),
    "switches must be a list of times": law(switches=lambda self, until: 3),
    "switches must increase": law(switches=lambda self, until: [2.0, 1.0]),
    "update_times must hold real numbers": law(update_times=lambda self, until: ["a"], update=state(np.zeros(0))),
    r"initial_state must return \(q, v\)": law(initial_state=lambda self, robot: 3),
    "initial_state must be callable as": law(initial_state=lambda self: None),
    "parameter_names must be names": law(parameter_names="kp"),
    "names 'kp', an attribute that the law has not": law(parameter_names=("kp",)),
    r"implicit_gains of a law must be a pair": law(implicit_gains=3),
    r"implicit_gains of a law must be arrays \(2,\)": law(implicit_gains=(np.zeros(7), np.zeros(7))),
    r"torque\(.*, command\)": law(takes_command=True),
    "must return .* got None": lambda t, q, v, wrenches: None,
    "must return .* got shape": lambda t, q, v, wrenches: [[0.0, 0.0]],
    r"must return .*0\.0, 1\.0": lambda t, q, v, wrenches: [[0.0], [0.0, 1.0]],
}
DOORS = {
    "simulate": lambda law: legged.simulate(ROBOT, law, until=2 * STEP, compiled=False, **OPTIONS),
    "rollout": lambda law: legged.rollout(
        ROBOT, law, until=2 * STEP, compiled=False, vary={"robot.trunk.mass": [4.0, 5.0]}, **OPTIONS
    ),
    "Simulation": lambda law: legged.Simulation(ROBOT, law, num=2, compiled=False, **OPTIONS).step(),
    "sweep": lambda law: sweeps.Setup(ROBOT, law, 2 * STEP, options=OPTIONS | {"compiled": False}).evaluate(
        {"robot.trunk.mass": np.array([4.0, 5.0])}
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_method_or_result_of_a_law_is_named(words, door):
    wanted = "needs a command|takes a command|function of 4 arguments" if "command" in words else words
    with pytest.raises(LeggedError, match=f"{words}|{wanted}|object with torque"):
        DOORS[door](WRONG[words])


def test_a_wrong_reference_or_plan_of_a_recorded_law_is_named():
    for words, members in {
        r"reference must return \(joint positions": {"reference": lambda self, t, phase: None},
        r"of Law.reference must be \(2,\), got shape \(7,\)": {"reference": lambda self, t, phase: [np.zeros(7)] * 3},
        "reference must be callable as": {"reference": lambda self, t: None},
        r"planned_footsteps must be \(n, 3\)": {"planned_footsteps": lambda self, memory: 3.0},
        r"commanded_velocity must be \(3,\)": {"commanded_velocity": lambda self, t, memory: 3.0},
        "commanded_velocity must be finite": {"commanded_velocity": lambda self, t, memory: np.full(3, np.nan)},
        "commanded_velocity must be callable as": {"commanded_velocity": lambda self, memory: np.zeros(3)},
    }.items():
        with pytest.raises((ArgumentError, ShapeError), match=words):
            DOORS["simulate"](law(**members))


def test_errors_of_a_law_itself_pass_unchanged():
    def fails(t, q, v, wrenches):
        return 1 / 0

    for door in DOORS.values():
        with pytest.raises(ZeroDivisionError):
            door(fails)


def test_a_step_without_command_takes_the_default_of_the_law():
    def servo(t, q, v, wrenches, command=(1.0, 2.0)):
        return np.asarray(command)

    ends = []
    for before, command in (((), ()), ((np.array([5.0, 6.0]),), ()), ((), (np.array([1.0, 2.0]),))):
        sim = legged.Simulation(ROBOT, servo, **OPTIONS)
        if before:
            sim.step(*before)
            sim.reset()
        sim.step(*command, n=3)
        ends.append(sim.v)
    rounding = 1e-12  # relative: constant commands are folded in another order
    assert np.array_equal(ends[0], ends[1]) and ends[0] == pytest.approx(ends[2], rel=rounding)
    assert np.abs(ends[0]).max() > 1e-3


@pytest.mark.parametrize("name", ["controller.scale", "controller.weights", "controller.mixed", "robot.trunk.mass"])
def test_parameters_of_a_wrong_rank_or_type_are_named_at_every_function(name):
    law = Policy(**numbers(0))
    sim = legged.Simulation(ROBOT, law, num=2, **OPTIONS)
    doors = [
        lambda vary: legged.rollout(ROBOT, law, until=STEP, vary=vary, **OPTIONS),
        lambda vary: legged.Simulation(ROBOT, law, vary=vary, **OPTIONS),
        sim.change,
        lambda vary: sweeps.Setup(ROBOT, law, STEP, options=OPTIONS, vary=lambda samples: vary).evaluate(SAMPLES),
        sweeps.Setup(ROBOT, law, STEP, options=OPTIONS).evaluate,
    ]
    wrong = [np.ones((2,) * 5), np.ones((2, 7)), np.ones((0, 3)), "abc", None, [[1.0], [1.0, 2.0]], {"a": 1}, [1j, 2.0]]
    for bad in (*wrong, [np.nan, 1.0], [10**400, 1], [object(), object()], (x for x in (1.0, 2.0))):
        for door in doors:
            with pytest.raises((ShapeError, NotFiniteError, ArgumentError, DefinitionError), match=name):
                door({name: bad})


def test_wrong_parts_of_tasks_are_named():
    task = environments.velocity(robots.spatial_quadruped())
    for name in ("kp", "height", "substeps", "time_step", "variations", "rewards", "observations", "robot", "command"):
        for bad in ("abc", np.ones((2, 2)), object(), 1j):
            with pytest.raises((ArgumentError, ShapeError, DefinitionError), match=name):
                task.changed(**{name: bad})
    for make in (lambda x: environments.Range(x, 1.0), lambda x: task.changed(variations={"trunk.mass": x})):
        for bad in ("abc", 1j, [1.0, 2.0]):
            with pytest.raises((ArgumentError, ShapeError), match=r"low|variations"):
                make(bad)
    with pytest.raises(ArgumentError, match="task must be a text or a"):
        environments.make(3)
