"""The three scenes of hybrid control: exact forces of an arm, a vibrating plate, and 20 N of a quadruped on a wall."""

import numpy as np
import pytest

import robots
from examples.studies.balance import hybrid_scenes as scenes
from examples.studies.balance.hybrid_scenes import first_configuration
from examples.studies.balance.hybrid_study import HybridStudy, decoupling, write
from legged.ground import realistic_ground


def test_force_and_motion_commands_of_the_arm_are_decoupled():
    assert max(decoupling(first_configuration())) < 1e-12


def test_the_wall_pushes_points_behind_it_away():
    floor = realistic_ground(robots.spatial_quadruped())
    ground = scenes.FloorAndWall(floor.normal, floor.friction, floor.terrain)
    points = np.array([[scenes.QUADRUPED_WALL + 1e-3, 0.0, 0.5], [scenes.QUADRUPED_WALL - 1e-3, 0.0, 0.5]])
    forces, rate = ground.forces(points, np.zeros((2, 3)))
    assert forces == pytest.approx(np.array([[-20.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), abs=1e-9)
    assert not rate.any()


@pytest.fixture(scope="module")
def study():
    return HybridStudy(2.0)


@pytest.mark.slow
def test_a_quadruped_presses_on_a_wall_with_twenty_newtons_while_its_trunk_sways(study):
    run = study.wall
    late = run.times > 1.5
    force = -run.contact(scenes.PRESSING).force[late, 0]
    assert force == pytest.approx(np.full(late.sum(), scenes.PRESSING_FORCE), abs=0.01)
    assert np.ptp(study.trunk_motion[late], axis=0).max() > 0.02
    desired = np.array([[*scenes.trunk_position(t), *scenes.trunk_angles(t)] for t in run.times])
    assert np.abs(study.trunk_motion - desired).max() < 1e-3
    for name in scenes.STANDING:
        foot = run.contact(name)
        assert foot.force[late, 2].min() > 1.0 and np.ptp(foot.position[late], axis=0).max() < 1e-3


@pytest.mark.slow
def test_the_study_writes_its_tables_figures_and_animations(study, tmp_path):
    arm, gantry, quadruped = (table.text() for table in study.tables())
    assert "floor, 15 to 23 N" in arm and "unknown vibration" in gantry and "force on the wall" in quadruped
    names = {path.name for path in write(study, tmp_path)}
    assert names == {"arm.png", "gantry.png", "wall.png", "arm.gif", "arm.html", "wall.gif", "wall.html"}
