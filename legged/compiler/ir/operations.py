"""The operations of a graph: their kinds for operation counts, and their values on plain numbers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.compiler.ir.philox import uniform
from legged.errors import TraceError

if TYPE_CHECKING:
    from legged.compiler.ir.graph import Graph


@dataclass(frozen=True)
class Operation:
    """One kind of operation.

    Attributes:
        name: Name of the operation in a graph.
        category: The field of `Counts` that counts it, None if it is free.
        function: The operation on Python floats; it may raise outside of its domain.
    """

    name: str
    category: str | None
    function: Callable[..., float]


def _divide(a: float, b: float) -> float:
    if b == 0.0:
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _larger(a: float, b: float) -> float:
    return a if a > b or a != a else b


def _smaller(a: float, b: float) -> float:
    return a if a < b or a != a else b


_ALL = (
    Operation("add", "additions", lambda a, b: a + b),
    Operation("subtract", "additions", lambda a, b: a - b),
    Operation("multiply", "multiplications", lambda a, b: a * b),
    Operation("divide", "divisions", _divide),
    Operation("negate", None, lambda a: -a),
    Operation("sqrt", "square_roots", math.sqrt),
    Operation("sin", "trigonometric", math.sin),
    Operation("cos", "trigonometric", math.cos),
    Operation("tan", "trigonometric", math.tan),
    Operation("arcsin", "trigonometric", math.asin),
    Operation("arccos", "trigonometric", math.acos),
    Operation("arctan", "trigonometric", math.atan),
    Operation("arctan2", "trigonometric", math.atan2),
    Operation("exp", "other", math.exp),
    Operation("log", "other", math.log),
    Operation("sinh", "other", math.sinh),
    Operation("cosh", "other", math.cosh),
    Operation("tanh", "other", math.tanh),
    Operation("power", "other", math.pow),
    *(Operation(name, "other", getattr(math, name)) for name in ("fmod", "hypot", "log1p", "log2", "log10", "expm1")),
    *(Operation(name, "other", getattr(math, name)) for name in ("cbrt", "exp2")),
    Operation("arcsinh", "other", math.asinh),
    Operation("arccosh", "other", math.acosh),
    Operation("arctanh", "other", math.atanh),
    Operation("floor", "other", lambda a: float(np.floor(a))),
    Operation("rint", "other", lambda a: float(np.rint(a))),
    Operation("random_uniform", "other", lambda *counters: float(uniform(*map(int, counters)))),
    Operation("absolute", None, lambda a: abs(a)),
    Operation("copysign", None, math.copysign),
    Operation("maximum", "selections", _larger),
    Operation("minimum", "selections", _smaller),
    Operation("select", "selections", lambda c, a, b: a if c else b),
    Operation("less", "comparisons", lambda a, b: a < b),
    Operation("less_equal", "comparisons", lambda a, b: a <= b),
    Operation("equal", "comparisons", lambda a, b: a == b),
    Operation("not_equal", "comparisons", lambda a, b: a != b),
    Operation("and", "comparisons", lambda a, b: a and b),
    Operation("or", "comparisons", lambda a, b: a or b),
    Operation("not", "comparisons", lambda a: not a),
)


class Gather(str):
    """The operation that looks up a constant table: table[i] with i = floor(x) clipped to the table; NaN for NaN.

    Each table has an operation of its own, whose name contains a hash of the numbers, so that operations of equal
    tables are equal.

    Attributes:
        table: The numbers, (n,), read-only.
    """

    table: np.ndarray

    def __new__(cls, table: np.ndarray) -> Gather:
        """Return the operation of a table, which becomes read-only, (n,), any unit and frame."""
        numbers = np.ascontiguousarray(table, dtype=float)
        numbers.flags.writeable = False
        operation = super().__new__(cls, f"gather_{hashlib.blake2b(numbers.tobytes(), digest_size=16).hexdigest()}")
        operation.table = numbers
        return operation

    def __reduce__(self) -> tuple[Any, ...]:
        return Gather, (self.table,)

    def value(self, x: float) -> float:
        """Return the number in the table at a float."""
        return x if x != x else float(self.table[int(min(max(x, 0.0), len(self.table) - 1.0))])


class ChangingGather(Gather):
    """The operation that looks up a table whose numbers change: all code of this process reads the same memory."""

    _created = 0

    def __new__(cls, table: np.ndarray) -> ChangingGather:
        """Return the operation of a table with a name of its own, (n,), any unit and frame.

        The name contains the length, which is a constant of the code that other processes find by it in the cache.
        """
        operation = str.__new__(cls, f"gather_changing_{len(table)}_{ChangingGather._created}")
        ChangingGather._created += 1
        operation.table = np.array(table, dtype=float)
        return operation

    def __deepcopy__(self, memo: Any) -> ChangingGather:
        """Return the operation itself, whose memory compiled code reads."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise TraceError(
            "a ChangingTable and kernels that read it cannot be pickled: its numbers belong to one process"
        )


class Loop(str):
    """The operation of a loop: state = body(state, captured) while its last entry is positive, at most `most` times.

    Its name contains a hash of the body, so that equal loops are equal.

    Attributes:
        body: Graph of one iteration, (state (n,), captured values (c,)) -> next state (n,).
        most: Largest number of iterations.
    """

    body: Graph
    most: int

    def __new__(cls, body: Graph, most: int) -> Loop:
        """Return the operation of a loop."""
        loop = super().__new__(cls, f"while_{hashlib.blake2b(f'{body.digest} {most}'.encode()).hexdigest()[:32]}")
        loop.body, loop.most = body, most
        return loop

    def __reduce__(self) -> tuple[Any, ...]:
        return Loop, (self.body, self.most)

    @property
    def size(self) -> int:
        """Number of entries of the state."""
        return len(self.body.results)

    result_offset = 0
    """Place of the results in memory, where they replace the initial state."""

    @property
    def memory(self) -> int:
        """Memory of a call, in numbers: state, captured values, next state."""
        return self.body.input_size + self.size

    def value(self, index: int, *numbers: float) -> float:
        """Return an entry of the final state for the initial state and the captured values."""
        return float(_final_state(self, np.array(numbers, dtype=float).tobytes())[index])


def nested_loops(graph: Graph) -> tuple[Loop, ...]:
    """Return the distinct loops among the operations of a graph and in the bodies of loops."""
    return tuple(dict.fromkeys([inner for loop in graph.loops for inner in (loop, *nested_loops(loop.body))]))


@lru_cache(8)  # `Loop.value` asks for the entries of the same state in turn
def _final_state(loop: Loop, numbers: bytes) -> np.ndarray:
    """Return the state after a loop, (n,), for the doubles of the initial state and the captured values."""
    state, captured = np.split(np.frombuffer(numbers), [loop.size])
    for _ in range(loop.most):
        if not state[-1] > 0.0:
            break
        state = loop.body.evaluate(state, captured)
    return state


class Matrix(str):
    """The operation of a product of a constant matrix and a vector, y = W x.

    Its name contains a hash of the numbers, so that products with equal matrices are equal.

    Attributes:
        weights: W, (m, n), read-only.
    """

    weights: np.ndarray

    def __new__(cls, weights: np.ndarray) -> Matrix:
        """Return the operation of a matrix, (m, n), any unit and frame."""
        numbers = np.array(weights, dtype=float, order="C")
        numbers.flags.writeable = False
        digest = hashlib.blake2b(repr(numbers.shape).encode() + numbers.tobytes(), digest_size=16).hexdigest()
        matrix = super().__new__(cls, f"dot_{digest}")
        matrix.weights = numbers
        return matrix

    def __reduce__(self) -> tuple[Any, ...]:
        return Matrix, (self.weights,)

    @property
    def rows(self) -> int:
        """Number of rows in memory, a multiple of 16, so that they fill whole vectors."""
        return -(-len(self.weights) // 16) * 16

    @property
    def table(self) -> np.ndarray:
        """The columns one after the other, each with zeros up to `rows`, flattened, (n rows,), any unit and frame."""
        return np.pad(self.weights.T, ((0, 0), (0, self.rows - len(self.weights)))).ravel()

    @property
    def result_offset(self) -> int:
        """Place of the results in memory, behind the vector."""
        return self.weights.shape[1]

    @property
    def memory(self) -> int:
        """Memory of a call, in numbers: vector and results."""
        return self.weights.shape[1] + self.rows

    def value(self, index: int, *numbers: float) -> float:
        """Return an entry of the product."""
        return float(self.weights[index] @ np.array(numbers))

    @cached_property
    def transposed(self) -> Matrix:
        """The operation of the transpose."""
        return Matrix(self.weights.T)

    def product(self, vector: Sequence[Any], construct: Callable[..., Any]) -> list[Any]:
        """Return the product with traced scalars, (n,) -> (m,); `construct` makes an operation of its arguments."""
        return [construct(CallResult(self, k), *vector) for k in range(len(self.weights))]


class CallResult(str):
    """The operation that returns one of the results of a loop or of the product with a matrix.

    Its arguments are those of the function: initial state and captured values, or the vector.

    Attributes:
        function: The loop or the matrix. index: Number of the result.
    """

    function: Loop | Matrix
    index: int

    def __new__(cls, function: Loop | Matrix, index: int) -> CallResult:
        """Return the operation of a result."""
        result = super().__new__(cls, f"{function}_{index}")
        result.function, result.index = function, index
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return CallResult, (self.function, self.index)

    def value(self, *numbers: float) -> float:
        """Return the result for the arguments."""
        return self.function.value(self.index, *numbers)


def is_call(operation: str) -> bool:
    """Return whether machine code calls a function for an operation: an elementary one, a loop or a product."""
    return operation in LIBRARY_FUNCTIONS or isinstance(operation, CallResult)


class _Operations(dict[str, Operation]):
    """Operations by name; those of tables and loops are created at their first use."""

    def __missing__(self, name: str) -> Operation:
        if isinstance(name, Gather):
            return Operation(name, "lookups", name.value)
        if isinstance(name, CallResult):
            return Operation(name, None, name.value)
        raise KeyError(name)


OPERATIONS = _Operations({operation.name: operation for operation in _ALL})

CONDITIONS = frozenset({"less", "less_equal", "equal", "not_equal", "and", "or", "not"})
"""The operations whose result is a truth value."""

LIBRARY_FUNCTIONS = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "exp": "exp",
    "log": "log",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "power": "pow",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    **{name: name for name in ("cbrt", "exp2", "expm1", "fmod", "hypot", "log10", "log1p", "log2")},
}
"""The elementary functions, operations without a machine instruction -> their names in the C library."""

TWO_ARGUMENTS = frozenset({"arctan2", "power", "fmod", "hypot"})
"""The elementary functions of two arguments; the others have one."""

VECTOR_FUNCTIONS = {"sincos": ("sin", "cos"), "exp": ("exp",), "arctan2": ("arctan2",)}
"""Functions that `codegen.elementary` computes in vector code -> the operations whose results they return."""

VECTOR_FUNCTION_OF = {"sin": "sincos", "cos": "sincos", "exp": "exp", "arctan": "arctan2", "arctan2": "arctan2"}
"""Elementary functions -> the vector function that computes them; arctan(x) is arctan2(x, 1)."""


def evaluate(name: str, *values: float) -> float:
    """Return the value of an operation on plain numbers; NaN or infinity outside of its domain, as NumPy does."""
    try:
        return OPERATIONS[name].function(*values)
    except (ValueError, OverflowError):  # raised by the functions of `math`, which have the same names in NumPy
        with np.errstate(all="ignore"):
            return float(getattr(np, name)(*values))
