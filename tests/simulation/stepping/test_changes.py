"""`Simulation`: changes of parameters and controllers."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import legged
import robots
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError, UnknownNameError
from legged.ground import Slope
from tests.simulation.stepping.hopper_laws import EULER, ROUNDING, SPRINGS, standing


class UphillForce:
    """A controller that knows the terrain."""

    def __init__(self, terrain):
        self.terrain = terrain

    def torque(self, t, phase, q, v, wrenches, memory):
        return standing(t, q, v, wrenches) + 0.1 * self.terrain.height(q[0], 0.0 * q[1])


def test_a_controller_that_shares_the_terrain_of_the_ground_is_compiled(hopper):
    robot, q = hopper
    slope = Slope(0.1)
    ground = Rigid(terrain=slope)
    sim = legged.Simulation(robot, UphillForce(slope), ground=ground, q=q[-1], compiled=True)
    sim.step(n=3)
    assert sim.t == pytest.approx(3e-3)


class Spring:
    """A controller with a stiffness."""

    parameter_names = ("kp",)

    def __init__(self, kp):
        self.kp = kp

    def torque(self, t, phase, q, v, wrenches, memory):
        return -self.kp * q[3:] - 2.0 * v[3:]


def test_numbers_change_while_robots_go_on_and_compile_once(hopper):
    robot, starts = hopper
    sim = legged.Simulation(robot, Spring(30.0), ground=SPRINGS, q=starts[0], integrator=EULER)
    sim.step(n=100)
    heavy = robot.with_parameters({"trunk.mass": 6.0})
    for k, (kp, own) in enumerate([(40.0, robot), (50.0, robot), (50.0, heavy)]):
        engine = sim._robots.engine
        sim.change({"controller.kp": kp} if own is robot else {"robot.trunk.mass": 6.0})
        state, t = sim.state, float(sim.t)
        other = legged.Simulation(own, Spring(kp), ground=SPRINGS, q=starts[0], integrator=EULER)
        other.state = replace(other.state, q=state.q, v=state.v, rest=state.rest)
        for each in (sim, other):
            each.step(n=20)
        assert np.allclose(sim.q, other.q, atol=ROUNDING) and np.allclose(sim.v, other.v, atol=ROUNDING)
        assert (sim._robots.engine is engine) == (k == 1)  # a number that has changed before needs no compilation
        assert sim.t == pytest.approx(t + 20e-3)
    assert sim.parameters["controller.kp"] == 50.0 and sim.parameters["robot.trunk.mass"] == 6.0
    sim.reset()
    assert sim.t == 0.0 and sim.parameters["controller.kp"] == 50.0


def test_a_state_from_before_the_first_change_of_a_number_is_refused(hopper):
    robot, starts = hopper
    sim = legged.Simulation(robot, Spring(30.0), ground=SPRINGS, q=starts[0], integrator=EULER)
    sim.step(n=10)
    before = sim.state
    sim.change({"robot.trunk.mass": 6.0})
    sim.step(n=10)
    q = sim.q
    with pytest.raises(DefinitionError, match="older than the first change of"):
        sim.state = before
    assert np.array_equal(sim.q, q)
    kept = sim.state
    sim.step(n=10)
    sim.state = kept
    assert np.array_equal(sim.q, q)


def test_a_number_in_the_memory_of_a_controller_changes_there():
    class Ramp:
        parameter_names = ("rise",)

        def __init__(self):
            self.rise = 2.0

        def start(self, robot, ground, q, v):
            return self, np.array([0.0, self.rise])

        def torque(self, t, phase, q, v, wrenches, memory):
            return 0.0 * v

        def rate(self, t, phase, q, v, wrenches, memory):
            return np.stack([memory[1], 0.0 * memory[1]])

    sim = legged.Simulation(robots.chain(1, base=legged.FixedBase()), Ramp(), num=2)
    sim.advance(0.5)
    sim.change({"controller.rise": [2.0, 4.0]})
    sim.advance(1.0)
    assert sim.observe(lambda memory: memory[0]) == pytest.approx([2.0, 3.0])


def test_another_controller_goes_on_from_the_present_states(hopper):
    robot, starts = hopper

    def pull(t, q, v, wrenches):
        return np.array([1.0, 0.0]) + 0.0 * v[3:]

    def push(t, q, v, wrenches, command):
        return -command + 0.0 * v[3:]

    sim = legged.Simulation(robot, pull, num=2, q=starts[:2])
    sim.advance(0.05)
    q, v = sim.q, sim.v
    sim.change_controller(push)
    assert np.array_equal(sim.q, q) and np.array_equal(sim.v, v) and sim.t.tolist() == [0.05, 0.05]
    sim.step(np.array([2.0, 0.0]))
    tau = sim.observe(lambda tau: tau[3:])
    assert tau.tolist() == [[-2.0, 0.0]] * 2
    with pytest.raises(UnknownNameError, match="named 'kp'"):
        sim.change({"controller.kp": 1.0})


@dataclass(frozen=True)
class Hold:
    """A spring about the angle at the start, the only number of the simulation."""

    angle: float = 0.0  # [rad]

    def start(self, robot, ground, q, v):
        return Hold(q[0]), np.zeros(0)

    def torque(self, t, phase, q, v, wrenches, memory):
        return 50.0 * (self.angle - q)


def test_a_reset_replaces_the_only_number_of_a_controller():
    post = legged.RobotBuilder("arm", legged.Link("post"), base=legged.FixedBase())
    arm = legged.Link("arm", legged.box_inertia(1.0, (0.1, 0.1, 0.1)))
    robot = post.add(legged.Revolute("joint", "z"), arm, to="post").build()
    sim = legged.Simulation(robot, Hold(), q=[0.0], fall=False, compiled=True)
    sim.step(n=5)
    sim.reset([0.3])
    sim.step(n=5)
    assert sim.q == pytest.approx([0.3], abs=1e-15) and sim._robots.starts.numbers.shape == (1, 1)
