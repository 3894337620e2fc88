"""The semismooth Newton method: its linear model in each state of a contact, and few iterations on a stack."""

from dataclasses import replace

import numpy as np
import pytest

import legged
from legged.contact import Box, FreeBody, Rigid
from legged.contact.impulses import semismooth
from legged.contact.impulses.newton import projection
from legged.contact.impulses.semismooth import linearization

STATES = {
    "open": ([0.3, 0.1, 0.0], [2.0, 0.3, -0.1]),
    "sticks": ([1.0, 0.1, -0.2], [0.1, 0.02, 0.01]),
    "slides": ([1.0, 0.5, -0.2], [0.1, -0.8, 0.4]),
}
TARGET, R, MU, REDUCTION = 0.05, 0.7, 0.6, 1e-6  # [m/s], [1/kg]


def at(p, u):
    """Return the residual of the projections, project(p - (u - target) / r) - p."""
    return projection(p, u, TARGET, R, MU)[0] - p


@pytest.mark.parametrize("state", STATES)
def test_the_step_solves_the_linearized_projections(state):
    p, u = (np.array(part) for part in STATES[state])
    moved, slopes = linearization(p, u, TARGET, R, MU, REDUCTION)
    du, size = np.array([0.3, -0.2, 0.5]), 1e-6
    dp = moved - slopes @ du
    columns = [(at(p + size * row, u) - at(p - size * row, u)) / (2.0 * size) for row in np.eye(3)]
    rates = [(at(p, u + size * row) - at(p, u - size * row)) / (2.0 * size) for row in np.eye(3)]
    left = at(p, u) + np.array(columns).T @ dp + np.array(rates).T @ du
    assert np.abs(left).max() < 3.0 * REDUCTION * max(1.0, np.abs(dp).max())


def test_a_contact_that_cannot_move_loses_its_impulse():
    moved, slopes = linearization(np.array([1.0, 0.1, 0.0]), np.zeros(3), 0.0, 0.0, MU, REDUCTION)
    np.testing.assert_allclose(moved, [-1.0, -0.1, 0.0], atol=1e-12)
    assert not slopes.any()


def test_a_stack_from_no_guess_takes_few_iterations(monkeypatch):
    from tests.contact.test_stacks import stack, step

    count, solved = [], semismooth.linearization

    def counted(*numbers):
        count.append(None)
        return solved(*numbers)

    monkeypatch.setattr("legged.contact.impulses.newton.linearization", counted)
    scene, qs = stack([1.0] * 10)
    solution = step(scene, qs, [np.zeros(6)] * 10)
    assert solution.residual < 1e-9  # [m/s]
    assert len(count) <= 8 * len(scene.candidates)  # seven iterations, without sweeps before them
    again = step(scene, qs, [np.zeros(6)] * 10, solution.p)
    assert again.residual <= solution.residual and np.array_equal(again.p, solution.p)


def test_an_object_between_fingers_stays_there():
    """The distribution of pressure is indeterminate.

    Where sweeps came first, Newton's method moved the pressure of both fingers to one corner, about which the object
    turned and slid down.
    """
    finger = legged.Link("finger", legged.box_inertia(0.3, (0.05, 0.1, 0.1)), shapes=[Box((0.05, 0.1, 0.1))])
    builder = legged.RobotBuilder("gripper", legged.Link("hand"), base=legged.FixedBase())
    for name, x, axis in (("left", -0.075, (1.0, 0.0, 0.0)), ("right", 0.075, (-1.0, 0.0, 0.0))):
        link = replace(finger, name=name)
        builder.add(legged.Prismatic(f"{name}_slide", axis), link, to="hand", at=(x, 0.0, 1.0))
    size = (0.1, 0.06, 0.06)
    held = FreeBody("object", legged.box_inertia(0.5, size), [Box(size)], position=(0.0, 0.0, 1.0))
    ground = Rigid(0.5, pairs=(("left", "object"), ("right", "object")))
    press = 20.0  # [N]: friction holds 20 N, the object weighs 4.9 N
    run = legged.simulate(
        builder.build(), lambda t, q, v, w: press + 0.0 * q, ground=ground, bodies=[held], until=1.5, fall=False
    )
    position = run.body("object").position
    assert np.abs(position - position[0]).max() < 1e-11  # 1e-9 m where sweeps come first
    assert run.contacts.worst_residual.max() < 2e-12  # each step converges
    pressure = np.abs(run.contacts.impulse[1:, :, 0])
    assert pressure.min() > 0.9 * pressure.mean()  # no corner loses its share
