"""Feet that touch down late, the forces planned while the gait waits for them, and the path of a robot that lags."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.standing import shared_biped, shared_quadruped

import legged
from controllers import Command, Locomotion
from controllers.locomotion.forces.predictive import Plan
from controllers.locomotion.gait.footsteps import Sway
from controllers.locomotion.gait.schedule import GaitState
from controllers.locomotion.gait.swing import Swing
from controllers.locomotion.motion import BodyReference, BodyState, FeetMotion, advanced_path
from controllers.locomotion.torques.tasks import WholeBodyModel


@pytest.mark.parametrize("speed", [0.5, 0.6])
def test_a_foot_that_is_late_moves_down_while_the_knee_behind_stops_at_its_limit(speed):
    """The body cannot move as planned without the force of the foot; the leg in the air must not swing up instead."""
    robot, law = shared_biped(), Locomotion("walk")
    q, v = law.initial_state(robot)
    started, memory = law.start(robot, None, q, v)
    planner, parts = started.planner, started.memory(memory)
    left, right = planner.feet
    ahead, behind = (np.array(foot.columns) for foot in (left, right))
    angles = q[robot.base.nq :]
    angles[behind[[1, 3, 5]]], angles[ahead[[1, 3, 5]]] = [-0.3, -0.3, 0.6], [0.8, -0.8, 0.0]  # hip, knee, ankle, [rad]
    J = WholeBodyModel(robot, q, v).point(right.link, right.sole).J
    v[3] = speed  # [m/s]
    v[robot.base.nv + behind] = -np.linalg.solve(J[:, robot.base.nv + behind], J @ v)  # the foot behind is at rest
    model = WholeBodyModel(robot, q, v)
    places = [model.point(foot.link, foot.sole).position for foot in planner.feet]
    zero, up, still = np.zeros(3), np.array([0.0, 0.0, 1.0]), Sway(0.0, np.zeros((0, 2)), np.zeros((0, 2)))
    swings, carrying = [Swing(zero, zero, zero)] * 2, [foot.carrying(0.0, np.eye(3), up) for foot in planner.feet]
    feet = FeetMotion(places, [0.0, 1.0], [1.0, 1.0], swings, places, places, [np.eye(3)] * 2, [0.5] * 2, carrying)
    body = legged.center_of_mass(robot, q)
    reference = BodyReference(body, np.array([speed, 0.0, 0.0]), np.eye(3), 0.0, np.array([1.0, 0.0]), still)
    plan = Plan(np.zeros((len(parts.costates), 8, 3)), parts.costates, parts.costates, zero, zero, 0.0, 0)
    forces = planner.torques(model, plan, reference, feet, 0.5, parts.iterate)
    point = model.point(left.link, left.sole)
    assert (point.J @ forces.vdot + point.bias)[5] < -3.0  # [m/s^2]


def test_a_swinging_foot_rises_although_its_ankle_cannot_keep_the_sole_level():
    """At the end of its range an ankle does not turn the sole back while the knee bends; the leg must lift the foot."""
    robot, law = shared_biped(), Locomotion("walk")
    q, v = law.initial_state(robot)
    started, memory = law.start(robot, None, q, v)
    left, columns = started.planner.feet[0], [robot.base.nv + k for k in started.planner.feet[0].columns]
    J = WholeBodyModel(robot, q, v).point(left.link, left.sole).J[:, columns]
    v[columns] = np.linalg.solve(J, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # the sole rises with 1 m/s and stays level
    assert left.ankle is not None
    angle, rate = q[robot.base.nq + left.ankle], v[robot.base.nv + left.ankle]
    assert rate > 1.0  # [rad/s]
    limits = started.planner.limits
    upper = np.where(np.arange(robot.nj) == left.ankle, angle + 0.01, limits.upper)  # [rad]
    planner, parts = replace(started.planner, limits=replace(limits, upper=upper)), started.memory(memory)
    model = WholeBodyModel(robot, q, v)
    places = [model.point(foot.link, foot.sole).position for foot in planner.feet]
    zero, up, still = np.zeros(3), np.array([0.0, 0.0, 1.0]), Sway(0.0, np.zeros((0, 2)), np.zeros((0, 2)))
    swings = [Swing(place, up, 10.0 * up) for place in places]  # [m/s], [m/s^2]
    carrying = [foot.carrying(0.0, np.eye(3), up) for foot in planner.feet]
    reference = BodyReference(legged.center_of_mass(robot, q), zero, np.eye(3), 0.0, np.array([1.0, 0.0]), still)
    plan = Plan(np.zeros((len(parts.costates), 8, 3)), parts.costates, parts.costates, zero, zero, 0.0, 0)
    rises, start = [], np.zeros(planner.iterate_size())
    for share in (0.0, 1.0):
        state = [0.0, 1.0], [0.0, 1.0], swings, places, places, [np.eye(3)] * 2, [0.5] * 2, carrying, [share, share]
        forces = planner.torques(model, plan, reference, FeetMotion(places, *state), 0.5, start)
        point = model.point(left.link, left.sole)
        rises.append((point.J @ forces.vdot + point.bias)[5])
    assert rises[1] > 0.0 > rises[0]  # [m/s^2]: the leg that keeps its sole level stops


def test_the_plan_counts_on_the_feet_that_stand_while_the_gait_waits_for_a_foot():
    """At the scheduled touchdown the plan otherwise counts on the feet in the air alone, and the robot falls."""
    robot, law = shared_quadruped(), Locomotion("trot")
    q, v = law.initial_state(robot)
    started, memory = law.start(robot, None, q, v)
    planner, schedule = started.planner, started.gaits.schedules[0][1]
    model = WholeBodyModel(robot, q, v)
    places = [model.point(foot.link, foot.sole).position for foot in planner.feet]
    body = BodyState(legged.center_of_mass(robot, q), np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3))
    still = Sway(0.0, np.zeros((0, 2)), np.zeros((0, 2)))
    reference = BodyReference(body.position, np.zeros(3), np.eye(3), 0.0, np.array([1.0, 0.0]), still)
    touchdown = schedule.touchdowns[0]
    standing = np.array([abs(x - touchdown) > 0.25 for x in schedule.touchdowns])  # the other pair
    forces = []
    for waited in (0.0, 0.02):
        state = GaitState.standing(schedule)._replace(
            phase=touchdown - 1e-6 + (touchdown == 0.0), walking=1.0, planted=np.zeros(4), waited=waited
        )
        assert np.array_equal(np.array(state.stance) > 0.5, standing)
        swings = [Swing(place, np.zeros(3), np.zeros(3)) for place in places]
        axes = [np.eye(3)] * 4
        carrying, progress = [foot.carrying(0.0, np.eye(3), axes[0][2]) for foot in planner.feet], state.swing_progress
        feet = FeetMotion(places, state.stance, state.stance, swings, places, places, axes, progress, carrying)
        plan = planner.plan(body, reference, state, feet, 0.5, started.memory(memory).costates)
        forces.append(plan.forces[:2, :, 2] / (robot.mass * planner.gravity))
    assert forces[0][0, ~standing].sum() == pytest.approx(1.0, abs=0.2)  # [m g], as in any trot at rest
    assert forces[1][0, ~standing] == pytest.approx(0.0, abs=1e-6)
    assert forces[1][0, standing].sum() == pytest.approx(1.0, abs=0.2)
    assert forces[1][1, ~standing].sum() == pytest.approx(1.0, abs=0.2)  # the schedule continues after a step


def test_a_foot_acts_at_its_place_until_it_lifts_off_within_a_step():
    """At its next place the force had another moment about the body, and fell to a fifth in the last half step."""
    robot, law = shared_quadruped(), Locomotion("trot")
    q, v = law.initial_state(robot)
    started, _ = law.start(robot, None, q, v)
    planner, schedule, h = started.planner, started.gaits.schedules[0][1], 0.05
    body = BodyState(legged.center_of_mass(robot, q), np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3))
    reference = BodyReference(body.position, np.zeros(3), np.eye(3), 0.0, np.array([1.0, 0.0]), STILL)
    places, up = [np.array([0.1 * k, 0.0, 0.0]) for k in range(4)], np.array([0.0, 0.0, 1.0])
    footsteps = [place + np.array([0.0, 1.0, 0.0]) for place in places]
    swings = [Swing(place, np.zeros(3), np.zeros(3)) for place in places]
    phase = (schedule.touchdowns[0] + schedule.parameters[1] - 0.2 * h / schedule.period) % 1.0
    state = GaitState.standing(schedule)._replace(phase=phase, walking=1.0, planted=np.zeros(4))
    carrying = [foot.carrying(0.0, np.eye(3), up) for foot in planner.feet]
    feet = FeetMotion(
        places, state.stance, state.stance, swings, places, footsteps, [up] * 4, state.swing_progress, carrying
    )
    arms, active, supported = planner._contact_points(body, reference, state, feet, h)
    assert active[0, 0] == pytest.approx(0.2)
    assert active[1, 0] == 0.0
    assert active[0, 1] == pytest.approx(0.8)  # the other feet land at that time
    assert supported[0] == pytest.approx(1.0)
    assert (arms[0, 0] + body.position)[:2] == pytest.approx(places[0][:2])
    assert (arms[-1, 0] + body.position)[:2] == pytest.approx(footsteps[0][:2])


STILL = Sway(1.0, np.zeros((0, 2)), np.zeros((0, 2)))


@pytest.mark.parametrize("heading", [0.0, 2.0])
def test_a_desired_place_moves_with_a_robot_that_lags_but_the_line_stays_beside_one_that_drifts(heading):
    """Without the line, Go2 drifted by 1.5 h to the side on stairs on which the same two feet climbed at once."""
    R = np.array([[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]])
    command, dt = np.array([0.5, 0.0, 0.0]), 0.01
    path, aside, place = np.array([0.0, 0.0, heading]), np.zeros(2), np.zeros(2)
    for _ in range(100):  # the robot is slower by 0.3 m/s, and drifts to the left by 0.2 m/s
        place = place + dt * R @ [0.2, 0.2]
        path, aside = advanced_path(path, aside, command, place, STILL, (0.05, 0.1, 0.1), dt)
    assert np.hypot(*(path[:2] - place)) == pytest.approx(0.05)
    assert R.T @ aside == pytest.approx([0.0, -0.1 * 0.5**2 / (0.5**2 + 0.1**2)])
    path, aside = advanced_path(path, aside, np.zeros(3), place, STILL, (0.05, 0.1, 0.1), dt)
    assert aside == pytest.approx(0.0)  # a robot that is to stand does not return


def test_a_robot_within_the_distance_that_the_plan_corrects_has_no_way_back():
    """So that its steps are those of the command."""
    path, aside = np.array([0.03, 0.02, 0.5]), np.zeros(2)
    path, aside = advanced_path(path, aside, np.array([0.5, 0.1, 0.2]), np.zeros(3), STILL, (0.05, 0.1, 0.01), 0.002)
    c, s = np.cos(0.5), np.sin(0.5)
    expected = np.array([0.03, 0.02]) + 0.002 * np.array([0.5 * c - 0.1 * s, 0.5 * s + 0.1 * c])
    assert path == pytest.approx([*expected, 0.5004])
    assert aside == pytest.approx(0.0, abs=1e-15)


def test_soles_stand_as_far_to_both_sides_of_the_heading_in_a_turn():
    """Soles that land along the heading turn the hips to one side alone, up to the ends of their ranges."""
    robot, rate = shared_biped(), 1.0  # [rad/s], 0.34 sqrt(g / h)
    law = Locomotion("walk", Command(yaw_rate=rate))
    run = legged.simulate(
        robot, law, ground=legged.Rigid(friction=0.6), until=5.0, integrator=legged.TimeStepping(2e-3)
    )
    late = run.times > 2.0
    hips = [joint.q.start for joint in robot.joints if "hip_z" in joint.name]
    ends = [run.q[late, k].min() + run.q[late, k].max() for k in hips]
    assert np.abs(ends).max() < 0.45  # [rad], of 1.1 rad from end to end; 0.87 with soles that land along the heading
