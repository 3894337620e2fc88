"""Walks on inclined ground by the room of the ankles, and standing postures by the torques of ankles and knees."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.standing import shared_biped, shared_quadruped
from oracles.urdfs import all_urdfs

import legged
from controllers import Command, Locomotion
from controllers.locomotion.fitting import fitted_parts, standing_parts
from controllers.locomotion.gait.inclined_ground import InclinedWalk, inclined_walk
from controllers.locomotion.gait.posture import held_torques, standing_posture
from controllers.locomotion.gait.schedule import GaitState
from legged.algorithms.legs.standing import home_of, standing_torques
from legged.errors import DefinitionError, SimulationWarning
from legged.ground import HeightMap, Slope
from legged.rotations import axis_matrix
from legged.spatial import Array

QUICK = "test_a_walk_changes_continuously_with_the_slope_and_the_way_of_a_stance"
FILES = all_urdfs()
needs_files = pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")


def configuration(robot: legged.Robot, home, angle: float = 0.0) -> Array:
    """Return the standing posture with the base pitched by an angle, [rad]."""
    rotation = axis_matrix("y", angle)
    return np.concatenate([robot.base.configuration(np.array([0.0, 0.0, home.base_height]), rotation), home.angles])


def with_ankles(most: float, least: float = 1.0) -> legged.Robot:
    """Return the spatial biped whose ankles bend further by some angles than in its posture with free ankles, [rad]."""
    free = shared_biped()
    home = standing_posture(free)
    ankle = home.angles[home.legs[0].pitch_columns[2]]
    names = [joint.name for joint in free.joints if "ankle_y" in joint.name]
    ends = {f"{name}.lower": ankle - least for name in names} | {f"{name}.upper": ankle + most for name in names}
    return free.with_parameters(ends)


def test_the_base_is_higher_uphill_where_an_ankle_would_reach_the_end_of_its_range():
    robot = with_ankles(0.25)  # 0.07 rad more than the least distance from the end of the range
    home = standing_posture(robot)
    ankle = home.angles[home.legs[0].pitch_columns[2]]
    for terrain, share in ((None, 1.0), (Slope(0.0), 0.5)):  # a known slope counts half in the plane
        walk = Locomotion("walk", terrain=terrain)
        plan = walk.start(robot, None, *walk.initial_state(robot))[0].feet_plan
        begin, rate, most, *_ = plan.planner.inclined
        assert begin == pytest.approx(0.07, abs=1e-3) and 0.0 < most < 0.15 * plan.height
        for slope in (-0.2, 0.0, 0.06, 0.15, 2.0):
            ahead = plan.slope_ahead(share * np.array([slope, 0.3]), np.array([1.0, 0.0]))
            assert plan.inclined.rise(ahead) == pytest.approx(min(max(rate * (slope - begin), 0.0), most))
        higher = home_of(robot, home.hip_height + 0.5 * most)
        margin = ankle + 0.25 - higher.angles[home.legs[0].pitch_columns[2]]
        assert margin == pytest.approx(0.18 + begin + 0.5 * most / rate, abs=0.1 * most / rate)
    mapped = replace(plan, terrain=HeightMap(np.zeros((20, 20)), 0.1))  # its slope may be that of gaps
    assert plan.inclined.rise(2.0) > 0.0 and mapped.inclined == InclinedWalk()
    dog, trot = shared_quadruped(), Locomotion("trot")
    assert trot.start(dog, None, *trot.initial_state(dog))[0].planner.inclined == InclinedWalk()


def test_a_walk_changes_continuously_with_the_slope_and_the_way_of_a_stance():
    walk = InclinedWalk(ankles=0.04)
    slopes = np.linspace(-0.3, 0.3, 601)
    for travel in (0.0, 0.05, 0.15, 0.4):
        periods = np.array([walk.period(slope, travel) for slope in slopes])
        assert periods[slopes <= 0.04] == pytest.approx(1.0)  # downhill, level, and ankles with enough room
        assert np.abs(np.diff(periods)).max() <= 0.32 / 0.03 * 1.001e-3
        assert periods[-1] == pytest.approx(1.0 - 0.32 * min(travel / 0.15, 1.0))
        assert [walk.period(slope, -travel) for slope in slopes] == pytest.approx(periods)  # backward
    for progress in (0.0, 0.4, 1.0):  # of a swing, in which a sole keeps less and less of its orientation forward
        assert walk.released(0.2, 0.15, progress) == pytest.approx(progress)
        assert walk.released(0.2, -0.15, progress) == pytest.approx(1.0)
        assert walk.released(0.04, -0.15, progress) == InclinedWalk().released(0.3, -0.4, progress) == 0.0
    assert walk.pitch(0.2, 0.15, 0.1) == pytest.approx(0.1)  # upright
    assert walk.pitch(0.2, 0.0, 0.1) == walk.pitch(0.0, 0.15, 0.1) == 0.0
    assert InclinedWalk().period(0.3, 0.4) == 1.0 and InclinedWalk().pitch(0.3, 0.4, 0.3) == 0.0
    weak = InclinedWalk(trunk=(0.05, 0.2))
    leans = {-0.3: 0.2, -0.1: 0.1, 0.0: 0.05, 0.3: 0.05}  # how far the trunk would lean back, and its inclination
    assert [weak.pitch(0.0, 0.0, lean) - lean for lean in leans] == pytest.approx(list(leans.values()))


def test_ankles_with_little_room_change_the_walk_where_steps_balance_the_robot():
    for room, has_little in ((0.25, True), (0.9, False)):  # [rad]
        robot = with_ankles(room)
        home = standing_posture(robot)
        q = configuration(robot, home)
        begin, rate, most, ankles, _ = inclined_walk(robot, home, q, balances_by_steps=True)
        assert np.isfinite(ankles) == has_little
        if has_little:
            assert ankles == pytest.approx(max(begin, begin + most / rate - 0.07))
        assert inclined_walk(robot, home, q, balances_by_steps=False).ankles == np.inf


def test_a_law_follows_a_command_with_a_shorter_period_and_an_upright_trunk_uphill():
    """The command and the period of a law on a known slope, by a robot whose ankles have no room."""
    robot, slope = with_ankles(0.2), Slope(0.15)
    law = Locomotion("walk", Command(vx=0.25), terrain=slope)
    started, _ = law.start(robot, None, *law.initial_state(robot))
    few = replace(started, planner=replace(started.planner, inclined=InclinedWalk(ankles=0.05)))
    plan = few.feet_plan
    memory = few.memory(few.started(*law.initial_state(robot))[1])
    memory = memory._replace(slope=np.array([0.5 * np.tan(0.15), 0.0]))
    command, forward = np.array([0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.0])
    period, duty = memory.target[:2]
    share = min(1.0, 0.25 * period * duty / (0.15 * plan.height))
    assert 0.5 < share <= 1.0
    assert plan.inclined_period(command, memory, forward) == pytest.approx(1.0 - 0.32 * share)
    assert plan.inclined_period(command, memory, -forward) == 1.0
    pitched = plan.inclined_command(command, memory, forward)
    assert pitched - command == pytest.approx([0, 0, 0, 0, share * 0.5 * np.tan(0.15), 0, 0])
    assert started.feet_plan.inclined_command(command, memory, forward) is command  # soles balance the biped
    swings = GaitState.of(memory.gait)
    assert plan.released(-command, memory, forward, swings) == pytest.approx([share, share])
    assert plan.released(-command, memory, -forward, swings) == [0.0, 0.0]  # forward down the slope
    q, v = law.initial_state(robot)
    at_speed = memory._replace(constant_command=command, command=command)
    zero = np.zeros((len(robot.links), 6))
    shorter, usual = (x.evaluated(0.0, q, v, zero, at_speed) for x in (few, started))
    assert shorter.command[4] > 0.0 and usual.command[4] == 0.0
    periods = [GaitState.of(x.gait).period for x in (shorter, usual)]  # a robot at rest takes it at once
    assert periods[0] / periods[1] == pytest.approx(1.0 - 0.32 * share, rel=1e-3)


@needs_files
def test_the_trunk_over_a_weak_waist_is_inclined_so_that_it_holds_the_upper_body():
    """At both ends of the range the most loaded joint of the waist takes a fifth of its torque."""
    robot = legged.load(FILES["g1/g1_29dof_rev_1_0"])
    home = standing_posture(robot)
    assert not inclined_walk(robot, home, configuration(robot, home), False).has_weak_waist
    names = [joint.name for joint in robot.joints if "waist" in joint.name]
    weak = robot.with_parameters({f"{name}.effort": 12.0 for name in names})  # [N m]
    walk = inclined_walk(weak, home, configuration(weak, home), False)
    assert walk.has_weak_waist and np.isfinite(walk.trunk).all() and walk.trunk[0] < walk.trunk[1]
    columns = [joint.v.start for joint in weak.joints if joint.name in names]
    zero = np.zeros(weak.nv)
    loads = []
    for angle in (*walk.trunk, np.mean(walk.trunk)):
        tau = legged.inverse_dynamics(weak, configuration(weak, home, float(angle)), zero, zero)
        loads.append(np.abs(tau[columns]).max() / 12.0)
    assert loads[:2] == pytest.approx([0.2, 0.2], abs=0.02) and loads[2] < 0.1  # sin(x) of x = 0.4 rad
    usual, quick = (Locomotion("walk").start(x, None, configuration(x, home), zero)[0] for x in (robot, weak))
    periods = [x.gaits.schedules[0][1].period for x in (usual, quick)]
    assert periods[1] / periods[0] == pytest.approx(0.72)


def test_a_posture_is_ahead_of_its_soles_by_a_given_distance():
    robot = shared_biped()
    for ahead in (-0.03, 0.0, 0.02):  # [m]
        home = home_of(robot, ahead=ahead)
        q = configuration(robot, home)
        soles = [robot.contact(name) for leg in home.legs for name in leg.contacts]
        middle = np.mean([legged.point_positions(robot, q, [(c.link, c.position)])[0] for c in soles], axis=0)
        assert legged.center_of_mass(robot, q)[0] - middle[0] == pytest.approx(ahead, abs=3e-4)  # of four iterations


def test_a_robot_stands_over_the_part_of_its_soles_that_weak_ankles_hold():
    strong = shared_biped()
    place = np.abs(standing_parts(strong)[1].feet[0].outline[:, 0]).max()
    effort = 0.3 * place * strong.mass * 9.81  # on one foot less than the moment over the middle of the sole
    weak = strong.with_parameters({f"{x.name}.effort": effort for x in strong.joints if "ankle" in x.name})
    home, planner, steps, *_ = standing_parts(weak)
    over_middle = home_of(weak, home.hip_height, nearest=True)
    assert standing_torques(weak, home)[1] < 0.8 * standing_torques(weak, over_middle)[1]
    held = [place for foot in planner.feet for place in foot.points]
    middle = legged.point_positions(weak, configuration(weak, home), held).mean(axis=0)
    assert legged.center_of_mass(weak, configuration(weak, home))[0] == pytest.approx(middle[0], abs=1e-3)
    for posture in (home, over_middle):  # also under a given posture, the walk is over these places
        own = fitted_parts(weak, posture)[2].stances
        assert own.mean(axis=0) == pytest.approx(np.zeros(2), abs=1e-3)
    assert steps.soles[0] > 0.0


def test_hips_are_higher_where_bent_knees_would_not_hold_the_robot_on_one_leg():
    strong = shared_biped()
    low = standing_posture(strong)
    torques, *_ = standing_torques(strong, low)
    knees = [joint for joint in strong.joints if "knee" in joint.name]
    need = max(abs(torques[joint.v.start - strong.base.nv]) for joint in knees)
    for share, is_higher in ((0.33, False), (0.5, True)):  # of the torque of the knees
        robot = strong.with_parameters({f"{joint.name}.effort": need / share for joint in knees})
        home = standing_posture(robot)
        assert (home.hip_height > low.hip_height + 0.01) == is_higher
        assert held_torques(robot, home)[1] <= 0.35


def test_the_refusal_names_the_joint_that_no_ground_force_relieves():
    robot = shared_biped()
    home = standing_posture(robot)
    weak = robot.with_parameters({f"{joint.name}.effort": 1.0 for joint in robot.joints if "knee" in joint.name})
    with pytest.raises(DefinitionError, match=r"cannot stand: .* joint '(left|right)_knee"):
        Locomotion("walk", home=home).initial_state(weak)


def test_live_commands_beyond_the_largest_velocities_of_two_feet_give_a_notice():
    robot = shared_biped()
    law = Locomotion("walk", None)
    started, flat = law.start(robot, None, *law.initial_state(robot))
    fastest = started.fastest

    def notice(followed: Array, commands=None) -> str:
        memory = started.memory(flat)._replace(command=np.concatenate([followed, np.zeros(4)]))
        return replace(started, commands=commands).notice(2.0, memory.flat())

    assert notice(np.array([0.6, 0.3, 0.0]) * fastest) == ""
    text = notice(np.array([0.6, 0.4, 0.0]) * fastest)
    assert "cannot follow its command: at t = 2 s" in text and f"{fastest[1]:.3g} m/s to the left" in text

    def beyond(t):
        return np.array([2.0 * fastest[0], 0.0, 0.0, 0.0, 0.0])

    assert f"cannot follow the command vx={2.0 * fastest[0]:.3g}" in notice(np.zeros(3), beyond)
    assert notice(np.zeros(3), lambda t: 0.4 * beyond(t)) == ""
    assert notice(fastest * np.array([1.0, 0.0, 0.0]), Command(vx=9.0)) == ""  # a constant: `start` has warned
    simulation = legged.Simulation(robot, law, ground=legged.Rigid(0.6), integrator=legged.TimeStepping(4e-3))
    with pytest.warns(SimulationWarning, match="cannot follow its command"):
        for _ in range(1000):
            simulation.step(np.array([0.0, 9.0, 0.0, 0.0, 0.0]))
