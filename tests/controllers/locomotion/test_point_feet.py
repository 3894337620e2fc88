"""Robots with two point or line feet, which walk by steps that also keep the body upright."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from oracles.standing import shared_biped, shared_quadruped
from oracles.urdfs import all_urdfs

import legged
from controllers import Command, Locomotion
from controllers.locomotion.fitting import narrow_directions, swing_limits
from controllers.locomotion.gait.feet import carrying_places, held_places
from controllers.locomotion.gait.posture import held_torques, standing_posture, weakness
from controllers.locomotion.velocity_command import slowed
from legged.algorithms.legs.leg_chains import JointAxis
from legged.algorithms.legs.standing import home_of
from legged.errors import SimulationWarning

FILES = all_urdfs()


def test_soles_carry_a_robot_where_the_leg_keeps_them_at_rest():
    sole = np.array([[0.1, 0.03, 0.0], [0.1, -0.03, 0.0], [-0.1, 0.03, 0.0], [-0.1, -0.03, 0.0]])  # [m]
    roll, pitch, yaw = np.eye(3)
    assert carrying_places(sole, np.eye(3)) is sole  # six joints
    np.testing.assert_allclose(carrying_places(sole, np.array([pitch, yaw])), [[0.1, 0.0, 0.0], [-0.1, 0.0, 0.0]])
    np.testing.assert_allclose(carrying_places(sole, np.array([roll])), [[0.0, 0.03, 0.0], [0.0, -0.03, 0.0]])
    np.testing.assert_allclose(carrying_places(sole, np.zeros((0, 3))), [[0.0, 0.0, 0.0]])  # three joints


@cache
def biped_without(*axes: str) -> legged.Robot:
    """Return the spatial biped with the joints of both legs locked whose names contain one of some words."""
    robot = shared_biped()
    return robot.locked({joint.name: 0.0 for joint in robot.joints if any(axis in joint.name for axis in axes)})


def test_a_line_foot_is_narrow_across_its_line_also_if_it_is_turned():
    for robot, narrow in ((biped_without("ankle_x"), (False, True)), (shared_biped(), (False, False))):
        law = Locomotion("walk")
        started, _ = law.start(robot, None, *law.initial_state(robot))
        planner, height = started.planner, started.height
        assert started.steps.narrow == narrow
        for angle in (0.1, -0.3):  # [rad]
            c, s = np.cos(angle), np.sin(angle)
            R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            turned = tuple(replace(foot, offsets=foot.offsets @ R.T) for foot in planner.feet)
            assert narrow_directions(robot, started.home, turned, height) == narrow
    points = tuple(replace(foot, offsets=np.zeros((1, 3))) for foot in planner.feet)
    assert narrow_directions(robot, started.home, points, height) == (True, True)


def test_feet_rise_less_where_a_hip_is_near_the_end_of_its_range():
    free, law = shared_biped(), Locomotion("walk", clearance=0.2)
    started, memory = law.start(free, None, *law.initial_state(free))
    assert started.memory(memory).clearance == 0.2
    home, height = started.home, started.height

    def highest(robot: legged.Robot) -> float:
        return swing_limits(robot, home, 0.2, np.inf)[0]  # as slow as it may be

    hips = [joint.name for joint in free.joints if "hip_y" in joint.name]
    hip = home.legs[0].pitch_columns[0]
    higher = home_of(free, home.hip_height - 0.1 * height)  # legs that are shorter by a rise of 0.1 h
    change = higher.angles[hip] - home.angles[hip]
    end = "lower" if change < 0.0 else "upper"
    near = free.with_parameters({f"{name}.{end}": home.angles[hip] + change for name in hips})
    assert highest(near) == pytest.approx(0.1, abs=0.025)  # it is linear in the angles
    at = free.with_parameters({f"{name}.{end}": home.angles[hip] for name in hips})
    assert highest(at) == pytest.approx(0.06)
    dog = shared_quadruped()
    rise, speeds, _ = swing_limits(dog, home_of(dog), 0.2, 0.3)
    assert rise == 0.2 and np.isinf(speeds).all()
    limited, memory = replace(law, home=home).start(near, None, *law.initial_state(free))
    assert limited.memory(memory).clearance == pytest.approx(highest(near))


def test_slow_joints_bound_the_rise_and_the_speed_of_swings():
    """Over a swing of 0.6 s a sole climbs with 3.43 times the mean rate of its rise and moves with 1.5 times its mean
    velocity; rates of the knee by small changes of the standing posture."""
    free, duration, small = shared_biped(), 0.6, 1e-3
    started, _ = Locomotion("walk").start(free, None, *Locomotion("walk").initial_state(free))
    home, height = started.home, started.height
    knee = home.legs[0].pitch_columns[1]
    lower = home_of(free, home.hip_height - small)  # [m]
    rate = abs(lower.angles[knee] - home.angles[knee]) / small  # [rad/m]
    climb = max(12.0 * x * (1.0 - x * x) ** 2 for x in np.linspace(0.0, 1.0, 1001)) / duration  # rise (1 - x^2)^3
    knees = [joint.name for joint in free.joints if "knee" in joint.name]
    slow = free.with_parameters({f"{name}.speed": rate * climb * 0.1 * height / 0.7 for name in knees})  # [rad/s]
    assert swing_limits(slow, home, 0.15, duration)[0] == pytest.approx(0.1, rel=0.01)
    hip = home.legs[0].pitch_columns[0]
    hips = [joint.name for joint in free.joints if "hip_y" in joint.name]
    turned = shared_biped().with_parameters({f"{name}.speed": 4.0 for name in hips})
    rise, speeds, _ = swing_limits(turned, home, 0.15, duration)
    q = np.concatenate([free.base.configuration(np.zeros(3), np.eye(3)), home.angles])
    J = legged.point_jacobian(free, q, home.legs[0].link, started.planner.feet[0].sole)
    inverse = np.linalg.inv(J[:, [free.base.nv + k for k in home.legs[0].columns]])
    forward, _, up = np.abs(inverse[home.legs[0].columns.index(hip), 3:])  # [rad/m]
    limit = 4.0 - up * climb * rise * height  # [rad/s], left to the hip
    assert speeds[0] == pytest.approx(0.9 * limit / (1.5 * forward), rel=0.01)  # [m/s], with torque left
    half = {f"{name}.damping": turned.joint(name).definition.physics.effort / 4.0 for name in hips}
    rise, damped, _ = swing_limits(turned.with_parameters(half), home, 0.15, duration)
    limit = (
        2.0 - up * climb * rise * height
    )  # [rad/s], at 2 rad/s the motor has half of its torque and friction takes it
    assert damped[0] == pytest.approx(0.9 * limit / (1.5 * forward), rel=0.01)
    slow = free.with_parameters({f"{name}.speed": 0.8 for name in hips})  # [rad/s]
    assert swing_limits(slow, home, 0.15, duration)[0] == pytest.approx(0.06)
    rise, _, (_, available, share) = swing_limits(slow, home, 0.15, 2.0)
    assert available == 0.8
    assert share == pytest.approx(up * climb * (duration / 2.0) * rise * height / available, rel=0.01)
    with pytest.warns(SimulationWarning, match="joint '(left|right)_hip_y_.' is slow: .* of 0.8 rad/s limits walks"):
        law, _ = Locomotion("walk", home=home).start(slow, None, *Locomotion("walk").initial_state(free))
    assert law.fastest[0] < 0.5 * started.fastest[0]


def test_a_warning_names_the_joint_that_hardly_holds_the_robot_on_one_leg():
    robot = shared_biped()
    law, home = Locomotion("stand"), standing_posture(robot)
    state = law.initial_state(robot)
    torques, *_ = held_torques(robot, home)
    knees = [joint for joint in robot.joints if "knee" in joint.name]
    need = max(abs(torques[joint.v.start - robot.base.nv]) for joint in knees)
    for share, words in ((0.3, ""), (0.45, "joint '(left|right)_knee_.*")):
        weak = robot.with_parameters({f"{joint.name}.effort": need / share for joint in knees})
        assert bool(words) == bool(weakness(weak, home))
        if words:
            with pytest.warns(SimulationWarning, match=words):
                replace(law, home=home).start(weak, None, *state)


def test_one_end_of_a_sole_carries_a_robot_that_turns_if_the_leg_cannot_turn_the_sole():
    robot, law = biped_without("hip_z", "ankle_x"), Locomotion("walk")
    started, _ = law.start(robot, None, *law.initial_state(robot))
    foot, up = started.planner.feet[0], np.array([0.0, 0.0, 1.0])
    assert [started.planner.turning(rate) for rate in (0.0, 0.3, -0.3)] == [0.0, 1.0, 1.0]  # [rad/s]
    still = foot.carrying(0.0, np.eye(3), up)
    assert still.center == pytest.approx(foot.sole) and still.shares == [1.0, 1.0]
    for side in (1.0, -1.0):  # the foot rolls to the left and to the right
        c, s = np.cos(0.1 * side), np.sin(0.1 * side)
        roll = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        carrying = foot.carrying(1.0, roll, up)
        assert carrying.shares == [1.0 if k == foot.pivot else 0.0 for k in range(2)]
        offset = carrying.center - foot.sole
        assert offset == pytest.approx([foot.offsets[foot.pivot][0], -side * abs(foot.edge[1]), 0.0])
        assert (roll @ offset)[2] < 0.0  # the lower edge
        assert (carrying.tilt @ foot.offsets[foot.pivot])[2] < 0.0 and carrying.held == 1.0
    for other in (biped_without("ankle_x"), shared_biped()):  # legs that yaw, and that yaw and roll their feet
        planner = law.start(other, None, *law.initial_state(other))[0].planner
        assert not planner.has_pivots and planner.turning(0.3) == 0.0


def test_a_robot_without_ankle_roll_and_hip_yaw_turns_in_place_and_walks_curves():
    robot, walk = biped_without("hip_z", "ankle_x"), Locomotion("walk", None)
    q, v = walk.initial_state(robot)
    step, ground = legged.TimeStepping(2e-3), legged.Rigid(friction=0.6)
    sim = legged.Simulation(robot, walk, ground=ground, q=q, v=v, integrator=step)
    height = float(legged.center_of_mass(robot, q)[2])
    speed, unit = np.sqrt(9.81 * height), np.sqrt(9.81 / height)
    for vx, rate in ((0.0, 0.2), (0.1, -0.15)):  # [sqrt(g h)], [sqrt(g / h)]
        sim.reset(q, v)
        headings = []
        for n in (1500, 500, 500):
            sim.step(np.array([vx * speed, 0.0, rate * unit, 0.0, 0.0]), n=n)
            R, _ = robot.base.pose(sim.q[:7])
            headings.append(np.arctan2(R[1, 0], R[0, 0]))
        assert not sim.fallen, f"fell at {sim.t:.2f} s with {vx} and {rate}: {sim.reasons}"
        turned = np.unwrap(headings)
        assert (turned[-1] - turned[0]) / 2.0 == pytest.approx(rate * unit, abs=0.03 * unit)


@pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")
def test_a_robot_with_two_point_feet_steps_in_place_walks_and_recovers_from_a_push():
    robot, walk = legged.load(FILES["bolt/bolt"]), Locomotion("walk", None)
    state = walk.initial_state(robot)
    step, ground = legged.TimeStepping(2e-3), legged.Rigid(friction=0.6)
    sim = legged.Simulation(robot, walk, ground=ground, q=state[0], v=state[1], integrator=step)
    law, _ = Locomotion("walk").start(robot, None, *state)
    assert law.steps.narrow == (True, True) and not law.planner.on_soles
    speed = float(np.sqrt(9.81 * law.height))
    for vx, push in ((0.0, 0.0), (0.35, 0.0), (-0.15, 0.0), (0.15, 0.11)):  # [sqrt(g h)]
        sim.reset(*state)
        for n, kick in ((1000, push), (1000, 0.0)):
            sim.step(np.array([vx * speed, 0.0, 0.0, 0.0, 0.0]), n=n)
            before, start = sim.state, sim.q[4]
            v = before.v.copy()
            v[4] += kick * speed
            sim.state = replace(before, v=v)
        sim.step(np.array([vx * speed, 0.0, 0.0, 0.0, 0.0]), n=500)
        assert not sim.fallen, f"fell at {sim.t:.2f} s with {vx} and a push of {push}: {sim.reasons}"
        assert sim.q[4] - start == pytest.approx(vx * speed, abs=0.03 * speed + 0.03)
        R, _ = robot.base.pose(sim.q[:7])
        assert R[2, 2] > np.cos(0.25)


def test_a_biped_with_heavy_legs_walks_by_quick_steps_that_keep_it_upright():
    """With a trunk of 6 of 27 kg the spatial biped falls after 3 s by the steps of robots with light legs."""
    light = shared_biped()
    robot, law = light.with_parameters({"trunk_1.mass": 6.0}), Locomotion("walk", Command(vx=0.4))
    started, _ = law.start(robot, None, *law.initial_state(robot))
    usual, _ = law.start(light, None, *law.initial_state(light))
    assert started.steps.narrow == (False, True) and usual.steps.narrow == (False, False)
    run = legged.simulate(robot, law, until=4.0, ground=legged.Rigid(0.6), integrator=legged.TimeStepping(2e-3))
    late = run.times > 2.0
    way, time = (np.ptp(x[late], axis=0) for x in (run.base.position[:, 0], run.times))
    assert way / time == pytest.approx(0.4, rel=0.15)


def test_places_beyond_the_lever_of_an_ankle_are_moved_to_it_across_its_axis():
    sole = np.array([[0.1, 0.03, 0.0], [0.1, -0.03, 0.0], [-0.1, 0.03, 0.0], [-0.1, -0.03, 0.0]])  # [m]
    axis = JointAxis("revolute", np.array([0.0, 1.0, 0.0]), np.array([-0.05, 0.0, 0.06]), 1)
    held = held_places(sole, [axis], np.array([np.inf, 0.03]))
    np.testing.assert_allclose(held[:, 0], [-0.02, -0.02, -0.08, -0.08])
    np.testing.assert_allclose(held[:, 1:], sole[:, 1:])
    slanted = axis._replace(direction=np.array([0.6, 0.8, 0.0]))
    moved = held_places(sole, [slanted], np.array([np.inf, 0.03]))
    torques = (moved - slanted.origin) @ np.array([-0.8, 0.6, 0.0])
    assert np.abs(torques).max() == pytest.approx(0.03)
    np.testing.assert_allclose((moved - sole) @ slanted.direction, np.zeros(4), atol=1e-15)
    for lever in (np.inf, 0.051):  # [m], without a limit, and with the middle of the sole within it
        assert held_places(sole, [axis], np.array([np.inf, lever])) is sole


def test_a_command_beyond_the_ability_of_two_feet_gives_the_largest_speed_and_a_warning():
    robot = shared_biped()
    started, _ = Locomotion("walk").start(robot, None, *Locomotion("walk").initial_state(robot))
    apart, height, speed = np.ptp(started.steps.stances[:, 1]), started.height, started.fastest[1]
    # in half of the period of 3.6 sqrt(h / g) one foot moves to the other by half of their distance, and away from it
    assert speed == pytest.approx(apart / (0.5 * 3.6 * np.sqrt(height / 9.81)), rel=1e-3)
    assert started.fastest[0] == pytest.approx(0.5 * np.sqrt(9.81 * height))
    length = min(leg.length for leg in started.home.legs)
    reach, home = 0.3 * height, home_of(robot, np.sqrt(length**2 - (0.3 * height) ** 2))
    straight, _ = Locomotion("walk", home=home).start(robot, None, *Locomotion("walk", home=home).initial_state(robot))
    # steps of 1.3 times the reach, with swings of sqrt(h / g), which are 0.48 of their cycle
    omega = np.sqrt(9.81 / straight.height)
    assert straight.fastest[0] == pytest.approx(0.48 / 0.52 * 1.3 * reach * omega, rel=1e-6)
    shares = slowed(np.array([4.0, -3.0, 1.0]) * started.fastest, started.fastest, on_two=True) / started.fastest
    assert shares == pytest.approx([0.5, -0.375, 0.125])  # their magnitudes add to 1, not their squares
    law = Locomotion("walk", Command(vy=3.0 * speed))
    with pytest.warns(SimulationWarning, match=r"largest velocities"):
        run = legged.simulate(robot, law, until=8.0, ground=legged.Rigid(0.6), integrator=legged.TimeStepping(2e-3))
    late = run.times > 5.0
    way, time = (np.ptp(x[late], axis=0) for x in (run.base.position[:, 1], run.times))
    assert way / time == pytest.approx(speed, rel=0.25)
