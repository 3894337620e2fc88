"""Constant tables of a graph in machine code, read at computed indices.

The numbers are not part of the code: a global variable for each table holds a pointer to them, which `bind` sets after
the code is loaded. The time to compile and the size of the code do not depend on the length of a table, and all kernels
share one copy of equal tables.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from legged.compiler.codegen.ir_writer import IRWriter, Value
from legged.compiler.codegen.llvm import LoadedCode
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.operations import Lookup


def declarations(graph: Graph) -> Iterator[str]:
    """Yield the definition of each table's variable."""
    for lookup in graph.lookups:
        yield f"@{_symbol(lookup)} = global ptr null"


def bind(code: LoadedCode, graph: Graph) -> None:
    """Set the pointers of loaded code to the tables of its graph, which stay in memory as long as the code."""
    for lookup in graph.lookups:
        pointer = ctypes.c_void_p.from_address(code.address(_symbol(lookup)))
        pointer.value = lookup.table.ctypes.data
    code.tables = [lookup.table for lookup in graph.lookups]


def _symbol(lookup: Lookup) -> str:
    return f"legged_{lookup}"


def load(w: IRWriter, lookup: Lookup, x: Value, name: Value) -> Value:
    """Return the entries of a table at one index in each lane, under a name.

    Entries are loaded lane by lane: the vector instruction for it is no faster, and not all processors have it.
    """
    table = w.assign(f"load ptr, ptr @{_symbol(lookup)}, align 8")
    zero, last = w.float_constant(0.0), w.float_constant(len(lookup.table) - 1.0)
    bounded = w.select(w.fcmp("ogt", x, zero), x, zero)  # NaN becomes 0
    bounded = w.select(w.fcmp("olt", bounded, last), bounded, last)
    indices = w.assign(f"fptosi {w.float_type} {bounded} to {w.int32_type}")
    if w.width == 1:
        found = w.load(table, w.assign(f"zext i32 {indices} to i64"))
    else:
        found = "poison"
        for lane in range(w.width):
            index = w.assign(f"zext i32 {w.assign(f'extractelement {w.int32_type} {indices}, i64 {lane}')} to i64")
            number = w.assign(f"load double, ptr {w.gep(table, index)}, align 8")
            found = w.assign(f"insertelement {w.float_type} {found}, double {number}, i64 {lane}")
    is_nan = w.fcmp("uno", x, x)
    return w.assign(f"select {w.bool_type} {is_nan}, {w.float_type} {x}, {w.float_type} {found}", name)
