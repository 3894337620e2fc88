"""`jacobian`: the Jacobian of a function, as a function that can be traced and compiled in turn.

The function is recorded as a graph, which the pass `differentiate` evaluates again together with derivatives.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from legged.arguments import is_element
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, record
from legged.compiler.ir.numpy_functions import ExpressionArray
from legged.compiler.ir.tracer import require_unit_norm
from legged.compiler.passes.pipeline import Differentiation, run_passes
from legged.errors import ArgumentError, SingularError, UnknownNameError

P = ParamSpec("P")
R = TypeVar("R")
Scalar = Any  # float or Expression
MODES = ("auto", "forward", "reverse")


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
        rows = run_passes(graph, differentiation=Differentiation(values, wanted, backward)).rows
        return graph.rebuild(_results(graph, rows, arrays[name].shape))

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
            numeric = np.array(flat, float).reshape(result + shape)
            yield numeric if numeric.ndim else numeric[()]
