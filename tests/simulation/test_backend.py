"""Closed loops that cannot be compiled: the reason, a warning, and the error that `compiled=True` raises."""

import threading
import warnings

import numpy as np
import pytest

import legged
import robots
from legged.compiler import compile_ahead
from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm
from legged.errors import SimulationWarning, TraceError
from legged.ground import realistic_ground
from legged.simulation import BDF
from legged.simulation.backend import Backend
from legged.simulation.stepping import stepper

STEPS = legged.SemiImplicitEuler(1e-3)


def branching(t, q, v, wrenches):
    return -1.0 * v[3:] if q[3] > 0.0 else -2.0 * v[3:]


class Counting:
    """A law with a state in an attribute."""

    def __init__(self):
        self.calls = 0

    def torque(self, t, phase, q, v, wrenches, memory):
        self.calls += 1
        return 1e-3 * self.calls * v[3:]


class CountingRate:
    """A law whose rate of the memory has a state in an attribute, which no output shows."""

    def __init__(self):
        self.calls = 0

    def start(self, robot, ground, q, v):
        return np.zeros(1)

    def torque(self, t, phase, q, v, wrenches, memory):
        return -1e-3 * v[3:]

    def rate(self, t, phase, q, v, wrenches, memory):
        self.calls += 1
        return np.array([1e-3 * self.calls])


class Hill:
    """A terrain whose height takes numbers only."""

    def height(self, x, y):
        return np.where(np.asarray(x, dtype=float) > 1.0, 0.1, 0.0)

    def normal(self, x, y):
        return np.zeros((*np.shape(x), 3)) + np.array([0.0, 0.0, 1.0])


def simulated(robot, law, **options):
    run = legged.simulate(robot, law, until=0.003, **options)
    return run.backend, run.warnings


def rolled_out(robot, law, **options):
    runs = legged.rollout(robot, law, until=0.003, **options)
    return runs.backend, runs.warnings


def stepped(robot, law, **options):
    sim = legged.Simulation(robot, law, **options)
    for _ in range(3):
        sim.step()
    return sim.backend, sim.warnings


CASES = {
    "branch": (lambda: branching, "legged.where"),
    "state": (Counting, "keep"),
    "state of a rate": (CountingRate, "keep"),
    "own function": (lambda: lambda t, q, v, w: np.array([float(x) for x in -v[3:]]), "float"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("door", [simulated, rolled_out, stepped])
def test_a_law_that_cannot_be_compiled_warns_once_with_the_reason(door, case):
    robot, (law, words) = robots.planar_hopper(), CASES[case]
    options = {"q": robot.neutral(), "v": np.linspace(0.1, 0.5, robot.nv), "integrator": STEPS}
    with pytest.warns(SimulationWarning, match="runs in Python, which is slower") as caught:
        backend, texts = door(robot, law(), **options)
    (text,) = (str(warning.message) for warning in caught)
    assert words in text and texts == (text,) and words in backend
    with pytest.raises(TraceError) as error:
        door(robot, law(), compiled=True, **options)
    assert words in str(error.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert door(robot, law(), compiled=False, **options)[1] == ()


@pytest.mark.parametrize("law", [None, lambda t, q, v, w: -2.0 * v[6:]])
def test_recorded_accelerations_solve_the_equations_of_motion(law):
    """In flight, where the forces of the actuators are the only ones."""
    robot = robots.spatial_quadruped()
    v = np.linspace(-1.0, 1.0, robot.nv)
    run = legged.simulate(robot, law, until=0.01, v=v, integrator=STEPS, sample=0.002)
    expected = [legged.forward_dynamics(robot, *state) for state in zip(run.q, run.v, run.tau, strict=True)]
    np.testing.assert_allclose(run.vdot, expected, rtol=1e-11, atol=1e-11)


class Integral:
    """A controller with a memory, the integral of the base height, which changes at updates alone."""

    def start(self, robot, ground, q, v):
        return np.zeros(1)

    def torque(self, t, phase, q, v, wrenches, memory):
        return -2.0 * v[6:] * (1.0 + memory[0])

    def update(self, t, phase, q, v, wrenches, memory):
        return memory + 1e-3 * q[6]


class Rate(Integral):
    """The same with a rate of the memory."""

    def rate(self, t, phase, q, v, wrenches, memory):
        return q[6:7]


@pytest.mark.parametrize("law", [Integral(), Rate()])
def test_recorded_memories_and_torques_are_those_after_the_update(law):
    """Those of an update alone are found by a time step; the law in Python is evaluated at the samples themselves."""
    robot = robots.spatial_quadruped()
    options = {"v": np.linspace(-1.0, 1.0, robot.nv), "until": 0.02, "integrator": STEPS, "sample": 0.004}
    one, other = (legged.simulate(robot, law, compiled=compiled, **options) for compiled in (True, False))
    assert one.backend == "compiled closed loop" and len(one.memory) == 6
    for name in ("memory", "tau", "vdot"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("last", [np.inf, 0.008])
def test_outputs_of_states_without_a_next_one_are_those_after_the_update(monkeypatch, last):
    """Where a time step has no finite result, the update is evaluated with the outputs."""
    made, method, updated = [], Backend._method, stepper.CompiledEngine.updated

    def noted(backend, name, *arguments):
        made.extend([name] * backend.whole)  # not of the evaluation in Python with which it is compared
        return method(backend, name, *arguments)

    def failing(engine, t, phase, q, s):
        return updated(engine, t, phase, q, s if t < last else np.nan * s)

    monkeypatch.setattr(Backend, "_method", noted)
    monkeypatch.setattr(stepper.CompiledEngine, "updated", failing)
    run = legged.simulate(robots.spatial_quadruped(), Integral(), until=0.01, integrator=STEPS, sample=1e-3)
    assert run.backend == "compiled closed loop" and len(run.times) == 11
    assert ("observe" in made) == np.isfinite(last) and "observe_updated" in made
    np.testing.assert_allclose(np.diff(run.memory[:, 0]), 1e-3 * run.q[1:, 6], rtol=1e-9, atol=1e-18)


@pytest.mark.parametrize(
    ("law", "step"),
    [(None, STEPS), (Integral(), STEPS), (Rate(), STEPS), (None, BDF())],
    ids=["none", "Integral", "Rate", "variable"],
)
def test_a_short_run_compiles_no_rates_and_accelerations_that_nothing_needs(monkeypatch, law, step):
    """Only variable steps use the rate of the state."""
    made = []

    def noted(compiler):
        return lambda function, *arguments, **options: (
            made.append(function.__name__),
            compiler(function, *arguments, **options),
        )[1]

    monkeypatch.setattr("legged.simulation.backend.compile_function", noted(legged.compile))
    monkeypatch.setattr("legged.simulation.backend.compile_ahead", noted(compile_ahead))
    robot = robots.spatial_quadruped()
    run = legged.simulate(robot, law, until=0.02, integrator=step)
    names = ["observe_updated" if type(law) is Integral else "observe"]
    names += [] if step is STEPS else ["rate", "configuration"]
    assert run.warnings == () and made == names
    assert np.isfinite(run.vdot).all() and made == [*names, "motion_rate"]


@pytest.mark.parametrize("door", [simulated, rolled_out, stepped])
def test_a_ground_that_cannot_be_compiled_warns_with_the_reason(door):
    robot = robots.planar_hopper()
    flat = realistic_ground(robot)
    ground = type(flat)(flat.normal, flat.friction, Hill())
    q = robot.neutral()
    q[2] = 2.0  # [m], above the ground
    with pytest.warns(SimulationWarning, match="runs in Python, which is slower"):
        door(robot, None, ground=ground, q=q, integrator=STEPS)


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """The number of traced steps; the outputs of a run are compiled in a thread that waits for the first of them."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    monkeypatch.setattr(machine_code, "_has_free_processor", lambda: True)
    machine_code.unload()
    count, is_traced = [], threading.Event()
    compiled, made = llvm.machine_code, stepper.CompiledEngine.__init__

    def after_the_trace(*arguments):
        assert threading.current_thread() is threading.main_thread() or is_traced.wait(60.0)
        return compiled(*arguments)

    def counted(self, *arguments):
        count.append(1)
        is_traced.set()
        made(self, *arguments)

    monkeypatch.setattr(llvm, "machine_code", after_the_trace)
    monkeypatch.setattr(stepper.CompiledEngine, "__init__", counted)
    return count


def test_a_run_traces_its_step_once_and_while_its_outputs_are_compiled(traced):
    """In the other order the thread would wait in vain."""
    robot = robots.planar_hopper()
    run = legged.simulate(robot, q=robot.neutral(), until=2e-3, integrator=STEPS)
    assert run.backend == "compiled closed loop" and len(traced) == 1
    legged.simulate(robot, q=robot.neutral(), until=2e-3)
    assert len(traced) == 1  # variable steps are not compiled


def test_a_law_with_a_state_runs_in_python_also_if_its_step_cannot_be_traced(traced, monkeypatch):
    def fails(self, *arguments):
        traced.append(1)
        raise RuntimeError("no step")

    robot = robots.planar_hopper()
    legged.simulate(robot, q=robot.neutral(), until=1e-3, integrator=STEPS)  # lets the thread compile
    monkeypatch.setattr(stepper.CompiledEngine, "__init__", fails)
    with pytest.warns(SimulationWarning, match="does the controller keep a state"):
        run = legged.simulate(robot, Counting(), q=robot.neutral(), v=np.ones(robot.nv), until=2e-3, integrator=STEPS)
    assert "does the controller keep a state" in run.backend and len(traced) == 2
    with pytest.warns(SimulationWarning, match="RuntimeError: no step"):
        run = legged.simulate(robot, q=robot.neutral(), until=1e-3, integrator=STEPS)
    assert "RuntimeError: no step" in run.backend
    with pytest.raises(TraceError, match="cannot be compiled: RuntimeError: no step"):
        legged.simulate(robot, q=robot.neutral(), until=1e-3, integrator=STEPS, compiled=True)
