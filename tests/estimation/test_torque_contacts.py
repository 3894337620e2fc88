"""Contacts from joint torques: the momentum balance of random robots, and a walk without force sensors."""

from typing import Any

import numpy as np
import pytest

import controllers
import legged
import robots
from legged import estimation
from legged.estimation.momentum_observer import momentum_and_rate
from legged.robot.configuration import random_configuration


@pytest.mark.parametrize("seed", range(6))
def test_rate_of_momentum_is_that_of_the_equations_of_motion(seed):
    """dp/dt = tau + J^T w + beta, by central differences along the motion of forward dynamics."""
    robot = legged.random_tree(seed, links=12, physics=True, bases=("floating", "fixed"))
    rng = np.random.default_rng(seed)
    q, v, tau = random_configuration(robot, rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    wrenches = rng.normal(size=(len(robot.links), 6))
    acceleration = legged.forward_dynamics(robot, q, v, tau, wrenches)
    h = 1e-5  # [s]; the error is h^2 / 6 times the third derivative
    ahead, behind = (
        momentum_and_rate(robot, legged.integrate(robot, q, s * v), v + s * acceleration)[0] for s in (h, -h)
    )
    rate = (ahead - behind) / (2.0 * h)
    external = legged.inverse_dynamics(robot, q, v, acceleration) - tau  # J^T w
    _, beta = momentum_and_rate(robot, q, v)
    assert np.allclose(rate, tau + external + beta, rtol=0.0, atol=1e-7 * np.abs(rate).max())


def test_feet_are_felt_by_the_torques_alone():
    """A trot with exact sensors: the observed forces are those of the ground, late by the time constant of 10 ms."""
    robot = robots.spatial_quadruped()
    law, steps = controllers.Locomotion("trot", controllers.Command(vx=0.3)), legged.TimeStepping(2e-3)
    run = legged.simulate(robot, law, ground=legged.Rigid(), until=1.0, integrator=steps, sample=2e-3)
    torques = np.concatenate([run.tau[:1], run.tau[:-1]])[:, 6:]  # since the last reading
    readings = estimation.instrument_readings(
        robot, estimation.Instruments(seed=1), run.times, run.q, run.v, run.contacts.forces, torques=torques
    )
    blind = readings._replace(forces=0.0 * readings.forces, contacts=0.0 * readings.contacts + 0.5)
    estimator, memory = estimation.TorqueContacts(estimation.InvariantFilter(), gain=100.0).start(
        robot, run.q[0], run.v[0]
    )

    def step(memory: Any, **given: Any) -> Any:
        reading = estimation.Reading(**given)
        after = estimator.update(memory, reading, 2e-3)
        complete = estimator.completed(after, reading)
        return after, complete.forces, complete.contacts, estimator.state(after, reading)[1]

    shapes = {name: np.shape(part)[1:] for name, part in zip(blind._fields, blind, strict=True)}
    kernel = legged.compile(step, memory=memory.shape, **shapes)
    forces, contacts, velocities = [], [], []
    for k in range(1, len(run.times)):
        memory, force, contact, v = kernel(memory, *(np.asarray(part)[k] for part in blind))
        forces.append(np.linalg.norm(force, axis=1))
        contacts.append(contact)
        velocities.append(v)
    loads, weight = np.linalg.norm(run.contacts.forces, axis=2), robot.mass * 9.81
    # Within the time constant a load changes by up to half of the weight; the mean error is ten times smaller.
    assert np.abs(np.array(forces) - loads[1:]).mean() < 0.05 * weight
    clear = (loads[1:] > 0.1 * weight) | (loads[1:] == 0.0)
    # A contact that begins or ends is seen two time constants later, in two of 25 periods of 20 ms for each stride.
    assert np.mean((np.array(contacts) > 0.5) != (loads[1:] > 0.0), where=clear) < 0.12
    assert np.sqrt(np.mean((np.array(velocities) - run.v[1:])[100:, 3:6] ** 2)) < 0.03


@pytest.mark.slow
def test_a_robot_walks_without_force_sensors():
    robot = robots.spatial_quadruped()
    law = controllers.Estimated(
        controllers.Locomotion("trot", controllers.Command(vx=0.3)),
        estimation.TorqueContacts(estimation.InvariantFilter()),
        estimation.Instruments(seed=2, false_contacts=1.0),  # feet report the opposite of the truth
    )
    steps = legged.TimeStepping(2e-3)
    run = legged.simulate(robot, law, ground=legged.Rigid(), until=2.0, integrator=steps, sample=2e-3)
    assert run.duration == 2.0 and run.q[-1, 4] > 0.25
