"""Compliant ground: terrain, laws of normal force and friction, and grounds with default constants."""

from legged.ground.friction import AxisFriction, BristleFriction, FrictionLaw, Frictionless, VectorFriction
from legged.ground.ground import Ground, center_of_pressure
from legged.ground.height_map import HeightMap
from legged.ground.normal import (
    AzadFeatherstone,
    HuntCrossley,
    KelvinVoigt,
    NormalLaw,
    PaperNormal,
    coefficient_of_restitution,
)
from legged.ground.presets import paper_ground, realistic_ground
from legged.ground.rolling_height_map import RollingHeightMap
from legged.ground.terrain import Flat, Slope, Stairs, Terrain

__all__ = [
    "AxisFriction",
    "AzadFeatherstone",
    "BristleFriction",
    "Flat",
    "FrictionLaw",
    "Frictionless",
    "Ground",
    "HeightMap",
    "HuntCrossley",
    "KelvinVoigt",
    "NormalLaw",
    "PaperNormal",
    "RollingHeightMap",
    "Slope",
    "Stairs",
    "Terrain",
    "VectorFriction",
    "center_of_pressure",
    "coefficient_of_restitution",
    "paper_ground",
    "realistic_ground",
]
