"""The pipeline of passes: `run_passes` calls the passes in their fixed order, and `trace` traces and simplifies.

A graph runs through the passes in several calls, since it is stored on disk after its simplification, and code is
generated for one state, a batch and a time loop when they are first used. A caller requests passes by keywords; the
order is that of `run_passes` alone. `ir.pass_times.PASSES` has the names in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import mechanisms
from legged.compiler.ir.graph import Graph, Shape, record
from legged.compiler.ir.operations import is_call
from legged.compiler.passes.call_batching import Batches, call_batches
from legged.compiler.passes.counting import Counts, count_graph
from legged.compiler.passes.differentiate import Scalar, derivatives
from legged.compiler.passes.drop_terms import Term, drop_terms
from legged.compiler.passes.outline.memory_plan import MemoryPlan
from legged.compiler.passes.outline.templates import Section, outline
from legged.compiler.passes.quaternion_checks import add_quaternion_checks
from legged.compiler.passes.registers import RegisterPlan, plan_registers
from legged.compiler.passes.scheduling import cut_schedule, depth_first_order, fuse_multiply_adds
from legged.compiler.passes.simplify import simplify
from legged.compiler.passes.slp import Vectorization, vectorize

OUTLINE_ALWAYS_NODES = 50_000
"""A graph with more nodes is always outlined, because straight-line code takes several seconds to compile."""


class Differentiation(NamedTuple):
    """Arguments of differentiation.

    Attributes:
        values: The values of the inputs. wanted: Numbers of the inputs of the derivatives.
        is_reverse: Whether to use reverse mode.
    """

    values: list[Scalar]
    wanted: range
    is_reverse: bool


class Dropping(NamedTuple):
    """Arguments of the dropping of terms, see `drop_terms`.

    Attributes:
        samples: For each input an array, (samples, *shape), any unit and frame.
        scales: For each entry of the results a positive number, (results,), in its unit.
        tolerance: Largest error relative to the scales, dimensionless.
    """

    samples: Sequence[np.ndarray]
    scales: np.ndarray
    tolerance: float


class MemoryRequest(NamedTuple):
    """Arguments of the memory plan, see `MemoryPlan`.

    Attributes:
        sections: All nodes. width: Number of states. native: Numbers in a vector. word: Size of a number, [bytes].
    """

    sections: Sequence[Section]
    width: int
    native: int
    word: int


class RegisterRequest(NamedTuple):
    """Arguments of the plan of registers.

    Attributes:
        count: Number of registers; None to order the operations alone.
        stores_last: Whether results are stored after all operations, not each as soon as it is computed.
    """

    count: int | None
    stores_last: bool


class Scheduling(NamedTuple):
    """Arguments of scheduling.

    Attributes:
        computed: Nodes that are computed before.
        section: Largest number of nodes of a section, apart from an eighth; None for a single section.
    """

    computed: Collection[int]
    section: int | None = None


@dataclass
class PassResults:
    """The results of the passes that were requested; those of others are missing.

    Attributes:
        graph: The graph after all passes. rows: The rows of the Jacobian.
        dropped: The dropped terms. errors: Largest error of each result by them, (results,), in its unit.
        counts: The operation counts.
        batches: The batches of calls of elementary functions.
        vectorization: The packs of operations, None if there is none.
        outlined: The sections of bundles. memory: The memory plan.
        registers: The plan of registers.
        order: The live nodes in depth-first order. sections: The remaining nodes in this order, in sections.
    """

    graph: Graph
    rows: list[list[Scalar]] = field(init=False)
    dropped: tuple[Term, ...] = field(init=False)
    errors: np.ndarray = field(init=False)
    counts: Counts = field(init=False)
    batches: Batches = field(init=False)
    vectorization: Vectorization | None = field(init=False)
    outlined: list[Section] = field(init=False)
    memory: MemoryPlan = field(init=False)
    registers: RegisterPlan = field(init=False)
    order: list[int] = field(init=False)
    sections: list[list[int]] = field(init=False)


def trace(
    function: Callable[..., Any], shapes: Mapping[str, Shape], leading: Sequence[Any] = (), simplified: bool = True
) -> Graph:
    """Return the graph of function(*leading, *arrays) for code; other arguments and errors as of `ir.graph.record`.

    A graph that is always outlined is not simplified as a whole, since alike segments differ if the constants of some
    let factors be shared. Its templates are simplified when their code is written.

    Args:
        simplified: Whether to factor common factors out of sums, which takes half as long as tracing.
    """
    graph = record(function, shapes, leading)
    return run_passes(graph, simplified=simplified and not is_always_outlined(graph)).graph


def is_always_outlined(graph: Graph) -> bool:
    """Return whether code of a graph is outlined for its size, so that `trace` does not simplify it."""
    return len(graph.nodes) > OUTLINE_ALWAYS_NODES and mechanisms.is_on(mechanisms.OUTLINING)


def run_passes(
    graph: Graph,
    *,
    differentiation: Differentiation | None = None,
    dropping: Dropping | None = None,
    simplified: bool = False,
    counted: bool = False,
    quaternion_epsilon: float | None = None,
    batched: bool = False,
    pack_lanes: int | None = None,
    outline_lanes: int | None = None,
    memory: MemoryRequest | None = None,
    fused: bool = False,
    registers: RegisterRequest | None = None,
    ordered: bool = False,
    scheduling: Scheduling | None = None,
) -> PassResults:
    """Return the results of the requested passes on a graph, in the order of this function.

    Args:
        graph: The graph, after tracing, constant folding and elimination of common subexpressions and dead code.
        differentiation: Compute the Jacobian inside a traced function.
        dropping: Drop terms of sums that contribute little.
        simplified: Factor common factors out of sums.
        counted: Count the operations.
        quaternion_epsilon: Check the norms of quaternions for numbers with this distance from 1 to the next one.
        batched: Batch the calls of elementary functions; packing and outlining need it.
        pack_lanes: Pack operations of alike modules into vectors of at most as many lanes.
        outline_lanes: Write the graph as templates of alike segments, in bundles of as many lanes.
        memory: Plan the memory of outlined code.
        fused: Fuse multiplications into the additions that use them.
        registers: Plan the use of registers; it needs batched calls.
        ordered: Order the nodes depth first; scheduling needs it.
        scheduling: Schedule the remaining nodes, and cut the schedule into sections.
    """
    result = PassResults(graph)
    if differentiation is not None:
        result.rows = derivatives(graph, *differentiation)
    if dropping is not None:
        graph, result.dropped, result.errors = drop_terms(graph, *dropping)
    if simplified:
        graph = simplify(graph)
    if counted:
        result.counts = count_graph(graph)
    if quaternion_epsilon is not None:
        graph = add_quaternion_checks(graph, quaternion_epsilon)
    if batched:
        result.batches = call_batches(graph)
    if pack_lanes is not None:
        done = {i for calls, needed in result.batches for i in (*calls, *needed)}
        result.vectorization = vectorize(graph, done, pack_lanes)
    if outline_lanes is not None:
        result.outlined = outline(graph, result.batches, outline_lanes)
    if memory is not None:
        result.memory = MemoryPlan(graph, *memory)
    if fused:
        graph = fuse_multiply_adds(graph)
    if registers is not None:
        result.registers = plan_registers(graph, result.batches, *registers)
    if ordered:
        result.order = depth_first_order(graph)
    if scheduling is not None:
        nodes, computed, first = graph.nodes, scheduling.computed, graph.input_size
        remaining = [i for i in result.order if i not in computed and not is_call(nodes[i - first].operation)]
        length = scheduling.section
        result.sections = [remaining] if length is None else cut_schedule(graph, remaining, length)
    result.graph = graph
    return result
