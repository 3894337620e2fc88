"""Figures in a common style, pictures of feet, and Markdown pages with figures and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from legged.algorithms.legs.leg_chains import leg_chains
from legged.dynamics.kinematics import link_poses
from legged.output import output_file, replaced, write_file
from legged.robot.robot import Robot
from legged.robot.shapes import outermost_points
from legged.spatial import Array
from legged.table import Table

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#c1272d", "#7b4ea3", "#888888"
"""Colors that are distinguishable with color vision deficiency."""


def figure(rows: int = 1, columns: int = 1, *, width: float = 7.0, height: float = 3.2, **options: Any) -> Figure:
    """Return a figure with a grid of axes; `height` is that of one row, [inch]."""
    made = Figure(figsize=(width, height * rows), layout="constrained")
    made.subplots(rows, columns, squeeze=False, **options)
    for ax in made.axes:
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    return made


def label(ax: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Set the title and the labels of axes."""
    ax.set_title(title, fontsize=10, loc="left")
    ax.set_xlabel(x, fontsize=9)
    ax.set_ylabel(y, fontsize=9)
    ax.tick_params(labelsize=8)


def legend(made: Figure, columns: int = 4) -> Figure:
    """Add one legend below the figure, with the entries of the first axes, and return the figure."""
    handles, labels = made.axes[0].get_legend_handles_labels()
    made.legend(handles, labels, fontsize=8.5, frameon=False, loc="outside lower center", ncols=columns)
    return made


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


def save(made: Figure, path: Path) -> Path:
    """Write a figure in the format of the suffix of a path, PNG without one, and return the path."""
    path = output_file(path, ".svg" if str(path).endswith(".svg") else ".png")
    with replaced(path) as draft:
        made.savefig(draft, dpi=130, format=path.suffix[1:])
    return path


def write_tables(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Write tables to a folder, each as CSV and as LaTeX under the words of its title, and return the paths."""
    paths, used = [], dict[str, int]()
    for table in tables:
        name = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")[:60] or "table"
        used[name] = used.get(name, 0) + 1
        name += f"-{used[name]}" if used[name] > 1 else ""
        paths += [table.to_csv(folder / f"{name}.csv"), write_file(folder / f"{name}.tex", table.to_latex(), ".tex")]
    return paths


class Page:
    """A Markdown page in a folder, with its figures in the subfolder `figures` and its tables in `tables`."""

    def __init__(self, folder: Path, title: str, tables: Sequence[Table] = ()):
        self.folder = folder
        self.parts = [f"# {title}"]
        self.figures: list[Path] = []
        self.tables: list[Table] = []
        for table in tables:
            self.table(table)

    def heading(self, words: str) -> None:
        """Add a heading."""
        self.parts.append(f"## {words}")

    def text(self, words: str) -> None:
        """Add a paragraph."""
        self.parts.append(words)

    def table(self, table: Table) -> None:
        """Add a table."""
        self.tables.append(table)
        self.parts.append(table.markdown())

    def figure(self, figure: Figure, name: str, words: str) -> None:
        """Save a figure as `figures/<name>.png` and add it with a caption."""
        path = save(figure, self.folder / "figures" / f"{name}.png")
        self.figures.append(path)
        self.parts.append(f"![{words}]({path.relative_to(self.folder).as_posix()})\n\n*{words}*")

    def write(self, name: str = "report.md", tables: bool = True) -> Path:
        """Write the page, its tables also as CSV and LaTeX unless `tables` is False, and return its path."""
        if tables:
            write_tables(self.tables, self.folder / "tables")
        return write_file(self.folder / name, "\n\n".join(self.parts) + "\n", ".md")
