"""Identification: parameters of a robot, its motors and ground from logs, with intervals and what a log cannot tell.

`read` reads a `Log`, `Model` fits `Parameter`s to it, `excitation` plans one, `fit_inertias` solves the linear problem.
See docs/howto/identification.md.
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
