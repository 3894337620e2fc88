"""Reduced models: terms that matter little along given motions are dropped, and the error keeps to its bound."""

import numpy as np
import pytest

import legged
import robots
from legged.compiler import LookupTable, record
from legged.compiler.passes.drop_terms import drop_terms
from legged.errors import ArgumentError, ShapeError, TraceError


def swing(robot: legged.Robot, amplitude: float = 0.3, phase: float = 0.0, samples: int = 40):
    """Return q, v, vdot along a motion in which every joint swings and the base rests."""
    t = np.linspace(0.0, 1.0, samples)[:, None]
    angle, rate = 2 * np.pi * t + phase + np.arange(robot.nj), 2 * np.pi
    q = np.tile(robot.neutral(), (samples, 1))
    v, vdot = np.zeros((2, samples, robot.nv))
    q[:, robot.base.nq :] += amplitude * np.sin(angle)
    v[:, robot.base.nv :] = amplitude * rate * np.cos(angle)
    vdot[:, robot.base.nv :] = -amplitude * rate**2 * np.sin(angle)
    return q, v, vdot


@pytest.mark.parametrize("robot", [robots.spatial_quadruped(), robots.chain(4, twist=0.7, base=legged.FixedBase())])
@pytest.mark.parametrize("tolerance", [1e-3, 0.02, 0.2])
def test_the_error_keeps_to_the_tolerance_and_is_that_of_the_reduced_function(robot, tolerance):
    motion = swing(robot)
    short = legged.reduced_model(robot, *motion, tolerance=tolerance)
    exact = np.array([legged.inverse_dynamics(robot, *row) for row in zip(*motion, strict=True)])
    values = np.abs(short.kernel(*motion) - exact).max(axis=0)
    rounding = 1e-9 * np.abs(exact).max()
    assert short.errors == pytest.approx(values, abs=rounding)
    assert (values <= tolerance * np.abs(exact).max(axis=0) + rounding).all()
    assert short.largest == pytest.approx(np.abs(exact).max(axis=0), abs=rounding)
    assert short.errors_along(*motion) == pytest.approx(values, abs=rounding)


def test_more_tolerance_saves_more_and_none_keeps_what_the_motion_needs():
    robot = robots.spatial_quadruped()
    motion = swing(robot)
    reduced = [legged.reduced_model(robot, *motion, tolerance=tolerance) for tolerance in (0.0, 0.01, 0.1, 0.3)]
    saved = [short.saved for short in reduced]
    assert saved == sorted(saved) and saved[-1] > saved[0] + 0.1
    assert reduced[0].error < 1e-12  # of the terms of a base at rest, which are zero
    assert all(short.after.M + short.after.A < short.before.M + short.before.A for short in reduced[1:])
    counts = legged.count(legged.inverse_dynamics, robot)
    assert (reduced[0].before.M, reduced[0].before.A) == (counts.M, counts.A)


def test_terms_are_named_by_their_modules_and_other_motions_have_larger_errors():
    robot = robots.spatial_quadruped()
    short = legged.reduced_model(robot, *swing(robot), tolerance=0.05)
    assert {term.label.module for term in short.dropped} <= {m.index for m in robot.modules}
    text = short.table().text()
    assert "M_4: leg4_shank" in text and f"{len(short.dropped)}" in text and "Saved:" in text
    elsewhere = short.errors_along(*swing(robot, amplitude=1.0, phase=1.0))
    assert elsewhere.max() > short.errors.max()


def test_a_term_by_hand():
    """x + 0.001 y with y up to 1 loses y at a tolerance of 1 %, and x y sin(z) with z = 0 loses everything."""
    graph = record(lambda x, y, z: np.stack([x + 0.001 * y, 1.0 + x * np.sin(z)]), {"x": (), "y": (), "z": ()})
    x, y = np.linspace(1.0, 2.0, 5), np.linspace(-1.0, 1.0, 5)
    reduced = drop_terms(graph, (x, y, np.zeros(5)), np.array([2.0, 1.0]), 0.01)
    assert reduced.graph.evaluate(1.5, 1.0, 0.3) == pytest.approx([1.5, 1.0])
    assert reduced.errors == pytest.approx([0.001, 0.0])
    assert sorted(round(term.contribution, 12) for term in reduced.dropped) == [0.0, 0.0005]
    with pytest.raises(TraceError, match="cannot be dropped"):
        table = LookupTable([1.0, 2.0])
        looked_up = record(lambda x: x + table(x), {"x": ()})
        drop_terms(looked_up, (x,), np.ones(1), 0.01)


def test_terms_stay_whose_error_is_larger_than_its_first_order():
    """The slope of sin is 0 at x + y = pi / 2, so that to first order neither term contributes."""
    graph = record(lambda x, y: np.stack([np.sin(x + y)]), {"x": (), "y": ()})
    quarter = np.full(3, np.pi / 4)
    reduced = drop_terms(graph, (quarter, quarter), np.ones(1), 0.01)
    assert not reduced.dropped and not reduced.errors.any()


def test_motions_that_do_not_fit_are_refused():
    robot = robots.chain(2)
    q, v, vdot = swing(robot)
    with pytest.raises(ShapeError, match="the same number of rows"):
        legged.reduced_model(robot, q, v[1:], vdot)
    with pytest.raises(ShapeError, match=r"v must be \(n, 8\)"):
        legged.reduced_model(robot, q, v[:, 1:], vdot)
    with pytest.raises(ArgumentError, match="tolerance must be"):
        legged.reduced_model(robot, q, v, vdot, tolerance=1.0)
