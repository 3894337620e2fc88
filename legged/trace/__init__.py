"""Tracing: a function of arrays becomes a graph, and the graph is counted or becomes machine code."""

from legged.trace.compile import compile, count, count_and_depth, depth
from legged.trace.count import Counts
from legged.trace.expression import Expression
from legged.trace.graph import Graph, record
from legged.trace.kernel import Kernel
from legged.trace.labels import module, stage
from legged.trace.where import where

__all__ = [
    "Counts",
    "Expression",
    "Graph",
    "Kernel",
    "compile",
    "count",
    "count_and_depth",
    "depth",
    "module",
    "record",
    "stage",
    "where",
]
