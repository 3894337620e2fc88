"""Robots from URDFs have Pinocchio's dynamics: random files, files of real robots, floating and fixed, mimic or not.

Inverse dynamics, inertia matrix, bias and center of mass agree to 1e-13 of their size; 1e-12 is asked and 1e-9 was
promised. Accelerations may lose what the condition of the inertia matrix takes: ten roundings times it.
"""

import numpy as np
import pytest

import legged
from legged.errors import FileError
from legged.robot.physics import TRANSITION_SPEED

pytest.importorskip("pinocchio")
pytest.importorskip("lxml")
from oracles.urdf_texts import random_urdf
from oracles.urdfs import all_urdfs, compare, pinocchio_acceleration

EXACT = 1e-12
FILES = all_urdfs()
EVERY_DAY = (
    "a1/a1", "anymal_c_simple/anymal", "go2/go2", "human/human", "hyq/hyq_no_sensors", "iris/iris", "kinova/kinova",
    "panda/panda", "solo/solo12", "ur/ur5_robot", "hector/quadrotor_base",
)  # fmt: skip
REJECTED = {
    "alex/alex_psyonic_hands": ("no joint named 'index_q1'; did you mean 'Left_index_q1'", {"mimic": "free"}),
    "romeo/romeo": ("24 joints: 'LHand', .* they move no mass", {"repair": "weld"}),
    "romeo/romeo_laas_small": ("'l_gripper_joint', 'r_gripper_joint': they move no mass", {"repair": "weld"}),
    "ur/ur3": ("has no links but names xacro", None),
}
needs_files = pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")


def agrees(path, base, states=20, **options):
    robot, apart = compare(path, base, states, **options)
    label = f"{path.name}, {base}, {options}"
    assert max(apart.inverse, apart.inertia, apart.bias, apart.center) <= EXACT, (label, apart)
    assert apart.forward <= EXACT + 10 * np.finfo(float).eps * apart.condition, (label, apart)
    return robot


@pytest.mark.parametrize("base", ["floating", "fixed"])
@pytest.mark.parametrize("seeds", [range(0, 6), pytest.param(range(6, 18), marks=pytest.mark.slow)])
def test_random_files_have_pinocchios_dynamics(base, seeds, tmp_path):
    for seed in seeds:
        path = tmp_path / f"random{seed}.urdf"
        path.write_text(random_urdf(seed))
        for mimic in ("coupled", "free"):
            agrees(path, base, states=2, mimic=mimic)


@needs_files
@pytest.mark.parametrize("name", EVERY_DAY)
def test_real_robots_have_pinocchios_dynamics(name):
    for base in ("floating", "fixed"):
        robot = agrees(FILES[name], base, states=4)
        if robot.followers:
            agrees(FILES[name], base, states=2, mimic="free")


@needs_files
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FILES) - set(REJECTED)))
def test_every_public_robot_has_pinocchios_dynamics(name):
    for base in ("floating", "fixed"):
        robot = agrees(FILES[name], base)
        if robot.followers:
            agrees(FILES[name], base, mimic="free")


@needs_files
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "laas" in name else []) for name in REJECTED]
)
def test_rejected_files_load_with_the_option_that_the_error_names(name):
    words, way_out = REJECTED[name]
    with pytest.raises(FileError, match=words):
        legged.load(FILES[name])
    if way_out:
        for base in ("floating", "fixed"):
            robot = agrees(FILES[name], base, states=3, **way_out)
        assert robot.audit.repaired or "mimic" in way_out


@needs_files
def test_files_on_which_pinocchio_returns_nan_are_rejected():
    silent = [name for name, path in FILES.items() if "NaN" in pinocchio_acceleration(path)]
    assert silent == ["romeo/romeo", "romeo/romeo_laas_small"]
    for name in silent:
        with pytest.raises(FileError, match="the dynamics are singular"):
            legged.load(FILES[name])


@needs_files
def test_joint_friction_of_a_file_is_added_to_pinocchios_forces():
    path = FILES["hyq/hyq_no_sensors"]
    robot, rigid = legged.load(path), legged.load(path, joint_physics=False)
    damping = np.array([float(joint.definition.physics.damping) for joint in robot.joints])
    friction = np.array([float(joint.definition.physics.friction) for joint in robot.joints])
    assert damping.min() > 0.0
    rng = np.random.default_rng(0)
    q = legged.random_configuration(robot, rng)
    v, vdot = rng.normal(size=(2, robot.nv))
    added = legged.inverse_dynamics(robot, q, v, vdot) - legged.inverse_dynamics(rigid, q, v, vdot)
    expected = damping * v[6:] + friction * np.tanh(v[6:] / TRANSITION_SPEED)
    assert np.abs(added[:6]).max() < 1e-12
    assert np.allclose(added[6:], expected, rtol=0.0, atol=1e-12)
