"""The intermediate representation: expressions, and the graph that tracing a function gives."""

import legged.compiler.ir.array_functions  # noqa: F401  # adds functions of NumPy to those that can be traced
from legged.compiler.ir.annotations import item, items, module, stage
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, Node, Operand, Shape, flatten, record
from legged.compiler.ir.loops_and_tables import ChangingTable, LookupTable, call, repeat_while
from legged.compiler.ir.numpy_functions import ExpressionArray, where
from legged.compiler.ir.random_numbers import random_uniform
from legged.compiler.ir.tracer import gc_paused, require_unit_norm

__all__ = [
    "ChangingTable",
    "Expression",
    "ExpressionArray",
    "Graph",
    "LookupTable",
    "Node",
    "Operand",
    "Shape",
    "call",
    "flatten",
    "gc_paused",
    "item",
    "items",
    "module",
    "random_uniform",
    "record",
    "repeat_while",
    "require_unit_norm",
    "stage",
    "where",
]
