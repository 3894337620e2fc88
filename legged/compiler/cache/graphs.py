"""Traced graphs kept between runs: a function with a known `fingerprint` is traced once, and read from disk ever after.

What a call needs of a graph (inputs, outputs, the name of its machine code) is read at once; its operations stay packed
until somebody looks at them: to count them, to write them as C, to say why an answer is not finite, or to compile
them for batches.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from legged.compiler.cache import disk
from legged.compiler.cache.fingerprint import fingerprint
from legged.compiler.ir import pytree
from legged.compiler.ir.annotations import Label
from legged.compiler.ir.graph import Graph, Node


class Kept(Graph):
    """A graph from the cache folder."""

    @classmethod
    def of(cls, whole: dict[str, Any]) -> Kept:
        """Return the graph from what `_whole` made of it."""
        graph = object.__new__(cls)
        vars(graph).update(whole, rebuild=pytree.unpack(whole["rebuild"]))
        return graph

    def __getattr__(self, name: str) -> Any:
        """Unpack the operations when they are asked for first."""
        if name not in ("nodes", "results"):
            raise AttributeError(name)
        nodes, labels, results = marshal.loads(zlib.decompress(self.packed))
        labels = [Label(*label) for label in labels]
        vars(self).update(nodes=tuple(Node(o, a, labels[k]) for o, a, k in nodes), results=results)
        return vars(self)[name]


def graph_of(things: Sequence[Any], trace: Callable[[], Graph]) -> Graph:
    """Return the graph that `trace` makes: from the cache folder, or traced and put there.

    What changes what it depends on while it is traced is not kept.

    Args:
        things: Everything that the graph depends on, as far as it is not the same for all graphs.
        trace: Called if the graph is not kept.
    """
    mark = fingerprint(*things)
    graph = _find(mark) if mark else None
    if graph is None:
        graph = trace()
        if mark and mark == fingerprint(*things):
            _keep(mark, graph)
    return graph


def _find(mark: str) -> Graph | None:
    content = disk.read(disk.name(mark) + disk.GRAPH)
    try:
        return None if content is None else Kept.of(marshal.loads(content))
    except ValueError:  # the results have a class that is not there
        return None


def _keep(mark: str, graph: Graph) -> None:
    try:
        content = marshal.dumps(_whole(graph))
    except ValueError:  # the results have a class that only this process knows, or labels are no plain data
        return
    again = Kept.of(marshal.loads(content))
    if all(getattr(again, field.name) == getattr(graph, field.name) for field in fields(graph)):
        disk.write(disk.name(mark) + disk.GRAPH, content)


def _whole(graph: Graph) -> dict[str, Any]:
    """Return a graph as plain data; ValueError if that cannot be."""
    labels: dict[Label, int] = {}
    nodes = [(node.operation, node.arguments, labels.setdefault(node.label, len(labels))) for node in graph.nodes]
    operations = marshal.dumps((nodes, [tuple(label) for label in labels], graph.results))
    return {
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "rebuild": pytree.pack(graph.rebuild),
        "digest": graph.digest,
        "size": graph.size,
        "packed": zlib.compress(operations, 1),
    }
