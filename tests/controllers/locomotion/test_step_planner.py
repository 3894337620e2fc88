"""The plan of the next steps on known ground: the plane under two feet."""

from dataclasses import replace

import numpy as np
import pytest

import robots
from controllers import Command, Locomotion
from controllers.locomotion.gait.footsteps import GroundPlane
from controllers.locomotion.gait.schedule import GaitState
from legged.algorithms.legs.standing import home_of
from legged.ground import HeightMap, Slope, Stairs

QUICK = "test_the_base_is_higher_uphill_where_an_ankle_would_reach_the_end_of_its_range"


def planner(terrain):
    law = Locomotion("walk", Command(vx=0.3), terrain=terrain)
    started, _ = law.start(robots.spatial_biped(), None, *law.initial_state(robots.spatial_biped()))
    schedule = started.gaits.schedules[0][1]
    return started.feet_plan, GaitState.standing(schedule)._replace(walking=1.0, planted=np.zeros(2))


def test_two_feet_on_two_steps_do_not_tilt_the_trunk_to_the_side():
    plan, _ = planner(Stairs((0.0,), (0.1,)))
    places = [np.array([0.1, 0.1, 0.1]), np.array([-0.1, -0.1, 0.0])]
    slope = np.zeros(2)
    for _ in range(5000):  # 10 s, many time constants
        slope = plan.plane(places, slope).slope
    assert slope[0] > 0.02 and slope[1] == pytest.approx(0.0, abs=1e-12)
    blind, _ = planner(None)
    for _ in range(5000):
        slope = blind.plane(places, slope).slope
    assert slope[1] > 0.1


def test_the_trunk_of_two_feet_leans_back_by_half_of_a_known_slope():
    plan, _ = planner(Slope(0.2))
    slope = np.zeros(2)
    for _ in range(5000):
        slope = plan.plane([np.array([x, y, x * np.tan(0.2)]) for x, y in ((0.1, 0.1), (-0.1, -0.1))], slope).slope
    assert slope == pytest.approx(
        [0.5 * np.tan(0.2), 0.0], rel=1e-2
    )  # the fit counts 0.01 h^2 as a spread that is level


def test_the_base_is_higher_uphill_where_an_ankle_would_reach_the_end_of_its_range():
    free, law = robots.spatial_biped(), Locomotion("walk")
    home = law.start(free, None, *law.initial_state(free))[0].home
    ankles = [joint.name for joint in free.joints if "ankle_y" in joint.name]
    ankle = home.angles[home.legs[0].pitch_columns[2]]
    stops = {f"{name}.lower": ankle - 1.0 for name in ankles} | {f"{name}.upper": ankle + 0.25 for name in ankles}
    robot = free.with_parameters(stops)  # 0.07 rad more than the least distance from the end of the range
    for terrain, share in ((None, 1.0), (Slope(0.0), 0.5)):  # a known slope counts half in the plane
        walk = Locomotion("walk", terrain=terrain)
        plan = walk.start(robot, None, *walk.initial_state(robot))[0].feet_plan
        begin, rate, most = plan.planner.rises
        assert begin == pytest.approx(0.07, abs=1e-3) and 0.0 < most < 0.15 * plan.height
        for slope in (-0.2, 0.0, 0.06, 0.15, 2.0):
            rise = plan.rise(GroundPlane(np.zeros(3), share * np.array([slope, 0.3])), np.array([1.0, 0.0]))
            assert rise == pytest.approx(min(max(rate * (slope - begin), 0.0), most))
        higher = home_of(robot, home.hip_height + 0.5 * most)
        margin = ankle + 0.25 - higher.angles[home.legs[0].pitch_columns[2]]
        assert margin == pytest.approx(0.18 + begin + 0.5 * most / rate, abs=0.1 * most / rate)
    steep = GroundPlane(np.zeros(3), np.ones(2)), np.array([1.0, 0.0])
    mapped = replace(plan, terrain=HeightMap(np.zeros((20, 20)), 0.1))  # its slope may be that of gaps
    assert plan.rise(*steep) > 0.0 and mapped.rise(*steep) == 0.0
    dog, trot = robots.spatial_quadruped(), Locomotion("trot")
    assert trot.start(dog, None, *trot.initial_state(dog))[0].feet_plan.rise(*steep) == 0.0


def test_steps_count_on_the_part_of_a_sole_that_the_ankle_holds():
    strong, law = robots.spatial_biped(), Locomotion("walk")
    ankles = [joint.name for joint in strong.joints if "ankle" in joint.name]
    plan = law.start(strong, None, *law.initial_state(strong))[0].feet_plan
    place = np.abs(plan.planner.feet[0].outline[:, 0]).max()
    assert plan.reach == pytest.approx(plan.sole, abs=1e-9)
    weight = strong.mass * 9.81
    weak = strong.with_parameters({f"{name}.effort": 0.3 * place * weight for name in ankles})
    held = law.start(weak, None, *law.initial_state(weak))[0].feet_plan
    assert 0.1 * place < held.reach[0] < 0.5 * place
