"""Instruction scheduling: the order in which the operations of a graph are computed, and fused multiply-adds.

Multiplications are fused into the additions that use them: a*b + c becomes one instruction, which rounds once. LLVM
contracts a product that a single sum uses. `fuse_multiply_adds` also fuses a product that several sums use: each of
them repeats the multiplication, which costs nothing inside of a fused instruction, and one instruction is saved.

Depth-first order keeps live ranges short: a graph has many more live values than the processor has registers, and each
value that does not fit is spilled to memory and loaded again.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from legged.compiler.ir.graph import Graph, Node, Operand, distinct_arguments
from legged.compiler.ir.operations import CONDITIONS
from legged.compiler.ir.pass_times import compiler_pass

FUSED = ("fmadd", "fmsub", "fnmadd")
"""Operations of fused nodes with arguments (a, b, c): a*b + c, a*b - c and c - a*b."""

NEGATED_ARGUMENT = {"fmsub": 2, "fnmadd": 1}
"""The argument to negate so that the operation is a*b + c. Processors have instructions for these forms. Argument 1 is
negated since argument 0 may be a constant."""

_SUMS = ("add", "subtract")


@compiler_pass("fusion of multiply-adds")
def fuse_multiply_adds(graph: Graph) -> Graph:
    """Return the graph with fused nodes in place of sums.

    Values keep their numbers. Products that were fused stay in the graph without a use.
    """
    first = graph.input_size
    nodes, new = list(graph.nodes), tuple.__new__  # twice as fast as the constructor of the named tuple
    for product, sums in _fusible_products(graph).items():
        a, b = graph.nodes[product - first].arguments
        for i in sums:
            operation, (x, y), label = graph.nodes[i - first]
            fused = "fmadd" if operation == "add" else "fmsub" if x == product else "fnmadd"
            nodes[i - first] = new(Node, (fused, (a, b, y if x == product else x), label))
    return replace(graph, nodes=tuple(nodes))


def _fusible_products(graph: Graph) -> dict[int, Sequence[int]]:
    """Return the products to fuse with their uses: all uses are sums, and no sum is fused with two products."""
    first = graph.input_size
    products = {i for i, node in enumerate(graph.nodes, first) if node[0] == "multiply"}
    first_use, uses = dict[int, int](), dict[int, Sequence[int]]()  # the latter if there are several
    before: tuple[Operand, ...] | None = None
    for i, (operation, arguments, _) in enumerate(graph.nodes, first):
        if operation in _SUMS:
            for a in arguments:
                if type(a) is int and a in products:
                    if a in first_use:
                        uses[a] = (*uses.get(a, (first_use[a],)), i)
                    else:
                        first_use[a] = i
        elif arguments is not before:  # not for further results of a call, which share them
            products.difference_update([a for a in arguments if type(a) is int])
        before = arguments
    products.difference_update([r for r in graph.results if type(r) is int])
    latest_first = sorted(products.intersection(first_use), reverse=True)
    fused_sums: set[int] = set()
    fusible = {}
    for product in sorted(latest_first, key=lambda product: len(uses.get(product, (0,)))):
        users = uses.get(product) or (first_use[product],)
        if fused_sums.isdisjoint(users):
            fusible[product] = users
            fused_sums.update(users)
    return fusible


@compiler_pass("depth-first order")
def depth_first_order(graph: Graph) -> list[int]:
    """Return the live nodes in depth-first order from the results, the deeper argument of a node first."""
    return _visited(graph, _depths(graph), graph.results, bytearray(graph.input_size + len(graph.nodes)))


def depth_first_phases(graph: Graph, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the nodes to compute before each group of calls and those after the last, each in depth-first order.

    Args:
        graph: The graph. groups: Calls that are computed together, in the order of their execution.
    """
    first, depths, phases = graph.input_size, _depths(graph), list[list[int]]()
    seen = bytearray(len(depths))
    for calls in groups:
        for i in calls:
            seen[i] = True
        operands = [a for arguments in distinct_arguments(graph.nodes[i - first] for i in calls) for a in arguments]
        phases.append(_visited(graph, depths, operands, seen))
    phases.append(_visited(graph, depths, graph.results, seen))
    return phases


def _depths(graph: Graph) -> list[int]:
    """Return the depth of each value, zero for inputs."""
    depths = [0] * graph.input_size
    before, depth = None, 0
    for _, arguments, _ in graph.nodes:
        if arguments is not before:  # not for further results of a call, which share them
            depth = 0
            for a in arguments:
                if type(a) is int and depths[a] > depth:
                    depth = depths[a]
        before = arguments
        depths.append(depth + 1)
    return depths


def _visited(graph: Graph, depths: Sequence[int], roots: Sequence[Operand], seen: bytearray) -> list[int]:
    """Return the nodes on which roots depend, depth first, except those that are seen, and mark them as seen."""
    first, order = graph.input_size, list[int]()
    stack = [r for r in reversed(roots) if type(r) is int]
    while stack:
        i = stack.pop()
        if i < 0:  # the arguments of ~i are done
            order.append(~i)
        elif i >= first and not seen[i]:
            seen[i] = True
            stack.append(~i)
            operands = [a for a in graph.nodes[i - first][1] if type(a) is int and a >= first and not seen[a]]
            if len(operands) > 1:
                operands.sort(key=depths.__getitem__)
            stack += operands
    return order


@compiler_pass("sections of the schedule")
def cut_schedule(graph: Graph, schedule: Sequence[int], length: int) -> list[list[int]]:
    """Return a schedule in sections of about a given length, cut where few numbers are live and no condition is.

    Args:
        graph: The graph. schedule: Nodes in the order of their execution.
        length: Largest number of nodes of a section, apart from an eighth.
    """
    place = {i: k for k, i in enumerate(schedule)}
    last_use = dict(place)
    for k, i in enumerate(schedule):
        last_use |= {a: k for a in graph.nodes[i - graph.input_size].arguments if isinstance(a, int) and a in place}
    changes = [0] * (len(schedule) + 2)
    for i, k in place.items():
        weight = len(schedule) if graph.nodes[i - graph.input_size].operation in CONDITIONS else 1
        changes[k + 1] += weight
        changes[last_use[i] + 1] -= weight
    live = list(itertools.accumulate(changes))  # live[k]: before the node at place k
    count = -(-len(schedule) // length)
    reach = len(schedule) // (8 * count)
    centers = [k * len(schedule) // count for k in range(1, count)]
    cuts = [min(range(c - reach, c + reach + 1), key=live.__getitem__) for c in centers]
    ends = [0, *(cut for cut in cuts if live[cut] < len(schedule)), len(schedule)]
    return [list(schedule[a:b]) for a, b in itertools.pairwise(ends)]
