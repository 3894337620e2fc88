"""Fewer operations in a whole graph, beyond what the rules see when they make one expression.

A sum of products that share a factor is written with the factor outside, a*x + a*y = a*(x + y), if the products are
used nowhere else. Whole graphs are compared: one that is no cheaper than before is dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from legged.trace.expression import Expression
from legged.trace.graph import Graph, Node, Operand, finish
from legged.trace.operations import OPERATIONS
from legged.trace.rules import RULES, add, multiply, negate
from legged.trace.tracer import Tracer

_SUMS = ("add", "subtract")


class _Term(NamedTuple):
    """One summand: its sign and the factors of the product that it is, values by number, constants below zero."""

    sign: int
    factors: tuple[int, ...]


def simplify(graph: Graph) -> Graph:
    """Return a graph of the same function with fewer operations, or the same graph if none were found."""
    simpler = _Factoring(graph).result()
    return simpler if _cost(simpler) < _cost(graph) else graph


def _cost(graph: Graph) -> int:
    return sum(OPERATIONS[node.operation].category is not None for node in graph.nodes)


class _Factoring:
    """One pass over a graph: every operation is made again, sums with common factors in their new form."""

    def __init__(self, graph: Graph):
        self.graph, self.first = graph, graph.input_size
        self.uses = Counter(a for node in graph.nodes for a in node.arguments if isinstance(a, int))
        self.uses.update(r for r in graph.results if isinstance(r, int))
        self.constants: list[float] = []
        self.numbers: dict[float, int] = {}
        self.tracer = Tracer()
        self.made: list[Expression | float] = [self.tracer.input() for _ in range(self.first)]

    def result(self) -> Graph:
        """Return the new graph."""
        with self.tracer:
            for i, node in enumerate(self.graph.nodes, self.first):
                self.tracer.label = node.label
                self.made.append(self._summed(i) if node.operation in _SUMS else self._again(node))
            nodes, results = finish(self.tracer, [self._value(r) for r in self.graph.results])
        return replace(self.graph, nodes=nodes, results=results)

    def _again(self, node: Node) -> Expression | float:
        return RULES[node.operation](*[self._value(a) for a in node.arguments])

    def _summed(self, number: int) -> Expression | float:
        return self._sum(list(self._terms(number, 1, whole=True)))

    def _value(self, operand: Operand) -> Expression | float:
        return self.made[operand] if isinstance(operand, int) else operand

    def _node(self, operand: Operand) -> Node | None:
        """Return the operation that makes a value, None for inputs and constants."""
        return self.graph.nodes[operand - self.first] if isinstance(operand, int) and operand >= self.first else None

    def _terms(self, operand: Operand, sign: int, whole: bool = False) -> Iterator[_Term]:
        """Yield the summands of a value, through the sums and negations that are used nowhere else."""
        node = self._node(operand)
        if node is not None and (whole or self.uses[operand] == 1):
            if node.operation in _SUMS:
                yield from self._terms(node.arguments[0], sign)
                yield from self._terms(node.arguments[1], sign if node.operation == "add" else -sign)
                return
            if node.operation == "negate":
                yield from self._terms(node.arguments[0], -sign)
                return
        yield _Term(sign, tuple(self._factors(operand)))

    def _factors(self, operand: Operand) -> Iterator[int]:
        """Yield the factors of a value, through the products that are used nowhere else."""
        node = self._node(operand)
        if node is not None and node.operation == "multiply" and self.uses[operand] == 1:
            for a in node.arguments:
                yield from self._factors(a)
        else:
            yield operand if isinstance(operand, int) else self._constant(operand)

    def _constant(self, value: float) -> int:
        """Return the number of a constant: -1, -2, ..."""
        if value not in self.numbers:
            self.constants.append(value)
            self.numbers[value] = -len(self.constants)
        return self.numbers[value]

    def _factor(self, number: int) -> Expression | float:
        return self.made[number] if number >= 0 else self.constants[-1 - number]

    def _grouped(self, terms: list[_Term]) -> Expression | float | None:
        """Return the sum of the terms with the commonest factor outside, None if no two terms share one."""
        shared = Counter(factor for term in terms for factor in dict.fromkeys(term.factors))
        factor, times = max(shared.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
        if times < 2:
            return None
        inside = [_without(term, factor) for term in terms if factor in term.factors]
        outside = [term for term in terms if factor not in term.factors]
        product = multiply(self._factor(factor), self._sum(inside))
        return add(product, self._sum(outside)) if outside else product

    def _sum(self, terms: list[_Term]) -> Expression | float:
        grouped = self._grouped(terms)
        if grouped is not None:
            return grouped
        total = 0.0
        for term in terms:
            product = 1.0
            for factor in term.factors:
                product = multiply(product, self._factor(factor))
            total = add(total, product if term.sign > 0 else negate(product))
        return total


def _without(term: _Term, factor: int) -> _Term:
    """Return the term divided by one of its factors."""
    i = term.factors.index(factor)
    return _Term(term.sign, term.factors[:i] + term.factors[i + 1 :])
