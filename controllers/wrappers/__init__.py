"""Wrappers of any control law: sensors, delay, actuators, an inexact model, switching, robots with closed loops."""

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
