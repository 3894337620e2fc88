"""Linear operators given by functions that apply them and their adjoints, with sums, products and dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from legged.elements import any_element
from legged.errors import ShapeError
from legged.spatial import Array

Action = Callable[[Array], Array]


@any_element
@dataclass(frozen=True, eq=False)
class LinearOperator:
    """A linear operator from vectors of length `columns` to vectors of length `rows`.

    `A @ x` applies the operator, `A @ B` is the product, `A.T` the adjoint (the paper's star), and `A.matrix()` the
    dense matrix. A product applies its factors one after the other, without forming a matrix.

    Attributes:
        rows, columns: Lengths of the result and of the argument.
        apply: x -> A x. apply_adjoint: y -> A^T y.
        name: For error messages.
    """

    rows: int
    columns: int
    apply: Action
    apply_adjoint: Action
    name: str = ""

    def __repr__(self) -> str:
        return f"<LinearOperator {self.name or '?'}: {self.columns} -> {self.rows}>"

    @property
    def T(self) -> LinearOperator:
        """The adjoint."""
        name = self.name.removesuffix("*") if self.name.endswith("*") else f"{self.name}*"
        return LinearOperator(self.columns, self.rows, self.apply_adjoint, self.apply, name)

    @overload
    def __matmul__(self, other: LinearOperator) -> LinearOperator: ...
    @overload
    def __matmul__(self, other: Array) -> Array: ...
    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, LinearOperator):
            self._check("be multiplied with an operator of", other.rows, self.columns)
            return LinearOperator(
                self.rows,
                other.columns,
                lambda x: self.apply(other.apply(x)),
                lambda y: other.apply_adjoint(self.apply_adjoint(y)),
                f"{self.name} {other.name}",
            )
        x = np.asarray(other)
        if x.shape != (self.columns,):
            raise ShapeError(f"operator {self.name!r} acts on vectors ({self.columns},), got shape {x.shape}")
        return self.apply(x)

    def __add__(self, other: LinearOperator) -> LinearOperator:
        self._check("be added to one with rows", other.rows, self.rows)
        self._check("be added to one with columns", other.columns, self.columns)
        return LinearOperator(
            self.rows,
            self.columns,
            lambda x: self.apply(x) + other.apply(x),
            lambda y: self.apply_adjoint(y) + other.apply_adjoint(y),
            f"({self.name} + {other.name})",
        )

    def __neg__(self) -> LinearOperator:
        return LinearOperator(
            self.rows, self.columns, lambda x: -self.apply(x), lambda y: -self.apply_adjoint(y), f"-{self.name}"
        )

    def __sub__(self, other: LinearOperator) -> LinearOperator:
        return self + -other

    def matrix(self) -> Array:
        """Return the dense matrix, (rows, columns), column by column."""
        columns = [self.apply(column) for column in np.eye(self.columns)]
        return np.array(columns).reshape(self.columns, self.rows).T

    def _check(self, what: str, got: int, needed: int) -> None:
        if got != needed:
            raise ShapeError(f"operator {self.name!r} cannot {what} {got}; it needs {needed}")


def identity(size: int) -> LinearOperator:
    """Return the identity operator."""
    return LinearOperator(size, size, lambda x: x, lambda x: x, "I")
