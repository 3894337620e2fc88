"""How far the numbers can be trusted: against the dense theory, Pinocchio, the authors' output and energy.

The robots are seeded random trees of 1 to 40 links, every joint and base type, branching anywhere.
"""

import importlib
from collections.abc import Callable

import numpy as np

import controllers
import legged
import robots
from benchmarks.pinocchio_side import pinocchio
from benchmarks.record import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread
from legged import denoc
from legged.app.paper import report
from legged.ground import paper_ground
from legged.table import Table

KIND = "accuracy"
ROBOTS = 100
Comparison = Callable[[legged.Robot, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def pairs() -> dict[str, Comparison]:
    """Return what is compared: words -> function of (robot, q, v, x) that gives the two results."""
    compared: dict[str, Comparison] = {
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
        return compared
    pinocchio_twin, none = importlib.import_module("tests.oracles.pinocchio_model").pinocchio_twin, np.zeros(6)
    compared["forward dynamics against Pinocchio"] = lambda robot, q, v, tau: (
        legged.forward_dynamics(robot, q, v, tau),
        pinocchio_twin(robot).forward_dynamics(robot, q, v, tau, [none] * len(robot.links)),
    )
    return compared


def measure(record: Record, settings: Settings) -> list[Table]:
    """Add the largest disagreements to the record, and return them as a table."""
    found = [*random_robots(), *quadruped()]
    for words, unit, value in found:
        record.add((KIND, words), unit, Spread(value, value, value))
    return [Table("Accuracy: the largest disagreement", ("", ""), tuple((w, f"{x:.0e} {u}") for w, u, x in found))]


def random_robots() -> list[tuple[str, str, float]]:
    """Return the largest disagreement over random robots, comparison by comparison: words, unit, value."""
    worst = dict.fromkeys(pairs(), 0.0)
    for seed in range(ROBOTS):
        robot = legged.random_tree(seed)
        if not robot.nv:
            continue
        rng = np.random.default_rng(seed)
        q = legged.random_configuration(robot, rng)
        v, tau = rng.normal(size=(2, robot.nv))
        for words, compare in pairs().items():
            a, b = compare(robot, q, v, tau)
            worst[words] = max(worst[words], float(np.abs(a - b).max() / np.abs(b).max()))
    return [(f"{words}, {ROBOTS} random robots", "relative", error) for words, error in worst.items()]


def quadruped() -> list[tuple[str, str, float]]:
    """Return how far 2 s of the authors' quadruped are from their output, and how well energy is kept."""
    robot = robots.spatial_quadruped()
    law = controllers.ComputedTorque(controllers.authors_trot())
    run = legged.simulate(robot, law, ground=paper_ground(robot), until=2.0)
    place = turn = 0.0
    for t, row in report.QUADRUPED.items():
        i = run.at(t)
        place = max(place, float(np.abs(run.base_position[i] - row[:3]).max()))
        turn = max(turn, float(np.abs(run.base_angles("xyz")[i] - row[3:]).max()))
    return [
        ("trot of 2 s against the authors' output, position", "m", place),
        ("trot of 2 s against the authors' output, angles", "rad", turn),
        (f"the same run, drift of the energy sum of {run.energy_sum[0]:.0f} J", "J", run.energy_drift),
    ]
