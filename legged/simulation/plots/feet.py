"""Pictures of the feet of a robot: outlines of their shapes, and their contact points."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from legged.algorithms.legs.leg_chains import leg_chains
from legged.dynamics.kinematics import link_poses
from legged.robot.robot import Robot
from legged.robot.shapes import outermost_points
from legged.simulation.plots.pages import BLUE, GREY, RED, figure, label
from legged.spatial import Array


def feet_figure(robot: Robot) -> Figure:
    """Return a picture of each foot from below and from the left: outlines of its shapes, and its contact points.

    Axes are parallel to those of the base, with all joints at zero and the lowest contact point at zero height.

    Args:
        robot: The robot, loaded with `shapes=True` for the outlines.

    Raises:
        DefinitionError: The robot has no legs.
    """
    legs = leg_chains(robot)
    rotations, origins = link_poses(robot, robot.neutral())
    made = figure(len(legs), 2, width=8.0, height=2.6)
    for leg, (below, beside) in zip(legs, np.array(made.axes).reshape(-1, 2), strict=True):
        contacts = [robot.contact(name) for name in leg.contacts]
        points = np.array([origins[c.link] + rotations[c.link] @ c.position for c in contacts])
        radii = np.array([c.radius for c in contacts])
        low = float((points[:, 2] - radii).min())
        bodies = {robot.links[c.link].body for c in contacts}
        shapes = [(link.index, shape) for link in robot.links if link.body in bodies for shape in link.shapes]
        for ax, columns, names in ((below, [0, 1], ("x [mm]", "y [mm]")), (beside, [0, 2], ("x [mm]", "z [mm]"))):
            for index, shape in shapes:
                corners, radius = outermost_points(shape)
                flat = 1e3 * (origins[index] + corners @ rotations[index].T - [0.0, 0.0, low])[:, columns]
                _outline(ax, flat, 1e3 * radius)
            flat = 1e3 * (points - [0.0, 0.0, low])[:, columns]
            _outline(ax, flat, 0.0, RED)
            for (x, y), radius in zip(flat, 1e3 * radii, strict=True):
                ax.plot(x, y, "o", color=RED, markersize=5)
                if radius:
                    ax.add_patch(Circle((x, y), radius, fill=False, color=RED))
            ax.set_aspect("equal", adjustable="datalim")
            view = "from below" if columns[1] == 1 else "from the side"
            label(ax, f"{leg.name}: {robot.links[leg.link].name}, {view}", *names)
        beside.axhline(0.0, color=GREY, linewidth=0.8)
    return made


def _outline(ax: Axes, points: Array, radius: float, color: str = BLUE) -> None:
    """Draw the convex hull of points in a plane, (n, 2), each with a circle around it."""
    if radius:
        around = np.linspace(0.0, 2.0 * np.pi, 33)
        circle = radius * np.column_stack([np.cos(around), np.sin(around)])
        points = (points[:, None] + circle).reshape(-1, 2)
    if len(points) > 2 and np.linalg.matrix_rank(points - points[0], tol=1e-3) == 2:
        from scipy.spatial import ConvexHull  # imported here: it takes longer than the rest of a figure

        points = points[ConvexHull(points).vertices]
    ax.fill(*points.T, facecolor=color, alpha=0.15)
    ax.plot(*np.vstack([points, points[:1]]).T, color=color, linewidth=1.2)
