"""The compiler: traces a function of arrays to a graph, counts its operations, and compiles it to machine code.

Other packages import its names from here and from `legged.compiler.ir` alone; import-linter checks this.
docs/explanation/compiler.md lists the names and the sub-packages, and follows an example.
"""

from legged.compiler.cache.disk import MOTION, cached_bytes
from legged.compiler.cache.disk import clear as clear_cache
from legged.compiler.cache.disk import describe as cache_contents
from legged.compiler.codegen.batches.time_loop import CODES_ONLY, ENDED, EXCEEDED
from legged.compiler.codegen.element_type import FLOAT32, FLOAT64, ElementType, PrecisionError, element_type
from legged.compiler.codegen.llvm import TargetError
from legged.compiler.compilation import compile, compile_ahead, count, count_and_depth, depth
from legged.compiler.ir import ChangingTable, LookupTable, where
from legged.compiler.ir.annotations import module, stage
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, record
from legged.compiler.ir.pass_times import CompilationReport
from legged.compiler.layouts import layout
from legged.compiler.mechanisms import optimized_at_once
from legged.compiler.passes.counting import Counts
from legged.compiler.passes.drop_terms import Term
from legged.compiler.passes.jacobian import jacobian
from legged.compiler.passes.pipeline import Dropping, run_passes, trace
from legged.compiler.runtime.batch_kernel import BatchKernel, PreparedCall, Rows, windows
from legged.compiler.runtime.call_sequence import Band, Call, CallSequence, FusedCalls, padded_rows
from legged.compiler.runtime.kernel import Kernel, diagnose
from legged.compiler.runtime.threads import check_threads, default_threads, thread_limit
from legged.compiler.runtime.time_loop import (
    NOT_FINITE,
    OPERATIONS_PER_CALL,
    Comparison,
    Members,
    PreparedLoop,
    Schedule,
    TimeLoop,
)

__all__ = [
    "CODES_ONLY",
    "ENDED",
    "EXCEEDED",
    "FLOAT32",
    "FLOAT64",
    "MOTION",
    "NOT_FINITE",
    "OPERATIONS_PER_CALL",
    "Band",
    "BatchKernel",
    "Call",
    "CallSequence",
    "ChangingTable",
    "Comparison",
    "CompilationReport",
    "Counts",
    "Dropping",
    "ElementType",
    "Expression",
    "FusedCalls",
    "Graph",
    "Kernel",
    "LookupTable",
    "Members",
    "PrecisionError",
    "PreparedCall",
    "PreparedLoop",
    "Rows",
    "Schedule",
    "TargetError",
    "Term",
    "TimeLoop",
    "cache_contents",
    "cached_bytes",
    "check_threads",
    "clear_cache",
    "compile",
    "compile_ahead",
    "count",
    "count_and_depth",
    "default_threads",
    "depth",
    "diagnose",
    "element_type",
    "jacobian",
    "layout",
    "module",
    "optimized_at_once",
    "padded_rows",
    "record",
    "run_passes",
    "stage",
    "thread_limit",
    "trace",
    "where",
    "windows",
]
