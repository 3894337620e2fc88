"""Identification: parameters of a robot, its motors and ground from logs, with intervals and what a log cannot tell.

    log = identification.read("walk.npz")
    model = identification.Model(robot, {"robot.*.damping": identification.Parameter(0.1, 0.0, 2.0)})
    fit = model.fit(log)

See docs/howto/identification.md.
"""

from legged.identification.fit import Fit, Model
from legged.identification.identifiability import Direction, Identifiability
from legged.identification.log import Log
from legged.identification.parameter import Motors, Parameter

__all__ = ["Direction", "Fit", "Identifiability", "Log", "Model", "Motors", "Parameter"]
