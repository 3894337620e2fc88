"""Ground laws compiled: the same forces as in plain NumPy, for every law, friction and terrain."""

from itertools import product

import numpy as np
import pytest

from legged.compiler import compile as compile_function
from legged.ground import (
    AxisFriction,
    AzadFeatherstone,
    BristleFriction,
    Flat,
    Frictionless,
    Ground,
    HeightMap,
    HuntCrossley,
    KelvinVoigt,
    PaperNormal,
    Slope,
    Stairs,
    VectorFriction,
)

NORMALS = [
    PaperNormal(2500.0, 3464.0),
    KelvinVoigt(1e5, 300.0),
    HuntCrossley(5e6, 0.4),
    AzadFeatherstone(5e6, 6e4),
]
FRICTIONS = [Frictionless(), AxisFriction(0.7, 1500.0), VectorFriction(0.7, 1500.0), BristleFriction(0.8, 1e5, 900.0)]
TERRAINS = [Flat(0.01), Slope(0.2, 1.0), Stairs((-0.2, 0.3), (0.02, -0.05), ramp=0.1)]
TERRAINS += [HeightMap(np.random.default_rng(5).uniform(-0.05, 0.05, (7, 9)), 0.1, (-0.2, -0.3))]


def names(part):
    return type(part).__name__


@pytest.mark.parametrize(("normal", "friction"), list(product(NORMALS, FRICTIONS)), ids=names)
def test_compiled_ground_gives_the_same_forces(normal, friction):
    rng = np.random.default_rng(2)
    for terrain in TERRAINS:
        ground = Ground(normal, friction, terrain)
        n = 3
        kernel = compile_function(ground.forces, None, points=(n, 3), velocities=(n, 3), memory=(n * friction.memory,))
        points = rng.uniform(-0.5, 0.5, size=(40, n, 3)) * [1.0, 1.0, 0.2]
        velocities = rng.normal(size=(40, n, 3))
        memory = 1e-3 * rng.normal(size=(40, n * friction.memory))
        forces, rate = ground.forces(points, velocities, memory)
        compiled_forces, compiled_rate = kernel(points, velocities, memory)
        np.testing.assert_allclose(compiled_forces, forces, rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(compiled_rate, rate, rtol=1e-10, atol=1e-9)
        for k in range(40):
            one, _ = ground.forces(points[k], velocities[k], memory[k])
            np.testing.assert_array_equal(one, forces[k])


def test_a_point_at_rest_on_the_surface_feels_nothing_and_has_no_nan():
    for normal, friction in product(NORMALS, FRICTIONS):
        ground = Ground(normal, friction)
        kernel = compile_function(ground.forces, None, points=(1, 3), velocities=(1, 3), memory=(friction.memory,))
        still = np.zeros((1, 3))
        forces, rate = kernel(still, still, np.zeros(friction.memory))
        np.testing.assert_array_equal(forces, 0.0)
        np.testing.assert_array_equal(rate, 0.0)
