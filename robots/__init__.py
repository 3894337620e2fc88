"""Ready-made robots."""

from robots.balancers import bend_swivel_robot
from robots.centipede import centipede
from robots.chain import chain
from robots.closed_loops import delta, five_bar_leg, four_bar
from robots.hexapod import hexapod
from robots.hoppers import planar_hopper, two_link_hopper
from robots.humanoid import humanoid
from robots.planar_biped import planar_biped
from robots.spatial_biped import spatial_biped
from robots.spatial_quadruped import spatial_quadruped
from robots.tree import tree

__all__ = [
    "bend_swivel_robot",
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
