"""Whole-body optimal control: trajectories of a robot with given contacts, with costs and constraints in Python.

    from legged import optimization as oc

    stand = oc.Stage(0.02, ["FL_foot", "FR_foot", "RL_foot", "RR_foot"], [oc.Cost(my_cost, weight=10.0)])
    solution = oc.solve(oc.Problem(robot, [stand] * 50, q=q))
    solution.q, solution.v, solution.u, solution.forces, solution.gain

docs/howto/optimal_control.md has examples.
"""

from legged.optimization import terms
from legged.optimization.dynamics import Contact
from legged.optimization.problem import Impact, Problem, Stage
from legged.optimization.solution import Log, Solution
from legged.optimization.solver import Solver, solve
from legged.optimization.terms import Constraint, Cost, Point, Term
from legged.optimization.tracking import Tracking

__all__ = [
    "Constraint",
    "Contact",
    "Cost",
    "Impact",
    "Log",
    "Point",
    "Problem",
    "Solution",
    "Solver",
    "Stage",
    "Term",
    "Tracking",
    "solve",
    "terms",
]
