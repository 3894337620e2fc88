"""Disturbance maps: directions of pushes and throws, outcomes, tables and files."""

import csv
import sys

import numpy as np
import pytest

import legged
import robots
from controllers import WorkspaceBalance
from examples.studies.balance.disturbance_map import (
    FELL,
    INTERRUPTED,
    OUTCOMES,
    SURVIVED,
    UNSETTLED,
    Pushes,
    SettlingCriterion,
    Throws,
    disturbance_map,
)
from examples.studies.balance.disturbance_report import DisturbanceStudy, map_figure, write
from examples.studies.commands import main
from legged.contact import Box, FreeBody, Rigid
from legged.errors import DefinitionError, SimulationInterrupt, UnknownNameError

PUSH = legged.Push("trunk", (0.0, 0.0, 0.0), at=0.1)
HERE = (0.2, -0.3, 0.5)


def mapped(sizes=(1.0, 4.0, 30.0), **options):
    """A standing quadruped pushed from four sides, for a second."""
    given = {"directions": 4, "until": 1.2, "ground": Rigid(), "integrator": legged.TimeStepping(2e-3)}
    return disturbance_map(robots.spatial_quadruped(), WorkspaceBalance(), Pushes(PUSH, sizes), **given | options)


@pytest.fixture(scope="module")
def quadruped():
    return mapped(settled=SettlingCriterion(0.2, 0.5))


def block(edge=0.1):
    size = (edge, edge, edge)
    return FreeBody("block", legged.box_inertia(1.8, size), [Box(size)])


def test_a_gentle_push_is_survived_and_one_of_its_weight_in_a_quarter_second_is_not(quadruped):
    assert (quadruped.outcomes[0] == SURVIVED).all() and (quadruped.outcomes[-1] == FELL).all()
    assert set(quadruped.boundary) <= {1.0, 4.0}


def test_a_map_in_a_store_is_that_in_memory_and_goes_on_after_an_interruption(quadruped, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="pyarrow, of the extra sweep, is not installed")
    from legged.sweeps import Sweep
    from legged.sweeps.cost import ChunkSizes

    given = {"settled": SettlingCriterion(0.2, 0.5), "store": tmp_path}
    monkeypatch.setattr(Sweep, "_measured", lambda self: [])  # short batches that determine sizes of chunks
    with monkeypatch.context() as patched:
        patched.setattr(ChunkSizes, "after_pilots", lambda self, *given: [0, 8, 12])
        patched.setattr(Sweep, "_outcomes", _interrupted_after_one)
        with pytest.raises(SimulationInterrupt, match="after 8 of 12 trials") as caught:
            mapped(**given)
    assert (caught.value.run.outcomes[:2] == quadruped.outcomes[:2]).all()
    assert (caught.value.run.outcomes[2] == INTERRUPTED).all()
    first = [path.stat().st_mtime_ns for path in (tmp_path / "chunks").iterdir()]
    stored = mapped(**given)
    assert set(first) < {path.stat().st_mtime_ns for path in (tmp_path / "chunks").iterdir()}
    assert (stored.outcomes == quadruped.outcomes).all() and stored.reasons == list(quadruped.reasons)
    np.testing.assert_allclose(stored.when, quadruped.when)
    assert stored.write_csv(tmp_path / "a.csv").read_text() == quadruped.write_csv(tmp_path / "b.csv").read_text()


def _interrupted_after_one(self, job, missing):
    yield missing[0], job.compute(*missing[0])
    raise KeyboardInterrupt


def test_a_run_of_the_map_is_that_of_simulate(quadruped):
    law = WorkspaceBalance()
    push = legged.Push("trunk", (0.0, -4.0, 0.0), at=0.1)  # from +y, the second of four directions
    alone = legged.simulate(
        robots.spatial_quadruped(),
        law,
        ground=Rigid(),
        until=1.2,
        pushes=[push],
        sample=0.05,
        integrator=legged.TimeStepping(2e-3),
    )
    np.testing.assert_allclose(quadruped.runs.q[1 * 4 + 1], alone.q, atol=1e-9)  # rounding, over 600 steps


def test_the_last_member_is_left_alone(quadruped):
    moved = np.abs(quadruped.runs.q[-1] - quadruped.runs.q[-1, 0]).max()
    pushed = np.abs(quadruped.runs.q[0] - quadruped.runs.q[-1]).max()
    assert moved < 1e-4 < 1e-2 < pushed  # [m], [rad]: feet begin within rounding of the ground


def test_what_has_not_settled_is_told_from_what_has():
    at_once = mapped(sizes=(1.0, 2.0), until=0.3, settled=SettlingCriterion(1e-6, 1e-6, 0.05))
    assert (at_once.outcomes == UNSETTLED).all() and (at_once.boundary == 0.0).all()


def test_settling_does_not_ask_for_a_position_that_may_be_anywhere():
    assert "mm" not in str(SettlingCriterion(np.inf, 0.1)) and "20 mm and 2 degrees" in str(SettlingCriterion())


def test_the_boundary_is_the_size_below_which_all_are_survived(quadruped):
    hole = np.array([[SURVIVED, SURVIVED, FELL, UNSETTLED], [SURVIVED, FELL, SURVIVED, SURVIVED], [SURVIVED] * 4])
    parts = {name: value for name, value in vars(quadruped).items() if name != "boundary"}
    assert type(quadruped)(**parts | {"outcomes": hole}).boundary.tolist() == [30.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(3))
def test_pushes_go_away_from_where_they_come_from(seed):
    rng = np.random.default_rng(seed)
    angle, size = rng.uniform(0.0, 2 * np.pi), rng.uniform(0.1, 9.0)
    source = np.array([[np.cos(angle), np.sin(angle), 0.0]])
    varied = Pushes(PUSH, (1.0, 2.0)).vary(robots.spatial_quadruped(), np.zeros(0), source, np.array([size]))
    np.testing.assert_allclose(varied["pushes.0.impulse"], -size * source)


@pytest.mark.parametrize("seed", range(3))
def test_throws_lead_through_their_target_in_free_fall(seed):
    rng, robot = np.random.default_rng(seed), robots.spatial_biped()
    q = legged.random_configuration(robot, rng)
    angle, speed = rng.uniform(0.0, 2 * np.pi), rng.uniform(1.0, 9.0)
    source = np.array([[np.cos(angle), np.sin(angle), 0.0]])
    throws = Throws(block(), (1.0, 2.0), "trunk_1", target=HERE, distance=0.7)
    varied = throws.vary(robot, q, source, np.array([speed]))
    start, velocity = varied["bodies.0.position"][0], varied["bodies.0.velocity"][0]
    t = 0.7 / speed
    reached = start + t * velocity + 0.5 * t**2 * robot.gravity
    np.testing.assert_allclose(reached, legged.link_poses(robot, q)[1][0] + np.array(HERE), atol=1e-12)
    assert np.hypot(*velocity[:2]) == pytest.approx(speed)


def test_what_is_thrown_at_a_robot_that_is_left_alone_flies_away():
    robot = robots.spatial_biped()
    source = np.array([[0.0, 1.0, 0.0]])
    varied = Throws(block(), (1.0, 2.0), "trunk_1").vary(robot, robot.neutral(), source, np.zeros(1))
    assert varied["bodies.0.velocity"][0, 1] == 1.0


@pytest.mark.parametrize("sizes", [(1.0,), (0.0, 1.0), (2.0, 1.0), (1.0, np.nan), [[1.0, 2.0]]])
def test_sizes_that_make_no_scale_are_refused(sizes):
    with pytest.raises(DefinitionError, match="at least two increasing positive numbers"):
        Pushes(PUSH, sizes)


def test_a_robot_that_falls_by_itself_has_no_map():
    robot = robots.planar_hopper()
    q = robot.neutral()
    q[:3] = 0.3, 0.0, 0.6  # leans, and nothing drives it
    pushes = Pushes(legged.Push(robot.links[0].name, (0.0, 0.0, 0.0), at=0.1), (1.0, 2.0))
    with pytest.raises(DefinitionError, match="falls without disturbance"):
        disturbance_map(robot, None, pushes, directions=3, until=1.0, ground=Rigid(), q=q)


def test_cases_that_cannot_be_are_refused():
    with pytest.raises(DefinitionError, match="'trunk' has no shapes"):
        DisturbanceStudy(robots.spatial_quadruped(), throw=True)
    with pytest.raises(UnknownNameError, match="gait"):
        DisturbanceStudy(robots.spatial_quadruped(), gait="hop")
    with pytest.raises(DefinitionError, match="3 directions or more"):
        mapped(directions=2)


def test_table_figure_and_rows_tell_of_every_run(quadruped, tmp_path):
    text = quadruped.table(4).text()
    assert "12 runs of 1.2 s" in text and "survives [N s]" in text and "4 fell" in text
    case = DisturbanceStudy(robots.spatial_quadruped())
    picture, rows = write(case, quadruped, tmp_path)
    assert picture.stat().st_size > 10_000
    with rows.open() as file:
        lines = list(csv.DictReader(file))
    assert [row["outcome"] for row in lines] == [OUTCOMES[k] for k in quadruped.outcomes.ravel()]
    assert (float(lines[5]["from_deg"]), float(lines[5]["impulse [N s]"])) == (90.0, 4.0) and lines[-1]["why"]
    (mesh,) = map_figure(case.robot, quadruped).axes[0].collections
    assert mesh.get_array().size == quadruped.outcomes.size


@pytest.mark.slow
def test_the_command_prints_the_map_and_writes_it(capsys, monkeypatch, tmp_path):
    size = ("--directions", "3", "--sizes", "2", "--duration", "0.4", "--most", "4", "--output", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["legged", "disturbances", "spatial_quadruped", *size])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr().out
    assert not ended.value.code
    assert "6 runs of 0.4 s" in printed and "pushes.png" in printed
    assert (tmp_path / "pushes.csv").read_text().count("\n") == 7


@pytest.mark.slow
def test_the_biped_survives_what_is_thrown_from_behind_harder_than_from_the_side():
    result = DisturbanceStudy(robots.spatial_biped(), throw=True, directions=4, sizes=6).map()
    assert "compiled time steps" in result.runs.backend
    assert result.boundary[2] >= 4.5  # [m/s], the paper's throw, from -x
    assert result.boundary[1] < result.boundary[2]
