"""How a run is looked at: a side view for motion in a plane, a parallel projection from above for all else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.simulation.run import Run

Array = np.ndarray
_FLAT = 1e-6  # [m], sideways motion below this is none


@dataclass(frozen=True)
class Camera:
    """A parallel projection onto a picture with axes right and up.

    Attributes:
        axes: (2, 3), the picture's right and up in world axes.
        side: True for the view along +y, right x and up z.
    """

    axes: Array
    side: bool

    def picture(self, points: Array) -> Array:
        """Return points (..., 3), [m], world, in the picture, (..., 2), [m]."""
        return points @ self.axes.T


def camera_for(run: Run, azimuth: float = -60.0, elevation: float = 18.0) -> Camera:
    """Return the side view if the run never leaves a plane of constant y, else a view from azimuth and elevation.

    Args:
        run: What to look at.
        azimuth: Where the viewer stands, [degree], from +x towards +y. elevation: How far above, [degree].
    """
    if len(run) and np.ptp(run.skeleton[..., 1]) < _FLAT:
        return Camera(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), True)
    a, e = np.radians(azimuth), np.radians(elevation)
    right = [-np.sin(a), np.cos(a), 0.0]
    up = [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)]
    return Camera(np.array([right, up]), False)


def visible_ground(run: Run, camera: Camera) -> list[Array]:
    """Return lines on the run's ground, (k, 3) each, [m]: its profile for a side view, a grid otherwise."""
    return list(run.ground_lines[:1] if camera.side else run.ground_lines[1:])


def stick_size(run: Run) -> float:
    """Return the size of the robot's stick figure, [m]: the diagonal of the box around it at the start."""
    return float(np.linalg.norm(np.ptp(run.figure[0], axis=0))) or 1.0


def force_scale(run: Run) -> float:
    """Return the length in a picture of a unit of force, [m/N]: the usual total force is a third of the figure."""
    total = np.linalg.norm(run.ground_force, axis=1) if run.contact_forces.size else np.zeros(1)
    usual = float(np.median(total[total > 0.0])) if np.any(total > 0.0) else 0.0
    return stick_size(run) / (3.0 * usual) if usual else 0.0
