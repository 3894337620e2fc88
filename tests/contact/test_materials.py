"""Friction and restitution of pairs of materials: combination, tables of pairs, files, and variation."""

import mujoco
import numpy as np
import pytest

import legged
from legged.contact import Box, FreeBody, Material, MaterialPair, Rigid, Sphere
from legged.errors import ArgumentError, DefinitionError, LeggedError, UnknownNameError

G, SPEED, UNTIL = 9.81, 1.0, 0.2  # [m/s^2], [m/s], [s]
RUBBER, ICE, STEEL = Material("rubber", 0.9, 0.6), Material("ice", 0.1), Material("steel", 0.4, 0.9, priority=1)


def box(material=None, size=(0.4, 0.4, 0.05), name="base"):
    """Return a box as a robot that can slide on its corners."""
    solid = Box(size, material=material)
    return legged.RobotBuilder(name, legged.Link(name, legged.box_inertia(2.0, size), shapes=[solid])).build()


def deceleration(ground, material=None, **options):
    """Return the mean deceleration of a sliding box over the acceleration of gravity: mu."""
    robot = box(material)
    q, v = robot.neutral(), np.zeros(6)
    q[6], v[3] = 0.025, SPEED
    run = legged.simulate(robot, None, ground=ground, until=UNTIL, q=q, v=v, **options)
    return (SPEED - run.v[-1, 3]) / UNTIL / G


SLIDING = {"pairs": (("base", "terrain"),)}


@pytest.mark.parametrize(
    ("ground", "material", "mu"),
    [
        (Rigid(0.3, **SLIDING), None, 0.3),
        (Rigid(0.3, **SLIDING), ICE, 0.1),  # a declared material before the default of the ground
        (Rigid(0.3, combination="maximum", **SLIDING), ICE, 0.3),
        (Rigid(0.3, **SLIDING), Material("tire", 0.5), 0.5),
        (Rigid(0.3, combination="minimum", **SLIDING), ICE, 0.1),
        (Rigid(0.3, combination="harmonic mean", **SLIDING), ICE, 0.15),
        (Rigid(0.6, **SLIDING), STEEL, 0.4),
        (Rigid(0.6, material_pairs=(MaterialPair("ice", "ground", 0.2),), **SLIDING), ICE, 0.2),
        (Rigid(0.6, material="oak", material_pairs=(MaterialPair("oak", "oak", 0.25),), **SLIDING), None, 0.25),
    ],
)
def test_a_sliding_box_decelerates_by_the_friction_of_its_pair(ground, material, mu):
    assert abs(deceleration(ground, material) - mu) < 1e-6


def test_coefficients_between_each_pair_of_materials():
    ground = Rigid(0.5, 0.3, material_pairs=(MaterialPair("ice", "rubber", 0.05, 0.1),))
    assert ground.coefficients(None, None) == (0.5, 0.3)
    assert ground.coefficients(RUBBER, None) == ground.coefficients(None, RUBBER) == (0.9, 0.6)
    assert ground.coefficients(ICE, None) == ground.coefficients(None, ICE) == (0.1, 0.0)
    assert ground.coefficients(Material("wool", 0.7), ICE)[0] == 0.7  # the larger one of two declared ones
    assert ground.coefficients(RUBBER, ICE) == ground.coefficients(ICE, RUBBER) == (0.05, 0.1)
    assert ground.coefficients(RUBBER, STEEL) == (0.4, 0.9)  # by its priority
    assert ground.coefficients(Material("wood", 0.3, priority=-1), None) == (0.5, 0.3)
    assert Rigid(0.0, combination="harmonic mean").coefficients(Material("wax", 0.0), None)[0] == 0.0


def test_restitution_is_that_of_each_pair():
    """Two balls fall on the ground, one of rubber; they bounce to e^2 of their heights."""
    height, radius = 0.2, 0.05
    ball = legged.sphere_inertia(0.3, radius)
    robot = legged.RobotBuilder("one", legged.Link("one", ball, {"one": Sphere(radius)}, material=RUBBER)).build()
    other = FreeBody("other", ball, [Sphere(radius)], position=(1.0, 0.0, height + radius))
    q = robot.neutral()
    q[6] = height + radius
    fall = np.sqrt(2.0 * height / G)
    run = legged.simulate(
        robot, None, ground=Rigid(0.5, 0.3), bodies=[other], q=q, until=2.2 * fall, sample=1e-3, fall=False
    )
    after = run.times > 1.01 * fall
    assert abs(run.v[after, 5].max() - 0.6 * G * fall) < 0.03  # [m/s], three steps of gravity
    assert abs(run.body("other").velocity[after, 2].max() - 0.3 * G * fall) < 0.03


def test_friction_of_the_ground_and_of_a_pair_vary_in_one_kernel():
    for material, name in ((RUBBER, "ground.friction"), (ICE, "ground.material_pairs.0.friction")):
        pairs = (MaterialPair(material.name, "ground", 0.2),) * (material is ICE)
        ground = Rigid(0.3, combination="maximum", material_pairs=pairs, **SLIDING)
        values = np.array([0.15, 0.95])
        robot = box(material)
        q, v = robot.neutral(), np.zeros(6)
        q[6], v[3] = 0.025, 1.0
        runs = legged.rollout(robot, None, ground=ground, vary={name: values}, q=q, v=v, until=0.08)
        actual = (1.0 - runs.v[:, -1, 3]) / 0.08 / G
        expected = np.maximum(values, 0.9) if material is RUBBER else values
        assert np.abs(actual - expected).max() < 1e-6


def test_materials_of_links_reach_their_points_and_shapes_and_survive_editing():
    foot = legged.Link("foot", contacts={"heel": (0, 0, 0), "ball": Sphere(0.02, material=ICE)}, material=RUBBER)
    trunk = legged.Link("trunk", legged.box_inertia(2.0, (0.2, 0.2, 0.2)), shapes=[Box((0.2,) * 3, material=STEEL)])
    robot = legged.RobotBuilder("r", trunk).add(legged.Fixed("ankle"), foot, to="trunk").build()
    for same in (robot, robot.edit().build(), legged.Robot.from_description(robot.describe())):
        scene = legged.contact.Scene.of(same, Rigid(), [FreeBody("b", trunk.inertia, trunk.shapes)])
        materials = {candidate.name: candidate.materials for candidate in scene.candidates}
        assert materials["heel"] == (RUBBER, None) and materials["ball"] == (ICE, None)
        assert materials["trunk-b_1"] == (STEEL, STEEL)
    with pytest.raises(DefinitionError, match="differ in material"):
        robot.fused()
    editor = robot.edit().change_link("trunk", material=RUBBER)
    assert editor.build().fused().links[0].material == RUBBER


MJCF = """<mujoco><worldbody><geom name="floor" type="plane" size="9 9 1" friction="{}" priority="{}"/>
<body name="base" pos="0 0 0.025"><freejoint/>
<geom type="box" size="0.2 0.2 0.025" mass="2" friction="{}" priority="{}"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("numbers", [(0.3, 0, 0.2, 0), (0.3, 0, 0.5, 0), (0.6, 0, 0.4, 1)])
def test_friction_from_mjcf_is_that_of_mujoco(tmp_path, numbers):
    path = tmp_path / "box.xml"
    path.write_text(MJCF.format(*numbers))
    robot = legged.load(path, shapes=True, materials=True)
    ground = legged.contact.load_ground(path, pairs=(("base", "terrain"),))
    scene = legged.contact.Scene.of(robot, ground)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert ground.coefficients(*scene.candidates[0].materials)[0] == data.contact[0].friction[0]
    assert legged.load(path, shapes=True).links[0].shapes[0].material is None
    legged.save_mjcf(robot, tmp_path / "copy.xml")
    copy = mujoco.MjModel.from_xml_path(str(tmp_path / "copy.xml"))
    assert copy.geom_friction[0, 0] == numbers[2] and copy.geom_priority[0] == numbers[3]


def test_friction_from_urdf_is_that_for_gazebo(tmp_path):
    path = tmp_path / "box.urdf"
    path.write_text("""<robot name="r"><link name="base"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<collision><geometry><box size="1 1 1"/></geometry></collision></link>
<gazebo reference="base"><mu1>0.35</mu1><mu2>0.35</mu2></gazebo></robot>""")
    robot = legged.load(path, feet=["base"], shapes=True, materials=True)
    assert robot.links[0].shapes[0].material.friction == robot.links[0].material.friction == 0.35
    path.write_text(path.read_text().replace("<mu1>0.35", "<mu1>-0.35"))
    with pytest.raises(LeggedError, match="friction of material"):
        legged.load(path)


def test_wrong_materials_are_refused():
    for wrong in (("", 0.5), ("x", -0.1), ("x", 0.5, 1.5)):
        with pytest.raises(LeggedError):
            Material(*wrong)
    with pytest.raises(UnknownNameError, match="combination"):
        Rigid(combination="product")
    with pytest.raises(DefinitionError, match="twice"):
        Rigid(material_pairs=(MaterialPair("a", "b", 0.1), MaterialPair("b", "a", 0.2)))
    with pytest.raises(UnknownNameError, match="rubbr"):
        legged.contact.Scene.of(box(RUBBER), Rigid(material_pairs=(MaterialPair("rubbr", "ground", 0.1),), **SLIDING))
    with pytest.raises(ArgumentError):
        Box((1, 1, 1), material="rubber")  # type: ignore[arg-type]
