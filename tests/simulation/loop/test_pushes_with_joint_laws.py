"""Pushes on robots whose joints rest, slide and reach stops: impulses, Coulomb's law and records of contacts."""

from dataclasses import replace

import numpy as np
import pytest

import legged
import robots
from legged import loops
from legged.contact import Box, FreeBody
from legged.dynamics.kinematics import momentum
from legged.errors import SimulationWarning
from legged.ground import realistic_ground
from legged.simulation import LinearlyImplicitEuler

MASS, FRICTION = 2.0, 3.0  # [kg], [N]
IMPULSE = 3.0  # [N s]


def satellite(gravity=0.0, friction=FRICTION):
    """A free trunk of 2 kg on four feet, with a sliding weight of 1 kg that rubs and has stops."""
    rail = legged.Prismatic("rail", "x", physics=legged.JointPhysics(friction=friction, lower=-0.2, upper=0.2))
    feet = {f"foot{k}": (x, y, -0.05) for k, (x, y) in enumerate(((0.1, 0.1), (0.1, -0.1), (-0.1, 0.1), (-0.1, -0.1)))}
    trunk = legged.Link("trunk", legged.box_inertia(MASS, (0.3, 0.2, 0.1)), feet)
    weight = legged.Link("weight", legged.box_inertia(1.0, (0.1, 0.1, 0.1)))
    builder = legged.RobotBuilder("satellite", trunk, gravity=(0.0, 0.0, -gravity))
    return builder.add(rail, weight, to="trunk").build()


GROUND = realistic_ground(satellite(9.81))
STEPS = {
    "none": (None, legged.SemiImplicitEuler(4e-3)),
    "compliant": (GROUND, LinearlyImplicitEuler(3e-3)),
    "rigid": (legged.Rigid(), legged.TimeStepping(3e-3)),
}
DOORS = ["simulate", "rollout", "steps", "advance"]


def high(robot):
    return robot.neutral() + np.array([0.0] * 6 + [5.0] + [0.0] * robot.nj)


def end(door, robot, until, num=2, **options):
    """Return q and v at the end, through one of the doors."""
    if door == "simulate":
        run = legged.simulate(robot, until=until, **options)
        return run.q[-1], run.v[-1]
    if door == "rollout":
        runs = legged.rollout(robot, until=until, **options | {"q": np.array([options["q"]] * num)})
        return runs.q[-1, -1], runs.v[-1, -1]
    sim = legged.Simulation(robot, num=num, **options)
    if door == "steps":
        sim.step(n=int(np.ceil(until / sim.time_step)))
    else:
        sim.advance(until)
    return sim.q[-1], sim.v[-1]


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("duration", [0.0, 0.0123])
@pytest.mark.parametrize("case", STEPS)
@pytest.mark.parametrize("door", DOORS)
def test_pushes_deliver_their_impulse_while_a_joint_rubs_and_hits_its_stop(door, case, duration, compiled):
    """To 1e-11: the rounding of the times of a push of 1 us, see test_external_wrenches.py."""
    robot, (ground, integrator) = satellite(), STEPS[case]
    push = legged.Push("trunk", (IMPULSE, 0.0, 0.0), at=0.01234567, duration=duration)  # along the rail: no rotation
    options = {"ground": ground, "integrator": integrator, "pushes": [push], "compiled": compiled}
    q, v = end(door, robot, 0.3, q=high(robot), **options)
    assert q[-1] < -0.19 and v[3] > 0.0  # the weight has reached the stop
    np.testing.assert_allclose(momentum(robot, q, v)[3:], [IMPULSE, 0.0, 0.0], atol=1e-11)


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("case", STEPS)
@pytest.mark.parametrize("door", DOORS)
def test_wrenches_below_friction_move_nothing_and_above_it_accelerate_by_the_rest(door, case, compiled):
    """A held cart creeps by 1e-8 of the speed that its load gives it in a step."""
    cart = legged.Link("cart", legged.box_inertia(MASS, (0.1, 0.1, 0.1)))
    rail = legged.Prismatic("rail", "x", physics=legged.JointPhysics(friction=FRICTION))
    one = legged.RobotBuilder("one", legged.Link("wall"), base=legged.FixedBase(), gravity=(0.0, 0.0, 0.0))
    one = one.add(rail, cart, to="wall").build()
    group, (ground, integrator) = legged.combine({"left": one, "right": one}), STEPS[case]
    pushes = [legged.ExternalWrench("left/cart", (5.0, 0.0, 0.0)), legged.ExternalWrench("right/cart", (2.9, 0.0, 0.0))]
    options = {"ground": ground, "integrator": integrator, "pushes": pushes, "compiled": compiled}
    q, v = end(door, group, 0.3, q=group.neutral(), **options)
    assert v[0] == pytest.approx(0.3 * (5.0 - FRICTION) / MASS, abs=1e-12)
    assert abs(v[1]) < 1e-8 * integrator.step * 2.9 / MASS * 1.01
    if door == "simulate":
        run = legged.simulate(group, until=0.3, q=group.neutral(), **options)
        assert run.energy.push_work[-1] == pytest.approx(5.0 * q[0], rel=0.02)  # of the velocities, a mean of each step
        assert run.energy.joint_work[-1] == pytest.approx(-FRICTION / 5.0 * run.energy.push_work[-1], rel=1e-9)
        assert run.energy_drift < 1e-9


@pytest.mark.parametrize("ground", [None, legged.Rigid()], ids=["none", "rigid"])
@pytest.mark.parametrize("compiled", [None, False])
def test_friction_of_a_closed_loop_holds_wrenches_up_to_its_limit(ground, compiled):
    """30 N m hold 20 N m and the weight of the bars, and let 60 N m turn the crank."""
    closed = robots.four_bar()
    q = loops.assemble(closed, np.array([1.0, -0.7, 1.5]), hold=["crank joint"])
    closed = replace(closed, robot=closed.robot.with_parameters({"crank joint.friction": 30.0}))
    integrator = legged.SemiImplicitEuler(1e-4) if ground is None else legged.TimeStepping(1e-3)
    until = 0.05 if compiled is None else 0.005  # [s]; a time step in Python takes 20 ms
    options = {"q": q, "ground": ground, "until": until, "integrator": integrator, "compiled": compiled}
    held, turned = (
        legged.simulate(closed, pushes=[legged.ExternalWrench("crank", torque=(0.0, torque, 0.0))], **options)
        for torque in (20.0, 60.0)
    )
    assert np.abs(held.q - q).max() < 1e-6  # the projection onto the loops and 1e-8 of the load
    assert abs(turned.q[-1, 0] - q[0]) > 0.01 * (until / 0.05) ** 2
    assert turned.energy.push_work[-1] > 0.0 > turned.energy.joint_work[-1]
    assert turned.energy_drift < 0.02 * turned.energy.push_work[-1]


@pytest.mark.parametrize("case", ["compliant", "rigid"])
@pytest.mark.parametrize("compiled", [None, False])
def test_contacts_record_weight_and_wrench_below_joints_with_friction(case, compiled):
    """The impulse of the ground in 0.2 s at rest; compliant contacts have settled to 1e-3 after a second."""
    robot, ground = satellite(9.81), STEPS[case][0]
    q = robot.neutral() + np.array([0.0] * 6 + [0.05] + [0.0])
    wrench = legged.ExternalWrench("trunk", (0.0, 0.0, -4.0))
    sim = legged.Simulation(robot, ground=ground, q=q, integrator=STEPS[case][1], pushes=[wrench], compiled=compiled)
    sim.advance(1.0)
    steps = 50
    sim.step(n=steps)
    expected = ((MASS + 1.0) * 9.81 + 4.0) * steps * sim.time_step
    assert sim.contacts.impulse.sum(axis=0) == pytest.approx([0.0, 0.0, expected], rel=1e-3, abs=1e-6)
    assert abs(sim.v[-1]) < 1e-6  # the weight sticks to its rail


def test_scenes_in_parts_push_robots_that_hit_their_stops():
    size = (0.1, 0.1, 0.1)
    bodies = [FreeBody(f"box{k}", legged.box_inertia(1.0, size), [Box(size)], (0.4 * k, 3.0, 9.0)) for k in range(14)]
    robot = satellite(friction=0.0)
    pushes = [legged.Push("trunk", (IMPULSE, 0.0, 0.0), at=0.01, duration=1e-4)]
    run = legged.simulate(robot, ground=legged.Rigid(), q=high(robot), until=0.3, bodies=bodies, pushes=pushes)
    assert "parts" in run.backend
    assert run.q[:, -1].min() == pytest.approx(-0.2, abs=1e-6)
    np.testing.assert_allclose(momentum(robot, run.q[-1], run.v[-1])[3:], [IMPULSE, 0.0, 0.0], atol=1e-11)
    assert run.energy_drift < 1e-7


def test_commands_for_the_base_are_reported_beside_wrenches_of_the_step():
    robot = satellite()
    sim = legged.Simulation(robot, q=high(robot), integrator=legged.SemiImplicitEuler(1e-3))
    command = np.zeros(robot.nv)
    command[5] = 1.0  # [N]
    wrench = legged.ExternalWrench("trunk", (3.0, 0.0, 0.0))
    with pytest.warns(SimulationWarning, match="for the base of 'satellite', on which no motor acts"):
        sim.step(command, n=20, wrenches=wrench)
    assert momentum(robot, sim.q, sim.v)[3:] == pytest.approx([0.06, 0.0, 0.0], abs=1e-12)
