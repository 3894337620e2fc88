"""Locomotion by a commanded velocity: predictive control of the body, whole-body control, schedules and footsteps."""

from controllers.locomotion.friction_cone import project_to_cone
from controllers.locomotion.predictive import Plan, nominal_wrenches, predictive_control
from controllers.locomotion.rigid_body import Problem, Weights, suited_weights

__all__ = [
    "Plan",
    "Problem",
    "Weights",
    "nominal_wrenches",
    "predictive_control",
    "project_to_cone",
    "suited_weights",
]
