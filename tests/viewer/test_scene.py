"""Scenes: visual meshes of robot files, shapes and stick figures, missing meshes, fixed links, and simplification."""

from pathlib import Path

import numpy as np
import pytest

import legged
import robots
from legged.files.visuals import visuals_of
from legged.rotations import quaternion_matrix
from legged.simulation.results.records import ModelRecord
from legged.viewer.meshes import mesh_of
from legged.viewer.motion import motion_of_run
from legged.viewer.scene import scene_of, scene_of_run

URDF = """<robot name="arm">
  <material name="green"><color rgba="0 1 0 1"/></material>
  <link name="base"><visual><geometry><box size="1 2 3"/></geometry><material name="green"/></visual></link>
  <link name="plate"><visual><origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/><geometry>
    <mesh filename="package://arm/meshes/wedge.stl" scale="1 1 2"/></geometry></visual></link>
  <link name="tip"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><mesh filename="meshes/lost.stl"/></geometry></visual></link>
  <joint name="weld" type="fixed"><parent link="base"/><child link="plate"/><origin xyz="1 0 0"/></joint>
  <joint name="turn" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/></joint>
</robot>"""
WEDGE = [((0, 0, 0), (0, 1, 0), (1, 0, 0)), ((0, 0, 0), (1, 0, 0), (0, 0, 1))]  # two triangles with a common edge


@pytest.fixture
def arm(tmp_path):
    """The path of a URDF with a mesh that is there and one that is not."""
    facets = "".join(
        f"facet normal 0 0 0\nouter loop\n{''.join(f'vertex {x} {y} {z}' + chr(10) for x, y, z in corners)}endloop\n"
        f"endfacet\n"
        for corners in WEDGE
    )
    (tmp_path / "arm/meshes").mkdir(parents=True)
    (tmp_path / "arm/meshes/wedge.stl").write_text(f"solid wedge\n{facets}endsolid wedge\n")
    (tmp_path / "arm/arm.urdf").write_text(URDF)
    return tmp_path / "arm/arm.urdf"


def volume(mesh):
    """Return the volume within a closed mesh, [m^3]; negative with the normals inward."""
    return float(np.linalg.det(mesh.vertices[mesh.faces]).sum() / 6.0)


@pytest.mark.parametrize(
    "shape, exact",
    [
        (legged.Box((1.0, 2.0, 3.0), center=(0.3, 0.0, 0.0)), 6.0),
        (legged.Sphere(0.5), np.pi / 6),
        (legged.Ellipsoid((0.5, 1.0, 2.0)), 4 / 3 * np.pi),
        (legged.Cylinder(0.5, 2.0, rotation=legged.rpy(0.3, 0.2, 0.1)), np.pi / 2),
        (legged.Capsule(0.5, 2.0), np.pi / 2 + np.pi / 6),
        (legged.Hull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]), 1 / 6),
    ],
)
def test_meshes_of_shapes_have_their_volume_and_normals_outward(shape, exact):
    assert volume(mesh_of(shape, (1, 1, 1))) == pytest.approx(exact, rel=0.06)  # 20 meridians, 10 parallels


def test_visual_shapes_of_a_urdf_are_read_with_colors_and_fixed_links(arm):
    pytest.importorskip("trimesh")
    scene = scene_of(ModelRecord.of(legged.load(arm, base="fixed")))
    base, tip = scene.parts
    assert (base.name, tip.name) == ("base", "tip")
    box, wedge = base.geometry
    assert box.mesh.color == (0.0, 1.0, 0.0) and volume(box.mesh) == pytest.approx(6.0)
    assert len(wedge.mesh.vertices) == 4 and len(wedge.mesh.faces) == 2  # corners that triangles share are merged
    placed = wedge.mesh.vertices @ wedge.rotation.T + wedge.position
    assert placed.max(axis=0) == pytest.approx((1.0, 1.0, 3.0), abs=1e-6)  # turned about z, scaled and moved
    (note,) = scene.notes
    assert note.endswith("meshes/lost.stl: the visual mesh was not found; put it there, or set ROS_PACKAGE_PATH")
    (ball,) = tip.geometry  # in place of the missing mesh, with the inertia of the link: 0.4 m r^2 = 1 kg m^2
    assert np.ptp(ball.mesh.vertices, axis=0) == pytest.approx(2.0 * np.full(3, 2.5**0.5))


def test_links_that_a_robot_lacks_belong_to_the_link_that_carries_them(arm):
    whole, fused = (legged.load(arm, base="fixed", fuse=fuse) for fuse in (False, True))
    assert set(visuals_of(whole, arm)) == {"base", "plate", "tip"}
    visuals = visuals_of(fused, arm)
    assert set(visuals) == {"base", "tip"}
    assert visuals["base"][1].shape.position.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "before, after, words",
    [
        ('<box size="1 2 3"/>', '<box size="1 2"/>', "'size' on line 3 must be 3 finite numbers, got '1 2'"),
        ('rpy="0 0 1.5707963267948966"', 'rpy="0 0"', "'rpy' on line 4 must be 3 finite numbers, got '0 0'"),
        ('xyz="0 0 1"', 'xyz="0 0 nan"', "'xyz' on line 4 must be 3 finite numbers, got '0 0 nan'"),
        ('<box size="1 2 3"/>', "<sphere/>", "a visual shape of link 'base' is not shown: a sphere's radius"),
    ],
)
def test_invalid_visual_shapes_are_noted(arm, before, after, words):
    assert before in URDF
    arm.write_text(URDF.replace(before, after))
    scene = scene_of(ModelRecord.of(legged.load(arm, base="fixed")))
    assert any(words in note for note in scene.notes)


def test_visual_shapes_of_an_mjcf_are_read(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "pendulum.xml"
    path.write_text(
        '<mujoco><worldbody><body name="rod"><joint/><geom type="capsule" size="0.1 0.5" rgba="1 0 0 1" contype="0" '
        'conaffinity="0"/><geom name="hidden" type="box" size="1 1 1"/></body></worldbody></mujoco>'
    )
    scene = scene_of(ModelRecord.of(legged.load(path)))
    ((capsule,),) = (part.geometry for part in scene.parts)
    assert capsule.mesh.color == (1.0, 0.0, 0.0)
    assert np.ptp(capsule.mesh.vertices, axis=0) == pytest.approx((0.2, 0.2, 1.2))


def test_robots_without_shapes_are_stick_figures_and_others_show_their_shapes():
    scene = scene_of(ModelRecord.of(robots.planar_biped()))
    assert {part.name for part in scene.parts} == {link.name for link in robots.planar_biped().links}
    assert scene.notes == ()
    box = legged.Link("box", legged.box_inertia(1.0, (1, 1, 1)), shapes=[legged.Box((1, 1, 1))])
    (part,) = scene_of(ModelRecord.of(legged.RobotBuilder("box", box).build())).parts
    assert volume(part.geometry[0].mesh) == pytest.approx(1.0)


def test_saved_run_finds_the_meshes_of_its_robot(arm, tmp_path):
    run = legged.simulate(legged.load(arm, base="fixed"), until=0.02)
    again = legged.Run.load(run.save(tmp_path / "run"))
    assert [part.name for part in scene_of_run(again).parts] == ["base", "tip"]
    Path(arm).unlink()
    scene = scene_of_run(again)
    assert scene.notes[0].startswith("the file '") and scene.parts


def test_run_without_a_model_shows_its_stick_figure(trot):
    from dataclasses import replace

    old = replace(trot, model=None)
    scene, figure = scene_of_run(old), trot.figure
    motion = motion_of_run(scene, old)
    assert len(scene.parts) == len(figure.edges) and "no model" in scene.notes[0]
    k, t = 3, 40  # the ends of a capsule are the nodes of its line
    half = np.linalg.norm(figure.nodes[t, figure.edges[k, 1]] - figure.nodes[t, figure.edges[k, 0]]) / 2
    along = quaternion_matrix(motion.rotations[t, k])[:, 2] * half
    assert motion.positions[t, k] + along == pytest.approx(figure.nodes[t, figure.edges[k, 1]], abs=1e-9)


def test_a_mesh_without_triangles_is_noted(tmp_path):
    pytest.importorskip("trimesh")
    (tmp_path / "foot.obj").write_text("v 0 0 0\nv 1 0 0\nl 1 2\n")  # a line
    (tmp_path / "foot.urdf").write_text(
        '<robot name="foot"><link name="foot"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" '
        'iyz="0" izz="1"/></inertial><visual><geometry><mesh filename="foot.obj"/></geometry></visual></link></robot>'
    )
    for _ in range(2):  # read from the file, then from the cache
        scene = scene_of(ModelRecord.of(legged.load(tmp_path / "foot.urdf")))
        assert len(scene.notes) == 1 and scene.notes[0].endswith(
            "foot.obj: the mesh has no triangles, so that it is not shown"
        )
        assert scene.parts  # as a ball


def test_many_triangles_are_simplified(tmp_path):
    pytest.importorskip("fast_simplification")
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.icosphere(subdivisions=4).export(tmp_path / "ball.stl")  # 5120 triangles
    (tmp_path / "ball.urdf").write_text(
        '<robot name="ball"><link name="ball"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" '
        'iyz="0" izz="1"/></inertial><visual><geometry><mesh filename="ball.stl"/></geometry></visual></link></robot>'
    )
    model = ModelRecord.of(legged.load(tmp_path / "ball.urdf"))
    whole, small = (scene_of(model, faces).parts[0].geometry[0].mesh for faces in (60_000, 600))
    assert len(whole.faces) == 5120 and 400 < len(small.faces) <= 600
    assert volume(small) == pytest.approx(volume(whole), rel=0.03)


@pytest.mark.parametrize("rgba", ["nan 0 0 1", "inf 0 0 1", "-1 0 0 1", "200 0 0 1", "red", ""])
def test_colors_that_are_no_numbers_from_0_to_1_are_not_used(tmp_path, rgba):
    """A page could not be read with NaN in it."""
    (tmp_path / "arm.urdf").write_text(URDF.replace("0 1 0 1", rgba))
    (box,) = visuals_of(legged.load(tmp_path / "arm.urdf", base="fixed"), tmp_path / "arm.urdf")["base"]
    assert box.color is None
