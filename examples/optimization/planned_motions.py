"""Motions of Go2 and G1 planned by optimal control, executed under disturbances, and in MuJoCo.

Run `python -m examples.optimization.planned_motions FOLDER MOTION`, where MOTION is `onto` (a jump onto a block of
0.3 m), `over` (a jump over one), `turn` (a jump with a turn by 90 degrees), `backflip`, `stand` (from lying), `gap` (a
trot over a gap of half of the height of the hips) or `gaits` (trot, bound, trot) of Go2, or `jump`, forward by 0.2 m,
or `squat` (sitting down to a deep squat and standing up) of G1. It prints how many of 20 simulations with errors of
masses, friction and states, and with pushes, succeed, and writes a page with the replay, FOLDER/MOTION.html. Seeds of
the random errors can follow, such as `FOLDER MOTION 0 1`; for each, 20 simulations are made. The robots are those of
example-robot-data, with torque-speed curves of their motors.
"""

import sys
from pathlib import Path

import numpy as np

import legged
from examples.optimization.motions import blocks, humanoid, quadruped
from examples.optimization.motions.execution import Execution, described
from examples.optimization.motions.planning import Plan, PlannedRobot
from legged import optimization as oc

TRIALS = 20


def planned_problem(name: str) -> tuple[PlannedRobot, Plan]:
    """Return a robot and the problem of a motion."""
    if name in humanoid.MOTIONS:
        robot = humanoid.G1()
        return robot, humanoid.MOTIONS[name](robot)
    dog = quadruped.Go2()
    return dog, (quadruped.MOTIONS | blocks.MOTIONS)[name](dog)


def planned(name: str, tolerance: float = 1e-4) -> Execution:
    """Return the execution of a planned motion."""
    subject, plan = planned_problem(name)
    solution = oc.solve(plan.problem, q=plan.q, v=plan.v, iterations=400, tolerance=tolerance)
    return Execution(subject, plan, solution)


def main(folder: str = ".", name: str = "backflip", *seeds: str) -> legged.Run:
    """Plan and execute a motion, and return the run; the page of the replay is written to a folder."""
    execution = planned(name)
    solution = execution.solution
    print(f"{solution}; peak torque {np.abs(solution.u).max():.1f} N m, durations {solution.duration_factors}")
    print(f"planned end:   {described(solution.q[-1])}")
    run = execution.run()
    success = {True: "success", False: "failure"}
    print(f"in simulation: {described(run.q[-1])}: {success[execution.succeeds(run.q)]}", flush=True)
    run.save_html(Path(folder) / f"{name}.html")
    try:
        motion = execution.in_mujoco()
        print(f"in MuJoCo:     {described(motion[-1])}: {success[execution.succeeds(motion)]}", flush=True)
    except ImportError:
        print("MuJoCo is not installed: pip install 'legged[mujoco]'")
    for seed in seeds or ("0",):
        succeeded = execution.trials(TRIALS, int(seed)).sum()
        print(f"disturbed, seed {seed}: {succeeded} of {TRIALS} simulations succeed", flush=True)
    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
