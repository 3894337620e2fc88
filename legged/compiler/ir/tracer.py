"""`Tracer`: a graph under construction, in which equal subexpressions are one node."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from legged.compiler.ir import annotations
from legged.compiler.ir.constant_folding import MIXED_TRACES
from legged.compiler.ir.expression import Condition, Expression
from legged.compiler.ir.operations import CONDITIONS, CallResult
from legged.errors import TraceError


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the cyclic garbage collector.

    Tracing creates many objects and releases few; collections would take a third of its time.
    """
    enabled, thread = gc.isenabled(), threading.get_ident()
    if enabled:
        _pausing.add(thread)
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            _pausing.discard(thread)
            gc.enable()


_pausing: set[int] = set()
"""Threads that have disabled the garbage collector and will enable it."""


def _resume_gc() -> None:
    """Enable the garbage collector in a forked process if a thread that does not exist there has disabled it."""
    if _pausing - {threading.get_ident()}:
        _pausing.intersection_update({threading.get_ident()})
        if not _pausing:
            gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_gc)


class Tracer:
    """Expressions in the order of construction, and a table that finds equal ones (hash-consing).

    Inside `with tracer:` the contexts of `annotations` of this thread label the operations of this tracer, and the
    garbage collector is paused. The tracer releases its expressions at the end.
    """

    __slots__ = ("_gc_paused", "_outer", "calls", "functions", "label", "negated", "nodes", "table", "unit_quaternions")

    def __init__(self) -> None:
        self.nodes: list[Expression] = []
        self.table: dict[tuple, Expression] = {}
        self.calls: dict[tuple, tuple[Expression | float, ...]] = {}
        self.functions: dict[tuple, Any] = {}
        self.negated: list[Expression] = []
        self.label = annotations.Label()
        self.unit_quaternions: dict[tuple[int, ...], str] = {}

    def __enter__(self) -> Tracer:
        self._outer, annotations.current.tracer = annotations.current.tracer, self
        self._gc_paused = gc_paused()
        self._gc_paused.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        annotations.current.tracer = self._outer
        for x in self.negated:  # breaks the reference cycles, so that no garbage collection is due
            x.opposite = None
        self.nodes, self.table, self.calls, self.functions, self.negated = [], {}, {}, {}, []
        self._gc_paused.__exit__(None, None, None)

    def input(self) -> Expression:
        """Return a new input."""
        return self._append("argument", ())

    def loop_state(self) -> Expression:
        """Return a new entry of the state of a loop, inside of its step; see `repeat_while`."""
        return self._append("iter_arg", ())

    def node(self, operation: str, *arguments: Expression | float) -> Expression:
        """Return the expression of an operation: the existing one, or a new one."""
        numbers = [a.index if isinstance(a, Expression) else (a,) for a in arguments]  # 1.0 == 1
        if isinstance(operation, CallResult):
            return self.result(operation, self.calls.setdefault(tuple(numbers), arguments))
        key = (operation, *numbers)
        expression = self.table.get(key)
        if expression is None:
            kind = Condition if operation in CONDITIONS else Expression
            expression = self.table[key] = self._append(operation, arguments, kind)
        return expression

    def result(self, operation: str, arguments: tuple[Expression | float, ...]) -> Expression:
        """Return the expression of a result of a call, as `node` does, in less time for a result after the first one.

        Args:
            operation: The result. arguments: Of the expression of another result of a call with these arguments: all
                results of a call have one tuple, which passes therefore read once.
        """
        key = (operation, id(arguments))
        if key not in self.table:
            self.table[key] = self._append(operation, arguments)
        return self.table[key]

    def binary(self, operation: str, a: Expression, b: Expression) -> Expression:
        """Return the expression of an arithmetic operation on two expressions, as `node` does, in less time."""
        if b.tracer is not self:
            raise TraceError(MIXED_TRACES)
        table, key = self.table, (operation, a.index, b.index)
        if key in table:
            return table[key]
        made = table[key] = Expression()  # without arguments, which takes less time than an `__init__`
        made.tracer, made.operation, made.arguments, made.label = self, operation, (a, b), self.label
        made.opposite = None
        nodes = self.nodes
        made.index = len(nodes)
        nodes.append(made)
        return made

    def negation(self, x: Expression) -> Expression:
        """Return the new expression -x of an expression without one; each of the two is the opposite of the other."""
        made = x.opposite = self._append("negate", (x,))
        made.opposite = x
        self.negated.append(x)
        return made

    def multiple(self, c: float, x: Expression) -> Expression:
        """Return c*x; it is the negation of (-c)*x if that exists."""
        key = (c, x.index)
        multiple = self.table.get(key)
        if multiple is None:
            negated = self.table.get((-c, x.index))
            if negated is not None:
                return self.negation(negated) if negated.opposite is None else negated.opposite
            multiple = self.table[key] = self._append("multiply", (c, x))
        return multiple

    def _append(
        self, operation: str, arguments: tuple[Expression | float, ...], kind: type[Expression] = Expression
    ) -> Expression:
        made = kind()
        made.tracer, made.operation, made.arguments, made.label = self, operation, arguments, self.label
        made.opposite = None
        made.index = len(self.nodes)
        self.nodes.append(made)
        return made


def require_unit_norm(name: str, quaternion: Sequence[Any]) -> None:
    """State that a quaternion must have norm 1: the kernel refuses other values, as plain functions do.

    Only a quaternion of four inputs of the function that is being traced is checked; quaternions that the function
    computes are not.

    Args:
        name: The quaternion, for the message: "q[0:4], the quaternion of the base".
        quaternion: Its four entries, w first.
    """
    tracer = annotations.current.tracer
    if isinstance(tracer, Tracer) and all(
        isinstance(x, Expression) and x.operation == "argument" and x.tracer is tracer for x in quaternion
    ):
        tracer.unit_quaternions[tuple(x.index for x in quaternion)] = name
