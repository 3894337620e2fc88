"""Algebraic simplification of a whole graph: factor common factors out of sums, a*x + a*y = a*(x + y).

Constant folding (`ir.constant_folding`) sees one operation at a time; this pass sees all terms of a sum. Products and
partial sums that have another use stay as they are. The simplified graph replaces the original only if it has fewer
operations.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import replace

from legged.compiler.ir.constant_folding import CONSTRUCTORS, add, multiply, subtract
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, Node, Operand, distinct_arguments, eliminate_dead_code
from legged.compiler.ir.operations import OPERATIONS
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.ir.tracer import Tracer

_SUMS = frozenset({"add", "subtract"})
_EXPANDABLE = frozenset({*_SUMS, "negate", "multiply"})
_LONGEST_CHAIN = 12
"""Number of terms above which a sum is split in halves; shorter chains allow more fused multiply-adds."""
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
        expandable: The operation of each value that has one use and may be part of a sum or product, None for others.
        rebuilt: The new expression of each value.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        first = graph.input_size
        self.nodes: list[Node | None] = [*([None] * first), *graph.nodes]
        self.uses = [0] * len(self.nodes)
        for operands in (*distinct_arguments(graph.nodes), graph.results):
            for a in operands:
                if type(a) is int:
                    self.uses[a] += 1
        self.expandable = [
            node if n == 1 and node and node[0] in _EXPANDABLE else None
            for node, n in zip(self.nodes, self.uses, strict=True)
        ]
        self.constants: list[float] = []
        self.numbers: dict[float, int] = {}
        self.tracer = Tracer()
        self.rebuilt: list[Expression | float] = [self.tracer.input() for _ in range(first)]

    def result(self) -> Graph:
        """Return the new graph."""
        rebuilt, uses, tracer = self.rebuilt, self.uses, self.tracer
        sums = [arguments for operation, arguments, _ in self.graph.nodes if operation in _SUMS]
        inner = {a for arguments in sums for a in arguments if type(a) is int and uses[a] == 1}
        before = None
        with tracer:
            for number, (operation, arguments, label) in enumerate(self.graph.nodes, self.graph.input_size):
                tracer.label = label
                if operation in _SUMS and number not in inner:
                    rebuilt.append(self._sum(self._terms(number)))
                elif len(arguments) == 2:  # most operations, without the cost of a comprehension
                    a, b = arguments
                    a, b = rebuilt[a] if type(a) is int else a, rebuilt[b] if type(b) is int else b
                    rebuilt.append(CONSTRUCTORS[operation](a, b))
                elif arguments is before and isinstance(last := rebuilt[-1], Expression):
                    rebuilt.append(tracer.result(operation, last.arguments))
                else:
                    rebuilt.append(CONSTRUCTORS[operation](*[rebuilt[a] if type(a) is int else a for a in arguments]))
                before = arguments
            results = [rebuilt[r] if isinstance(r, int) else r for r in self.graph.results]
            nodes, operands = eliminate_dead_code(tracer, results)
        return replace(self.graph, nodes=nodes, results=operands)

    def _terms(self, number: int) -> list[_Term]:
        """Return the summands of a sum, expanding its partial sums and negations that have no other use."""
        expandable = self.expandable
        terms: list[_Term] = []
        stack: list[tuple[int, Operand]] = []
        sign, node = 1, self.nodes[number]
        while True:
            if node is not None and node[0] != "multiply":
                operation, arguments, _ = node
                if operation == "negate":
                    stack.append((-sign, arguments[0]))
                else:
                    stack.append((sign if operation == "add" else -sign, arguments[1]))
                    stack.append((sign, arguments[0]))
            if not stack:
                return terms
            sign, operand = stack.pop()
            node = expandable[operand] if type(operand) is int else None
            if node is None and type(operand) is int:
                terms.append((sign, [operand]))
            elif node is None or node[0] == "multiply":
                terms.append(self._term(sign, operand))

    def _term(self, sign: int, operand: Operand) -> _Term:
        """Return a summand with its factors, expanding products that have no other use.

        The signs of constant factors are moved to the sign of the term.
        """
        expandable = self.expandable
        factors: list[int] = []
        stack = [operand]
        while stack:
            operand = stack.pop()
            if type(operand) is not int:
                factors.append(self._constant(abs(operand)))
                sign = -sign if operand < 0.0 else sign
            elif (node := expandable[operand]) is not None and node[0] == "multiply":
                a, b = node[1]
                stack.append(b)
                stack.append(a)
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

    def _factored(self, terms: list[_Term]) -> tuple[Expression | float | None, list[_Term]]:
        """Return (the sum of the terms that share a factor with another one, None if there is none; the other terms).

        The factor of most terms is factored out first, the lowest number of equal ones.
        """
        total: Expression | float | None = None
        users: dict[int, list[int]] = {}
        for k, (_, factors) in enumerate(terms):
            for factor in set(factors):
                users.setdefault(factor, []).append(k)
        counts = {factor: len(those) for factor, those in users.items()}
        queue = [(-n, factor) for factor, n in counts.items() if n > 1]
        heapq.heapify(queue)
        rest: dict[int, _Term] = dict(enumerate(terms))
        while queue:
            n, factor = heapq.heappop(queue)
            if counts[factor] < -n:  # some of the terms have another factor that was factored out
                if counts[factor] > 1:
                    heapq.heappush(queue, (-counts[factor], factor))
                continue
            taken = [rest.pop(k) for k in users[factor] if k in rest]
            for _, factors in taken:
                for other in set(factors):
                    counts[other] -= 1
            product = multiply(self._factor(factor), self._sum([_divided(term, factor) for term in taken]))
            total = product if total is None else add(total, product)
        return total, list(rest.values())

    def _sum(self, terms: list[_Term]) -> Expression | float:
        """Return the sum of the terms, factoring the most frequent factor out as long as two terms share one."""
        total: Expression | float | None = None
        every = [factor for _, factors in terms for factor in factors]
        if len(set(every)) < len(every):
            total, terms = self._factored(terms)
        if len(terms) > _LONGEST_CHAIN:  # sum halves, so that the depth grows with the logarithm of the number of terms
            half = len(terms) // 2
            rest = add(self._sum(terms[:half]), self._sum(terms[half:]))
            return rest if total is None else add(total, rest)
        rebuilt, constants = self.rebuilt, self.constants
        for sign, factors in terms:
            is_subtracted = sign < 0 and total is not None and min(factors, default=-1) >= 0
            product = None if sign > 0 or is_subtracted else -1.0  # constant folding merges it into a constant factor
            for factor in factors:
                value = rebuilt[factor] if factor >= 0 else constants[-1 - factor]
                product = value if product is None else multiply(product, value)
            if product is None:
                product = 1.0
            if total is None:
                total = product
            elif is_subtracted:  # without the expression of -product
                total = subtract(total, product)
            else:
                total = add(total, product)
        assert total is not None
        return total


def _divided(term: _Term, factor: int) -> _Term:
    """Return the term divided by one of its factors."""
    sign, factors = term
    i = factors.index(factor)
    return sign, factors[:i] + factors[i + 1 :]
