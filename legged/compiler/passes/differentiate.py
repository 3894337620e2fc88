"""Automatic differentiation of a traced function: its Jacobian, as a function that can be traced and compiled in turn.

The function is recorded as a graph, and the graph is evaluated again together with derivatives. Forward mode carries
the derivatives of every value with respect to the inputs from the inputs to the results; reverse mode carries the
derivatives of each result with respect to every value back from the result to the inputs. Both give the same numbers;
their cost grows with the number of inputs and of results. Derivatives that are zero are never formed.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from legged.arguments import is_element
from legged.compiler.ir.constant_folding import CONSTRUCTORS
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, Node, record
from legged.compiler.ir.numpy_functions import ExpressionArray
from legged.compiler.ir.operations import CONDITIONS, Lookup
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.ir.tracer import require_unit_norm
from legged.errors import ArgumentError, SingularError, TraceError, UnknownNameError

P = ParamSpec("P")
R = TypeVar("R")
Scalar = Any  # float or Expression
MODES = ("auto", "forward", "reverse")

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
    "floor": lambda y, a: (0.0,),
    "absolute": lambda y, a: (
        select(CONSTRUCTORS["less"](a, 0.0), -1.0, select(CONSTRUCTORS["less"](0.0, a), 1.0, 0.0)),
    ),
    "maximum": lambda y, a, b: _select_partials(CONSTRUCTORS["less"](b, a)),
    "minimum": lambda y, a, b: _select_partials(CONSTRUCTORS["less"](a, b)),
}
"""The partial derivatives of each operation y = f(a, b) with respect to its operands, from y and the operands."""


@overload
def jacobian(
    function: Callable[P, float | np.ndarray], argument: str | int = 0, mode: str = "auto"
) -> Callable[P, np.ndarray]: ...
@overload
def jacobian(function: Callable[P, R], argument: str | int = 0, mode: str = "auto") -> Callable[P, R]: ...
def jacobian(function: Callable[..., Any], argument: str | int = 0, mode: str = "auto") -> Callable[..., Any]:
    """Return the function that computes the Jacobian of `function` with respect to one of its array arguments.

        J = legged.jacobian(legged.forward_dynamics, "tau")
        J(robot, q, v, tau)                          # the inverse of the inertia matrix, (nv, nv)
        kernel = legged.compile(J, robot)            # the same in machine code

    The result has the arguments of `function`, can be traced, compiled, counted and differentiated again. Called with
    plain numbers it traces `function` at each call: compile it for speed. The derivative is taken with respect to the
    entries as they stand: for the entries of q that hold a quaternion this is not the derivative along the motion; see
    `legged.linearize` and `legged.algorithms.derivatives` for that. Where `legged.where`, a maximum or an absolute
    value switches, the derivative is that of one side. In reverse mode both sides of a `legged.where` must have finite
    derivatives: guard roots and divisions inside them.

    Args:
        function: Plain NumPy code that can be traced, of arrays and of arguments that are passed on unchanged. Where
            the Jacobian itself is traced, all traced values must come in as arguments, not from an enclosing scope.
        argument: Name of the array argument, or its position among the arguments that are numbers or arrays.
        mode: "forward" (cost grows with the entries of the argument), "reverse" (with those of the results), or "auto".

    Returns:
        A function that returns, for each array that `function` returns, an array of shape result.shape +
        argument.shape, entry [i, j] being d result[i] / d argument[j], in the structure that `function` returns.

    Raises:
        UnknownNameError: `function` has no such argument.
        ArgumentError: Another mode; or, when the Jacobian is called, an argument that is no array.
        TraceError: `function` cannot be traced.
        SingularError: The Jacobian of plain numbers is not finite.
    """
    if not isinstance(mode, str) or mode not in MODES:
        raise ArgumentError(f"mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    if not callable(function):
        raise ArgumentError(f"function must be callable, got {function!r}")
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise ArgumentError(f"the arguments of {function!r} are not known; pass a Python function") from None
    if isinstance(argument, str) and argument not in signature.parameters:
        raise UnknownNameError("argument", argument, signature.parameters)

    @functools.wraps(function)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        arrays = {name: _array(value) for name, value in bound.arguments.items() if _is_array(value)}
        name = _chosen(argument, arrays, bound.arguments)

        def traced(*inputs: Any) -> Any:
            call = inspect.BoundArguments(signature, bound.arguments | dict(zip(arrays, inputs, strict=True)))
            return function(*call.args, **call.kwargs)

        if not any(array.dtype == object for array in arrays.values()):
            return _evaluate(derivative, signature, bound.arguments, arrays)
        graph = record(traced, {key: array.shape for key, array in arrays.items()})
        start = sum(arrays[key].size for key in list(arrays)[: list(arrays).index(name)])
        wanted = range(start, start + arrays[name].size)
        values = [_scalar(x) for array in arrays.values() for x in array.ravel().tolist()]
        graph.check_quaternions(values)
        for entries, quaternion in graph.unit_quaternions:
            require_unit_norm(quaternion, [values[i] for i in entries])
        backward = mode == "reverse" or (mode == "auto" and graph.output_size < len(wanted))
        entries = (_reverse if backward else _forward)(graph, values, wanted)
        return graph.rebuild(_results(graph, entries, arrays[name].shape))

    derivative.__name__ = f"jacobian_of_{getattr(function, '__name__', 'function')}"
    return derivative


def _evaluate(
    derivative: Callable[..., Any], signature: inspect.Signature, given: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Any:
    """Return the Jacobian at plain numbers: it is traced, and the graph is evaluated by plain Python arithmetic."""

    def traced(*inputs: Any) -> Any:
        call = inspect.BoundArguments(signature, given | dict(zip(arrays, inputs, strict=True)))
        return derivative(*call.args, **call.kwargs)

    graph = record(traced, {key: array.shape for key, array in arrays.items()})
    values = graph.values(*arrays.values())
    if not all(math.isfinite(r if isinstance(r, float) else values[r]) for r in graph.results):
        raise SingularError(f"{derivative.__name__} is not finite at these arguments")
    return graph.evaluate(*arrays.values())


def _is_array(value: Any) -> bool:
    """Return whether an argument holds numbers or traced scalars: it is an input of the graph."""
    if isinstance(value, (list, tuple)) and value:
        value = np.asarray(value, object)
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiu" or (
            value.dtype == object and all(is_element(x) for x in value.ravel().tolist())
        )
    return is_element(value)


def _array(value: Any) -> np.ndarray:
    entries = np.asarray(value, object) if isinstance(value, Expression) else np.asarray(value)
    return entries.view(np.ndarray)


def _scalar(x: Any) -> Scalar:
    return float(x) if isinstance(x, numbers.Real) else x


def _chosen(argument: str | int, arrays: dict[str, np.ndarray], given: dict[str, Any]) -> str:
    """Return the name of the array argument of the derivative; raise ArgumentError if there is none."""
    if isinstance(argument, str):
        if argument not in arrays:
            raise ArgumentError(f"{argument} must be a number or an array, got {given.get(argument)!r}")
        return argument
    if not 0 <= argument < len(arrays):
        raise ArgumentError(f"there is no array argument {argument}; the array arguments are {', '.join(arrays)}")
    return list(arrays)[argument]


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
    if isinstance(node.operation, Lookup):  # constant between the entries of its table
        return (0.0,)
    if node.operation not in PARTIALS:
        raise TraceError(f"the operation {node.operation!r} has no derivative")
    return PARTIALS[node.operation](value, *operands)


@compiler_pass("differentiation")
def _forward(graph: Graph, values: list[Scalar], wanted: range) -> list[list[Scalar]]:
    """Return the rows of the Jacobian by forward mode: each value has its nonzero derivatives, by input."""
    slopes: list[dict[int, Scalar]] = [{i - wanted.start: 1.0} if i in wanted else {} for i in range(graph.input_size)]
    for node in graph.nodes:
        value, operands = _evaluated(node, values)
        values.append(value)
        slope: dict[int, Scalar] = {}
        depends = [isinstance(a, int) and bool(slopes[a]) for a in node.arguments]
        if any(depends) and node.operation not in CONDITIONS:
            if node.operation == "select":  # no product with 0 or 1, so that the side not selected may be infinite
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


@compiler_pass("differentiation")
def _reverse(graph: Graph, values: list[Scalar], wanted: range) -> list[list[Scalar]]:
    """Return the rows of the Jacobian by reverse mode: one sweep over the graph for each result."""
    first = graph.input_size
    operands: list[list[Scalar]] = []
    active = [i in wanted for i in range(first)]
    for node in graph.nodes:
        value, found = _evaluated(node, values)
        values.append(value)
        operands.append(found)
        needed = any(isinstance(a, int) and active[a] for a in node.arguments)
        active.append(needed and node.operation not in CONDITIONS)
    rows = []
    for result in graph.results:
        adjoint: dict[int, Scalar] = {result: 1.0} if isinstance(result, int) and active[result] else {}
        for i in range(max(adjoint, default=0), first - 1, -1):
            if i not in adjoint or not active[i]:
                continue
            node, y = graph.nodes[i - first], adjoint.pop(i)
            if node.operation == "select":
                condition, zero = operands[i - first][0], 0.0
                shares: Sequence[Scalar] = (zero, select(condition, y, zero), select(condition, zero, y))
            else:
                partials = _partials(node, values[i], operands[i - first])
                shares = [0.0 if _is_zero(p) else multiply(p, y) for p in partials]
            for a, share in zip(node.arguments, shares, strict=True):
                if isinstance(a, int) and active[a] and not _is_zero(share):
                    adjoint[a] = add(adjoint.get(a, 0.0), share)
        rows.append([adjoint.get(j, 0.0) for j in wanted])
    return rows


def _is_zero(x: Scalar) -> bool:
    return isinstance(x, float) and x == 0.0


def _results(graph: Graph, rows: list[list[Scalar]], shape: tuple[int, ...]) -> Any:
    """Yield the Jacobian of each result as an array, of floats if no entry is traced."""
    at = 0
    for result in graph.outputs:
        size = math.prod(result)
        flat = [x for row in rows[at : at + size] for x in row]
        at += size
        if any(isinstance(x, Expression) for x in flat):
            entries = np.empty(len(flat), object)
            entries[:] = flat
            yield entries.reshape(result + shape).view(ExpressionArray) if result + shape else flat[0]
        else:
            found = np.array(flat, float).reshape(result + shape)
            yield found if found.ndim else found[()]
