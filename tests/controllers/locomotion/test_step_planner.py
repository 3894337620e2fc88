"""The plan of the next steps on known ground, and bounds and weights that follow from the legs of two feet."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.standing import shared_biped, shared_quadruped

import legged
from controllers import Command, Locomotion
from controllers.locomotion.fitting import standing_parts
from controllers.locomotion.gait.footsteps import GroundPlane
from controllers.locomotion.gait.schedule import GaitState
from legged.ground import Slope, Stairs

QUICK = "test_the_trunk_of_two_feet_leans_back_by_half_of_a_known_slope"


def planner(terrain):
    law = Locomotion("walk", Command(vx=0.3), terrain=terrain)
    started, _ = law.start(shared_biped(), None, *law.initial_state(shared_biped()))
    schedule = started.gaits.schedules[0][1]
    return started.feet_plan, GaitState.standing(schedule)._replace(walking=1.0, planted=np.zeros(2))


def test_two_feet_on_two_steps_do_not_tilt_the_trunk_to_the_side():
    plan, _ = planner(Stairs((0.0,), (0.1,)))
    places = [np.array([0.1, 0.1, 0.1]), np.array([-0.1, -0.1, 0.0])]
    slope = np.zeros(2)
    for _ in range(1000):  # 2 s, six time constants
        slope = plan.plane(places, slope).slope
    assert slope[0] > 0.02 and slope[1] == pytest.approx(0.0, abs=1e-12)
    blind, _ = planner(None)
    for _ in range(1000):
        slope = blind.plane(places, slope).slope
    assert slope[1] > 0.1


def test_the_trunk_of_two_feet_leans_back_by_half_of_a_known_slope():
    plan, _ = planner(Slope(0.2))
    slope = np.zeros(2)
    for _ in range(1000):
        slope = plan.plane([np.array([x, y, x * np.tan(0.2)]) for x, y in ((0.1, 0.1), (-0.1, -0.1))], slope).slope
    assert slope == pytest.approx(
        [0.5 * np.tan(0.2), 0.0], rel=1e-2
    )  # the fit counts 0.01 h^2 as a spread that is level


@pytest.mark.parametrize("angle", [0.15, -0.15])
def test_soles_rise_as_high_over_an_incline_as_over_level_ground(angle):
    """A sole is parallel to the ground on which it stood, so that its toe and its heel need no additional height."""

    def rises(angle):
        law = Locomotion("walk", Command(vx=0.3), terrain=Slope(angle))
        started, flat = law.start(shared_biped(), None, *law.initial_state(shared_biped()))
        plan, memory, tangent = started.feet_plan, started.memory(flat), np.tan(angle)
        feet, landings = ([np.array([x, y, tangent * x]) for y in (0.1, -0.1)] for x in (0.0, 0.3))
        state = GaitState.standing(started.gaits.schedules[0][1])
        middle = state.duty[0] + 0.5 * (1.0 - state.duty[0])
        state = state._replace(phase=middle, walking=1.0, planted=np.zeros(2), touchdowns=np.zeros(2))
        plane, last = GroundPlane(feet[0], np.array([0.5 * tangent, 0.0])), memory._replace(footsteps=landings)
        _, swings = plan.swings(state, landings, feet, last, plane, last.rises, np.array([1.0, 0.0]))
        return [swing.position[2] - tangent * swing.position[0] for swing in swings]

    assert rises(angle) == pytest.approx(rises(0.0), rel=1e-6)


def test_steps_count_on_the_part_of_a_sole_that_the_ankle_holds():
    strong, law = shared_biped(), Locomotion("walk")
    ankles = [joint.name for joint in strong.joints if "ankle" in joint.name]
    plan = law.start(strong, None, *law.initial_state(strong))[0].feet_plan
    place = np.abs(plan.planner.feet[0].outline[:, 0]).max()
    assert plan.reach == pytest.approx(plan.sole, abs=1e-9)
    weight = strong.mass * 9.81
    weak = strong.with_parameters({f"{name}.effort": 0.3 * place * weight for name in ankles})
    held = law.start(weak, None, *law.initial_state(weak))[0].feet_plan
    assert 0.1 * place < held.reach[0] < 0.5 * place


def test_angular_momentum_counts_as_linear_momentum_does_except_on_heavy_legs_that_turn_their_soles_and_without_turns():
    robot = shared_biped()
    words = [{"ankle_x"}, {"ankle_x", "hip_z"}]
    line, turned = (
        robot.locked({joint.name: 0.0 for joint in robot.joints if any(x in joint.name for x in own)}) for own in words
    )
    heavy, light = (robot.with_parameters({"trunk_1.mass": mass}) for mass in (12.0, 5.0))  # [kg], a leg has 10.5
    for each in (robot, line, light, line.with_parameters({"trunk_1.mass": 12.0})):
        planner = standing_parts(each)[1]
        x, y, z = np.diag(planner.inertia) / each.mass
        assert planner.rotation_weight == pytest.approx([0.5 * (x + y), 0.5 * (x + y), z])
    for each in (heavy, turned):
        planner = standing_parts(each)[1]
        assert planner.rotation_weight == planner.height**2


def test_the_motion_of_a_heavy_leg_in_a_swing_takes_at_most_half_of_the_weight():
    """A sole rises by r with the acceleration -24 r / T^2 in the middle of a swing of the duration T."""
    robot, gravity = shared_biped(), 9.81
    planner, small = standing_parts(robot)[1], 1e-4
    home = standing_parts(robot)[0]
    q = np.concatenate([robot.base.configuration(np.zeros(3), np.eye(3)), home.angles])
    J = legged.point_jacobian(robot, q, home.legs[0].link, planner.feet[0].sole)
    columns, lifted = list(home.legs[0].columns), q.copy()
    lifted[[robot.base.nq + k for k in columns]] += (
        small * np.linalg.inv(J[:, [robot.base.nv + k for k in columns]])[:, 5]
    )
    share = (legged.center_of_mass(robot, lifted) - legged.center_of_mass(robot, q))[2] / small
    assert planner.lifted_share == pytest.approx(share, rel=1e-3)
    assert standing_parts(shared_quadruped())[1].lifted_share == 0.0

    def rise(period, heavy):
        law = Locomotion("walk", Command(vx=0.3))
        started, flat = law.start(robot, None, *law.initial_state(robot))
        plan, memory = started.feet_plan, started.memory(flat)
        plan = replace(plan, planner=replace(planner, lifted_share=heavy))
        state = GaitState.standing(started.gaits.schedules[0][1])
        middle = state.duty[0] + 0.5 * (1.0 - state.duty[0])
        state = state._replace(
            phase=middle, walking=1.0, planted=np.zeros(2), touchdowns=np.zeros(2), period=period * state.period
        )
        feet, plane = [np.array([0.0, y, 0.0]) for y in (0.1, -0.1)], GroundPlane(np.zeros(3), np.zeros(2))
        memory = memory._replace(footsteps=feet)
        _, swings = plan.swings(state, feet, feet, memory, plane, memory.rises, np.array([1.0, 0.0]))
        return swings[0].position[2], (1.0 - state.duty[0]) * state.period, memory.clearance * plan.height

    height, _, desired = rise(1.0, 0.05)
    assert height == pytest.approx(desired)
    height, duration, desired = rise(0.5, 0.3)
    assert height < 0.8 * desired
    assert 0.3 * 24.0 * height / duration**2 == pytest.approx(0.5 * gravity)


def test_the_yaw_rate_on_two_feet_is_bounded_by_the_range_of_the_hip_yaws():
    """A sole turns by the yaw rate times the duration of a stance, at most by the whole range of the hip yaw."""
    robot = shared_biped()
    _, _, steps, _, fastest = standing_parts(robot)
    assert fastest[2] == pytest.approx(0.5 * steps.omega)
    for outward, inward in ((0.3, 0.3), (0.5, 0.1)):  # [rad]
        _, planner, steps, _, fastest = standing_parts(with_hip_yaws(robot, outward, inward))
        stance = 0.6 * 3.6 / steps.omega  # [s]
        assert 0.8 * 0.6 <= fastest[2] * stance <= 0.6  # the axes of bent legs are inclined
        for rate in fastest[2] * np.array([-1.0, -0.6, -0.2, 0.2, 0.6, 1.0]):
            for foot in planner.feet:
                first, last = (foot.turned(rate, time, stance) for time in (0.5 * stance, -0.5 * stance))
                assert first - last == pytest.approx(rate * stance)  # the sole stands, the body turns
                assert -foot.room[0] - 1e-12 <= min(first, last) and max(first, last) <= foot.room[1] + 1e-12
                if 0.5 * abs(rate) * stance <= foot.room.min():
                    assert first == pytest.approx(-last)


def test_hip_yaws_that_turn_feet_inward_by_little_turn_the_robot_by_those_that_turn_outward():
    """With soles that stand as far to both sides of the heading, 0.1 rad inward would allow a third of this rate."""
    robot, rate = with_hip_yaws(shared_biped(), 0.8, 0.1), 1.0  # [rad/s], 0.34 sqrt(g / h)
    law = Locomotion("walk", Command(yaw_rate=rate))
    run = legged.simulate(
        robot, law, ground=legged.Rigid(friction=0.6), until=4.0, integrator=legged.TimeStepping(2e-3)
    )
    late = run.times > 2.0
    assert run.v[late, 2].mean() == pytest.approx(rate, rel=0.05)


def with_hip_yaws(robot, outward, inward):
    """Return the biped with ranges of its hip yaws, [rad]; positive angles turn the left foot outward."""
    sides = {"left": (-inward, outward), "right": (-outward, inward)}
    ends = {}
    for name in robot.parameters():
        joint, _, end = name.rpartition(".")
        if "hip_z" in joint and end in ("lower", "upper"):
            ends[name] = sides["left" if "left" in joint else "right"][end == "upper"]
    assert len(ends) == 4
    return robot.with_parameters(ends)


def test_a_knee_of_two_coupled_joints_bends_by_a_fifth_of_a_radian_in_both_together():
    """Thigh and shank turn by twice the coordinate, so that its end is 0.1 rad from the straight leg."""
    trunk = legged.Link("trunk", legged.box_inertia(20.0, (0.2, 0.3, 0.4)))
    biped = legged.RobotBuilder("rolling knees", trunk, base=legged.FloatingBase())
    bone = legged.box_inertia(1.0, (0.05, 0.05, 0.3))
    corners = {f"{x}{y}": (x, y, -0.05) for x in (-0.1, 0.1) for y in (-0.03, 0.03)}  # [m]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        axes = {"roll": "x", "hip": "y", "upper": "y", "lower": "y", "ankle": "y"}
        joints = [legged.Revolute(name, axis) for name, axis in axes.items()]
        leg = legged.Limb().add(joints[0], legged.Link("hips", bone)).add(joints[1], legged.Link("thigh", bone))
        leg.add(joints[2], legged.Link("knee", bone), at=(0.0, 0.0, -0.4))
        leg.add(joints[3], legged.Link("shank", bone), at=(0.0, 0.0, -0.05))
        leg.add(joints[4], legged.Link("foot", bone, corners), at=(0.0, 0.0, -0.4))
        biped.attach(leg, to="trunk", at=(0.0, 0.1 * sign, -0.2), prefix=f"{side}_")
        biped.couple(f"{side}_lower", f"{side}_upper")
    robot, law = biped.build(), Locomotion("stand")
    started, _ = law.start(robot, None, *law.initial_state(robot))
    for leg in started.home.legs:
        knee = leg.pitch_columns[1]
        end = started.planner.limits.lower if started.home.angles[knee] > 0.0 else started.planner.limits.upper
        assert abs(end[knee]) == pytest.approx(0.1, abs=0.03) and end[knee] * started.home.angles[knee] > 0.0


def test_the_law_begins_a_walk_to_the_right_with_the_right_foot():
    robot, left, phases = shared_biped(), [], []
    for vy in (0.1, -0.1):
        law = Locomotion("walk", Command(vy=vy))
        q, v = law.initial_state(robot)
        started, flat = law.start(robot, None, q, v)
        wrenches = np.zeros((len(robot.links), 6))
        for foot in started.planner.feet:
            wrenches[foot.link, 5] = 0.5 * robot.mass * 9.81
        memory = started.evaluated(0.0, q, v, wrenches, started.memory(flat))
        phases.append(float(memory.gait[0]))
        left.append(started.steps.stances[0, 1] > 0.0)
    assert all(left)  # of the first foot
    assert (phases[1] - phases[0]) % 1.0 == pytest.approx(0.5)
