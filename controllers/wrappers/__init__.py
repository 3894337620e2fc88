"""Wrappers that make the loop of any control law realistic: sensors, delay, actuators, an inexact model, closed loops."""

from controllers.wrappers.imperfections import ActuatorLag, ActuatorLimits, SensorNoise
from controllers.wrappers.serial import OnSerialEquivalent
from controllers.wrappers.switched_law import SwitchedLaw
from controllers.wrappers.wrapper import Delay, NominalModel, Wrapper

__all__ = [
    "ActuatorLag",
    "ActuatorLimits",
    "Delay",
    "NominalModel",
    "OnSerialEquivalent",
    "SensorNoise",
    "SwitchedLaw",
    "Wrapper",
]
