"""The public names of `robots`: for type checkers, and the table by which `__init__.py` imports each name."""

from robots.balancers import (
    bend_swivel_robot,
    gyroscopic_pendulum,
    planar_hopper,
    reaction_wheel_pendulum,
    two_link_hopper,
)
from robots.bipeds import spatial_biped
from robots.closed_loops import delta, five_bar_leg, five_bar_quadruped, four_bar
from robots.humanoids import humanoid
from robots.paper import hexapod, planar_biped, spatial_quadruped
from robots.trees import centipede, chain, star, tree

__all__ = [
    "bend_swivel_robot",
    "centipede",
    "chain",
    "delta",
    "five_bar_leg",
    "five_bar_quadruped",
    "four_bar",
    "gyroscopic_pendulum",
    "hexapod",
    "humanoid",
    "planar_biped",
    "planar_hopper",
    "reaction_wheel_pendulum",
    "spatial_biped",
    "spatial_quadruped",
    "star",
    "tree",
    "two_link_hopper",
]
