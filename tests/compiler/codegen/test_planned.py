"""Kernels with a plan of registers: random functions, planned for few registers and short blocks."""

import re

import numpy as np
import pytest

import legged
from legged.compiler import Kernel, record, run_passes, trace
from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.kernels import planned
from legged.compiler.ir import repeat_while, where
from legged.compiler.ir.operations import CONDITIONS, is_call
from legged.compiler.passes.pipeline import RegisterRequest
from legged.errors import NotFiniteError
from tests.compiler.codegen.test_targets import AVAILABLE

SEEDS = range(6)
WIDE = (32, 10**9)
"""Number of registers and length of blocks with which kernels of small graphs have no spills and one block."""


def random_function(seed):
    """Return a random function of x (9,) with nested conditions, sines, loops, and arguments among its results."""

    def function(x):
        rng = np.random.default_rng(seed)
        values = [*x]

        def pick():
            return values[int(len(values) * rng.uniform() ** (1.0 if rng.uniform() < 0.3 else 0.2))]

        for k in range(200):
            a, b, c = pick(), pick(), pick()
            kind = rng.integers(7)
            if kind == 0:
                new = where((a > b) & ~(b > c), where(c > a, 0.5 * a, b - c), np.minimum(a, c))
            elif kind == 1:
                new = np.sin(a) * b
            elif kind == 2 and k % 3 == 0:
                new = halvings(a, b, c)
            elif kind == 3:
                new = a / (1.5 + b * b)
            else:
                new = rng.uniform(-0.6, 0.6) * a + b * c * rng.uniform(-0.5, 0.5)
            values.append(np.tanh(new) if k % 17 == 0 else new / (1.0 + abs(new)))
        return np.array([values[i] for i in rng.permutation(len(values))[:40]] + [x[3], 2.0, x[3]])

    return function


def halvings(a, b, c):
    """Return a after the steps s -> s / 2 + 0.01 b c of a loop: at most 4, while s exceeds a bound."""

    def step(s):
        return np.stack([0.5 * s[0] + 0.01 * b * c, where(abs(s[0]) > 0.6, 1.0, 0.0)])

    return repeat_while(step, np.stack([a, where(abs(a) > 0.3, 1.0, 0.0)]), 4)[0]


@pytest.fixture
def kernels(monkeypatch):
    """Return a function that compiles a graph with a plan for a number of registers and a length of blocks."""
    monkeypatch.setenv("LEGGED_CACHE", "off")

    def compiled(graph, registers, block, target="native"):
        monkeypatch.setattr(selection, "PLANNED_NODES", 0)
        monkeypatch.setattr(selection, "PLANNED_BATCH_NODES", 0)
        monkeypatch.setattr(llvm.Target, "vector_registers", registers)
        monkeypatch.setattr(planned, "BLOCK", block)
        machine_code.unload()
        kernel = Kernel(graph, target=target)
        kernel(np.ones(9))  # compiles
        kernel(np.ones((20, 9)))
        return kernel

    yield compiled
    machine_code.unload()


def states(count=37):
    return np.random.default_rng(7).normal(size=(count, 9))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("target", AVAILABLE)
def test_cut_and_uncut_kernels_give_the_same_bits(kernels, target, seed):
    function, x = random_function(seed), states()
    graph = trace(function, {"x": (9,)})
    whole = kernels(graph, *WIDE, target)
    single, batch = np.array([whole(row) for row in x]), whole(x)
    np.testing.assert_allclose(single, [function(row) for row in x], atol=1e-12)
    np.testing.assert_allclose(batch, single, atol=1e-12)
    for registers, block in ((4, 10**9), (8, 7), (16, 40)):
        cut = kernels(graph, registers, block, target)
        assert np.array_equal([cut(row) for row in x], single)
        assert np.array_equal(cut(x), batch)


def test_results_may_replace_the_arguments(kernels):
    """A result that is stored in the memory of an argument changes no other result."""
    graph = trace(lambda x: np.stack([*x[:4:-1], 0.1 * np.sin(x[2]), *x[3::-1]]), {"x": (9,)})
    kernel, x = kernels(graph, 4, 7), states(1)[0]
    expected, memory = kernel(x), x.copy()
    assert np.array_equal(kernel(memory, out=memory), expected)


def test_a_result_that_is_not_finite_is_found(kernels):
    graph = trace(lambda x: np.log(x) * np.sum(x), {"x": (9,)})
    kernel, x = kernels(graph, 4, 7), np.ones((20, 9))
    x[13, 4] = 0.0
    with pytest.raises(NotFiniteError, match=r"\b13\b"):
        kernel(x)
    with pytest.raises(NotFiniteError):
        kernel(x[13])


@pytest.mark.parametrize("registers", [2, 5, 14])
@pytest.mark.parametrize("stores_last", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_more_numbers_are_live_than_there_are_registers(seed, stores_last, registers):
    """Simulates the plan: each operand is in a register, or in its stack slot, which holds no other value yet."""
    check_plan(record(random_function(seed), {"x": (9,)}), registers, stores_last)


def test_value_1_is_not_the_constant_1():
    """They are equal keys of dictionaries. Value 1 is last used by an operation with the constant 1, after spills."""

    def function(x):
        square = x * x
        first, second = ([np.sqrt(y + k) for k in range(8)] for y in (square, x))
        sums = [sum((a * b for a, b in zip(z, z[::-1], strict=True)), 0.0) for z in (first, second)]
        return where(np.sqrt(np.sqrt(sums[0])) + sums[1] > 3.0, 1.0, square)

    graph = record(function, {"x": ()})
    assert graph.nodes[0].operation == "multiply" and 1 in graph.nodes[-1].arguments[2:]
    check_plan(graph, 2, True)


def check_plan(graph, registers, stores_last):
    results = run_passes(graph, batched=True, fused=True, registers=RegisterRequest(registers, stores_last))
    graph, plan, first = results.graph, results.registers, graph.input_size
    batches = [calls for calls, _ in results.batches]
    order = [i for phase, calls in zip(plan.phases, [*batches, []], strict=True) for i in (*phase, *calls)]
    assert len(order) == len(set(order))
    place = {i: k for k, i in enumerate(order)}
    last = {a: place[i] for i in order for a in numbers(graph, i)}
    last |= {r: len(order) for r in graph.results if type(r) is int and stores_last}
    held: set[int] = set()
    memory: dict[int, int] = {}
    computed: set[int] = set()

    def use(i):
        for a in numbers(graph, i):
            if a >= first and a not in held:
                assert a in computed
                assert is_call(operation(graph, a)) or memory[plan.slots[a]] == a

    for phase, calls in zip(plan.phases, [*batches, []], strict=True):
        for i in phase:
            use(i)
            computed.add(i)
            if i in plan.slots:
                assert 0 <= plan.slots[i] < plan.size
                memory[plan.slots[i]] = i
            held.update([*numbers(graph, i), *[i] * (operation(graph, i) not in CONDITIONS)])
            leaving = set(plan.leaving.get(i, ()))
            assert leaving <= held
            held -= leaving
            held = {a for a in held if last.get(a, -1) > place[i]}
            assert len(held) <= registers
        for i in calls:
            use(i)
        computed.update(calls)
        held.clear()
    assert set(plan.slots) <= computed


def numbers(graph, i):
    """Return the operands of a node, without truth values and constants."""
    operands = [a for a in graph.nodes[i - graph.input_size].arguments if type(a) is int]
    return [a for a in operands if a < graph.input_size or operation(graph, a) not in CONDITIONS]


def operation(graph, i):
    return graph.nodes[i - graph.input_size].operation


NUMBER = re.compile(r"  (%[\w.]+) = (?:load|fneg|fadd|fsub|fmul|fdiv|call|select i1 [%\w]+,) double\b")


@pytest.mark.parametrize("registers", [8, 32])
@pytest.mark.parametrize("case", ["robot", *SEEDS])
def test_llvm_receives_short_blocks_with_no_more_live_numbers_than_registers(case, registers):
    """Also across calls of sines and loops; four sums that check results and three operands may be live besides."""
    robot = legged.random_tree(3, links=40)
    is_robot = case == "robot"
    graph = (
        legged.compile(legged.forward_dynamics, robot).graph if is_robot else trace(random_function(case), {"x": (9,)})
    )
    with llvm.target_context(llvm.default_target()):
        target = llvm.current_target()
        writer = planned.PlannedKernelWriter(graph, 1, target.width, target.element, registers)
        text = "\n".join(writer.module_lines()).split(f"@{writer.name}(")[1]
    blocks = text.split("\nblock")
    operations = [sum(line.startswith("  %v") for line in block.split("\n")) for block in blocks]
    assert len(blocks) >= len(graph.nodes) / planned.BLOCK / 2 and max(operations) <= 1.1 * planned.BLOCK
    lines = [line for line in text.split("\n") if "insertelement" not in line]  # arguments of sines
    begin = {match[1]: k for k, line in enumerate(lines) if (match := NUMBER.match(line))}
    end = {name: k for k, line in enumerate(lines) for name in re.findall(r"%[\w.]+", line)}
    changes = np.zeros(len(lines) + 1, dtype=int)
    for name, k in begin.items():
        changes[k] += 1
        changes[end[name]] -= 1
    assert registers // 2 < np.cumsum(changes).max() <= registers + 7
