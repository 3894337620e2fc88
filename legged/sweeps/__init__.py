"""Studies of many trials: samples, simulations with metrics, resumable sweeps, optimization, sensitivity, results."""

from legged.sweeps.metrics import (
    STANDARD,
    Metric,
    cost_of_transport,
    distance,
    duration,
    of_rollouts,
    of_run,
    over_time,
    peak_torque,
    success,
)
from legged.sweeps.optimize import Optimum, optimize, pareto
from legged.sweeps.results import (
    SuccessMap,
    parallel_coordinates,
    pareto_figure,
    save_page,
    sensitivity,
    sensitivity_figure,
    success_interval,
    success_map,
)
from legged.sweeps.samples import Choice, Samples, grid, latin_hypercube, morris_design, random, sobol, sobol_design
from legged.sweeps.setup import Setup
from legged.sweeps.store import Study
from legged.sweeps.sweep import Cost, Sweep, sweep

__all__ = [
    "STANDARD",
    "Choice",
    "Cost",
    "Metric",
    "Optimum",
    "Samples",
    "Setup",
    "Study",
    "SuccessMap",
    "Sweep",
    "cost_of_transport",
    "distance",
    "duration",
    "grid",
    "latin_hypercube",
    "morris_design",
    "of_rollouts",
    "of_run",
    "optimize",
    "over_time",
    "parallel_coordinates",
    "pareto",
    "pareto_figure",
    "peak_torque",
    "random",
    "save_page",
    "sensitivity",
    "sensitivity_figure",
    "sobol",
    "sobol_design",
    "success",
    "success_interval",
    "success_map",
    "sweep",
]
