"""Crocoddyl's gait problems: python crocoddyl_problems.py NAME FILE solves one and writes problem, optimum and times.

It runs in an environment of its own, since crocoddyl 3.2.1 needs pin 4.0.0 and libpinocchio 4.0.0:
`pip install crocoddyl==3.2.1 pin==4.0.0 libpinocchio==4.0.0 example-robot-data`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import crocoddyl  # type: ignore[import-not-found]
import example_robot_data  # type: ignore[import-not-found]
import numpy as np
from crocoddyl.utils.biped import SimpleBipedGaitProblem  # type: ignore[import-not-found]
from crocoddyl.utils.quadruped import SimpleQuadrupedalGaitProblem  # type: ignore[import-not-found]

FEET = {
    "go2": ["FL_foot", "FR_foot", "RL_foot", "RR_foot"],
    "hyq": ["lf_foot", "rf_foot", "lh_foot", "rh_foot"],
}


def problem_of(name: str, model: Any, x0: np.ndarray) -> Any:
    """Return the trot of a quadruped, 57 nodes, or the walk of the legs of Talos."""
    if name == "talos_legs":
        soles = "right_sole_link", "left_sole_link"
        return SimpleBipedGaitProblem(model, *soles).createWalkingProblem(x0, 0.6, 0.1, 0.03, 35, 10)
    return SimpleQuadrupedalGaitProblem(model, *FEET[name]).createTrottingProblem(x0, 0.15, 0.1, 1e-2, 25, 2)


def described(node: Any) -> dict[str, Any]:
    """Return contacts, duration and costs of a node."""
    if hasattr(node, "differential"):
        contacts = node.differential.contacts.contacts.todict()
        phase: dict[str, Any] = {"contacts": [name.removesuffix("_contact") for name in contacts], "duration": node.dt}
        phase["gains"] = [item.contact.gains[1] for item in contacts.values()]
        costs = node.differential.costs.costs.todict()
    else:
        impulses = node.impulses.impulses.todict()
        phase = {"impulses": [name.removesuffix("_impulse") for name in impulses]}
        costs = node.costs.costs.todict()
    phase["costs"] = {}
    for name, item in costs.items():
        residual, activation = item.cost.residual, item.cost.activation
        cost: dict[str, Any] = {"weight": item.weight}
        reference = residual.reference
        if isinstance(reference, np.ndarray):
            cost["reference"] = reference.tolist()
        elif hasattr(reference, "rotation"):
            cost["reference"] = np.array(reference.translation).tolist()
            cost["rotation"] = np.array(reference.rotation).tolist()
        elif hasattr(reference, "A"):
            cost["matrix"] = np.array(reference.A).tolist()
        if hasattr(activation, "weights"):
            cost["weights"] = np.array(activation.weights).tolist()
        if hasattr(activation, "bounds"):
            cost["lower"] = np.array(activation.bounds.lb).tolist()
            cost["upper"] = np.array(activation.bounds.ub).tolist()
        phase["costs"][name] = cost
    return phase


def best_of(function: Any, repeats: int = 20) -> float:
    """Return the shortest processor time of a call, [s]."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def main(name: str, file: str) -> None:
    """Solve a problem, and write it."""
    robot = example_robot_data.load(name)
    model = robot.model
    poses = model.referenceConfigurations
    q0 = poses["standing" if name in FEET else "half_sitting"].copy()
    x0 = np.concatenate([q0, np.zeros(model.nv)])
    problem = problem_of(name, model, x0)
    problem.nthreads = 1
    xs = [x0] * (problem.T + 1)
    us = problem.quasiStatic([x0] * problem.T)
    nodes = [described(node) for node in [*problem.runningModels, problem.terminalModel]]
    solver = crocoddyl.SolverFDDP(problem)
    solver.th_stop = 1e-12
    solver.solve(xs, us, 200, False, 1e-9)
    result = {"iterations": solver.iter, "cost": solver.cost, "xs": [np.array(x).tolist() for x in solver.xs]}
    optimum = [np.array(u).tolist() for u in solver.us]
    times = {
        "calc": best_of(lambda: problem.calc(solver.xs, solver.us)),
        "calcDiff": best_of(lambda: problem.calcDiff(solver.xs, solver.us)),
    }

    def five() -> None:
        again = crocoddyl.SolverFDDP(problem)
        again.th_stop = 1e-12
        again.solve(xs, us, 5, False, 1e-9)

    times["iteration"] = best_of(five) / 5
    record = {
        "urdf": robot.urdf,
        "joints": list(model.names)[2:],
        "armature": np.array(model.armature[6:]).tolist(),
        "nodes": nodes,
        "q0": q0.tolist(),
        "us": [np.array(u).tolist() for u in us],
        "optimal controls": optimum,
        "times": {key: value / (problem.T + 1) for key, value in times.items()},
        **result,
    }
    with open(file, "w", encoding="utf-8") as out:
        json.dump(record, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
