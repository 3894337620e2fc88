"""Stacks of boxes with large ratios of masses: the contact law holds in a single step, from no initial guess."""

from dataclasses import replace

import numpy as np
import pytest

import legged
from legged.contact import Box, FreeBody, Rigid
from legged.contact.scene import Scene
from legged.simulation.rigid_loop import flight

G, STEP, SIZE = 9.81, 1e-3, 0.1  # [m/s^2], [s], [m]


def stack(masses, friction=0.6, **law):
    """Return the scene of boxes of these masses on each other, and their configurations."""
    shape = Box((SIZE,) * 3)
    inertias = [legged.box_inertia(m, (SIZE,) * 3) for m in masses]
    bottom = legged.RobotBuilder("box0", legged.Link("box0", inertias[0], shapes=[shape])).build()
    q = bottom.neutral()
    q[6] = 0.5 * SIZE
    above = [
        FreeBody(f"box{i}", inertia, [shape], position=(0.0, 0.0, (i + 0.5) * SIZE))
        for i, inertia in enumerate(inertias[1:], 1)
    ]
    pairs = ("box0", "terrain"), *((f"box{i}", f"box{i + 1}") for i in range(len(masses) - 1))
    return Scene.of(bottom, Rigid(friction, pairs=pairs, **law), above), [q, *(body.state()[0] for body in above)]


def step(scene, qs, vs, guess=None):
    """Return the impulses of a step from velocities vs, the gaps closed."""
    v_free = [flight(robot, STEP, q, v) for robot, q, v in zip(scene.robots, qs, vs, strict=True)]
    extra = [np.zeros(6)] * len(qs)
    guess = np.zeros((len(scene.candidates), 3)) if guess is None else guess
    return scene.impulses(qs, vs, v_free, extra, STEP, scene.contact_geometry(qs), guess)


@pytest.mark.parametrize("masses", [[1.0] * 3, [1.0, 1.0, 1000.0], [1.0] * 10, [1.0] * 9 + [1000.0]])
def test_a_stack_stands_after_one_step_from_no_guess(masses):
    scene, qs = stack(masses)
    found = step(scene, qs, [np.zeros(6)] * len(masses))
    assert found.residual < 1e-5  # [m/s], the tolerance of the solver
    assert max(np.abs(v).max() for v in found.v_next) < 1e-5  # [m/s], [rad/s], where free fall gives 1e-2
    weights = G * np.cumsum(masses[::-1])[::-1]
    normal = found.p.reshape(len(masses), 4, 3)[:, :, 0].sum(axis=1) / STEP
    assert np.abs(normal / weights - 1.0).max() < 1e-3


def test_sweeps_alone_do_not_carry_the_heavy_box():
    """The reason for Newton's method, and that the residual says so."""
    scene, qs = stack([1.0, 1.0, 1000.0], iterations=0)
    found = step(scene, qs, [np.zeros(6)] * 3)
    assert found.residual > 1e-3  # [m/s]
    assert max(np.abs(v).max() for v in found.v_next) > 1e-3


def test_corners_of_a_box_at_rest_carry_equal_shares_without_tangential_forces():
    scene, qs = stack([2.0])
    p = step(scene, qs, [np.array([0.0, 0.0, 0.0, 0.0, 0.0, -1.0])]).p  # lands, from no guess
    assert np.abs(p[:, 0] / p[0, 0] - 1.0).max() < 1e-9
    assert np.abs(p[:, 1:]).max() < 1e-9 * p[0, 0]


@pytest.mark.parametrize("ratio", [1.0, 5.0])
def test_newton_and_many_sweeps_agree_on_sliding_boxes(ratio):
    """The upper box slides on the lower one without tipping: its velocity is unique, forces of corners are not."""
    known = [np.zeros(6), np.array([0.0, 0.0, 0.0, 0.5, 0.2, 0.0])]
    scene, qs = stack([1.0, ratio], friction=0.2, sweeps=1)
    newton = step(scene, qs, known)
    swept, _ = stack([1.0, ratio], friction=0.2, sweeps=400, iterations=0)
    reference = step(swept, qs, known)
    assert max(newton.residual, reference.residual) < 1e-5
    for v, w in zip(newton.v_next, reference.v_next, strict=True):
        assert np.abs(v - w).max() < 1e-4  # [m/s], [rad/s], of 0.5 m/s


@pytest.mark.parametrize(("excess", "slides"), [(-5e-3, False), (5e-3, True)])
def test_a_box_slides_above_the_friction_angle(excess, slides):
    """Gravity is tilted by an angle; the box starts at rest and slides for tan(angle) > mu alone."""
    scene, qs = stack([1.0])
    angle = np.arctan(0.6) + excess
    gravity = G * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    tilted = replace(scene, robots=tuple(replace(robot, gravity=gravity) for robot in scene.robots))
    v = np.zeros(6)
    for _ in range(3):
        v = step(tilted, qs, [v]).v_next[0]
    expected = 3.0 * STEP * G * (np.sin(angle) - 0.6 * np.cos(angle)) if slides else 0.0
    assert abs(v[3] - expected) < 1e-5  # [m/s], the tolerance of the solver; for this excess it slides at 1.7e-4
