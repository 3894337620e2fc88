"""Multiplications merged into the additions that follow: a*b + c as one instruction, which rounds once.

LLVM would merge a product that one sum uses. One that several sums use is merged here as well: each of them multiplies
again, which is free, and an instruction is saved. Merging before the operations are ordered lets the order count them
as they are executed.
"""

from __future__ import annotations

from dataclasses import replace

from legged.compiler.ir.graph import Graph, Node

MERGED = ("product_plus", "product_minus", "minus_product")
"""Operations of merged nodes: a*b + c, a*b - c, c - a*b, of arguments (a, b, c)."""

NEGATED = {"product_minus": 2, "minus_product": 1}
"""The argument that is negated to make a*b + c of it; processors have instructions for that. A constant comes first."""

_SUMS = ("add", "subtract")


def fused(graph: Graph) -> Graph:
    """Return the graph with merged nodes in place of sums; values keep their numbers, merged products are unused."""
    first = graph.input_size
    nodes = list(graph.nodes)
    for product, sums in _merged(graph).items():
        a, b = graph.nodes[product - first].arguments
        for i in sums:
            operation, (x, y), label = graph.nodes[i - first]
            kind = "product_plus" if operation == "add" else "product_minus" if x == product else "minus_product"
            nodes[i - first] = Node(kind, (a, b, y if x == product else x), label)
    return replace(graph, nodes=tuple(nodes))


def _merged(graph: Graph) -> dict[int, list[int]]:
    """Return the products to merge, each with its uses: all of them are sums that merge no other product."""
    first = graph.input_size
    uses: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes, first):
        for a in node.arguments:
            if isinstance(a, int) and a >= first and graph.nodes[a - first].operation == "multiply":
                uses.setdefault(a, []).append(i)
    results = {r for r in graph.results if isinstance(r, int)}
    taken: set[int] = set()
    merged = {}
    for product, users in sorted(uses.items(), key=lambda item: (len(item[1]), -item[0])):
        sums = all(graph.nodes[i - first].operation in _SUMS and i not in taken for i in users)
        if sums and product not in results:
            merged[product] = users
            taken.update(users)
    return merged
