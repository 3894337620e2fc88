"""What real sensors add: white noise, a constant bias, and a bias that walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.errors import DefinitionError, ShapeError
from legged.spatial import Array


@dataclass(frozen=True)
class Noise:
    """An additive error of each channel of a sensor, the same for the same seed; units are those of the reading.

    Attributes:
        density: White noise as data sheets give it, [unit / sqrt(Hz)]: of variance f density^2 at a sampling rate f.
        bias: Standard deviation of a constant offset, drawn once, [unit].
        walk: Random walk of the offset, [unit / sqrt(s)]: its variance after a time t is t walk^2.
        seed: Of NumPy's generator.
    """

    density: float = 0.0
    bias: float = 0.0
    walk: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = self.density, self.bias, self.walk
        if not (np.isfinite(sizes).all() and min(sizes) >= 0.0):
            raise DefinitionError(f"noise must be finite and not negative, got density, bias and walk {sizes}")

    def on(self, times: Any, readings: Any) -> Array:
        """Return readings, (T, ...), taken at growing times, (T,), [s], with the error added."""
        times, readings = np.asarray(times, float), np.asarray(readings, float)
        if times.shape != readings.shape[:1] or len(times) < 2 or not (np.diff(times) > 0.0).all():
            raise ShapeError(f"readings {readings.shape} need as many growing times, two at least, got {times.shape}")
        rng = np.random.default_rng(self.seed)
        steps = np.diff(times, append=2 * times[-1] - times[-2]).reshape(-1, *(1,) * (readings.ndim - 1))
        white = self.density / np.sqrt(steps) * rng.normal(size=readings.shape)
        walked = np.cumsum(self.walk * np.sqrt(steps) * rng.normal(size=readings.shape), axis=0)
        return readings + white + self.bias * rng.normal(size=readings.shape[1:]) + walked
