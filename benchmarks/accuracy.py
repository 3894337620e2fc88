"""Accuracy: largest deviations from dense theory, Pinocchio, the output of the paper's authors, and constant energy.

The robots are seeded random trees of 1 to 40 links with every type of joint and base.
"""

import importlib
from collections.abc import Callable

import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.record import Record
from benchmarks.harness.references import pinocchio
from benchmarks.harness.subjects import Settings
from benchmarks.harness.timing import Spread
from examples.studies.paper import report
from legged import denoc
from legged.ground import paper_ground
from legged.table import Table

KIND = "accuracy"
"""First part of the keys of these results in a record."""
ROBOTS = 100
"""Number of random robots."""
Comparison = Callable[[legged.Robot, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _comparisons() -> dict[str, Comparison]:
    """Return descriptions -> functions of (robot, q, v, x) that return the two results to compare."""
    comparisons: dict[str, Comparison] = {
        "recursive forward dynamics against dense": lambda robot, q, v, tau: (
            legged.forward_dynamics(robot, q, v, tau),
            denoc.forward_dynamics(robot, q, v, tau),
        ),
        "recursive inertia matrix against dense": lambda robot, q, v, tau: (
            legged.inertia_matrix(robot, q),
            denoc.generalized_inertia_matrix(robot, q),
        ),
        "inverse dynamics of forward dynamics against tau": lambda robot, q, v, tau: (
            legged.inverse_dynamics(robot, q, v, legged.forward_dynamics(robot, q, v, tau)),
            tau,
        ),
    }
    if not pinocchio():
        return comparisons
    pinocchio_twin, zero = importlib.import_module("tests.oracles.programs.pinocchio_model").pinocchio_twin, np.zeros(6)
    comparisons["forward dynamics against Pinocchio"] = lambda robot, q, v, tau: (
        legged.forward_dynamics(robot, q, v, tau),
        pinocchio_twin(robot).forward_dynamics(robot, q, v, tau, [zero] * len(robot.links)),
    )
    return comparisons


def measure_accuracy(record: Record, settings: Settings) -> list[Table]:
    """Add the largest deviations to the record, and return them as a table."""
    deviations = [*_random_robots(), *_quadruped()]
    for description, unit, value in deviations:
        record.add((KIND, description), unit, Spread(value, value, value))
    rows = tuple((description, f"{value:.0e} {unit}") for description, unit, value in deviations)
    return [Table("Accuracy: largest deviations", ("", ""), rows)]


def _random_robots() -> list[tuple[str, str, float]]:
    """Return the largest deviations over random robots: (description, unit, value) of each comparison."""
    comparisons = _comparisons()
    worst = dict.fromkeys(comparisons, 0.0)
    for seed in range(ROBOTS):
        robot = legged.random_tree(seed)
        if not robot.nv:
            continue
        rng = np.random.default_rng(seed)
        q = legged.random_configuration(robot, rng)
        v, tau = rng.normal(size=(2, robot.nv))
        for name, compare in comparisons.items():
            a, b = compare(robot, q, v, tau)
            worst[name] = max(worst[name], float(np.abs(a - b).max() / np.abs(b).max()))
    return [(f"{name}, {ROBOTS} random robots", "relative", error) for name, error in worst.items()]


def _quadruped() -> list[tuple[str, str, float]]:
    """Return the deviations of 2 s of the authors' quadruped from their output, and the drift of its energy."""
    robot = robots.spatial_quadruped()
    law = controllers.ComputedTorque(controllers.authors_trot())
    run = legged.simulate(robot, law, ground=paper_ground(robot), until=2.0)
    position = angles = 0.0
    for t, row in report.QUADRUPED.items():
        i = run.at(t)
        position = max(position, float(np.abs(run.base.position[i] - row[:3]).max()))
        angles = max(angles, float(np.abs(run.base.angles("xyz")[i] - row[3:]).max()))
    return [
        ("trot of 2 s against the authors' output, position", "m", position),
        ("trot of 2 s against the authors' output, angles", "rad", angles),
        (f"the same run, drift of the energy sum of {run.energy.balance[0]:.0f} J", "J", run.energy_drift),
    ]
