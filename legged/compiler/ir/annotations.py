"""Who made an operation: the stage of the algorithm, and the kinematic module and the item it was working on.

    with stage("1 twists"):
        for k in modules:
            with module(k):
                for j in bodies:
                    with item(j):
                        ...

Outside tracing all cost a function call and change nothing. While a function is traced, every operation remembers
what was current when it was first made; `Counts.by_stage` and `.by_module` add them up. Items are the turns of a loop
over what may be alike, a body or a pair of them: large graphs are compiled one turn at a time, see `segments`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol


class Label(NamedTuple):
    """Stage, module and item of an operation, None where the traced function named none."""

    stage: str | None = None
    module: Any = None
    item: Any = None


class Labeled(Protocol):
    """What carries the current label: the tracer of this thread."""

    label: Label


class _Current(threading.local):
    tracer: Labeled | None = None


current = _Current()


class _Nothing:
    """A context that does nothing, for when nobody traces."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


class _Change:
    """A context in which the tracer's label has one field changed."""

    def __init__(self, tracer: Labeled, **fields: Any):
        self.tracer, self.fields = tracer, fields

    def __enter__(self) -> None:
        self.before = self.tracer.label
        self.tracer.label = self.before._replace(**self.fields)

    def __exit__(self, *error: object) -> None:
        self.tracer.label = self.before


_nothing = _Nothing()


def stage(name: str) -> _Change | _Nothing:
    """Return a context whose operations belong to the stage `name` of the algorithm."""
    tracer = current.tracer
    return _nothing if tracer is None else _Change(tracer, stage=name)


def module(index: Any) -> _Change | _Nothing:
    """Return a context whose operations belong to the kinematic module `index`."""
    tracer = current.tracer
    return _nothing if tracer is None else _Change(tracer, module=index)


def item(key: Any) -> _Change | _Nothing:
    """Return a context whose operations belong to one turn of a loop, which a key tells from its neighbors."""
    tracer = current.tracer
    return _nothing if tracer is None else _Change(tracer, item=key)


def items(sequence: Iterable[Any]) -> Iterator[Any]:
    """Yield what is in a sequence, each as an item of its own: the turns of `for x in items(xs)`."""
    for k, x in enumerate(sequence):
        with item(k):
            yield x
