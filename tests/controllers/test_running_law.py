"""Laws outside of the simulator: what they need, their steps, and their C code."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import ArgumentError, DefinitionError, ShapeError, SimulationWarning

ROBOT = robots.planar_hopper()
PERIOD = 1e-3  # [s]


class Landing:
    """A law with memory that counts its calls under load, and holds the joints."""

    def start(self, robot, ground, q, v):
        return np.concatenate([[0.0], q[3:]])

    def update(self, t, phase, q, v, wrenches, memory):
        loaded = legged.where(wrenches[-1, 5] > 1.0, 1.0, 0.0)
        return np.concatenate([memory[:1] + loaded, memory[1:]])

    def torque(self, t, phase, q, v, wrenches, memory):
        return 50.0 * (memory[1:] - q[3:]) - 2.0 * v[3:] + 0.01 * memory[0]


def loaded(force):
    rows = np.zeros((len(ROBOT.links), 6))
    rows[-1, 5] = force
    return rows


def test_a_law_says_what_it_needs_and_refuses_what_is_missing():
    q = ROBOT.neutral()
    law = controllers.RunningLaw(Landing(), ROBOT, q)
    foot = ROBOT.links[-1].name
    assert law.needs == ("q", "v", f"wrenches on {foot!r}")
    with pytest.raises(ArgumentError, match=f"Landing needs the wrenches of the ground on the links {foot!r}"):
        law.step(0.0, q, np.zeros(ROBOT.nv))
    with pytest.raises(ShapeError, match="wrenches"):
        law.step(0.0, q, np.zeros(ROBOT.nv), np.zeros(6))
    with pytest.raises(ArgumentError, match="made without"):
        law.step(0.0, q, np.zeros(ROBOT.nv), loaded(9.0), command=[1.0])
    posture = controllers.RunningLaw(lambda t, q, v, wrenches: 5.0 * (0.1 - q[3:]), ROBOT, q)
    assert posture.needs == ("q",)
    assert posture.step(0.0, q, np.zeros(ROBOT.nv)) == pytest.approx([0.0, 0.0, 0.0, 0.5, 0.5])
    follows = controllers.RunningLaw(lambda t, q, v, wrenches, command: command + t, ROBOT, q, command=2)
    assert follows.needs == ("t", "command")
    assert follows.step(1.0, q, np.zeros(ROBOT.nv), command=[1.0, 2.0])[3:].tolist() == [2.0, 3.0]
    with pytest.raises(ArgumentError, match="takes a command: give command="):
        follows.step(0.0, q, np.zeros(ROBOT.nv))
    with pytest.raises(ArgumentError, match="give the first configuration q="):
        controllers.RunningLaw(Landing(), ROBOT)
    with pytest.raises(DefinitionError, match="integral over time"):
        controllers.RunningLaw(controllers.ActuatorLag(Landing(), time_constant=0.01), ROBOT, q)


def test_feet_without_load_are_warned_about_once():
    q, v = ROBOT.neutral(), np.zeros(ROBOT.nv)
    law = controllers.RunningLaw(Landing(), ROBOT, q)
    for k in range(100):
        law.step(PERIOD * k, q, v, loaded(0.0))
    law.step(PERIOD * 100, q, v, {ROBOT.links[-1].name: [0.0, 0.0, 0.0, 0.0, 0.0, 9.0]})
    for k in range(101, 200):
        law.step(PERIOD * k, q, v, loaded(0.0))
    assert law.memory[0] == 1.0
    with pytest.warns(SimulationWarning, match=r"zero for 0.1 s: Landing reads from them which feet stand") as caught:
        for k in range(200, 400):
            law.step(PERIOD * k, q, v, loaded(0.0))
    assert len(caught) == 1
    law.reset()
    assert law.memory[0] == 0.0


def test_a_running_law_does_what_the_law_does_in_a_simulation():
    """A simulation without law takes the forces of the running law as its command."""
    robot = robots.planar_hopper()
    q = robot.neutral()
    q[2] = 0.62  # [m], 0.02 m over the ground
    options = {"ground": legged.Rigid(), "integrator": legged.TimeStepping(PERIOD), "fall": False, "q": q}
    inside = legged.Simulation(robot, Landing(), **options)
    outside, law = legged.Simulation(robot, None, **options), controllers.RunningLaw(Landing(), robot, q)

    def loads(wrenches):
        return wrenches

    for k in range(150):
        before = inside.observe(loads)
        tau = law.step(PERIOD * k, outside.q, outside.v, before)
        inside.step()
        outside.step(tau)
    assert law.memory[0] > 10.0  # the foot has landed
    assert np.abs(inside.q - outside.q).max() < 1e-9  # rounding errors over 150 steps, with an impact


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_locomotion_in_c_equals_python(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    robot = robots.spatial_quadruped()
    law = controllers.RunningLaw(controllers.Locomotion("trot", controllers.Command(vx=0.3)), robot)
    feet = [link.name for link in robot.links if "shank" in link.name]
    assert law.needs == ("t", "q", "v", *(f"wrenches on {name!r}" for name in feet))
    source, header = law.to_c(tmp_path / "trot", name="trot")
    text = header.read_text()
    assert "[10] joint leg2_hip, coordinate 0, rad" in text and "[2] link leg1_shank" in text
    library = tmp_path / "trot.so"
    subprocess.run([compiler, "-O0", "-std=c99", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    trot, rng, memory = ctypes.CDLL(str(library)).trot, np.random.default_rng(1), law.memory
    load = robot.mass * 9.81 / 4.0
    for k in range(40):
        q, v = law.initial_q.copy(), 0.05 * rng.normal(size=robot.nv)
        q[7:] += 0.01 * rng.normal(size=robot.nj)
        wrenches = np.zeros((len(robot.links), 6))
        wrenches[2::2, 5] = load * (1.0 + 0.1 * rng.normal(size=4))
        results = [np.zeros(len(memory)), np.zeros(robot.nv)]
        arrays = [np.array([k / 500.0]), q, v, wrenches, memory, *results]
        assert trot(*(ctypes.c_void_p(a.ctypes.data) for a in arrays)) == 0
        tau = law.step(k / 500.0, q, v, wrenches)
        # rounding errors of iterations that end at residuals of 1e-10, of forces of 14 N m
        assert np.abs(results[1] - tau).max() < 1e-7 and np.abs(results[0] - law.memory).max() < 1e-7
        memory = results[0]


def test_runs_record_the_command_of_the_law_and_of_its_wrapper():
    robot = robots.spatial_quadruped()
    ground = legged.Rigid(friction=0.6)
    for command, wanted in (
        (controllers.Command(vx=0.3, yaw_rate=0.2), (0.3, 0.0, 0.2)),
        (controllers.Command(vx=lambda t: 0.1 * t), (0.2, 0.0, 0.0)),
        (None, (0.0, 0.0, 0.0)),  # that of a step, which begins at rest
    ):
        law = controllers.Locomotion("trot", command)
        for form in (law, controllers.ActuatorLag(law, 0.01), controllers.Recovery(law)):
            started, memory = form.start(robot, ground, *law.initial_state(robot))
            np.testing.assert_allclose(started.commanded_velocity(2.0, memory), wanted, atol=1e-15)
