"""Table 2 of the paper, second half: time to simulate one second, O(n) against O(n^3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controllers import Gait
from controllers.law import GaitLaw
from legged.app.timing import PAPER_SIMULATION, cubic_forward_dynamics, race, ratio
from legged.ground import Ground
from legged.robot.robot import Robot
from legged.simulation import Stiff
from legged.simulation.chart import chart_rate
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.controller import adapt
from legged.simulation.engine import COMPILED, Engine
from legged.simulation.system import segments
from legged.table import Table


@dataclass(frozen=True, eq=False)
class CubicLoop(ClosedLoop):
    """The same closed loop with the O(n^3) route in place of the recursion."""

    def motion_rate(self, xi, q, v, tau, wrenches):
        vdot = cubic_forward_dynamics(self.robot, q, v, tau, wrenches)
        return np.concatenate([chart_rate(self.robot, xi, v), vdot])


def simulation_times(robot: Robot, law: GaitLaw, ground: Ground, rounds: int = 5) -> tuple[float, float]:
    """Return the times, [s], to simulate one second: (O(n^3), O(n)); the best of some rounds, taken in turns."""
    cubic, linear = race([_second(loop, robot, law, ground) for loop in (CubicLoop, ClosedLoop)], rounds)
    return cubic, linear


def _second(kind: type[ClosedLoop], robot: Robot, law: GaitLaw, ground: Ground):
    """Return a function that simulates one second, compiled and called once."""
    q, v = law.initial_state(robot)
    adapted, memory = adapt(law).start(robot, ground, q, v)
    loop = kind(robot, adapted, ground, len(memory))
    s, engine, times = loop.initial(v, memory), Engine(loop, True, COMPILED), np.linspace(0.0, 1.0, 101)
    return lambda: list(Stiff().march(engine, q, s, segments(times, [], [])))


def simulation_table(cases: Sequence[tuple[Robot, Gait, Ground]], laws: dict[str, type[GaitLaw]]) -> Table:
    """Return Table 2, second half: robots with their gaits and grounds under the given control laws."""
    rows = []
    for robot, gait, ground in cases:
        for name, law in laws.items():
            cubic, linear = simulation_times(robot, law(gait), ground)
            paper = PAPER_SIMULATION.get((robot.name, name))
            words = ratio(*paper) if paper else "-"
            rows.append((f"{robot.name}, {name}", ratio(cubic, linear), words, f"{1e3 * linear:.0f}"))
    notes = (
        "Whole loops compiled: robot, ground, controller; the controller's inverse dynamics is the recursion in both.",
        "Most of the time is the solver's own (SciPy's BDF), which does not depend on the route.",
    )
    header = ("robot and controller", "here", "paper", "O(n) here [ms]")
    return Table("Table 2: time to simulate 1 s, O(n^3) over O(n)", header, tuple(rows), notes)
