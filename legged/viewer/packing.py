"""Store arrays in one compressed block of bytes for a page, quantized to 16 bits where the tolerance allows.

A quantized column is a list of whole numbers from 0 to 65534, low + step k, stored as differences modulo 2^16, which
compress well; 65535 stands for NaN. `web/src/data.js` reads the block.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

Array = np.ndarray
_LEVELS = 65534
_NAN = 65535


class Packer:
    """Collects arrays; each is referred to by its number.

    Attributes:
        entries: Kind, shape and place of each array, as plain data.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._blocks: list[bytes] = []
        self._size = 0

    def add(self, values: Array, tolerance: float = 0.0) -> int:
        """Add an array and return its number.

        Args:
            values: The array, (n, ...), [any unit]: whole numbers, or real numbers and NaN.
            tolerance: Largest error of a real number, in its unit. Numbers are stored in 32 bits if the error of 16
                bits is larger. Whole numbers are stored in 16 bits if the tolerance is not zero.
        """
        values = np.asarray(values)
        if values.dtype.kind in "iu":
            return self._append("int16" if tolerance else "uint32", values, {})
        if not values.size:
            return self._append("float32", values, {})
        columns = values.reshape(len(values), -1).astype(float)
        finite = np.isfinite(columns)
        low = np.where(finite, columns, np.inf).min(axis=0)
        high = np.where(finite, columns, -np.inf).max(axis=0)
        low, high = (np.where(np.isfinite(x), x, 0.0) for x in (low, high))
        step = (high - low) / _LEVELS
        if (step > 2.0 * tolerance).any():
            return self._append("float32", values, {})
        scale = np.where(step > 0.0, step, 1.0)
        codes = np.where(finite, np.round((np.where(finite, columns, low) - low) / scale), _NAN).astype(np.uint16)
        differences = np.diff(codes.T, axis=1, prepend=np.uint16(0))  # modulo 2^16
        place = {"low": _rounded(low), "step": _rounded(step)}
        return self._append("quantized", differences, place, values.shape)

    def text(self) -> str:
        """Return the block of all arrays, compressed with deflate, in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._blocks), 7)).decode()

    def _append(self, kind: str, values: Array, place: dict[str, Any], shape: tuple[int, ...] | None = None) -> int:
        kinds = {"float32": np.float32, "int16": np.int16, "uint32": np.uint32, "quantized": np.uint16}
        block = np.ascontiguousarray(values, kinds[kind]).tobytes()
        block += b"\0" * (-len(block) % 4)
        shape = values.shape if shape is None else shape
        self.entries.append({"kind": kind, "shape": list(shape), "start": self._size, **place})
        self._blocks.append(block)
        self._size += len(block)
        return len(self.entries) - 1


def _rounded(values: Array) -> list[float]:
    """Return numbers with nine digits, which determine their value in 32 bits."""
    return [float(f"{x:.9g}") for x in values]
