"""Laws of the warning about joints that chatter: unstable servos are named, resolved motions are not."""

import warnings
from dataclasses import fields, replace

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.compiler import Members, Schedule
from legged.errors import SimulationWarning
from legged.ground import paper_ground, realistic_ground
from legged.simulation.checks import chatter
from legged.simulation.checks.chatter import AMPLITUDE
from legged.simulation.results.run import Run

EULER = legged.SemiImplicitEuler(1e-3)


def arm():
    """A heavy and a light link with motors of 20 N m, which bound the chatter."""
    builder = legged.RobotBuilder("arm", legged.Link("post"), base=legged.FixedBase())
    motor = legged.JointPhysics(effort=20.0)
    upper = legged.Link("upper", legged.box_inertia(5.0, (0.1, 0.1, 0.5)))
    builder.add(legged.Revolute("shoulder", axis=(0.0, 1.0, 0.0), physics=motor), upper, to="post")
    lower = legged.Link("lower", legged.box_inertia(0.2, (0.05, 0.05, 0.2)))  # 0.7 g m^2
    wrist = legged.Revolute("wrist", axis=(0.0, 1.0, 0.0), physics=motor)
    return builder.add(wrist, lower, to="upper", at=(0.0, 0.0, -0.25)).build()


def servo(kd):
    """A servo with the damping kd at both joints; the wrist is unstable for kd h > 2 (0.7 g m^2)."""

    def torque(t, q, v, wrenches):
        return -50.0 * (q - 0.1) - kd * v

    return torque


STIFF, SOFT = servo(5.0), servo(0.5)


@pytest.mark.parametrize("integrator", [EULER, legged.SemiImplicitEuler(5e-4)], ids=str)
def test_a_chattering_servo_is_named_and_the_warning_is_stored(integrator, tmp_path):
    with pytest.warns(SimulationWarning, match=r"joint 'wrist' chatters at t = .* lower damping gain") as caught:
        run = legged.simulate(arm(), STIFF, until=0.5, integrator=integrator)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert run.warnings == (str(caught[0].message),)
    assert np.abs(run.joint("wrist").velocity[-20:]).max() > AMPLITUDE  # though it should be at rest
    assert Run.load(run.save(tmp_path / "run")).warnings == run.warnings


def test_probes_take_no_step_after_the_end_of_the_run():
    """A controller need not be defined there."""
    times = []

    def law(t, q, v, wrenches):
        times.append(float(t))
        return np.array([0.0, 0.5])  # the velocity of the wrist grows by more than the limit in each step

    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        run = legged.simulate(arm(), law, until=0.05, integrator=EULER, compiled=False)
    assert max(times) <= run.times[-1] and np.diff(run.v[:, 1]).min() > 10 * AMPLITUDE


def test_the_number_of_whole_probes_is_bounded(monkeypatch):
    """Four samples are followed by steps that change a velocity by more than the limit."""
    counts, probe = [], chatter._probe

    def counted(*arguments):
        counts.append(arguments[4] if len(arguments) > 4 else chatter.STEPS)
        return probe(*arguments)

    monkeypatch.setattr(chatter, "_probe", counted)
    for most, sample, wanted in ((3, 0.01, [1, 12] * 3), (100, 0.01, [1, 12] * 4), (20, 1e-3, [12] * 20)):
        counts.clear()
        monkeypatch.setattr(chatter, "_MOST_PROBES", most)
        options = {"until": 0.05, "sample": sample, "integrator": EULER}
        legged.simulate(arm(), lambda t, q, v, w: np.array([0.0, 0.5]), **options)
        assert counts == wanted  # the first step of a probe is known if it ends at the next sample


def test_older_files_have_no_warnings(tmp_path):
    run = legged.simulate(arm(), SOFT, until=0.02, integrator=EULER)
    path = run.save(tmp_path / "run")
    with np.load(path) as file:
        stored = {name: file[name] for name in file.files if name != "warnings"}
    np.savez(path, **{**stored, "version": np.array(2)})
    assert Run.load(path).warnings == () and "warnings" in {f.name for f in fields(Run)}


def test_rollouts_and_simulations_warn_once():
    q = np.zeros((3, 2))
    for compiled in (True, False):
        with pytest.warns(SimulationWarning, match="joint 'wrist' chatters") as caught:
            runs = legged.rollout(arm(), STIFF, q=q, until=0.5, integrator=EULER, compiled=compiled)
        assert len(caught) == 1 and runs.warnings == (str(caught[0].message),) and "member 0" in runs.warnings[0]
        assert "joint 'wrist' chatters" in runs.run(1).warnings[0]
    for num in (None, 3):
        sim, plain = (legged.Simulation(arm(), STIFF, num=num, integrator=EULER) for _ in range(2))
        with pytest.warns(SimulationWarning, match="joint 'wrist' chatters") as caught:
            for _ in range(100):
                sim.step(n=4)
        assert len(caught) == 1 and caught[0].filename == __file__ and len(sim.warnings) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)
            for _ in range(4):
                plain.step(n=100)
        np.testing.assert_array_equal(sim.v, plain.v)  # probes leave no trace


def test_later_chatter_is_found_and_robots_that_have_ended_are_not_probed():
    def damped(t, q, v, wrenches, command):
        return -50.0 * (q - 0.1) - command * v

    sim = legged.Simulation(arm(), damped, num=2, integrator=EULER)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        sim.step([0.5], n=200)
        sim.step([5.0], n=40)  # both wrists chatter now, before the next probe
    sim.state = replace(sim.state, outcome=np.array([1.0, 0.0]))
    with pytest.warns(SimulationWarning, match="robot 1: joint 'wrist' chatters"):
        for _ in range(100):
            sim.step([5.0], n=4)


def test_stable_servos_and_resolved_springs_are_silent():
    """Seven steps per period of a spring; a servo at kd h of 1.4 times the inertia, whose alternation decays."""
    cases = [(SOFT, [0.0, 0.0]), (servo(1.0), [0.0, 0.0])]
    robot = arm()
    stiffness = 0.8 / 1e-6 / np.linalg.inv(legged.inertia_matrix(robot, robot.neutral()))[1, 1]
    cases.append((lambda t, q, v, w: np.stack([-50.0 * q[0] - 5.0 * v[0], -stiffness * q[1]]), [0.0, 0.02]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        for law, q in cases:
            run = legged.simulate(robot, law, q=q, until=0.5, integrator=EULER)
            for compiled in (True, False):
                runs = legged.rollout(robot, law, q=q, until=0.5, integrator=EULER, compiled=compiled)
                assert run.warnings == runs.warnings == ()
        assert np.abs(run.vdot[:, 1]).max() * 1e-3 > AMPLITUDE  # the last case is probed
        sim = legged.Simulation(robot, law, q=q, integrator=EULER)
        sim.step(n=500)
    assert sim.warnings == ()


@pytest.mark.parametrize("ground", [paper_ground, realistic_ground])
def test_gaits_are_silent(ground):
    trot = controllers.ComputedTorque(controllers.Trot(period=0.4, stride=0.1))
    walk = controllers.ComputedTorque(controllers.Walk(period=0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        for robot, law in ((robots.spatial_quadruped(), trot), (robots.planar_biped(), walk)):
            runs = legged.rollout(
                robot, law, ground=ground(robot), until=0.5, integrator=legged.SemiImplicitEuler(5e-4)
            )
            assert runs.warnings == ()


def test_undefined_states_of_members_that_end_in_a_probe_are_ignored():
    robot = robots.planar_hopper()

    def advance(members, schedule):
        members.stored[:, ::2], members.stored[:, 1::2] = 1e300, -1e300
        members.outcome[:] = 1.0, 0.0, 1.0

    with np.errstate(all="raise"):
        rates = chatter._probe(robot, advance, np.zeros((2, robot.nq + robot.nv)), np.array([[0.0, 1e-3, 0.0]]))
    assert not rates.any()


def test_members_are_probed_with_the_interval_that_begins_at_a_sample():
    """The first member has an empty interval where the second one's reference changes between samples."""
    robot, h, period, probed = arm(), 1e-3, 0.2, []
    intervals, samples = [np.zeros((2, 4))], [0]
    for j in range(5):
        start, middle = j * period, (j + 0.5) * period
        intervals += [np.array([[0.0, 0.0, 0.0, 0.0], [start, h, 100.0, 0.0]])]
        intervals += [np.array([[start, h, 200.0, 0.0], [middle, h, 100.0, 1.0]])]
        samples += [-1, j + 1]
    members = Members.at(np.zeros((2, robot.nq + robot.nv)), 6)
    members.stored[:], members.outcome[:, 2] = 0.0, 6.0

    def advance(members, schedule):
        probed.append(schedule.intervals[:, 0])

    schedule = Schedule(np.stack(intervals, axis=1), np.array(samples))
    assert chatter.chatter_of_members(robot, advance, schedule, members, period * np.arange(6)) == ""
    assert len(probed) > 1
    for actual in probed:
        expected = [round(actual[0, 0] / period) * period, h, 1.0, 0.0]
        np.testing.assert_allclose(actual, [expected, expected], atol=1e-12)
    assert probed[-1][0, 0] > 0.0
