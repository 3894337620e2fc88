"""The entries of arrays that a traced function computes and that are not zero for all arguments.

Most entries of the linear-quadratic model of a node are constant zeros. Machine code computes and writes the others
only, as one vector, and scatters them to the arrays, whose zeros stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.compiler import Call
from legged.spatial import Array, is_zero


class Entries:
    """The entries of the arrays of a traced function that are not constant zeros.

    Attributes:
        places: Their numbers in each array, in C order, after the function has been traced.
        first: Number of numbers before them in the vector.
    """

    places: Sequence[Array] = ()
    first: int = 0

    def packed(self, dense: Sequence[Array], arrays: Sequence[Array]) -> Array:
        """Return dense arrays and the entries of others as one vector, (n,), and remember the places of the entries.

        Args:
            dense: The arrays whose entries are all written, (...), any unit and frame.
            arrays: The other ones, (...), any unit and frame.
        """
        before = [np.asarray(array, object).reshape(-1) for array in dense]
        self.first = sum(len(part) for part in before)
        flat = [np.asarray(array, object).reshape(-1) for array in arrays]
        self.places = [np.array([k for k, x in enumerate(part) if not is_zero(x)], np.int64) for part in flat]
        return np.concatenate([*before, *(part[places] for part, places in zip(flat, self.places, strict=True))])

    def scattered(self, number: int, packed: Array, array: Array, index: Array, *, add: bool = False) -> Call:
        """Return the call that writes the entries of one array to their places, or adds them.

        Args:
            number: Number of the array among those of `packed`.
            packed: Vectors, (m, n), any unit and frame.
            array: Receives the entries, (m, ...), any unit and frame.
            index: Rows of both, (count,), dimensionless.
            add: Whether entries are added.
        """
        first = self.first + sum(len(places) for places in self.places[:number])
        part = packed[:, first : first + len(self.places[number])]
        return Call.scatter_entries(part, array, self.places[number], index, add=add)
