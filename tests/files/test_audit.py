"""The audit of a file: physically impossible elements, by how much, and the resulting robot."""

import numpy as np
import pytest
from typer.testing import CliRunner

import legged
from legged.app.cli import app
from legged.errors import FileError, UnknownNameError
from legged.files.inertias import inertia_fault, nearest_consistent
from legged.robot.inertia import Inertia

pytest.importorskip("lxml")
from oracles.urdf_texts import BIPED

LEFT_FOOT = '<mass value="0.7"/>\n      <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.004" iyz="0" izz="0.0005"/>'


@pytest.fixture
def write(tmp_path):
    """Return a function that writes the biped with some words replaced, and returns its path."""

    def written(*changes):
        text = BIPED
        for before, after in changes:
            assert before in text
            text = text.replace(before, after, 1)
        path = tmp_path / "robot.urdf"
        path.write_text(text)
        return path

    return written


def of_kind(audit, kind):
    return [finding for finding in audit.findings if finding.kind == kind]


def random_tensor(rng, low):
    """Return a random inertia tensor, its second moments of mass down to `low`."""
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    moments = np.array([low, *rng.uniform(0.1, 1.0, 2)])
    J = (axes * moments) @ axes.T
    return np.trace(J) * np.eye(3) - J


@pytest.mark.parametrize("seed", range(10))
def test_inertia_fault_is_found_exactly_where_second_moments_are_negative(seed):
    rng = np.random.default_rng(seed)
    assert inertia_fault(Inertia(1.0, np.zeros(3), random_tensor(rng, 0.0), checked=False)) is None
    faulty = Inertia(1.0, np.zeros(3), random_tensor(rng, -0.05), checked=False)
    fault = inertia_fault(faulty)
    a, b, c = np.linalg.eigvalsh(faulty.tensor)
    assert fault.excess == pytest.approx((c - a - b) / c)
    assert not fault.indefinite
    assert inertia_fault(Inertia(1.0, np.zeros(3), np.diag([-0.1, 0.2, 0.2]), checked=False)).indefinite


@pytest.mark.parametrize("seed", range(10))
def test_nearest_consistent_inertia_is_consistent_and_nearest(seed):
    rng = np.random.default_rng(seed)
    faulty = Inertia(1.0, np.zeros(3), random_tensor(rng, -0.05), checked=False)
    fixed = nearest_consistent(faulty)
    assert inertia_fault(fixed) is None
    distance = np.linalg.norm(second_moments(fixed) - second_moments(faulty))
    for _ in range(50):
        noise = 0.02 * rng.normal(size=(3, 3))
        values, axes = np.linalg.eigh(second_moments(faulty) + noise + noise.T)
        other = (axes * np.maximum(values, 0.0)) @ axes.T  # second moments that some body has, near the faulty ones
        assert np.linalg.norm(other - second_moments(faulty)) > distance
    possible = Inertia(1.0, np.zeros(3), random_tensor(rng, 0.01))
    assert np.allclose(nearest_consistent(possible).tensor, possible.tensor, rtol=0.0, atol=1e-14)


def second_moments(inertia):
    return np.trace(inertia.tensor) / 2 * np.eye(3) - inertia.tensor


def test_a_sound_file_has_nothing_but_massless_frames(write):
    audit = legged.load(write()).audit
    assert [(finding.severity, finding.kind) for finding in audit.findings] == [("harmless", "massless")]
    assert audit.mass == pytest.approx(13.6)
    assert audit.joints == ("left_hip", "left_knee", "right_hip", "right_slide")
    assert audit.modules == (("base_footprint", "trunk"), ("left_thigh", "left_foot"), ("right_leg", "right_foot"))
    robot = legged.load(write())
    assert np.allclose(audit.center, legged.center_of_mass(robot, robot.neutral()), rtol=0.0, atol=1e-15)


def test_an_impossible_inertia_is_suspicious_alone_and_harmless_on_a_body(write):
    impossible = ('izz="0.0005"', 'izz="0.01"')
    alone = of_kind(legged.load(write(impossible)).audit, "inertia")
    assert [(finding.severity, finding.where) for finding in alone] == [("suspicious", "link 'left_foot'")]
    assert alone[0].excess == pytest.approx((0.01 - 0.008) / 0.01)
    fixed = ('name="left_knee" type="continuous"', 'name="left_knee" type="fixed"')
    on_a_body = of_kind(legged.load(write(impossible, fixed)).audit, "inertia")
    assert [finding.severity for finding in on_a_body] == ["harmless"]
    assert "as one body with 'left_thigh'" in on_a_body[0].words


def test_impossible_inertias_are_kept_unless_repair_is_asked_for(write):
    path = write(('izz="0.0005"', 'izz="0.01"'))
    kept, repaired = legged.load(path), legged.load(path, repair="inertia")
    assert kept.link("left_foot").inertia.tensor[2, 2] == 0.01
    assert inertia_fault(repaired.link("left_foot").inertia) is None
    assert "link 'left_foot' is replaced by the nearest physically consistent one" in repaired.audit.repaired[0]
    assert not kept.audit.repaired
    assert not of_kind(repaired.audit, "inertia")


def test_options_are_those_of_load(write):
    assert legged.audit(write(), order="file", repair="inertia").joints
    with pytest.raises(UnknownNameError, match="no argument of load named 'repairs'; did you mean 'repair'"):
        legged.audit(write(), repairs="inertia")


def test_findings_of_an_unknown_severity_are_an_error(write):
    with pytest.raises(UnknownNameError, match="did you mean 'harmless'"):
        legged.audit(write()).of("harmles")


def test_joints_without_inertia_are_rejected_and_fixed_on_request(write):
    path = write((LEFT_FOOT, '<mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'))
    with pytest.raises(FileError, match=r"the dynamics are singular: joint 'left_knee': .*repair='weld'"):
        legged.load(path)
    assert [finding.where for finding in legged.audit(path).singular] == ["joint 'left_knee'"]
    welded = legged.load(path, repair="weld")
    assert [joint.name for joint in welded.joints] == ["left_hip", "right_hip", "right_slide"]
    assert welded.audit.repaired == ("joint 'left_knee' is fixed at zero, since it moves no mass",)


def test_a_massless_link_that_only_follows_is_no_trouble(write):
    massless = (LEFT_FOOT, '<mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>')
    path = write(massless, ('<child link="left_foot"/>', '<child link="left_foot"/><mimic joint="left_hip"/>'))
    robot = legged.load(path)
    assert [joint.name for joint in robot.followers] == ["left_knee"]
    assert not robot.audit.singular


def test_a_massless_link_between_joints_and_a_point_are_suspicious(write):
    start = BIPED.index("<inertial>", BIPED.index('link name="left_thigh"'))
    thigh = BIPED[start : BIPED.index("</inertial>", start) + len("</inertial>")]
    skew = ('xyz="0 0 -0.3"/><axis xyz="0 1 0"/>', 'xyz="0 0 -0.3"/><axis xyz="1 0 0"/>')
    audit = legged.load(write((thigh, ""), skew)).audit
    assert [(finding.severity, finding.where) for finding in of_kind(audit, "massless")] == [
        ("suspicious", "link 'left_thigh'"), ("harmless", "link 'base_footprint'")
    ]  # fmt: skip
    point = (LEFT_FOOT, '<mass value="0.7"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>')
    assert [finding.where for finding in of_kind(legged.load(write(point)).audit, "point")] == ["link 'left_foot'"]


def test_point_mass_on_its_joint_axis_is_rejected(write):
    point = '<mass value="0.7"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    path = write((LEFT_FOOT, point), ('xyz="0 0 -0.3"/><axis xyz="0 1 0"/>', 'xyz="0 0 -0.3"/><axis xyz="0 0 1"/>'))
    with pytest.raises(FileError, match=r"joint 'left_knee' .* can move without inertia"):
        legged.load(path)
    assert legged.audit(path).singular[0].kind == "unanswered"


def test_negative_inertias_are_rejected_where_the_inertia_matrix_is_indefinite(write):
    with pytest.raises(FileError, match=r"mass -0\.7 kg is negative"):
        legged.load(write(('value="0.7"', 'value="-0.7"')))
    with pytest.raises(FileError, match=r"negative inertia"):
        legged.load(write(('ixx="0.004" ixy="0" ixz="0" iyy="0.004"', 'ixx="0.004" ixy="0" ixz="0" iyy="-0.1"')))
    harmless = legged.load(write(('iyz="0" izz="0.0005"', 'iyz="0" izz="-0.0005"')))
    assert of_kind(harmless.audit, "inertia")[0].severity == "suspicious"


def test_inertia_matrix_indefinite_at_some_configurations_only_is_rejected(tmp_path):
    """About z the gun has cos^2 a - 0.3 sin^2 a at the angle a about y, and the ring 0.05 kg m^2."""
    path = tmp_path / "robot.urdf"
    text = """<robot name="turret"><link name="ground"/>
        <link name="ring"><inertial><mass value="1"/>
          <inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.05"/></inertial></link>
        <joint name="turn" type="continuous"><parent link="ground"/><child link="ring"/><axis xyz="0 0 1"/></joint>
        <link name="gun"><inertial><mass value="1"/>
          <inertia ixx="-0.3" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
        <joint name="tilt" type="continuous"><parent link="ring"/><child link="gun"/><axis xyz="0 1 0"/></joint>
        </robot>"""
    path.write_text(text)
    with pytest.raises(FileError, match="link 'ring' has a motion with negative inertia"):
        legged.load(path, "fixed")
    path.write_text(text.replace('ixx="-0.3"', 'ixx="-0.08"'))
    with pytest.raises(FileError, match=r"the links 'gun' make the inertia matrix indefinite.*repair='inertia'"):
        legged.load(path, "fixed")
    assert legged.load(path, "fixed", repair="inertia").nv == 2


def test_wrong_units_are_suspected(write):
    audit = legged.load(
        write(('ixx="0.11" ixy="0.001" ixz="-0.002" iyy="0.12"', 'ixx="110" ixy="0" ixz="0" iyy="120"'))
    ).audit
    assert any("check the units" in finding.words for finding in of_kind(audit, "size"))


def test_inertias_too_large_for_the_shapes_of_their_links_are_suspected(write):
    foot = '<mass value="0.7"/>\n      <inertia ixx="{0}" ixy="0" ixz="0" iyy="{0}" iyz="0" izz="0.0005"/>'
    diagonal = np.sqrt(0.2**2 + 0.1**2 + 0.32**2)  # of the box of the right foot and its origin, [m], in its own axes
    for share, is_found in ((0.9, False), (1.5, True)):  # in world axes the turned box is larger
        radius = share * np.sqrt(3.0 / 8.0) * diagonal
        path = write((LEFT_FOOT, "LEFT"), (LEFT_FOOT, foot.format(0.7 * radius**2)), ("LEFT", LEFT_FOOT))
        (finding,) = of_kind(legged.load(path).audit, "size") or (None,)
        assert (finding is not None) == is_found
    assert finding.where == "link 'right_foot'" and "too large for shapes" in finding.words


def test_a_robot_bolted_to_the_world_is_suspected_to_be_meant_fixed(write):
    path = write(('link name="base_footprint"', 'link name="world"'), ('link="base_footprint"', 'link="world"'))
    assert [finding.severity for finding in of_kind(legged.load(path).audit, "world")] == ["suspicious"]
    assert not of_kind(legged.load(path, "fixed").audit, "world")


def test_command_prints_the_audit_and_fails_for_a_rejected_file(write):
    fine = CliRunner().invoke(app, ["audit", str(write())])
    assert fine.exit_code == 0
    for words in (
        "13.6 kg",
        "lower corners of its box",
        "Joints in the order of v",
        "Kinematic modules",
        "Conditioning",
    ):
        assert words in fine.output
    massless = write((LEFT_FOOT, '<mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'))
    refused = CliRunner().invoke(app, ["audit", str(massless)])
    assert refused.exit_code == 1
    assert "repair='weld'" in " ".join(refused.output.split())
    welded = CliRunner().invoke(app, ["audit", str(massless), "--repair", "weld"])
    assert welded.exit_code == 0
    assert "is fixed at zero" in " ".join(welded.output.split())


@pytest.mark.slow
def test_public_robots_are_judged_as_they_were_read():
    pytest.importorskip("pinocchio")
    from oracles.urdfs import all_urdfs

    files = all_urdfs()
    if not files:
        pytest.skip("example_robot_data, of the extra test, is not installed")
    ways = {"romeo/romeo_laas_small": {"repair": "weld"}, "romeo/romeo": {"repair": "weld"}}
    ways["alex/alex_psyonic_hands"] = {"mimic": "free"}
    audits = {name: legged.audit(path, **ways.get(name, {})) for name, path in files.items() if name != "ur/ur3"}
    faulty = {name for name, audit in audits.items() if of_kind(audit, "inertia") or of_kind(audit, "point")}
    assert len(faulty) == 28
    bodies = {
        name
        for name in faulty
        if any(f.severity == "suspicious" for f in audits[name].findings if f.kind in ("inertia", "point"))
    }
    assert bodies == {"icub/icub", "icub/icub_reduced", "romeo/romeo_laas_small", "romeo/romeo_small"}
