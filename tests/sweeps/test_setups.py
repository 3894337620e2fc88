"""Simulations as trials: metrics, replays, failures, costs, keys."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow  # noqa: F401
import pytest
from sweeps.studied import PUSHES, ROBOT, product, setup

import controllers
import legged
import robots
from legged import sweeps
from legged.errors import LeggedError
from legged.simulation.stepping.engines import CompiledEngine
from legged.sweeps import content, cost
from legged.sweeps import setup as setups


def test_a_row_is_simulated_again_bit_for_bit(tmp_path):
    lowest = sweeps.over_time("minimum", lambda q: q[2], "m")
    highest = sweeps.of_run(lambda run: np.abs(run.joint_tau).max(), "N m")
    study = setup(metrics=sweeps.STANDARD | {"lowest": lowest, "highest": highest})
    sweep = legged.sweep(study, sweeps.random(10, PUSHES), tmp_path, chunk=4)
    table = sweep.table()
    for row in (0, 5, 9):
        run = sweep.run(row)
        assert run.q[:, 2].min() == table["lowest"][row]
        assert np.isclose(np.abs(run.joint_tau).max(), table["peak_torque"][row], rtol=1e-12)  # two kernels
        assert np.abs(run.joint_tau).max() == table["highest"][row]
        way = run.base.position[-1, :2] - run.base.position[0, :2]
        assert np.isclose(np.linalg.norm(way), table["distance"][row], rtol=1e-12)


def test_a_function_of_all_rollouts_gets_the_samples_of_its_trials(tmp_path):
    def moved(runs, samples):
        assert len(runs) == len(samples["robot.trunk.mass"])
        return runs.q[:, -1, 1] - runs.q[:, 0, 1] + 0.0 * samples["robot.trunk.mass"]

    study = setup(metrics={"moved": sweeps.of_rollouts(moved, "m"), "success": sweeps.success})
    values = {"robot.trunk.mass": np.array([5.0, -1.0, 6.0]), "pushes.0.impulse[0]": np.array([0.0, 0.0, 1.0])}
    sweep = legged.sweep(study, values, tmp_path, chunk=3)
    table = sweep.table()
    assert (table["error"] != "").tolist() == [False, True, False] and table["success"].tolist() == [True, None, True]
    for row in (0, 2):
        run = sweep.run(row)
        assert run.q[-1, 1] - run.q[0, 1] == table["moved"][row]


def test_the_cost_of_transport_is_the_positive_work_over_weight_and_distance(tmp_path):
    sweep = legged.sweep(setup(until=0.2), sweeps.random(4, PUSHES), tmp_path, chunk=4)
    table, run = sweep.table(), sweep.run(2)
    power = np.maximum(run.tau * run.v, 0.0).sum(axis=1)
    work = np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(run.times))
    mass = ROBOT.mass + table["robot.trunk.mass"][2] - ROBOT.parameters()["trunk.mass"]
    weight = mass * np.linalg.norm(ROBOT.gravity)
    assert np.isclose(work / (weight * table["distance"][2]), table["cost_of_transport"][2], rtol=1e-10)


def test_a_setup_that_fails_for_one_sample_keeps_the_others(tmp_path):
    values = {"robot.trunk.mass": np.array([5.0, 5.5, -1.0, 6.0, 4.5])}
    sweep = legged.sweep(setup(), values, tmp_path, chunk=5)
    table = sweep.table()
    assert (table["error"] != "").tolist() == [False, False, True, False, False]
    assert "mass" in table["error"][2] and table["success"].isna()[2]
    assert sweep.run(3).q.shape[1] == ROBOT.nq
    with pytest.raises(LeggedError, match="mass"):
        sweep.run(2)


def test_a_fall_is_a_result_with_its_reason(tmp_path):
    values = {"pushes.0.impulse[0]": np.array([0.0, 60.0])}
    table = legged.sweep(setup(until=0.6), values, tmp_path, chunk=2).table()
    assert table["success"].tolist() == [True, False]
    assert table["ended"][0] == "" and table["ended"][1] != "" and table["duration"][1] < 0.6
    assert np.isnan(table["cost_of_transport"][1])


def test_the_cost_is_known_before_the_run_and_measured_after(tmp_path):
    sweep = legged.sweep(setup(), sweeps.random(16, PUSHES), tmp_path)
    before = sweep.cost()
    assert before.source == "short batches" and before.core_hours > 0.0
    sweep.table()
    after = sweep.cost()
    assert after.source == "finished chunks" and after.remaining == 0.0
    assert "core hours" in str(after)


class Operations:
    """A clock that counts the operations of machine code on vectors, and some for each start and call from Python."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        run, build = CompiledEngine.run, setups.TrialMotion.__init__

        def counted(engine, schedule, threads):
            steps = schedule.steps.sum() if not isinstance(schedule, int) else engine.intervals[0, 0, 2]
            count = len(engine._members.state)
            self.now += 500.0 + steps * engine.code.graph.size * -(-count // engine.code.lanes(count))
            return run(engine, schedule, threads)

        def built(motion, setup, arguments, count_, threads):
            self.now += 1e5 + 1e3 * count_
            build(motion, setup, arguments, count_, threads)

        monkeypatch.setattr(CompiledEngine, "run", counted)
        monkeypatch.setattr(setups.TrialMotion, "__init__", built)
        monkeypatch.setattr(cost.time, "process_time", lambda: self.now)


@pytest.mark.parametrize("until", [0.02, 0.3])
@pytest.mark.parametrize("count", [8, 96])
def test_the_cost_is_what_a_chunk_takes_on_a_clock_that_counts_operations(count, until, tmp_path, monkeypatch):
    clock = Operations(monkeypatch)
    study, samples = setup(until=until), sweeps.random(count, PUSHES)
    estimate = legged.sweep(study, samples, tmp_path, chunk=count).cost()
    begin = clock.now
    study.evaluate(samples.columns, 1)
    assert 3600.0 * estimate.core_hours == pytest.approx(clock.now - begin, rel=1e-9)
    assert estimate.seconds == pytest.approx(3600.0 * estimate.core_hours / count, rel=1e-12)


def test_chunks_have_the_wanted_duration_on_a_clock_that_counts_operations(tmp_path, monkeypatch):
    clock = Operations(monkeypatch)
    study, samples = setup(), sweeps.random(9000, PUSHES)
    bounds = legged.sweep(study, samples, tmp_path, seconds=1e7)._bounds()
    begin = clock.now
    study.evaluate(samples.rows(np.arange(bounds[1])), 1)
    assert clock.now - begin == pytest.approx(1e7, rel=8 / bounds[1])  # one group of 8 lanes more or less
    assert len({*np.diff(bounds[:-1]).tolist()}) == 1


def test_a_sample_that_fails_stops_neither_the_cost_nor_the_study(tmp_path):
    values = {"robot.trunk.mass": np.array([-1.0, 5.0, 5.5, 6.0])}
    sweep = legged.sweep(setup(), values, tmp_path)
    assert sweep.cost().core_hours > 0.0
    assert (sweep.table()["error"] != "").tolist() == [True, False, False, False]
    sweep = legged.sweep(setup(), {"robot.trunk.mass": np.array([-1.0, -2.0])}, tmp_path / "none")
    with pytest.raises(LeggedError, match="mass"):
        sweep.cost()
    assert (sweep.table()["error"] != "").all()


def test_metrics_of_runs_cost_their_simulation_too(tmp_path, monkeypatch):
    clock, samples = Operations(monkeypatch), sweeps.random(40, PUSHES)
    last = sweeps.of_run(lambda run: run.q[-1, 1])
    study = setup(metrics={"success": sweeps.success, "distance": sweeps.distance, "last": last})
    estimate = legged.sweep(study, samples, tmp_path, chunk=40).cost()
    begin = clock.now
    study.evaluate(samples.columns, 1)
    assert 3600.0 * estimate.core_hours == pytest.approx(clock.now - begin, rel=0.05)


def test_a_parameter_that_does_not_exist_fails_in_words(tmp_path):
    table = legged.sweep(setup(), {"robot.trunk.mas": [1.0, 2.0]}, tmp_path, chunk=2).table()
    assert "did you mean 'trunk.mass'" in table["error"][0]


def test_a_policy_is_a_law_as_others(tmp_path):
    pytest.importorskip("gymnasium")
    robot = robots.spatial_quadruped()
    weights = 1e-3 * np.random.default_rng(0).normal(size=(robot.nj, 50))
    from legged import environments

    task = environments.velocity(robot)
    law = controllers.Policy(lambda x: weights @ x, task)
    options = {"ground": legged.Rigid(friction=0.8), "integrator": legged.TimeStepping(0.005)}
    start = sweeps.Metric({"t": ("first", lambda t, tau: t + 0.0 * tau[-1])}, lambda signals, trials: signals["t"])
    study = sweeps.Setup(robot, law, 0.05, sweeps.STANDARD | {"start": start}, options=options)
    sweep = legged.sweep(study, sweeps.random(4, {"ground.friction": (0.5, 1.0)}), tmp_path, chunk=4)
    table = sweep.table()
    assert (table["error"] == "").all() and sweep.run(1).q.shape[1] == robot.nq
    assert (table["start"] == 0.0).all()  # torques are known from the command before the first step
    same, other = (
        sweeps.Setup(robot, controllers.Policy(network, task), 0.05, study.metrics, options=options)
        for network in (lambda x: weights @ x, lambda x: 2.0 * (weights @ x))
    )
    key = content.content_key(study.content)
    assert content.content_key(same.content) == key != content.content_key(other.content)


def test_keys_are_the_same_in_another_process_and_follow_the_code():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\nfrom studied import product, setup\n"
        "from legged.sweeps import content\nprint(content.content_key(product, setup().content))"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    settings = os.environ | {"PYTHONHASHSEED": "7"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=settings)
    study = setup()
    key = content.content_key(product, study.content)
    assert done.stdout.strip() == key
    study.evaluate({"robot.trunk.mass": np.array([4.0, 5.0])})  # fills caches of the objects
    assert content.content_key(product, study.content) == key
    assert content.content_key(product, setup(until=0.06).content) != key

    first, second = (lambda x: 2 * x), (lambda x: 3 * x)
    outer = [content.content_key(lambda x, inner=inner: inner(x)) for inner in (first, second, first)]
    assert outer[0] == outer[2] != outer[1]


def test_the_first_study_of_the_page_has_at_most_15_lines():
    """The page is executed by the tests of snippets."""
    page = Path(__file__).parents[2].joinpath("docs/howto/sweeps.md").read_text(encoding="utf-8")
    program = page.split("```python\n")[1].split("```")[0]
    lines = [line for line in program.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 15 and {"success_map", "friction", "mass", "impulse"} <= set(re.findall(r"[a-z_]+", program))
