"""Operational-space dynamics of several end-effectors of a branched robot.

points = [("left_hand", palm), ("right_hand", palm)]
operational.by_propagators(robot, q, points)      # J M^-1 J^T, (12, 12), world axes; by_factors, by_operators too
operational.by_constraint_forces(robot, q, points)  # the same in logarithmic depth; by_division too
hands = operational.OperationalSpace(robot, q, points)
N = hands.null_space_projector                    # velocities that do not move the hands; sparse in branches
F = hands.inertia @ xdd + hands.bias(v)           # forces that accelerate the hands by xdd

`contact` and `contact_space` have frictionless contact of constrained bodies, and the decoupled subspaces of motion and
force of a robot in contact.
"""

from legged.algorithms.operational import halves
from legged.algorithms.operational.contact import (
    BodyResponse,
    ContactResponse,
    contact_freedoms,
    contact_normals,
    contact_projectors,
    contact_response,
    link_response,
)
from legged.algorithms.operational.contact_space import ContactSpace, LinkContact, vertex_on_face
from legged.algorithms.operational.halves import by_halves
from legged.algorithms.operational.propagators import by_constraint_forces, by_division, by_propagators
from legged.algorithms.operational.space import (
    OperationalSpace,
    TaskSpace,
    by_factors,
    by_operators,
    weighted_pseudoinverse,
    whitened_jacobian,
)

__all__ = [
    "BodyResponse",
    "ContactResponse",
    "ContactSpace",
    "LinkContact",
    "OperationalSpace",
    "TaskSpace",
    "by_constraint_forces",
    "by_division",
    "by_factors",
    "by_halves",
    "by_operators",
    "by_propagators",
    "contact_freedoms",
    "contact_normals",
    "contact_projectors",
    "contact_response",
    "halves",
    "link_response",
    "vertex_on_face",
    "weighted_pseudoinverse",
    "whitened_jacobian",
]
