"""Superword-level parallelism: pack equal operations of alike modules into vectors, one lane for each module.

The legs of a robot perform the same operations on different numbers. Each node carries the label of its module, and two
modules are alike if the operations of one, written as formulas of its own inputs, equal those of the other. Constants
and values from outside of the module, such as those of the base, may differ from lane to lane. Signs may differ too: a
hip on the left is at +0.25 m and one on the right at -0.25 m, which constant folding turns into a sum for one leg and a
difference for the other. Formulas are therefore compared without their signs, and a pack stores a sign for each lane.

A pack is correct if none of its operations depends on another one of them; equal formulas only make it likely that the
results of one pack are the operands of the next.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from legged.compiler.ir.graph import Graph, Operand
from legged.compiler.ir.pass_times import compiler_pass

_LEAF = -1
"""Key of a constant or of a value from outside of the module."""
_ALIKE = (0.8, 0.6)
"""Fractions of common formulas above which modules share vectors: of all modules, then of those without a group."""
_PACKABLE = frozenset({"add", "subtract", "multiply", "divide"})
_MAX_NODES = 10_000
"""Size of the largest graph to vectorize; the memory for the dependences grows with the square of the size."""

_new = tuple.__new__
"""Creates a named tuple in half the time of its own constructor."""


class Lane(NamedTuple):
    """Content of one lane of a vector: a value with the sign 1 or -1, or a constant with the sign 0.

    The sign distinguishes the constant 20.0 from value number 20.
    """

    operand: Operand
    sign: int


class Pack(NamedTuple):
    """Operations that share a vector; lane k of the vector holds result_signs[k] times the value of nodes[k].

    Attributes:
        operation: "add", "multiply" or "divide", applied to the two operand vectors.
        nodes: The operations, one for each lane.
        result_signs: Sign of each node in the vector, 1 or -1.
        operands: Lanes of the two operand vectors.
        operand_signs: Factors 1 or -1 of the second operand of a sum, lane by lane.
    """

    operation: str
    nodes: tuple[int, ...]
    result_signs: tuple[int, ...]
    operands: tuple[tuple[Lane, ...], tuple[Lane, ...]]
    operand_signs: tuple[int, ...]

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The content of the vector."""
        return tuple([_new(Lane, lane) for lane in zip(self.nodes, self.result_signs, strict=True)])


class Vectorization(NamedTuple):
    """The packs of a graph, and the order of computation: packs, and numbers of single nodes."""

    packs: list[Pack]
    order: list[Pack | int]


@compiler_pass("packing into vectors")
def vectorize(graph: Graph, scheduled: Iterable[int], max_lanes: int) -> Vectorization | None:
    """Return the packs of a graph, or None if it has no alike modules or is too large.

    Args:
        graph: The graph.
        scheduled: Nodes that are computed before the packs: calls of elementary functions and their arguments.
        max_lanes: The largest number of lanes of a vector.
    """
    if len(graph.nodes) > _MAX_NODES:
        return None
    done = set(scheduled)
    packs = _independent(graph, _matching_nodes(graph, _formulas(graph), done, max_lanes))
    packs, order = _PackScheduler(graph, packs, done).result()
    return Vectorization(packs, order) if packs else None


def lanes_of_nodes(packs: list[Pack]) -> dict[int, tuple[int, int]]:
    """Return (number of the pack, lane) of each packed node."""
    return {node: (k, lane) for k, pack in enumerate(packs) for lane, node in enumerate(pack.nodes)}


class _Argument(NamedTuple):
    """An operand without its negations: sign * formula(operand), where formula = formula_sign * value.

    Attributes:
        lane: The lane that holds the formula of the operand; the sign of a leaf belongs to the lane.
        key: Key of the formula.
        outer_sign: The sign that the operation applies to the lane.
    """

    lane: Lane
    key: int
    outer_sign: int


class _Formula(NamedTuple):
    """A node as a formula without signs: equal keys mean equal formulas; sign = formula / value of the node."""

    key: int
    sign: int
    operation: str
    arguments: tuple[_Argument, ...]
    module: Any


def _formulas(graph: Graph) -> dict[int, _Formula]:
    """Return the formulas of all nodes that belong to a module: labeled with it, and dependent on its own inputs."""
    own_inputs, first = _own_inputs(graph), graph.input_size
    negations: dict[int, tuple[int, int]] = {}  # the operand without its negations, and their sign
    numbers: dict[tuple[Any, ...], int] = {}
    formulas: dict[int, _Formula] = {}

    def argument(module: Any, a: Operand, sign: int) -> _Argument:
        if type(a) is int:
            if a in negations:
                a, inner = negations[a]
                sign *= inner
            if a >= first:
                formula = formulas.get(a)
                if formula is not None and formula[4] == module:
                    return _new(_Argument, (_new(Lane, (a, formula[1])), formula[0], sign * formula[1]))
            elif (module, a) in own_inputs:
                return _new(_Argument, (_new(Lane, (a, 1)), own_inputs[module, a], sign))
        return _new(_Argument, (_new(Lane, (a, sign) if type(a) is int else (sign * a, 0)), _LEAF, 1))

    for i, (operation, operands, label) in enumerate(graph.nodes, first):
        if operation == "negate":
            operand, sign = negations.get(int(operands[0]), (int(operands[0]), 1))
            negations[i] = operand, -sign
            continue
        module = label[1]
        if module is None:
            continue
        if operation in _PACKABLE:
            a = argument(module, operands[0], 1)
            b = argument(module, operands[1], -1 if operation == "subtract" else 1)
            first_key, second_key = a[1], b[1]
            if first_key == second_key == _LEAF:  # a value that several modules share
                continue
            if operation == "subtract":
                operation = "add"
            if second_key > first_key and operation != "divide":  # leaves last
                a, b, first_key, second_key = b, a, second_key, first_key
            sign = a[2] if operation == "add" else a[2] * b[2]
            arguments, formula = (a, b), (operation, first_key, second_key)
        else:
            arguments, sign = tuple([argument(module, x, 1) for x in operands]), 1
            if all(x.key == _LEAF for x in arguments):
                continue
            formula = (operation, *[x.key for x in arguments])
        key = numbers.setdefault(formula, len(numbers) + len(own_inputs))
        formulas[i] = _new(_Formula, (key, sign, operation, arguments, module))
    return formulas


def _own_inputs(graph: Graph) -> dict[tuple[Any, int], int]:
    """Return a key for each input that a single module uses, by (module, input): its rank among those of the array.

    Arrays from which a single module has such inputs are left out. The label of an operation names the first module
    that needed it, so these inputs may belong to several modules.
    """
    users: dict[int, set[Any]] = {}
    for node in graph.nodes:
        for a in node.arguments:
            if isinstance(a, int) and a < graph.input_size:
                users.setdefault(a, set()).add(node.label.module)
    keys: dict[tuple[Any, int], int] = {}
    names: dict[tuple[int, int], int] = {}
    first = 0
    for k, (_, shape) in enumerate(graph.inputs):
        entries = range(first, first + math.prod(shape))
        first = entries.stop
        own = [(i, *users[i]) for i in entries if len(users.get(i, ())) == 1 and None not in users[i]]
        seen: Counter[Any] = Counter()
        if len({module for _, module in own}) > 1:
            for i, module in own:
                keys[module, i] = names.setdefault((k, seen[module]), len(names))
                seen[module] += 1
    return keys


def _matching_nodes(graph: Graph, formulas: dict[int, _Formula], scheduled: set[int], max_lanes: int) -> list[Pack]:
    """Return packs of nodes with equal formulas in alike modules."""
    by_module: dict[Any, dict[int, list[int]]] = {}
    for i, formula in formulas.items():
        if formula.operation in ("add", "multiply", "divide") and i not in scheduled:
            by_module.setdefault(formula.module, {}).setdefault(formula.key, []).append(i)
    packs: list[Pack] = []
    for group in _alike_modules(by_module):
        for start in range(0, len(group), max_lanes):
            modules = [by_module[m] for m in group[start : start + max_lanes]]
            for key, nodes in modules[0].items():
                if len(modules) > 1 and all(len(module.get(key, ())) == len(nodes) for module in modules):
                    packs += [_pack(lanes, formulas) for lanes in zip(*(m[key] for m in modules), strict=True)]
    return packs


def _alike_modules(by_module: dict[Any, dict[int, list[int]]]) -> list[list[Any]]:
    """Return groups of modules that have most formulas in common."""
    counts = {
        m: Counter({key: len(nodes) for key, nodes in nodes_by_key.items()}) for m, nodes_by_key in by_module.items()
    }
    alike: list[list[Any]] = []
    alone = list(counts)
    for fraction in _ALIKE:
        groups: list[list[Any]] = []
        for m in alone:
            for group in groups:
                one, other = counts[m], counts[group[0]]
                if (one & other).total() >= fraction * max(one.total(), other.total()):
                    group.append(m)
                    break
            else:
                groups.append([m])
        alike += [group for group in groups if len(group) > 1]
        alone = [group[0] for group in groups if len(group) == 1]
    return alike


def _pack(nodes: tuple[int, ...], formulas: dict[int, _Formula]) -> Pack:
    packed = [formulas[i] for i in nodes]
    operation = packed[0].operation
    first, second = zip(*[formula[3] for formula in packed], strict=True)
    lanes, signs = [b[0] for b in second], [1] * len(packed)
    if operation == "add":
        for k, (a, (lane, key, outer_sign)) in enumerate(zip(first, second, strict=True)):
            if key == _LEAF:  # the lane of a leaf holds the sign of the sum
                lanes[k] = _new(Lane, (lane[0], a[2] * lane[1]) if lane[1] else (a[2] * lane[0], 0))
            else:
                signs[k] = a[2] * outer_sign
    operands = tuple([a[0] for a in first]), tuple(lanes)
    return _new(Pack, (operation, nodes, tuple([formula[1] for formula in packed]), operands, tuple(signs)))


def _independent(graph: Graph, packs: list[Pack]) -> list[Pack]:
    """Return the packs in which no node depends on another, directly or indirectly."""
    packed = lanes_of_nodes(packs)
    dependent: set[int] = set()
    masks = [0] * graph.input_size  # for each value a bit set of the packs that it depends on, its own included
    for i, node in enumerate(graph.nodes, graph.input_size):
        mask = 0
        for a in node[1]:
            if type(a) is int:
                mask |= masks[a]
        if i in packed:
            k = packed[i][0]
            bit = 1 << k
            if mask & bit:
                dependent.add(k)
            mask |= bit
        masks.append(mask)
    return [pack for k, pack in enumerate(packs) if k not in dependent]


_WAITING, _DONE, _DISSOLVED = range(3)
_SINGLE = -1


class _PackScheduler:
    """Topological sort of packs and single nodes in order of tracing.

    Where no pack and no node is ready, packs depend on each other in a cycle. The first pack that waits is then
    dissolved: its nodes are computed one by one.
    """

    def __init__(self, graph: Graph, packs: list[Pack], scheduled: set[int]):
        first = graph.input_size
        self.packs, self.packed = packs, lanes_of_nodes(packs)
        self.state = [_WAITING] * len(packs)
        self.unready_members = [len(pack.nodes) for pack in packs]
        self.nodes = [i for i in range(first, first + len(graph.nodes)) if i not in scheduled]
        self.missing = [0] * (first + len(graph.nodes))  # number of arguments that are not computed yet
        self.users: list[list[int]] = [[] for _ in self.missing]
        for i in self.nodes:
            for a in graph.nodes[i - first][1]:
                if type(a) is int and a >= first and a not in scheduled:
                    self.missing[i] += 1
                    self.users[a].append(i)
        self.ready: list[tuple[int, int]] = []  # heap of (first node, number of its pack or `_SINGLE`)
        self.order: list[Pack | int] = []

    def result(self) -> tuple[list[Pack], list[Pack | int]]:
        """Return (packs that were not dissolved, order of computation)."""
        for i in self.nodes:
            if not self.missing[i]:
                self._release(i)
        self._run()
        for k, pack in enumerate(self.packs):
            if self.state[k] == _WAITING:
                self.state[k] = _DISSOLVED
                for i in pack.nodes:
                    if not self.missing[i]:
                        self._release(i)
                self._run()
        return [pack for pack, state in zip(self.packs, self.state, strict=True) if state == _DONE], self.order

    def _run(self) -> None:
        """Schedule everything that is ready or becomes ready."""
        while self.ready:
            i, k = heapq.heappop(self.ready)
            self.order.append(i if k == _SINGLE else self.packs[k])
            if k != _SINGLE:
                self.state[k] = _DONE
            for member in (i,) if k == _SINGLE else self.packs[k].nodes:
                for user in self.users[member]:
                    self.missing[user] -= 1
                    if not self.missing[user]:
                        self._release(user)

    def _release(self, i: int) -> None:
        """Mark a node as ready: all its arguments are scheduled."""
        k = self.packed[i][0] if i in self.packed else _SINGLE
        if k == _SINGLE or self.state[k] == _DISSOLVED:
            heapq.heappush(self.ready, (i, _SINGLE))
            return
        self.unready_members[k] -= 1
        if not self.unready_members[k]:
            heapq.heappush(self.ready, (self.packs[k].nodes[0], k))
