"""Ctrl-C keeps what is computed, in runs, rollouts, maps and the command line."""

import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import legged
import robots
from controllers import WorkspaceBalance
from examples.studies import commands
from examples.studies.balance import disturbance_map as maps
from legged.compiler import Members, Schedule, TimeLoop
from legged.contact.rigid import Rigid
from legged.errors import SimulationInterrupt
from legged.ground import realistic_ground
from legged.simulation.checks.divergence import DivergenceMonitor
from legged.simulation.simulate import ProgressBar

QUICK = "test_a_command_without_results_says_that_it_was_interrupted"

LATENCY = 4.0
"""[s]: a call of machine code takes a fifth of a second; the rest is the record of the run on a loaded machine. Calls
that are not divided take ten seconds and more in these tests."""


class Interrupted:
    """Sends SIGINT to this process some time after the time loop has begun, and measures the time until the end.

    Python loses a KeyboardInterrupt that is raised in a destructor or in a callback. The callbacks of the garbage
    collector, of which hypothesis has one, are therefore removed meanwhile, and the signal is sent again after
    `LATENCY`, so that the test fails and does not wait for the end of an hour of motion.
    """

    def __init__(self, monkeypatch, delay=0.6, at="loop"):
        self.delay, self.begun, self.sent = delay, threading.Event(), []
        self.ended, self.lock = threading.Event(), threading.Lock()
        self.thread = threading.Thread(target=self.send, daemon=True)
        run, enter, check = TimeLoop.run, ProgressBar.__enter__, DivergenceMonitor.all_are_slow

        def begun(loop, members, parameters, schedule, *rest, **named):
            if schedule.steps.sum() > 1:  # more than the comparison of compiled and plain steps
                self.start()
            return run(loop, members, parameters, schedule, *rest, **named)

        def entered(bar):
            self.start()
            return enter(bar)

        def checked(monitor, states):
            self.start()
            return check(monitor, states)

        targets = {
            "loop": (TimeLoop, "run", begun),
            "bar": (ProgressBar, "__enter__", entered),
            "sample": (DivergenceMonitor, "all_are_slow", checked),
        }
        monkeypatch.setattr(*targets[at])

    def start(self):
        self.begun.set()

    def send(self):
        self.begun.wait()
        wait = self.delay
        while not self.ended.wait(wait):
            with self.lock:
                if not self.ended.is_set():
                    self.sent.append(time.monotonic())
                    os.kill(os.getpid(), signal.SIGINT)
            wait = LATENCY

    def __enter__(self):
        self.handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
        self.callbacks = gc.callbacks[:]
        gc.callbacks.clear()
        self.thread.start()
        return self

    def __exit__(self, *error):
        with self.lock:
            self.ended.set()
        self.begun.set()
        signal.signal(signal.SIGINT, self.handler)
        gc.callbacks[:] = self.callbacks
        assert len(self.sent) == 1
        assert time.monotonic() - self.sent[0] < LATENCY


@pytest.fixture(scope="module")
def standing():
    """A quadruped on its feet that servos hold; an hour of its motion takes longer than any test."""
    robot = robots.spatial_quadruped()
    q = robot.neutral()
    q[6] = 0.7
    law = lambda t, q, v, w: -100.0 * q[7:] - v[6:]  # noqa: E731
    options = {"ground": realistic_ground(robot), "fall": False, "progress": False}
    euler = {"integrator": legged.SemiImplicitEuler(1e-4)}
    legged.simulate(robot, law, q=q, until=0.01, **options, **euler)  # compiles
    legged.rollout(robot, law, q=np.stack([q, q]), until=0.01, **options, **euler)
    legged.simulate(robot, law, q=q, until=0.01, integrator=legged.Stiff(), compiled=False, **options)  # imports SciPy
    return robot, law, q, options


@pytest.mark.parametrize("sample", [0.01, 3600.0])
def test_compiled_run_is_kept(standing, sample, monkeypatch):
    """Also if the interrupt comes long before the first sample."""
    robot, law, q, options = standing
    with (
        Interrupted(monkeypatch),
        pytest.raises(SimulationInterrupt, match="interrupted at t = ") as error,
    ):
        legged.simulate(
            robot, law, q=q, until=3600.0, sample=sample, integrator=legged.SemiImplicitEuler(1e-4), **options
        )
    run = error.value.run
    assert isinstance(error.value, KeyboardInterrupt)
    assert len(run) == 1 if sample > 1.0 else 0.1 < run.duration < 3600.0
    assert run.ended.startswith("interrupted") and np.isfinite(run.v).all()


@pytest.mark.parametrize("integrator", [legged.Stiff(), legged.RungeKutta4(5e-4)], ids=["stiff", "python"])
def test_python_run_is_kept(standing, integrator, monkeypatch):
    robot, law, q, options = standing
    with Interrupted(monkeypatch, at="sample"), pytest.raises(SimulationInterrupt) as error:
        legged.simulate(robot, law, q=q, until=3600.0, integrator=integrator, compiled=False, **options)
    assert len(error.value.run) >= 1


@pytest.mark.parametrize(("count", "sample", "until"), [(8, 0.5, 600.0), (20000, 1.0, 2.0)])
def test_rollout_is_kept(standing, count, sample, until, monkeypatch):
    """Also if the members of one sample interval take minutes."""
    robot, law, q, options = standing
    many = {"q": np.repeat(q[None], count, axis=0), "until": until, "sample": sample}
    with Interrupted(monkeypatch), pytest.raises(SimulationInterrupt, match="members ended") as error:
        legged.rollout(robot, law, integrator=legged.SemiImplicitEuler(1e-4), compiled=True, **many, **options)
    runs = error.value.run
    assert set(runs.reasons) == {"interrupted"} and not runs.fallen.any() and np.isfinite(runs.when).all()
    if count == 8:
        assert (runs.when > 0.0).all() and runs.run(0).ended.startswith("interrupted at t = ")
        assert np.isfinite(runs.q[:, : runs.run(0).q.shape[0]]).all()


def test_rollout_in_python_is_kept(standing, monkeypatch):
    robot, law, q, options = standing
    with Interrupted(monkeypatch, 2.0, "bar"), pytest.raises(SimulationInterrupt) as error:
        legged.rollout(robot, law, q=np.stack([q, q]), until=3600.0, compiled=False, **options)
    runs = error.value.run
    reached = np.isfinite(runs.q[:, :, 0]).sum(axis=1)
    assert runs.reasons == ("interrupted",) * 2 and 0 <= reached[0] - reached[1] <= 1 and reached[0] < len(runs.times)


@pytest.mark.slow
def test_map_is_kept(monkeypatch):
    """An interrupt in the middle of the rollout leaves fallen members fallen and the others undecided."""
    robot = robots.spatial_biped()
    calls = []
    original = TimeLoop.run

    def run(self, members, *rest, **named):
        if len(members.state) > 10:
            calls.append(len(members.state))
            if len(calls) > 40:
                raise KeyboardInterrupt
        return original(self, members, *rest, **named)

    monkeypatch.setattr(TimeLoop, "run", run)
    module = importlib.import_module("legged.simulation.stepping.engines")
    monkeypatch.setattr(module, "OPERATIONS_PER_CALL", 1.0)  # a call for each sample
    pushes = maps.Pushes(legged.Push("trunk_1", (0.0, 0.0, 0.0), at=0.0), [2.0, 400.0])
    options = {"ground": Rigid(friction=0.3), "integrator": legged.TimeStepping(2e-3), "directions": 8}
    with pytest.raises(SimulationInterrupt) as error:
        maps.disturbance_map(robot, WorkspaceBalance(), pushes, **options)
    partial = error.value.run
    assert (partial.outcomes[0] == maps.INTERRUPTED).all() and (partial.outcomes[1] == maps.FELL).all()
    assert "8 interrupted" in partial.table().text()


def test_divided_intervals_give_the_same_steps(monkeypatch):
    """A time loop in calls of few steps equals one call, and stores the same samples."""
    loop = TimeLoop.of(lambda clock, parameters, state: (state + clock[1] * parameters * state, 0.0), 1, 1)
    steps = np.array(
        [[[0.0, 1e-3, 1000.0, 0.0], [1.0, 1e-3, 7.0, 0.0]], [[0.0, 2e-3, 400.0, 0.0], [0.8, 1e-3, 9.0, 0.0]]]
    )
    schedule, rates = Schedule(steps, np.array([0, 1])), np.array([[1.0], [-1.0]])
    whole, divided = (Members.at(np.ones((2, 1)), 2) for _ in range(2))
    loop.run(whole, rates, schedule)
    monkeypatch.setattr("legged.compiler.runtime.time_loop.OPERATIONS_PER_CALL", 3.0 * len(loop.graph.nodes))
    loop.run(divided, rates, schedule)
    np.testing.assert_array_equal(divided.stored, whole.stored)
    np.testing.assert_array_equal(divided.outcome, whole.outcome)
    np.testing.assert_allclose(whole.stored[:, 0, 0], [1.001**1000, 0.998**400], rtol=1e-12)


COMMANDS = {
    "walk": ["legged.app.cli", "walk", "--duration", "3600"],
    "disturbances": ["examples.studies.commands", "disturbances", "--duration", "600", "--sizes", "4"],
}
MAIN = """
import importlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
program = importlib.import_module(sys.argv.pop(1))
from legged.simulation.simulate import ProgressBar
update = ProgressBar.update
def reported(bar, t):
    print("has computed", t, "s", file=sys.stderr, flush=True)
    update(bar, t)
ProgressBar.update = reported
program.main()
"""


def test_a_command_without_results_says_that_it_was_interrupted(monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("legged.app.selection.select_robot", interrupted)
    monkeypatch.setattr(sys, "argv", ["studies", "disturbances"])
    with pytest.raises(SystemExit) as end:
        commands.main()
    assert end.value.code == 130 and capsys.readouterr().err == "interrupted before there were results\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_command_line_writes_what_it_has(name, tmp_path):
    command = [sys.executable, "-c", MAIN, *COMMANDS[name], "-o", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None and any(
        line.startswith("has computed") and float(line.split()[2]) > 0.1 for line in process.stderr
    )
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "interrupted" in err and "Traceback" not in err
    assert "interrupted" in out and [path for path in Path(tmp_path).iterdir() if path.suffix in (".npz", ".csv")]
