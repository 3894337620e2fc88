"""Contacts from joint torques: the momentum balance of random robots, and a walk without force sensors."""

from dataclasses import replace

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


@pytest.fixture(scope="module")
def walk():
    """Return (robot, run) of a trot on rigid ground."""
    robot = robots.spatial_quadruped()
    law = controllers.Locomotion("trot", controllers.Command(vx=0.3))
    steps = legged.TimeStepping(2e-3)
    return robot, legged.simulate(robot, law, ground=legged.Rigid(), until=2.0, integrator=steps, sample=2e-3)


def readings(robot, run, instruments):
    torques = np.concatenate([run.tau[:1], run.tau[:-1]])[:, 6:]  # since the last reading
    return estimation.instrument_readings(
        robot, instruments, run.times, run.q, run.v, run.contacts.forces, torques=torques
    )


def test_feet_are_felt_by_the_torques_alone(walk):
    robot, run = walk
    exact = readings(robot, run, estimation.Instruments(seed=1, force=0.0))
    blind = exact._replace(forces=0.0 * exact.forces, contacts=0.0 * exact.contacts + 0.5)
    estimator = estimation.TorqueContacts(estimation.InvariantFilter())
    started, _ = estimator.start(robot, run.q[0], run.v[0])
    memory_size = started._size + 2 * robot.nj
    found, seen = np.zeros((len(run.times), 4, 3)), estimation.run_estimator
    estimates = seen(robot, estimator, run.times, blind, run.q[0], run.v[0])
    for k in range(200, len(run.times), 50):
        short = seen(robot, estimator, run.times[: k + 1], _until(blind, k + 1), run.q[0], run.v[0])
        found[k] = short.memory[memory_size:].reshape(4, 3)
        loads, true = np.linalg.norm(found[k], axis=1), np.linalg.norm(exact.forces[k], axis=1)
        weight = robot.mass * 9.81
        # The observer is late by 5 ms, in which a load changes by up to a tenth of the weight.
        assert np.abs(loads - true).max() < 0.15 * weight, (k, loads, true)
    way = np.linalg.norm(np.diff(run.q[:, 4:6], axis=0), axis=1).sum()
    assert np.linalg.norm(estimates.q[-1, 4:6] - run.q[-1, 4:6]) < 0.01 * way
    assert np.sqrt(np.mean((estimates.v - run.v)[100:, 3:6] ** 2)) < 0.01


def _until(reading, end):
    return estimation.Reading(*(np.asarray(part)[:end] for part in reading))


def test_a_robot_walks_without_force_sensors(walk):
    robot, _ = walk
    deaf = replace(estimation.Instruments(seed=2), false_contacts=1.0)  # feet report the opposite of the truth
    law = controllers.Estimated(
        controllers.Locomotion("trot", controllers.Command(vx=0.3)),
        estimation.TorqueContacts(estimation.InvariantFilter()),
        deaf,
    )
    steps = legged.TimeStepping(2e-3)
    run = legged.simulate(robot, law, ground=legged.Rigid(), until=2.0, integrator=steps, sample=2e-3)
    assert run.duration == 2.0 and run.q[-1, 4] > 0.25
