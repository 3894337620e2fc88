"""Fallen robots damp their joints, turn over, stand up and walk on."""

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import controllers
import legged
import robots
from controllers.locomotion.falls import rising, turning
from controllers.locomotion.falls.recovery import DAMPS, FOLDS, RISES, TURNS, WALKS
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
@pytest.mark.filterwarnings("ignore:simulations search for a motion")
@pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")
def test_a_humanoid_that_lies_on_its_front_or_back_stands_up_and_stays():
    """At the first or a later attempt, of which each takes 15 s."""
    robot = with_body_contacts(legged.load(G1))
    law = controllers.Recovery(controllers.Locomotion("walk"))
    q = poses(robot, law, [axis_quaternion("y", 1.5), axis_quaternion("y", -1.5)])
    sim = legged.Simulation(
        robot, law, num=2, ground=legged.Rigid(friction=0.7), q=q, v=np.zeros(robot.nv), integrator=STEP, fall=False
    )
    sim.step(n=20000)  # 40 s
    for pose in sim.q:
        rotation, origin = robot.base.pose(pose[: robot.base.nq])
        assert rotation[2, 2] > 0.98
        assert origin[2] > 0.95 * law.initial_state(robot)[0][6]


@pytest.fixture
def on_g1(monkeypatch):
    """Return standing state, wrenches of zero, and law and memory of G1 under `Recovery`, with motions of the test."""
    verticals = [[-1.0, 0.0, 0.0], [-0.6, 0.0, 0.8], [0.0, 0.0, 1.0]]

    def rises(postures, *_):
        moves = np.array([[1.0, 2.0, 3.0], [1.5, 2.5, 3.5]])
        return rising.Rising(postures.nominal[[[1, 4, 7], [2, 3, 6]]], moves, np.array([verticals, verticals]))

    def turns(robot, folded, goal, candidates, *_):
        assert (goal == rising.PRONE).all()
        directions = np.array([goal, goal, [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        return turning.Turning(directions, candidates[:8].reshape(4, 2, -1), np.array([0, 1, 0, 1]))

    monkeypatch.setattr(rising, "rising_motions", rises)
    monkeypatch.setattr(rising, "BALANCES", 2)
    monkeypatch.setattr(turning, "turning_motions", turns)
    robot = legged.load(G1)
    law = controllers.Recovery(controllers.Locomotion("walk"))
    q, v = law.initial_state(robot)
    return q, v, np.zeros((len(robot.links), 6)), *law.start(robot, None, q, v)


@pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")
def test_a_humanoid_rises_from_its_front_and_turns_over_from_its_back(on_g1):
    q, v, wrenches, started, memory = on_g1

    def after(mode, pitch):
        lying = np.concatenate([axis_quaternion("y", pitch), [0.0, 0.0, 0.1], q[7:]])
        memory[:5] = mode, 0.0, 0.0, 0.0, 0.0
        return started.mode(started.update(5.0, 0.0, lying, v, wrenches, memory))

    assert after(DAMPS, 1.57) == "folds its limbs"
    assert after(FOLDS, 1.57) == "rises"
    assert after(FOLDS, -1.57) == "turns over"
    assert after(TURNS, 1.57) == "folds its limbs"
    assert after(TURNS, -1.57) == "turns over"


@pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")
def test_a_rising_humanoid_takes_one_posture_after_the_other_and_then_walks(on_g1):
    """Each begins at the last one, with loaded springs; with another inclination than in trials it starts again, with
    the other motion."""
    q, v, wrenches, started, memory = on_g1
    unit, motion = started._walking.planner.time_unit, rising.Rising(*(values[0] for values in started._rising))

    def after(number, t, pitch, failures=0.0):
        leaning = np.concatenate([axis_quaternion("y", pitch), [0.0, 0.0, 0.5], q[7:]])
        memory[:5] = RISES, 0.0, 1.0, number, failures
        return started.update(t * unit, 0.0, leaning, v, wrenches, memory)

    lasts = rising.LASTS
    assert after(0, lasts[0] - 0.1, 1.57)[3] == 0.0
    second = after(0, lasts[0] + 0.1, 1.57)
    assert (started.mode(second), second[3]) == ("rises", 1.0)
    np.testing.assert_array_equal(second[5 : 5 + len(q) - 7], motion.postures[0])
    assert started.mode(after(0, lasts[0] + 0.1, 0.0)) == "damps"
    assert started.mode(after(1, lasts[1] + 0.1, 0.6)) == "rises"
    assert started.mode(after(2, lasts[2] - 0.1, 0.0)) == "rises"
    assert started.mode(after(2, lasts[2] + 0.1, 0.0)) == "walks"
    assert started.mode(after(2, lasts[2] + 0.1, 0.8)) == "damps"
    for failures, number in ((1.0, 1), (2.0, 0), (3.0, 1)):
        assert after(1, lasts[1] + 0.1, 0.6, failures)[4] == failures
        assert after(1, lasts[1] + 0.1, 1.57, failures)[4] == failures + 1.0
        begins = after(0, lasts[0] + 0.1, 1.57, failures)[5 : 5 + len(q) - 7]
        np.testing.assert_array_equal(begins, started._rising.postures[number, 0])
    memory[:5] = RISES, 0.0, 1.0, 1.0, 0.0
    memory[5 : 5 + len(q) - 7] = motion.postures[0]
    halfway = 0.5 * (motion.postures[0] + motion.postures[1])
    tau = started.torque(0.5 * motion.moves[1] * unit, 0.0, q, v, wrenches, memory)
    np.testing.assert_allclose(tau[6:], started._stiffness * (halfway - q[7:]), rtol=1e-9, atol=1e-9)
    memory[3] = rising.BALANCES
    balance = started._balance(q, v)
    still = started._stiffness * (motion.postures[2] - q[7:])
    tau = started.torque(50.0, 0.0, q, v, wrenches, memory)
    np.testing.assert_allclose(tau[6:] - still, started._stiffness * balance, rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")
def test_a_humanoid_for_which_no_motion_is_found_remains_damped(monkeypatch):
    def none(postures, *_):
        raise DefinitionError("no motion was found")

    monkeypatch.setattr(rising, "rising_motions", none)
    robot = legged.load(G1)
    law = controllers.Recovery(controllers.Locomotion("walk"))
    q, v = law.initial_state(robot)
    with pytest.warns(SimulationWarning, match="remains damped: no motion was found"):
        started, memory = law.start(robot, None, q, v)
    memory[:5] = DAMPS, 0.0, 0.0, 0.0, 0.0
    lying = np.concatenate([axis_quaternion("y", 1.57), [0.0, 0.0, 0.1], q[7:]])
    after = started.update(50.0, 0.0, lying, v, np.zeros((len(robot.links), 6)), memory)
    assert started.mode(after) == "damps"


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
