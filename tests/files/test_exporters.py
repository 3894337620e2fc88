"""What exporters write around the same robot changes nothing; files of other formats are named as what they are."""

import numpy as np
import pytest

import legged
from legged.contact import Hull
from legged.errors import FileError
from legged.files import reading

pytest.importorskip("lxml")
from oracles.urdf_texts import BIPED

BODY = BIPED.split("?>", 1)[1]
SOLIDWORKS = """<?xml version="1.0" encoding="utf-8"?>
<!-- This URDF was automatically created by SolidWorks to URDF Exporter! Originally created by A (a@b.c)
     Commit Version: 1.6.0-4-g7f85cfe  Build Version: 1.6.7995.38578
     For more information, please see http://wiki.ros.org/sw_urdf_exporter -->"""
VARIANTS = {
    "solidworks": SOLIDWORKS + BODY.replace('rpy="0 0 0"', 'rpy="0 0 -2.77555756156289E-17"'),
    "byte order mark": "\ufeff" + BIPED,
    "blank lines first": "\n \n" + BIPED,
    "blank line, byte order mark": "\ufeff\n" + BIPED,
    "version 1.1": BIPED.replace('version="1.0"', "version='1.1' encoding='UTF-8'"),
    "default namespace": BODY.replace("<robot ", '<robot xmlns="http://www.ros.org" '),
    "default and xacro": BODY.replace(
        "<robot ", '<robot xmlns="http://drake.mit.edu" xmlns:xacro="http://ros.org/wiki/xacro" '
    ),
    "prefixes": BODY.replace("</robot>", "<sensor:camera><image:size a:b='1'/></sensor:camera></robot>"),
    "a prefix declared late": BODY.replace(
        "</robot>", "<controller:gazebo xmlns:controller='c'/><interface:position/></robot>"
    ),
    "three dashes": BIPED.replace('<link name="trunk">', '<!--- trunk --->\n<link name="trunk">'),
    "dashes within": BIPED.replace("</robot>", "<!-- a -- b\n--- c ----><!----></robot>"),
    "a commented joint": BIPED.replace("</robot>", "<!-- <joint name='x' type='--'> -- </joint> --></robot>"),
    "carriage returns": BIPED.replace("\n", "\r\n"),
    "tiny numbers": BIPED.replace('ixy="0"', 'ixy="4.9E-324"').replace('xyz="0 0 0.6"', 'xyz="1e-310 -0 .6"'),
    "many digits": BIPED.replace('value="8.5"', 'value="8.50000000000000000000000000000000000001"'),
    "infinite effort": BIPED.replace('effort="40"', 'effort="1e308"').replace('velocity="12"', 'velocity="inf"'),
    "unknown elements": BIPED.replace("</robot>", "<ros2_control name='a'><hardware/></ros2_control></robot>"),
}


def matrices(robot):
    rng = np.random.default_rng(0)
    q, v = legged.random_configuration(robot, rng), rng.normal(size=robot.nv)
    return legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v)


@pytest.fixture
def expected(tmp_path):
    path = tmp_path / "plain.urdf"
    path.write_text(BIPED, encoding="utf-8")
    return matrices(legged.load(path))


@pytest.mark.parametrize("name", VARIANTS)
def test_what_exporters_write_around_a_robot_changes_nothing(name, expected, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_bytes(VARIANTS[name].encode())
    robot = legged.load(path)
    for actual, wanted in zip(matrices(robot), expected, strict=True):
        assert np.abs(actual - wanted).max() < 1e-14 * np.abs(wanted).max()  # 1e-17 rad of an angle
    assert ("numbers below 1e-100" in " ".join(robot.audit.lost)) == (name == "tiny numbers")


@pytest.mark.parametrize("encoding", ["gbk", "shift-jis", "utf-16", "utf-16-be"])
def test_comments_in_other_encodings(encoding, expected, tmp_path):
    """GBK and Shift-JIS without a declaration, in comments only; UTF-16 with its byte order mark."""
    path, text = tmp_path / "robot.urdf", BIPED.replace('<link name="trunk">', '<!-- 左 足 -->\n<link name="trunk">')
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path.write_bytes(mark + text.encode(encoding))
    for actual, wanted in zip(matrices(legged.load(path)), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_names_in_an_encoding_that_is_not_declared_are_refused_with_the_way_out(tmp_path):
    path, text = tmp_path / "robot.urdf", BIPED.replace("left_knee", "左膝")
    path.write_bytes(text.encode("gbk"))
    with pytest.raises(FileError, match=r"save the file as UTF-8, or state its encoding in the first line") as caught:
        legged.load(path)
    assert "complete" not in str(caught.value)
    path.write_bytes(text.replace('version="1.0"', 'version="1.0" encoding="gbk"').encode("gbk"))
    assert "左膝" in [joint.name for joint in legged.load(path).joints]


def test_lines_in_messages_are_those_of_the_file(tmp_path):
    path = tmp_path / "robot.urdf"
    text = BIPED.replace('<axis xyz="0 0 2"/>', '<axis xyz="a"/>')
    line = text[: text.index('<axis xyz="a"/>')].count("\n") + 1
    for comment in ("", "<!--- a\nb --->"):
        changed = text.replace('<link name="trunk">', comment + '<link name="trunk">')
        path.write_text(changed)
        with pytest.raises(FileError, match=rf"line {line + comment.count(chr(10))}\)"):
            legged.load(path)


@pytest.mark.parametrize(
    "limit, ends, words",
    [
        ('upper="0.4"', (0.0, 0.4), "no lower end, which is 0 by URDF's default"),
        ('lower="-0.4"', (-0.4, 0.0), "no upper end, which is 0 by URDF's default"),
        ('lower="0.2"', (0.2, np.inf), "no upper end and excludes 0, treated as unlimited there"),
        ('upper="-0.2"', (-np.inf, -0.2), "no lower end and excludes 0, treated as unlimited there"),
        ("", (-np.inf, np.inf), "a joint without a range"),
        ('lower="-1e12" upper="1e300"', (-1e12, 1e300), ""),
        ('lower="-inf" upper="0.3"', (-np.inf, 0.3), ""),
    ],
)
def test_one_sided_ranges_are_those_of_urdf_and_named(limit, ends, words, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(
        BIPED.replace('lower="-1.5" upper="1.2" effort="40" velocity="12"/><dynamics', f"{limit}/><dynamics")
    )
    robot = legged.load(path)
    physics = robot.joint("left_hip").definition.physics
    assert (physics.lower, physics.upper) == ends
    assert words in " ".join(robot.audit.lost)


def test_large_damping_and_odd_scales_are_read(tmp_path):
    """Files hold joints by damping of 1e11; some scales of meshes have four numbers, which no shape needs here."""
    path = tmp_path / "robot.urdf"
    path.write_text(BIPED.replace('damping="0.2"', 'damping="1e11"'))
    assert legged.load(path).joint("left_hip").definition.physics.damping == 1e11
    for scale in ("1 1 1 1", "1 2", "large", "1 1 x", "nan", "", " "):
        mesh = f'<mesh filename="a.stl" scale="{scale}"/>'
        path.write_text(BIPED.replace('<box size="0.2 0.3 0.4"/>', mesh))
        assert "the scale of a <mesh> that is not three numbers" in legged.load(path).audit.lost
        with pytest.raises(FileError, match=r"the scale of the mesh 'a\.stl' must be one finite number, or three"):
            legged.load(path, shapes=True)


FOREIGN = {
    "robot.usda": (b'#usda 1.0\n(\n  upAxis = "Z"\n)', "a scene of USD in text"),
    "robot.usd": (b"PXR-USDC\0\0", "a scene of USD"),
    "robot.mjb": (b"\x1e\x05\0\0\x08\0\0\0" + bytes(64), "a compiled model of MuJoCo"),
    "robot.json": (b'\n{"links": []}', "JSON"),
    "robot.zip": (b"PK\x03\x04rest", "a zip archive"),
    "robot.sdf": (b"<sdf version='1.6'><model name='a'/></sdf>", "an SDF"),
    "robot.dae": (b"<?xml version='1.0'?><COLLADA></COLLADA>", "COLLADA"),
    "robot.srdf": (b"<robot name='a'><group name='arm'/></robot>", "an SRDF"),
    "robot.wbt": (b"#VRML_SIM R2023b utf8", "VRML, as of Webots"),
    "page.urdf": (b"\n<!DOCTYPE html><html></html>", "a web page; download the raw file"),
    "pointer.urdf": (b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS"),
    "package.xml": (b"<package format='2'></package>", "description of a ROS package"),
    "part.xml": (b"<mujocoinclude></mujocoinclude>", "a part that other MJCF files include"),
    "a.urdf.xacro": (
        b"<robot name='a' xmlns:xacro='http://ros.org/wiki/xacro'><link name='b'/><xacro:leg n='1'/></robot>",
        "is xacro, with <xacro:leg> on line 1: expand it first",
    ),
    "b.xacro": (b"<robot name='a' xmlns:xacro='http://ros.org/wiki/xacro'></robot>", "names xacro: expand it first"),
    "c.xacro": (BIPED.replace('value="8.5"', 'value="${m}"').encode(), "expand xacro first"),
    "notes.txt": (b"hello", "no XML: it begins with 'hello'"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_formats_are_named_as_what_they_are(name, tmp_path):
    content, words = FOREIGN[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        legged.load(path)
    assert words in str(caught.value)
    assert "complete" not in str(caught.value)


def test_prefixes_are_not_declared_without_end():
    """A document with more undeclared prefixes than any exporter writes is refused as before."""
    tags = "".join(f"<p{i}:a/>" for i in range(100))
    with pytest.raises(FileError, match="prefix"):
        reading.parse(f"<robot>{tags}</robot>".encode(), "robot.urdf")


def test_rotors_and_armature_can_be_left_out(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(BIPED)
    whole, bare = legged.load(path), legged.load(path, armature=False)
    at = whole.joint("left_hip").v
    q = whole.neutral()
    change = legged.inertia_matrix(whole, q) - legged.inertia_matrix(bare, q)
    assert change[at, at] == pytest.approx(9**2 * 1e-4)
    change[at, at] = 0.0
    assert np.abs(change).max() < 1e-15
    assert "armature and rotors of joints are left out" in " ".join(bare.audit.decided)


COLLADA = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>
<unit name="unit" meter="{unit}"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="12">0 0 0 {x} 0 0 0 {x} 0 0 0 {z}
</float_array><technique_common><accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices><triangles count="4">
<input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#g"/></node>
</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


@pytest.mark.parametrize("unit", [1.0, 0.01, 0.001, 0.0254])
def test_meshes_of_collada_have_the_unit_that_they_state(unit, tmp_path):
    pytest.importorskip("trimesh")
    pytest.importorskip("collada")
    from legged.files.visuals import opened_mesh

    (tmp_path / "part.dae").write_text(COLLADA.format(unit=unit, x=0.1 / unit, z=0.2 / unit))
    path = tmp_path / "robot.urdf"
    path.write_text(BIPED.replace('<box size="0.2 0.3 0.4"/>', '<mesh filename="part.dae" scale="1 1 2"/>'))
    (shape,) = legged.load(path, shapes=True, feet=()).link("trunk").shapes
    assert isinstance(shape, Hull)
    assert np.ptp(shape.vertices, axis=0) == pytest.approx([0.1, 0.1, 0.4], rel=1e-6)
    ((vertices, _, _),) = opened_mesh(str(tmp_path / "part.dae"))
    assert np.ptp(vertices, axis=0) == pytest.approx([0.1, 0.1, 0.2], rel=1e-6)
