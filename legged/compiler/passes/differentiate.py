"""Automatic differentiation: the Jacobian of a graph, for `jacobian`.

The graph is evaluated again together with derivatives. Forward mode carries the derivatives of every value with respect
to the inputs from the inputs to the results; reverse mode carries the derivatives of each result with respect to every
value back from the result to the inputs. Both give the same numbers; their cost grows with the number of inputs and of
results. Derivatives that are zero are never formed. `drop_terms` uses the same partial derivatives as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from legged.compiler.ir.constant_folding import CONSTRUCTORS, operation
from legged.compiler.ir.graph import Graph, Node
from legged.compiler.ir.operations import CONDITIONS, CallResult, Gather, Loop, Matrix
from legged.compiler.ir.pass_times import compiler_pass
from legged.errors import TraceError

Scalar = Any  # float or Expression

add, subtract, multiply, divide = (CONSTRUCTORS[name] for name in ("add", "subtract", "multiply", "divide"))
negate, sqrt, power, select = (CONSTRUCTORS[name] for name in ("negate", "sqrt", "power", "select"))


def _square(x: Scalar) -> Scalar:
    return multiply(x, x)


def _select_partials(condition: Scalar) -> tuple[Scalar, Scalar]:
    """Return the derivatives of a choice between two operands: 1 and 0 where the condition holds, else 0 and 1."""
    return select(condition, 1.0, 0.0), select(condition, 0.0, 1.0)


def _power(y: Scalar, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    return multiply(b, power(a, subtract(b, 1.0))), multiply(y, CONSTRUCTORS["log"](a))


def _arctan2(_: Scalar, y: Scalar, x: Scalar) -> tuple[Scalar, Scalar]:
    squared = add(_square(x), _square(y))
    return divide(x, squared), negate(divide(y, squared))


PARTIALS: dict[str, Callable[..., tuple[Scalar, ...]]] = {
    "add": lambda y, a, b: (1.0, 1.0),
    "subtract": lambda y, a, b: (1.0, -1.0),
    "multiply": lambda y, a, b: (b, a),
    "divide": lambda y, a, b: (divide(1.0, b), negate(divide(y, b))),
    "negate": lambda y, a: (-1.0,),
    "sqrt": lambda y, a: (divide(0.5, y),),
    "sin": lambda y, a: (CONSTRUCTORS["cos"](a),),
    "cos": lambda y, a: (negate(CONSTRUCTORS["sin"](a)),),
    "tan": lambda y, a: (add(1.0, _square(y)),),
    "arcsin": lambda y, a: (divide(1.0, sqrt(subtract(1.0, _square(a)))),),
    "arccos": lambda y, a: (divide(-1.0, sqrt(subtract(1.0, _square(a)))),),
    "arctan": lambda y, a: (divide(1.0, add(1.0, _square(a))),),
    "arctan2": _arctan2,
    "exp": lambda y, a: (y,),
    "log": lambda y, a: (divide(1.0, a),),
    "sinh": lambda y, a: (CONSTRUCTORS["cosh"](a),),
    "cosh": lambda y, a: (CONSTRUCTORS["sinh"](a),),
    "tanh": lambda y, a: (subtract(1.0, _square(y)),),
    "power": _power,
    "fmod": lambda y, a, b: (1.0, negate(CONSTRUCTORS["rint"](divide(subtract(a, y), b)))),
    "hypot": lambda y, a, b: (divide(a, y), divide(b, y)),
    "cbrt": lambda y, a: (divide(1.0 / 3.0, _square(y)),),
    "log1p": lambda y, a: (divide(1.0, add(a, 1.0)),),
    "log2": lambda y, a: (divide(1.0 / math.log(2.0), a),),
    "log10": lambda y, a: (divide(1.0 / math.log(10.0), a),),
    "expm1": lambda y, a: (add(y, 1.0),),
    "exp2": lambda y, a: (multiply(math.log(2.0), y),),
    "arcsinh": lambda y, a: (divide(1.0, sqrt(add(_square(a), 1.0))),),
    "arccosh": lambda y, a: (divide(1.0, sqrt(add(_square(a), -1.0))),),
    "arctanh": lambda y, a: (divide(1.0, subtract(1.0, _square(a))),),
    **dict.fromkeys(("floor", "rint"), lambda y, a: (0.0,)),
    "copysign": lambda y, a, b: (multiply(CONSTRUCTORS["copysign"](1.0, a), CONSTRUCTORS["copysign"](1.0, b)), 0.0),
    "random_uniform": lambda y, *counters: (0.0,) * len(counters),
    "absolute": lambda y, a: (
        select(CONSTRUCTORS["less"](a, 0.0), -1.0, select(CONSTRUCTORS["less"](0.0, a), 1.0, 0.0)),
    ),
    "maximum": lambda y, a, b: _select_partials(CONSTRUCTORS["less"](b, a)),
    "minimum": lambda y, a, b: _select_partials(CONSTRUCTORS["less"](a, b)),
}
"""The partial derivatives of each operation y = f(a, b) with respect to its operands, from y and the operands."""


def _evaluated(node: Node, values: list[Scalar]) -> tuple[Scalar, list[Scalar]]:
    """Return a node's value and its operands."""
    operands = [a if isinstance(a, float) else values[a] for a in node.arguments]
    return CONSTRUCTORS[node.operation](*operands), operands


def _partials(node: Node, value: Scalar, operands: list[Scalar]) -> tuple[Scalar, ...]:
    """Return the partial derivative of a node with respect to each operand; 0.0 for the condition of a choice."""
    if node.operation == "select":
        return 0.0, *_select_partials(operands[0])
    if node.operation == "power" and isinstance(node.arguments[1], float):  # no logarithm: the base may be negative
        base, exponent = operands
        return multiply(exponent, power(base, subtract(exponent, 1.0))), 0.0
    if isinstance(node.operation, Gather):  # constant between the entries of its table
        return (0.0,)
    if node.operation not in PARTIALS:
        raise TraceError(f"the operation {node.operation!r} has no derivative")
    return PARTIALS[node.operation](value, *operands)


def partials(graph: Graph, values: list[Scalar]) -> list[tuple[Scalar, ...]]:
    """Return the partial derivatives of each node with respect to its operands; zeros for those of conditions.

    Args:
        graph: The graph. values: The values of its inputs, to which those of the nodes are added.

    Raises:
        TraceError: The graph has a loop, a lookup table or a product with a large matrix.
    """
    slopes = []
    for node in graph.nodes:
        if isinstance(node.operation, CallResult | Gather):
            raise TraceError(f"the operation {node.operation!r} has no derivative for single terms")
        value, operands = _evaluated(node, values)
        values.append(value)
        known = node.operation not in CONDITIONS
        slopes.append(_partials(node, value, operands) if known else (0.0,) * len(operands))
    return slopes


@compiler_pass("differentiation")
def derivatives(graph: Graph, values: list[Scalar], wanted: range, is_reverse: bool) -> list[list[Scalar]]:
    """Return the rows of the Jacobian of a graph, one for each result.

    Args:
        graph: The graph. values: The values of its inputs, to which those of the nodes are added.
        wanted: Numbers of the inputs with respect to which to differentiate.
        is_reverse: Whether to use reverse mode.
    """
    return (_reverse if is_reverse else _forward)(graph, values, wanted)


def _forward(graph: Graph, values: list[Scalar], wanted: range) -> list[list[Scalar]]:
    """Return the rows of the Jacobian by forward mode: each value has its nonzero derivatives, by input."""
    slopes: list[dict[int, Scalar]] = [{i - wanted.start: 1.0} if i in wanted else {} for i in range(graph.input_size)]
    for node in graph.nodes:
        value, operands = _evaluated(node, values)
        values.append(value)
        slope: dict[int, Scalar] = {}
        depends = [isinstance(a, int) and bool(slopes[a]) for a in node.arguments]
        if any(depends) and node.operation not in CONDITIONS:
            if isinstance(node.operation, CallResult):
                _matrix(node)
                columns = [slopes[a] if isinstance(a, int) else {} for a in node.arguments]
                for j in sorted({j for column in columns for j in column}):
                    slope[j] = CONSTRUCTORS[node.operation](*[column.get(j, 0.0) for column in columns])
            elif node.operation == "select":  # no product with 0 or 1, so that the side not selected may be infinite
                a, b = (slopes[a] if isinstance(a, int) else {} for a in node.arguments[1:])
                slope = {j: select(operands[0], a.get(j, 0.0), b.get(j, 0.0)) for j in a.keys() | b.keys()}
            else:
                for a, use, partial in zip(node.arguments, depends, _partials(node, value, operands), strict=True):
                    if use and not _is_zero(partial):
                        for j, x in slopes[a].items():  # type: ignore[index]
                            slope[j] = add(slope.get(j, 0.0), multiply(partial, x))
        slopes.append(slope)
    none: dict[int, Scalar] = {}
    rows = [slopes[r] if isinstance(r, int) else none for r in graph.results]
    return [[row.get(j, 0.0) for j in range(len(wanted))] for row in rows]


def _reverse(graph: Graph, values: list[Scalar], wanted: range) -> list[list[Scalar]]:
    """Return the rows of the Jacobian by reverse mode: one sweep over the graph for each result."""
    first = graph.input_size
    operands: list[list[Scalar]] = []
    active = [i in wanted for i in range(first)]
    for node in graph.nodes:
        value, node_operands = _evaluated(node, values)
        values.append(value)
        operands.append(node_operands)
        needed = any(isinstance(a, int) and active[a] for a in node.arguments)
        active.append(needed and node.operation not in CONDITIONS)
    rows, products = [], _products(graph)
    for result in graph.results:
        adjoint: dict[int, Scalar] = {result: 1.0} if isinstance(result, int) and active[result] else {}
        for i in range(max(adjoint, default=0), first - 1, -1):
            if not active[i] or (i not in adjoint and i not in products):
                continue
            node = graph.nodes[i - first]
            if isinstance(node.operation, CallResult):
                matrix = _matrix(node)
                if i not in products:  # until all entries of the product have their derivatives
                    continue
                y = [adjoint.pop(k, 0.0) for k in products[i]]
                if all(map(_is_zero, y)):
                    continue
                shares: Sequence[Scalar] = matrix.transposed.product(y, operation)
            elif node.operation == "select":
                y = adjoint.pop(i)
                condition, zero = operands[i - first][0], 0.0
                shares = (zero, select(condition, y, zero), select(condition, zero, y))
            else:
                y = adjoint.pop(i)
                partials = _partials(node, values[i], operands[i - first])
                shares = [0.0 if _is_zero(p) else multiply(p, y) for p in partials]
            for a, share in zip(node.arguments, shares, strict=True):
                if isinstance(a, int) and active[a] and not _is_zero(share):
                    adjoint[a] = add(adjoint.get(a, 0.0), share)
        rows.append([adjoint.get(j, 0.0) for j in wanted])
    return rows


def _matrix(node: Node) -> Matrix:
    """Return the matrix of a node that is an entry of a product; loops have no derivative."""
    assert isinstance(node.operation, CallResult)
    if isinstance(node.operation.function, Loop):
        raise TraceError(f"the operation {node.operation!r} has no derivative")
    return node.operation.function


def _products(graph: Graph) -> dict[int, list[int]]:
    """Return the values of each product with a matrix, in order of rows, by the first of them; absent ones are -1."""
    entries: dict[tuple[Matrix, str], dict[int, int]] = {}  # the arguments as text, since 1 == 1.0
    for i, (result, arguments, _) in enumerate(graph.nodes, graph.input_size):
        if isinstance(result, CallResult) and isinstance(result.function, Matrix):
            entries.setdefault((result.function, repr(arguments)), {})[result.index] = i
    return {
        min(rows.values()): [rows.get(k, -1) for k in range(len(matrix.weights))]
        for (matrix, _), rows in entries.items()
    }


def _is_zero(x: Scalar) -> bool:
    return isinstance(x, float) and x == 0.0
