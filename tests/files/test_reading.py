"""Files that are no regular files, or that ask for more memory or time than a robot needs, are rejected at once; work
that grows in proportion to the links of a robot."""

import os
import struct
import sys
import tracemalloc
from collections import Counter

import pytest
from oracles.calls import calls

import legged
from legged.errors import ArgumentError, DefinitionError, FileError
from legged.files import inertias, reading
from legged.files.mjcf import limits

pytest.importorskip("lxml")
from oracles.urdf_texts import BIPED

BODY = "<worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>"
COPIES = "<mujoco><worldbody>{}<body><joint/><geom size='1'/></body>{}</worldbody></mujoco>"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_devices_and_folders_are_refused_instead_of_opened(tmp_path):
    pipe = tmp_path / "robot.urdf"
    os.mkfifo(pipe)  # opening it would wait for a writer
    for path, words in ((pipe, "it is a pipe"), ("/dev/zero", "it is a device"), (tmp_path, "it is a directory")):
        for read in (legged.load, legged.loops.load, legged.Run.load):
            with pytest.raises(FileError, match=f"cannot be read: {words}"):
                read(path)


@pytest.mark.parametrize("path", [0, True, b"robot.urdf", None, 1.5])
def test_only_texts_and_paths_are_paths(path):
    """An integer would be read as a file descriptor, 0 from the terminal."""
    for read in (legged.load, legged.Run.load):
        with pytest.raises(ArgumentError, match="path must be a text or a path, got"):
            read(path)


def test_documents_of_too_many_elements_are_refused_before_they_fill_the_memory():
    content = b"<robot>" + b"<a/>" * 3_000_000 + b"</robot>"
    reading.parse(b"<a/>", "robot.urdf")
    before = _resident()
    with pytest.raises(FileError, match="more than 100000 XML elements"):
        reading.parse(content, "robot.urdf")
    assert _resident() - before < 100  # [MB]; 740 if all were read


def _resident():
    """Return the largest memory of this process so far, [MB]."""
    resource = pytest.importorskip("resource")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def test_files_above_the_limit_are_refused_unread(tmp_path):
    path = tmp_path / "robot.urdf"
    with path.open("wb") as file:
        file.truncate(reading.MAX_BYTES + 1)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="larger than 16 MiB, the limit for robot files"):
            legged.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("declaration", ['version="0.0" ', 'version="2.0"', "version='1.0' encoding='utf-8'"])
def test_the_version_of_the_xml_declaration_does_not_matter(declaration, tmp_path):
    """The Minitaur files of pybullet declare version 0.0."""
    path = tmp_path / "robot.urdf"
    path.write_text(f"<?xml {declaration}?>\n" + BIPED.split("?>", 1)[1])
    assert legged.load(path).nv > 9


REPEATED = {
    "axis": ('<axis xyz="0 1 0"/>', '<axis xyz="1 0 0"/>', "2 joints: 'left_hip', 'left_knee'"),
    "limit": ('<limit effort="40" velocity="12"/>', '<limit effort="4" velocity="2"/>', "joint 'left_knee'"),
    "dynamics": ('<dynamics damping="0.2" friction="0.1"/>', '<dynamics damping="1"/>', "joint 'left_hip'"),
    "mass": ('<mass value="0.7"/>', '<mass value="7"/>', "2 links: 'left_foot', 'right_foot'"),
    "inertia": (
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.002"/>',
        '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>',
        "link 'left_thigh'",
    ),
}
"""Element, another one after its first two occurrences, and where the audit reports it."""


@pytest.mark.parametrize("tag", REPEATED)
def test_of_several_elements_the_first_counts(tag, tmp_path):
    """As axes of Spirit 40, <dynamics> of REEM-C, <inertia> of Lite3; the parser of ROS takes the first as well."""
    path = tmp_path / "robot.urdf"
    path.write_text(BIPED)
    plain = legged.load(path)
    first, other, where = REPEATED[tag]
    path.write_text(BIPED.replace(first, first + other, 2))
    robot = legged.load(path)
    assert robot.describe() == plain.describe()
    (finding,) = (each for each in robot.audit.findings if each.kind == "repeated")
    assert (finding.severity, finding.where) == ("suspicious", where) and f"<{tag}>" in finding.words


def test_an_incomplete_file_is_named_as_such_only_where_the_error_is_at_the_end(tmp_path):
    path = tmp_path / "robot.urdf"
    for content, hint in ((BIPED[:900], True), (BIPED.replace("</material>", "</materials>"), False)):
        path.write_text(content)
        with pytest.raises(FileError, match="is not well-formed XML") as caught:
            legged.load(path)
        assert ("is the file complete?" in str(caught.value)) == hint


def test_inertias_of_links_fixed_to_each_other_are_added_a_fixed_number_of_times(tmp_path, monkeypatch):
    """Also if each of them is physically inconsistent, and is compared with the sum."""
    counts, own = Counter(), inertias._sum

    def counted(tree, places):
        counts[len(tree.order)] += len(places)
        return own(tree, places)

    monkeypatch.setattr(inertias, "_sum", counted)
    for links in (20, 40):
        path = tmp_path / "robot.urdf"
        inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="9"/></inertial>'
        parts = [f'<link name="l{k}">{inertial}</link>' for k in range(links)]
        parts += [
            f'<joint name="j{k}" type="fixed"><parent link="l{k - 1}"/><child link="l{k}"/></joint>'
            for k in range(1, links)
        ]
        path.write_text(f"<robot name='r'>{''.join(parts)}</robot>")
        legged.load(path)
    assert counts[40] == 2 * counts[20]


MODELS = {
    "pixels of textures": "<mujoco><asset><texture name='t' type='2d' builtin='flat' width='30000' height='30000'/>"
    "</asset>" + BODY,
    "samples of height fields": "<mujoco><asset><hfield name='t' nrow='30000' ncol='30000' size='1 1 1 1'/></asset>"
    + BODY,
    "XML elements": COPIES.format("<replicate count='1000'>" * 3, "</replicate>" * 3),
    "bodies": COPIES.format("<replicate count='110'>" * 2, "</replicate>" * 2),
    "entries of keyframes": "<mujoco><size nkey='30000000'/>" + BODY,
    "user data and custom arrays": "<mujoco><custom><numeric name='a' size='2000000000'/></custom>" + BODY,
    "faces of built-in": "<mujoco><asset><mesh name='t' builtin='supersphere' params='20000 1 1'/></asset>" + BODY,
}


@pytest.mark.parametrize("words", MODELS)
def test_models_that_request_gigabytes_are_refused_before_they_are_compiled(words, tmp_path, monkeypatch):
    mujoco = pytest.importorskip("mujoco")
    monkeypatch.setattr(mujoco.MjModel, "from_xml_path", lambda path: pytest.fail("it was compiled"))
    path = tmp_path / "model.xml"
    path.write_text(MODELS[words])
    with pytest.raises(FileError, match=f"requests .* {words}"):
        legged.load(path)


def test_amounts_that_are_not_a_number_exceed_the_limits(tmp_path, monkeypatch):
    mujoco = pytest.importorskip("mujoco")
    monkeypatch.setattr(mujoco.MjModel, "from_xml_path", lambda path: pytest.fail("it was compiled"))
    path = tmp_path / "model.xml"
    nested = "<replicate count='1e30'>" * 11 + "<replicate count='0'>"  # infinity times zero
    path.write_text(COPIES.format(nested, "</replicate>" * 12))
    with pytest.raises(FileError, match="requests nan XML elements"):
        legged.load(path)


def test_limits_hold_for_included_files_and_images(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text("<mujoco><include file='more.xml'/>" + BODY)
    (tmp_path / "more.xml").write_text(MODELS["pixels of textures"].replace(BODY, "</mujoco>"))
    with pytest.raises(FileError, match=r"requests 9e\+08 pixels"):
        legged.load(path)
    (tmp_path / "more.xml").write_text("<mujoco><asset><texture name='t' type='2d' file='t.png'/></asset></mujoco>")
    (tmp_path / "t.png").write_bytes(limits._PNG + struct.pack(">I4sII", 13, b"IHDR", 40000, 40000) + bytes(100))
    with pytest.raises(FileError, match=r"requests 1\.6e\+09 pixels"):
        legged.load(path)
    (tmp_path / "t.png").unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "t.png")
        with pytest.raises(FileError, match="is a pipe or a device"):
            legged.load(path)


def test_what_mujoco_reads_and_xml_does_not_allow_is_read(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text("<mujoco model='a&b'><!-- a -- b --><compiler angle='radian'/>" + BODY)
    assert legged.load(path).nv == 6


@pytest.mark.parametrize("turn", ["0 0 0", "1.5707963 0 0"])
def test_files_whose_y_points_up_are_noticed(turn, tmp_path):
    """Turned by -90 degrees about x, the vertical axis of a robot becomes y."""
    path = tmp_path / "robot.urdf"
    text = BIPED.replace('<origin xyz="0 0 0.6" rpy="0 0 0"/>', f'<origin xyz="0 0 0" rpy="{turn}"/>')
    path.write_text(text.replace("1.5707963", "-1.5707963"))
    findings = [finding for finding in legged.audit(path).findings if finding.kind == "up"]
    assert [(each.severity, "y seems to point up" in each.words) for each in findings] == [("suspicious", True)] * (
        turn != "0 0 0"
    )


def test_gravity_along_y_is_noticed(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "model.xml"
    path.write_text("<mujoco><option gravity='0 -9.81 0'/>" + BODY)
    (finding,) = legged.audit(path).of("suspicious")
    assert finding.kind == "up" and "not along -z" in finding.words


# Robots of many links


def chain_file(path, links):
    """Write a URDF of a chain of alike links under revolute joints, and return its path."""
    inertia = '<mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    parts = [f'<link name="link{k}"><inertial>{inertia}</inertial></link>' for k in range(links)]
    limits = '<limit lower="-1" upper="1" effort="10" velocity="10"/>'
    for k in range(1, links):
        ends = f'<parent link="link{k - 1}"/><child link="link{k}"/><origin xyz="0 0 -0.1"/><axis xyz="0 1 0"/>{limits}'
        parts.append(f'<joint name="joint{k}" type="revolute">{ends}</joint>')
    path.write_text(f'<robot name="chain">{"".join(parts)}</robot>')
    return path


@pytest.mark.parametrize("work", ["load", "audit", "save_urdf", "save_mjcf"])
def test_work_on_files_grows_in_proportion_to_the_links(work, tmp_path):
    counts = []
    for links in (20, 40, 80):
        path = chain_file(tmp_path / f"{links}.urdf", links)
        robot = legged.load(path)
        tasks = {
            "load": lambda path=path: legged.load(path),
            "audit": lambda path=path: legged.audit(path),
            "save_urdf": lambda robot=robot: legged.save_urdf(robot, tmp_path / "out.urdf"),
            "save_mjcf": lambda robot=robot: legged.save_mjcf(robot, tmp_path / "out.xml"),
        }
        tasks[work]()
        counts.append(calls(tasks[work]))
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    assert first > 20 * 10 and 1.9 < second / first < 2.15, counts  # without what each call costs once


def test_a_thousand_links_are_loaded_saved_and_audited(tmp_path):
    path = chain_file(tmp_path / "chain.urdf", 1000)
    robot = legged.load(path)
    again = legged.load(legged.save_urdf(robot, tmp_path / "again.urdf"))
    assert robot.nv == again.nv == 1005 and again.mass == pytest.approx(1000.0)
    assert len(legged.audit(path).joints) == 999


def test_mujoco_reads_what_is_saved_and_deeper_robots_are_refused(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    deepest, deeper = (legged.load(chain_file(tmp_path / f"{n}.urdf", n)) for n in (495, 496))
    path = legged.save_mjcf(deepest, tmp_path / "robot.xml")
    assert mujoco.MjModel.from_xml_path(str(path)).nv == deepest.nv
    before = path.read_bytes()
    with pytest.raises(DefinitionError, match=r"'link495' .*495 bodies .* save_urdf"):
        legged.save_mjcf(deeper, path)
    assert path.read_bytes() == before
    assert legged.load(path).nv == deepest.nv
