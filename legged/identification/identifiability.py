"""How well an experiment determines parameters: deviations, correlations, and open directions.

An open direction is a combination of parameters about which the experiment adds no information to their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from legged.spatial import Array

_UNIFORM = 1.0 / np.sqrt(12.0)
"""Standard deviation of a uniform distribution between the bounds, in units of their distance: prior knowledge."""
_SHOWN = 0.05  # least entry of a direction, relative to the largest, of a parameter that is named
_ROUNDING = 1e-12  # relative, of the eigenvalues of the information


class Direction(NamedTuple):
    """A combination of parameters, and the standard deviation with which an experiment determines it.

    Attributes:
        changes: Name -> change along the direction, [the parameter's unit]; the largest, relative to its width, is 1
            width.
        deviation: Standard deviation along the direction, in units of the widths; infinite if no reading depends on it.
    """

    changes: dict[str, float]
    deviation: float

    def __str__(self) -> str:
        parts = [f"{change:+.3g} in {name}" for name, change in self.changes.items()]
        if len(parts) == 1:
            return f"{next(iter(self.changes))} alone"
        return f"{', '.join(parts)} together"


@dataclass(frozen=True, eq=False)
class Identifiability:
    """The information of an experiment on parameters.

    Attributes:
        names: Names of the parameters. information: H, (n, n), inverse covariance for weighted residuals of variance 1.
        width: Scale of each parameter, (n,), as in `ParameterSet`.
        variance: Variance of the weighted residuals.
        matrices, scores: Information and gradient of the cost of each window, (W, n, n) and (W, n), or None if nothing
            was measured.
    """

    names: tuple[str, ...]
    information: Array
    width: Array
    variance: float
    matrices: Array | None = None
    scores: Array | None = None

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues, zero up to rounding, and eigenvectors of H for parameters in units of their widths."""
        scaled = self.information * np.outer(self.width, self.width)
        size = np.sqrt(np.maximum(np.diag(scaled), np.finfo(float).tiny))
        values, vectors = np.linalg.eigh((scaled + scaled.T) / 2.0)
        return np.where(values < _ROUNDING * max(float(size.max() ** 2), 1e-300), 0.0, values), vectors

    @property
    def rank(self) -> int:
        """Number of independent directions on which the readings depend."""
        return int(np.count_nonzero(self._spectrum[0]))

    @cached_property
    def covariance(self) -> Array:
        """Covariance of the parameters for independent noise, (n, n), mixed units.

        The variance of a parameter with a component along a direction without information is infinite.
        """
        return self._covariance(self._inverse * self.variance, self._known[:, :0])

    @cached_property
    def robust_covariance(self) -> Array:
        """Covariance of the parameters from the scatter of the windows, (n, n), mixed units.

        Each window is left out in turn; the changes of the parameters that follow give the covariance. It is also valid
        if the model is not exact or the noise of a window is correlated. The variance of a parameter that one window
        alone determines is infinite. Without `scores` it is `covariance`.

        Source: Tukey's jackknife with a window as the unit; Wu 1986, "Jackknife, bootstrap and other resampling methods
        in regression analysis".
        """
        scaled, lost = self._scaled_robust
        return self._covariance(scaled, lost)

    @cached_property
    def _scaled_robust(self) -> tuple[Array, Array]:
        """Robust covariance in units of the widths, and directions that one window alone determines, in columns.

        Along these directions the covariance is that for independent noise.
        """
        known, independent = self._known, self._inverse * self.variance
        if self.matrices is None or self.scores is None:
            return independent, known[:, :0]
        matrices = known.T @ (self.matrices * np.outer(self.width, self.width)) @ known
        values, vectors = np.linalg.eigh(matrices.sum(axis=0) - matrices)
        kept = values > _ROUNDING * max(float(self._spectrum[0].max(initial=0.0)), 1e-300)
        gradients = (np.swapaxes(vectors, -1, -2) @ (self.scores * self.width @ known)[..., None])[..., 0]
        changes = (vectors @ np.where(kept, gradients / np.where(kept, values, 1.0), 0.0)[..., None])[..., 0] @ known.T
        shares, combined = np.linalg.eigh(((vectors * ~kept[:, None]) @ np.swapaxes(vectors, -1, -2)).sum(axis=0))
        lost = known @ combined[:, shares > 1e-8]
        own = lost @ lost.T
        return changes.T @ changes * (1.0 - 1.0 / len(changes)) + own @ independent @ own, lost

    @property
    def _known(self) -> Array:
        """Eigenvectors of H in units of the widths, in columns, along which the experiment has information."""
        values, vectors = self._spectrum
        return vectors[:, values > 0.0]

    @cached_property
    def _inverse(self) -> Array:
        """Pseudo-inverse of H for parameters in units of their widths."""
        values, vectors = self._spectrum
        return (vectors * np.where(values > 0.0, 1.0 / np.where(values > 0.0, values, 1.0), 0.0)) @ vectors.T

    def _covariance(self, scaled: Array, lost_directions: Array) -> Array:
        """Return a covariance from that in units of the widths, with infinite variances, see `covariance`."""
        values, vectors = self._spectrum
        covariance = scaled * np.outer(self.width, self.width)
        lost = (np.hstack([vectors[:, values == 0.0], lost_directions]) ** 2).sum(axis=1) > 1e-8
        covariance[lost, lost] = np.inf
        return covariance

    @property
    def deviations(self) -> Array:
        """Standard deviations of the parameters for independent noise, (n,), mixed units."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def robust_deviations(self) -> Array:
        """Standard deviations of the parameters from the scatter of the windows, (n,), mixed units."""
        return np.sqrt(np.diag(self.robust_covariance))

    @property
    def correlations(self) -> Array:
        """Correlations of the parameters, (n, n); those of a parameter without information are zero."""
        size = self.deviations
        with np.errstate(invalid="ignore"):
            correlations = self.covariance / np.outer(size, size)
        correlations = np.where(np.isfinite(correlations), correlations, 0.0)
        np.fill_diagonal(correlations, 1.0)
        return correlations

    @cached_property
    def open_directions(self) -> tuple[Direction, ...]:
        """Directions with a larger deviation than a uniform distribution between the bounds, the largest first."""
        values, vectors = self._spectrum
        lost, known = values == 0.0, self._known
        scaled = known.T @ self._scaled_robust[0] @ known
        variances, inside = np.linalg.eigh((scaled + scaled.T) / 2.0)
        pairs = [(np.inf, vector) for vector in vectors[:, lost].T]
        pairs += [
            (float(np.sqrt(max(x, 0.0))), known @ y) for x, y in zip(variances[::-1], inside.T[::-1], strict=True)
        ]
        directions = []
        for deviation, vector in pairs:
            if deviation > _UNIFORM:
                vector = vector / vector[np.argmax(np.abs(vector))]
                kept = np.flatnonzero(np.abs(vector) > _SHOWN)
                changes = {self.names[i]: float(vector[i] * self.width[i]) for i in kept}
                directions.append(Direction(changes, deviation))
        return tuple(directions)

    def __str__(self) -> str:
        if not self.open_directions:
            return f"all {len(self.names)} parameters are determined better than by their bounds"
        lines = [f"{d} (deviation {d.deviation:.2g} of the width)" for d in self.open_directions]
        return "the log cannot tell " + "; ".join(lines)
