"""Fallen robots damp their joints, turn over, stand up and walk on."""

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import controllers
import legged
import robots
from controllers.locomotion.falls.recovery import DAMPS, DRAWS, LIFTS, RAISES_TRUNK, RISES, SQUATS, WALKS
from legged.environments.tasks.standing_up import with_body_contacts
from legged.errors import DefinitionError, SimulationWarning
from legged.rotations import axis_quaternion

QUICK = "test_recovery_of_another_law_is_refused"
NAMES = ("go2/go2", "g1/g1_29dof_rev_1_0", "laikago/laikago")
GO2, G1, LAIKAGO = (all_urdfs().get(name) for name in NAMES)
STEP = legged.TimeStepping(2e-3)


def poses(robot, law, rotations):
    """Return configurations over the ground with some rotations of the base, (n, nq)."""
    q, _ = law.initial_state(robot)
    starts = np.repeat(q[None], len(rotations), axis=0)
    starts[:, :4] = rotations
    starts[:, 6] += 0.25  # [m]
    return starts


@pytest.mark.slow
@pytest.mark.skipif(GO2 is None, reason="example_robot_data, of the extra test, is not installed")
@pytest.mark.parametrize("file", [GO2, LAIKAGO], ids=["Go2", "Laikago"])
def test_a_robot_that_lies_on_its_back_or_a_side_stands_up_and_walks_on(file):
    robot = with_body_contacts(legged.load(file))
    law = controllers.Recovery(controllers.Locomotion("trot", controllers.Command(vx=0.3)))
    rotations = [axis_quaternion(axis, angle) for axis, angle in (("x", 3.1), ("x", 1.6), ("x", -1.6))]
    q = poses(robot, law, rotations)
    sim = legged.Simulation(
        robot,
        law,
        num=3,
        ground=legged.Rigid(friction=0.6),
        q=q,
        v=np.zeros((3, robot.nv)),
        integrator=STEP,
        fall=False,
    )
    sim.step(n=4500)
    places = sim.q[:, 4:6].copy()
    for pose in sim.q:
        rotation, origin = robot.base.pose(pose[: robot.base.nq])
        assert rotation[2, 2] > 0.95
        assert origin[2] > 0.8 * law.initial_state(robot)[0][6]
    sim.step(n=500)  # a second
    np.testing.assert_allclose(np.linalg.norm(sim.q[:, 4:6] - places, axis=1), 0.3, atol=0.06)  # a fifth of the speed


def test_a_fallen_biped_damps_its_joints():
    """The power of its joints after the fall is not positive, and the law says what it does."""
    robot = with_body_contacts(robots.spatial_biped())
    law = controllers.Recovery(controllers.Locomotion("walk"))
    q = poses(robot, law, [axis_quaternion("y", 1.5)])[0]
    with pytest.warns(SimulationWarning, match="remains damped: .*has no"):
        started, memory = law.start(robot, None, q, np.zeros(robot.nv))
    assert started.mode(memory) == "walks"
    memory = started.update(0.0, 0.0, q, np.zeros(robot.nv), np.zeros((len(robot.links), 6)), memory)
    assert started.mode(memory) == "damps"
    for t in (0.5, 5.0, 50.0):
        v = np.random.default_rng(0).normal(size=robot.nv)
        memory = started.update(t, 0.0, q, v, np.zeros((len(robot.links), 6)), memory)
        tau = started.torque(t, 0.0, q, v, np.zeros((len(robot.links), 6)), memory)
        assert round(float(memory[0])) == DAMPS
        assert (tau * v <= 0.0).all()
        assert (tau[robot.base.nv :] * v[robot.base.nv :] < 0.0).all()


@pytest.mark.slow
@pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")
def test_a_humanoid_that_lies_on_its_front_stands_up_and_stays():
    """At the first or a later attempt, of which each takes 10 s; about half of them succeed."""
    robot = with_body_contacts(legged.load(G1))
    law = controllers.Recovery(controllers.Locomotion("walk"))
    q = poses(robot, law, [axis_quaternion("y", 1.5)])[0]
    sim = legged.Simulation(
        robot, law, ground=legged.Rigid(friction=0.7), q=q, v=np.zeros(robot.nv), integrator=STEP, fall=False
    )
    sim.step(n=22500)  # 45 s
    rotation, origin = robot.base.pose(sim.q[: robot.base.nq])
    assert rotation[2, 2] > 0.98
    assert origin[2] > 0.95 * law.initial_state(robot)[0][6]


def started_on_g1(bend=2.8):
    """Return standing state, wrenches of zero, and law and memory of G1 under `Recovery`.

    Args:
        bend: Range of the knees and hips, [rad].
    """
    changed = legged.load(G1).edit()
    for side in ("left", "right"):
        changed = changed.change_joint(f"{side}_knee_joint", upper=bend)
        changed = changed.change_joint(f"{side}_hip_pitch_joint", lower=-min(bend, 2.5))
    robot = changed.build()
    law = controllers.Recovery(controllers.Locomotion("walk"))
    q, v = law.initial_state(robot)
    return q, v, np.zeros((len(robot.links), 6)), *law.start(robot, None, q, v)


@pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")
def test_a_humanoid_on_its_front_back_or_side_begins_to_rise_or_turns_over():
    """From its back it turns to one side first, and to the other side at the next attempt."""
    q, v, wrenches, started, walking = started_on_g1()

    def after_damping(rotation, turns=0.0):
        lying = np.concatenate([rotation, [0.0, 0.0, 0.1], q[7:]])
        memory = walking.copy()
        memory[:3] = DAMPS, 0.0, turns
        return started.mode(started.update(5.0, 0.0, lying, v, wrenches, memory))

    assert after_damping(axis_quaternion("y", 1.57)) == "spreads its arms"
    assert after_damping(axis_quaternion("y", -1.57)) == "turns onto its right side"
    assert after_damping(axis_quaternion("y", -1.57), 1.0) == "turns onto its left side"
    assert after_damping(axis_quaternion("x", 1.57)) == "falls forward from its right side"
    assert after_damping(axis_quaternion("x", -1.57)) == "falls forward from its left side"


@pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")
def test_the_law_takes_over_a_squat_that_its_soles_can_hold():
    """With the center of mass over the soles it rises; when it moves forward with 1 m/s it does not."""
    q, v, wrenches, started, memory = started_on_g1()
    memory[:3] = SQUATS, 0.0, 0.0
    assert started.mode(started.update(0.5, 0.0, q, v, wrenches, memory)) == "rises from its squat"
    falling = v.copy()
    falling[3] = 1.0  # [m/s]
    assert started.mode(started.update(0.5, 0.0, q, falling, wrenches, memory)) == "squats"
    assert started.mode(started.update(50.0, 0.0, q, falling, wrenches, memory)) == "damps"


@pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")
def test_a_robot_with_a_high_squat_rises_over_its_hands_and_balances_with_its_ankles():
    """When it leans forward, the ankles push the toes down; the law takes over once its trunk has risen."""
    q, v, wrenches, started, memory = started_on_g1(bend=2.1)

    def after(mode, configuration, t):
        memory[:3] = mode, 0.0, 0.0
        return started.mode(started.update(t, 0.0, configuration, v, wrenches, memory))

    assert after(DRAWS, q, 50.0) == "stands on hands and soles"
    assert after(RAISES_TRUNK, q, 0.5) == "rises from its squat"
    bowed = q.copy()
    bowed[:4] = axis_quaternion("y", 1.2)
    assert after(RAISES_TRUNK, bowed, 0.5) == "raises its trunk"
    assert after(RAISES_TRUNK, bowed, 50.0) == "straightens"
    ankles = [j.v.start for j in legged.load(G1).joints if "ankle_pitch" in j.name]
    memory[0] = LIFTS
    torques = []
    for lean in (-0.05, 0.05):  # [rad]
        leaning = q.copy()
        leaning[:4] = axis_quaternion("y", lean)
        torques.append(started.torque(0.5, 0.0, leaning, v, wrenches, memory)[ankles])
    assert (torques[1] > torques[0] + 1.0).all()  # [N m]; positive torques push the toes of G1 down


@pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")
def test_a_robot_settles_before_it_follows_its_command():
    q, v, wrenches, started, memory = started_on_g1()
    memory[:3] = RISES, 0.0, 0.0
    assert started.mode(started.update(0.1, 0.0, q, v, wrenches, memory)) == "rises from its squat"
    assert started.mode(started.update(1.5, 0.0, q, v, wrenches, memory)) == "walks"


def test_a_robot_that_has_not_fallen_moves_as_under_its_law():
    robot = robots.spatial_quadruped()
    plain = controllers.Locomotion("trot", controllers.Command(vx=0.3))
    q, v = plain.initial_state(robot)
    options = {"ground": legged.Rigid(friction=0.6), "q": q, "v": v, "integrator": STEP}
    moves = [legged.Simulation(robot, law, **options) for law in (plain, controllers.Recovery(plain))]
    for sim in moves:
        sim.step(n=200)
    np.testing.assert_allclose(moves[1].q, moves[0].q, atol=1e-9)  # rounding of two kernels
    assert WALKS == 0


def test_recovery_of_another_law_is_refused():
    with pytest.raises(DefinitionError, match="Recovery needs a Locomotion"):
        controllers.Recovery(controllers.Recovery(controllers.Locomotion()))


@pytest.mark.slow
@pytest.mark.skipif(GO2 is None, reason="example_robot_data, of the extra test, is not installed")
def test_a_robot_lies_down_stands_up_sits_down_and_stands_as_asked():
    robot = with_body_contacts(legged.load(GO2))

    def rest(t):
        return legged.where((t > 0.2) & (t < 2.5), 1.0, legged.where((t > 5.0) & (t < 7.5), 2.0, 0.0))

    law = controllers.Recovery(controllers.Locomotion("trot"), rest)
    q, v = law.initial_state(robot)
    run = legged.simulate(
        robot, law, ground=legged.Rigid(friction=0.6), until=9.8, q=q, v=v, integrator=STEP, sample=0.1, fall=False
    )
    heights, pitches = run.q[:, 6] / q[6], []
    for pose in run.q:
        rotation, _ = robot.base.pose(pose[:7])
        pitches.append(np.arcsin(-rotation[2, 0]))
    at = {time: round(10 * time) for time in (2.4, 4.8, 7.4, 9.7)}
    assert heights[at[2.4]] < 0.7 and abs(pitches[at[2.4]]) < 0.2
    assert heights[at[4.8]] == pytest.approx(1.0, abs=0.05) and abs(pitches[at[4.8]]) < 0.05
    assert pitches[at[7.4]] < -0.3  # [rad], the nose up
    assert heights[at[9.7]] == pytest.approx(1.0, abs=0.05) and abs(pitches[at[9.7]]) < 0.05
    started, _ = law.start(robot, None, q, v)
    modes = [started.mode(row) for row in run.memory]
    assert list(dict.fromkeys(modes)) == ["walks", "lies", "stands up", "sits"]


def test_a_robot_with_two_legs_does_not_lie_down():
    robot = robots.spatial_biped()
    law = controllers.Recovery(controllers.Locomotion("walk"), lambda t: 1.0)
    with pytest.raises(DefinitionError, match="two legs"):
        law.start(robot, None, *law.initial_state(robot))
