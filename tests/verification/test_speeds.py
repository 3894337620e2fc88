"""`legged bench`: what it times, and that it times no programs that disagree."""

from dataclasses import replace

import pytest

import legged
import robots
from legged.compiler import default_threads
from legged.errors import MismatchError, MissingError
from legged.verification import speeds as bench
from legged.verification.external import open_engine

QUICK = "test_works_advance_all_states"

ROBOT = robots.spatial_quadruped()


@pytest.fixture
def small(monkeypatch):
    for name, value in {"STATES": 70, "STEPS": 3, "ROBOTS": 4, "_LONG_ENOUGH": 1e-5}.items():
        monkeypatch.setattr(bench, name, value)


@pytest.fixture
def engines():
    for name in ("pinocchio", "mujoco"):
        pytest.importorskip(name)
    return {name: open_engine(name, ROBOT) for name in ("pinocchio", "mujoco")}


def test_the_tables_have_the_ratios_of_the_programs_that_are_installed(small, monkeypatch, capsys):
    def missing(name, robot):
        if name == "mujoco":
            raise MissingError("MuJoCo is not installed")
        pytest.importorskip("pinocchio")
        return open_engine(name, robot)

    monkeypatch.setattr(bench, "open_engine", missing)
    speeds, starts = bench.bench(ROBOT, "spatial_quadruped", rounds=1)
    assert "without mujoco: MuJoCo is not installed" in capsys.readouterr().out
    assert len(speeds.rows) == 8 and all(float(row[1]) > 0.0 for row in speeds.rows)
    assert [bool(row[2]) for row in speeds.rows] == [True, True, False, True, True, False, False, False]
    assert not any(row[3] for row in speeds.rows)
    assert all(float(row[1]) > 0.0 for row in starts.rows[:3:2]) and len(starts.rows) == 4


def test_ratios_are_those_of_the_times(small):
    times = {("a", "legged"): [1.0, 2.0, 4.0], ("a", "mujoco"): [3.0, 4.0, 8.0]}
    table = bench.speed_table("robot", times)
    assert table.rows == (("a", "2e+06", "", "2"),)


@pytest.mark.parametrize(
    ("name", "attribute"), [("pinocchio", "forward"), ("pinocchio", "inverse"), ("mujoco", "forward")]
)
def test_a_program_that_computes_other_numbers_is_not_timed(small, engines, name, attribute):
    assert any(program == name for _, program in bench.dynamics(engines[name].rigid, engines))
    call = getattr(engines[name], attribute)
    wrong = replace(engines[name], **{attribute: lambda *x: 1.001 * call(*x)})
    with pytest.raises(MismatchError, match="not timed"):
        bench.dynamics(wrong.rigid, {name: wrong})


def test_joints_that_follow_others_leave_out_the_forward_dynamics_of_programs_that_move_them_by_themselves(
    small, monkeypatch, capsys
):
    for name in ("pinocchio", "mujoco"):
        pytest.importorskip(name)
    robot = legged.random_tree(0, links=5, joints=("revolute",), coupled=True)
    monkeypatch.setattr(bench, "start_table", lambda *x: None)
    speeds, _ = bench.bench(robot, "unused", rounds=1)
    said = capsys.readouterr().out
    assert "without forward dynamics of Pinocchio" in said and "without forward dynamics of MuJoCo" in said
    assert robot.followers and all(joint.name in said for joint in robot.followers)
    ratios = {row[0]: row[2:] for row in speeds.rows}
    assert ratios["inverse dynamics, one state"][0] and not any(ratios["forward dynamics, one state"])


def test_works_advance_all_states(small, engines):
    works = bench.dynamics(ROBOT, {}) | bench.flights(engines["mujoco"].rigid, engines["mujoco"])
    for (what, program), work in works.items():
        work.run()
        assert work.count == (
            70
            if "batch" in what
            else 12
            if "4 robots" in what and program == "legged"
            else 3
            if "flight" in what
            else 1
        )
    assert default_threads() == 1 or any(work.threads for work in works.values())
