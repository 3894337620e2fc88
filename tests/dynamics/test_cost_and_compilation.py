"""Cost of the recursions, linear in the number of links, and agreement of plain, recorded and compiled evaluation."""

import numpy as np
import pytest

import legged
import robots
from legged.compiler import count, record

RECURSIONS = [legged.inverse_dynamics, legged.floating_inverse_dynamics, legged.forward_dynamics, legged.bias_forces]


@pytest.mark.parametrize("function", RECURSIONS)
def test_each_further_link_of_a_chain_costs_the_same(function):
    steps = np.diff([count(function, robots.chain(n)).total for n in (6, 7, 8, 14, 15)])[[0, 1, 3]]
    assert steps.min() > 0
    # a count quadratic in n would give steps in the ratio 13 : 15 : 29; common subexpressions vary by a few operations
    assert np.ptp(steps) <= 0.02 * steps.mean()


@pytest.mark.parametrize("function", RECURSIONS)
@pytest.mark.parametrize("branching", [0.5, 1.0])
def test_a_tree_costs_no_more_than_a_chain_of_as_many_links(function, branching):
    def cost(branching):
        kinds = {"joints": ("revolute",), "bases": ("fixed",), "axes": "perpendicular", "branching": branching}
        return sum(count(function, legged.random_tree(seed, 16, **kinds)).total for seed in range(2))

    assert cost(branching) < cost(0.0)


ROBOTS = 300
DAILY = 2  # the others, mostly compile time, run in `make test-slow`
SEEDS = [pytest.param(seed, marks=() if seed < DAILY else pytest.mark.slow) for seed in range(ROBOTS)]
FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "inertia_matrix")


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_recorded_and_compiled_evaluation_agree(seed):
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
