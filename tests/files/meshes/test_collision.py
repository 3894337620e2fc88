"""Collision shapes of robot files: read as shapes of links, written again; meshes as convex hulls; damaged geometry."""

import os
import sys
from typing import Any

import numpy as np
import pytest
import trimesh
from oracles.urdfs import all_urdfs

import legged
from legged.errors import FileError, FileWarning
from legged.files import collision
from legged.files.collision import hull_of
from legged.robot.shapes import MOST_VERTICES

ROBOT = """<robot name="r"><link name="base"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<collision><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><geometry>{}</geometry></collision></link></robot>"""
POSE = (0.1, 0.2, 0.3), legged.rpy(0.1, 0.2, 0.3)


def load(folder, geometry):
    path = folder / "robot.urdf"
    path.write_text(ROBOT.format(geometry))
    return legged.load(path, shapes=True)


def write(folder, mesh, name="part.stl"):
    folder.mkdir(parents=True, exist_ok=True)
    mesh.export(folder / name)
    return f'<mesh filename="{name}"/>'


def hulls(robot):
    return [shape for shape in robot.links[0].shapes if isinstance(shape, legged.Hull)]


def same_shapes(one, two, tolerance=1e-14):
    """Check that two links have the same shapes."""
    assert [type(shape) for shape in one.shapes] == [type(shape) for shape in two.shapes]
    for a, b in zip(one.shapes, two.shapes, strict=True):
        for name in ("radius", "length", "size", "radii", "center", "rotation"):
            np.testing.assert_allclose(getattr(a, name, 0.0), getattr(b, name, 0.0), atol=tolerance, err_msg=name)
        if isinstance(a, legged.Hull):
            apart = np.linalg.norm(a.vertices[:, None] - b.vertices, axis=2)
            assert apart.min(axis=0).max() < 1e-6 and apart.min(axis=1).max() < 1e-6  # [m], MuJoCo stores float32


def test_a_mesh_that_has_changed_is_opened_again(tmp_path):
    for k, size in enumerate((0.1, 0.2)):
        element = write(tmp_path, trimesh.creation.box((size, size, size)))
        os.utime(tmp_path / "part.stl", ns=(0, 10**18 + k))
        (hull,) = hulls(load(tmp_path, element))
        assert np.ptp(hull.vertices @ POSE[1], axis=0) == pytest.approx((size, size, size))


def in_a_new_process(monkeypatch):
    """Replace the reader of meshes by one without a cache in the memory of this process."""
    monkeypatch.setattr(collision, "_opened", collision._opened.__wrapped__)


def test_a_stored_mesh_is_read_without_the_library(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    in_a_new_process(monkeypatch)
    mesh = trimesh.creation.box((0.2, 0.1, 0.1))
    mesh.update_faces(np.arange(len(mesh.faces)) > 0)  # a hole, which the audit reports
    first = load(tmp_path, write(tmp_path, mesh))
    (remark,) = first.audit.decided
    monkeypatch.setitem(sys.modules, "trimesh", None)
    again = legged.load(tmp_path / "robot.urdf", shapes=True)
    assert (hulls(again)[0].vertices == hulls(first)[0].vertices).all() and again.audit.decided == (remark,)


def test_binary_stl_is_read_without_the_library(tmp_path, monkeypatch):
    """The reader agrees with trimesh, which takes 60 MB of memory and half a second to import."""
    monkeypatch.setenv("LEGGED_CACHE", "off")
    in_a_new_process(monkeypatch)
    ball = trimesh.creation.icosphere(0).apply_scale((0.1, 0.2, 0.3))
    bowl = trimesh.creation.annulus(0.1, 0.2, 0.1)
    for mesh, remark in ((ball, ""), (bowl, "is not convex; its convex hull has 33 % more volume")):
        element = write(tmp_path, mesh)
        expected = hull_of(trimesh.load_mesh(tmp_path / "part.stl").vertices)[0]
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "trimesh", None)
            robot = load(tmp_path, element)
        np.testing.assert_array_equal(hulls(robot)[0].vertices, expected.moved(POSE[1], np.array(POSE[0])).vertices)
        assert remark in "".join(robot.audit.decided) and bool(remark) == bool(robot.audit.decided)
    (tmp_path / "part.stl").write_text(ball.export(file_type="stl_ascii"))
    assert len(hulls(load(tmp_path, element))[0].vertices) == len(hull_of(ball.vertices)[0].vertices)
    monkeypatch.setattr("legged.files.meshes.MAX_TRIANGLES", 10)
    with pytest.raises(FileError, match=r"part.stl: has 20 triangles, copies included; the limit is 10"):
        load(tmp_path, write(tmp_path, ball))


@pytest.mark.parametrize("kind", ["obj", "dae"])
def test_closed_meshes_with_a_normal_for_each_face_have_no_holes(kind, tmp_path):
    """Their file repeats a vertex for every face with another normal."""
    box = trimesh.creation.box((0.2, 0.1, 0.1))
    box.unmerge_vertices()
    box.vertex_normals = np.repeat(box.face_normals, 3, axis=0)
    robot = load(tmp_path, write(tmp_path, box, f"part.{kind}"))
    assert not robot.audit.decided and len(hulls(robot)[0].vertices) == 8


def test_the_arrays_beside_a_mesh_are_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    in_a_new_process(monkeypatch)
    for size in (0.1, 0.2):
        files: Any = trimesh.Scene(trimesh.creation.box((size,) * 3)).export(file_type="gltf")
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        (hull,) = hulls(load(tmp_path, '<mesh filename="model.gltf"/>'))
        assert np.ptp(hull.vertices @ POSE[1], axis=0) == pytest.approx((size,) * 3, abs=1e-6)


ELEMENTS = {
    '<sphere radius="0.1"/>': legged.Sphere(0.1, POSE[0]),
    '<box size="0.1 0.2 0.3"/>': legged.Box((0.1, 0.2, 0.3), *POSE),
    '<cylinder radius="0.1" length="0.3"/>': legged.Cylinder(0.1, 0.3, *POSE),
}


@pytest.mark.parametrize("element", ELEMENTS)
def test_shapes_of_urdf_become_shapes_of_links(tmp_path, element):
    robot = load(tmp_path, element)
    same_shapes(robot.links[0], legged.Link("expected", shapes=[ELEMENTS[element]]))
    assert robot.audit.decided == ()
    assert legged.load(tmp_path / "robot.urdf").links[0].shapes == ()


def test_convex_meshes_become_their_hull_in_place_and_scale(tmp_path):
    mesh = trimesh.creation.box((200.0, 100.0, 50.0))  # [mm]
    write(tmp_path / "meshes", mesh)
    robot = load(tmp_path, '<mesh filename="meshes/part.stl" scale="0.001 0.001 -0.001"/>')
    (hull,) = hulls(robot)
    corners = legged.Box((0.2, 0.1, 0.05), *POSE).corners
    assert np.abs(np.unique(np.round(hull.vertices, 6), axis=0) - np.unique(np.round(corners, 6), axis=0)).max() < 1e-6
    assert robot.audit.decided == ()


@pytest.mark.parametrize("package", ["pkg/", ""])
def test_packages_are_found_around_the_robot_file(tmp_path, package):
    write(tmp_path / package / "meshes", trimesh.creation.icosphere(1, 0.1))
    (tmp_path / "pkg" / "urdf").mkdir(parents=True)
    robot = load(tmp_path / "pkg" / "urdf", '<mesh filename="package://pkg/meshes/part.stl"/>')
    (hull,) = hulls(robot)
    assert np.abs(np.linalg.norm(hull.vertices - POSE[0], axis=1) - 0.1).max() < 1e-6  # [m], float32
    assert len(hull.vertices) == MOST_VERTICES
    assert "the hull has 32 vertices and lies up to" in robot.audit.decided[0]


def test_the_stated_error_of_a_hull_bounds_the_distance_of_the_mesh():
    points = np.random.default_rng(0).normal(size=(400, 3))
    points = points / np.linalg.norm(points, axis=1)[:, None] * (0.1, 0.2, 0.05)
    errors = []
    for most in (8, 16, 32):
        hull, error = hull_of(points, most)
        normals, offsets = hull.faces
        assert abs((points @ normals.T - offsets).max() - error) < 1e-8
        errors.append(error)
    assert 0.2 > errors[0] > errors[1] > errors[2] > 1e-3  # [m]
    assert hull_of(points[:12])[1] < 1e-15


def test_vertices_that_lie_farthest_along_the_diagonals_may_lie_in_a_plane():
    ball = trimesh.creation.icosphere(0).apply_scale((0.1, 0.2, 0.3))
    hull, error = hull_of(ball.vertices)
    np.testing.assert_array_equal(hull.vertices, np.unique(ball.vertices, axis=0))
    assert error < 1e-15


def test_other_meshes_become_their_hull_and_the_audit_says_so(tmp_path):
    box = trimesh.creation.box((0.2, 0.1, 0.1))
    other = trimesh.creation.box((0.1, 0.09, 0.3)).apply_translation((0.04, 0.0, 0.1))
    corner = trimesh.util.concatenate([box, other])  # an L, whose parts share a volume
    assert "the mesh part.stl is not convex" in load(tmp_path, write(tmp_path, corner)).audit.decided[0]
    box.update_faces(np.arange(12) > 1)
    robot = load(tmp_path, write(tmp_path, box, "open.stl"))
    assert "link 'base': the mesh open.stl has holes and is replaced by its convex hull" in robot.audit.decided[0]
    assert len(hulls(robot)[0].vertices) == 8


def test_damaged_geometry_is_refused_with_its_link(tmp_path):
    flat = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]], process=False)
    cases = {
        '<box size="0 0.1 0.2"/>': "shape of link 'base': a box's edges must be longer than 0 m.*shapes=False",
        '<sphere radius="0"/>': "a sphere's radius must be a length above 0 m, got 0",
        '<cylinder radius="0.1" length="-1"/>': "a cylinder's length must be",
        write(tmp_path, flat): "link 'base': .* lie in a plane",
        '<mesh filename="none.stl"/>': "the mesh 'none.stl' was not found as .*none.stl; put it there",
        '<mesh filename="package://a/b.stl"/>': "was not found in the folders around the robot file",
    }
    (tmp_path / "damaged.stl").write_bytes(os.urandom(200))
    content = bytearray(trimesh.creation.box((1.0, 1.0, 1.0)).export(file_type="stl"))
    content[96:100] = np.float32(np.inf).tobytes()  # the first coordinate of a corner
    (tmp_path / "infinite.stl").write_bytes(content)
    cases['<mesh filename="infinite.stl"/>'] = "has no triangles, or some that are not finite"
    (tmp_path / "empty.obj").write_text("# nothing\n")
    cases |= {f'<mesh filename="{name}"/>': "cannot be read|has no triangles" for name in ("damaged.stl", "empty.obj")}
    for geometry, words in cases.items():
        with pytest.raises(FileError, match=words):
            load(tmp_path, geometry)
        legged.load(tmp_path / "robot.urdf")  # shapes are not looked at without being asked for


def solids():
    points = np.random.default_rng(1).normal(size=(10, 3)) / 10
    shapes = [
        legged.Capsule(0.1, 0.3, *POSE),
        legged.Cylinder(0.1, 0.3, *POSE),
        legged.Ellipsoid((0.1, 0.2, 0.3), *POSE),
        legged.Hull(points),
        legged.Hull(legged.Box((0.1, 0.2, 0.3), *POSE).corners),
        legged.Sphere(0.1, POSE[0]),
        legged.Box((0.1, 0.2, 0.3), *POSE),
    ]
    base = legged.Link("base", legged.box_inertia(1.0, (0.1, 0.2, 0.3)), shapes=shapes)
    return legged.RobotBuilder("solids", base).build()


def test_plain_data_and_files_keep_all_shapes(tmp_path):
    robot = solids()
    assert legged.Robot.from_description(robot.describe()).describe() == robot.describe()
    paths = [legged.save_mjcf(robot, tmp_path / "robot.xml")]
    with pytest.warns(FileWarning, match="URDF cannot represent: the 3 ellipsoids and hulls of the robot"):
        paths.append(legged.save_urdf(robot, tmp_path / "robot.urdf"))
    for path in paths:
        assert legged.load(path).describe() == robot.describe()


def test_elements_of_mjcf_contain_all_shapes(tmp_path):
    robot = solids()
    again = legged.load(legged.save_mjcf(robot, tmp_path / "robot.xml"), shapes=True)
    same_shapes(again.links[0], robot.links[0])


def test_a_capsule_in_urdf_is_a_cylinder_and_two_spheres(tmp_path):
    capsule = legged.Capsule(0.1, 0.3, *POSE)
    link = legged.Link("base", legged.box_inertia(1.0, (0.1, 0.2, 0.3)), shapes=[capsule])
    path = legged.save_urdf(legged.RobotBuilder("r", link).build(), tmp_path / "robot.urdf")
    cylinder, *ends = legged.load(path, shapes=True, gravity=(0.0, 0.0, -1.0)).links[0].shapes
    assert isinstance(cylinder, legged.Cylinder)
    np.testing.assert_allclose([end.center for end in ends], capsule.ends, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("hyq/hyq_no_sensors", "Hull Cylinder Sphere"), ("go1/go1", "Box Cylinder Sphere"), ("iris/iris", "Box Cylinder")],
)
def test_shapes_of_real_robots(name, kinds):
    urdfs = all_urdfs()
    if name not in urdfs:
        pytest.skip("example_robot_data, of the extra test, is not installed")
    robot = legged.load(urdfs[name], shapes=True)
    assert {type(shape).__name__ for link in robot.links for shape in link.shapes} == set(kinds.split())


def foot_of(folder, geometry, rpy="0 0 0"):
    path = folder / "robot.urdf"
    path.write_text(ROBOT.replace('0.1 0.2 0.3" rpy="0.1 0.2 0.3', f'0.1 0.2 0.3" rpy="{rpy}').format(geometry))
    robot = legged.load(path, feet={"base": "shapes"})
    return np.array([point.position for point in robot.contacts]), {point.radius for point in robot.contacts}


def test_feet_take_over_their_collision_shapes(tmp_path):
    at = np.array(POSE[0])
    points, radii = foot_of(tmp_path, '<sphere radius="0.02"/>')
    assert np.array_equal(points, [at]) and radii == {0.02}
    points, radii = foot_of(tmp_path, '<box size="0.2 0.1 0.04"/>')
    assert len(points) == 4 and np.allclose(np.abs(points - at), (0.1, 0.05, 0.02)) and radii == {0.0}
    assert (points[:, 2] < at[2]).all()
    points, _ = foot_of(tmp_path, '<cylinder radius="0.05" length="0.1"/>', "0.1 0 0")
    assert np.allclose(np.linalg.norm(points - points.mean(axis=0), axis=1), 0.05)
    axis = legged.rpy(0.1, 0.0, 0.0)[:, 2]
    assert np.allclose((points - at) @ axis, -0.05)
    points, _ = foot_of(tmp_path, '<cylinder radius="0.05" length="0.1"/>', "1.5707963267948966 0 0")
    assert np.allclose(points - at, [(0.0, 0.05, -0.05), (0.0, -0.05, -0.05)], atol=1e-12)


def test_a_capsule_is_two_round_feet(tmp_path):
    path = tmp_path / "robot.xml"
    geom = '<geom type="capsule" size="0.02 0.1" euler="90 0 0" pos="0 0 -0.1"/>'
    path.write_text(f'<mujoco><worldbody><body name="foot"><freejoint/>{geom}</body></worldbody></mujoco>')
    contacts = legged.load(path, feet={"foot": "shapes"}).contacts
    assert np.allclose(sorted(point.position[1] for point in contacts), (-0.1, 0.1))
    assert all(point.radius == 0.02 and abs(point.position[2] + 0.1) < 1e-12 for point in contacts)


def test_a_foot_without_such_shapes_is_refused(tmp_path):
    with pytest.raises(FileError, match="foot 'base' has no collision shape of the kinds sphere, "):
        foot_of(tmp_path, '<mesh filename="none.stl"/>')
