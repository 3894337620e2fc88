"""Derivatives of time steps on rigid ground: Jacobians, sensitivities, adjoints, smoothed gradients, limit cycles."""

from legged.differentiation.cycles import LimitCycle, PeriodicRegulator, limit_cycle, periodic_lqr
from legged.differentiation.rollout import MODES, DifferentiableRollout, Gradient, StepJacobians
from legged.differentiation.simulation import DifferentiableSimulation
from legged.differentiation.smoothing import SmoothedGradient, smoothed_gradient

__all__ = [
    "MODES",
    "DifferentiableRollout",
    "DifferentiableSimulation",
    "Gradient",
    "LimitCycle",
    "PeriodicRegulator",
    "SmoothedGradient",
    "StepJacobians",
    "limit_cycle",
    "periodic_lqr",
    "smoothed_gradient",
]
