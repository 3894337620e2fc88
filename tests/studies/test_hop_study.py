"""Hops of a machine with one motor: laws of flight and landing, balance after several hops, slip."""

import numpy as np
import pytest

import legged
from controllers.balance.planar import HoppingControl, HopPlan, PlanarBalance
from controllers.balance.planar.hopping import FLIGHT, quintic
from examples.studies.balance.hop_study import HopStudy, write
from legged.errors import ArgumentError, DefinitionError
from robots import planar_hopper, two_link_hopper


@pytest.fixture(scope="module")
def study():
    return HopStudy((0.8, 0.3), hops=2, duration=14.5)


@pytest.fixture(scope="module")
def single():
    return HopStudy((0.8,), hops=1, duration=5.8, step=1e-3)


@pytest.mark.parametrize("friction", [0.8, 0.3])
def test_two_hops_in_a_row_end_in_balance(study, friction):
    run = study.runs[friction]
    hops = study.hops_of(run)
    assert run.ended == "" and len(hops) == 2
    for hop in hops:
        assert 0.2 < hop.flight < 0.35 and hop.clearance > 0.01 and 0.3 < hop.distance < 0.5
        assert hop.velocity[2] > 1.0
        assert hop.deviation < 5e-6  # the error of time stepping is of second order in the step
        assert hop.momentum_change < 2e-6 * abs(hop.momentum)
    assert max(hop.error for hop in hops) < 0.01
    assert np.abs(run.v[-1]).max() < 0.05
    assert run.energy_drift < 0.02 < 0.01 * run.energy.actuator_work[-1]  # first order in the step, from the impacts


def test_the_foot_slips_on_little_friction_only(study):
    few, many = (max(hop.slip for hop in study.hops_of(run)) for run in study.runs.values())
    assert few < 2e-3 < 5e-3 < many < 0.1


def test_momentum_and_parabola_of_flight_are_exact(single):
    study = single
    run = study.runs[0.8]
    k = int(np.flatnonzero(run.memory[:, 0] == FLIGHT)[0])
    control = study.control

    def law(t, q, v, wrenches):
        return control.torque(t + run.times[k], 0, q, v, wrenches, run.memory[k])

    steps = legged.RungeKutta4(step=2e-4)
    flight = legged.simulate(study.model.robot, law, until=0.2, q=run.q[k], v=run.v[k], integrator=steps, sample=0.01)
    c, h = study.centers(flight)
    t = flight.times[:, None]
    assert np.abs(flight.tau[:, 3]).max() > 1.0  # the motor works
    assert np.ptp(flight.q[:, 3]) > 0.05
    assert np.ptp(h[:, 1]) < 1e-9 * abs(h[0, 1]) + 1e-12  # of the method: its error is of fourth order
    assert np.abs(c - (c[0] + t * h[0, 3:] / study.model.mass + 0.5 * t**2 * study.model.robot.gravity)).max() < 1e-10
    assert flight.energy_drift < 1e-8  # the works of the motor, integrated with the same error


def test_the_torque_gives_the_joint_acceleration_in_flight_and_on_the_foot():
    model = PlanarBalance(two_link_hopper(), {"hip": 1.0}, contact="foot")
    control = HoppingControl(model, HopPlan())
    q, v = np.array([0.3, 0.1, 0.8, -0.4]), np.array([0.5, 0.2, -0.7, 1.2])
    tau = np.array([0.0, 0.0, 0.0, control._flying(q, v, 7.0)])
    assert np.isclose(legged.forward_dynamics(model.robot, q, v, tau)[3], 7.0, rtol=1e-10)
    tau[3] = control._standing(q, v, 7.0)
    at = model.equations(q, v)
    assert np.isclose(np.linalg.solve(at.H, np.array([0.0, tau[3]]) - at.h)[1], 7.0, rtol=1e-10)


def test_the_flight_tracks_its_trajectory_with_the_bandwidth():
    """The joint accelerates by the quintic's acceleration + omega^2 e + 2 omega e'."""
    model, plan = PlanarBalance(two_link_hopper(), {"hip": 1.0}, contact="foot"), HopPlan()
    control = HoppingControl(model, plan)
    q, v, memory = (
        np.array([0.3, 0.1, 0.8, -0.4]),
        np.array([0.5, 0.2, -0.7, 1.2]),
        np.array([FLIGHT, 1.0, 1, 0.2, 2.0]),
    )
    tau = control.torque(1.05, 0, q, v, np.zeros((len(model.robot.links), 6)), memory)
    position, velocity, acceleration = quintic(0.05, plan.tuck_time, 0.2, 2.0, plan.landing, 0.0)
    w = control.bandwidth
    expected = acceleration + w**2 * (position - q[3]) + 2.0 * w * (velocity - v[3])
    assert np.isclose(legged.forward_dynamics(model.robot, q, v, tau)[3], expected, rtol=1e-9)


@pytest.mark.parametrize(("share", "begins"), [(0.0, True), (0.9, True), (1.1, False), (-0.9, True), (-1.1, False)])
def test_a_crouch_begins_where_the_center_of_mass_is_above_the_foot(share, begins):
    model = PlanarBalance(two_link_hopper(), {"hip": 1.0}, contact="foot")
    control = HoppingControl(model, HopPlan())
    q, v = control.initial_state(model.robot)
    q[0] += np.arctan(share * control.settled)  # the lean
    x, _, z = model.center(q)
    assert x / z == pytest.approx(share * control.settled, abs=1e-9)
    memory = control.update(0.3, 0, q, v, np.ones((len(model.robot.links), 6)), np.zeros(5))
    assert (memory[0] == 1.0) == begins


@pytest.mark.parametrize(("share", "begins"), [(0.9, True), (1.1, False), (-0.9, True), (-1.1, False)])
def test_a_crouch_begins_where_the_hip_is_at_rest(share, begins):
    """The hip's velocity counts as the angle by which it turns in the time constant of toppling."""
    model = PlanarBalance(two_link_hopper(), {"hip": 1.0}, contact="foot")
    control = HoppingControl(model, HopPlan())
    q, v = control.initial_state(model.robot)
    rate = share * control.settled / model.state(q, v).time_constant
    v = model.equations(q, v).N @ np.array([0.0, rate])  # the foot is at rest
    assert np.abs(legged.frame_jacobian(model.robot, q, "foot")[3:] @ v).max() < 1e-12
    memory = control.update(0.3, 0, q, v, np.ones((len(model.robot.links), 6)), np.zeros(5))
    assert (memory[0] == 1.0) == begins


def test_the_quintic_has_its_ends_and_derivatives():
    ends = 0.4, (1.0, 2.0), (-0.5, -3.0)
    assert np.allclose(quintic(0.0, ends[0], *ends[1], *ends[2]), (1.0, 2.0, 0.0))
    assert np.allclose(quintic(0.4, ends[0], *ends[1], *ends[2]), (-0.5, -3.0, 0.0), atol=1e-12)
    assert np.allclose(quintic(0.5, ends[0], *ends[1], *ends[2])[0], -0.8)
    h = 1e-5
    ahead, here, behind = (quintic(x, ends[0], *ends[1], *ends[2]) for x in (0.1 + h, 0.1, 0.1 - h))
    for k in range(2):
        assert np.isclose((ahead[k] - behind[k]) / (2 * h), here[k + 1], rtol=1e-6)


def test_figures_and_animation_are_written(single, tmp_path):
    names = {path.name for path in write(single, tmp_path)}
    assert names == {"poses.png", "history-0.8.png", "animation.gif", "animation.html"}
    assert len(single.table().rows) == 1


def test_hops_need_one_joint_and_valid_numbers():
    with pytest.raises(ArgumentError, match="tuck_time"):
        HopPlan(tuck_time=0.0)
    model = PlanarBalance(planar_hopper(), {"hip": 1.0}, contact="toe")
    with pytest.raises(ArgumentError, match="hops"):
        HoppingControl(model, HopPlan(), hops=-1)
    control, (q, v) = HoppingControl(model, HopPlan()), (np.zeros(5), np.zeros(5))
    with pytest.raises(DefinitionError, match="one joint"):
        control.start(model.robot, None, q, v)
