"""Operational space: what a robot's ends feel like, for several ends of a branched tree.

points = [("left_hand", palm), ("right_hand", palm)]
operational.by_propagators(robot, q, points)      # J M^-1 J^T, (12, 12), world axes; by_factors, by_operators too
hands = operational.OperationalSpace(robot, q, points)
F = hands.inertia @ xdd + hands.bias(v)           # forces that make the hands accelerate
"""

from legged.algorithms.operational.inverse_inertia import by_factors, by_operators
from legged.algorithms.operational.propagators import by_propagators
from legged.algorithms.operational.space import OperationalSpace

__all__ = ["OperationalSpace", "by_factors", "by_operators", "by_propagators"]
