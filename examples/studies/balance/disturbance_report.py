"""Disturbance studies of the command line, and disturbance maps as polar figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Polygon
from scipy.spatial import ConvexHull

from controllers import WorkspaceBalance
from examples.studies.balance.disturbance_map import (
    INTERRUPTED,
    OUTCOMES,
    Disturbance,
    DisturbanceMap,
    Pushes,
    SettlingCriterion,
    Throws,
    disturbance_map,
)
from examples.studies.balance.experiment import ORIENTATION, POSITION, ThrownBlock, check_shapes
from legged.app.selection import select_controller, select_gait
from legged.arguments import number
from legged.contact import Rigid
from legged.dynamics.kinematics import point_positions
from legged.errors import UnknownNameError
from legged.robot.robot import Robot
from legged.simulation.integrators import TimeStepping
from legged.simulation.loop.external_wrenches import Push
from legged.simulation.plots import pages

COLORS = ("#f0b49a", "#f6e7a1", "#8fc3e8", "#dddddd")
"""Colors by outcome."""
SOLES = 0.16
"""Size of the drawn feet relative to the radius of the map."""


def map_figure(robot: Robot, mapped: DisturbanceMap) -> Figure:
    """Return the map as a polar figure seen from above: angle of origin, and radius for the size of the disturbance."""
    made = Figure(figsize=(6.4, 7.0), layout="constrained")
    ax: Any = made.add_subplot(projection="polar")
    sizes, angles = mapped.disturbance.sizes, mapped.angles
    half = np.pi / len(angles)
    first, last = max(0.0, 1.5 * sizes[0] - 0.5 * sizes[1]), 1.5 * sizes[-1] - 0.5 * sizes[-2]
    edges = np.array([first, *(0.5 * (sizes[1:] + sizes[:-1])), last])  # radii of the boundaries of the cells
    norm = BoundaryNorm([-0.5, 0.5, 1.5, 2.5, 3.5], 4)
    cells = np.append(angles, 2 * np.pi) - half
    ax.pcolormesh(cells, edges, mapped.outcomes, cmap=ListedColormap(COLORS), norm=norm, edgecolor="white", lw=0.15)
    outer = edges[np.searchsorted(sizes, mapped.boundary, side="right")]
    around = np.repeat(np.append(angles, angles[0] + 2 * np.pi), 2) + np.tile([-half, half], len(angles) + 1)
    ax.plot(around, np.repeat(np.append(outer, outer[0]), 2), color="black", linewidth=1.6)
    _axes(ax, mapped, edges[-1])
    _soles(ax, robot, mapped, edges[-1])
    patches = [
        Patch(facecolor=COLORS[k], label=words)
        for k, words in reversed(list(enumerate(OUTCOMES)))
        if k in mapped.outcomes or k < INTERRUPTED
    ]
    line = ax.plot([], [], color="black", linewidth=1.6, label="all below survived")[0]
    made.legend(handles=[*patches, line], fontsize=9, frameon=False, loc="outside lower center", ncols=4)
    return made


def _axes(ax: Any, mapped: DisturbanceMap, most: float) -> None:
    what = mapped.disturbance
    thing = "thrown at" if what.bodies else "pushed"
    ax.figure.suptitle(
        f"{mapped.robot} under {mapped.law}, {thing} from all around\n"
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


def _soles(ax: Any, robot: Robot, mapped: DisturbanceMap, most: float) -> None:
    """Draw the feet at the center in their arrangement, not to scale."""
    links: dict[int, list[Any]] = {}
    for contact in robot.contacts:
        links.setdefault(contact.link, []).append((contact.link, contact.position))
    feet = [point_positions(robot, mapped.q, points)[:, :2] for points in links.values()]
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


STAND = "stand"
GAITS = (STAND, "walk", "trot", "tripod")
DEFAULT_SPEED_CHANGE = {STAND: 0.3, "walk": 0.5, "trot": 1.2, "tripod": 1.2}
"""Default change of speed of the whole robot by the largest push, [m/s]."""
SLOWEST_THROW = 1.0 / 6.0
"""Speed of the slowest throw relative to the fastest; slower throws have high and long paths."""
LEVEL_ORIENTATION = SettlingCriterion(np.inf, float(np.radians(10.0)))
"""Criterion for settling on a gait, which ignores the position."""


@dataclass(frozen=True)
class DisturbanceStudy:
    """Parameters of a disturbance map of a robot on rigid ground.

    Attributes:
        robot: The robot.
        gait: One of `GAITS`: "stand" uses `WorkspaceBalance` in its initial posture, at the set point of the paper for
            the spatial biped; other gaits use `Balanced`.
        throw: Whether blocks with the mass of the paper are thrown at the base link; otherwise the link is pushed.
        most: Largest size, [N s] or [m/s]; None for a change of speed by `DEFAULT_SPEED_CHANGE`.
        at: Time at which pushes begin, [s].
        directions, sizes: Numbers of directions and sizes.
        friction, restitution: Coefficients of all contacts, dimensionless.
        step: Time step and control period, [s].
        duration: Duration of the runs, [s].
    """

    robot: Robot
    gait: str = STAND
    throw: bool = False
    most: float | None = None
    at: float = 0.2
    directions: int = 48
    sizes: int = 24
    friction: float = 0.3
    restitution: float = 0.2
    step: float = 2e-3
    duration: float = 3.0

    def __post_init__(self) -> None:
        if self.gait not in GAITS:
            raise UnknownNameError("gait", self.gait, GAITS)
        for name in ("most", "step", "duration"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), above=0.0)
        number("at", self.at, "s", least=0.0)
        if self.throw:
            check_shapes(self.robot, "push it")

    @property
    def law(self) -> Any:
        """The controller."""
        if self.gait == STAND:
            known = self.robot.name == "spatial biped"
            return WorkspaceBalance(POSITION, ORIENTATION) if known else WorkspaceBalance()
        plan = select_gait(self.gait.capitalize(), self.robot, "balanced")
        return select_controller("balanced", plan)

    @property
    def disturbance(self) -> Disturbance:
        """The disturbance."""
        link, body = self.robot.links[0].name, ThrownBlock().body
        usual = DEFAULT_SPEED_CHANGE[self.gait] * self.robot.mass / (body.inertia.mass if self.throw else 1.0)
        most = usual if self.most is None else self.most
        if self.throw:
            return Throws(body, np.linspace(SLOWEST_THROW * most, most, self.sizes), link)
        sizes = most * np.arange(1, self.sizes + 1) / self.sizes
        return Pushes(Push(link, (0.0, 0.0, 0.0), self.at), sizes)

    def map(self, store: Path | None = None) -> DisturbanceMap:
        """Return the map.

        Args:
            store: As in `disturbance_map`.
        """
        return disturbance_map(
            self.robot,
            self.law,
            self.disturbance,
            directions=self.directions,
            until=self.duration,
            settled=SettlingCriterion() if self.gait == STAND else LEVEL_ORIENTATION,
            ground=Rigid(friction=self.friction, restitution=self.restitution),
            integrator=TimeStepping(self.step),
            store=store,
        )


def write(case: DisturbanceStudy, mapped: DisturbanceMap, folder: Path) -> list[Path]:
    """Write the figure and a CSV file with one row per run, and return the paths."""
    name = "throws" if case.throw else "pushes"
    return [
        pages.save(map_figure(case.robot, mapped), folder / f"{name}.png"),
        mapped.write_csv(folder / f"{name}.csv"),
    ]
