"""The study of velocity gains: closed forms of pendulums, quadrupeds on two diagonal feet, the command line."""

from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

import legged
import robots
from examples.studies.balance import gain_study as study
from examples.studies.commands import main
from legged.algorithms.velocity_gains import velocity_gains
from legged.errors import DefinitionError


def test_gains_of_upright_rods_have_a_closed_form_with_its_largest_value_at_a_third():
    design = study.design_study(number=5)
    hip = design.leg[None, :] + 0.0 * design.trunk[:, None]  # height of the joint, of 1 m
    neck = design.leg[None, :] + design.trunk[:, None]
    for k, height in enumerate((hip, neck)):
        known = np.isfinite(design.gains[:, :, k])
        expected = -height * (1.0 - height) ** 2 / 4.0
        assert known.sum() == 15 and np.allclose(design.gains[known, k], expected[known], rtol=1e-9)
    a = np.linspace(0.0, 1.0, 3001)
    assert np.isclose(np.max(a * (1.0 - a) ** 2 / 4.0), 1.0 / 27.0, atol=1e-7)


def point_pendulum(height, hip, upper):
    """Return a leg with 2 kg at a height on a pivot, and 1 kg at the distance `upper` above its hip."""
    builder = legged.RobotBuilder("points", legged.Link("ground", legged.point_mass(1.0)), base=legged.FixedBase())
    lower = legged.Link("leg", legged.point_mass(2.0, (0.0, 0.0, height)))
    above = legged.Link("trunk", legged.point_mass(1.0, (0.0, 0.0, upper)))
    builder.add(legged.Revolute("pivot", "y"), lower, to="ground")
    builder.add(legged.Revolute("hip", "y"), above, to="leg", at=(0.0, 0.0, hip))
    return builder.build()


@pytest.mark.parametrize("height", [0.3, 0.6, 0.9, 1.2])
def test_the_gain_is_zero_exactly_where_two_point_masses_meet_and_controllability_is_lost(height):
    hip, upper = 0.5, 0.4
    robot, rest = point_pendulum(height, hip, upper), np.zeros(2)
    gain = velocity_gains(robot, rest, passive=["pivot"]).linear[0, 0]
    m1, m2, top = 2.0, 1.0, hip + upper
    inertia = m1 * height**2 + m2 * top**2
    assert np.isclose(gain, m1 * m2 * upper * height * (height - top) / ((m1 + m2) * inertia), rtol=1e-12, atol=1e-15)
    A, B, _ = legged.linearize(robot, rest, rest, rest)
    columns = np.stack([np.linalg.matrix_power(A, k) @ B[:, 1] for k in range(4)], axis=1)
    columns = columns / np.linalg.norm(columns, axis=0)
    assert (np.linalg.matrix_rank(columns, tol=1e-9) < 4) == (height == top) == (abs(gain) < 1e-15)


@pytest.fixture(scope="module")
def stance():
    return study.DiagonalStance(robots.spatial_quadruped())


def test_joint_actions_change_no_angular_momentum_about_the_line_of_support(stance):
    robot, q = stance.robot, stance.q
    actions = np.stack(list(stance.actions.values()), axis=1)
    gains_of_robot = velocity_gains(robot, q, stance.feet, actions)
    foot = legged.frame_pose(robot, q, stance.feet[0]).position
    along, across = stance.axes
    gains = stance.gains()
    for k, name in enumerate(stance.actions):
        spin, linear = np.split(legged.momentum(robot, q, gains_of_robot.velocity[:, k]), 2)
        about = spin + np.cross(legged.center_of_mass(robot, q) - foot, linear)
        assert abs(along @ about) < 1e-10
        assert np.isclose(gains[name][0], across @ gains_of_robot.linear[:, k])


def test_the_trunk_moves_as_its_action_says_while_the_feet_stand(stance):
    robot, q = stance.robot, stance.q
    J = np.concatenate([legged.frame_jacobian(robot, q, foot)[3:] for foot in stance.feet])
    across = stance.axes[1]
    v = np.concatenate([np.zeros(3), across, stance.actions["trunk moves across the line"]])
    assert np.abs(J @ v).max() < 1e-12
    assert abs(stance.gains()["trunk moves across the line"][1]) > 0.05


def test_a_stance_needs_a_quadruped():
    with pytest.raises(DefinitionError, match="has 2 legs"):
        _ = study.DiagonalStance(robots.spatial_biped()).q


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["legged", "velocity-gains", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), *capsys.readouterr()


def test_the_command_prints_tables_and_writes_figures(monkeypatch, capsys, tmp_path):
    pytest.importorskip("lxml")
    legged.save_urdf(robots.spatial_quadruped(), tmp_path / "mine.urdf")
    status, out, _ = run(monkeypatch, capsys, str(tmp_path / "mine.urdf"), "--number", "5", "-o", str(tmp_path))
    assert status == 0
    assert "upright" in out and "trunk turns about the line" in out
    assert {path.name for path in tmp_path.glob("*.png")} == {"design.png", "poses.png", "quadrupeds.png"}


def test_a_missing_package_is_named(monkeypatch, capsys):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(study, "files", missing)
    status, _, err = run(monkeypatch, capsys)
    assert status == 1 and "pip install example-robot-data" in err
