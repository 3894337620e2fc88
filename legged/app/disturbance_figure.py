"""Disturbance maps as polar figures: every run a cell, and the boundary of what is survived."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Polygon
from scipy.spatial import ConvexHull

from legged.app.disturbance_map import OUTCOMES, DisturbanceMap
from legged.dynamics.kinematics import point_positions
from legged.robot.robot import Robot

COLORS = ("#f0b49a", "#f6e7a1", "#8fc3e8")
"""By outcome."""
SOLES = 0.16
"""Size of the robot's feet in the figure, over the map's."""


def figure(robot: Robot, found: DisturbanceMap) -> Figure:
    """Return the map: the angle is where the disturbance comes from, the radius its size, seen from above."""
    made = Figure(figsize=(6.4, 7.0), layout="constrained")
    ax: Any = made.add_subplot(projection="polar")
    sizes, angles = found.disturbance.sizes, found.angles
    half = np.pi / len(angles)
    edges = np.concatenate([[max(0.0, 1.5 * sizes[0] - 0.5 * sizes[1])], _between(sizes)])
    norm = BoundaryNorm([-0.5, 0.5, 1.5, 2.5], 3)
    cells = np.append(angles, 2 * np.pi) - half
    ax.pcolormesh(cells, edges, found.outcomes, cmap=ListedColormap(COLORS), norm=norm, edgecolor="white", lw=0.15)
    outer = np.concatenate([[edges[0]], edges[1:]])[np.searchsorted(sizes, found.boundary, side="right")]
    around = np.repeat(np.append(angles, angles[0] + 2 * np.pi), 2) + np.tile([-half, half], len(angles) + 1)
    ax.plot(around, np.repeat(np.append(outer, outer[0]), 2), color="black", linewidth=1.6)
    _axes(ax, found, edges[-1])
    _soles(ax, robot, found, edges[-1])
    patches = [Patch(facecolor=COLORS[k], label=words) for k, words in reversed(list(enumerate(OUTCOMES)))]
    line = ax.plot([], [], color="black", linewidth=1.6, label="all below survived")[0]
    made.legend(handles=[*patches, line], fontsize=9, frameon=False, loc="outside lower center", ncols=4)
    return made


def _between(sizes: np.ndarray) -> np.ndarray:
    """Return the outer edges of the cells, (n,)."""
    return np.append(0.5 * (sizes[1:] + sizes[:-1]), 1.5 * sizes[-1] - 0.5 * sizes[-2])


def _axes(ax: Any, found: DisturbanceMap, most: float) -> None:
    what = found.disturbance
    thing = "thrown at" if what.bodies else "pushed"
    ax.figure.suptitle(
        f"{found.robot} under {found.law}, {thing} from all around\n"
        f"angle: where it comes from, seen from above; radius: {what.words} [{what.unit}]",
        fontsize=10,
    )
    ax.set_ylim(0.0, most)
    degrees = np.arange(0, 360, 45)
    ends = {0: "+x", 90: "+y", 180: "-x", 270: "-y"}
    ax.set_thetagrids(degrees, [ends.get(int(d), f"{d}\N{DEGREE SIGN}") for d in degrees], fontsize=9)
    ax.set_rlabel_position(67.5)
    ax.tick_params(axis="y", labelsize=8)
    ax.grid(color="#666666", linewidth=0.4, alpha=0.6)


def _soles(ax: Any, robot: Robot, found: DisturbanceMap, most: float) -> None:
    """Draw the robot's feet in the middle, as they stand, not to the scale of the map."""
    links: dict[int, list[Any]] = {}
    for contact in robot.contacts:
        links.setdefault(contact.link, []).append((contact.link, contact.position))
    feet = [point_positions(robot, found.q, points)[:, :2] for points in links.values()]
    everywhere = np.concatenate(feet)
    middle = 0.5 * (everywhere.min(axis=0) + everywhere.max(axis=0))
    scale = SOLES * most / np.abs(everywhere - middle).max()
    for foot in feet:
        xy = scale * (foot - middle)
        if len(xy) > 2:
            corners = xy[ConvexHull(xy).vertices]
            ax.add_patch(Polygon(_polar(corners), closed=True, facecolor="none", edgecolor="#333333", lw=1.2))
        else:
            ax.plot(*_polar(xy).T, "o", color="#333333", markersize=3)


def _polar(xy: np.ndarray) -> np.ndarray:
    """Return [angle, radius] of points, (n, 2)."""
    return np.stack([np.arctan2(xy[:, 1], xy[:, 0]), np.hypot(xy[:, 0], xy[:, 1])], axis=1)
