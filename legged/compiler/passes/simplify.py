"""Algebraic simplification of a whole graph: factor common factors out of sums, a*x + a*y = a*(x + y).

Constant folding (`ir.constant_folding`) sees one operation at a time; this pass sees all terms of a sum. Products and
partial sums that have another use stay as they are. The simplified graph replaces the original only if it has fewer
operations.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from legged.compiler.ir.constant_folding import CONSTRUCTORS, add, multiply
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, Node, Operand, eliminate_dead_code
from legged.compiler.ir.operations import OPERATIONS
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.ir.tracer import Tracer

_SUMS = frozenset({"add", "subtract"})
_Term = tuple[int, list[int]]
"""One summand: a sign and the factors of a product; factors >= 0 are values, negative ones denote constants."""


@compiler_pass("simplification")
def simplify(graph: Graph) -> Graph:
    """Return an equivalent graph with fewer operations, or the same graph if factoring saves none."""
    simplified = _Factoring(graph).result()
    return simplified if _cost(simplified) < _cost(graph) else graph


def _cost(graph: Graph) -> int:
    counts = Counter([node[0] for node in graph.nodes])
    return sum([n for operation, n in counts.items() if OPERATIONS[operation].category is not None])


class _Factoring:
    """One pass over a graph that rebuilds every operation and factors the sums.

    Attributes:
        nodes: The operation of each value, None for inputs.
        uses: Number of operations and results that use each value.
        rebuilt: The new expression of each value.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        first = graph.input_size
        self.nodes: list[Node | None] = [*([None] * first), *graph.nodes]
        self.uses = [0] * len(self.nodes)
        for operands in (*[node.arguments for node in graph.nodes], graph.results):
            for a in operands:
                if type(a) is int:
                    self.uses[a] += 1
        self.constants: list[float] = []
        self.numbers: dict[float, int] = {}
        self.tracer = Tracer()
        self.rebuilt: list[Expression | float] = [self.tracer.input() for _ in range(first)]

    def result(self) -> Graph:
        """Return the new graph."""
        rebuilt, uses = self.rebuilt, self.uses
        sums = [node for node in self.graph.nodes if node.operation in _SUMS]
        inner = {a for node in sums for a in node.arguments if type(a) is int and uses[a] == 1}
        with self.tracer:
            for operation, arguments, label in self.graph.nodes:
                self.tracer.label = label
                if operation in _SUMS and len(rebuilt) not in inner:
                    rebuilt.append(self._sum(self._terms(len(rebuilt))))
                else:
                    rebuilt.append(CONSTRUCTORS[operation](*[rebuilt[a] if type(a) is int else a for a in arguments]))
            results = [rebuilt[r] if isinstance(r, int) else r for r in self.graph.results]
            nodes, operands = eliminate_dead_code(self.tracer, results)
        return replace(self.graph, nodes=nodes, results=operands)

    def _terms(self, number: int) -> list[_Term]:
        """Return the summands of a sum, expanding its partial sums and negations that have no other use."""
        nodes, uses = self.nodes, self.uses
        terms: list[_Term] = []
        stack: list[tuple[int, Operand]] = [(1, number)]
        while stack:
            sign, operand = stack.pop()
            if type(operand) is int and (operand == number or uses[operand] == 1) and (node := nodes[operand]):
                operation, arguments, _ = node
                if operation in _SUMS:
                    stack.append((sign if operation == "add" else -sign, arguments[1]))
                    stack.append((sign, arguments[0]))
                    continue
                if operation == "negate":
                    stack.append((-sign, arguments[0]))
                    continue
            terms.append(self._term(sign, operand))
        return terms

    def _term(self, sign: int, operand: Operand) -> _Term:
        """Return a summand with its factors, expanding products that have no other use.

        The signs of constant factors are moved to the sign of the term.
        """
        nodes, uses = self.nodes, self.uses
        factors: list[int] = []
        stack = [operand]
        while stack:
            operand = stack.pop()
            if type(operand) is not int:
                factors.append(self._constant(abs(operand)))
                sign = -sign if operand < 0.0 else sign
            elif uses[operand] == 1 and (node := nodes[operand]) and node.operation == "multiply":
                stack += node.arguments[::-1]
            else:
                factors.append(operand)
        return sign, factors

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
        total: Expression | float = 0.0
        while len(terms) > 1:
            factor, times = _most_frequent(terms)
            if times < 2:
                break
            quotients = [_divided(term, factor) for term in terms if factor in term[1]]
            terms = [term for term in terms if factor not in term[1]]
            total = add(total, multiply(self._factor(factor), self._sum(quotients)))
        for sign, factors in terms:
            if sign > 0 and factors:
                product, factors = self._factor(factors[0]), factors[1:]
            else:
                product = float(sign)  # constant folding merges the sign into a constant factor
            for factor in factors:
                product = multiply(product, self._factor(factor))
            total = add(total, product)
        return total


def _most_frequent(terms: list[_Term]) -> tuple[int, int]:
    """Return (the factor that most terms contain, the number of these terms); the lowest number of equal ones."""
    every = [factor for _, factors in terms for factor in factors]
    if len(set(every)) == len(every):
        return 0, 1
    times: dict[int, int] = {}
    for _, factors in terms:
        for factor in factors if len(factors) == 1 else set(factors):
            times[factor] = times.get(factor, 0) + 1
    highest = max(times.values(), default=0)
    return (min([factor for factor, n in times.items() if n == highest]), highest) if highest > 1 else (0, highest)


def _divided(term: _Term, factor: int) -> _Term:
    """Return the term divided by one of its factors."""
    sign, factors = term
    i = factors.index(factor)
    return sign, factors[:i] + factors[i + 1 :]
