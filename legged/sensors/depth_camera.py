"""Depth camera: distances to the terrain along the rays of its pixels, with noise and missing pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from legged.arguments import array, number, whole
from legged.checked import checked
from legged.compiler.ir import where
from legged.dynamics.frames import Frame
from legged.errors import DefinitionError
from legged.ground.terrain import Terrain
from legged.spatial import Array

_BISECTIONS = 8


@checked
def depth_along(terrain: Terrain, origin: Array, direction: Array, far: float, step: float) -> Any:
    """Return the least depth d > 0 at which origin + d direction is on the terrain, (...); 2 far if none is up to far.

    The heights of ray and terrain are compared at equal distances of at most a step in d; the first interval in which
    the ray enters the terrain is halved 8 times. Parts of the terrain that a ray crosses within one interval may be
    missed. The depth is zero for an origin inside of the terrain. The function can be traced.

    Args:
        terrain: The terrain.
        origin: (3,) or (3, ...), [m], world axes. direction: Change of the
            place with the depth, (3,) or (3, ...), dimensionless, world axes.
        far: Largest depth, [m]. step: Largest difference in depth between compared places, [m].
    """

    def is_below(depth: Any) -> Any:
        x, y, z = (origin[i] + depth * direction[i] for i in range(3))
        return z <= terrain.height(x, y)

    count = int(np.ceil(far / step))
    first = 2.0 * count + 0.0 * (origin[0] + direction[0])
    for k in reversed(range(count + 1)):
        first = where(is_below(k * far / count), float(k), first)
    low, high = np.maximum(first - 1.0, 0.0) * far / count, first * far / count
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        inside = is_below(middle)
        low, high = where(inside, low, middle), where(inside, middle, high)
    return where(first > count, 2.0 * far, high)


@checked
@dataclass(frozen=True, eq=False)
class DepthCamera:
    """A depth camera on a link: a pinhole camera whose pixels measure depths, distances along the optical axis.

    The axes of the camera are x along the optical axis, y to the left and z up. The point of a pixel with direction (1,
    b, c) and depth d is d (1, b, c). The error of a depth d is normally distributed with the standard deviation noise *
    d^2, as that of cameras with two lenses, whose disparity has a constant error.

    Attributes:
        frame: Frame of the camera: a link, a contact point or a `legged.Frame`.
        shape: Numbers of rows and columns of pixels.
        view: Angles between the outermost rows and columns of pixels, [rad]; at most 2.8.
        near, far: Smallest and largest depth that it measures, [m].
        rate: Images per second, [1/s].
        noise: Standard deviation of a depth of 1 m, [1/m].
        dropout: Probability that a pixel has no depth.
        seed: Seed of the errors.
        step: As in `depth_along`, [m].

    Raises:
        DefinitionError: The smallest depth is not less than the largest one.

    Source:
        K. Khoshelham, S. O. Elberink, "Accuracy and resolution of Kinect depth data for indoor mapping applications",
        Sensors 12(2), 2012, for the law of the noise: error of the disparity / (focal length x distance of the lenses).
        The default is that of 0.056 pixels, 447 pixels and 0.05 m.
    """

    frame: str | Frame
    shape: tuple[int, int] = (30, 40)
    view: tuple[float, float] = (1.01, 1.52)
    near: float = 0.15
    far: float = 2.5
    rate: float = 15.0
    noise: float = 0.0025
    dropout: float = 0.02
    seed: int = 0
    step: float = 0.025

    def __post_init__(self) -> None:
        for name in ("near", "far", "rate", "step"):
            number(name, getattr(self, name), "1/s" if name == "rate" else "m", above=0.0)
        for size, angle in zip(self.shape, self.view, strict=True):
            whole("shape", size, 2)
            number("view", angle, "rad", above=0.0, most=2.8)
        if not self.near < self.far:
            raise DefinitionError(f"near must be less than far, got {self.near} and {self.far} m")
        number("noise", self.noise, "1/m", least=0.0)
        number("dropout", self.dropout, least=0.0, most=1.0)
        whole("seed", self.seed, 0)

    @cached_property
    def directions(self) -> Array:
        """Points at depth 1 m of all pixels row by row from the upper left, (rows * columns, 3), [m], camera axes."""
        up, left = (np.tan(0.5 * a) * np.linspace(1.0, -1.0, n) for a, n in zip(self.view, self.shape, strict=True))
        c, b = np.meshgrid(up, left, indexing="ij")
        return np.stack([np.ones(b.size), b.ravel(), c.ravel()], axis=1)

    def depths(self, terrain: Terrain, rotation: Array, position: Array) -> Array:
        """Return the true depths of all pixels, (rows * columns,), [m]; zero for none within the range.

        Args:
            terrain: The terrain. rotation: Camera axes to world axes, (3, 3), dimensionless.
            position: Of the camera, (3,), [m], world axes.
        """
        rotation, position = array("rotation", rotation, (3, 3)), array("position", position, (3,))
        rays = rotation @ self.directions.T
        return self.in_range(depth_along(terrain, position[:, None] + 0.0 * rays, rays, self.far, self.step))

    def in_range(self, depths: Array) -> Array:
        """Return depths with zero in place of those outside of the range, (...), [m].

        Args:
            depths: (...), [m], along the optical axis in the axes of the camera.
        """
        return np.where((depths >= self.near) & (depths <= self.far), depths, 0.0)

    def measured(self, depths: Array, image: int) -> Array:
        """Return depths with errors, (...), [m]; zero for pixels without a depth.

        Args:
            depths: True depths, (...), [m], along the optical axis in the axes of the camera; zero for none.
            image: Number of the image, which determines the errors with the seed.
        """
        depths, random = np.asarray(depths, dtype=float), np.random.default_rng((self.seed, whole("image", image, 0)))
        errors = self.noise * depths * depths * random.standard_normal(depths.shape)
        missing = (depths == 0.0) | (random.random(depths.shape) < self.dropout)
        return np.where(missing, 0.0, self.in_range(depths + errors))
