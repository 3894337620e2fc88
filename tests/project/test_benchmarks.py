"""Records, comparisons, targets and reference problems of the benchmarks; no test measures a time."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import legged
import robots
from benchmarks import balance, compilation
from benchmarks.__main__ import KINDS, main
from benchmarks.harness import explanations, history, references, targets
from benchmarks.harness.record import RATIO, Quantity, Record, RecordError, new_record
from benchmarks.harness.report import changes, comparison_table
from benchmarks.harness.subjects import FORWARD
from benchmarks.harness.timing import Disagreement, Spread, Times, Workload, check_agreement, time_in_turns
from benchmarks.studies import growth

NAME = ("one state", "humanoid", "forward dynamics", "Pinocchio / ours")


def record(median: float, low: float, high: float, **changed) -> Record:
    result = Record({"processor": "a", "cores": 2}, {"numpy": "1"}, "2020-01-01", "abc", [])
    result.add(NAME, RATIO, Spread(median, low, high))
    for name, value in changed.items():
        getattr(result, name).update(value)
    return result


def test_a_saved_record_is_loaded_again(tmp_path):
    result = record(3.0, 2.5, 3.5)
    result.add(("batch", "humanoid", "ours"), "us", Spread(0.1, 0.09, 0.2))
    path = tmp_path / "new folder" / "record.json"
    result.save(path)
    assert Record.load(path) == result
    content = json.loads(path.read_text())
    assert content["machine"]["cores"] == 2 and content["versions"]["numpy"] == "1"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "quantities": [{"name": "x"}]}', "1"])
def test_a_file_that_is_not_a_record_raises_an_error_with_its_name(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=r"other\.json is not a benchmark record"):
        Record.load(path)


def test_a_record_of_another_format_raises_an_error(tmp_path):
    path = tmp_path / "old.json"
    record(3.0, 2.5, 3.5).save(path)
    path.write_text(path.read_text().replace('"format": 1', '"format": 0'))
    with pytest.raises(RecordError, match="another format"):
        Record.load(path)


@pytest.mark.parametrize(
    "now, before, mark",
    [
        ((4.0, 3.8, 4.2), (3.0, 2.5, 3.5), ">"),
        ((3.0, 2.5, 3.5), (4.0, 3.8, 4.2), "<"),
        ((4.0, 2.9, 4.2), (3.0, 2.5, 3.5), ""),  # the old median lies in the new spread
        ((4.0, 3.8, 4.2), (3.0, 2.5, 4.1), ""),  # the new median lies in the old spread
        ((3.0, 2.5, 3.5), (3.0, 2.5, 3.5), ""),
        ((3.2, 3.19, 3.21), (3.0, 2.99, 3.01), ""),  # not more than two runs of the same source differ
    ],
)
def test_only_significant_changes_are_marked(now, before, mark):
    table = comparison_table(record(*now), record(*before))
    ((name, _, _, change, actual_mark),) = table.rows
    assert name == ", ".join(NAME)
    assert change == f"{100 * (now[0] / before[0] - 1):+.0f} %"
    assert actual_mark == mark
    assert table.notes[0].startswith(f"{int(mark != '')} of 1 ")


def test_comparison_lists_other_conditions_and_ratios_of_only_one_run():
    new, old = record(3.0, 2.5, 3.5, versions={"numpy": "2"}), record(3.0, 2.5, 3.5, machine={"cores": 64})
    new.add(("batch", "x"), RATIO, Spread(1.0, 1.0, 1.0))
    notes = "\n".join(comparison_table(new, old).notes)
    assert "numpy was 1, is 2" in notes and "cores was 64, is 2" in notes and "1 ratios are new" in notes
    assert len(comparison_table(new, old).rows) == 1


def test_the_history_keeps_runs_by_processor_and_commit_and_shows_each_target_over_time(tmp_path):
    folder, target = tmp_path / "history", next(t for t in targets.TARGETS if NAME in t.names)
    runs = [("2026-01-02T03:04:05+00:00", "abc", 2.0), ("2026-01-01T00:00:00+00:00", "def+", 0.5)]
    for date, commit, factor in runs:
        result = Record({"processor": "Fast (R) CPU (znver)", "cores": 2}, {}, date, commit, [])
        result.add(NAME, RATIO, Spread(factor * target.bound, 1.0, 9.0))
        path = history.store(result, folder)
        assert path.parent.name == "fast-r-cpu-znver" and Record.load(path) == result
    history.store(record(1.0, 1.0, 1.0), folder)
    records = history.load(folder)
    assert {name: [r.commit for r in of] for name, of in records.items()} == {
        "a": ["abc"],
        "Fast (R) CPU (znver)": ["def+", "abc"],
    }
    (line,) = history.series(records["Fast (R) CPU (znver)"])
    assert line.margins == [0.5, 2.0]
    ((*_, old, new),) = history.history_table("x", records["Fast (R) CPU (znver)"]).rows
    assert (old, new) == (f"{0.5 * target.bound:.3g}*", f"{2.0 * target.bound:.3g}")
    page, *figures = history.write_page(folder, tmp_path / "page")
    assert page.name == "history.md" and len(figures) == 2
    assert "2026-01-02 abc" in page.read_text()


def test_the_margin_of_a_target_is_one_at_its_bound():
    for target in targets.TARGETS:
        better = Quantity(target.names[0], "", target.bound * (0.5 if target.is_upper else 2.0), 0.0, 0.0)
        assert target.margin(better) == 2.0 and target.is_met(better)


SMOKE = ("stepping",)


@pytest.mark.filterwarnings("ignore::legged.errors.SimulationWarning")  # a robot that lands on stiff ground
@pytest.mark.parametrize("kind", SMOKE)
def test_a_benchmark_runs_and_its_results_agree(kind, monkeypatch, tmp_path, capsys):
    """Times are not judged; a workload whose results disagree with those of another raises an error."""
    history.store(replace(new_record(), commit="older", date="2020-01-01"), tmp_path / "history")
    run(kind, monkeypatch, tmp_path)
    out = capsys.readouterr().out
    assert "history.md" in out and re.search(r"Ratios of .* beside those of 2020-01-01 \(older\)", out)
    assert len(list((tmp_path / "history").glob("*/*.json"))) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::legged.errors.SimulationWarning")
@pytest.mark.filterwarnings("ignore:The default value of raise_error:PendingDeprecationWarning")  # of osqp in qpsolvers
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - set(SMOKE)))
def test_all_benchmarks_run_and_their_results_agree(kind, monkeypatch, tmp_path):
    run(kind, monkeypatch, tmp_path)


def run(kind, monkeypatch, folder):
    options = ["--rounds", "1", "--states", "16", "--links", "8"]
    options += ["--output", str(folder / "page"), "--history", str(folder / "history"), "--compare"]
    monkeypatch.setattr("sys.argv", ["benchmarks", kind, *options])
    monkeypatch.setenv("LEGGED_CACHE", str(folder / "cache"))  # restored after `main` has changed it
    main()
    record = Record.load(folder / "page" / "latest.json")
    assert record.quantities and all(np.isfinite(q.median) for q in record.quantities)


def test_times_are_not_compared_between_runs():
    new, old = record(3.0, 2.5, 3.5), record(3.0, 2.5, 3.5)
    for result in (new, old):
        result.add(("one state", "humanoid", "ours"), "us", Spread(1.0, 1.0, 1.0))
    assert len(changes(new, old)) == 1


def test_the_spread_omits_the_lowest_and_the_highest_round():
    assert Spread.of([5.0, 1.0, 2.0, 100.0, 3.0]) == (3.0, 2.0, 5.0)
    assert Spread.of([2.0, 1.0]) == (1.5, 1.0, 2.0)


def test_ratios_are_formed_round_by_round():
    """A round in which everything takes ten times as long does not change the ratio."""
    slow, fast = Times((2.0, 20.0, 2.0, 2.0)), Times((1.0, 10.0, 1.0, 1.0))
    assert slow.ratio_to(fast) == (2.0, 2.0, 2.0)
    assert fast.rate() == (1.0, 1.0, 1.0)


def test_workloads_are_timed_in_turns():
    calls = []
    workloads = {name: Workload(lambda times, name=name: calls.append(name)) for name in "ab"}
    times = time_in_turns(workloads, rounds=3, min_time=0.0)
    assert "".join(calls[-6:]) == "ababab"
    assert [len(times[name].rounds) for name in "ab"] == [3, 3]


def test_results_that_disagree_raise_an_error():
    ours = np.array([[1.0, 2.0], [1e-3, 1e-3]])
    assert check_agreement("x", ours, ours * (1 + 1e-12), 1e-11) == pytest.approx(1e-12, rel=1e-3)
    off = ours.copy()
    off[1, 1] += 1e-6  # small relative to the other state, not to its own
    with pytest.raises(Disagreement, match="x: "):
        check_agreement("x", ours, off, 1e-6)
    with pytest.raises(Disagreement):
        check_agreement("x", ours * np.nan, ours, 1.0)


def test_medians_equal_to_the_bound_meet_a_target():
    lower = next(t for t in targets.TARGETS if NAME in t.names)
    cases = {lower.bound: "yes", 0.99 * lower.bound: "no"}
    for median, met in cases.items():
        table = targets.target_table(record(median, median, median))
        assert [row[-1] for row in table.rows] == [met]
        assert table.notes[0] == f"{int(met == 'no')} of 1 targets are missed."
        assert [lower.explanation.reason in note for note in table.notes[1:]] == [True] * (met == "no")
    upper = next(t for t in targets.TARGETS if t.is_upper)
    result = record(1.0, 1.0, 1.0)
    result.quantities.clear()
    result.add(upper.names[0], "s", Spread(1.01 * upper.bound, 0.0, 9.0))
    assert [row[-1] for row in targets.target_table(result).rows] == ["no"]


def test_each_target_that_the_last_records_miss_is_explained_in_the_documentation():
    root = Path(targets.__file__).parents[2]
    page = (root / explanations.PAGE).read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", page, re.MULTILINE)
    for records in history.load(root / "benchmarks" / "history").values():
        missed = targets.missed_targets(records[-1])
        assert missed, "the test needs a record that misses a target"
        for target in missed:
            assert target.explanation, f"{target.description} >= {target.bound} is missed and not explained"
        notes = targets.target_table(records[-1]).notes
        assert len(notes) == 1 + len(missed)
    for target in targets.TARGETS:
        if target.explanation:
            assert target.explanation.section in sections and target.explanation.reason.endswith(".")


def test_growth_is_drawn_from_a_record():
    result = record(1.0, 1.0, 1.0)
    for n in growth.doubling_sizes(4, 20):
        result.add((growth.LINKS, "chain", str(n), FORWARD, growth.OURS_ONE), "us", Spread(2.0 * n, n, 3.0 * n))
        result.add((growth.LINKS, "chain", str(n), FORWARD, growth.COMPILATION), "s", Spread(0.1 * n, 0.1 * n, 0.1 * n))
    lines = [growth.links_figure(result).axes[k].lines[0] for k in (0, 2)]
    assert [np.asarray(line.get_xdata()).tolist() for line in lines] == 2 * [[4, 8, 16, 20]]
    assert np.asarray(lines[0].get_ydata()).tolist() == [8, 16, 32, 40]


def test_the_biped_in_mujoco_stands_on_twelve_contacts_that_carry_its_weight():
    pytest.importorskip("mujoco")
    scene = references.standing_mujoco_biped(1e-3)  # checks the contacts and their forces
    assert scene.model.nv == scene.robot.nv + 6 and abs(scene.data.qvel).max() < 0.01


def test_the_timed_contact_problem_is_solved_and_the_impulses_carry_the_block():
    impulses, (*state, guess) = balance.contact_problem()
    for _ in range(6):
        guess = impulses(*state, guess)[0]
    p, _, u_next, residual = impulses(*state, guess)
    resting = p[8:12, 0].sum()  # the corners of the feet come first
    assert abs(resting - 1e-3 * 9.81 * references.BLOCK.inertia.mass) < 1e-6 and abs(u_next).max() < 1e-6
    assert residual < 1e-6


def test_the_counted_time_steps_have_the_contacts_of_their_scenes():
    contacts, operations, solver = zip(*balance.step_costs().values(), strict=True)
    assert contacts == (8, 10, 12, 16)
    assert (np.diff(operations) > 0).all() and (np.array(solver) < operations).all()


def test_code_sizes_are_read_from_the_object_file_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    links, operations, *_, code, _, one, _ = compilation.growth_row(robots.planar_biped(), legged.forward_dynamics)
    assert (
        int(links) == 6 and int(operations) == legged.compile(legged.forward_dynamics, robots.planar_biped()).graph.size
    )
    assert float(code) > 1.0 and float(one) > 0.0
