"""Soles of feet measured from their shapes, beside shapes whose soles are known."""

from pathlib import Path

import numpy as np
import pytest

import legged
from legged.errors import DefinitionError
from legged.files.feet.soles import measure
from legged.robot.construction.builder import rpy
from legged.robot.shapes import Box, Capsule, Cylinder, Sphere

DOWN = np.array([0.0, 0.0, -1.0])
EDGE = np.array([(x, y) for x in (-0.1, 0.1) for y in (-0.04, 0.04)])


def places(sole):
    return np.array([c.center if isinstance(c, Sphere) else c for c in sole.contacts])


def test_corners_of_a_box():
    sole = measure([Box((0.2, 0.08, 0.03), (0.0, 0.0, 0.015))], DOWN)
    assert sole.form == "flat sole of 200 mm x 80 mm"
    assert sorted(map(tuple, places(sole).round(9))) == sorted((x, y, 0.0) for x, y in EDGE)
    assert sole.size == pytest.approx((0.2, 0.08), rel=1e-3)  # the directions of the width are 0.05 rad apart


@pytest.mark.parametrize("angles", [(0.0, 0.5, 0.0), (0.4, -0.3, 1.0)])
def test_an_inclined_sole_keeps_its_plane(angles):
    """A robot whose legs are bent with all joints at zero has inclined feet."""
    R = rpy(*angles)
    sole = measure([Box((0.2, 0.08, 0.03), R @ [0.0, 0.0, 0.015], R)], DOWN)
    assert sole.normal == pytest.approx(R @ DOWN, abs=1e-4)  # normals are compared with four digits
    assert (places(sole) @ R)[:, 2] == pytest.approx(0.0, abs=1e-4)
    assert len(sole.contacts) == 4
    assert "inclined by" in sole.words(DOWN)


def test_a_rounded_outline_has_the_corners_of_its_largest_quadrilateral():
    sole = measure([Cylinder(0.05, 0.02)], DOWN)
    corners = places(sole)
    area = 0.5 * np.linalg.norm(np.cross(corners[2] - corners[0], corners[3] - corners[1]))
    assert area == pytest.approx(2 * 0.05**2, rel=1e-6)  # the square in a circle
    assert np.ptp(corners[:, 2]) < 1e-12


def test_a_mesh_of_a_sphere_is_round():
    rng = np.random.default_rng(1)
    directions = rng.normal(size=(800, 3))
    points = 0.02 * directions / np.linalg.norm(directions, axis=1)[:, None] + [0.0, 0.01, -0.2]
    (sphere,) = measure([points], DOWN).contacts
    assert isinstance(sphere, Sphere)
    assert sphere.radius == pytest.approx(0.02, rel=1e-9)
    assert sphere.center == pytest.approx([0.0, 0.01, -0.2], abs=1e-9)


@pytest.mark.parametrize("kind", [Capsule, Cylinder])
def test_a_lying_cylinder_is_a_line(kind):
    R = rpy(0.0, np.pi / 2, 0.0)  # its axis along x
    sole = measure([kind(0.01, 0.16, (0.0, 0.02, 0.0), R)], DOWN)
    assert sole.form.startswith("narrow sole")
    first, last = sorted(places(sole).tolist())
    assert (first[1], last[1]) == pytest.approx((0.02, 0.02), abs=1e-3)
    assert (first[2], last[2]) == pytest.approx((-0.01, -0.01), abs=1e-4)
    assert 0.15 < last[0] - first[0] < 0.18


def test_a_pointed_foot_has_its_tip():
    cone = np.array([[0.0, 0.0, -0.1], *((0.03 * np.cos(a), 0.03 * np.sin(a), 0.0) for a in np.arange(0.0, 6.2, 0.1))])
    sole = measure([cone], DOWN)
    assert sole.form == "lowest point"
    assert places(sole) == pytest.approx(np.array([[0.0, 0.0, -0.1]]), abs=1e-9)


def test_treads_and_an_upper_part_do_not_change_the_sole():
    tread = [Box((0.02, 0.08, 0.004), (x, 0.0, 0.002)) for x in (-0.09, 0.0, 0.09)]
    sole = measure([*tread, Box((0.06, 0.05, 0.1), (0.0, 0.0, 0.06))], DOWN)
    assert sorted(map(tuple, places(sole).round(9))) == sorted((x, y, 0.0) for x, y in EDGE)


def test_flat_shapes_are_refused():
    with pytest.raises(DefinitionError, match="plane"):
        measure([np.array([[x, y, 0.0] for x, y in EDGE])], DOWN)


URDF = """<robot name="stork"><link name="body"><inertial><mass value="5"/><inertia ixx="0.1" iyy="0.1" izz="0.1"
ixy="0" ixz="0" iyz="0"/></inertial></link>{legs}</robot>"""
LEG = """<joint name="{n}_hip" type="revolute"><parent link="body"/><child link="{n}_thigh"/><origin xyz="0 {y} 0"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="10"/></joint>
<link name="{n}_thigh">{inertia}</link>
<joint name="{n}_knee" type="revolute"><parent link="{n}_thigh"/><child link="{n}_foot"/><origin xyz="0 0 -0.3"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="10"/></joint>
<link name="{n}_foot">{inertia}{foot}</link>"""
INERTIA = """<inertial><origin xyz="0 0 -0.1"/><mass value="0.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0"
ixz="0" iyz="0"/></inertial>"""


def stork(folder: Path, foot: str) -> str:
    """Write a robot on two legs whose feet have the given elements; return the path."""
    legs = "".join(LEG.format(n=n, y=y, inertia=INERTIA, foot=foot) for n, y in (("left", 0.1), ("right", -0.1)))
    path = folder / "stork.urdf"
    path.write_text(URDF.format(legs=legs))
    return str(path)


@pytest.mark.parametrize("element", ["collision", "visual"])
def test_a_robot_stands_on_the_meshes_of_its_feet(tmp_path, element):
    vertices = "".join(f"v {x} {y} {z}\n" for x in (-0.05, 0.15) for y in (-0.04, 0.04) for z in (-0.34, -0.3))
    faces = (
        "f 1 3 5\nf 3 7 5\nf 2 4 6\nf 4 8 6\nf 1 2 3\nf 2 4 3\nf 5 6 7\nf 6 8 7\nf 1 2 5\nf 2 6 5\nf 3 4 7\nf 4 8 7\n"
    )
    (tmp_path / "foot.obj").write_text(vertices + faces)
    path = stork(tmp_path, f'<{element}><geometry><mesh filename="foot.obj"/></geometry></{element}>')
    robot = legged.load(path)
    assert len(robot.contacts) == 8
    positions = np.array([contact.position for contact in robot.contacts])
    assert positions[:, 2] == pytest.approx(-0.34)
    assert np.ptp(positions[:4], axis=0) == pytest.approx([0.2, 0.08, 0.0])
    assert f"flat sole of 200 mm x 80 mm, measured from its {element} shapes" in str(legged.audit(path))


def test_the_audit_says_why_a_foot_is_its_origin(tmp_path):
    path = stork(tmp_path, '<collision><geometry><mesh filename="lost.stl"/></geometry></collision>')
    assert [contact.position.tolist() for contact in legged.load(path).contacts] == [[0.0, 0.0, 0.0]] * 2
    words = str(legged.audit(path))
    assert "origin of the link; its collision shapes cannot be measured: " in words
    assert "lost.stl" in words


def test_the_mesh_of_talos_has_the_sole_of_its_box():
    pytest.importorskip("pinocchio")
    from oracles.urdfs import all_urdfs

    with_mesh, with_box = (all_urdfs().get(f"talos/talos_{name}") for name in ("reduced", "reduced_box"))
    if with_mesh is None or with_box is None:
        pytest.skip("needs example-robot-data")
    measured, stated = (
        np.array([contact.position for contact in legged.load(path).contacts[:4]]) for path in (with_mesh, with_box)
    )
    for corner in stated:
        assert np.linalg.norm(measured - corner, axis=1).min() < 0.016  # the corners of the mesh are rounded
