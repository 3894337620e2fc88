"""Dense theory of decoupled natural orthogonal complement (DeNOC) matrices, in world axes, with every matrix formed.

It follows the equations of Shah, Saha, Dutt 2012. Its blocks are the operators of the modules in
`legged.dynamics.modules`, evaluated as matrices.
"""

from legged.denoc.equations import (
    ArticulatedModule,
    angular_velocity_matrix,
    articulated_modules,
    bias_forces,
    complement,
    complement_rate,
    convective_inertia_matrix,
    coupling_matrix,
    denoc_matrices,
    external_forces,
    floating_inverse_dynamics,
    generalized_inertia_matrix,
    generalized_inertia_solution,
    gravity_forces,
    inverse_dynamics,
    mass_matrix,
    module_joint_rate_propagation,
    module_twist_propagation,
    module_twists,
    udu,
)
from legged.denoc.equations import generalized_inertia_solution as forward_dynamics
from legged.denoc.factors import composite_modules, conditioning, generalized_inertia_closed_form
from legged.denoc.inverse import ConditionReport, ModuleCondition, ModuleInverse, condition_report, module_inverse
from legged.denoc.kinematics import gamma, link_motion_propagation, link_twist_propagation, twist_propagation, xi

__all__ = [
    "ArticulatedModule",
    "ConditionReport",
    "ModuleCondition",
    "ModuleInverse",
    "angular_velocity_matrix",
    "articulated_modules",
    "bias_forces",
    "complement",
    "complement_rate",
    "composite_modules",
    "condition_report",
    "conditioning",
    "convective_inertia_matrix",
    "coupling_matrix",
    "denoc_matrices",
    "external_forces",
    "floating_inverse_dynamics",
    "forward_dynamics",
    "gamma",
    "generalized_inertia_closed_form",
    "generalized_inertia_matrix",
    "generalized_inertia_solution",
    "gravity_forces",
    "inverse_dynamics",
    "link_motion_propagation",
    "link_twist_propagation",
    "mass_matrix",
    "module_inverse",
    "module_joint_rate_propagation",
    "module_twist_propagation",
    "module_twists",
    "twist_propagation",
    "udu",
    "xi",
]
