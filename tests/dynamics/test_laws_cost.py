"""The cost of the recursions grows with the number of links, not with a power of it: exact operation counts."""

import numpy as np
import pytest

import legged
import robots
from legged.compiler import count

RECURSIONS = [legged.inverse_dynamics, legged.floating_inverse_dynamics, legged.forward_dynamics, legged.bias_forces]


@pytest.mark.parametrize("function", RECURSIONS)
def test_each_further_link_of_a_chain_costs_the_same(function):
    steps = np.diff([count(function, robots.chain(n)).total for n in (6, 7, 8, 14, 15)])[[0, 1, 3]]
    assert steps.min() > 0
    # a count that grew with n^2 would give steps as 13 : 15 : 29; shared factors fall here or there by a few
    assert np.ptp(steps) <= 0.02 * steps.mean()


@pytest.mark.parametrize("function", RECURSIONS)
@pytest.mark.parametrize("branching", [0.5, 1.0])
def test_a_tree_costs_no_more_than_a_chain_of_as_many_links(function, branching):
    def cost(branching):
        kinds = {"joints": ("revolute",), "bases": ("fixed",), "axes": "perpendicular", "branching": branching}
        return sum(count(function, legged.random_tree(seed, 24, **kinds)).total for seed in range(3))

    assert cost(branching) < cost(0.0)
