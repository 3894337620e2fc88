"""Figures and animations of runs. These functions take a `Run`; runs do not depend on them."""

from legged.simulation.plots.animation import animate, snapshot
from legged.simulation.plots.figures import contact_figure, energy_figure, joints_figure, save_figures, trunk_figure
from legged.simulation.plots.journal import for_journal, save_for_journal

__all__ = [
    "animate",
    "contact_figure",
    "energy_figure",
    "for_journal",
    "joints_figure",
    "save_figures",
    "save_for_journal",
    "snapshot",
    "trunk_figure",
]
