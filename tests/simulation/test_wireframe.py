"""Wireframes lie on the surfaces of their shapes, and their lines have the lengths of the closed forms."""

import numpy as np
import pytest

from legged.contact import Capsule, Cylinder, Ellipsoid, Sphere
from legged.simulation.results.wireframe import wireframe

RADIUS, LENGTH = 0.3, 0.8  # [m]
CHORD = 2.0 * RADIUS * np.sin(np.pi / 16)  # [m], of circles with 16 points


@pytest.mark.parametrize(
    ("shape", "lengths", "count"),
    [
        (Sphere(RADIUS), [CHORD], 3 * 16),
        (Cylinder(RADIUS, LENGTH), [CHORD, LENGTH], 2 * 16 + 4),
        (Capsule(RADIUS, LENGTH), [CHORD, LENGTH], 2 * 16 + 4 + 4 * 8),
    ],
    ids=lambda value: type(value).__name__,
)
def test_lines_of_round_shapes_are_chords_and_straight_lines(shape, lengths, count):
    points, lines = wireframe([shape])
    drawn = np.array([np.linalg.norm(points[a] - points[b]) for a, b in lines])
    assert len({frozenset(line) for line in lines}) == count
    assert np.abs(drawn[:, None] - lengths).min(axis=1).max() < 1e-12
    beyond = points.copy()
    if not isinstance(shape, Sphere):
        beyond[:, 2] -= np.clip(beyond[:, 2], -LENGTH / 2, LENGTH / 2)
    np.testing.assert_allclose(np.linalg.norm(beyond, axis=1), RADIUS, rtol=1e-12)


def test_points_of_an_ellipsoid_lie_on_it():
    radii = np.array([0.1, 0.2, 0.5])
    points, _ = wireframe([Ellipsoid(tuple(radii))])
    np.testing.assert_allclose(np.linalg.norm(points / radii, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(points.max(axis=0), radii, rtol=1e-12)
