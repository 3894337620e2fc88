"""Seeing: footsteps on the map of a depth camera, at the pose that the law knows."""

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import DefinitionError, UnknownNameError
from legged.estimation import InvariantFilter
from legged.ground import Flat, RollingHeightMap, Stairs
from legged.rotations import quaternion_exp, quaternion_matrix
from legged.sensors import DepthCamera

ROBOT = robots.spatial_quadruped()
STEP = Stairs((0.6,), (0.1,), ramp=0.02)
"""A step of a third of the height of the center of mass."""
DOWN = quaternion_matrix(quaternion_exp(np.array([0.0, 0.6, 0.0])))
CAMERA = DepthCamera(legged.Frame("trunk", (0.4, 0.0, 0.1), DOWN))
CELL = 0.05
QUICK = "test_the_map_lies_where_the_law_believes_to_be"


def seeing(law, terrain=STEP, camera=CAMERA, **options):
    ground = legged.Rigid(terrain=terrain)
    return controllers.Seeing(
        legged.Simulation(ROBOT, law, ground=ground, integrator=legged.TimeStepping(2e-3), **options), camera
    )


def locomotion(count=1, vx=0.4):
    known = RollingHeightMap((64, 64), CELL, count)
    return controllers.Locomotion("trot", controllers.Command(vx=vx), terrain=known)


def test_a_robot_walks_over_a_step_that_only_its_camera_shows():
    law = locomotion()
    walk = seeing(law)
    z = walk.simulation.q[6]
    walk.step(n=600)
    landing = law.terrain.height(np.array([0.3, 0.75, 0.9]), np.zeros(3))
    np.testing.assert_allclose(landing, [0.0, 0.1, 0.1], atol=0.01)  # three times the noise at 1 m
    walk.step(n=750)
    assert not walk.simulation.fallen and walk.simulation.q[4] > 0.9
    assert walk.simulation.q[6] == pytest.approx(z + 0.1, abs=0.05)
    errors = walk.maps[0].heights - STEP.height(*walk.maps[0].centers())
    even = np.isfinite(errors) & (np.abs(walk.maps[0].centers()[0] - 0.6) > CELL)
    assert np.sqrt(np.mean(errors[even] ** 2)) < 0.005 and np.count_nonzero(even) > 1000


def test_the_map_lies_where_the_law_believes_to_be():
    error = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.05, *np.zeros(ROBOT.nj)])
    law = controllers.Estimated(locomotion(), InvariantFilter(), error=error)
    view = seeing(law, terrain=Flat())
    seen = np.isfinite(view.maps[0].heights)
    assert np.count_nonzero(seen) > 300
    np.testing.assert_allclose(view.maps[0].heights[seen], 0.05, atol=0.02)  # noise of single pixels 2 m away


def test_each_robot_has_a_map_of_its_own_which_starts_again_with_it():
    law = locomotion(2)
    q, v = controllers.Locomotion("trot").initial_state(ROBOT)
    starts = np.array([q, q])
    starts[1, 4:6] = -1.0, 5.0
    view = seeing(law, num=2, q=starts, v=v)
    heights = [own.filled().heights for own in view.maps]
    assert heights[0].max() > 0.09 and heights[1].max() < 0.05  # the step is 1.6 m ahead of the second one
    assert (view.maps[1].corner - view.maps[0].corner == [-20, 100]).all()
    view.maps[0].heights[:] = 1.0
    view.step(n=5)
    assert np.nanmax(view.maps[0].heights) == 1.0  # no second image before its time
    before = view.maps[1].variance
    view.reset(where=[0])
    assert np.nanmax(view.maps[0].heights) < 0.15
    assert np.nanmin(view.maps[1].variance) < np.nanmin(before)  # another image of the same map


def test_a_simulation_without_a_map_that_can_be_seen_is_refused():
    flat = controllers.Locomotion("trot", terrain=Flat())
    with pytest.raises(DefinitionError, match="RollingHeightMap"):
        seeing(flat)
    law = locomotion()
    with pytest.raises(DefinitionError, match="another terrain"):
        seeing(law, terrain=law.terrain)
    with pytest.raises(DefinitionError, match="whose controller is Locomotion"):
        seeing(None)
    with pytest.raises(DefinitionError, match="RollingHeightMap"):
        seeing(law, num=2)
    with pytest.raises(UnknownNameError, match="head"):
        seeing(law, camera=DepthCamera("head"))
