"""Terrain: height and normal of the ground's surface.

A terrain has the methods `height(x, y)` and `normal(x, y)`. Arguments are world coordinates in meters: numbers, arrays
of equal shape or traced expressions. The normal is a unit vector out of the ground, its components in the last axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from legged.arguments import Numbers, list_as_array
from legged.checked import checked
from legged.compiler.ir import where
from legged.errors import DefinitionError


class Terrain(Protocol):
    """The interface of terrains."""

    def height(self, x: Numbers, y: Numbers) -> Any:
        """Return the height of the surface at (x, y), [m], world z."""
        ...

    def normal(self, x: Numbers, y: Numbers) -> Any:
        """Return the outward unit normal at (x, y), (..., 3), world axes."""
        ...


@checked
@dataclass(frozen=True)
class Flat:
    """A level floor.

    Attributes:
        elevation: Height of the floor, [m], world z.
    """

    elevation: float = 0.0

    def height(self, x: Numbers, y: Numbers) -> Any:
        """Return the elevation in the shape of x and y, [m]."""
        x, y = list_as_array(x), list_as_array(y)
        return self.elevation + 0.0 * x + 0.0 * y

    def normal(self, x: Numbers, y: Numbers) -> Any:
        """Return +z, (..., 3), world axes."""
        x, y = list_as_array(x), list_as_array(y)
        zero = 0.0 * x + 0.0 * y
        return np.stack([zero, zero, 1.0 + zero], axis=-1)

    def __str__(self) -> str:
        return f"flat at {self.elevation:g} m"


@checked
@dataclass(frozen=True)
class Slope:
    """An inclined plane.

    Attributes:
        angle: Inclination, [rad], positive if the surface rises along the heading.
        heading: Direction of steepest ascent, [rad], from +x towards +y.
        elevation: Height of the plane at x = y = 0, [m], world z.
    """

    angle: float
    heading: float = 0.0
    elevation: float = 0.0

    def __post_init__(self) -> None:
        if not abs(self.angle) < np.pi / 2:
            raise DefinitionError(f"a slope's angle must lie between -pi/2 and pi/2 rad, got {self.angle}")

    def height(self, x: Numbers, y: Numbers) -> Any:
        """Return the elevation and tan(angle) times the distance along the heading, [m]."""
        x, y = list_as_array(x), list_as_array(y)
        rise = np.tan(self.angle) * (np.cos(self.heading) * x + np.sin(self.heading) * y)
        return rise if isinstance(self.elevation, float) and self.elevation == 0.0 else self.elevation + rise

    def normal(self, x: Numbers, y: Numbers) -> Any:
        """Return the unit normal of the plane, (..., 3), world axes."""
        x, y = list_as_array(x), list_as_array(y)
        zero = 0.0 * x + 0.0 * y
        uphill = np.sin(self.angle)
        return np.stack(
            [zero - uphill * np.cos(self.heading), zero - uphill * np.sin(self.heading), zero + np.cos(self.angle)],
            axis=-1,
        )

    def __str__(self) -> str:
        words = f"slope of {np.degrees(self.angle):g} degrees towards {np.degrees(self.heading):g} degrees"
        return words + (f", {self.elevation:g} m high at the origin" if self.elevation else "")


@checked
@dataclass(frozen=True)
class Stairs:
    """Level treads joined by short ramps, for stairs, kerbs and ditches.

    Along the heading the surface rises by `rises[k]` over a ramp centered at `edges[k]`. The profile of a ramp is a
    cubic polynomial with zero slope at both ends. A vertical face would have a discontinuous penetration.

    Attributes:
        edges: Increasing positions of the ramps along the heading, (n,), [m].
        rises: Height of each ramp, (n,), [m], negative for a step down.
        ramp: Length of a ramp, [m].
        heading: Direction of the positions, [rad], from +x towards +y.
    """

    edges: tuple[float, ...]
    rises: tuple[float, ...]
    ramp: float = 0.01
    heading: float = 0.0

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.rises):
            raise DefinitionError(
                f"stairs need one rise per edge, got {len(self.edges)} edges and {len(self.rises)} rises"
            )
        if not self.ramp > 0.0:
            raise DefinitionError(f"the ramp of stairs must be longer than 0 m, got {self.ramp}")
        if any(after - before < self.ramp for before, after in zip(self.edges, self.edges[1:], strict=False)):
            raise DefinitionError(f"edges must increase by at least one ramp, {self.ramp} m, got {self.edges}")

    def _along(self, x: Any, y: Any) -> Any:
        return np.cos(self.heading) * x + np.sin(self.heading) * y

    def _progress(self, distance: Any, edge: float) -> Any:
        """Return the fraction of a ramp at a distance along the heading, 0 before the ramp and 1 after it."""
        s = (distance - edge) / self.ramp + 0.5
        return where(s < 0.0, 0.0, where(s > 1.0, 1.0, s))

    def height(self, x: Numbers, y: Numbers) -> Any:
        """Return the sum of the rises up to (x, y), [m]."""
        x, y = list_as_array(x), list_as_array(y)
        total = 0.0 * x + 0.0 * y
        for edge, rise in zip(self.edges, self.rises, strict=True):
            s = self._progress(self._along(x, y), edge)
            total = total + rise * s * s * (3.0 - 2.0 * s)
        return total

    def normal(self, x: Numbers, y: Numbers) -> Any:
        """Return the unit normal from the slope of the ramps, (..., 3), world axes."""
        x, y = list_as_array(x), list_as_array(y)
        slope = 0.0 * x + 0.0 * y
        for edge, rise in zip(self.edges, self.rises, strict=True):
            s = self._progress(self._along(x, y), edge)
            slope = slope + (6.0 * rise / self.ramp) * s * (1.0 - s)
        up = 1.0 / np.sqrt(1.0 + slope * slope)
        return np.stack([-np.cos(self.heading) * slope * up, -np.sin(self.heading) * slope * up, up], axis=-1)

    def __str__(self) -> str:
        steps = ", ".join(f"{rise:+g} m at {edge:g} m" for edge, rise in zip(self.edges, self.rises, strict=True))
        return f"stairs of {steps}"
