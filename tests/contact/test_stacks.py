"""Stacks of boxes with large ratios of masses: the contact law holds in a single step, from no initial guess."""

from dataclasses import replace

import numpy as np
import pytest

import legged
from legged.contact import Box, FreeBody, Rigid
from legged.contact.scene import Scene
from legged.simulation.loop.chart import flight

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
    solution = step(scene, qs, [np.zeros(6)] * len(masses))
    assert solution.residual < 1e-5  # [m/s], the tolerance of the solver
    assert max(np.abs(v).max() for v in solution.v_next) < 1e-5  # [m/s], [rad/s], where free fall gives 1e-2
    weights = G * np.cumsum(masses[::-1])[::-1]
    normal = solution.p.reshape(len(masses), 4, 3)[:, :, 0].sum(axis=1) / STEP
    assert np.abs(normal / weights - 1.0).max() < 1e-3


def test_sweeps_alone_do_not_carry_the_heavy_box():
    """The reason for Newton's method, and that the residual says so."""
    scene, qs = stack([1.0, 1.0, 1000.0], iterations=0)
    solution = step(scene, qs, [np.zeros(6)] * 3)
    assert solution.residual > 1e-3  # [m/s]
    assert max(np.abs(v).max() for v in solution.v_next) > 1e-3


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


CARD, LEAN = (0.01, 0.3, 0.4), np.radians(25.0)  # [m], angle of the cards to the vertical, [rad]


def card_house(friction):
    """Return two cards that lean on each other along their upper inner edges, and their configurations."""
    thick, _, high = CARD
    along, across = np.array([np.sin(LEAN), 0.0, np.cos(LEAN)]), np.array([np.cos(LEAN), 0.0, -np.sin(LEAN)])
    top, foot = 0.5 * (thick * across + high * along), 0.5 * (thick * across - high * along)  # of the left card
    inertia, shape = legged.box_inertia(0.1, CARD), [Box(CARD)]
    robot = legged.RobotBuilder("left", legged.Link("left", inertia, shapes=shape)).build()
    q = robot.neutral()
    q[:4], q[4:] = (np.cos(LEAN / 2), 0.0, np.sin(LEAN / 2), 0.0), (-top[0], 0.0, -foot[2])
    place = (top[0], 0.0, -foot[2])
    right = FreeBody(
        "right", inertia, shape, position=place, quaternion=(np.cos(LEAN / 2), 0.0, -np.sin(LEAN / 2), 0.0)
    )
    pairs = ("left", "terrain"), ("right", "terrain"), ("left", "right")
    critical = -foot[0] / (top[2] - foot[2])  # moments of the weight and of the other card about the foot
    return Scene.of(robot, Rigid(friction * critical, pairs=pairs, tolerance=1e-8), [right]), [q, right.state()[0]]


@pytest.mark.parametrize(("ratio", "stands"), [(1.01, True), (0.99, False)])
def test_two_cards_stand_above_the_critical_friction(ratio, stands):
    """Their edges are parallel and have no common normal; by symmetry the force between them is horizontal."""
    scene, qs = card_house(ratio)
    solution = step(scene, qs, [np.zeros(6)] * 2)
    assert solution.residual < 1e-5
    speed = max(np.abs(v).max() for v in solution.v_next)
    assert speed < 1e-6 if stands else speed > 1e-4  # [m/s], [rad/s] after a step of 1 ms
