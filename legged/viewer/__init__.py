"""Runs, robots and simulations in the browser, and pages that play runs without a network."""

from legged.viewer.driving.drive import Drive
from legged.viewer.show import save_html, view

__all__ = ["Drive", "save_html", "view"]
