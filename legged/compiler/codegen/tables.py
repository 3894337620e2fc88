"""Constant tables of a graph in machine code, read at computed indices.

The numbers are not part of the code: a global variable for each table holds a pointer to them, which `bind` sets after
the code is loaded. The time to compile and the size of the code do not depend on the length of a table, and all kernels
share one copy of equal tables.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from legged.compiler.codegen.element_type import ElementType, PrecisionError
from legged.compiler.codegen.ir_writer import IRWriter, Value
from legged.compiler.codegen.llvm import LoadedCode
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.operations import ChangingGather, Gather, Matrix


def definitions(graph: Graph) -> Iterator[str]:
    """Yield the definition of the variable of each table of a graph and of its loops."""
    for lookup in (*graph.lookups, *graph.matrices):
        yield f"@{symbol(lookup)} = global ptr null"


def declarations(graph: Graph) -> Iterator[str]:
    """Yield the declaration of the variable of each table of a graph, for modules beside the one that defines it."""
    for lookup in (*graph.lookups, *graph.matrices):
        yield f"@{symbol(lookup)} = external global ptr"


def bind(code: LoadedCode, graph: Graph, element: ElementType) -> None:
    """Set the pointers of loaded code to the tables of its graph, which stay in memory as long as the code.

    Raises:
        PrecisionError: A table is too long for exact indices of the element type.
    """
    lookups = (*graph.lookups, *graph.matrices)
    code.tables = [_numbers(lookup, element) for lookup in lookups]
    for lookup, table in zip(lookups, code.tables, strict=True):
        ctypes.c_void_p.from_address(code.address(symbol(lookup))).value = table.ctypes.data


_converted: WeakKeyDictionary[Gather | Matrix, dict[str, np.ndarray]] = WeakKeyDictionary()
"""Tables and matrices as they lie in memory, by the name of the element type."""


def _numbers(lookup: Gather | Matrix, element: ElementType) -> np.ndarray:
    """Return the numbers of a table, rounded to the element type; kernels of equal tables share them."""
    if isinstance(lookup, Gather) and len(lookup.table) > element.most_indices:
        raise PrecisionError(f"a table of {len(lookup.table)} entries needs dtype 'float64': {element} cannot index it")
    if isinstance(lookup, ChangingGather) and element.dtype != lookup.table.dtype:
        raise PrecisionError(f"a table that changes needs dtype 'float64': code of {element} would read a copy of it")
    tables = _converted.setdefault(lookup, {})
    if element.name not in tables:
        tables[element.name] = lookup.table.astype(element.dtype, copy=False)
    return tables[element.name]


def symbol(lookup: Gather | Matrix) -> str:
    """Return the name of the variable that holds the pointer to a table or a matrix."""
    return f"legged_{lookup}_numbers"


MOST_INLINED = 64
"""Number of lookups from which on a kernel calls a function, whose instructions then stand once."""


def operands(w: IRWriter, lookup: Gather) -> tuple[Value, Value]:
    """Return the pointer to a table, and its last index in each lane."""
    return w.assign(f"load ptr, ptr @{symbol(lookup)}, align 8"), w.float_constant(len(lookup.table) - 1.0)


def load(w: IRWriter, table: Value, last: Value, x: Value) -> Value:
    """Return the entries of a table at one index in each lane.

    Entries are loaded lane by lane: the vector instruction for it is no faster, and not all processors have it.
    """
    zero = w.float_constant(0.0)
    bounded = w.select(w.fcmp("ogt", x, zero), x, zero)  # NaN becomes 0
    bounded = w.select(w.fcmp("olt", bounded, last), bounded, last)
    indices = w.assign(f"fptosi {w.float_type} {bounded} to {w.int32_type}")
    if w.width == 1:
        entries = w.load(table, w.assign(f"zext i32 {indices} to i64"))
    else:
        entries = "poison"
        for lane in range(w.width):
            index = w.assign(f"zext i32 {w.assign(f'extractelement {w.int32_type} {indices}, i64 {lane}')} to i64")
            entries = w.insert(entries, w.load_number(w.gep(table, index)), lane)
    is_nan = w.fcmp("uno", x, x)
    return w.select(is_nan, x, entries)
