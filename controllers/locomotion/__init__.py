"""Locomotion by a commanded velocity: predictive control of the body, whole-body control, schedules and footsteps."""

from controllers.locomotion.friction_cone import project_to_cone
from controllers.locomotion.locomotion import Locomotion
from controllers.locomotion.predictive import Plan, nominal_wrenches, predictive_control
from controllers.locomotion.rigid_body import Problem, Weights, suited_weights
from controllers.locomotion.schedule import ContactSchedule, contact_schedule
from controllers.locomotion.velocity_command import Command

__all__ = [
    "Command",
    "ContactSchedule",
    "Locomotion",
    "Plan",
    "Problem",
    "Weights",
    "contact_schedule",
    "nominal_wrenches",
    "predictive_control",
    "project_to_cone",
    "suited_weights",
]
