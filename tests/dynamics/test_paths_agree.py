"""One algorithm, three paths: plain numbers, the recorded graph that is counted, and machine code."""

import numpy as np
import pytest

import legged
from legged.compiler import record

ROBOTS = 300
DAILY = 12  # the rest, mostly LLVM's time, is for `make test-slow`
SEEDS = [pytest.param(seed, marks=() if seed < DAILY else pytest.mark.slow) for seed in range(ROBOTS)]
FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "inertia_matrix")


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_counted_and_compiled_numbers_agree(seed):
    robot = legged.random_tree(seed)
    rng = np.random.default_rng(seed)
    q, v, force = legged.random_configuration(robot, rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    for name in FUNCTIONS:
        function = getattr(legged, name)
        arguments = (q,) if name == "inertia_matrix" else (q, v, force)
        shapes = {f"x{i}": x.shape for i, x in enumerate(arguments)}
        plain = function(robot, *arguments)
        counted = record(lambda *x, f=function, r=robot: f(r, *x), shapes).evaluate(*arguments)
        compiled = legged.compile(function, robot)(*arguments)
        # Sums are taken in other orders; forward dynamics divides by articulated inertias, which amplifies rounding.
        tolerance = 1e-10 if name == "forward_dynamics" else 1e-12
        scale = max(float(np.abs(plain).max(initial=0.0)), 1e-6)
        assert np.abs(counted - plain).max(initial=0.0) <= tolerance * scale
        assert np.abs(compiled - plain).max(initial=0.0) <= tolerance * scale
