"""`legged.verify` passes for random robots and files, and each law detects the error that it is for."""

from dataclasses import replace

import numpy as np
import pytest

import legged
import robots
from legged.errors import DefinitionError, MissingError, UnknownNameError, VerificationError
from legged.robot.construction.random_tree import ALL_JOINTS
from legged.spatial import Translation
from legged.verification import checks, external, laws, verify

EVERYTHING = {"joints": ALL_JOINTS}


@pytest.mark.parametrize("seed", [0, 2])
def test_random_robots_with_all_that_joints_can_have_keep_every_law(seed):
    robot = legged.random_tree(seed, links=5, physics=True, coupled=True, shuffled=True, **EVERYTHING)
    verification = legged.verify(robot, states=1)
    assert verification.passed
    assert len(verification.checks) == (14 if robot.base.nv else 13)


@pytest.mark.parametrize(("program", "bases"), [("pinocchio", ("floating", "planar")), ("mujoco", ("euler", "fixed"))])
def test_other_programs_agree_on_robots_of_every_base_as_exported(program, bases):
    pytest.importorskip(program)
    joints = ("revolute", "prismatic", "universal", "constantvelocity", "spherical", "planar", "fixed")
    for seed, base in enumerate(bases):
        robot = legged.random_tree(seed, links=3, joints=joints, bases=(base,), physics=True, coupled=True)
        verification = legged.verify(robot, program, states=1)
        assert "(as exported)" in verification.checks[-1].law


URDF = """<robot name="arm">
  <link name="stand"/>
  <link name="upper"><inertial><origin xyz="0 0 0.2" rpy="0.1 0 0"/><mass value="2"/>
    <inertia ixx="0.03" iyy="0.02" izz="0.01" ixy="0" ixz="0.001" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0.1 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="stand"/><child link="upper"/>
    <origin xyz="0 0 0.5" rpy="0 0.3 0"/><axis xyz="0 1 0"/><dynamics damping="0.5" friction="0.1"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0 0 0.4"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="5" velocity="3"/></joint>
</robot>"""


def test_pinocchio_reads_the_file_itself_and_notices_another_mass(tmp_path):
    pytest.importorskip("pinocchio")
    path = tmp_path / "arm.urdf"
    path.write_text(URDF)
    robot = legged.load(path, base="fixed")
    verification = legged.verify(robot, "pinocchio", states=1)
    assert verification.checks[-1].law == "inertia matrix of Pinocchio (arm.urdf)"
    assert not failed(robot, "pinocchio")
    path.write_text(URDF.replace('<mass value="1"/>', '<mass value="1.01"/>'))
    assert failed(robot, "pinocchio") == {"inverse dynamics of Pinocchio", "inertia matrix of Pinocchio"}
    locked = legged.verify(robot.locked({"elbow": 0.3}), "pinocchio", states=1)
    assert "(as exported)" in locked.checks[-1].law


MJCF = """<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint name="base"/>
  <inertial pos="0 0 0.1" mass="3" diaginertia="0.1 0.2 0.15"/>
  <body name="leg" pos="0.2 0 0"><joint name="hip_x" axis="1 0 0" damping="0.4" armature="0.01"/>
    <joint name="hip_y" axis="0 1 0" stiffness="3" frictionloss="0.2"/>
    <inertial pos="0 0 -0.2" mass="1" diaginertia="0.02 0.02 0.005"/></body></body></worldbody></mujoco>"""


def test_mujoco_reads_the_file_itself(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "hopper.xml"
    path.write_text(MJCF)
    robot = legged.load(path)
    verification = legged.verify(robot, ("mujoco", "pinocchio"), states=1)
    laws_compared = [check.law for check in verification.checks if "matrix of" in check.law]
    assert "inertia matrix of MuJoCo (hopper.xml)" in laws_compared
    assert "inertia matrix of Pinocchio (as exported)" in laws_compared
    path.write_text(MJCF.replace('mass="1"', 'mass="1.01"'))
    assert failed(robot, "mujoco") == {"inverse dynamics of MuJoCo", "inertia matrix of MuJoCo"}


def failed(robot, against=()):
    """Return the laws that a robot breaks."""
    try:
        verify(robot, against, states=1)
    except VerificationError as error:
        assert "FAILED" in str(error)
        return {check.law.split(" (")[0] for check in error.verification.checks if not check.passed}
    return set()


def changed(robot, index, **parts):
    """Return the robot with one body changed."""
    bodies = list(robot.bodies)
    bodies[index] = replace(bodies[index], **parts)
    return replace(robot, bodies=tuple(bodies))


INERTIA = {"inertia matrix from link and rotor inertias", "inertia matrix of the dense DeNOC equations"}


def test_bodies_that_are_not_what_was_defined_are_noticed():
    robot = robots.planar_biped()
    body = robot.bodies[3]
    heavier = replace(body.moments, mass=body.moments.mass + 1e-6)
    regrouped = replace(body.regrouped, mass=body.regrouped.mass + 1e-6)
    assert failed(changed(robot, 3, regrouped=regrouped)) >= INERTIA
    dense_too = failed(changed(robot, 3, regrouped=regrouped, moments=heavier))
    assert "inertia matrix from link and rotor inertias" in dense_too
    assert "inertia matrix of the dense DeNOC equations" not in dense_too
    moved = changed(robot, 3, before_joint=(Translation(np.array([1e-6, 0.0, 0.0])), *body.before_joint))
    assert "link poses follow from the joint definitions" in failed(moved)
    assert "link poses follow from the joint definitions" in failed(
        changed(robot, 3, after_joint=body.after_joint + 1e-6)
    )


def off(function, size=1e-6):
    """Return the function with an answer that is a little off."""

    def wrong(*arguments, **named):
        answer = function(*arguments, **named)
        if isinstance(answer, tuple):
            return answer[0] + size, answer[1]
        return answer + size * np.abs(answer).max()

    return wrong


@pytest.mark.parametrize(
    ("function", "laws_broken"),
    [
        (
            "forward_dynamics",
            {"inverse dynamics of forward dynamics: forces", "forward dynamics in the dense DeNOC equations"},
        ),
        (
            "inverse_dynamics",
            {"forward dynamics of inverse dynamics: acceleration", "inertia matrix from unit accelerations"},
        ),
        ("inertia_matrix", {"inertia matrix from unit accelerations", "inertia matrix of the dense DeNOC equations"}),
        ("bias_forces", {"bias forces of the dense DeNOC equations"}),
        ("floating_inverse_dynamics", {"floating inverse dynamics: no force on the base"}),
    ],
)
def test_mistakes_of_the_recursions_are_noticed(monkeypatch, function, laws_broken):
    monkeypatch.setattr(laws, function, off(getattr(laws, function)))
    assert laws_broken <= failed(robots.planar_biped())


def test_mistakes_of_machine_code_are_noticed(monkeypatch):
    real = legged.compile
    monkeypatch.setattr("legged.verification.checks.compile_function", lambda f, robot: off(real(f, robot)))
    broken = failed(robots.planar_biped())
    assert broken == {"compiled forward dynamics", "compiled inverse dynamics", "compiled inertia matrix"}


@pytest.mark.parametrize(
    ("row", "laws_broken"),
    [
        (3, {"momentum in the same motion", "energy in 0.05 s of free motion"}),
        (-1, {"energy in 0.05 s of free motion"}),
    ],
)
def test_forces_out_of_nowhere_are_noticed_in_flight(monkeypatch, row, laws_broken):
    """One on the base changes momentum and energy; one inside, between two links, energy alone."""
    real = laws.forward_dynamics

    def blown(robot, q, v, tau):
        return real(robot, q, v, tau + 1e-3 * np.eye(robot.nv)[row])

    def compiled_with_force(motion, robot):
        with monkeypatch.context() as traced:
            traced.setattr(laws, "forward_dynamics", blown)
            return legged.compile(motion, robot)

    monkeypatch.setattr(laws, "compile_function", compiled_with_force)
    assert failed(robots.spatial_quadruped()) == laws_broken


def test_a_nan_in_any_state_is_a_failure(monkeypatch):
    figures = iter([1e-16, np.nan, 1e-16])
    monkeypatch.setitem(checks.LAWS, "nonsense", lambda s: next(figures))
    with pytest.raises(VerificationError) as error:
        legged.verify(robots.planar_biped())
    assert [check.law for check in error.value.verification.checks if not check.passed] == ["nonsense"]


def test_text_is_the_table_and_is_printed_on_request_only(capsys):
    verification = legged.verify(robots.planar_biped(), states=1)
    assert not capsys.readouterr().out
    legged.verify(robots.planar_biped(), states=1, show=True)
    out = capsys.readouterr().out
    assert out == f"{verification}\n" == f"{verification!r}\n"
    assert "planar biped: largest relative error over 1 random states" in out
    assert "energy in 0.05 s of free motion" in out
    assert "FAILED" not in out


def test_what_cannot_be_verified_is_refused(monkeypatch):
    still = legged.RobotBuilder(
        "table", legged.Link("top", legged.sphere_inertia(1, 1)), base=legged.FixedBase()
    ).build()
    with pytest.raises(DefinitionError, match="'table' has no degree of freedom"):
        legged.verify(still)
    with pytest.raises(UnknownNameError, match="no program to compare with named 'pinochio'; did you mean 'pinocchio'"):
        legged.verify(robots.planar_biped(), "pinochio", states=1)
    monkeypatch.setattr(external.importlib, "import_module", lambda name: importlib_error(name))
    with pytest.raises(MissingError, match="pip install pin"):
        legged.verify(robots.planar_biped(), "pinocchio", states=1)


def importlib_error(name):
    raise ImportError(name)


def test_a_program_that_refuses_the_robot_gets_a_row_with_the_reason(monkeypatch):
    def refuse(*arguments):
        raise DefinitionError("inertia must be positive")

    monkeypatch.setattr(external.conversions, "mujoco_model", refuse)
    report = verify(robots.planar_hopper(), "mujoco", states=1)
    assert "dynamics of mujoco" in str(report) and "as exported: inertia must be positive" in str(report)
    assert "compiled inertia matrix" in str(report)
