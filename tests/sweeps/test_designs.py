"""Samples, sensitivity, optimization, intervals, figures and the command line of studies."""

import sys

import numpy as np
import pytest
import scipy.stats

import legged
from legged import sweeps
from legged.app.cli import app, main
from legged.errors import ArgumentError, LeggedError, UnknownNameError

BOX = {"x": (-1.0, 1.0), "y": (0.0, 4.0), "z": scipy.stats.norm(0.0, 2.0)}


# Samples


def test_a_grid_has_all_combinations_in_order():
    samples = sweeps.grid({"x": [1, 2], "y": ["a", "b", "c"]})
    assert list(samples.columns["x"]) == [1, 1, 1, 2, 2, 2] and list(samples.columns["y"]) == 2 * ["a", "b", "c"]
    assert sorted(samples.order) == list(range(6))


@pytest.mark.parametrize("make", [sweeps.random, sweeps.sobol, sweeps.latin_hypercube])
def test_samples_follow_their_distributions_and_their_seed(make):
    samples = make(1024, BOX, seed=3)
    for name, law in {"x": scipy.stats.uniform(-1, 2), "y": scipy.stats.uniform(0, 4), "z": BOX["z"]}.items():
        assert scipy.stats.kstest(samples.columns[name], law.cdf).pvalue > 1e-4  # one in 10 000 seeds fails
    assert np.array_equal(make(1024, BOX, seed=3).columns["z"], samples.columns["z"])
    assert not np.array_equal(make(1024, BOX, seed=4).columns["z"], samples.columns["z"])


@pytest.mark.parametrize("make", [sweeps.random, sweeps.sobol])
def test_a_larger_sample_begins_with_the_smaller_one(make):
    assert np.array_equal(make(64, BOX).columns["y"][:16], make(16, BOX).columns["y"])


def test_a_choice_has_its_values_equally_often():
    chosen = sweeps.latin_hypercube(30, {"law": sweeps.Choice(("a", "b", "c"))}).columns["law"]
    assert {name: int((chosen == name).sum()) for name in "abc"} == {"a": 10, "b": 10, "c": 10}


@pytest.mark.parametrize("distribution", [(1.0, 0.0), (0.0, np.inf), 3.0, "ab", (1.0, 2.0, 3.0)])
def test_a_distribution_that_is_none_is_refused(distribution):
    with pytest.raises((ArgumentError, ValueError), match="x"):
        sweeps.random(4, {"x": distribution})


# Sensitivity


def ishigami(x, y, z):
    return np.sin(x) + 7.0 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)


CUBE = dict.fromkeys("xyz", (-np.pi, np.pi))


def test_sobol_indices_of_the_ishigami_function_are_those_of_its_closed_form(tmp_path):
    study = legged.sweep(ishigami, sweeps.sobol_design(1024, CUBE), tmp_path, chunk=1000)
    indices = sweeps.sensitivity(study, "value")
    a, b = 7.0, 0.1
    parts = np.array([0.5 * (1 + b * np.pi**4 / 5) ** 2, a**2 / 8, 0.0])
    both = 8 * b**2 * np.pi**8 / 225
    variance = parts.sum() + both
    assert np.allclose(indices["S1"], parts / variance, atol=0.05)  # deviation 1 / sqrt(1024)
    assert np.allclose(indices["ST"], (parts + np.array([both, 0.0, both])) / variance, atol=0.05)
    assert len(sweeps.sensitivity_figure(indices).axes) == 1


def test_elementary_effects_of_a_linear_function_are_its_slopes(tmp_path):
    study = legged.sweep(lambda x, y: 3.0 * x - y, sweeps.morris_design(8, {"x": (0, 1), "y": (0, 2)}), tmp_path)
    indices = sweeps.sensitivity(study, "value")
    # Points are moved into the inner 0.9 of the range.
    assert np.allclose(indices["mu"], [0.9 * 3.0, 0.9 * -2.0], rtol=1e-12)
    assert np.allclose(indices["sigma"], 0.0, atol=1e-12)


def test_indices_need_a_design_and_all_results(tmp_path):
    with pytest.raises(ArgumentError, match="sobol_design or morris_design"):
        sweeps.sensitivity(legged.sweep(ishigami, sweeps.random(4, CUBE), tmp_path / "a"), "value")
    failing = legged.sweep(lambda x: 1.0 / (x > 0), sweeps.sobol_design(4, {"x": (-1, 1)}), tmp_path / "b")
    with pytest.raises(ArgumentError, match=r"missing in .* of 12 trials"):
        sweeps.sensitivity(failing, "value")


# Optimization


def bowl(x, y):
    return {"f": (x - 0.3) ** 2 + (y + 0.2) ** 2, "g": x}


PLANE = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}


@pytest.mark.parametrize(("method", "error"), [("cma", 0.02), ("optuna", 0.3)])
def test_the_minimum_of_a_bowl_is_reached(method, error, tmp_path):
    given = {"method": method, "generations": 15, "population": 8}
    best = sweeps.optimize(bowl, PLANE, {"f": "minimize"}, tmp_path, **given).best
    assert abs(best["x"] - 0.3) < error and abs(best["y"] + 0.2) < error


@pytest.mark.parametrize("method", ["cma", "optuna"])
def test_a_constraint_holds_at_the_optimum(method, tmp_path):
    given = {"method": method, "generations": 15, "population": 8, "constraints": {"g": (None, -0.2)}}
    optimum = sweeps.optimize(bowl, PLANE, {"f": "minimize"}, tmp_path, **given)
    assert (optimum.front["g"] <= -0.2).all() and optimum.best["x"] > -0.5
    assert optimum.best["f"] == optimum.table["f"][optimum.table["g"] <= -0.2].min()


def test_an_interrupted_optimization_goes_on_with_the_same_trials(tmp_path):
    given = {"generations": 4, "population": 6, "seed": 2}
    whole = sweeps.optimize(bowl, PLANE, {"f": "minimize"}, tmp_path / "a", **given)
    sweeps.optimize(bowl, PLANE, {"f": "minimize"}, tmp_path / "b", **given | {"generations": 2})
    before = {path.name for path in (tmp_path / "b" / "chunks").iterdir()}
    assert sweeps.optimize(bowl, PLANE, {"f": "minimize"}, tmp_path / "b", **given).table.equals(whole.table)
    after = {path.name for path in (tmp_path / "b" / "chunks").iterdir()}
    assert before < after and len(after) == 4  # one chunk for each generation
    assert whole.sweep.run(int(whole.best.name))["f"] == whole.best["f"]


def test_the_front_of_two_objectives_is_on_the_curve_of_the_closed_form(tmp_path):
    def two(x, y):
        return {"a": x**2 + y**2, "b": (x - 1.0) ** 2 + y**2}

    goals = {"a": "minimize", "b": "minimize"}
    optimum = sweeps.optimize(
        two, {"x": (-2.0, 2.0), "y": (-1.0, 1.0)}, goals, tmp_path, method="optuna", generations=12, population=24
    )
    front = optimum.front
    assert (np.diff(front["a"]) >= 0).all() and (np.diff(front["b"]) <= 0).all() and len(front) > 5
    # On the exact front y = 0 and sqrt(a) + sqrt(b) = 1.
    assert abs(np.sqrt(front["a"]) + np.sqrt(front["b"]) - 1.0).median() < 0.1
    assert len(sweeps.pareto_figure(optimum, "a", "b").axes) == 2


def test_the_pareto_mask_agrees_with_its_definition():
    values = np.random.default_rng(0).integers(0, 6, (60, 3)).astype(float)
    dominated = [any((b <= a).all() and (b < a).any() for b in values) for a in values]
    assert np.array_equal(sweeps.pareto(values), ~np.array(dominated))


def test_failed_trials_do_not_stop_an_optimization(tmp_path):
    def function(x, y):
        if x < 0.0:
            raise ValueError("no")
        return x + y**2

    for method in ("cma", "optuna"):
        best = sweeps.optimize(function, PLANE, {"value": "minimize"}, tmp_path / method, method=method, generations=5)
        assert best.best["value"] < 0.3


@pytest.mark.parametrize(
    "given",
    [
        {"objectives": {"f": "least"}},
        {"objectives": {}},
        {"objectives": {"f": "minimize", "g": "minimize"}},
        {"method": "x"},
        {"population": 1},
        {"generations": 0},
        {"objectives": {"h": "minimize"}},
    ],
)
def test_bad_optimizations_are_refused(given, tmp_path):
    with pytest.raises(LeggedError):
        sweeps.optimize(bowl, PLANE, **({"objectives": {"f": "minimize"}, "store": tmp_path} | given))


# Results


@pytest.mark.parametrize(("k", "n", "low", "high"), [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775)])
def test_the_interval_of_wilson_is_that_of_its_formula(k, n, low, high):
    z, p = scipy.stats.norm.ppf(0.975), k / n
    middle, half = (
        (p + z**2 / (2 * n)) / (1 + z**2 / n),
        z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n),
    )
    assert np.allclose(sweeps.success_interval(k, n), (middle - half, middle + half), atol=1e-12)
    assert np.allclose(sweeps.success_interval(k, n), (low, high), atol=1e-4)


def test_the_interval_of_clopper_and_pearson_contains_that_of_wilson_at_the_ends():
    assert sweeps.success_interval(0, 10, method="clopper-pearson") == (0.0, pytest.approx(1 - 0.025**0.1))
    assert sweeps.success_interval(0, 0) == (0.0, 1.0)


def test_a_success_map_counts_the_trials_of_its_cells(tmp_path):
    table = legged.sweep(lambda x, y: {"success": x > y}, sweeps.grid({"x": [0, 1, 2], "y": [0, 1]}), tmp_path).table()
    mapped = sweeps.success_map(table, ["x", "y"])
    assert mapped.successes.tolist() == [[0, 0], [1, 0], [1, 1]] and mapped.trials.sum() == 6
    assert len(mapped.table().rows) == 6 and len(mapped.figure().axes) == 2
    line = sweeps.success_map(table, ["x"])
    assert line.rate.tolist() == [0.0, 0.5, 1.0] and len(line.figure().axes) == 1
    with pytest.raises(UnknownNameError):
        sweeps.success_map(table, ["q"])


def test_a_page_escapes_what_a_study_says(tmp_path):
    def function(x):
        if x > 0.5:
            raise ValueError("<script>alert(1)</script>")
        return {"<b>y": x}

    study = legged.sweep(function, sweeps.random(20, {"x": (0.0, 1.0)}), tmp_path / "s")
    figure = sweeps.parallel_coordinates(study.table(), ["x", "<b>y"], "x")
    page = sweeps.save_page(study, tmp_path / "page", [figure], "<i>title").read_text()
    assert "<script>" not in page and "<b>y" not in page and "<i>title" not in page
    assert "&lt;script&gt;" in page and "data:image/png" in page


# Command line

FILE = """
import legged
from legged import sweeps

def function(a):
    if a > 0.9:
        raise ValueError("=1+1")
    return 2 * a

study = legged.sweep(function, sweeps.random(40, {"a": (0, 1)}), STORE, chunk=10)
"""


@pytest.fixture
def cli(monkeypatch, capsys, tmp_path):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["legged", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main(app)
        printed = capsys.readouterr()
        return end.value.code, printed.out + printed.err

    (tmp_path / "study.py").write_text(FILE.replace("STORE", repr(str(tmp_path / "store"))))
    return run


def test_the_command_line_shows_resumes_and_writes_a_study(cli, tmp_path):
    store, code = tmp_path / "store", f"{tmp_path / 'study.py'}:study"
    store.mkdir()
    status, printed = cli("sweep", "status", store)
    assert status == 1 and "no store of a sweep" in printed
    status, printed = cli("sweep", "resume", store, code)
    assert status == 0 and "finished" in printed and "40" in printed
    first = next(iter(sorted((store / "chunks").iterdir())))
    first.unlink()
    assert "30" in cli("sweep", "status", store)[1]
    assert cli("sweep", "resume", store, code)[0] == 0 and first.name[:32] in {
        path.name[:32] for path in (store / "chunks").iterdir()
    }
    status, printed = cli("sweep", "table", store, "--rows", 3)
    assert status == 0 and "3 of 40 rows" in printed
    assert cli("sweep", "table", store, "-o", tmp_path / "t.csv")[0] == 0
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 41
    assert cli("sweep", "table", store, "-o", tmp_path / "t.parquet")[0] == 0
    assert "ValueError" in cli("sweep", "table", store, "--failed")[1]


@pytest.mark.parametrize("code", ["study.py", "study.py:nothing", "missing.py:study", "study.py:sweeps"])
def test_a_file_without_a_study_is_refused(code, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    status, printed = cli("sweep", "resume", tmp_path / "store", code)
    assert status == 1 and "DefinitionError" in printed
