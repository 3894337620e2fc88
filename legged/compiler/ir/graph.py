"""`Graph`, a traced function as a list of scalar operations, and `record`, which traces a function."""

from __future__ import annotations

import hashlib
import marshal
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, starmap
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import unit_norm_error
from legged.compiler.ir.annotations import Label
from legged.compiler.ir.expression import Expression, as_operand
from legged.compiler.ir.numpy_functions import ExpressionArray
from legged.compiler.ir.operations import CallResult, Gather, Loop, Matrix, evaluate
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.ir.tracer import Tracer
from legged.errors import LeggedError, ShapeError, TraceError, line_of_user

_MARSHAL_VERSION = 2
"""Format of `marshal` whose bytes depend on the values alone; later ones have references to shared objects."""

Shape = tuple[int, ...]
Operand = int | float
"""An argument of a node or an entry of a result: an int is the number of a value, a float is a constant."""


class Node(NamedTuple):
    """One operation on earlier values and constants.

    Attributes:
        operation: Its name, a key of `operations.OPERATIONS`, or the object of a lookup or of a result of a call.
        arguments: Its operands, see `Operand`; one tuple for all results of a call.
        label: Stage, module and item of the algorithm to which it belongs; see `annotations`.
    """

    operation: str
    arguments: tuple[Operand, ...]
    label: Label = Label()


def distinct_arguments(nodes: Iterable[Node]) -> Iterator[tuple[Operand, ...]]:
    """Yield the arguments of nodes, those of a call once for its results, which follow each other."""
    before = None
    for _, arguments, _ in nodes:
        if arguments is not before:
            yield arguments
        before = arguments


class UnitQuaternion(NamedTuple):
    """Four inputs that must be a quaternion of norm 1: the numbers of the inputs, w first, and their name in words."""

    entries: tuple[int, ...]
    name: str


# The structure of a result: an array, or nested tuples, named tuples, lists and dictionaries of arrays


Rebuild = Callable[[Iterator[Any]], Any]
"""A function from an iterator over arrays to the structure that holds them; `next` for a single array."""


class SequenceRebuild(NamedTuple):
    """Rebuilds a tuple, a list or a named tuple."""

    kind: type
    parts: tuple[Rebuild, ...]

    def __call__(self, arrays: Iterator[Any]) -> Any:
        items = [rebuild(arrays) for rebuild in self.parts]
        return self.kind(*items) if hasattr(self.kind, "_fields") else self.kind(items)


class MappingRebuild(NamedTuple):
    """Rebuilds a dictionary."""

    keys: tuple[Any, ...]
    values: Rebuild

    def __call__(self, arrays: Iterator[Any]) -> Any:
        return dict(zip(self.keys, self.values(arrays), strict=True))


def flatten(value: Any, name: str = "the result") -> tuple[list[np.ndarray], Rebuild]:
    """Return the arrays in a result, in order, and the function that rebuilds its structure from such arrays.

    Args:
        value: A number or array, or nested sequences and dictionaries of them.
        name: Name of the value in error messages.

    Returns:
        Object arrays of any shape, such as (3,), and the function.
    """
    if isinstance(value, tuple | list):
        parts = [flatten(item, f"{name}[{i}]") for i, item in enumerate(value)]
        arrays = [array for leaves, _ in parts for array in leaves]
        return arrays, SequenceRebuild(type(value), tuple(rebuild for _, rebuild in parts))
    if isinstance(value, dict):
        arrays, rebuild = flatten(tuple(value.values()), name)
        return arrays, MappingRebuild(tuple(value), rebuild)
    if value is None or isinstance(value, str):
        raise TraceError(f"a traced function returns numbers, arrays or tuples of them, but {name} is {value!r}")
    return [np.asarray(value, dtype=object)], next


def tuple_converter(rebuild: Rebuild) -> Callable[[tuple[Any, ...]], Any] | None:
    """Return the function from a tuple of arrays to the structure, None if that is the tuple or a single array."""
    if rebuild is next:
        return None
    if isinstance(rebuild, SequenceRebuild) and all(part is next for part in rebuild.parts):
        kind = rebuild.kind
        return None if kind is tuple else (lambda arrays: kind(*arrays)) if hasattr(kind, "_fields") else kind
    return lambda arrays: rebuild(iter(arrays))


@dataclass(frozen=True)
class Graph:
    """A traced function of arrays: inputs, operations in topological order without branches, and outputs.

    For i < `input_size`, value i is entry i of the inputs, flattened and concatenated; above that it is the result of
    `nodes[i - input_size]`. Every node contributes to a result, and no two nodes are equal.

    Attributes:
        inputs: Name and shape of each input.
        nodes: The operations, arguments before uses.
        outputs: Shape of each output array.
        results: The entries of the outputs, flattened and concatenated.
        rebuild: Converts output arrays to the structure that the function returns; see `flatten`.
        unit_quaternions: Quaternions among the inputs whose norm kernels check.
    """

    inputs: tuple[tuple[str, Shape], ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Shape, ...]
    results: tuple[Operand, ...]
    rebuild: Rebuild = field(compare=False, repr=False)
    unit_quaternions: tuple[UnitQuaternion, ...] = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """Return the graph itself, which does not change."""
        return self

    @cached_property
    def input_size(self) -> int:
        """Number of scalars in the inputs."""
        return sum(math.prod(shape) for _, shape in self.inputs)

    @property
    def output_size(self) -> int:
        """Number of scalars in the outputs."""
        return len(self.results)

    @property
    def is_bare(self) -> bool:
        """Whether the function returns a single array, not a tuple or another structure."""
        return self.rebuild is next

    @cached_property
    def size(self) -> int:
        """Number of operations, with those of all iterations of loops and of products with matrices."""
        products = sum(2 * matrix.weights.size for matrix in self.matrices)
        return len(self.nodes) + products + sum(loop.most * loop.body.size for loop in self.loops)

    @cached_property
    def lookups(self) -> tuple[Gather, ...]:
        """The distinct lookups of constant tables among the operations and in the bodies of loops."""
        operations = dict.fromkeys([node[0] for node in self.nodes])
        gathers = [operation for operation in operations if isinstance(operation, Gather)]
        return tuple(dict.fromkeys([*gathers, *(lookup for loop in self.loops for lookup in loop.body.lookups)]))

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The distinct loops among the operations."""
        return tuple(function for function in self._functions if isinstance(function, Loop))

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """The distinct matrices among the operations, which loops have not."""
        return tuple(function for function in self._functions if isinstance(function, Matrix))

    @cached_property
    def _functions(self) -> tuple[Loop | Matrix, ...]:
        operations = dict.fromkeys([node[0] for node in self.nodes])
        return tuple(dict.fromkeys([each.function for each in operations if isinstance(each, CallResult)]))

    @cached_property
    def digest(self) -> str:
        """A hash of shapes, operations and results, without names and labels: equal graphs compute the same numbers."""
        nodes, known = list[tuple[str, Any]](), tuple[Operand, ...]()
        for o, arguments, _ in self.nodes:  # the arguments of a call once
            nodes.append((o if type(o) is str else str(o), None if arguments is known else arguments))
            known = arguments
        checked = [quaternion.entries for quaternion in self.unit_quaternions]
        whole = [shape for _, shape in self.inputs], nodes, self.outputs, self.results, checked
        return hashlib.sha256(marshal.dumps(whole, _MARSHAL_VERSION)).hexdigest()

    def values(self, *arrays: Any) -> list[float]:
        """Return the value of every input scalar and every node, by plain Python arithmetic."""
        values = [float(x) for array in self._checked(arrays) for x in array.flat]
        self.check_quaternions(values)
        for operation, arguments, _ in self.nodes:
            values.append(evaluate(operation, *[a if isinstance(a, float) else values[a] for a in arguments]))
        return values

    def check_quaternions(self, inputs: Sequence[Any], place: str = "") -> None:
        """Raise ShapeError if a quaternion that must have norm 1 has another norm; traced scalars are not checked.

        Args:
            inputs: All inputs flattened and concatenated, (input_size,) or longer, mixed units and frames.
            place: What to add to the message, for example the index of a state in a batch.
        """
        for entries, name in self.unit_quaternions:
            quaternion = [inputs[i] for i in entries]
            if not any(isinstance(x, Expression) for x in quaternion):
                error = unit_norm_error(name, [float(x) for x in quaternion], place)
                if error is not None:
                    raise error

    def evaluate(self, *arrays: Any) -> Any:
        """Return the result of the traced function for these arrays, by plain Python arithmetic; slow, for tests."""
        values = self.values(*arrays)
        numbers = iter([r if isinstance(r, float) else float(values[r]) for r in self.results])
        return self.rebuild(self._arrays(numbers))

    def _arrays(self, numbers: Iterator[float]) -> Iterator[Any]:
        for shape in self.outputs:
            array = np.array([next(numbers) for _ in range(math.prod(shape))]).reshape(shape)
            yield array if shape else array[()]

    def _checked(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        if len(arrays) != len(self.inputs):
            raise ShapeError(f"expected {len(self.inputs)} arguments ({', '.join(n for n, _ in self.inputs)})")
        checked = [np.asarray(array, dtype=float) for array in arrays]
        for array, (name, shape) in zip(checked, self.inputs, strict=True):
            if array.shape != shape:
                raise ShapeError(f"{name} must be {shape}, got shape {array.shape}")
        return checked

    def depth(self) -> int:
        """Return the length of the critical path, the longest chain of operations each of which uses the one before.

        A loop counts as one iteration.
        """
        depths = [0] * self.input_size
        for operation, arguments, _ in self.nodes:
            below = max((depths[a] for a in arguments if isinstance(a, int)), default=0)
            own = int(operation != "negate")
            if isinstance(operation, CallResult):
                function = operation.function
                # a product of n terms, and a tree of n - 1 additions
                is_loop = isinstance(function, Loop)
                own = function.body.depth() if is_loop else 1 + (len(arguments) - 1).bit_length()
            depths.append(below + own)
        return max((depths[r] for r in self.results if isinstance(r, int)), default=0)


@compiler_pass("tracing")
def record(function: Callable[..., Any], shapes: Mapping[str, Shape], leading: Sequence[Any] = ()) -> Graph:
    """Return the graph of function(*leading, *arrays), traced.

    Args:
        function: Plain NumPy code that does not branch on values, except by `legged.where`.
        shapes: Name and shape of each traced array, in order. Shape () stands for a scalar.
        leading: Arguments before the arrays that are passed without tracing, such as a robot.

    Raises:
        TraceError: If the function contains an operation that cannot be traced; the message names an alternative.
    """
    tracer = Tracer()
    arrays = [_input(tracer, tuple(shape)) for shape in shapes.values()]
    with tracer:
        outputs, rebuild = flatten(_traced(function, [*leading, *arrays]))
        nodes, results = eliminate_dead_code(tracer, [_entry(x) for output in outputs for x in output.flat])
        checked = tuple(starmap(UnitQuaternion, tracer.unit_quaternions.items()))
    inputs = tuple((name, tuple(shape)) for name, shape in shapes.items())
    return Graph(inputs, nodes, tuple(output.shape for output in outputs), results, rebuild, checked)


def _input(tracer: Tracer, shape: Shape) -> Any:
    entries = np.empty(math.prod(shape), dtype=object)
    entries[:] = [tracer.input() for _ in entries]
    return entries.reshape(shape).view(ExpressionArray) if shape else entries[0]


def _traced(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    try:
        return function(*arguments)
    except (TraceError, IndexError, TypeError) as error:
        line, words = line_of_user(error), str(error)
        if isinstance(error, TraceError):
            if not line or line in words:  # named by a trace within
                raise
            raise type(error)(f"{words} ({line})") from error
        if isinstance(error, IndexError) and "arrays used as indices" in words:
            message = "traced conditions cannot choose entries of an array; choose between values with legged.where"
        elif isinstance(error, TypeError) and not isinstance(error, LeggedError) and "ufunc" in words:
            message = (
                f"NumPy cannot do this with traced values: {words}. Build arrays that mix traced values and plain "
                "numbers with np.stack or np.concatenate instead of np.array; of np.linalg only norm can be traced"
            )
        else:
            raise
        raise TraceError(f"{message} ({line})" if line else message) from error


def _entry(value: Any) -> Any:
    entry = as_operand(value)
    if entry is NotImplemented:
        raise TraceError(f"a traced function returns numbers and arrays of numbers, got an entry {value!r}")
    return entry


def eliminate_dead_code(
    tracer: Tracer, results: Sequence[Expression | float]
) -> tuple[tuple[Node, ...], tuple[Operand, ...]]:
    """Return the nodes that the results depend on, and the results, with the values numbered as in `Graph`.

    The tracer makes no operations after this.
    """
    tracer.table = {}  # its memory holds the nodes
    made = tracer.nodes  # the index of an expression is its place in this list
    alive = bytearray(len(made))
    for x in results:
        if isinstance(x, Expression):
            alive[x.index] = True
    done = None  # the arguments that all results of a call have
    for is_alive, x in zip(reversed(alive), reversed(made), strict=True):  # `alive` changes at places to come
        if is_alive and x.arguments is not done:
            done = x.arguments
            for a in done:
                if type(a) is not float:
                    alive[a.index] = True
    numbers = [0] * len(made)
    inputs = [k for k, x in enumerate(made) if x.operation == "argument"]
    for number, k in enumerate(inputs):
        numbers[k] = number
        alive[k] = False
    nodes = numbered_nodes(compress(made, alive), numbers, len(inputs))
    return nodes, tuple([numbers[r.index] if isinstance(r, Expression) else r for r in results])


def numbered_nodes(
    expressions: Iterable[Expression], numbers: list[int] | dict[int, int], first: int
) -> tuple[Node, ...]:
    """Return the nodes of expressions in their order.

    Args:
        expressions: The expressions, each after its arguments.
        numbers: Number of each argument by its index; receives those of the expressions.
        first: Number of the first node.
    """
    nodes, new = list[Node](), tuple.__new__  # twice as fast as the constructor of the named tuple
    done, operands = None, tuple[Operand, ...]()  # arguments, which all results of a call share, and their operands
    for number, x in enumerate(expressions, first):
        arguments = x.arguments
        if len(arguments) == 2:  # most operations, without the cost of a comprehension
            a, b = arguments
            operands = (a if type(a) is float else numbers[a.index], b if type(b) is float else numbers[b.index])
        elif arguments is not done:
            operands = tuple([a if type(a) is float else numbers[a.index] for a in arguments])
        done = arguments
        nodes.append(new(Node, (x.operation, operands, x.label)))
        numbers[x.index] = number
    return tuple(nodes)


class Entry(NamedTuple):
    """An entry of an argument or a result: the number of the array, arguments first, and the flat index in it."""

    array: int
    index: int


class Output(NamedTuple):
    """A value, and all entries of results that hold it."""

    operand: Operand
    entries: list[Entry]


def distinct_outputs(graph: Graph) -> list[Output]:
    """Return the distinct values among a graph's results, in order; 0.0 and -0.0 are distinct.

    A value has several entries where results are symmetric, and where entries are zero for every argument.
    """
    outputs: dict[int | str, Output] = {}
    operands = iter(graph.results)
    for k, shape in enumerate(graph.outputs, len(graph.inputs)):
        for i in range(math.prod(shape)):
            operand = next(operands)
            key = operand if isinstance(operand, int) else repr(operand)
            outputs.setdefault(key, Output(operand, [])).entries.append(Entry(k, i))
    return list(outputs.values())
