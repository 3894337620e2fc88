"""Estimation of the state of legged robots from inertial measurements, joint encoders and contacts."""

from legged.estimation.filters import InvariantFilter, QuaternionFilter
from legged.estimation.instruments import Instruments
from legged.estimation.readings import Deviations, Reading
from legged.estimation.replay import Estimates, instrument_readings, run_estimator

__all__ = [
    "Deviations",
    "Estimates",
    "Instruments",
    "InvariantFilter",
    "QuaternionFilter",
    "Reading",
    "instrument_readings",
    "run_estimator",
]
