"""Alike modules side by side: which operations of a graph can share a vector, one lane for each module.

The legs of a robot do the same operations on other numbers. Their nodes carry the label of their module; two modules
are alike if the operations of one, written as formulas of its own inputs, are those of the other. Constants, and values
that come from elsewhere (the base's), may differ from lane to lane, and so may signs: a hip on the left has +0.25 where
one on the right has -0.25, and a trace folds that into a sum here and a difference there. So a formula is compared
without its signs, and a pack keeps one sign for each lane.

Any equal operations may share a vector as long as none of them waits for another; what is compared here only makes
good matches likely.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from legged.compiler.ir.graph import Graph, Operand
from legged.compiler.passes.slp.ordering import Ordering

_LEAF = -1  # key of a constant or of a value from elsewhere
_ALIKE = 0.8  # share of formulas that two modules must have in common
_LARGEST = 10_000  # nodes: finding out who waits for whom takes memory that grows with the square


class Entry(NamedTuple):
    """What one lane of a vector holds: sign * value of the operand. The constant 20.0 is not the value number 20."""

    operand: Operand
    sign: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entry) or isinstance(self.operand, float) != isinstance(other.operand, float):
            return False
        return self.operand == other.operand and self.sign == other.sign

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class Pack(NamedTuple):
    """Operations that share a vector; lane k of it holds own[k] * the value of nodes[k].

    Attributes:
        operation: "add", "multiply" or "divide", of the two vectors that `slots` describe.
        nodes: The operations, one for each lane.
        own: Their signs in the vector, 1 or -1.
        slots: What the two operands hold, lane by lane.
        signs: What the second operand is multiplied by in a sum, lane by lane, 1 or -1.
    """

    operation: str
    nodes: tuple[int, ...]
    own: tuple[int, ...]
    slots: tuple[tuple[Entry, ...], tuple[Entry, ...]]
    signs: tuple[int, ...]

    @property
    def holds(self) -> tuple[Entry, ...]:
        """What the vector holds, lane by lane."""
        return tuple(map(Entry, self.nodes, self.own))


class Plan(NamedTuple):
    """Packs, and in which order to compute: a pack, or the number of a single node."""

    packs: list[Pack]
    order: list[Pack | int]


def plan(graph: Graph, fixed: Iterable[int], limit: int) -> Plan | None:
    """Return how to compute a graph with alike modules side by side, or None where there are none or it is too large.

    Args:
        graph: The graph.
        fixed: Values that are there before: calls, and what they need.
        limit: The largest number of lanes.
    """
    if len(graph.nodes) > _LARGEST:
        return None
    forms = _forms(graph)
    packs = _matches(graph, forms, set(fixed), limit)
    packs = _independent(graph, packs)
    packs, order = Ordering(graph, packs, owners_of(packs), set(fixed)).result()
    return Plan(packs, order) if packs else None


class _Argument(NamedTuple):
    """An operand behind its negations: sign * formula(operand), where formula = own * value."""

    operand: Operand
    sign: int
    key: int
    own: int

    @property
    def formula(self) -> Entry:
        """What a lane holds that has the operand's formula; a leaf's sign goes with it."""
        return Entry(self.operand, self.sign if self.key == _LEAF else self.own)

    @property
    def outer(self) -> int:
        """The sign that is left to whoever uses the formula."""
        return 1 if self.key == _LEAF else self.sign


class _Form(NamedTuple):
    """A node's formula without signs: a key, equal for equal formulas; own = formula / value of the node, 1 or -1."""

    key: int
    own: int
    operation: str = ""
    arguments: tuple[_Argument, ...] = ()


def _forms(graph: Graph) -> dict[int, _Form]:
    """Return the forms of all nodes that a module owns: they carry its label, and depend on inputs of its own."""
    own_inputs = _own_inputs(graph)
    keys: dict[tuple[Any, ...], int] = {}
    forms: dict[int, _Form] = {}
    for i, node in enumerate(graph.nodes, graph.input_size):
        module = node.label.module
        if module is None or node.operation == "negate":
            continue
        operation = "add" if node.operation == "subtract" else node.operation
        arguments = [_argument(graph, forms, own_inputs, module, a) for a in node.arguments]
        if all(argument.key == _LEAF for argument in arguments):  # the module was only the first to need it
            continue
        if node.operation == "subtract":
            arguments[1] = arguments[1]._replace(sign=-arguments[1].sign)
        if operation in ("add", "multiply"):
            arguments.sort(key=lambda argument: -argument.key)  # leaves last
        own = 1
        if operation == "add":
            own = arguments[0].outer
        elif operation in ("multiply", "divide"):
            own = math.prod(argument.outer for argument in arguments)
        formula = (operation, *(argument.key for argument in arguments))
        key = keys.setdefault(formula, len(keys) + len(own_inputs))
        forms[i] = _Form(key, own, operation, tuple(arguments))
    return forms


def _own_inputs(graph: Graph) -> dict[tuple[Any, int], int]:
    """Return a key for each input that one module alone uses, by (module, input): its place among its array's.

    An array of which only one module uses anything is no module's own: that one was only the first to need it.
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
        alone = [(i, *users[i]) for i in entries if len(users.get(i, ())) == 1 and None not in users[i]]
        seen: Counter[Any] = Counter()
        if len({module for _, module in alone}) > 1:
            for i, module in alone:
                keys[module, i] = names.setdefault((k, seen[module]), len(names))
                seen[module] += 1
    return keys


def _argument(
    graph: Graph, forms: dict[int, _Form], own_inputs: dict[tuple[Any, int], int], module: Any, a: Operand
) -> _Argument:
    """Return an operand as a module sees it: its own formula, or a leaf."""
    sign, size = 1, graph.input_size
    while isinstance(a, int) and a >= size and graph.nodes[a - size].operation == "negate":
        (a,), sign = graph.nodes[a - size].arguments, -sign
    if isinstance(a, int) and a < size:
        return _Argument(a, sign, own_inputs.get((module, a), _LEAF), 1)
    if isinstance(a, float) or a not in forms or graph.nodes[a - size].label.module != module:
        return _Argument(a, sign, _LEAF, 1)
    return _Argument(a, sign * forms[a].own, forms[a].key, forms[a].own)


def _matches(graph: Graph, forms: dict[int, _Form], fixed: set[int], limit: int) -> list[Pack]:
    """Return packs of nodes with equal formulas in alike modules."""
    by_module: dict[Any, dict[int, list[int]]] = {}
    for i, form in forms.items():
        if form.operation in ("add", "multiply", "divide") and i not in fixed:
            by_module.setdefault(graph.nodes[i - graph.input_size].label.module, {}).setdefault(form.key, []).append(i)
    packs: list[Pack] = []
    for group in _groups(by_module):
        for start in range(0, len(group), limit):
            modules = [by_module[m] for m in group[start : start + limit]]
            for key, nodes in modules[0].items():
                if len(modules) > 1 and all(len(module.get(key, ())) == len(nodes) for module in modules):
                    packs += [_pack(lanes, forms) for lanes in zip(*(m[key] for m in modules), strict=True)]
    return packs


def _groups(by_module: dict[Any, dict[int, list[int]]]) -> list[list[Any]]:
    """Return groups of modules that have most formulas in common."""
    counts = {m: Counter({key: len(nodes) for key, nodes in found.items()}) for m, found in by_module.items()}
    groups: list[list[Any]] = []
    for m, count in counts.items():
        for group in groups:
            first = counts[group[0]]
            if (count & first).total() >= _ALIKE * max(count.total(), first.total()):
                group.append(m)
                break
        else:
            groups.append([m])
    return groups


def _pack(nodes: tuple[int, ...], forms: dict[int, _Form]) -> Pack:
    found = [forms[i] for i in nodes]
    first = tuple(form.arguments[0].formula for form in found)
    second, signs = [], []
    for form in found:
        a, b = form.arguments
        turn = a.outer * b.outer if form.operation == "add" else 1
        if b.key == _LEAF and form.operation == "add":  # the sign goes with the leaf's value
            second.append(Entry(b.operand, a.outer * b.sign))
            turn = 1
        else:
            second.append(b.formula)
        signs.append(turn)
    own = tuple(form.own for form in found)
    return Pack(found[0].operation, nodes, own, (first, tuple(second)), tuple(signs))


def _independent(graph: Graph, packs: list[Pack]) -> list[Pack]:
    """Return the packs none of whose members waits for another, directly or through others."""
    before = [0] * graph.input_size  # for each value, the set of nodes it waits for, as bits
    for node in graph.nodes:
        mask = 0
        for a in node.arguments:
            if isinstance(a, int):
                mask |= before[a] | (1 << a if a >= graph.input_size else 0)
        before.append(mask)
    kept = []
    for pack in packs:
        all_of_them = sum(1 << node for node in pack.nodes)
        if not any(before[node] & all_of_them for node in pack.nodes):
            kept.append(pack)
    return kept


def owners_of(packs: list[Pack]) -> dict[int, tuple[int, int]]:
    """Return (pack, lane) of each packed node."""
    return {node: (k, lane) for k, pack in enumerate(packs) for lane, node in enumerate(pack.nodes)}


def vector_of(slot: tuple[Entry, ...], owners: dict[int, tuple[int, int]], packs: list[Pack]) -> int | None:
    """Return the pack whose vector is exactly what a slot needs, or None."""
    found = owners.get(slot[0].operand) if isinstance(slot[0].operand, int) else None
    return found[0] if found is not None and packs[found[0]].holds == slot else None
