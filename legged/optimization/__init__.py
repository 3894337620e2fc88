"""Whole-body optimal control: trajectories for a given sequence of contacts, with costs and constraints in Python.

A `Problem` is a sequence of stages and impacts with contacts and terms; `solve` returns its `Solution`, and `Tracking`
executes it in simulation. docs/howto/optimal_control.md has examples.
"""

from legged.optimization import terms
from legged.optimization.equations.dynamics import Contact, feet
from legged.optimization.execution.regulator import regulated
from legged.optimization.execution.tracking import Tracking
from legged.optimization.iterative_lqr import IterativeLQR, PlanThroughContact
from legged.optimization.problem import Impact, Problem, Stage
from legged.optimization.sampling import Sampling
from legged.optimization.solution import Iterations, Solution
from legged.optimization.solver import Solver, solve
from legged.optimization.terms import Constraint, Cost, Point, Term

__all__ = [
    "Constraint",
    "Contact",
    "Cost",
    "Impact",
    "Iterations",
    "IterativeLQR",
    "PlanThroughContact",
    "Point",
    "Problem",
    "Sampling",
    "Solution",
    "Solver",
    "Stage",
    "Term",
    "Tracking",
    "feet",
    "regulated",
    "solve",
    "terms",
]
