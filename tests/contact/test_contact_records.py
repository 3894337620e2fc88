"""Impulses, peaks and times of contacts in runs on rigid ground, and the check of the contact law."""

import numpy as np
import pytest

import legged
from legged.contact import FreeBody, Rigid, Sphere
from legged.errors import SimulationError, SimulationWarning
from tests.contact.test_rigid_rest import block

G = 9.81


def dropped(until=0.74, **options):
    """Return a run of a block of 2 kg that falls 0.1 m, with samples of 37 steps."""
    robot = block(lower_only=True)
    q = robot.neutral()
    q[6] = 0.05 + 0.1
    given = {"integrator": legged.TimeStepping(1e-3), "sample": 0.037, "fall": False, **options}
    return legged.simulate(robot, ground=Rigid(0.5), q=q, until=until, **given)


@pytest.mark.parametrize("compiled", [True, False])
def test_impulses_are_the_change_of_momentum_in_every_sample_interval(compiled):
    run = dropped(compiled=compiled)
    momentum = 2.0 * np.einsum("tij,tj->ti", run.base.rotation, run.v[:, 3:6])
    change = run.contacts.impulse.sum(axis=1) + np.outer(np.append(0.0, np.diff(run.times)), [0.0, 0.0, -2.0 * G])
    assert np.abs(change[1:] - np.diff(momentum, axis=0)).max() < 1e-12
    assert not run.contacts.impulse[0].any()
    sums = run.contacts.forces[1:] * np.diff(run.times)[:, None, None]
    np.testing.assert_allclose(sums, run.contacts.impulse[1:], rtol=1e-12, atol=1e-15)


def test_peak_and_first_touch_are_those_of_the_impact():
    """The block closes its gap at sqrt(2 g d) in the step that holds the time sqrt(2 d / g)."""
    run, touch, speed = dropped(), np.sqrt(0.2 / G), np.sqrt(0.2 * G)
    assert np.abs(run.contacts.first_touch - touch).max() < 1.5e-3  # [s], one and a half steps
    last = dropped(until=0.148)  # four samples, the touch behind the third
    np.testing.assert_array_equal(last.contacts.first_touch, run.contacts.first_touch)
    share = (
        run.contacts.peak[-1].sum() * 1e-3 / (2.0 * speed)
    )  # the impact takes one step to close the gap, one to stop
    assert 0.5 < share < 1.0 + 1e-2  # with the weight of a step, 1e-2 N s of 2.8 N s
    assert run.contacts.peak[-1].sum() > 10.0 * run.contacts.forces.sum(axis=1).max()  # means over 37 steps
    before = run.times < touch - 1.5e-3
    assert not run.contacts.peak[before].any()
    foot = run.contact(run.contacts.names[0])
    assert foot.first_touch == run.contacts.first_touch[0] and foot.peak[-1] == run.contacts.peak[-1, 0]


def test_contacts_in_the_air_have_no_first_touch():
    robot = block()
    run = legged.simulate(robot, ground=Rigid(0.5), q=robot.neutral() + np.eye(7)[6], until=0.05, fall=False)
    assert np.isnan(run.contacts.first_touch).all()
    assert not run.contacts.impulse.any()


def heavy_on_light(ratio):
    """Return a ball of 1 kg on the ground and one of another mass that hits it."""
    link = legged.Link("below", legged.sphere_inertia(1.0, 0.1), {"skin": Sphere(0.1)}, shapes=[Sphere(0.1)])
    robot = legged.RobotBuilder("below", link).build()
    start = {"position": (0.0, 0.0, 0.3), "velocity": (0.0, 0.0, -0.1)}
    above = FreeBody("above", legged.sphere_inertia(ratio, 0.1), [Sphere(0.1)], **start)
    q = robot.neutral()
    q[6] = 0.1
    return {"robot": robot, "bodies": [above], "q": q, "until": 0.05, "fall": False}


def test_a_violated_contact_law_is_a_warning_or_an_error_of_choice():
    """A ball of 100 kg hits one of 1 kg: one sweep cannot stop it."""
    scene = heavy_on_light(100.0)
    with pytest.warns(SimulationWarning, match=r"the contact solver left a residual of .* take more iterations"):
        run = legged.simulate(scene.pop("robot"), ground=Rigid(0.5, sweeps=1, iterations=0), **scene)
    assert run.contacts.worst_residual[-1] > 0.01
    assert len(run.warnings) == 1
    scene = heavy_on_light(100.0)
    with pytest.raises(SimulationError, match="the contact solver left a residual") as caught:
        legged.simulate(scene.pop("robot"), ground=Rigid(0.5, sweeps=1, iterations=0, strict=True), **scene)
    assert caught.value.run.contacts.worst_residual[-1] == run.contacts.worst_residual[-1]
    scene = heavy_on_light(100.0)
    with pytest.warns(SimulationWarning, match="in a time step of member 1"):
        legged.rollout(
            scene.pop("robot"),
            ground=Rigid(0.5, sweeps=1, iterations=0),
            vary={"bodies.0.inertia.mass": [1.0, 100.0]},
            **scene,
        )
