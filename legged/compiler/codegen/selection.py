"""Kernel selection: the LLVM modules for single states, batches and time loops, and the kernel writer for a graph."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from itertools import groupby
from operator import itemgetter

from legged.compiler import mechanisms
from legged.compiler.codegen import llvm, tables
from legged.compiler.codegen.batches import batch_loop, time_loop
from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.ir_writer import ATTRIBUTES
from legged.compiler.codegen.kernels import loops, scalar, transpose
from legged.compiler.codegen.kernels.outlined import OutlinedKernelWriter
from legged.compiler.codegen.kernels.planned import PlannedKernelWriter
from legged.compiler.codegen.kernels.slp import SLPKernelWriter
from legged.compiler.codegen.kernels.streamed import StreamedKernelWriter, most_vectors
from legged.compiler.ir.annotations import Label
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.operations import Loop
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.passes.pipeline import OUTLINE_ALWAYS_NODES, run_passes

OUTLINE_NODES, OUTLINE_BATCH_NODES = 10_000, 20_000
"""A graph with more nodes than the first number, or the second one for a batch, is outlined if its templates have less
than half of its operations: it then compiles several times faster, and for one state runs faster than straight-line
code. A graph with more nodes than `OUTLINE_ALWAYS_NODES` is always outlined."""
_SHARE, _SHARE_OF_LOOP = 0.5, 0.7
"""Largest share of the operations of a graph that its templates may have, and that for the body of a loop on one state.

The longest loops are Newton's iterations for contacts and joints, which few time steps execute. Their templates have
0.53 of the operations for G1, 0.55 and 0.66 for Talos. Outlined, they compile in half of the time; time steps of
standing robots take as long, and with 0.7 in place of 0.6 those of a falling Talos 1.03 to 1.08 times as long."""
_ESTIMATE = 0.2
"""Excess of the estimated share over the largest one above which a graph is not outlined to learn the exact share. The
estimates of 20 graphs were 0.04 less to 0.19 more than their shares."""

PLANNED_NODES, PLANNED_BATCH_NODES = 10_000, 3_000
"""A graph with more nodes than the first number, or the second one for a batch, has a plan of registers, if it is not
outlined. A kernel of fewer nodes for one state packs alike operations into vectors instead."""


class Stage(Enum):
    """The stage of compilation, which decides whether kernels for one state or few get a plan of registers.

    Plans take long. `ONCE`: kernels of more than `PLANNED_NODES` operations have a plan. `FIRST`: these have the same
    operations in the same order without a plan. `SECOND`: each kernel has a plan; only those without one in the first
    stage are written.
    """

    ONCE, FIRST, SECOND = range(3)


class _Current(threading.local):
    stage = Stage.ONCE


_current = _Current()


@contextmanager
def stage(value: Stage) -> Iterator[None]:
    """Write the modules of one of the stages of compilation (`cache.staged`) inside the context."""
    before, _current.stage = _current.stage, value
    try:
        yield
    finally:
        _current.stage = before


SINGLE_STATE = "legged_single_state"
"""`int64 legged_single_state(real *const *arrays)` runs the kernel for one state, see `scalar`."""
BATCH_WORK_SIZE = "legged_batch_work_size"
"""A constant in the module for batches: the result of `batch_work_size`."""
_PART = ("i64", "i64", "ptr", "ptr")
ENTRIES = {
    **{SINGLE_STATE: ("ptr",), batch_loop.ENTRY_POINT: _PART},
    **{time_loop.ENTRY_POINT: ("ptr",), time_loop.PART: _PART},
}
"""Functions by which code is entered, and the types of their arguments; their results are integers."""


@compiler_pass("writing of LLVM IR")
def single_state_module(graph: Graph) -> str:
    """Return the LLVM module for one state."""
    element = llvm.current_target().element
    graph = run_passes(graph, quaternion_epsilon=element.epsilon).graph
    lines = [
        f"define i64 @{SINGLE_STATE}(ptr %arrays) {ATTRIBUTES} {{",
        f"  %not_finite = call i64 @{scalar.KERNEL}(ptr %arrays)",
        "  ret i64 %not_finite",
        "}",
    ]
    return _module(kernel_writer(graph, 1), lines)


@compiler_pass("writing of LLVM IR")
def batch_module(graph: Graph) -> str:
    """Return the LLVM module for a batch."""
    target = llvm.current_target()
    width, element = target.width, target.element
    graph = run_passes(graph, quaternion_epsilon=element.epsilon).graph
    writer: scalar.KernelWriter | None = _outlined_writer(graph, width, scalar.KERNEL, _SHARE)
    rows, vectors = [], 1
    if writer is None and _is_streamed(graph, width, element):
        writer, vectors = StreamedKernelWriter(graph, width, element), most_vectors(graph, width, element)
    else:
        plain = writer or _plain_writer(graph, width, scalar.KERNEL, _is_planned(graph, width))
        writer, rows = plain, list(transpose.assembly(graph, width, element))
    work_size = f"@{BATCH_WORK_SIZE} = constant i64 {batch_work_size(graph)}"
    return _module(writer, [*rows, *batch_loop.assembly(graph, width, element, vectors), work_size])


@compiler_pass("writing of LLVM IR")
def batch_loop_module() -> str:
    """Return the LLVM module of the loop over the states of a batch, which the modules of `batch_module` call."""
    target = llvm.current_target()
    return _joined(list(batch_loop.shared_assembly(target.width, target.element)))


def batch_work_size(graph: Graph) -> int:
    """Return the size of the working memory for a batch, in numbers; for outlined code where the graph may have it."""
    target = llvm.current_target()
    vectors = target.width, target.element
    is_transposed = len(graph.nodes) > OUTLINE_BATCH_NODES or not _is_streamed(graph, *vectors)
    transposed = transpose.work_size(graph, *vectors) if is_transposed else 0
    return batch_loop.work_size(graph, *vectors, scalar.work_size(graph, *vectors) + transposed)


@compiler_pass("writing of LLVM IR")
def time_loop_module(graph: Graph) -> str:
    """Return the LLVM module that repeats a step for one member at a time."""
    return _time_loop_module(graph, 1)


@compiler_pass("writing of LLVM IR")
def batch_time_loop_module(graph: Graph) -> str:
    """Return the LLVM module that repeats a step for as many members at a time as a vector has lanes."""
    return _time_loop_module(graph, llvm.vector_width())


def _time_loop_module(graph: Graph, width: int) -> str:
    return _module(kernel_writer(graph, width), time_loop.assembly(graph, width, llvm.current_target().element))


def replaceable_module() -> str:
    """Return the LLVM module of the functions of `ENTRIES` as jumps to code that may be replaced at any time."""
    lines = []
    for name, types in ENTRIES.items():
        listed = ", ".join(f"{kind} %x{k}" for k, kind in enumerate(types))
        lines += [
            f"@{code_variable(name)} = global ptr null",
            f"define i64 @{name}({listed}) nounwind {{",
            f"  %function = load atomic ptr, ptr @{code_variable(name)} acquire, align 8",
            f"  %result = tail call i64 %function({listed})",
            "  ret i64 %result",
            "}",
        ]
    return "\n".join(lines)


def code_variable(name: str) -> str:
    """Return the name of the variable with the address to which a function of `replaceable_module` jumps."""
    return f"{name}_code"


@compiler_pass("writing of LLVM IR")
def loop_module(loop: Loop, width: int) -> str:
    """Return the LLVM module of a loop, which the modules of graphs with the loop call, for `width` states."""
    writer = body_writer(loop, width)
    declared = [*tables.declarations(loop.body), *_declarations(loop.body)]
    lines = writer.module_lines()
    return _joined([*declared, *lines, *loops.assembly(loop, width, writer.w.element, writer.work_size)])


def _module(writer: scalar.KernelWriter, lines: Iterable[str]) -> str:
    """Return the module of a kernel and of the functions that call it; its loops have modules of their own."""
    return _joined([*_declarations(writer.graph), *tables.definitions(writer.graph), *writer.module_lines(), *lines])


def _declarations(graph: Graph) -> list[str]:
    """Return the declarations of the loops of a graph."""
    return [f"declare void @{loops.symbol(loop)}(ptr)" for loop in graph.loops]


def _joined(lines: Sequence[str]) -> str:
    """Return the lines of a module; a declaration occurs once."""
    declared = dict.fromkeys([line for line in lines if line.startswith("declare ")])
    return "\n".join([*declared, *[line for line in lines if not line.startswith("declare ")]])


def body_writer(loop: Loop, width: int) -> scalar.KernelWriter:
    """Return the writer of the body of a loop.

    Factoring can make alike segments of a large graph differ, for example in signs. A graph that can be outlined is
    therefore not simplified, and a simplified one not outlined. Neither are kernels of few states simplified. A body
    that calls a function (`ir.call`) has a plan of registers however short it is: it belongs to a long computation.
    """
    name = loops.body_symbol(loop)
    outlined = _outlined_writer(loop.body, width, name, _SHARE_OF_LOOP if width == 1 else _SHARE)
    if outlined is not None:
        return outlined
    graph = run_passes(loop.body, simplified=not llvm.current_target().is_narrow).graph
    return _plain_writer(graph, width, name, is_planned=bool(graph.loops) or _is_planned(graph, width))


def kernel_writer(graph: Graph, width: int, name: str = scalar.KERNEL) -> scalar.KernelWriter:
    """Return the writer of the kernel that suits a graph, for `width` states, as a function of this name."""
    outlined = _outlined_writer(graph, width, name, _SHARE)
    return outlined or _plain_writer(graph, width, name, _is_planned(graph, width))


def _plain_writer(graph: Graph, width: int, name: str, is_planned: bool) -> scalar.KernelWriter:
    """Return the writer of the kernel of a graph that is not outlined, with a plan of registers or without."""
    target = llvm.current_target()
    if is_planned:
        # Without a plan, values that blocks pass on are on the stack, too many of them in vectors of all lanes.
        is_first = _current.stage == Stage.FIRST and (width == 1 or target.is_narrow)
        registers = None if is_first else target.vector_registers
        return PlannedKernelWriter(graph, width, target.width, target.element, registers, name)
    if width > 1 or not mechanisms.is_on(mechanisms.PACKING):
        return scalar.KernelWriter(graph, width, target.width, target.element, name)
    return SLPKernelWriter(graph, target.width, target.element, name)


def _is_planned(graph: Graph, width: int) -> bool:
    """Return whether code of a graph that is not outlined, for `width` states, has a plan of registers."""
    return _current.stage == Stage.SECOND or len(graph.nodes) > (PLANNED_NODES if width == 1 else PLANNED_BATCH_NODES)


def _is_streamed(graph: Graph, width: int, element: ElementType) -> bool:
    """Return whether code for a batch that is not outlined transposes arguments while it computes.

    With vectors as long as a cache line, code with a plan of registers takes as long and compiles in half of the time.
    """
    if llvm.current_target().is_narrow or not mechanisms.is_on(mechanisms.STREAMING):
        return False
    return not (_is_planned(graph, width) and most_vectors(graph, width, element) == 1)


def _outlined_writer(graph: Graph, width: int, name: str, share: float) -> OutlinedKernelWriter | None:
    """Return the writer of outlined code if its templates have at most a share of the operations, otherwise None."""
    target, nodes = llvm.current_target(), len(graph.nodes)
    if nodes <= (OUTLINE_NODES if width == 1 else OUTLINE_BATCH_NODES) or not mechanisms.is_on(mechanisms.OUTLINING):
        return None
    is_always = nodes > OUTLINE_ALWAYS_NODES
    if _current.stage == Stage.SECOND or (not is_always and _estimated_share(graph) > share + _ESTIMATE):
        return None
    outlined = OutlinedKernelWriter(graph, width, target.width, target.element, name)
    return outlined if is_always or outlined.operation_count < share * nodes else None


def _estimated_share(graph: Graph) -> float:
    """Return an estimate of the share of the operations of a graph that its templates have.

    It assumes that all operations with one label are an instance of a template, and that labels with the same sequence
    of operations share the template. The estimate takes a twentieth of the time of finding the templates.
    """
    by_label: dict[Label, list[str]] = {}
    for label, nodes in groupby(graph.nodes, itemgetter(2)):
        by_label.setdefault(label, []).extend([node[0] for node in nodes])
    return sum(map(len, {tuple(operations) for operations in by_label.values()})) / len(graph.nodes)
