"""Gaits: joint references with two derivatives as functions of time, and the kinematics of legs."""

from controllers.gaits.alternating import Alternating, InvertedPendulum, Tripod, Trot, Walk
from controllers.gaits.crawl import Crawl
from controllers.gaits.foot_path import PATHS, swing_foot
from controllers.gaits.gait import Gait, Reference
from controllers.gaits.leg import Leg, two_link_angles
from controllers.gaits.leg_detection import legs_of
from controllers.gaits.numerical_gait import NumericalGait
from controllers.gaits.presets import authors_tripod, authors_trot, paper_trot, paper_walk, suited
from controllers.gaits.standing import Posture, Stand
from legged.algorithms.legs.foot_kinematics import FootKinematics
from legged.algorithms.legs.standing import Home, home_of, joint_limits

__all__ = [
    "PATHS",
    "Alternating",
    "Crawl",
    "FootKinematics",
    "Gait",
    "Home",
    "InvertedPendulum",
    "Leg",
    "NumericalGait",
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
