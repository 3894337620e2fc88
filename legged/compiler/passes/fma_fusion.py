"""Fuse multiplications into the additions that use them: a*b + c becomes one instruction, which rounds once.

LLVM contracts a product that a single sum uses. This pass also fuses a product that several sums use: each of them
repeats the multiplication, which costs nothing inside of a fused instruction, and one instruction is saved. Fusing
before scheduling lets the schedule see the instructions that are executed.
"""

from __future__ import annotations

from dataclasses import replace

from legged.compiler.ir.graph import Graph, Node
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
    nodes = list(graph.nodes)
    for product, sums in _fusible_products(graph).items():
        a, b = graph.nodes[product - first].arguments
        for i in sums:
            operation, (x, y), label = graph.nodes[i - first]
            fused = "fmadd" if operation == "add" else "fmsub" if x == product else "fnmadd"
            nodes[i - first] = Node(fused, (a, b, y if x == product else x), label)
    return replace(graph, nodes=tuple(nodes))


def _fusible_products(graph: Graph) -> dict[int, list[int]]:
    """Return the products to fuse with their uses: all uses are sums, and no sum is fused with two products."""
    first = graph.input_size
    uses: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes, first):
        for a in node.arguments:
            if isinstance(a, int) and a >= first and graph.nodes[a - first].operation == "multiply":
                uses.setdefault(a, []).append(i)
    results = {r for r in graph.results if isinstance(r, int)}
    fused_sums: set[int] = set()
    fusible = {}
    for product, users in sorted(uses.items(), key=lambda item: (len(item[1]), -item[0])):
        all_sums = all(graph.nodes[i - first].operation in _SUMS and i not in fused_sums for i in users)
        if all_sums and product not in results:
            fusible[product] = users
            fused_sums.update(users)
    return fusible
