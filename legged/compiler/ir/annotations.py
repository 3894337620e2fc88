"""Labels of operations: stage of the algorithm, kinematic module, and item of a loop.

    with stage("1 twists"):
        for k in modules:
            with module(k):
                for j in bodies:
                    with item(j):
                        ...

Outside of tracing the contexts cost a function call and change nothing. During tracing every operation stores the
labels that are current when it is first made; `Counts.by_stage` and `.by_module` sum them up. Items are the iterations
of a loop over objects that may be alike, such as bodies or pairs of bodies: code generation outlines large graphs item
by item, see `passes.outline`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol


class Label(NamedTuple):
    """Stage, module and item of an operation, None where the traced function names none."""

    stage: str | None = None
    module: Any = None
    item: Any = None


class Labeled(Protocol):
    """An object with a current label: the tracer of a thread."""

    label: Label


class _Current(threading.local):
    tracer: Labeled | None = None


current = _Current()
"""The tracer that is open in this thread."""


class _LabelContext:
    """A context in which one field of the tracer's label is changed."""

    def __init__(self, tracer: Labeled, **fields: Any):
        self.tracer, self.fields = tracer, fields

    def __enter__(self) -> None:
        self.before = self.tracer.label
        self.tracer.label = self.before._replace(**self.fields)

    def __exit__(self, *error: object) -> None:
        self.tracer.label = self.before


_no_context = nullcontext()


def stage(name: str) -> _LabelContext | nullcontext[None]:
    """Return a context that assigns operations to the stage `name` of the algorithm."""
    tracer = current.tracer
    return _no_context if tracer is None else _LabelContext(tracer, stage=name)


def module(index: Any) -> _LabelContext | nullcontext[None]:
    """Return a context that assigns operations to the kinematic module `index`."""
    tracer = current.tracer
    return _no_context if tracer is None else _LabelContext(tracer, module=index)


def item(key: Any) -> _LabelContext | nullcontext[None]:
    """Return a context that assigns operations to one iteration of a loop, identified by a key."""
    tracer = current.tracer
    return _no_context if tracer is None else _LabelContext(tracer, item=key)


def items(sequence: Iterable[Any]) -> Iterator[Any]:
    """Yield the elements of a sequence, each inside the context of its own item: `for x in items(xs)`."""
    for k, x in enumerate(sequence):
        with item(k):
            yield x
