"""Terrain: height and normal of the ground's surface, over any element.

A terrain has `height(x, y)` and `normal(x, y)`; both take world coordinates in meters, as numbers, arrays of one shape
or tracing expressions. The normal is a unit vector that points out of the ground, with the three components last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from legged.compiler.ir import where
from legged.errors import DefinitionError


class Terrain(Protocol):
    """What the ground laws ask of a terrain."""

    def height(self, x: Any, y: Any) -> Any:
        """Return the surface's height at (x, y), [m], world."""
        ...

    def normal(self, x: Any, y: Any) -> Any:
        """Return the outward unit normal at (x, y), (..., 3), world."""
        ...


@dataclass(frozen=True)
class Flat:
    """A level floor.

    Attributes:
        elevation: Its height, [m], world z.
    """

    elevation: float = 0.0

    def height(self, x: Any, y: Any) -> Any:
        """Return the floor's height, whatever x and y, [m]."""
        return self.elevation + 0.0 * x + 0.0 * y

    def normal(self, x: Any, y: Any) -> Any:
        """Return +z, (..., 3)."""
        zero = 0.0 * x + 0.0 * y
        return np.stack([zero, zero, 1.0 + zero], axis=-1)

    def __str__(self) -> str:
        return f"flat at {self.elevation:g} m"


@dataclass(frozen=True)
class Slope:
    """An inclined plane through the world's origin.

    Attributes:
        angle: Inclination, [rad], positive uphill along the heading.
        heading: Direction of steepest ascent, [rad], from +x towards +y.
    """

    angle: float
    heading: float = 0.0

    def __post_init__(self) -> None:
        if not abs(self.angle) < np.pi / 2:
            raise DefinitionError(f"a slope's angle must lie between -pi/2 and pi/2 rad, got {self.angle}")

    def height(self, x: Any, y: Any) -> Any:
        """Return tan(angle) times the distance along the heading, [m]."""
        return np.tan(self.angle) * (np.cos(self.heading) * x + np.sin(self.heading) * y)

    def normal(self, x: Any, y: Any) -> Any:
        """Return the plane's unit normal, (..., 3)."""
        zero = 0.0 * x + 0.0 * y
        uphill = np.sin(self.angle)
        return np.stack(
            [zero - uphill * np.cos(self.heading), zero - uphill * np.sin(self.heading), zero + np.cos(self.angle)],
            axis=-1,
        )

    def __str__(self) -> str:
        return f"slope of {np.degrees(self.angle):g} degrees towards {np.degrees(self.heading):g} degrees"


@dataclass(frozen=True)
class Steps:
    """Level treads joined by short ramps: stairs, kerbs, ditches.

    Along the heading, the surface climbs by `rises[k]` over the ramp that is centered on `edges[k]`. A ramp is a cubic
    (zero slope at both ends), since a vertical face would throw out any point that enters it.

    Attributes:
        edges: Where the steps are, [m], along the heading, growing.
        rises: Their heights, [m], negative for a step down; one per edge.
        ramp: Length of a ramp, [m].
        heading: Direction in which `edges` count, [rad], from +x towards +y.
    """

    edges: tuple[float, ...]
    rises: tuple[float, ...]
    ramp: float = 0.01
    heading: float = 0.0

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.rises):
            raise DefinitionError(f"steps need one rise per edge, got {len(self.edges)} edges, {len(self.rises)} rises")
        if not self.ramp > 0.0:
            raise DefinitionError(f"a step's ramp must be longer than 0 m, got {self.ramp}")
        if any(after - before < self.ramp for before, after in zip(self.edges, self.edges[1:], strict=False)):
            raise DefinitionError(f"edges must grow by at least one ramp, {self.ramp} m, got {self.edges}")

    def _along(self, x: Any, y: Any) -> Any:
        return np.cos(self.heading) * x + np.sin(self.heading) * y

    def _progress(self, distance: Any, edge: float) -> Any:
        """Return how far up one ramp a place is, from 0 before it to 1 behind it."""
        s = (distance - edge) / self.ramp + 0.5
        return where(s < 0.0, 0.0, where(s > 1.0, 1.0, s))

    def height(self, x: Any, y: Any) -> Any:
        """Return the sum of the steps behind (x, y), [m]."""
        total = 0.0 * x + 0.0 * y
        for edge, rise in zip(self.edges, self.rises, strict=True):
            s = self._progress(self._along(x, y), edge)
            total = total + rise * s * s * (3.0 - 2.0 * s)
        return total

    def normal(self, x: Any, y: Any) -> Any:
        """Return the unit normal, from the slope of the ramps, (..., 3)."""
        slope = 0.0 * x + 0.0 * y
        for edge, rise in zip(self.edges, self.rises, strict=True):
            s = self._progress(self._along(x, y), edge)
            slope = slope + (6.0 * rise / self.ramp) * s * (1.0 - s)
        up = 1.0 / np.sqrt(1.0 + slope * slope)
        return np.stack([-np.cos(self.heading) * slope * up, -np.sin(self.heading) * slope * up, up], axis=-1)

    def __str__(self) -> str:
        steps = ", ".join(f"{rise:+g} m at {edge:g} m" for edge, rise in zip(self.edges, self.rises, strict=True))
        return f"steps of {steps}"
