"""A graph as LLVM assembly.

The code is one function

    int64 kernel(int64 count, const double *in, double *out)

which computes `count` states, one after the other. The numbers of a state lie end to end: `in` holds rows of
`graph.input_size` numbers, `out` gets rows of `graph.output_size`. It returns the row of the first state with an
output that is not finite, -1 if there is none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from legged.trace.graph import Graph, Node, Operand

ENTRY = "legged_kernel"

CALLED = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "exp": "exp",
    "log": "log",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "power": "pow",
}
"""Operations that call the C library -> its name for them."""

_TEMPLATES = {
    "add": "fadd contract double {}, {}",
    "subtract": "fsub contract double {}, {}",
    "multiply": "fmul contract double {}, {}",
    "divide": "fdiv contract double {}, {}",
    "negate": "fneg contract double {}",
    "sqrt": "call double @llvm.sqrt.f64(double {})",
    "floor": "call double @llvm.floor.f64(double {})",
    "absolute": "call double @llvm.fabs.f64(double {})",
    "maximum": "call double @llvm.maximum.f64(double {}, double {})",
    "minimum": "call double @llvm.minimum.f64(double {}, double {})",
    "select": "select i1 {}, double {}, double {}",
    "less": "fcmp olt double {}, {}",
    "less_equal": "fcmp ole double {}, {}",
    "equal": "fcmp oeq double {}, {}",
    "not_equal": "fcmp une double {}, {}",
    "and": "and i1 {}, {}",
    "or": "or i1 {}, {}",
    "not": "xor i1 {}, true",
}

_DECLARATIONS = """
declare double @llvm.sqrt.f64(double)
declare double @llvm.floor.f64(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.maximum.f64(double, double)
declare double @llvm.minimum.f64(double, double)
"""


def symbol(function: str) -> str:
    """Return the name under which machine code calls a function of the C library."""
    return f"legged_{function}"


def assembly(graph: Graph) -> str:
    """Return the graph as LLVM assembly."""
    return "\n".join([_DECLARATIONS, *_library(graph.nodes), *_function(graph)])


def _library(nodes: Iterable[Node]) -> Iterator[str]:
    for operation in sorted({node.operation for node in nodes} & set(CALLED)):
        arguments = ", ".join(["double"] * (2 if operation in ("arctan2", "power") else 1))
        yield f"declare double @{symbol(CALLED[operation])}({arguments}) nounwind willreturn memory(none)"


def _function(graph: Graph) -> Iterator[str]:
    yield f"define i64 @{ENTRY}(i64 %count, ptr noalias readonly %in, ptr noalias %out) nounwind {{"
    yield "start:"
    yield "  %empty = icmp sle i64 %count, 0"
    yield "  br i1 %empty, label %end, label %state"
    yield "state:"
    yield "  %k = phi i64 [0, %start], [%k_next, %state]"
    yield "  %bad = phi i64 [-1, %start], [%bad_next, %state]"
    yield f"  %row_in = mul i64 %k, {graph.input_size}"
    yield f"  %row_out = mul i64 %k, {graph.output_size}"
    yield "  %x = getelementptr inbounds double, ptr %in, i64 %row_in"
    yield "  %y = getelementptr inbounds double, ptr %out, i64 %row_out"
    yield from _loads(graph)
    yield from _operations(graph)
    yield from _stores(graph)
    yield "  %new = icmp slt i64 %bad, 0"
    yield "  %first = and i1 %new, %wrong"
    yield "  %bad_next = select i1 %first, i64 %k, i64 %bad"
    yield "  %k_next = add i64 %k, 1"
    yield "  %more = icmp slt i64 %k_next, %count"
    yield "  br i1 %more, label %state, label %end"
    yield "end:"
    yield "  %answer = phi i64 [-1, %start], [%bad_next, %state]"
    yield "  ret i64 %answer"
    yield "}"


def _loads(graph: Graph) -> Iterator[str]:
    used = {a for node in graph.nodes for a in node.arguments if isinstance(a, int)}
    used |= {r for r in graph.results if isinstance(r, int)}
    for i in range(graph.input_size):
        if i in used:
            yield f"  %x{i} = getelementptr inbounds double, ptr %x, i64 {i}"
            yield f"  %v{i} = load double, ptr %x{i}, align 8"


def _operations(graph: Graph) -> Iterator[str]:
    for i in _order(graph):
        node = graph.nodes[i - graph.input_size]
        yield f"  %v{i} = {_instruction(node)}"


def _instruction(node: Node) -> str:
    operands = [_operand(a) for a in node.arguments]
    if node.operation in CALLED:
        return f"call double @{symbol(CALLED[node.operation])}({', '.join(f'double {x}' for x in operands)})"
    return _TEMPLATES[node.operation].format(*operands)


def _order(graph: Graph) -> list[int]:
    """Return the nodes with all calls, and what they need, first: few values have to survive a call."""
    early = [False] * (graph.input_size + len(graph.nodes))
    for i, node in reversed(list(enumerate(graph.nodes, graph.input_size))):
        if early[i] or node.operation in CALLED:
            early[i] = True
            for a in node.arguments:
                if isinstance(a, int):
                    early[a] = True
    indices = range(graph.input_size, len(early))
    return [i for i in indices if early[i]] + [i for i in indices if not early[i]]


def _stores(graph: Graph) -> Iterator[str]:
    """Store the outputs and set %wrong if one of them is not finite: x - x is zero for finite x alone."""
    for k, result in enumerate(graph.results):
        yield f"  %y{k} = getelementptr inbounds double, ptr %y, i64 {k}"
        yield f"  store double {_operand(result)}, ptr %y{k}, align 8"
    checks = sorted({r for r in graph.results if isinstance(r, int)})
    for k, i in enumerate(checks):
        yield f"  %c{k} = fsub double %v{i}, %v{i}"
    terms = [f"%c{k}" for k in range(len(checks))] or [_operand(0.0)]
    while len(terms) > 1:
        pairs = list(zip(terms[::2], terms[1::2], strict=False))
        for a, b in pairs:
            yield f"  {a}_ = fadd double {a}, {b}"
        terms = [f"{a}_" for a, _ in pairs] + terms[2 * len(pairs) :]
    yield f"  %wrong = fcmp une double {terms[0]}, {_operand(0.0)}"


def _operand(value: Operand) -> str:
    return f"%v{value}" if isinstance(value, int) else f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
