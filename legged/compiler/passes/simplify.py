"""Algebraic simplification of a whole graph: factor common factors out of sums, a*x + a*y = a*(x + y).

Constant folding (`ir.constant_folding`) sees one operation at a time; this pass sees all terms of a sum. Products and
partial sums that have another use stay as they are. The simplified graph replaces the original only if it has fewer
operations.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from legged.compiler.ir.constant_folding import CONSTRUCTORS, add, multiply
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, Node, Operand, finish
from legged.compiler.ir.operations import OPERATIONS
from legged.compiler.ir.tracer import Tracer

_SUMS = ("add", "subtract")


class _Term(NamedTuple):
    """One summand: a sign and the factors of a product; factors >= 0 are values, negative ones denote constants."""

    sign: int
    factors: tuple[int, ...]


def simplify(graph: Graph) -> Graph:
    """Return an equivalent graph with fewer operations, or the same graph if factoring saves none."""
    simplified = _Factoring(graph).result()
    return simplified if _cost(simplified) < _cost(graph) else graph


def _cost(graph: Graph) -> int:
    return sum(OPERATIONS[node.operation].category is not None for node in graph.nodes)


class _Factoring:
    """One pass over a graph that rebuilds every operation and factors the sums."""

    def __init__(self, graph: Graph):
        self.graph, self.first = graph, graph.input_size
        self.uses: Counter[Operand] = Counter(a for node in graph.nodes for a in node.arguments if isinstance(a, int))
        self.uses.update(r for r in graph.results if isinstance(r, int))
        self.constants: list[float] = []
        self.numbers: dict[float, int] = {}
        self.tracer = Tracer()
        self.rebuilt: list[Expression | float] = [self.tracer.input() for _ in range(self.first)]

    def result(self) -> Graph:
        """Return the new graph."""
        sums = [node for node in self.graph.nodes if node.operation in _SUMS]
        inner = {a for node in sums for a in node.arguments if isinstance(a, int) and self.uses[a] == 1}
        with self.tracer:
            for i, node in enumerate(self.graph.nodes, self.first):
                self.tracer.label = node.label
                if node.operation in _SUMS and i not in inner:
                    self.rebuilt.append(self._sum(self._terms(i)))
                else:
                    self.rebuilt.append(CONSTRUCTORS[node.operation](*[self._value(a) for a in node.arguments]))
            nodes, results = finish(self.tracer, [self._value(r) for r in self.graph.results])
        return replace(self.graph, nodes=nodes, results=results)

    def _value(self, operand: Operand) -> Expression | float:
        return self.rebuilt[operand] if isinstance(operand, int) else operand

    def _node(self, operand: Operand) -> Node | None:
        """Return the operation that computes a value, None for inputs and constants."""
        return self.graph.nodes[operand - self.first] if isinstance(operand, int) and operand >= self.first else None

    def _terms(self, number: int) -> list[_Term]:
        """Return the summands of a sum, expanding its partial sums and negations that have no other use."""
        terms: list[_Term] = []
        stack: list[tuple[int, Operand]] = [(1, number)]
        while stack:
            sign, operand = stack.pop()
            node = self._node(operand)
            operation = node.operation if node and (operand == number or self.uses[operand] == 1) else None
            if node and operation in _SUMS:
                right = sign if operation == "add" else -sign
                stack += [(right, node.arguments[1]), (sign, node.arguments[0])]
            elif node and operation == "negate":
                stack.append((-sign, node.arguments[0]))
            else:
                terms.append(self._term(sign, operand))
        return terms

    def _term(self, sign: int, operand: Operand) -> _Term:
        """Return a summand with its factors, expanding products that have no other use.

        The signs of constant factors are moved to the sign of the term.
        """
        factors: list[int] = []
        stack = [operand]
        while stack:
            operand = stack.pop()
            node = self._node(operand)
            if node is not None and node.operation == "multiply" and self.uses[operand] == 1:
                stack += reversed(node.arguments)
            elif isinstance(operand, int):
                factors.append(operand)
            else:
                factors.append(self._constant(abs(operand)))
                sign = -sign if operand < 0.0 else sign
        return _Term(sign, tuple(factors))

    def _constant(self, value: float) -> int:
        """Return the number of a constant: -1, -2, ..."""
        if value not in self.numbers:
            self.constants.append(value)
            self.numbers[value] = -len(self.constants)
        return self.numbers[value]

    def _factor(self, number: int) -> Expression | float:
        return self.rebuilt[number] if number >= 0 else self.constants[-1 - number]

    def _sum(self, terms: list[_Term]) -> Expression | float:
        """Return the sum of the terms, factoring the most frequent factor out as long as two terms share one."""
        total = 0.0
        while terms:
            shared = Counter(factor for term in terms for factor in dict.fromkeys(term.factors))
            factor, times = max(shared.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
            if times < 2:
                break
            quotients = [_divided(term, factor) for term in terms if factor in term.factors]
            terms = [term for term in terms if factor not in term.factors]
            total = add(total, multiply(self._factor(factor), self._sum(quotients)))
        for term in terms:
            total = add(total, self._product(term))
        return total

    def _product(self, term: _Term) -> Expression | float:
        product = float(term.sign)  # constant folding merges the sign into a constant factor
        for factor in term.factors:
            product = multiply(product, self._factor(factor))
        return product


def _divided(term: _Term, factor: int) -> _Term:
    """Return the term divided by one of its factors."""
    i = term.factors.index(factor)
    return _Term(term.sign, term.factors[:i] + term.factors[i + 1 :])
