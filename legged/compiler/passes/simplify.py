"""Fewer operations in a whole graph, beyond what the rules see when they make one expression.

A sum of products that share a factor is written with the factor outside, a*x + a*y = a*(x + y), if the products are
used nowhere else. Whole graphs are compared: one that is no cheaper than before is dropped.
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
        self.uses: Counter[Operand] = Counter(a for node in graph.nodes for a in node.arguments if isinstance(a, int))
        self.uses.update(r for r in graph.results if isinstance(r, int))
        self.constants: list[float] = []
        self.numbers: dict[float, int] = {}
        self.tracer = Tracer()
        self.made: list[Expression | float] = [self.tracer.input() for _ in range(self.first)]

    def result(self) -> Graph:
        """Return the new graph."""
        sums = [node for node in self.graph.nodes if node.operation in _SUMS]
        inner = {a for node in sums for a in node.arguments if isinstance(a, int) and self.uses[a] == 1}
        with self.tracer:
            for i, node in enumerate(self.graph.nodes, self.first):
                self.tracer.label = node.label
                whole = node.operation in _SUMS and i not in inner
                self.made.append(self._sum(self._terms(i)) if whole else self._again(node))
            nodes, results = finish(self.tracer, [self._value(r) for r in self.graph.results])
        return replace(self.graph, nodes=nodes, results=results)

    def _again(self, node: Node) -> Expression | float:
        return CONSTRUCTORS[node.operation](*[self._value(a) for a in node.arguments])

    def _value(self, operand: Operand) -> Expression | float:
        return self.made[operand] if isinstance(operand, int) else operand

    def _node(self, operand: Operand) -> Node | None:
        """Return the operation that makes a value, None for inputs and constants."""
        return self.graph.nodes[operand - self.first] if isinstance(operand, int) and operand >= self.first else None

    def _terms(self, number: int) -> list[_Term]:
        """Return the summands of a sum, through the sums and negations that are used nowhere else."""
        terms: list[_Term] = []
        waiting: list[tuple[int, Operand]] = [(1, number)]
        while waiting:
            sign, operand = waiting.pop()
            node = self._node(operand)
            operation = node.operation if node and (operand == number or self.uses[operand] == 1) else None
            if node and operation in ("add", "subtract"):
                right = sign if operation == "add" else -sign
                waiting += [(right, node.arguments[1]), (sign, node.arguments[0])]
            elif node and operation == "negate":
                waiting.append((-sign, node.arguments[0]))
            else:
                terms.append(self._term(sign, operand))
        return terms

    def _term(self, sign: int, operand: Operand) -> _Term:
        """Return a summand, through the products that are used nowhere else; signs of constants go to the term."""
        factors: list[int] = []
        waiting = [operand]
        while waiting:
            operand = waiting.pop()
            node = self._node(operand)
            if node is not None and node.operation == "multiply" and self.uses[operand] == 1:
                waiting += reversed(node.arguments)
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
        return self.made[number] if number >= 0 else self.constants[-1 - number]

    def _sum(self, terms: list[_Term]) -> Expression | float:
        """Return the sum of the terms, the commonest factor outside as long as two terms share one."""
        total = 0.0
        while terms:
            shared = Counter(factor for term in terms for factor in dict.fromkeys(term.factors))
            factor, times = max(shared.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
            if times < 2:
                break
            inside = [_without(term, factor) for term in terms if factor in term.factors]
            terms = [term for term in terms if factor not in term.factors]
            total = add(total, multiply(self._factor(factor), self._sum(inside)))
        for term in terms:
            total = add(total, self._product(term))
        return total

    def _product(self, term: _Term) -> Expression | float:
        product = float(term.sign)  # goes into a constant, if there is one
        for factor in term.factors:
            product = multiply(product, self._factor(factor))
        return product


def _without(term: _Term, factor: int) -> _Term:
    """Return the term divided by one of its factors."""
    i = term.factors.index(factor)
    return _Term(term.sign, term.factors[:i] + term.factors[i + 1 :])
