"""Rigid ground from the fixed shapes of MJCF files, compared with MuJoCo's rays."""

import mujoco
import numpy as np
import pytest

from legged.contact import load_ground
from legged.errors import FileError, FileWarning
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


def test_other_scenery_is_named_or_refused(tmp_path):
    with pytest.warns(FileWarning, match="1 of kind cylinder, which are left out"):
        load_ground(written(tmp_path, PLANE.format(""), '<geom type="cylinder" size="0.1 0.1"/>'))
    wrong = {
        PLANE.format("") + PLANE.format("").replace("floor", "wall"): "has 2 planes and height fields",
        "": "has no plane, height field or box",
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
