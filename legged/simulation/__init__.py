"""Simulation: the closed loop, integrators, runs, plots and animations."""

from legged.simulation.closed_chains import loop_errors, loop_ranks
from legged.simulation.disturbance import Push
from legged.simulation.fall import Fall
from legged.simulation.fixed import RungeKutta4, SemiImplicitEuler, TimeStepping
from legged.simulation.rollout import rollout
from legged.simulation.rollouts import Rollouts
from legged.simulation.run import Run
from legged.simulation.simulate import simulate
from legged.simulation.stiff import Stiff

__all__ = [
    "Fall",
    "Push",
    "Rollouts",
    "Run",
    "RungeKutta4",
    "SemiImplicitEuler",
    "Stiff",
    "TimeStepping",
    "loop_errors",
    "loop_ranks",
    "rollout",
    "simulate",
]
