"""Rigid ground from the fixed shapes of MJCF files, compared with MuJoCo's rays."""

import mujoco
import numpy as np
import pytest

import legged
from legged.contact import Sphere, load_ground
from legged.contact.scene import Scene
from legged.errors import FileError
from legged.ground import Flat, HeightMap, Slope

SCENE = """<mujoco><asset><hfield name="hills" nrow="5" ncol="9" size="2 1 0.3 0.1"
elevation="{}"/></asset><worldbody>{}<body pos="0 0 5"><freejoint/><geom size="0.1"/></body>
</worldbody></mujoco>"""
HILLS = " ".join(map(str, np.random.default_rng(0).uniform(size=45).round(3)))
PLANE = '<geom name="floor" type="plane" size="9 9 1" friction="0.4" {}/>'


def written(folder, *geoms):
    path = folder / "scene.xml"
    path.write_text(SCENE.format(HILLS, "".join(geoms)))
    return path


def height_by_ray(path, x, y):
    """Return the height of the highest fixed shape at (x, y), [m]."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:3] = 100.0
    mujoco.mj_forward(model, data)
    start, down = np.array([x, y, 50.0]), np.array([0.0, 0.0, -1.0])
    return 50.0 - mujoco.mj_ray(model, data, start, down, None, 1, -1, np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("place", "kind"), [('pos="0 0 0.2"', Flat), ('pos="1 2 0.3" euler="10 20 30"', Slope), ('zaxis="0 -1 3"', Slope)]
)
def test_planes(tmp_path, place, kind):
    path = written(tmp_path, PLANE.format(place))
    ground = load_ground(path)
    assert isinstance(ground.terrain, kind) and ground.friction == 0.4 and ground.obstacles == ()
    for x, y in np.random.default_rng(1).uniform(-1, 1, (5, 2)):
        assert abs(ground.terrain.height(x, y) - height_by_ray(path, x, y)) < 1e-9
        slope = [ground.terrain.height(x + 1.0, y) - ground.terrain.height(x, y), ground.terrain.height(x, y + 1.0)]
        slope[1] = slope[1] - ground.terrain.height(x, y)
        normal = np.array([-slope[0], -slope[1], 1.0])
        np.testing.assert_allclose(ground.terrain.normal(x, y), normal / np.linalg.norm(normal), atol=1e-12)


def test_height_fields_pass_through_their_heights(tmp_path):
    path = written(tmp_path, '<geom type="hfield" hfield="hills" pos="0.5 -1 0.2"/>')
    terrain = load_ground(path).terrain
    assert isinstance(terrain, HeightMap) and terrain.spacing == 0.5 and terrain.heights.shape == (9, 5)
    for i, j in ((1, 1), (3, 2), (7, 3), (4, 1)):
        x, y = -1.5 + 0.5 * i, -2.0 + 0.5 * j
        assert abs(terrain.height(x, y) - height_by_ray(path, x + 1e-7, y + 1e-7)) < 1e-5  # [m], float32 and slope


def test_boxes_become_obstacles_in_world_axes(tmp_path):
    boxes = """<body pos="1 0 0" euler="0 0 90"><geom name="step" type="box" size="0.5 0.2 0.1" pos="0.3 0 0.1"/></body>
    <geom type="box" size="1 1 0.1" euler="0 15 0" friction="0.4"/>"""
    ground = load_ground(written(tmp_path, boxes), restitution=0.2)
    names, solids = zip(*ground.obstacles, strict=True)
    assert names == ("box 1", "step")
    step = dict(ground.obstacles)["step"]
    np.testing.assert_allclose(step.center, (1.0, 0.3, 0.1), atol=1e-12)
    assert abs(max(box.corners[:, 2].max() for box in solids) - (np.sin(0.2618) + 0.1 * np.cos(0.2618))) < 1e-4
    assert ground.terrain == Flat(-100.0) and ground.restitution == 0.2
    assert [box.material and box.material.friction for box in solids] == [None, 1.0]  # MuJoCo's default


SOLIDS = """
<geom name="post" type="cylinder" size="0.2 0.5" pos="1 0 0.5" euler="10 20 0"/>
<geom name="dome" type="sphere" size="0.3" pos="-1 0 0.1"/>
<geom name="rail" type="capsule" size="0.1 0.5" pos="0 1 0.4" euler="0 70 0"/>
<geom name="egg" type="ellipsoid" size="0.3 0.2 0.1" pos="0 -1 0.2" euler="0 0 30"/>
<geom name="slab" type="box" size="0.3 0.2 0.1" pos="1 1 0.2" euler="20 0 30"/>
<geom name="wedge" type="mesh" mesh="wedge" pos="-1 -1 0.1" euler="0 0 40"/>"""
WEDGE = '<mesh name="wedge" vertex="0 0 0  0.6 0 0  0 0.4 0  0.6 0.4 0  0.6 0 0.2  0.6 0.4 0.2"/>'


def test_solid_shapes_become_obstacles_at_the_distances_of_mujoco(tmp_path):
    path = written(tmp_path, PLANE.format(""), SOLIDS)
    path.write_text(path.read_text().replace("<asset>", f"<asset>{WEDGE}"))
    ground = load_ground(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    ball = legged.contact.FreeBody("ball", legged.box_inertia(1.0, (0.1, 0.1, 0.1)), [Sphere(0.1)])
    pairs = tuple(("ball", name) for name, _ in ground.obstacles)
    scene = Scene.of(ball.robot(), legged.Rigid(obstacles=ground.obstacles, pairs=pairs))
    assert [name for name, _ in ground.obstacles] == ["post", "dome", "rail", "egg", "slab", "wedge"]
    rng = np.random.default_rng(2)
    for number, (name, shape) in enumerate(ground.obstacles):
        geoms = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name), model.ngeom - 1
        for _ in range(5):
            away = rng.normal(size=3)
            away /= np.linalg.norm(away)
            position, distance = shape.center + away, 0.0
            for _ in range(20):  # approach to some millimeters, where the separation along a normal is the distance
                data.qpos[:] = [*position, 1.0, 0.0, 0.0, 0.0]
                mujoco.mj_kinematics(model, data)
                distance = mujoco.mj_geomDistance(model, data, *geoms, 2.0, None)
                position = position - (distance - 2e-3) * away
            geometry = scene.contact_geometry([np.array([1.0, 0.0, 0.0, 0.0, *data.qpos[:3]])])
            assert distance < 5e-3 and abs(geometry.gap[number] - distance) < 2e-5  # [m]
            assert geometry.frame[number, 0] @ away > 0.2  # from the obstacle to the ball


def test_other_scenery_is_named_or_refused(tmp_path):
    wrong = {
        PLANE.format("") + PLANE.format("").replace("floor", "wall"): "has 2 planes and height fields",
        "": "has no plane, height field or solid shape",
        PLANE.format('euler="90 0 0"'): "a ground faces upwards",
        '<geom type="hfield" hfield="hills" euler="0 0 90"/>': "a height field that is turned",
    }
    for geoms, words in wrong.items():
        with pytest.raises(FileError, match=words):
            load_ground(written(tmp_path, geoms))
    path = written(tmp_path, '<geom type="hfield" hfield="hills"/>')
    path.write_text(path.read_text().replace('size="2 1 0.3', 'size="2 2 0.3'))
    with pytest.raises(FileError, match=r"spacings of 0\.5 m and 1 m along x and y"):
        load_ground(path)
