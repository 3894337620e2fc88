"""The compiler: traces a function of arrays to a graph, counts its operations, and compiles it to machine code.

docs/explanation/compiler.md lists the sub-packages and follows an example.
"""

from legged.compiler.compile import compile, count, count_and_depth, depth
from legged.compiler.ir import LookupTable, where
from legged.compiler.ir.annotations import module, stage
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, record
from legged.compiler.ir.pass_times import CompilationReport
from legged.compiler.passes.counting import Counts
from legged.compiler.passes.jacobian import jacobian
from legged.compiler.runtime.kernel import Kernel

__all__ = [
    "CompilationReport",
    "Counts",
    "Expression",
    "Graph",
    "Kernel",
    "LookupTable",
    "compile",
    "count",
    "count_and_depth",
    "depth",
    "jacobian",
    "module",
    "record",
    "stage",
    "where",
]
