"""Arrays of every kind at every public function: the right answer, or an error that says what to do.

`array_kinds.KINDS` lists the kinds: lists, read-only and strided arrays, other bytes and precisions, tables of pandas,
tensors of Torch, memory views, fractions, masked arrays, and values that are no arrays of real numbers.
"""

import functools
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from oracles.standing import shared_quadruped

import controllers
import legged
import robots
from legged import deployment, environments, estimation, identification, optimization, sweeps
from legged.elements import to_float
from legged.errors import LeggedError

sys.path.insert(0, str(Path(__file__).parent))
import argument_fuzz
from array_kinds import KINDS

BIPED, CHAIN = robots.planar_biped(), robots.chain(2)
LAW, GROUND = controllers.ComputedTorque(controllers.paper_walk()), legged.ground.paper_ground(BIPED)
Q = controllers.paper_walk().initial_state(BIPED)[0]
V, TAU = np.zeros(BIPED.nv), np.full(BIPED.nv, 0.5)
BATCH = np.stack([Q, Q, Q])
UNTIL = 0.002  # [s]
LINK = f"robot.{CHAIN.links[1].name}.mass"


@functools.cache
def kernel():
    return legged.compile(legged.forward_dynamics, BIPED)


def springs(t, q, v, wrenches):
    return -10.0 * q[3:] - v[3:]


def commanded(t, q, v, wrenches, command):
    return 0.0 * v + command[0] - 2.0 * command[1]


def stepped(command):
    simulation = legged.Simulation(CHAIN, commanded)
    simulation.step(command)
    return simulation.q


def changed(masses):
    simulation = legged.Simulation(CHAIN, num=3, v=np.ones(CHAIN.nv))
    simulation.change({LINK: masses})
    simulation.step()
    return simulation.q


@functools.cache
def environment():
    pytest.importorskip("gymnasium", reason="gymnasium, of the extra rl, is not installed")
    return environments.make("pendulum", num_envs=2)


def acted(actions):
    environment().reset(seed=1)
    return environment().step(actions)[0]


def simulated(**state):
    return legged.simulate(BIPED, LAW, ground=GROUND, until=UNTIL, **state).q


def rolled_out(**options):
    return legged.rollout(BIPED, LAW, ground=GROUND, until=UNTIL, **options).q


def optimal_control(upper):
    return optimization.Problem(CHAIN, [optimization.Stage(0.01)], q=CHAIN.neutral(), upper=upper)


def updated(**parts):
    robot = shared_quadruped()
    q, rest = robot.neutral(), np.zeros(robot.nj)
    reading = estimation.Reading(np.zeros(3), -robot.gravity, q[7:], rest, rest, np.zeros((4, 3)), np.ones(4))
    law, memory = estimation.InvariantFilter().start(robot, q, np.zeros(robot.nv))
    return np.array([to_float(x) for x in law.update(memory, reading._replace(**parts), 0.01).tolist()])


SAMPLES = np.array([0.5, 1.0, 2.0])


def log(**channels):
    return identification.Log(**{"times": SAMPLES, "joints": ("a", "b"), "positions": np.zeros((3, 2)), **channels})


@functools.cache
def one_legged():
    trunk, soles = legged.Link("trunk", legged.sphere_inertia(1.0, 0.1)), {"toe": (0.1, 0.0, 0.0), "heel": (0, 0, 0)}
    leg = legged.Link("leg", legged.sphere_inertia(1.0, 0.1), soles)
    return legged.RobotBuilder("one leg", trunk).add(legged.Revolute("hip", "y"), leg, to="trunk").build()


def replayed(**parts):
    """Replay readings of a small robot, since each replay compiles a filter."""
    robot, rest = one_legged(), np.zeros((3, 1))
    force = np.tile(-robot.gravity, (3, 1))
    readings = estimation.Reading(np.zeros((3, 3)), force, rest, rest, rest, np.zeros((3, 2, 3)), np.ones((3, 2)))
    start, times = (robot.neutral(), np.zeros(robot.nv)), np.array([0.0, 0.01, 0.02])
    return estimation.run_estimator(robot, estimation.InvariantFilter(), times, readings._replace(**parts), *start).q


def named(q):
    return BIPED.named_state(q, V)["base_orientation"]


def limited(joints):
    reading = estimation.Reading(None, None, joints, np.zeros(3), None, None, None)
    servo = deployment.JointCommand(np.zeros(3), np.ones(3), np.zeros(3), np.ones(3), np.zeros(3))
    return deployment.SafetyLimits(torque=5.0).limited(servo, reading, np.zeros(3), 0.01)[1]


DOORS = {
    "dynamics, q": (Q, lambda x: legged.forward_dynamics(BIPED, x, V, TAU)),
    "dynamics, tau": (TAU, lambda x: legged.forward_dynamics(BIPED, Q, V, x)),
    "dynamics, wrenches": (np.full((len(BIPED.links), 6), 0.5), lambda x: legged.forward_dynamics(BIPED, Q, V, TAU, x)),
    "center of mass": (Q, lambda x: legged.center_of_mass(BIPED, x)),
    "linearize": (Q, lambda x: legged.linearize(BIPED, x, V, TAU)[0]),
    "kernel": (Q, lambda x: kernel()(x, V, TAU)),
    "kernel, batch": (BATCH, lambda x: kernel()(x, V, TAU)),
    "simulate, q": (Q, lambda x: simulated(q=x)),
    "simulate, v": (V + 0.5, lambda x: simulated(q=Q, v=x)),
    "rollout, q": (BATCH, lambda x: rolled_out(q=x)),
    "rollout, one q": (Q, lambda x: rolled_out(q=x, vary={"controller.kp": [100.0, 200.0]})),
    "rollout, v": (np.full((3, BIPED.nv), 0.25), lambda x: rolled_out(q=Q, v=x)),
    "rollout, vary": (SAMPLES, lambda x: legged.rollout(CHAIN, v=np.ones(CHAIN.nv), until=UNTIL, vary={LINK: x}).q),
    "Simulation, q": (BATCH, lambda x: legged.Simulation(BIPED, LAW, ground=GROUND, q=x, num=3).q),
    "Simulation.step": (np.array([0.5, 1.0]), stepped),
    "Simulation.change": (SAMPLES, changed),
    "Run.from_motion, t": (SAMPLES, lambda x: legged.Run.from_motion(BIPED, x, BATCH).times),
    "Run.from_motion, q": (BATCH, lambda x: legged.Run.from_motion(BIPED, SAMPLES, x).q),
    "HeightMap": (np.full((4, 4), 0.5), lambda x: legged.ground.HeightMap(x, spacing=0.5).heights),
    "Push": (SAMPLES, lambda x: legged.Push("trunk", x, at=0.1).force(0.15)),
    "Inertia": (SAMPLES, lambda x: legged.sphere_inertia(1.0, 0.1, x).center),
    "shape": (np.eye(3), lambda x: legged.Sphere(0.1, SAMPLES).moved(x, SAMPLES).center),
    "RunningLaw": (Q, lambda x: controllers.RunningLaw(springs, BIPED, Q).step(0.0, x, V)),
    "Follow": (np.array([[0.5, 1.0], [2.0, 3.0]]), lambda x: controllers.Follow(LOCOMOTION, x).waypoints),
    "samples of a sweep": (SAMPLES, lambda x: sweeps.Samples({"mass": x}).columns["mass"]),
    "environment": (np.full((2, 1), 0.5), acted),
    "bounds of controls": (np.full(CHAIN.nj, 0.5), lambda x: optimal_control(x).upper),
    "contacts of a reading": (np.full(4, 0.5), lambda x: updated(contacts=x)),
    "gyroscope": (SAMPLES, lambda x: updated(gyro=x)),
    "gyroscope of a replay": (np.full((3, 3), 0.5), lambda x: replayed(gyro=x)),
    "contacts of a replay": (np.full((3, 2), 0.5), lambda x: replayed(contacts=x)),
    "times of a log": (SAMPLES, lambda x: log(times=x).times),
    "rates of a log": (np.full((3, 2), 0.5), lambda x: log(rates=x).rates),
    "limits of torques": (SAMPLES, lambda x: deployment.SafetyLimits(torque=x).torque),
    "limited torques": (SAMPLES, limited),
    "servo gains": (SAMPLES, lambda x: deployment.JointCommand(*[np.ones(3)] * 3, x, np.ones(3)).flat()),
    "named state": (BIPED.neutral() + 0.25, named),
}
"""Calls that take an array, by name: a valid array, and the call."""
LOCOMOTION = controllers.Locomotion("trot", None)
ACCEPTED = {
    "samples of a sweep": {"truth values", "texts"},
    **{key: {"NaN", "pandas with missing"} for key in ("limited torques", "servo gains")},  # a `Runner` stops at NaN
}
"""Kinds that a call takes as they are, by its name."""


@pytest.mark.parametrize("door", DOORS)
def test_every_kind_of_array_gives_the_right_answer_or_an_error_in_words(door):
    valid, call = DOORS[door]
    expected = np.asarray(call(valid), float)
    for name, kind in KINDS.items():
        if name in ACCEPTED.get(door, ()):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                answer = call(kind.make(valid))
        except LeggedError as error:
            assert kind.error is None or kind.may_be_refused, (name, error)
            assert len(str(error).split()) > 4, name
            continue
        assert kind.error is not None, f"{name} was accepted"
        assert np.shape(answer) == expected.shape, name
        error = np.abs(np.asarray(answer, float) - expected).max()
        size = max(
            1.0, np.abs(expected).max()
        )  # a rounded q or tau changes accelerations by the inverse of the inertia
        assert error <= (1e3 * kind.error if kind.error else 1e-12) * size, name


def kinds_of(valid, name):
    """Yield the kinds of a valid argument that is an array of numbers, as `argument_fuzz.bad_values`."""
    del name
    try:
        array = np.asarray(valid, float)
    except (TypeError, ValueError):
        return
    if isinstance(valid, (np.ndarray, tuple, list)) and array.size and array.ndim <= 2:
        for words, kind in KINDS.items():
            yield words, kind.make(array)


def defects(most, monkeypatch, folder):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(argument_fuzz, "bad_values", kinds_of)
    monkeypatch.setattr(argument_fuzz, "is_named", lambda *_: True)
    report = argument_fuzz.fuzz(seed=2, most=most)
    assert report.calls > 500 and not report.missing
    rows_may_be_nan = {("legged.Table", "rows", "NaN")}
    return [defect for defect in report.defects if defect[:3] not in rows_may_be_nan]


def test_a_sample_of_public_functions_reads_or_refuses_every_kind_of_array(monkeypatch, tmp_path):
    assert defects(800, monkeypatch, tmp_path) == []


@pytest.mark.slow
def test_all_public_functions_read_or_refuse_every_kind_of_array(monkeypatch, tmp_path):
    assert defects(None, monkeypatch, tmp_path) == []
