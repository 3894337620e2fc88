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
from legged.compiler.ir.operations import Gather


def definitions(graph: Graph) -> Iterator[str]:
    """Yield the definition of the variable of each table of a graph and of its loops."""
    for lookup in graph.lookups:
        yield f"@{_symbol(lookup)} = global ptr null"


def declarations(graph: Graph) -> Iterator[str]:
    """Yield the declaration of the variable of each table of a graph, for modules beside the one that defines it."""
    for lookup in graph.lookups:
        yield f"@{_symbol(lookup)} = external global ptr"


def bind(code: LoadedCode, graph: Graph, element: ElementType) -> None:
    """Set the pointers of loaded code to the tables of its graph, which stay in memory as long as the code.

    Raises:
        PrecisionError: A table is too long for exact indices of the element type.
    """
    code.tables = [_numbers(lookup, element) for lookup in graph.lookups]
    for lookup, table in zip(graph.lookups, code.tables, strict=True):
        ctypes.c_void_p.from_address(code.address(_symbol(lookup))).value = table.ctypes.data


_rounded: WeakKeyDictionary[Gather, np.ndarray] = WeakKeyDictionary()
"""Tables of float32."""


def _numbers(lookup: Gather, element: ElementType) -> np.ndarray:
    """Return the numbers of a table, rounded to the element type; kernels of equal tables share them."""
    if len(lookup.table) > element.most_indices:
        raise PrecisionError(f"a table of {len(lookup.table)} entries needs dtype 'float64': {element} cannot index it")
    if lookup.table.dtype == element.dtype:
        return lookup.table
    if lookup not in _rounded:
        _rounded[lookup] = lookup.table.astype(element.dtype)
    return _rounded[lookup]


def _symbol(lookup: Gather) -> str:
    return f"legged_{lookup}"


def load(w: IRWriter, lookup: Gather, x: Value, name: Value) -> Value:
    """Return the entries of a table at one index in each lane, under a name.

    Entries are loaded lane by lane: the vector instruction for it is no faster, and not all processors have it.
    """
    table = w.assign(f"load ptr, ptr @{_symbol(lookup)}, align 8")
    zero, last = w.float_constant(0.0), w.float_constant(len(lookup.table) - 1.0)
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
    return w.assign(f"select {w.bool_type} {is_nan}, {w.float_type} {x}, {w.float_type} {entries}", name)
