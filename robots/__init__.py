"""Ready-made robots, one definition per file."""

from robots.centipede import centipede
from robots.chain import chain
from robots.delta import delta
from robots.five_bar import five_bar_leg
from robots.four_bar import four_bar
from robots.hexapod import hexapod
from robots.hopper import planar_hopper
from robots.humanoid import humanoid
from robots.planar_biped import planar_biped
from robots.spatial_biped import spatial_biped
from robots.spatial_quadruped import spatial_quadruped
from robots.tree import tree
from robots.two_link_hopper import two_link_hopper

__all__ = [
    "centipede",
    "chain",
    "delta",
    "five_bar_leg",
    "four_bar",
    "hexapod",
    "humanoid",
    "planar_biped",
    "planar_hopper",
    "spatial_biped",
    "spatial_quadruped",
    "tree",
    "two_link_hopper",
]
