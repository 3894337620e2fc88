"""SLP vectorization of alike modules, found from annotations alone: the same results for robots of every shape."""

import numpy as np
import pytest

import legged
import robots
from legged.compiler import module, record
from legged.compiler.codegen import llvm
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.call_batching import call_batches
from legged.compiler.passes.slp import Lane, Vectorization, vectorize

LEGS = {"thigh": 1.0, "shank": 0.5}


def plan_of(function, robot) -> tuple[Graph, Vectorization | None]:
    graph = legged.compile(function, robot).graph
    early = {i for calls, needed in call_batches(graph) for i in (*calls, *needed)}
    return graph, vectorize(graph, early, 8)


def legged_table(legs: int, seed: int) -> legged.Robot:
    """Return a body on any number of equal random legs, every second of them rotated about the vertical."""
    rng = np.random.default_rng(seed)
    leg = legged.Limb()
    for name, mass in LEGS.items():
        tensor = np.diag([0.02, 0.03, 0.04]) + 0.002 * (1 - np.eye(3))
        link = legged.Link(name, legged.Inertia(mass, rng.uniform(-0.1, 0.1, 3), tensor))
        axis = rng.normal(size=3)
        leg.add(legged.Revolute(f"{name}_joint", axis / np.linalg.norm(axis)), link, at=rng.uniform(-0.3, 0.3, 3))
    builder = legged.RobotBuilder("table", legged.Link("top", legged.box_inertia(3.0, (1.0, 0.5, 0.1))))
    for k in range(legs):
        turn = legged.rpy(0.0, 0.0, rng.uniform(-3, 3)) if k % 2 else None
        builder.attach(leg, to="top", at=rng.uniform(-0.5, 0.5, 3), rotation=turn, prefix=f"{k}_")
    return builder.build()


def test_all_four_legs_of_a_quadruped_share_vectors():
    graph, plan = plan_of(legged.forward_dynamics, robots.spatial_quadruped())
    assert plan is not None
    packed = sum(len(pack.nodes) for pack in plan.packs)
    assert {len(pack.nodes) for pack in plan.packs} == {4}
    of_legs = sum(node.label.module in (1, 2, 3, 4) for node in graph.nodes)
    assert packed > 0.75 * of_legs  # the base's operations for a leg carry the leg's label as well


def test_different_modules_are_in_different_packs():
    """A humanoid has two arms and two legs; each pair has its own packs."""
    graph, plan = plan_of(legged.forward_dynamics, robots.humanoid())
    assert plan is not None
    pairs = {tuple(graph.nodes[i - graph.input_size].label.module for i in pack.nodes) for pack in plan.packs}
    assert {(3, 4), (5, 6)} <= {tuple(sorted(pair)) for pair in pairs}


def test_packs_and_nodes_are_in_topological_order():
    graph, plan = plan_of(legged.forward_dynamics, robots.hexapod())
    assert plan is not None
    early = {i for calls, needed in call_batches(graph) for i in (*calls, *needed)}
    done = set(range(graph.input_size)) | early
    for item in plan.order:
        nodes = [item] if isinstance(item, int) else item.nodes
        for i in nodes:
            arguments = graph.nodes[i - graph.input_size].arguments
            assert all(a in done for a in arguments if isinstance(a, int))
        done.update(nodes)
    assert done == set(range(graph.input_size + len(graph.nodes)))


@pytest.mark.parametrize("legs", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "inertia_matrix"])
def test_vectorized_kernels_equal_plain_numpy(legs, name):
    """There are more legs than lanes in one case, and fewer in others."""
    robot = legged_table(legs, seed=legs)
    rng = np.random.default_rng(legs)
    q, v, force = legged.random_configuration(robot, rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    function = getattr(legged, name)
    arguments = (q,) if name == "inertia_matrix" else (q, v, force)
    plain, packed = function(robot, *arguments), legged.compile(function, robot)(*arguments)
    assert np.abs(packed - plain).max() <= 1e-12 * np.abs(plain).max()


def test_signs_of_lanes_are_kept():
    """One module adds where the other subtracts, and multiplies by a constant of opposite sign; they share packs."""

    def mirrored(x, y):
        results = []
        for k, side in enumerate((1.0, -1.0)):
            with module(k):
                a = x[2 * k] * x[2 * k + 1]
                b = a + side * 0.25 * y
                results.append(-(b * a) - side * 0.5 * a)
        return np.stack(results)

    graph = record(mirrored, {"x": (4,), "y": ()})
    plan = vectorize(graph, (), llvm.vector_width())
    assert plan is not None and len(plan.packs) >= 4
    x, y = np.array([0.3, -1.2, 0.7, 2.0]), 0.9
    assert legged.compile(mirrored, x=(4,), y=())(x, y) == pytest.approx(graph.evaluate(x, y), rel=1e-15)


@pytest.mark.parametrize(("equal", "pairs"), [(9, {(0, 2), (1, 3)}), (7, {(0, 2), (1, 3)}), (5, {(0, 2)})])
def test_modules_share_vectors_with_the_most_alike(equal, pairs):
    """Modules 0 and 2 have the same operations, 1 and 3 the first `equal` of ten."""
    first, second = "+*+*+*+*+*", "*+*+*+*+*+"
    operations = first, second, first, second[:equal] + "^" * (10 - equal)

    def results_of_modules(x):
        results = []
        for k, own in enumerate(operations):
            with module(k):
                y = x[k]
                for i, operation in enumerate(own):
                    number = 2.0 + i + k
                    y = y * y if operation == "^" else y * number if operation == "*" else y + number
                results.append(y)
        return np.stack(results)

    graph = record(results_of_modules, {"x": (4,)})
    plan = vectorize(graph, (), 8)
    assert plan is not None
    assert {tuple(graph.nodes[i - graph.input_size].label.module for i in pack.nodes) for pack in plan.packs} == pairs


def test_dependent_modules_are_not_packed():
    def chain(x):
        total = x[0]
        for k in range(4):
            with module(k):
                total = total * x[k + 1] + 1.0
        return total

    graph = record(chain, {"x": (5,)})
    assert vectorize(graph, (), 8) is None


def test_a_single_state_and_a_batch_differ_by_rounding_only():
    """Vectors hold modules for a single state and states for a batch; a few operations are fused in one kernel only."""
    robot = robots.spatial_quadruped()
    rng = np.random.default_rng(3)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(9)])
    v, tau = rng.normal(size=(2, 9, robot.nv))
    kernel = legged.compile(legged.forward_dynamics, robot)
    alone = np.array([kernel(*state) for state in zip(q, v, tau, strict=True)])
    assert np.abs(alone - kernel(q, v, tau)).max() <= 1e-13 * np.abs(alone).max()


def test_a_constant_is_distinct_from_the_value_of_the_same_number():
    """Some modules multiply by the constant 4.0, others by value number 4, an argument."""

    def alike(x):
        shared, out = x[4], []
        for k in range(4):
            with module(k + 1):
                a = (x[k] + 0.3) * (x[k] + k) * (x[k] * x[k] + 0.1 * k)
                out.append(a * (a + 1.5) * (4.0 if k == 3 else shared) + a * (x[k] - (4.0 if k else shared)))
        return np.array(out)

    x = np.array([0.3, -0.7, 1.1, 0.4, 2.5])
    kernel = legged.compile(alike, None, x=(5,))
    plan = vectorize(kernel.graph, (), 8)
    assert plan is not None
    assert kernel(x) == pytest.approx(alike(x), rel=1e-14)
    lanes = [lane for pack in plan.packs for operand in pack.operands for lane in operand]
    assert Lane(4.0, 0) != Lane(4, 1) and {Lane(4.0, 0), Lane(4, 1)} <= set(lanes)
    assert all((lane.sign == 0) == isinstance(lane.operand, float) for lane in lanes)
