"""Locomotion by a commanded velocity: predictive control of the body, whole-body control, schedules and footsteps."""

from controllers.locomotion.forces.friction_cone import project_to_cone
from controllers.locomotion.forces.predictive import Plan, predictive_control
from controllers.locomotion.forces.rigid_body import Problem, Weights, suited_weights
from controllers.locomotion.gait.schedule import ContactSchedule, contact_schedule
from controllers.locomotion.locomotion import Locomotion
from controllers.locomotion.torques.tasks import (
    Point,
    Task,
    Tracking,
    WholeBodyModel,
    angular_momentum,
    average_angular_velocity,
    center_of_mass_position,
    link_orientation,
    link_pose,
    point_position,
    posture,
)
from controllers.locomotion.torques.whole_body import Contact, JointLimits, Result, whole_body
from controllers.locomotion.velocity_command import Command

__all__ = [
    "Command",
    "Contact",
    "ContactSchedule",
    "JointLimits",
    "Locomotion",
    "Plan",
    "Point",
    "Problem",
    "Result",
    "Task",
    "Tracking",
    "Weights",
    "WholeBodyModel",
    "angular_momentum",
    "average_angular_velocity",
    "center_of_mass_position",
    "contact_schedule",
    "link_orientation",
    "link_pose",
    "point_position",
    "posture",
    "predictive_control",
    "project_to_cone",
    "suited_weights",
    "whole_body",
]
