"""The entries of traced arrays that are not constant zeros.

Most entries of the linear-quadratic model of a node are constant zeros. Machine code computes only the others, writes
them to one vector, and scatters them to the arrays, which contain zeros elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.compiler import Call
from legged.spatial import Array, is_zero


class Entries:
    """The entries of the arrays of a traced function that are not constant zeros.

    Attributes:
        places: Flat indices of these entries in each array, in C order; empty before `packed` is called.
    """

    places: Sequence[Array] = ()

    def packed(self, arrays: Sequence[Array]) -> Array:
        """Return the entries of arrays as a vector, (n,), and remember their places.

        Args:
            arrays: The traced arrays, (...), any unit and frame.
        """
        flat = [np.asarray(array, object).reshape(-1) for array in arrays]
        self.places = [np.array([k for k, x in enumerate(part) if not is_zero(x)], np.int64) for part in flat]
        return np.concatenate([part[places] for part, places in zip(flat, self.places, strict=True)])

    def scattered(self, number: int, packed: Array, array: Array, index: Array, *, add: bool = False) -> Call:
        """Return the call that writes the entries of one array to their places, or adds them.

        Args:
            number: Index of the array among those of `packed`.
            packed: Vectors of the form of `packed`, (count, n), any unit and frame.
            array: Receives the entries, (m, ...), any unit and frame. index: Its rows, (count,), dimensionless.
            add: Whether entries are added.
        """
        first = sum(len(places) for places in self.places[:number])
        part = packed[:, first : first + len(self.places[number])]
        return Call.scatter_entries(part, array, self.places[number], index, add=add)
