"""The tracer: one graph under construction, in which equal subexpressions are one node."""

from __future__ import annotations

from legged.compiler.ir import annotations
from legged.compiler.ir.expression import Condition, Expression
from legged.compiler.ir.garbage import kept
from legged.compiler.ir.operations import CONDITIONS


class Tracer:
    """Expressions in the order they were made, and a table by which equal ones are found again.

    While `with tracer:` is open in a thread, `annotations.stage` and the others speak to this tracer, and no garbage is
    searched for.
    """

    __slots__ = ("_kept", "_outer", "label", "nodes", "table")

    def __init__(self) -> None:
        self.nodes: list[Expression] = []
        self.table: dict[tuple, Expression] = {}
        self.label = annotations.Label()

    def __enter__(self) -> Tracer:
        self._outer, annotations.current.tracer = annotations.current.tracer, self
        self._kept = kept()
        self._kept.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        annotations.current.tracer = self._outer
        self._kept.__exit__(None, None, None)

    def input(self) -> Expression:
        """Return a new input."""
        return self._append("input", ())

    def node(self, operation: str, *arguments: Expression | float) -> Expression:
        """Return the expression of an operation, the one that is there already if there is one."""
        key = (operation, *[a.index if isinstance(a, Expression) else (a,) for a in arguments])
        found = self.table.get(key)
        if found is None:
            found = self.table[key] = self._append(operation, arguments)
        return found

    def pair(self, operation: str, a: Expression, b: Expression) -> Expression:
        """Return the same as `node` for an arithmetic operation on two expressions: most are, and it is shorter."""
        key = (operation, a.index, b.index)
        found = self.table.get(key)
        if found is None:
            found = self.table[key] = Expression(self, len(self.nodes), operation, (a, b), self.label)
            self.nodes.append(found)
        return found

    def multiple(self, c: float, x: Expression) -> Expression:
        """Return c*x; where -c*x is there already, its negation."""
        key = ("multiply", (c,), x.index)
        found = self.table.get(key)
        if found is None:
            opposite = self.table.get(("multiply", (-c,), x.index))
            if opposite is not None:
                return self.node("negate", opposite)
            found = self.table[key] = self._append("multiply", (c, x))
        return found

    def _append(self, operation: str, arguments: tuple[Expression | float, ...]) -> Expression:
        kind = Condition if operation in CONDITIONS else Expression
        made = kind(self, len(self.nodes), operation, arguments, self.label)
        self.nodes.append(made)
        return made
