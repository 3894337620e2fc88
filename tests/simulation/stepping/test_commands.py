"""`Simulation`: commands, observations."""

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import (
    NotFiniteError,
    ShapeError,
)
from tests.simulation.stepping.hopper_laws import (
    EULER,
    SPRINGS,
    close,
    servo,
    standing,
)


def features(t, q, v, contacts, tau):
    center = legged.center_of_mass(robots.planar_hopper(), q)
    return {"center": center, "load": contacts.forces.sum(axis=0), "tau": tau, "t": t}


def test_an_observation_is_the_function_of_the_present_state(hopper):
    robot, q = hopper
    sim = legged.Simulation(robot, standing, ground=SPRINGS, num=11, q=q, integrator=EULER)
    sim.step(n=150)
    seen, forces = sim.observe(features), sim.contacts.forces
    lone = legged.Simulation(robot, standing, ground=SPRINGS, num=1, q=sim.q[3], v=sim.v[3], integrator=EULER)
    alone = lone.observe(features)
    for name in ("center", "load", "tau"):
        np.testing.assert_allclose(alone[name], seen[name][3:4], rtol=1e-9, atol=1e-9)
    for i in (0, 7):
        np.testing.assert_allclose(seen["center"][i], legged.center_of_mass(robot, sim.q[i]), atol=1e-12)
        np.testing.assert_allclose(seen["tau"][i, 3:], standing(0.0, sim.q[i], sim.v[i], None), rtol=1e-9)
    np.testing.assert_allclose(seen["load"], forces.sum(axis=1), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(seen["t"], sim.t)
    plain = legged.Simulation(robot, standing, ground=SPRINGS, num=11, q=sim.q, integrator=EULER, compiled=False)
    np.testing.assert_allclose(plain.observe(features)["center"], seen["center"], atol=1e-12)


def test_commands_reach_controllers_and_torques_reach_motors(hopper):
    robot, q = hopper
    targets = np.stack([np.linspace(0.0, 0.1, 11), np.zeros(11)], axis=1)
    options = {"ground": SPRINGS, "integrator": EULER}
    sim = legged.Simulation(robot, servo, num=11, q=q, **options)
    plain = legged.Simulation(robot, servo, q=q[4], compiled=False, **options)
    torques = legged.Simulation(robot, num=11, q=q, **options)
    for _ in range(20):
        sim.step(targets)
        plain.step(targets[4])
        now = zip(torques.q, torques.v, targets, strict=True)
        torques.step(np.array([servo(0.0, x, y, None, z) for x, y, z in now]))
    close(plain.v, sim.v[4])
    close(torques.v, sim.v)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("num", "threads"), [(None, 1), (1, 1), (2, 1), (11, 1), (400, 3)])
def test_a_command_that_is_not_finite_changes_nothing(hopper, num, threads, dtype):
    """A step of 400 robots is long enough to be divided among threads."""
    robot, q = hopper
    options = {"ground": SPRINGS, "integrator": EULER, "num": num, "threads": threads, "dtype": dtype, "q": q[0]}
    sim, other = (legged.Simulation(robot, servo, **options) for _ in range(2))
    command = np.full((*(() if num is None else (num,)), 2), 0.01, dtype)
    command[..., 1] = 0.6
    with pytest.raises(NotFiniteError, match="command"):
        sim.step(np.full(3, np.nan))  # the first command may have any length, and this one does not count
    for each in (sim, other):
        each.step(command, n=40)
    before = sim.state
    for place, bad in (((0, 1), np.nan), ((-1, 0), np.inf), ((-1, -1), -np.inf)):
        wrong = command + 0.1
        wrong[place if num else place[1]] = bad
        entry = ", ".join(map(str, np.argwhere(~np.isfinite(wrong))[0]))
        for refused in (lambda w=wrong: sim.step(w, n=40), lambda w=wrong: sim.advance(0.1, w)):
            with pytest.raises(NotFiniteError, match=f"command must be finite, got {bad} at entry {entry}"):
                refused()
        for name in ("t", "q", "v", "rest", "outcome"):
            np.testing.assert_array_equal(getattr(sim.state, name), getattr(before, name))
        np.testing.assert_array_equal(sim.observe(given), command)
    if dtype == "float32":
        with pytest.raises(NotFiniteError, match="command must be finite, got inf"):
            sim.step(1e300 * command.astype(float))
    for each in (sim, other):
        each.step(command, n=40)
    np.testing.assert_array_equal(sim.q, other.q)
    np.testing.assert_array_equal(sim.v, other.v)


def given(command):
    return command


@pytest.mark.parametrize("num", [None, 1, 2, 9])
def test_a_command_has_any_type_and_layout(hopper, num):
    robot, q = hopper
    sim = legged.Simulation(robot, num=num, q=q[0], integrator=EULER)
    shape = (robot.nj,) if num is None else (num, robot.nj)
    torques = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    alike = (torques, torques.tolist(), torques.astype(np.float32), torques.astype(int), np.asfortranarray(torques))
    start, ends = sim.state, []
    for command in (*alike, np.repeat(torques, 2, axis=-1)[..., ::2]):
        sim.state = start
        sim.step(command, n=3)
        ends.append(sim.v)
        np.testing.assert_array_equal(sim.observe(given), torques)
    assert (np.array(ends) == ends[0]).all() and (ends[0] != 0.0).any()
    sim.state = start
    sim.advance(3e-3, torques)
    close(sim.v, ends[0])
    sim.step(torques[0] if num else torques)  # one command for all
    np.testing.assert_array_equal(sim.observe(given), np.broadcast_to(torques[0] if num else torques, shape))
    sim.step()
    np.testing.assert_array_equal(sim.observe(given), np.zeros(shape))
    torques[:] = np.nan  # the simulation has a copy
    np.testing.assert_array_equal(sim.observe(given), np.zeros(shape))


class Commanded:
    """Servos whose targets are the command, with a memory that integrates it."""

    def start(self, robot, ground, q, v):
        return np.zeros(2)

    def torque(self, t, phase, q, v, wrenches, memory, command):
        return servo(t, q, v, wrenches, command) - memory

    def rate(self, t, phase, q, v, wrenches, memory, command):
        return command


@pytest.mark.parametrize("law", [servo, Commanded()], ids=["function", "memory"])
def test_wrappers_pass_the_command_to_their_law(hopper, law):
    robot, q = hopper
    other = controllers.SwitchedLaw([standing, law], [0.0195])
    wrapped = {
        "hold": controllers.ZeroOrderHold(law, rate=250.0),
        "limits": controllers.ActuatorLimits(law, torque_limit=30.0),
        "noise": controllers.SensorNoise(law, position=1e-3),
        "lag": controllers.ActuatorLag(controllers.Delay(law, delay=2e-3), time_constant=5e-3),
        "switched": controllers.NominalModel(other, model=robot),
    }
    if law is servo:
        wrapped = {name: wrapped[name] for name in ("hold", "lag")}
    options = {"ground": SPRINGS, "integrator": EULER, "num": 2, "q": q[:2]}
    target = np.array([[0.0, 0.0], [0.3, 0.02]])
    for name, outer in wrapped.items():
        sim = legged.Simulation(robot, outer, compiled=True, **options)
        still = legged.Simulation(robot, outer, compiled=False, **options)
        for _ in range(10):
            sim.step(target, n=4)
            still.step(target[0], n=4)
        close(sim.v[0], still.v[0])
        assert np.abs(sim.v[1] - still.v[1]).max() > 0.1, name
        assert sim.observe(command)[1] == pytest.approx(target[1])
    with pytest.raises(ShapeError, match="takes a command"):
        legged.Simulation(robot, wrapped["lag"], compiled=True, **options).step()


def command(command):
    return command
