"""Files and functions that a call enters: `python -m benchmarks.studies.entered_files [--list]`.

Each call is made twice; the second one, with everything compiled, is observed by `sys.setprofile`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import controllers
import legged
import robots
from legged.ground import realistic_ground
from legged.table import Table

ROOT = Path(legged.__file__).parents[1]
PACKAGES = "legged", "controllers", "robots"
STEP = 1e-4  # [s]


def entered(call: Callable[[], Any]) -> dict[str, set[str]]:
    """Return the functions of this distribution that a call enters, by file.

    Args:
        call: The call.
    """
    functions = dict[str, set[str]]()

    def observe(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and Path(code.co_filename).is_relative_to(ROOT):
            path = Path(code.co_filename).relative_to(ROOT)
            if path.parts[0] in PACKAGES:
                functions.setdefault(str(path), set()).add(code.co_qualname)

    sys.setprofile(observe)
    try:
        call()
    finally:
        sys.setprofile(None)
    return functions


def calls() -> dict[str, Callable[[], Any]]:
    """Return the calls, whose kernels are compiled, by name."""
    robot = robots.spatial_quadruped()
    stand = controllers.Stand(hip_height=0.5)  # [m]
    law = controllers.JointPD(stand, kp=60.0, kd=2.0)
    (q, v), tau = stand.initial_state(robot), np.zeros(robot.nv)
    forward = legged.compile(legged.forward_dynamics, robot)
    grounds = {"compliant": realistic_ground(robot), "rigid": legged.Rigid()}
    steps = {"compliant": legged.SemiImplicitEuler(STEP), "rigid": legged.TimeStepping(STEP)}
    calls: dict[str, Callable[[], Any]] = {"forward dynamics": lambda: forward(q, v, tau)}
    for name, ground in grounds.items():
        sim = legged.Simulation(robot, law, ground=ground, q=q, integrator=steps[name])
        calls[f"step on {name} ground"] = sim.step
    options = {"ground": grounds["compliant"], "q": q, "integrator": steps["compliant"]}
    calls["simulate, two steps"] = lambda: legged.simulate(robot, law, until=2 * STEP, sample=STEP, **options)
    return calls


def main() -> None:
    """Print the table, with `--list` also the files."""
    rows = []
    for name, call in calls().items():
        call()
        files = entered(call)
        rows.append((name, str(len(files)), str(sum(map(len, files.values())))))
        if "--list" in sys.argv:
            print("\n".join(f"{len(functions):4} {path}" for path, functions in sorted(files.items())))
    print(Table("Files and functions entered by a call", ("call", "files", "functions"), tuple(rows)).text())


if __name__ == "__main__":
    main()
