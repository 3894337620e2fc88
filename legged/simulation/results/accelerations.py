"""Accelerations of a run, which are computed when they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray


class RecordedAccelerations(NamedTuple):
    """The accelerations of a run that has been stored; see `Accelerations`.

    Attributes:
        vdot: Accelerations under all forces, (T, nv), mixed units; NaN where the equations have no solution.
    """

    vdot: Array


@dataclass(frozen=True, eq=False)
class Accelerations:
    """The accelerations at T samples, computed when they are read: few runs need them, and their kernel compiles long.

    Attributes:
        acceleration: Function (q, v, tau, wrenches) -> vdot, see `Backend.acceleration`.
        q, v: Configurations (T, nq) and velocities (T, nv), mixed units.
        tau: Generalized forces of the actuators, (T, nv), [N m] or [N], joint axes.
        links: Indices of the k links on which wrenches act in any sample, (k,).
        wrenches: The wrenches on them, (T, k, 6), [N m] and [N], link axes.
        count: Number of links.
    """

    acceleration: Callable[[Array, Array, Array, Array], Array]
    q: Array
    v: Array
    tau: Array
    links: Array
    wrenches: Array
    count: int

    @classmethod
    def of(
        cls,
        acceleration: Callable[[Array, Array, Array, Array], Array],
        q: Array,
        v: Array,
        tau: Array,
        wrenches: Array,
    ) -> Accelerations:
        """Return the accelerations under wrenches on all links.

        Args:
            acceleration: Function (q, v, tau, wrenches) -> vdot, see `Backend.acceleration`.
            q: Configurations, (T, nq), mixed units. v: Velocities, (T, nv), mixed units.
            tau: Generalized forces of the actuators, (T, nv), [N m] or [N], joint axes.
            wrenches: Wrenches on all links, (T, n_links, 6), [N m] and [N], link axes.
        """
        links = np.flatnonzero((wrenches != 0.0).any(axis=(0, 2)))
        return cls(acceleration, q, v, tau, links, wrenches[:, links], wrenches.shape[1])

    @cached_property
    def vdot(self) -> Array:
        """Accelerations under all forces, (T, nv), mixed units; NaN where the equations have no solution."""
        wrenches = np.zeros((len(self.q), self.count, 6))
        wrenches[:, self.links] = self.wrenches
        rows = [self.acceleration(*row) for row in zip(self.q, self.v, self.tau, wrenches, strict=True)]
        return np.array(rows).reshape(self.v.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return `RecordedAccelerations` for `pickle` and `copy`: a function of a controller cannot be pickled."""
        return RecordedAccelerations, (self.vdot,)
