"""How far the numbers can be trusted: against the dense theory, Pinocchio, the authors' output and energy.

    python benchmarks/accuracy.py [--robots N]

The robots are seeded random trees of 1 to 40 links, every joint and base type, branching anywhere.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import controllers
import legged
import robots
from legged import denoc
from legged.ground import paper_ground
from legged.reports import paper_data
from legged.reports.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # the twins that the tests compare with

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
    try:
        from oracles.pinocchio_model import pinocchio_twin
    except ImportError:
        return compared
    none = np.zeros(6)
    compared["forward dynamics against Pinocchio"] = lambda robot, q, v, tau: (
        legged.forward_dynamics(robot, q, v, tau),
        pinocchio_twin(robot).forward_dynamics(robot, q, v, tau, [none] * len(robot.links)),
    )
    return compared


def random_rows(number: int) -> list[tuple[str, str]]:
    """Return the largest relative disagreement over random robots, comparison by comparison."""
    worst = dict.fromkeys(pairs(), 0.0)
    for seed in range(number):
        robot = legged.random_tree(seed)
        if not robot.nv:
            continue
        rng = np.random.default_rng(seed)
        q = legged.random_configuration(robot, rng)
        v, tau = rng.normal(size=(2, robot.nv))
        for words, compare in pairs().items():
            a, b = compare(robot, q, v, tau)
            worst[words] = max(worst[words], float(np.abs(a - b).max() / np.abs(b).max()))
    return [(f"{words}, {number} random robots", f"{error:.0e} relative") for words, error in worst.items()]


def quadruped_rows() -> list[tuple[str, str]]:
    """Return how far 2 s of the authors' quadruped are from their output, and how well energy is kept."""
    robot = robots.spatial_quadruped()
    law = controllers.ComputedTorque(controllers.authors_trot())
    run = legged.simulate(robot, law, ground=paper_ground(robot), until=2.0)
    place = turn = 0.0
    for t, row in paper_data.QUADRUPED.items():
        i = run.at(t)
        place = max(place, float(np.abs(run.base_position[i] - row[:3]).max()))
        turn = max(turn, float(np.abs(run.base_angles("xyz")[i] - row[3:]).max()))
    return [
        ("trot of 2 s against the authors' output, position", f"{1e3 * place:.3f} mm"),
        ("trot of 2 s against the authors' output, angles", f"{turn:.0e} rad"),
        ("the same run, drift of the energy sum", f"{run.energy_drift:.0e} J of {run.energy_sum[0]:.0f} J"),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure accuracy.")
    parser.add_argument("--robots", type=int, default=100, help="how many random robots")
    number = parser.parse_args().robots
    rows = tuple(random_rows(number) + quadruped_rows())
    print(Table("Accuracy: the largest disagreement", ("", ""), rows).text())


if __name__ == "__main__":
    main()
