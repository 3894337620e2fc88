"""The assembly of whole programs: one for single states, one for batches."""

from __future__ import annotations

from legged.compiler.codegen import batch_loop, columns, llvm, scalar
from legged.compiler.codegen.cpython import entry_point
from legged.compiler.codegen.ir_writer import ATTRIBUTES
from legged.compiler.codegen.outlined import RolledCore
from legged.compiler.codegen.slp import PackedCore
from legged.compiler.codegen.streamed import RowCore
from legged.compiler.ir.graph import Graph

LARGE, HUGE = 10_000, 15_000
"""Nodes. For one state, graphs with more than the first run as tables of their forms (`rolled`) where that leaves less
than three quarters of their operations to compile: faster than straight code, and compiled several times faster. With
more than the second all do, since straight code takes seconds to compile."""
LARGE_BATCH = 20_000
"""The same for a block of states, where both are equally fast: up to a tenth slower below, and faster far above."""

SINGLE = "legged_single"
"""`int64 legged_single(double *const *arrays)` runs the core for one state."""
WORK = "legged_work"
"""The number that `batch_work` returns, beside the program that needs it."""


def single(graph: Graph) -> str:
    """Return the program for one state, with the built-in function if the graph suits one."""
    entry = [
        f"define i64 @{SINGLE}(ptr %arrays) {ATTRIBUTES} {{",
        f"  %wrong = call i64 @{scalar.CORE}(ptr %arrays)",
        "  ret i64 %wrong",
        "}",
    ]
    call = entry_point.assembly(graph, batch_work(graph)) if entry_point.supports(graph) else ()
    return "\n".join([scalar.with_calls(core(graph, 1)), *entry, *call])


def batch(graph: Graph) -> str:
    """Return the program for a batch."""
    width = llvm.width()
    if len(graph.nodes) > LARGE_BATCH:
        core = [scalar.with_calls(RolledCore(graph, width, width)), *columns.assembly(graph, width)]
    else:
        core = [scalar.with_calls(RowCore(graph, width))]
    work = f"@{WORK} = constant i64 {batch_work(graph)}"
    return "\n".join([*core, *batch_loop.assembly(graph, width), work])


def batch_work(graph: Graph) -> int:
    """Return how many numbers of working memory the program for a batch takes."""
    width = llvm.width()
    room = core_room(graph, width) + (columns.work_size(graph, width) if len(graph.nodes) > LARGE_BATCH else 0)
    return batch_loop.work_size(graph, width, room)


def core_room(graph: Graph, width: int) -> int:
    """Return how many numbers of working memory the core for `width` states takes at most."""
    return scalar.room(graph, width)


def core(graph: Graph, width: int) -> scalar.Core:
    """Return the core that suits a graph, for `width` states at once."""
    native, nodes = llvm.width(), len(graph.nodes)
    if width > 1:
        return RolledCore(graph, width, native) if nodes > LARGE_BATCH else scalar.Core(graph, width, width)
    rolled = RolledCore(graph, 1, native) if nodes > LARGE else None
    if rolled and (nodes > HUGE or 4 * rolled.length < 3 * nodes):
        return rolled
    return PackedCore(graph, native)
