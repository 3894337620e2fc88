"""The assembly of whole programs: one for single states, one for batches."""

from __future__ import annotations

from legged.trace import backend, blocks, builtin, call_assembly, lowering
from legged.trace.assembler import ATTRIBUTES
from legged.trace.graph import Graph
from legged.trace.packed import PackedCore
from legged.trace.rolled import RolledCore

LARGE_ONE, LARGE_MANY = 10_000, 20_000
"""Nodes: graphs with more run as tables of their forms (`rolled`), for one state and for a block of states. For one
state that is faster from there on, and compiles several times faster; for many it costs up to a tenth of speed until
straight code, from about twice that, no longer fits the caches."""

SINGLE = "legged_single"
"""`int64 legged_single(double *const *arrays)` runs the core for one state."""
WORK = "legged_work"
"""The number that `batch_work` returns, beside the program that needs it."""


def single(graph: Graph) -> str:
    """Return the program for one state, with the built-in function if the graph suits one."""
    entry = [
        f"define i64 @{SINGLE}(ptr %arrays) {ATTRIBUTES} {{",
        f"  %wrong = call i64 @{lowering.CORE}(ptr %arrays)",
        "  ret i64 %wrong",
        "}",
    ]
    call = call_assembly.assembly(graph, batch_work(graph)) if builtin.suits(graph) else ()
    return "\n".join([lowering.with_calls(core(graph, 1)), *entry, *call])


def batch(graph: Graph) -> str:
    """Return the program for a batch."""
    width = backend.width()
    work = f"@{WORK} = constant i64 {batch_work(graph)}"
    return "\n".join([lowering.with_calls(core(graph, width)), *blocks.assembly(graph, width), work])


def batch_work(graph: Graph) -> int:
    """Return how many numbers of working memory the program for a batch takes."""
    width = backend.width()
    return blocks.work_size(graph, width, core_room(graph, width))


def core_room(graph: Graph, width: int) -> int:
    """Return how many numbers of working memory the core for `width` states takes."""
    return 0 if _is_large(graph, width) else lowering.room(graph, width)


def core(graph: Graph, width: int) -> lowering.Core:
    """Return the core that suits a graph, for `width` states at once."""
    if _is_large(graph, width):
        return RolledCore(graph, width, backend.width())
    return lowering.Core(graph, width, width) if width > 1 else PackedCore(graph, backend.width())


def _is_large(graph: Graph, width: int) -> bool:
    return len(graph.nodes) > (LARGE_ONE if width == 1 else LARGE_MANY)
