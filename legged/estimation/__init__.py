"""Estimation of the state of legged robots from inertial measurements, joint encoders and contacts."""

from legged.estimation.elevation_map import ElevationMap
from legged.estimation.filters import InvariantFilter, QuaternionFilter
from legged.estimation.instruments import Instruments
from legged.estimation.linear_filter import LinearFilter
from legged.estimation.momentum_observer import TorqueContacts
from legged.estimation.readings import Deviations, Reading
from legged.estimation.replay import Estimates, instrument_readings, run_estimator

__all__ = [
    "Deviations",
    "ElevationMap",
    "Estimates",
    "Instruments",
    "InvariantFilter",
    "LinearFilter",
    "QuaternionFilter",
    "Reading",
    "TorqueContacts",
    "instrument_readings",
    "run_estimator",
]
