"""Sampling over batches, and a jump beside the regulator: `python -m benchmarks.optimization.sampling`.

The first table has the processor time of one improvement of a plan of Go2 by sampling: N simulations on rigid ground
over a horizon. The second solves one task, a jump of a planar robot without given contacts, by sampling and by the
iterative linear-quadratic regulator, from the same start and with the same costs.
"""

from __future__ import annotations

import time
from importlib.metadata import files
from typing import Any

import numpy as np

import legged
import robots
from legged import optimization as oc
from legged.differentiation import DifferentiableSimulation

COUNTS, HORIZON, STEP = (256, 1024, 4096), 0.2, 0.01  # simulations, [s], [s]
TASK_STEP, TASK_STEPS = 0.01, 45  # of the jump, [s]


def rollouts_of_go2(count: int) -> tuple[float, float]:
    """Return the processor time of an improvement, [s], and that of one time step of one robot, [s]."""
    path = next(str(f.locate()) for f in files("example-robot-data") or () if f.name == "go2.urdf")
    robot = legged.load(path)
    q = np.concatenate([[1.0, 0.0, 0.0, 0.0], np.zeros(3), [0.0, 0.8, -1.5] * 4])
    q[6] = -min(legged.frame_pose(robot, q, foot.frame).position[2] for foot in oc.feet(robot))
    simulation = legged.Simulation(
        robot, ground=legged.Rigid(friction=0.7), integrator=legged.TimeStepping(STEP), num=count, fall=False, q=q
    )
    rest = oc.Cost(oc.terms.state, 1.0, q=q, v=np.zeros(robot.nv))
    plan = oc.Sampling(
        simulation, [rest], horizon=HORIZON, command=np.zeros(robot.nj), noise=5.0, interval=STEP, method="predictive"
    )
    v = np.zeros(robot.nv)
    plan.improve(q, v)
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        plan.improve(q, v)
        best = min(best, time.process_time() - start)
    return best, best / (count * round(HORIZON / STEP))


class Jump:
    """A jump of the planar hopper: its center of mass is to be at 0.75 m after 0.45 s."""

    def __init__(self) -> None:
        self.robot = robots.planar_hopper()
        self.hold = np.array([0.0, -self.robot.mass * 9.81])  # [N m], [N], carries the weight at rest
        self.q, self.v = np.array([0.0, 0.0, 0.6, 0.0, 0.0]), np.zeros(5)
        self.stage = [oc.Cost(oc.terms.control, 1e-4, reference=self.hold), oc.Cost(oc.terms.velocity, 1e-2)]
        self.weights, self.top = np.array([10.0, 0.0, 200.0]), np.array([0.0, 0.0, 0.75])  # of the final position
        self.bounds: dict[str, Any] = {"lower": np.array([-50.0, -300.0]), "upper": np.array([50.0, 300.0])}
        self.ground, self.integrator = legged.Rigid(friction=0.8), legged.TimeStepping(TASK_STEP)
        simulation = DifferentiableSimulation(self.robot, ground=self.ground, integrator=self.integrator)
        final = [oc.Cost(oc.terms.center_of_mass, self.weights, position=self.top)]
        spread: dict[str, Any] = {"spread": [1.0, 10.0], "samples": 8}
        self.regulator = oc.IterativeLQR(simulation, self.stage, final, **self.bounds, **spread)

    def cost(self, commands: np.ndarray) -> float:
        """Return the cost of commands, (T, nu), [N m] and [N], of the time steps."""
        return self.regulator.solve(commands, q=self.q, v=self.v, iterations=1).costs[0]

    def by_regulator(self) -> tuple[float, float]:
        """Return the cost of the plan and the processor time, [s]."""
        commands = np.tile(self.hold, (TASK_STEPS, 1))
        self.regulator.solve(commands, q=self.q, v=self.v, iterations=1)
        start = time.process_time()
        solution = self.regulator.solve(commands, q=self.q, v=self.v, iterations=20)
        return solution.cost, time.process_time() - start

    def by_sampling(self, method: str, count: int, iterations: int) -> tuple[float, float]:
        """Return the cost of the plan and the processor time, [s]."""

        def final_position_error(robot: Any, at: oc.Point, position: Any) -> Any:
            # a sampler has running costs only: that of the last step is the final cost
            is_last = legged.where(at.t > (TASK_STEPS - 0.5) * TASK_STEP, 1.0, 0.0)
            return is_last * (legged.center_of_mass(robot, at.q) - position)

        simulation = legged.Simulation(
            self.robot, ground=self.ground, integrator=self.integrator, num=count, fall=False, q=self.q
        )
        terms = [*self.stage, oc.Cost(final_position_error, self.weights / TASK_STEP, position=self.top)]
        plan = oc.Sampling(
            simulation,
            terms,
            horizon=TASK_STEPS * TASK_STEP,
            command=self.hold,
            noise=[2.0, 60.0],
            knots=10,
            interval=TASK_STEP,
            method=method,
            **self.bounds,
        )
        start = time.process_time()
        plan.improve(self.q, self.v, iterations=iterations)
        spent = time.process_time() - start
        return self.cost(plan.commands), spent


def main() -> None:
    """Print both tables."""
    print(f"| simulations of Go2, {HORIZON:g} s | improvement [ms] | step of a robot [us] |\n| ---: | ---: | ---: |")
    for count in COUNTS:
        whole, step = rollouts_of_go2(count)
        print(f"| {count} | {1e3 * whole:.0f} | {1e6 * step:.2f} |", flush=True)
    jump = Jump()
    start = jump.cost(np.tile(jump.hold, (TASK_STEPS, 1)))
    print(f"\n| a jump, cost {start:.3g} at the start | cost | processor time [s] |\n| --- | ---: | ---: |")
    rows = [("iterative LQR, 20 iterations", jump.by_regulator())]
    for method in ("path integral", "predictive"):
        rows.append((f"{method}, 20 times 256 samples", jump.by_sampling(method, 256, 20)))
    for name, (cost, spent) in rows:
        print(f"| {name} | {cost:.3g} | {spent:.2f} |")


if __name__ == "__main__":
    main()
