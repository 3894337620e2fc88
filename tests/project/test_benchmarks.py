"""What the benchmarks keep, compare and promise; nothing is timed here."""

import json

import numpy as np
import pytest

from benchmarks import balance, compare, mujoco_scene, plots, targets
from benchmarks.agreement import Disagreement, agree
from benchmarks.growth import COMPILATION, LINKS, OURS_ONE, sizes
from benchmarks.record import RATIO, Record, RecordError
from benchmarks.subjects import FORWARD
from benchmarks.timing import Spread, Times, Way, race

NAME = ("one state", "humanoid", "forward dynamics", "Pinocchio / ours")


def record(median: float, low: float, high: float, **changed) -> Record:
    made = Record({"processor": "a", "cores": 2}, {"numpy": "1"}, "2020-01-01", "abc", [])
    made.add(NAME, RATIO, Spread(median, low, high))
    for name, value in changed.items():
        getattr(made, name).update(value)
    return made


def test_a_saved_record_is_read_back(tmp_path):
    made = record(3.0, 2.5, 3.5)
    made.add(("batch", "humanoid", "ours"), "us", Spread(0.1, 0.09, 0.2))
    path = tmp_path / "new folder" / "record.json"
    made.save(path)
    assert Record.load(path) == made
    content = json.loads(path.read_text())
    assert content["machine"]["cores"] == 2 and content["versions"]["numpy"] == "1"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "quantities": [{"name": "x"}]}', "1"])
def test_a_file_that_is_no_record_is_refused_by_name(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=r"other\.json is no record"):
        Record.load(path)


def test_a_record_of_another_format_is_refused(tmp_path):
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
        ((3.2, 3.19, 3.21), (3.0, 2.99, 3.01), ""),  # no more than two runs of the same source differ
    ],
)
def test_only_changes_beyond_both_spreads_are_marked(now, before, mark):
    table = compare.table(record(*now), record(*before))
    ((name, _, _, change, found),) = table.rows
    assert name == ", ".join(NAME)
    assert change == f"{100 * (now[0] / before[0] - 1):+.0f} %"
    assert found == mark
    assert table.notes[0].startswith(f"{int(mark != '')} of 1 ")


def test_comparison_tells_of_other_circumstances_and_of_ratios_that_only_one_run_has():
    new, old = record(3.0, 2.5, 3.5, versions={"numpy": "2"}), record(3.0, 2.5, 3.5, machine={"cores": 64})
    new.add(("batch", "x"), RATIO, Spread(1.0, 1.0, 1.0))
    words = "\n".join(compare.table(new, old).notes)
    assert "numpy was 1, is 2" in words and "cores was 64, is 2" in words and "1 ratios are new" in words
    assert len(compare.table(new, old).rows) == 1


def test_times_are_not_compared_between_runs():
    new, old = record(3.0, 2.5, 3.5), record(3.0, 2.5, 3.5)
    for made in (new, old):
        made.add(("one state", "humanoid", "ours"), "us", Spread(1.0, 1.0, 1.0))
    assert len(compare.changes(new, old)) == 1


def test_the_spread_leaves_the_outermost_rounds_out():
    assert Spread.of([5.0, 1.0, 2.0, 100.0, 3.0]) == (3.0, 2.0, 5.0)
    assert Spread.of([2.0, 1.0]) == (1.5, 1.0, 2.0)


def test_ratios_are_formed_round_by_round():
    """A round in which everything took ten times as long does not show."""
    slow, fast = Times((2.0, 20.0, 2.0, 2.0)), Times((1.0, 10.0, 1.0, 1.0))
    assert slow.over(fast) == (2.0, 2.0, 2.0)
    assert fast.rate() == (1.0, 1.0, 1.0)


def test_ways_are_taken_in_turns():
    taken = []
    ways = {name: Way(lambda times, name=name: taken.append(name)) for name in "ab"}
    times = race(ways, rounds=3, least=0.0)
    assert "".join(taken[-6:]) == "ababab"
    assert [len(times[name].rounds) for name in "ab"] == [3, 3]


def test_numbers_that_disagree_are_not_timed():
    ours = np.array([[1.0, 2.0], [1e-3, 1e-3]])
    assert agree("x", ours, ours * (1 + 1e-12), 1e-11) > 0.0
    off = ours.copy()
    off[1, 1] += 1e-6  # small beside the other state, not in its own
    with pytest.raises(Disagreement, match="x: "):
        agree("x", ours, off, 1e-6)
    with pytest.raises(Disagreement):
        agree("x", ours * np.nan, ours, 1.0)


def test_targets_are_met_by_medians_at_their_bounds():
    at_least = next(t for t in targets.TARGETS if NAME in t.names)
    cases = {at_least.bound: "yes", 0.99 * at_least.bound: "no"}
    for median, met in cases.items():
        table = targets.table(record(median, median, median))
        assert [row[-1] for row in table.rows] == [met]
        assert table.notes == (f"{int(met == 'no')} of 1 are missed.",)
    at_most = next(t for t in targets.TARGETS if t.at_most)
    made = record(1.0, 1.0, 1.0)
    made.quantities.clear()
    made.add(at_most.names[0], "s", Spread(1.01 * at_most.bound, 0.0, 9.0))
    assert [row[-1] for row in targets.table(made).rows] == ["no"]


def test_growth_is_drawn_from_a_record():
    made = record(1.0, 1.0, 1.0)
    for n in sizes(4, 20):
        made.add((LINKS, "chain", str(n), FORWARD, OURS_ONE), "us", Spread(2.0 * n, n, 3.0 * n))
        made.add((LINKS, "chain", str(n), FORWARD, COMPILATION), "s", Spread(0.1 * n, 0.1 * n, 0.1 * n))
    lines = [plots.links(made).axes[k].lines[0] for k in (0, 2)]
    assert [np.asarray(line.get_xdata()).tolist() for line in lines] == 2 * [[4, 8, 16, 20]]
    assert np.asarray(lines[0].get_ydata()).tolist() == [8, 16, 32, 40]


def test_mujocos_biped_stands_beside_ours_on_twelve_contacts_that_bear_its_weight():
    pytest.importorskip("mujoco")
    scene = mujoco_scene.settled(1e-3)  # raises if it does not
    assert scene.model.nv == scene.robot.nv + 6 and abs(scene.data.qvel).max() < 0.01


def test_the_contact_problem_that_is_timed_is_solved_and_bears_the_block():
    impulses, (*state, guess) = balance.problem()
    for _ in range(6):
        guess = impulses(*state, guess)[0]
    p, _, u_next, residual = impulses(*state, guess)
    resting = p[8:12, 0].sum()  # the block's corners come behind the feet's
    assert abs(resting - 1e-3 * 9.81 * mujoco_scene.BLOCK.inertia.mass) < 1e-6 and abs(u_next).max() < 1e-6
    assert residual < 1e-6


def test_the_steps_whose_operations_are_counted_have_the_contacts_of_their_scenes():
    contacts, operations, solver = zip(*balance.step_costs().values(), strict=True)
    assert contacts == (8, 10, 12, 16)
    assert (np.diff(operations) > 0).all() and (np.array(solver) < operations).all()
