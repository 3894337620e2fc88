"""How long the dynamics take: plain NumPy, compiled, and Pinocchio if it is installed, in turns in one run.

    python benchmarks/dynamics.py [--rounds N]

Times are of the processor, for one state, best of the rounds; ratios travel between computers better than times do.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import legged
import robots
from legged.reports.table import Table
from legged.reports.timing import race, states

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # the twins that the tests compare with
FUNCTIONS = (legged.inverse_dynamics, legged.forward_dynamics, legged.inertia_matrix)
BATCH = 1024


def subjects() -> list[legged.Robot]:
    """Return the robots to time."""
    return [robots.planar_biped(), robots.spatial_quadruped(), robots.hexapod(), robots.chain(30, twist=0.7)]


def table(rounds: int) -> Table:
    """Return the times of every function on every robot."""
    rows = []
    for robot in subjects():
        for function in FUNCTIONS:
            rows.append((f"{robot.name}, {function.__name__}", *row(robot, function, rounds)))
    header = ("", "plain [us]", "compiled, one state", "compiled, batch", "Pinocchio from Python", "plain / compiled")
    notes = (
        f"Batch: {BATCH} states in one call, one thread, time for one of them. One state includes the call from",
        "Python, and so does Pinocchio, whose model is built link by link from the same definition.",
    )
    return Table("Time for one state, [us]", header, tuple(rows), notes)


def row(robot: legged.Robot, function: Callable[..., Any], rounds: int) -> list[str]:
    """Return the times of one function on one robot in words."""
    every = states(robot, BATCH)[: 1 if function is legged.inertia_matrix else 3]
    one = [array[0] for array in every]
    kernel = legged.compile(function, robot)
    ways: list[Callable[[], Any]] = [
        lambda: function(robot, *one),
        lambda: kernel(*one),
        lambda: kernel(*every, threads=1),
    ]
    other = pinocchio_way(robot, function.__name__, one)
    times = race(ways + ([other] if other else []), rounds)
    micro = [1e6 * t for t in times]
    micro[2] /= BATCH
    words = [f"{t:.3g}" for t in micro] if other else [*(f"{t:.3g}" for t in micro), "-"]
    return [*words, f"{times[0] / times[1]:.0f}"]


def pinocchio_way(robot: legged.Robot, name: str, one: list[Any]) -> Callable[[], Any] | None:
    """Return the same computation by Pinocchio, None if it is not installed."""
    try:
        import pinocchio as pin
        from oracles.pinocchio_model import pinocchio_twin
    except ImportError:
        return None
    twin = pinocchio_twin(robot)
    model, data = twin.model, twin.data
    if name == "inertia_matrix":
        q = twin.q(one[0])
        return lambda: pin.crba(model, data, q)
    q, v, last = twin.q(one[0]), twin.v(one[1]), twin.v(one[2])
    algorithm = pin.rnea if name == "inverse_dynamics" else pin.aba
    return lambda: algorithm(model, data, q, v, last)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time the dynamics.")
    parser.add_argument("--rounds", type=int, default=7, help="how often every way is timed; the best counts")
    print(table(parser.parse_args().rounds).text())


if __name__ == "__main__":
    main()
