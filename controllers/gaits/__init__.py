"""Gaits: joint references with two derivatives, as functions of time."""

from controllers.gaits.alternating import Alternating, Tripod, Trot, Walk
from controllers.gaits.crawl import Crawl
from controllers.gaits.fitted import NumericalGait
from controllers.gaits.foot_path import PATHS, swing_foot
from controllers.gaits.gait import Gait, Reference
from controllers.gaits.home import Home, home_of, joint_limits
from controllers.gaits.leg import Leg, two_link_angles
from controllers.gaits.numerical import FootKinematics
from controllers.gaits.pendulum import Pendulum
from controllers.gaits.posture import Posture, Stand
from controllers.gaits.presets import authors_tripod, authors_trot, paper_trot, paper_walk
from controllers.gaits.reading import legs_of
from controllers.gaits.suited import suited

__all__ = [
    "PATHS",
    "Alternating",
    "Crawl",
    "FootKinematics",
    "Gait",
    "Home",
    "Leg",
    "NumericalGait",
    "Pendulum",
    "Posture",
    "Reference",
    "Stand",
    "Tripod",
    "Trot",
    "Walk",
    "authors_tripod",
    "authors_trot",
    "home_of",
    "joint_limits",
    "legs_of",
    "paper_trot",
    "paper_walk",
    "suited",
    "swing_foot",
    "two_link_angles",
]
