"""Robots walk at commanded velocities on rigid ground, turn, stop and catch themselves."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import legged
import robots
from benchmarks.locomotion.tables.endurance import endurance_table
from benchmarks.locomotion.walkers import walkers
from controllers import Command, ContactSchedule, Locomotion
from controllers.locomotion.gait.footsteps import Sway, plane_of
from controllers.locomotion.gait.schedule import GaitState
from controllers.locomotion.motion import BodyReference
from controllers.locomotion.torques.tasks import WholeBodyModel
from controllers.locomotion.velocity_command import limited_command
from legged.algorithms.legs.leg_chains import joint_axes
from legged.dynamics.kinematics import link_poses
from legged.errors import DefinitionError
from legged.ground import Slope

QUICK = "test_points_of_standing_feet_fall_back_behind_the_moving_body_in_the_plan"

FILES = all_urdfs()
STEP = legged.TimeStepping(2e-3)
KNEES_BEYOND = ("/g1_29dof_rev_1_0", "/solo12")
"""Files with knees that bend beyond a straight leg."""
needs_files = pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")


@cache
def simulation(name: str, gait: str, terrain=None):
    """Return (robot, its initial state, a simulation whose steps take the command)."""
    robot = legged.load(FILES[name]) if "/" in name else getattr(robots, name)()
    law = Locomotion(gait, None, terrain=terrain)
    state = law.initial_state(robot)
    ground = legged.Rigid(friction=0.6) if terrain is None else legged.Rigid(friction=0.6, terrain=terrain)
    return robot, state, legged.Simulation(robot, law, ground=ground, q=state[0], v=state[1], integrator=STEP)


def walked(name, gait, command, until=3.0, terrain=None, after=1.5):
    """Return (mean velocity in heading axes (2,), [m/s], yaw rate, [rad/s], base positions (T, 3), R of the end)."""
    robot, state, sim = simulation(name, gait, terrain)
    sim.reset(*state)
    times, places, headings = [], [], []
    while sim.t < until:
        sim.step(np.array([*command, 0.0, 0.0]), n=10)
        assert not sim.fallen, f"fell at {sim.t:.2f} s: {sim.reasons}"
        R, origin = robot.base.pose(sim.q[: robot.base.nq])
        times.append(float(sim.t))
        places.append(origin)
        headings.append(np.arctan2(R[1, 0], R[0, 0]))
    turn, places, times = np.unwrap(headings), np.array(places), np.array(times)
    rates = np.diff(places[:, :2], axis=0) / np.diff(times)[:, None]
    c, s = np.cos(turn[1:]), np.sin(turn[1:])
    local = np.stack([c * rates[:, 0] + s * rates[:, 1], c * rates[:, 1] - s * rates[:, 0]], axis=1)
    late = times[1:] > after
    return local[late].mean(axis=0), np.diff(turn)[late].mean() / np.diff(times).mean(), places, R


def check(name, gait, command, **options):
    velocity, yaw_rate, places, R = walked(name, gait, command, **options)
    assert velocity == pytest.approx(command[:2], abs=0.05 + 0.05 * np.hypot(*command[:2]))
    assert yaw_rate == pytest.approx(command[2], abs=0.05 + 0.05 * abs(command[2]))
    return places, R


@needs_files
def test_go2_trots_forward_sideways_and_turns_as_commanded():
    for command in ((0.8, 0.0, 0.0), (0.0, 0.4, 0.0), (0.3, 0.0, 1.0)):
        places, R = check("go2/go2", "trot", command)
        assert R[2, 2] > np.cos(0.15)  # the trunk stays level
        assert np.ptp(places[:, 2]) < 0.04  # [m]


@needs_files
def test_go2_trots_at_three_meters_per_second_with_flights_between_stances_of_seven_hundredths_of_a_second():
    (forward, left), _, places, _ = walked("go2/go2", "trot", (3.0, 0.0, 0.0), until=9.0, after=7.0)
    assert forward == pytest.approx(3.0, abs=0.2) and abs(left) < 0.1 * forward  # the heading sways by up to 0.1 rad
    assert abs(places[-1, 1]) < 0.05  # [m], of 11.6 m


@needs_files
def test_go2_catches_itself_after_changes_of_velocity_that_a_fixed_step_time_does_not_survive():
    _, state, sim = simulation("go2/go2", "trot")
    command = np.array([0.5, 0.0, 0.0, 0.0, 0.0])
    for after, speed, angle in ((561, 1.4, -0.25), (683, 1.2, 0.75), (683, 1.4, 0.75)):  # time steps, [m/s], [pi]
        sim.reset(*state)
        sim.step(command, n=after)
        before = sim.state
        v = before.v.copy()
        v[3:5] += speed * np.array([np.cos(np.pi * angle), np.sin(np.pi * angle)])
        sim.state = replace(before, v=v)
        sim.step(command, n=600)
        assert not sim.fallen, f"fell after {speed} m/s at step {after}: {sim.reasons}"


def test_the_inertia_of_the_plan_is_that_of_the_standing_robot_about_its_center_of_mass():
    robot = robots.spatial_quadruped()
    law, (q, _) = Locomotion("trot"), Locomotion("trot").initial_state(robot)
    started, _ = law.start(robot, None, q, np.zeros(robot.nv))
    R, origin = robot.base.pose(q[: robot.base.nq])
    c = R.T @ (legged.center_of_mass(robot, q) - origin)
    about_origin = legged.inertia_matrix(robot, q)[:3, :3]
    expected = about_origin - robot.mass * (c @ c * np.eye(3) - np.outer(c, c))
    np.testing.assert_allclose(started.planner.inertia, expected, atol=1e-10)


def test_points_of_standing_feet_fall_back_behind_the_moving_body_in_the_plan():
    robot = robots.spatial_quadruped()
    law, _ = Locomotion("trot").start(robot, None, *Locomotion("trot").initial_state(robot))
    velocity, h, still = np.array([0.5, -0.2, 0.0]), 0.02, Sway(0.0, np.zeros((0, 2)), np.zeros((0, 2)))
    reference = BodyReference(np.array([1.0, 2.0, 0.3]), velocity, np.eye(3), 0.0, np.array([1.0, 0.0]), still)
    places = [np.array([x, y, 0.0]) for x in (0.3, -0.3) for y in (0.2, -0.2)]
    carrying = [foot.carrying(0.0, np.eye(3), np.array([0.0, 0.0, 1.0])) for foot in law.planner.feet]
    feet: Any = SimpleNamespace(positions=places, footsteps=places, carrying=carrying)
    body: Any = reference
    state = GaitState.standing(law.gaits.schedules[0][1])
    arms, *shares = law.planner._contact_points(body, reference, state, feet, h)
    assert all(share == pytest.approx(1.0, abs=1e-12) for share in shares)  # rounding of differences of phases
    expected = places - reference.position - ((np.arange(len(arms)) + 0.5)[:, None] * h * velocity)[:, None]
    np.testing.assert_allclose(arms, expected, atol=1e-12)


def test_a_foot_late_in_its_swing_moves_to_higher_places_on_its_tread_alone():
    """Places belong to one tread if their heights differ by at most a twentieth of the height of the robot."""
    robot = robots.spatial_quadruped()
    law, memory = Locomotion("trot").start(robot, None, *Locomotion("trot").initial_state(robot))
    places = [np.array([x, 0.0, 0.0]) for x in (0.2, -0.2, 0.2, -0.2)]
    start = GaitState.standing(law.gaits.schedules[0][1])
    late = start.duty[0] + 0.9 * (1.0 - start.duty[0])
    state = start._replace(phase=late, walking=1.0, planted=np.zeros(4), touchdowns=np.zeros(4))
    assert state.swing_progress == pytest.approx(np.full(4, 0.9))
    for rise, moves in ((0.04, True), (0.06, False)):
        higher = [place + np.array([0.0, 0.0, rise * law.height]) for place in places]
        last = law.memory(memory)._replace(footsteps=places)
        plane, ahead = plane_of(places, law.height), np.array([1.0, 0.0])
        targets, _ = law.feet_plan.swings(state, higher, places, last, plane, last.rises, ahead)
        assert ((np.array(targets)[:, 2] > 0.0) == moves).all()


@needs_files
def test_planned_footsteps_lie_on_the_ground_ahead_of_swinging_feet():
    _, state, sim = simulation("go2/go2", "trot")
    controller: Any = sim.loop.controller
    sim.reset(*state)

    def kept(memory):
        return memory

    for _ in range(50):
        sim.step(np.array([0.8, 0.0, 0.0, 0.0, 0.0]), n=10)
        planned = controller.planned_footsteps(sim.observe(kept))
        swings = np.isfinite(planned[:, 0])
        assert swings.sum() in (0, 2)
        assert abs(planned[swings, 2]).max(initial=0.0) < 0.02  # [m]
        assert (planned[swings, 0] > sim.contacts.positions[swings, 0] - 0.06).all()  # [m], near touchdown


@needs_files
@pytest.mark.parametrize("name, height", [("go2/go2", -0.12), ("anymal_b_simple/anymal", -0.05)])
def test_height_and_pitch_of_a_command_are_those_of_the_base(name, height):
    """Legs that fold shift the center of mass against the base, by 8 mm for Go2.

    Standing, the errors are those of a controller at rest, below 0.5 mm and 1 mrad; trotting, the base moves by 3 mm.
    """
    _, state, sim = simulation(name, "trot")
    for vx, pitch, most in ((0.0, 0.0, 5e-4), (0.0, 0.15, 5e-4), (0.3, 0.0, 3e-3)):
        sim.reset(*state)
        heights, pitches = [], []
        while sim.t < 3.0:
            sim.step(np.array([vx, 0.0, 0.0, height, pitch]), n=10)
            R, origin = sim.robot.base.pose(sim.q[:7])
            heights.append(origin[2])
            pitches.append(np.arctan2(R[0, 2], R[0, 0]))
        late = slice(len(heights) // 2, None)
        assert np.mean(heights[late]) - state[0][6] == pytest.approx(height, abs=most)
        assert np.mean(pitches[late]) == pytest.approx(pitch, abs=1e-3 if vx == 0.0 else 0.04)


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize(
    ("gait", "command"),
    [
        ("pace", (0.8, 0.0, 0.0)),
        ("bound", (0.8, 0.0, 0.0)),
        ("gallop", (0.8, 0.0, 0.0)),
        ("pronk", (0.3, 0.0, 0.0)),
        ("walk", (0.3, 0.0, 0.5)),
        ("crawl", (0.1, 0.0, 0.0)),
        ("walk", (0.8, 0.0, 0.0)),
        ("pace", (0.0, 0.2, 0.0)),
    ],
)
def test_go2_walks_by_every_gait(gait, command):
    check("go2/go2", gait, command, until=4.0)


@pytest.mark.slow
@needs_files
def test_anymal_c_trots_at_one_meter_per_second_within_the_speed_limits_of_its_joints():
    check("anymal_c_simple/anymal", "trot", (1.0, 0.0, 0.0), until=4.0, after=2.0)


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize("command", [(0.2, 0.0), (0.5, 0.0), (0.75, 0.0), (0.0, 0.1), (0.0, 0.22)])
def test_g1_walks_at_the_commanded_velocity(command):
    robot, state, sim = simulation("g1/g1_29dof_rev_1_0", "walk")
    law, memory = Locomotion("walk", None).start(robot, None, *state)
    period = law.memory(memory).target[0]
    sim.reset(*state)
    steps = round(2.0 * float(period) / STEP.step)  # two cycles, in which the sway has no mean
    sim.step(np.array([*command, 0.0, 0.0, 0.0]), n=2 * steps)
    start = sim.q[4:6]
    sim.step(np.array([*command, 0.0, 0.0, 0.0]), n=steps)
    assert not sim.fallen, f"fell at {sim.t:.2f} s: {sim.reasons}"
    assert (sim.q[4:6] - start) / (steps * STEP.step) == pytest.approx(command, abs=0.005 + 0.05 * max(command))


@pytest.mark.slow
@needs_files
def test_g1_starts_without_bending_its_waist_far_or_raising_its_arms():
    robot, state, sim = simulation("g1/g1_29dof_rev_1_0", "walk")
    started, _ = Locomotion("walk", None).start(robot, None, *state)
    legs = {k for foot in started.planner.feet for k in foot.columns}
    others = [k for k in range(robot.nj) if k not in legs]
    sim.reset(*state)
    bent = []
    while sim.t < 2.0:
        sim.step(np.array([0.4, 0.0, 0.0, 0.0, 0.0]), n=10)
        bent.append(np.abs(sim.q[7:] - state[0][7:])[others])
    names = [joint.name for joint in robot.joints]
    arms = [i for i, k in enumerate(others) if "waist" not in names[k]]
    assert np.max(bent) < 0.5  # [rad]; 1.6 rad while the plan did not know the momentum of the legs
    assert np.array(bent)[:, arms].max() < 0.35


@needs_files
def test_the_momentum_of_a_body_over_its_feet_is_that_of_its_rotation_and_of_its_feet():
    robot = legged.load(FILES["g1/g1_29dof_rev_1_0"])
    law = Locomotion("walk")
    q, v = law.initial_state(robot)
    planner = law.start(robot, None, q, v)[0].planner
    rng, n0 = np.random.default_rng(0), robot.base.nv
    turn, body = 0.1 * rng.normal(size=3), np.append(0.1 * rng.normal(size=2), 0.0)
    steps = np.column_stack([0.1 * rng.normal(size=(2, 2)), np.zeros(2)])  # [m/s], of the feet
    v[:n0] = robot.base.velocity(q[:7], turn, np.zeros(3))
    model = WholeBodyModel(robot, q, v)
    rigid = legged.momentum(robot, q, v)[:3]
    np.testing.assert_allclose(rigid, planner.inertia @ turn, atol=1e-12)  # [kg m^2/s]
    v[:] = 0.0
    for foot, step in zip(planner.feet, steps, strict=True):
        columns = [n0 + k for k in foot.columns]
        v[columns] = np.linalg.solve(model.point(foot.link, foot.sole).J[:, columns], np.append(np.zeros(3), step))
    legs = sum(A @ u for A, u in zip(planner.leg_inertias, steps, strict=True))
    np.testing.assert_allclose(legged.momentum(robot, q, v)[:3], legs, atol=1e-12)
    moving = -planner.leg_inertias.sum(axis=0) @ body  # of a body that moves over feet at rest
    about = moving - np.cross([0.0, 0.0, planner.pivot], robot.mass * body)
    assert np.abs(about[:2]).max() < 0.1 * np.abs(moving[:2]).max()


@needs_files
def test_the_lean_is_the_integral_of_the_average_angular_velocity_of_joints_outside_the_legs():
    robot = legged.load(FILES["g1/g1_29dof_rev_1_0"])
    law = Locomotion("walk")
    q, v = law.initial_state(robot)
    planner, n0 = law.start(robot, None, q, v)[0].planner, robot.base.nv
    v[n0:] = np.random.default_rng(0).normal(size=robot.nj)
    legs = [n0 + k for foot in planner.feet for k in foot.columns]
    v[legs] = 0.0
    momentum = legged.momentum(robot, q, v)
    momentum = momentum[:3] - np.cross([0.0, 0.0, planner.pivot], momentum[3:])
    time = 1e-3  # [s]
    later = q + time * np.concatenate([np.zeros(robot.base.nq), v[n0:]])
    np.testing.assert_allclose(planner.lean(later) / time, np.linalg.solve(planner.inertia, momentum), atol=1e-9)
    later[[k + 1 for k in legs]] += 1.0  # joints follow the seven coordinates of the base
    np.testing.assert_allclose(planner.lean(later) / time, np.linalg.solve(planner.inertia, momentum), atol=1e-9)
    np.testing.assert_array_equal(planner.lean(q), 0.0)


def test_flat_feet_of_the_initial_state_lie_on_a_slope():
    robot, slope = robots.spatial_biped(), Slope(0.2)
    q, _ = Locomotion("walk", terrain=slope).initial_state(robot)
    rotations, origins = link_poses(robot, q)
    for point in robot.contacts:
        x, y, z = origins[point.link] + rotations[point.link] @ point.position
        assert z == pytest.approx(slope.height(x, y), abs=2e-3)  # [m]; heels were 0.2 times half a sole above it


def test_knees_bend_by_a_fifth_of_a_radian_at_least():
    """The length of a leg is even in the angle of its knee from the straight leg, and decreases to both sides."""
    for name in ("spatial_biped", "spatial_quadruped", *(name for name in FILES if name.endswith(KNEES_BEYOND))):
        robot = legged.load(FILES[name]) if "/" in name else getattr(robots, name)()
        law = Locomotion("stand")
        started, _ = law.start(robot, None, *law.initial_state(robot))
        limits, home = started.planner.limits, started.home
        for leg, foot in zip(home.legs, started.planner.feet, strict=True):
            knee = leg.pitch_columns[1]
            sign = np.sign(home.angles[knee])
            end = limits.lower[knee] if sign > 0.0 else limits.upper[knee]

            def length(angle, knee=knee, leg=leg, foot=foot, home=home, robot=robot):
                q = np.concatenate([robot.neutral()[: robot.base.nq], home.angles])
                q[robot.base.nq + knee] = angle
                rotations, origins = link_poses(robot, q)
                axes = {axis.column: axis.origin for axis in joint_axes(robot, leg.link, rotations, origins)}
                ends = [*(axes[k] for k in leg.pitch_columns), origins[leg.link] + rotations[leg.link] @ foot.sole]
                return np.linalg.norm(ends[2] - ends[0])

            assert length(end) == pytest.approx(length(end - 0.4 * sign), abs=1e-6)  # [m]
            assert length(end) < length(end - 0.2 * sign) - 1e-4


def test_a_command_decreases_faster_than_it_increases():
    fast, slow = 0.15 * 9.81 * 0.01, 0.05 * 9.81 * 0.01  # [m/s]
    for wanted, last, change in (
        (1.0, 0.0, slow),
        (0.0, 1.0, -fast),
        (-1.0, 0.5, -fast),
        (0.0, -1.0, fast),
        (-1.0, 0.0, -slow),
    ):
        command = limited_command(np.full(7, wanted), np.full(7, last), 0.7, 9.81, 0.01, 0.05)
        np.testing.assert_allclose(command[:2], last + change)


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize("name", ["G1", "biped"])
def test_a_biped_walks_for_a_minute_with_a_push_every_three_seconds(name):
    walks, pushes = endurance_table(walkers([name])).rows[0][3:]
    assert int(walks.split("/")[0]) >= 7
    assert int(pushes.split("/")[0]) > 0.98 * int(pushes.split("/")[1])


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize(
    ("name", "command"),
    [("go2/go2", (0.6, 0.0)), ("a1/a1", (0.3, 0.0)), ("a1/a1", (0.0, 0.25)), ("laikago/laikago", (0.0, 0.3))],
)
def test_a_robot_told_to_stop_in_any_phase_of_a_trot_stands_still_on_all_feet(name, command):
    _, state, sim = simulation(name, "trot")
    sim.reset(*state)
    walk = np.array([*command, 0.0, 0.0, 0.0])
    sim.step(walk, n=1000)
    for phase in range(8):
        walking = sim.state
        sim.step(np.zeros(5), n=800)
        assert not sim.fallen
        assert np.abs(sim.v).max() < 0.05 and sim.contacts.touching.all(), f"phase {phase}"
        sim.state = walking
        sim.step(walk, n=30)  # an eighth of a cycle


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize("degrees", [10.0, -10.0])
def test_go2_trots_up_and_down_a_slope(degrees):
    slope = Slope(float(np.radians(degrees)))
    _, R = check("go2/go2", "trot", (0.5, 0.0, 0.0), terrain=slope)
    assert np.degrees(np.arctan2(-R[2, 0], R[0, 0])) == pytest.approx(-degrees, abs=4.0)  # pitch follows the slope


@needs_files
def test_gaits_with_another_number_of_feet_and_robots_without_legs_are_refused():
    robot = legged.load(FILES["go2/go2"])
    law = Locomotion(ContactSchedule(0.5, 0.5, (0.0, 0.5)), Command(vx=0.5))
    with pytest.raises(DefinitionError, match="a gait has 2 feet"):
        law.initial_state(robot)
    with pytest.raises(DefinitionError, match="has no legs"):
        Locomotion().initial_state(robots.chain(3))


def test_legs_with_two_joints_walk_forward_alone_and_other_constant_commands_are_refused():
    robot = robots.hexapod()
    for command in (Command(vy=0.1), Command(vx=0.3, yaw_rate=0.2)):
        with pytest.raises(DefinitionError, match="do not move their feet in all directions; the nearest possible"):
            Locomotion("tripod", command).initial_state(robot)
    law = Locomotion("tripod", None)
    started, memory = law.start(robot, None, *law.initial_state(robot))
    given = np.array([0.3, 0.2, -0.4, 0.01, 0.1, 0.0, 0.0])
    np.testing.assert_allclose(
        started._command(0.0, started.memory(memory), (given,)), [0.3, 0.0, 0.0, 0.01, 0.1, 0.0, 0.0], atol=1e-12
    )


@pytest.mark.parametrize("name", ["spatial_quadruped", "spatial_biped"])
def test_legs_with_three_joints_follow_each_command_exactly(name):
    robot = getattr(robots, name)()
    law = Locomotion("trot" if name == "spatial_quadruped" else "walk", Command(vx=0.2, vy=0.1, yaw_rate=0.3))
    started, _ = law.start(robot, None, *law.initial_state(robot))
    assert (started.possible == np.eye(3)).all()
