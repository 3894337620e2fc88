"""Motions of a log as runs: positions and velocities, tables, pages, figures, the viewer, and refused input."""

import re

import numpy as np
import pytest

import legged
import robots
from legged.errors import ArgumentError, FileError, NotFiniteError, ShapeError, UnknownNameError
from legged.ground import paper_ground
from legged.robot.configuration import integrate
from legged.rotations import quaternion_exp
from legged.simulation.results.run import Run
from legged.simulation.results.run_table import run_table
from legged.simulation.results.tables import BASE, BODY, JOINT, Column, distinct_names
from legged.viewer.page import page_of


def circling(robot, times):
    """Return q and v of a base that turns at 2 rad/s about z on a circle of 1 m, with swinging joints."""
    q, v = np.zeros((len(times), robot.nq)), np.zeros((len(times), robot.nv))
    for k, t in enumerate(times):
        q[k, :4] = quaternion_exp(np.array([0.0, 0.0, 2.0 * t]))
        q[k, 4:7] = np.sin(2.0 * t), -np.cos(2.0 * t), 0.4
        q[k, 7:] = 0.1 * np.sin(3.0 * t)
        v[k, 2], v[k, 3] = 2.0, 2.0  # along x of the base
        v[k, 6:] = 0.3 * np.cos(3.0 * t)
    return q, v


@pytest.fixture(scope="module")
def robot():
    return robots.spatial_quadruped()


def test_velocities_are_differences_of_second_order(robot):
    errors = []
    for n in (50, 100):
        times = np.linspace(0.0, 1.0, n + 1) ** 1.2  # uneven
        q, v = circling(robot, times)
        run = Run.from_motion(robot, times, q)
        errors.append(abs(run.v - v)[1:-1].max())
        assert np.array_equal(run.q, q) and np.array_equal(run.times, times)
    assert 3.5 < errors[0] / errors[1] < 4.5  # halving the step divides the error by four
    given = Run.from_motion(robot, times, q, v)
    assert np.array_equal(given.v, v)
    assert abs(given.vdot[1:-1, 6:] + 0.9 * np.sin(3.0 * times[1:-1, None])).max() < 1e-3
    assert (
        abs(given.energy.kinetic - [legged.kinetic_energy(robot, *row) for row in zip(q, v, strict=True)]).max() < 1e-9
    )


def standing(robot):
    """A configuration above the ground, into which the base at the origin would reach."""
    return robot.state(base_position=(0.0, 0.0, 0.6)).q


def test_a_simulated_motion_comes_back_as_recorded(robot):
    run = legged.simulate(robot, ground=paper_ground(robot), q=standing(robot), until=0.1, fall=False)
    again = Run.from_motion(robot, run.times, run.q, run.v, run.tau, ground=paper_ground(robot))
    for name in ("q", "v", "tau"):
        assert np.array_equal(getattr(again, name), getattr(run, name))
    np.testing.assert_allclose(again.figure.nodes, run.figure.nodes, atol=1e-12)
    np.testing.assert_allclose(again.base.position, run.base.position, atol=1e-15)
    np.testing.assert_allclose(again.energy.potential, run.energy.potential, atol=1e-9)
    np.testing.assert_array_equal(again.ground.surface, run.ground.surface)
    assert again.contacts.names == () and again.backend == "recorded motion"


def test_recorded_motions_are_saved_drawn_and_written(robot, tmp_path):
    times = np.linspace(0.0, 1.0, 30)
    run = Run.from_motion(robot, times, circling(robot, times)[0])
    again = Run.load(run.save(tmp_path / "motion"))
    assert np.array_equal(again.q, run.q) and np.isnan(again.tau).all()
    assert "recorded motion" in repr(run) and "energy drift" not in dict(run_table(run).rows)
    page = page_of([run])
    assert "torque" not in re.search(r'id="page">(.*?)</script>', page, re.DOTALL)[1]
    for figure in run.plot().values():
        figure.savefig(tmp_path / "figure.png")
    one = Run.from_motion(robot, [0.0], run.q[:1])
    assert not one.v.any() and page_of([one])


def test_tables_of_runs_come_back(robot, tmp_path):
    run = legged.simulate(robot, ground=paper_ground(robot), q=standing(robot), until=0.05, fall=False)
    again = Run.from_csv(robot, run.to_csv(tmp_path / "run"))
    for name in ("times", "q", "v", "tau"):
        assert np.array_equal(getattr(again, name), getattr(run, name)), name
    twice = Run.from_csv(robot, Run.from_motion(robot, run.times, run.q).to_csv(tmp_path / "twice"))
    assert np.array_equal(twice.q, run.q) and np.isnan(twice.tau).all()


def test_columns_of_other_names_are_found(tmp_path):
    robot = robots.chain(2, base=legged.FixedBase())
    first, second = (joint.name for joint in robot.joints)
    path = tmp_path / "log.csv"
    path.write_text("time,a,b,note\n0,0.1,0.2,7\n\n0.5,0.2,0.4,8\n", encoding="utf-8-sig")
    run = Run.from_csv(robot, path, {"t": "time", f"{first}_q": "a", f"{second}_q": "b"})
    assert run.q.tolist() == [[0.1, 0.2], [0.2, 0.4]] and run.v[0] == pytest.approx([0.2, 0.4])
    with pytest.raises(UnknownNameError, match="no column named 'knee_q'"):
        Run.from_csv(robot, path, {"knee_q": "a"})
    with pytest.raises(FileError, match="has no column 't'; name other columns by columns="):
        Run.from_csv(robot, path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no column"),
        ("t,j1_q\n", "has no rows|has no column"),
        ("t,j1_q\n0,1\n0,2\n", "each must be later"),
        ("t,j1_q\n0,x\n", "row 2 does not hold 2 numbers"),
        ("t,j1_q\n0,1,2\n", "row 2 does not hold 2 numbers"),
        ("t,j1_q\n0,\n", "must hold finite numbers|nan"),
        ("t,t\n0,1\n", "two columns of the same name"),
        (b"\xff\xfe\x00t", "in UTF-8|has no column"),
        ("t,j1_q\n0," + "1" * 200_000 + "\n", "no table of comma-separated values|finite"),
    ],
)
def test_damaged_tables_are_refused(text, words, tmp_path):
    robot = robots.chain(1, base=legged.FixedBase())
    path = tmp_path / "log.csv"
    content = text if isinstance(text, bytes) else text.replace("j1", robot.joints[0].name).encode()
    path.write_bytes(content)
    with pytest.raises(FileError, match=words):
        Run.from_csv(robot, path)


def test_invalid_motions_are_refused(robot):
    times = np.linspace(0.0, 1.0, 5)
    q, v = circling(robot, times)
    with pytest.raises(ArgumentError, match="each must be later than the one before"):
        Run.from_motion(robot, times[::-1], q)
    with pytest.raises(ShapeError, match="q must have one row per time of t, 5, got 4"):
        Run.from_motion(robot, times, q[:4])
    with pytest.raises(ShapeError):
        Run.from_motion(robot, times, v)
    with pytest.raises(NotFiniteError):
        Run.from_motion(robot, times, np.where(q == q[2, 9], np.nan, q))
    long = q.copy()
    long[3, :4] *= 1.1
    with pytest.raises(ArgumentError, match=r"q of sample 3: .*quaternion of the base"):
        Run.from_motion(robot, times, long)
    with pytest.raises(ArgumentError, match=r"robot must be a legged\.Robot"):
        Run.from_motion("robot", times, q)


def test_angles_are_continuous_through_turns_and_somersaults():
    """Two turns about z, and one about y, where the principal angles jump at every quarter turn."""
    robot = robots.spatial_quadruped()
    times, turns = np.linspace(0.0, 1.0, 201), np.linspace(0.0, 4.0 * np.pi, 201)
    for axis in range(3):
        q = np.tile(robot.neutral(), (201, 1))
        q[:, :4] = [quaternion_exp(angle * np.eye(3)[axis]) for angle in turns]
        run = Run.from_motion(robot, times, q)
        wanted = turns[:, None] * np.eye(3)[axis]
        np.testing.assert_allclose(run.base.angles(), wanted, atol=1e-7)  # beside gimbal lock, sqrt of rounding
        (figure,) = [ax for ax in run.plot()["trunk"].axes if "angle" in ax.get_ylabel()]
        np.testing.assert_allclose(figure.lines[axis].get_ydata(), np.degrees(turns), atol=1e-5)
        np.testing.assert_array_equal(dict(_columns(run))[f"base_angle_{'xyz'[axis]}"], run.base.angles()[:, axis])


def _columns(run):
    from legged.simulation.results.tables import table_columns

    return table_columns(run)


@pytest.mark.parametrize("sequence", ["xyz", "zyx", "zxz", "yxy"])
def test_continuous_angles_are_those_of_the_rotations(sequence):
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(4)
    q = [robot.neutral()]
    for _ in range(300):
        q.append(integrate(robot, q[-1], np.r_[0.2 * rng.normal(size=3), np.zeros(robot.nv - 3)]))
    run = Run.from_motion(robot, np.arange(301.0), q)
    from legged.rotations import euler_matrix

    angles = run.base.angles(sequence)
    rotations = np.array([euler_matrix(sequence, row) for row in angles])
    np.testing.assert_allclose(rotations, run.base.rotation, atol=1e-9)
    free = abs(np.sin(angles[:, 1])) if sequence[0] == sequence[2] else abs(np.cos(angles[:, 1]))
    far = (free > 0.5)[1:] & (free > 0.5)[:-1]
    assert abs(np.diff(angles, axis=0))[far].max() < 2.5  # [rad]: rotations of 1 rad, twice as far by the angles


@pytest.mark.parametrize("name", ["base", "t", "phase"])
def test_columns_of_the_same_name_are_told_apart(name, tmp_path):
    link = legged.Link("trunk", legged.sphere_inertia(1.0, 0.1), contacts={name: (0.0, 0.0, -0.1)})
    tip = legged.Link("tip", legged.sphere_inertia(1.0, 0.1), contacts={f"{name}_f": (0.0, 0.0, -0.1)})
    builder = legged.RobotBuilder("r", link).add(legged.Spherical(name), tip, to="trunk")
    ball = legged.FreeBody(name, legged.sphere_inertia(1.0, 0.1), [legged.Sphere(0.1)], position=(0.0, 9.0, 1.0))
    ground = legged.Rigid(pairs=((name, "terrain"),))
    run = legged.simulate(builder.build(), ground=ground, bodies=[ball], until=0.02, fall=False)
    columns = _columns(run)
    assert (columns["t"] == run.times).all() and (columns["base_q[4]"] == run.q[:, 4]).all()
    assert (columns["base_x"] == run.base.position[:, 0]).all()
    body = f"body_{name}_q[4]" if f"body_{name}_q[4]" in columns else f"{name}_q[4]"
    assert (columns[body] == run.bodies.q[:, 0, 4]).all()
    count = sum(x.shape[1] for x in (run.q, run.v, run.vdot, run.tau)) + 2 + 6 + 6 + 13
    assert len(columns) == count + 6 * len(run.contacts.names)
    if name == "base":
        assert "joint_base_q[0]" in columns and "body_base_q[0]" in columns
    header = run.to_csv(tmp_path / "run").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert header == list(columns)


def test_names_are_given_in_the_order_of_joints_whatever_the_order_of_the_columns():
    """A name that two joints, or a joint and a body, share belongs to the first of them."""
    kinds = [(BODY, 0), (JOINT, 2), (JOINT, 0), (BASE, 0)]
    columns = [Column(kind, number, "knee.q", np.zeros(1)) for kind, number in kinds]
    assert distinct_names(columns) == ["body_knee.q", "joint2_knee.q", "joint_knee.q", "knee.q"]
