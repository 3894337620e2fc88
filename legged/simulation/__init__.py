"""Simulation: the closed loop, integrators, runs and rollouts. `legged.simulation.plots` draws and animates runs."""

from legged.simulation.checks.fall import Fall
from legged.simulation.integrators import (
    LinearlyImplicitEuler,
    RungeKutta4,
    SemiImplicitEuler,
    TimeStepping,
)
from legged.simulation.loop.external_wrenches import ExternalWrench, Push
from legged.simulation.results.run import Run
from legged.simulation.results.summary import loop_errors, loop_ranks
from legged.simulation.rollouts import Rollouts, rollout
from legged.simulation.simulate import simulate
from legged.simulation.stepping import Contacts, Simulation, SimulationState
from legged.simulation.stepping.parameters import rollout_parameters
from legged.simulation.variable_step import BDF, Stiff

__all__ = [
    "BDF",
    "Contacts",
    "ExternalWrench",
    "Fall",
    "LinearlyImplicitEuler",
    "Push",
    "Rollouts",
    "Run",
    "RungeKutta4",
    "SemiImplicitEuler",
    "Simulation",
    "SimulationState",
    "Stiff",
    "TimeStepping",
    "loop_errors",
    "loop_ranks",
    "rollout",
    "rollout_parameters",
    "simulate",
]
