"""Identification: parameters of a robot, its motors and ground from logs, with confidence intervals.

`read` reads a `Log` and `Model` fits `Parameter`s to it; `excitation` plans an experiment, and `Model.plan` finds the
parameters that it determines. `fit_inertias` solves the linear problem of the inertial parameters. See
docs/howto/identification.md.
"""

from legged.identification.excitation import Excitation, excitation
from legged.identification.fit import Fit, Model
from legged.identification.identifiability import Direction, Identifiability
from legged.identification.linear import BaseParameters, LinearFit, base_parameters, fit_inertias
from legged.identification.log import Log
from legged.identification.parameter import Motors, Parameter, inertia_of, pseudo_inertia
from legged.identification.read import read

__all__ = [
    "BaseParameters",
    "Direction",
    "Excitation",
    "Fit",
    "Identifiability",
    "LinearFit",
    "Log",
    "Model",
    "Motors",
    "Parameter",
    "base_parameters",
    "excitation",
    "fit_inertias",
    "inertia_of",
    "pseudo_inertia",
    "read",
]
