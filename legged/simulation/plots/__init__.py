"""Figures and animations of runs. These functions take a `Run`; runs do not depend on them."""

from legged.simulation.plots.animation import animate, snapshot
from legged.simulation.plots.figures import contact_figure, energy_figure, joints_figure, save_figures, trunk_figure

__all__ = [
    "animate",
    "contact_figure",
    "energy_figure",
    "joints_figure",
    "save_figures",
    "snapshot",
    "trunk_figure",
]
