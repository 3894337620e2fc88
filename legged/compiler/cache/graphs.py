"""Traced graphs on disk, for functions of this project: traced once, and read in later processes.

A call of a kernel needs the inputs and outputs of a graph and the name of its machine code; these are read at once. The
operations stay compressed until they are needed: to count them, to write them as C, to find the cause of a result that
is not finite, or to compile them for batches.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import starmap
from typing import Any

from legged.compiler.cache import disk, keys
from legged.compiler.ir import pytree
from legged.compiler.ir.annotations import Label
from legged.compiler.ir.graph import Graph, Node, Shape, UnitQuaternion
from legged.compiler.ir.operations import Gather, Loop
from legged.compiler.ir.pass_times import compiler_pass


class CachedGraph(Graph):
    """A graph that was read from the cache folder; graphs with constant tables or loops are not stored there."""

    @property
    def lookups(self) -> tuple[Gather, ...]:
        """No constant tables."""
        return ()

    @property
    def loops(self) -> tuple[Loop, ...]:
        """No loops."""
        return ()

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> CachedGraph:
        """Return the graph from the data that `_data_of` returns; ValueError if a class of its results is missing."""
        graph = object.__new__(cls)
        quaternions = tuple(starmap(UnitQuaternion, data["unit_quaternions"]))
        vars(graph).update(data, rebuild=pytree.deserialize(data["rebuild"]), unit_quaternions=quaternions)
        return graph

    def __getattr__(self, name: str) -> Any:
        """Decompress the operations at the first access."""
        if name not in ("nodes", "results"):
            raise AttributeError(name)
        nodes, labels, results = marshal.loads(zlib.decompress(self.packed))
        labels = [Label(*label) for label in labels]
        new = tuple.__new__  # twice as fast as the named tuple's own
        vars(self).update(nodes=tuple([new(Node, (o, a, labels[k])) for o, a, k in nodes]), results=results)
        return vars(self)[name]


def cached_graph(
    function: Callable[..., Any], robot: Any, shapes: Mapping[str, Shape], trace: Callable[[], Graph]
) -> Graph:
    """Return the graph of function(robot, *arrays): from the cache folder, or traced.

    Only graphs of functions and robots that have a key are stored, see `keys`; all others are traced.

    Args:
        function: What is traced.
        robot: Its first argument, or None.
        shapes: Names and shapes of the arrays, in order.
        trace: Returns the graph.
    """
    file = _file_name(function, robot, shapes)
    graph = _read(file)
    if graph is None:
        graph = trace()
        if file and file == _file_name(function, robot, shapes):  # tracing has changed neither function nor robot
            _write(file, graph)
    return graph


@compiler_pass("cache folder")
def _file_name(function: Callable[..., Any], robot: Any, shapes: Mapping[str, Shape]) -> str | None:
    named = keys.function_key(function)
    content = keys.data_key(robot) if named else None
    source = keys.source_digest(*keys.PACKAGES) if content else None
    if named is None or content is None or source is None:
        return None
    return disk.file_name(disk.GRAPH, source, named, content, repr(list(shapes.items())))


def _read(file: str | None) -> Graph | None:
    content = disk.read(file)
    try:
        return None if content is None else CachedGraph.from_data(marshal.loads(content))
    except ValueError:
        return None


@compiler_pass("cache folder")
def _write(file: str, graph: Graph) -> None:
    """Store a graph, unless it holds values that would be read differently."""
    try:
        content = marshal.dumps(_data_of(graph))
    except ValueError:  # a class of the results is not found by its name, or a label is not plain data
        return
    again = CachedGraph.from_data(marshal.loads(content))
    if all(getattr(again, field.name) == getattr(graph, field.name) for field in fields(graph)):
        disk.write(file, content)


def _data_of(graph: Graph) -> dict[str, Any]:
    """Return a graph as data that marshal takes; ValueError if that is impossible."""
    labels: dict[Label, int] = {}
    nodes = [(node.operation, node.arguments, labels.setdefault(node.label, len(labels))) for node in graph.nodes]
    operations = marshal.dumps((nodes, [tuple(label) for label in labels], graph.results))
    return {
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "rebuild": pytree.serialize(graph.rebuild),
        "unit_quaternions": [tuple(quaternion) for quaternion in graph.unit_quaternions],
        "digest": graph.digest,
        "size": graph.size,
        "packed": zlib.compress(operations, 1),
    }
