"""Random numbers of an environment: functions of the seed, the member and the number of its control steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir import random_uniform

Array = np.ndarray
_MOST_NUMBERS = 2**20
"""Largest number of random numbers for a purpose in a control step."""


class Draws:
    """Random numbers of one member in one control step for one purpose, each drawn once.

    Numbers depend on the order of the calls for the purpose alone.

    Args:
        seed: Key of the generator. member: Number of the member. step: Number of its control steps since the start.
        purpose: Number of the purpose, 0 to 15.
    """

    def __init__(self, seed: Any, member: Any, step: Any, purpose: int = 0):
        self._key, self._next = (seed, member, step), purpose * _MOST_NUMBERS

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: int | None = None) -> Any:
        """Return numbers that are uniform in [low, high), (size,) or one, in their unit.

        Args:
            low, high: Bounds, (size,) or one. size: Number of numbers; None for one number.
        """
        values = [self._draw() for _ in range(1 if size is None else size)]
        unit = values[0] if size is None else np.stack(values)
        return low + (high - low) * unit

    def normal(self, deviation: Any = 1.0, size: int | None = None) -> Any:
        """Return numbers of a normal distribution with mean zero, (size,) or one, by the method of Box and Muller.

        Args:
            deviation: Standard deviation, (size,) or one, in the unit of the result. size: As in `uniform`.
        """
        values = []
        for _ in range(1 if size is None else size):
            radius = np.sqrt(-2.0 * np.log(1.0 - self._draw()))
            values.append(radius * np.cos(2.0 * np.pi * self._draw()))
        return deviation * (values[0] if size is None else np.stack(values))

    def noise(self, size: int) -> Array:
        """Return numbers that are uniform in [-1, 1), (size,), dimensionless, pairwise independent.

        Two random numbers u and w give them: number k is 2 frac(u + k w) - 1. Difference of two numbers and each number
        have independent uniform distributions modulo 2, so that means, variances and correlations are those of
        independent numbers; three of them are not independent. 187 heights of a scan cost two random numbers.

        Args:
            size: Number of numbers.
        """
        turns = self._draw() + np.arange(float(size)) * self._draw()
        return 2.0 * (turns - np.floor(turns)) - 1.0

    def _draw(self) -> Any:
        self._next += 1
        return random_uniform(*self._key, float(self._next - 1))

    def for_purpose(self, purpose: int) -> Draws:
        """Return the random numbers of the same member and control step for another purpose."""
        return Draws(*self._key, purpose)
