"""A graph as C99: one function without branches, loops, memory of its own or libraries but the C library's <math.h>.

The function takes a pointer for each argument and each result, numbers end to end, last axis fastest:

    int forward_dynamics(const double q[19], const double v[18], const double tau[18], double result[18]);

It returns 0, or 1 if a result is not finite. Results may lie where arguments do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from legged.compiler.ir.graph import Graph, Node, Operand
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS
from legged.errors import LeggedError
from legged.version import __version__

_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "and": "&&", "or": "||"}
_COMPARISONS = {"less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!="}
_FUNCTIONS = {**LIBRARY_FUNCTIONS, "sqrt": "sqrt", "floor": "floor", "absolute": "fabs"}
_CONDITIONS = frozenset({*_COMPARISONS, "and", "or", "not"})
_KEYWORDS = """
auto bool break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
complex imaginary class new delete this template private public protected namespace operator true false
"""
_RESERVED = {*_KEYWORDS.split(), *(name + suffix for name in _FUNCTIONS.values() for suffix in ("", "f"))}
"""Words of C and C++, and the functions that are called: no names for arguments."""


class PrecisionError(LeggedError, ValueError):
    """A precision that numbers in C do not have."""


class Source(NamedTuple):
    """Where the code was written."""

    source: Path
    header: Path


def write(
    graph: Graph, name: str, path: str | Path, precision: str = "double", meanings: Mapping[str, str] | None = None
) -> Source:
    """Write path.c and path.h and return where they are.

    Args:
        graph: What to compute.
        name: Of the function.
        path: Where to; an ending .c or .h is left out first. Its folder must exist.
        precision: "double" or "float".
        meanings: What the entries of arguments are, in words.
    """
    if precision not in ("double", "float"):
        raise PrecisionError(f"precision must be 'double' or 'float', got {precision!r}")
    path = Path(path)
    stem = path.with_suffix("") if path.suffix in (".c", ".h") else path
    found = Source(stem.with_name(stem.name + ".c"), stem.with_name(stem.name + ".h"))
    exporter = _Exporter(graph, identifier(name), precision, meanings or {})
    found.header.write_text("\n".join(exporter.header(found.header.name)) + "\n", encoding="utf-8")
    found.source.write_text("\n".join(exporter.source(found.header.name)) + "\n", encoding="utf-8")
    return found


def identifier(name: str) -> str:
    """Return a name that C accepts and that nothing else here has."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "kernel"
    if name[0].isdigit():
        name = f"x_{name}"
    return f"{name}_" if name in _RESERVED or re.fullmatch(r"t\d+|result\d*|wrong", name) else name


class _Exporter:
    def __init__(self, graph: Graph, name: str, real: str, meanings: Mapping[str, str]):
        self.graph, self.name, self.real, self.meanings = graph, name, real, meanings
        self.inputs = self._distinct([identifier(argument) for argument, _ in graph.inputs])
        n = len(graph.outputs)
        self.outputs = ["result"] if n == 1 else [f"result{k}" for k in range(n)]

    def _distinct(self, names: list[str]) -> list[str]:
        return [f"{name}_{k}" if name in names[:k] or name == self.name else name for k, name in enumerate(names)]

    def header(self, file: str) -> Iterator[str]:
        """Yield the header, line by line."""
        guard = identifier(file.upper())
        yield f"/* {self.name}: made by legged {__version__}. */"
        yield f"#ifndef {guard}"
        yield f"#define {guard}"
        yield ""
        yield "#ifdef __cplusplus"
        yield 'extern "C" {'
        yield "#endif"
        yield ""
        yield "/*"
        for name, (argument, shape) in zip(self.inputs, self.graph.inputs, strict=True):
            meaning = self.meanings.get(argument, "")
            yield f"   {name}: {shape or 'one number'}{', ' if meaning else ''}{meaning}"
        for name, shape in zip(self.outputs, self.graph.outputs, strict=True):
            yield f"   {name}: {shape or 'one number'}, written"
        yield "   Arrays are row-major. Returns 0, or 1 if a result is not finite."
        yield "*/"
        yield f"{self._signature()};"
        yield ""
        yield "#ifdef __cplusplus"
        yield "}"
        yield "#endif"
        yield ""
        yield "#endif"

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
        yield f"/* {self.name}: made by legged {__version__}. */"
        yield f'#include "{header}"'
        yield ""
        yield "#include <math.h>"
        yield ""
        yield self._signature()
        yield "{"
        number = 0
        for name, (_, shape) in zip(self.inputs, graph.inputs, strict=True):
            if not any(number + i in used for i in range(math.prod(shape))):
                yield f"    (void){name};"
            for i in range(math.prod(shape)):
                if number + i in used:
                    yield f"    const {self.real} t{number + i} = {name}[{i}];"
            number += math.prod(shape)
        for i, node in enumerate(graph.nodes, graph.input_size):
            kind = "int" if node.operation in _CONDITIONS else self.real
            yield f"    const {kind} t{i} = {self._expression(node)};"
        yield f"    {self.real} wrong = {self._constant(0.0)};"
        results = iter(graph.results)
        for name, shape in zip(self.outputs, graph.outputs, strict=True):
            if not math.prod(shape):
                yield f"    (void){name};"
            for i in range(math.prod(shape)):
                result = next(results)
                yield f"    {name}[{i}] = {self._operand(result)};"
                if isinstance(result, int):
                    yield f"    wrong += t{result} - t{result};"
        yield f"    return !(wrong == {self._constant(0.0)});"
        yield "}"

    def _expression(self, node: Node) -> str:
        operation, a = node.operation, [self._operand(x) for x in node.arguments]
        if operation in _INFIX or operation in _COMPARISONS:
            return f"{a[0]} {_INFIX.get(operation) or _COMPARISONS[operation]} {a[1]}"
        if operation in _FUNCTIONS:
            return f"{_FUNCTIONS[operation]}{'f' if self.real == 'float' else ''}({', '.join(a)})"
        if operation == "negate":
            return f"-({a[0]})"
        if operation == "not":
            return f"!{a[0]}"
        if operation == "select":
            return f"{a[0]} ? {a[1]} : {a[2]}"
        sign = ">" if operation == "maximum" else "<"
        return f"({a[0]} {sign} {a[1]} || {a[0]} != {a[0]}) ? {a[0]} : {a[1]}"  # NaN comes through

    def _operand(self, operand: Operand) -> str:
        return f"t{operand}" if isinstance(operand, int) else self._constant(operand)

    def _constant(self, x: float) -> str:
        if not math.isfinite(x):
            return "NAN" if math.isnan(x) else "INFINITY" if x > 0.0 else "(-INFINITY)"
        text = f"{x!r}{'f' if self.real == 'float' else ''}"
        return f"({text})" if x < 0.0 else text
