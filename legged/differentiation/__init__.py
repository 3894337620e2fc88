"""Derivatives of time steps on rigid ground: Jacobians, sensitivities, adjoints, smoothed gradients, limit cycles."""

from legged.differentiation.rollout import MODES, DifferentiableRollout, Gradient, StepJacobians
from legged.differentiation.simulation import DifferentiableSimulation

__all__ = ["MODES", "DifferentiableRollout", "DifferentiableSimulation", "Gradient", "StepJacobians"]
