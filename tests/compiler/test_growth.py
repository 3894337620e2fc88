"""The work of tracing and compilation grows in proportion to the links of a robot."""

from functools import partial

import pytest
from oracles.calls import calls

import legged
import robots
from legged.compiler import record, run_passes
from legged.compiler.codegen import selection
from legged.compiler.layouts import layouts

GROWING = {"legs": robots.star, "one chain": lambda n: robots.chain(3 * n, twist=0.7)}
"""Robots of 3 n links."""


def work_of_passes(robot):
    """Return the number of calls of each pass for forward dynamics."""
    shapes = {"q": (robot.nq,), "v": (robot.nv,), "tau": (robot.nv,)}
    tracing = partial(record, legged.forward_dynamics, shapes, (robot,))
    graph = tracing()  # the robot has computed now what it computes once
    simplification = partial(run_passes, graph, simplified=True)
    return {
        "tracing": calls(tracing),
        "simplification": calls(simplification),
        "code": calls(partial(selection.single_state_module, simplification().graph)),
        "layouts": calls(partial(layouts, robot, "forward_dynamics", list(shapes), 1)),
    }


@pytest.mark.parametrize("name", GROWING)
def test_work_of_each_pass_grows_in_proportion_to_the_links(name):
    small, middle, large = (work_of_passes(GROWING[name](n)) for n in (15, 30, 60))
    ratios = {key: (large[key] - middle[key]) / (middle[key] - small[key]) for key in small}
    # Twice the links are twice the work. The number of templates depends on how constants of legs happen to agree.
    code = ratios.pop("code")
    assert 1.8 < code < 2.3 and all(1.95 < ratio < 2.05 for ratio in ratios.values()), (code, ratios)
