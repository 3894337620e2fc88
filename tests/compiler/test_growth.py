"""The work of tracing and compilation grows in proportion to the links of a robot."""

import tracemalloc
from functools import partial

import pytest
from oracles.calls import calls

import legged
import robots
from legged.compiler import record, run_passes
from legged.compiler.codegen import selection
from legged.compiler.codegen.element_type import element_type
from legged.compiler.codegen.kernels.outlined import OutlinedKernelWriter
from legged.compiler.layouts import layouts
from legged.compiler.passes import pipeline
from legged.compiler.passes.outline import regions
from legged.compiler.passes.pipeline import trace

QUICK = "test_no_region_is_larger_than_the_limit"
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


def test_code_of_legs_grows_less_than_their_number(monkeypatch):
    """Constants of some legs let factors be shared, which must not give every leg code of its own."""
    monkeypatch.setattr(pipeline, "OUTLINE_ALWAYS_NODES", 10_000)
    sizes = []
    for legs in (40, 80):
        graph = graph_of_legs(legs)
        sizes.append(OutlinedKernelWriter(graph, 1, 8, element_type(None)).operation_count)
    assert sizes[1] < 1.5 * sizes[0], sizes  # 1.75 times if the graph is simplified as a whole


def test_no_region_is_larger_than_the_limit(monkeypatch):
    """The base of many legs has a long sum, and the time of LLVM grows faster than the length of a function."""
    graph = graph_of_legs(40)
    monkeypatch.setattr(regions, "MAX_REGION_SIZE", 300)
    every = range(graph.input_size, graph.input_size + len(graph.nodes))
    split = regions.split_into_regions(graph, every)
    assert max(map(len, split)) == 300 and sorted(i for region in split for i in region) == list(every)
    place = {i: k for k, region in enumerate(split) for i in region}
    for i, node in enumerate(graph.nodes, graph.input_size):
        assert all(place.get(a, 0) <= place[i] for a in node.arguments if type(a) is int)


def graph_of_legs(legs):
    """Return the graph of forward dynamics of a star for code."""
    robot = robots.star(legs)
    return trace(legged.forward_dynamics, {"q": (robot.nq,), "v": (robot.nv,), "tau": (robot.nv,)}, (robot,))


def test_regions_of_a_graph_take_little_memory_for_a_node():
    """The memory for 1000 links was largest while a graph was split by dictionaries, of 190 bytes a node."""
    robot = robots.chain(200, twist=0.7)
    graph = record(legged.forward_dynamics, {"q": (robot.nq,), "v": (robot.nv,), "tau": (robot.nv,)}, (robot,))
    every = range(graph.input_size, graph.input_size + len(graph.nodes))
    tracemalloc.start()
    try:
        regions.split_into_regions(graph, every)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(graph.nodes)
    finally:
        tracemalloc.stop()
