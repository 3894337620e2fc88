"""Export of a graph as C99: one function without static variables, which needs only the library <math.h>.

Lookup tables and large matrices are constant arrays. A product with such a matrix is a loop, and so is what
`legged.compiler.ir.repeat_while` repeats until a condition, which time steps on rigid ground and gaits do.

The function takes a pointer for each argument and each result; arrays are contiguous and row-major:

    int forward_dynamics(const double q[19], const double v[18], const double tau[18], double result[18]);

It returns 0, or 1 if a result is not finite or a quaternion among the arguments does not have norm 1. Results may alias
arguments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from legged.compiler.codegen import random_numbers
from legged.compiler.codegen.element_type import ELEMENT_TYPES, PrecisionError
from legged.compiler.ir.graph import Graph, Node, Operand
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS, CallResult, ChangingGather, Gather, Loop, Matrix
from legged.compiler.passes.pipeline import is_always_outlined, run_passes
from legged.errors import TraceError
from legged.output import output_file, replaced
from legged.version import __version__

Array = np.ndarray
_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "and": "&&", "or": "||"}
_COMPARISONS = {"less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!="}
_FUNCTIONS = {**LIBRARY_FUNCTIONS, "sqrt": "sqrt", "floor": "floor", "rint": "rint", "absolute": "fabs"}
_FUNCTIONS["copysign"] = "copysign"
_CONDITIONS = frozenset({*_COMPARISONS, "and", "or", "not"})
_KEYWORDS = """
auto bool break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
complex imaginary class new delete this template private public protected namespace operator true false
"""
_RESERVED = {*_KEYWORDS.split(), *(name + suffix for name in _FUNCTIONS.values() for suffix in ("", "f"))}
"""Keywords of C and C++, and the library functions that are called; none of them may name an argument."""


_PRECISIONS = {element.llvm: element for element in ELEMENT_TYPES.values()}


class Source(NamedTuple):
    """Paths of the files that `write` created."""

    source: Path
    header: Path


def write(
    graph: Graph, name: str, path: str | Path, precision: str = "double", layouts: Mapping[str, str] | None = None
) -> Source:
    """Write a graph to path.c and path.h, and return their paths.

    Args:
        graph: What the function computes.
        name: Name of the function.
        path: Path without ending, or with .c or .h. A missing folder is created.
        precision: "double" or "float".
        layouts: Layouts of arguments and results for the comment in the header, by name, such as "q" and "result".

    Raises:
        PrecisionError: If the precision is another, or "float" for a lookup table of more than 2**24 entries.
        TraceError: The graph reads a table that changes.
        FileError: A file cannot be written; then neither is changed.
    """
    if not isinstance(precision, str) or precision not in _PRECISIONS:
        raise PrecisionError(f"precision must be 'double' or 'float', got {precision!r}")
    longest = max((len(lookup.table) for lookup in graph.lookups), default=0)
    if longest > _PRECISIONS[precision].most_indices:
        raise PrecisionError(f"a table of {longest} entries needs precision 'double': a float cannot index it exactly")
    if any(isinstance(lookup, ChangingGather) for lookup in graph.lookups):
        raise TraceError("C code cannot read a ChangingTable: its tables are constant; use a LookupTable")
    path = output_file(path, ".c", ".h")
    written = Source(*(output_file(path.with_suffix(suffix)) for suffix in (".c", ".h")))
    exporter = _Exporter(graph, identifier(name), precision, layouts or {})
    lines = exporter.source(written.header.name), exporter.header(written.header.name)
    with replaced(written.source) as source, replaced(written.header) as header:
        for draft, own in zip((source, header), lines, strict=True):
            draft.write_text("\n".join(own) + "\n", encoding="utf-8")
    return written


def identifier(name: str) -> str:
    """Return a valid C identifier for a name, different from all other identifiers in the generated code."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "kernel"
    if name[0].isdigit():
        name = f"x_{name}"
    return (
        f"{name}_" if name in _RESERVED or re.fullmatch(r"t\d+|u+\d+|[xys]\d+_+|result\d*|finite_check", name) else name
    )


class _Exporter:
    """Writes the header and the source of a graph."""

    def __init__(self, graph: Graph, name: str, real: str, layouts: Mapping[str, str]):
        self.name, self.real, self.layouts, self.element = name, real, layouts, _PRECISIONS[real]
        simplified = is_always_outlined(graph)
        self.graph = run_passes(graph, simplified=simplified, quaternion_epsilon=self.element.epsilon).graph
        self._tables = {lookup: f"{name}_table{k}" for k, lookup in enumerate(graph.lookups)}
        self._matrices = {matrix: f"{name}_matrix{k}" for k, matrix in enumerate(graph.matrices)}
        self._calls: dict[tuple[Matrix | Loop, str], int] = {}  # of the function or of the body of a loop
        self._numbers = count()
        self.inputs = self._distinct([identifier(argument) for argument, _ in graph.inputs])
        self._norms = " or a quaternion does not have norm 1" if graph.unit_quaternions else ""
        n = len(graph.outputs)
        self.outputs = ["result"] if n == 1 else [f"result{k}" for k in range(n)]

    def _distinct(self, names: list[str]) -> list[str]:
        """Return names of which none is equal to another or to those of the function and its tables."""
        used = {self.name, *self._tables.values(), *self._matrices.values()}
        distinct = []
        for name in names:
            while name in used:
                name += "_"
            used.add(name)
            distinct.append(name)
        return distinct

    def header(self, file: str) -> Iterator[str]:
        """Yield the header, line by line."""
        guard = identifier(file.upper())
        yield f"/* {self.name}: generated by legged {__version__}. */"
        yield f"#ifndef {guard}"
        yield f"#define {guard}"
        yield ""
        yield "#ifdef __cplusplus"
        yield 'extern "C" {'
        yield "#endif"
        yield ""
        yield "/*"
        for name, (argument, shape) in zip(self.inputs, self.graph.inputs, strict=True):
            yield from self._described(f"{name}: {shape or 'scalar'}", argument)
        for name, shape in zip(self.outputs, self.graph.outputs, strict=True):
            yield from self._described(f"{name}: {shape or 'scalar'}, output", name)
        yield f"   Arrays are row-major. Returns 0, or 1 if a result is not finite{self._norms}."
        yield "*/"
        yield f"{self._signature()};"
        yield ""
        yield "#ifdef __cplusplus"
        yield "}"
        yield "#endif"
        yield ""
        yield "#endif"

    def _described(self, words: str, name: str) -> Iterator[str]:
        """Yield the comment about an array: its shape, and its layout in further lines."""
        first, *lines = self.layouts.get(name, "").replace("*/", "* /").splitlines() or [""]
        yield f"   {words}{', ' if first else ''}{first}"
        yield from (f"      {line}" for line in lines)

    def _signature(self) -> str:
        sizes = [math.prod(shape) for _, shape in self.graph.inputs]
        parameters = [f"const {self.real} {n}[{max(s, 1)}]" for n, s in zip(self.inputs, sizes, strict=True)]
        sizes = [math.prod(shape) for shape in self.graph.outputs]
        parameters += [f"{self.real} {n}[{max(s, 1)}]" for n, s in zip(self.outputs, sizes, strict=True)]
        return f"int {self.name}({', '.join(parameters) or 'void'})"

    def source(self, header: str) -> Iterator[str]:
        """Yield the source, line by line."""
        graph = self.graph
        used = {a for node in graph.nodes for a in node.arguments if isinstance(a, int)}
        used |= {r for r in graph.results if isinstance(r, int)}
        yield f"/* {self.name}: generated by legged {__version__}. */"
        yield f'#include "{header}"'
        yield ""
        yield "#include <math.h>"
        yield ""
        if any(node.operation == "random_uniform" for node in graph.nodes):
            yield from random_numbers.c_function(self.real, self.element)
            yield ""
        for lookup, name in self._tables.items():
            yield from self._array(name, lookup.table)
        for matrix, name in self._matrices.items():
            yield from self._array(name, matrix.weights.ravel())
        yield self._signature()
        yield "{"
        first = 0
        for name, (_, shape) in zip(self.inputs, graph.inputs, strict=True):
            if not any(first + i in used for i in range(math.prod(shape))):
                yield f"    (void){name};"
            for i in range(math.prod(shape)):
                if first + i in used:
                    yield f"    const {self.real} t{first + i} = {name}[{i}];"
            first += math.prod(shape)
        for i, node in enumerate(graph.nodes, graph.input_size):
            if isinstance(node.operation, CallResult):
                yield from self._call(node.operation.function, node.arguments)
            c_type = "int" if node.operation in _CONDITIONS else self.real
            yield f"    const {c_type} t{i} = {self._expression(node)};"
        yield f"    {self.real} finite_check = {self._constant(0.0)};"
        results = iter(graph.results)
        for name, shape in zip(self.outputs, graph.outputs, strict=True):
            if not math.prod(shape):
                yield f"    (void){name};"
            for i in range(math.prod(shape)):
                result = next(results)
                yield f"    {name}[{i}] = {self._operand(result)};"
                if isinstance(result, int):
                    yield f"    finite_check += t{result} - t{result};"
        yield f"    return !(finite_check == {self._constant(0.0)});"
        yield "}"

    def _array(self, name: str, numbers: Array) -> Iterator[str]:
        yield f"static const {self.real} {name}[{len(numbers)}] = {{"
        for start in range(0, len(numbers), 8):
            yield f"    {', '.join(map(self._constant, numbers[start : start + 8].tolist()))},"
        yield "};"
        yield ""

    def _call(self, function: Matrix | Loop, arguments: tuple[Operand, ...], letter: str = "t") -> Iterator[str]:
        """Yield the code of a product or a loop, once for all of its results; variables have names with the letter."""
        key = function, repr(arguments)
        if key in self._calls:
            return
        k = self._calls[key] = next(self._numbers)
        if isinstance(function, Loop):
            yield from self._loop(k, function, arguments, letter)
        else:
            yield from self._product(k, function, arguments)

    def _product(self, k: int, matrix: Matrix, vector: tuple[Operand, ...]) -> Iterator[str]:
        rows, columns = matrix.weights.shape
        yield from self._local(f"const {self.real} x{k}_", vector)
        yield f"    {self.real} y{k}_[{rows}];"
        yield f"    for (int i = 0; i < {rows}; ++i) {{"
        yield f"        y{k}_[i] = {self._constant(0.0)};"
        yield f"        for (int j = 0; j < {columns}; ++j)"
        yield f"            y{k}_[i] += {self._matrices[matrix]}[i * {columns} + j] * x{k}_[j];"
        yield "    }"

    def _loop(self, k: int, loop: Loop, arguments: tuple[Operand, ...], letter: str) -> Iterator[str]:
        """Yield a loop: its state is an array y; its body has variables u, the first of them state and captured.

        A loop in the body of another one has variables uu.
        """
        body, own = loop.body, "u" if letter == "t" else f"{letter}u"
        (_, (size,)), (_, (captured,)) = body.inputs
        yield from self._local(f"{self.real} y{k}_", arguments[:size], letter)
        yield f"    for (int i = 0; i < {loop.most} && y{k}_[{size - 1}] > {self._constant(0.0)}; ++i) {{"
        used = {a for node in body.nodes for a in node.arguments if isinstance(a, int)} | set(body.results)
        for i in range(size + captured):
            if i in used:
                value = f"y{k}_[{i}]" if i < size else self._operand(arguments[i], letter)
                yield f"        const {self.real} {own}{i} = {value};"
        outer, self._calls = self._calls, {}
        for i, node in enumerate(body.nodes, size + captured):
            if isinstance(node.operation, CallResult):
                yield from self._call(node.operation.function, node.arguments, own)
            if i in used:
                c_type = "int" if node.operation in _CONDITIONS else self.real
                yield f"        const {c_type} {own}{i} = {self._expression(node, own)};"
        self._calls = outer
        for i, result in enumerate(body.results):
            yield f"        y{k}_[{i}] = {self._operand(result, own)};"
        yield "    }"

    def _local(self, name: str, values: tuple[Operand, ...], letter: str = "t") -> Iterator[str]:
        yield f"    {name}[{len(values)}] = {{"
        for start in range(0, len(values), 8):
            yield f"        {', '.join([self._operand(x, letter) for x in values[start : start + 8]])},"
        yield "    };"

    def _expression(self, node: Node, letter: str = "t") -> str:
        operation, a = node.operation, [self._operand(x, letter) for x in node.arguments]
        if isinstance(operation, CallResult):
            return f"y{self._calls[operation.function, repr(node.arguments)]}_[{operation.index}]"
        if isinstance(operation, Gather):
            x, zero, last = a[0], self._constant(0.0), self._constant(len(operation.table) - 1.0)
            bounded = f"{x} < {zero} ? {zero} : {x} > {last} ? {last} : {x}"
            return f"{x} != {x} ? {x} : {self._tables[operation]}[(long)({bounded})]"
        if operation == "random_uniform":
            return f"{random_numbers.C_NAME}({', '.join(f'(uint32_t){x}' for x in a)})"
        if operation in _INFIX or operation in _COMPARISONS:
            return f"{a[0]} {_INFIX.get(operation) or _COMPARISONS[operation]} {a[1]}"
        if operation in _FUNCTIONS:
            return f"{_FUNCTIONS[operation]}{self.element.library_suffix}({', '.join(a)})"
        if operation == "negate":
            return f"-({a[0]})"
        if operation == "not":
            return f"!{a[0]}"
        if operation == "select":
            return f"{a[0]} ? {a[1]} : {a[2]}"
        sign = ">" if operation == "maximum" else "<"
        return f"({a[0]} {sign} {a[1]} || {a[0]} != {a[0]}) ? {a[0]} : {a[1]}"  # propagates NaN

    def _operand(self, operand: Operand, letter: str = "t") -> str:
        return f"{letter}{operand}" if isinstance(operand, int) else self._constant(operand)

    def _constant(self, x: float) -> str:
        if not math.isfinite(x):
            return "NAN" if math.isnan(x) else "INFINITY" if x > 0.0 else "(-INFINITY)"
        text = f"{self.element.in_range(x)!r}{self.element.library_suffix}"
        return f"({text})" if x < 0.0 else text
