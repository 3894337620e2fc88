"""Files and functions that a call enters: `python -m benchmarks.studies.entered_files [--list]`.

Each call is made twice; the second one, with everything compiled, is observed by `sys.setprofile`.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import controllers
import legged
import robots
from legged.ground import realistic_ground
from legged.table import Table

ROOT = Path(legged.__file__).parents[1]
PACKAGES = "legged", "controllers", "robots"
STEP = 1e-4  # [s]
START, TRACE = "start", "trace"
STAGES = {
    "select_backend": "comparison",
    "Stepper.prepare": "comparison",
    "trace": TRACE,
    "_traced": TRACE,
    "Stepper.run": "time steps",
    "record_run": "record",
    "motion_warnings": "record",
}
"""Function -> stage of a `simulate` that begins with it, and lasts as long; the rest is the start."""


class Walk(NamedTuple):
    """The functions that a call enters, in the order of their first calls.

    Attributes:
        functions: (file, qualified name) of each function.
    """

    functions: list[tuple[str, str]]

    @property
    def files(self) -> list[str]:
        """The files, in the order of their first functions."""
        return list(dict.fromkeys(file for file, _ in self.functions))

    @property
    def returns(self) -> int:
        """How often a reader in the order of first calls goes back to a file that was left before."""
        known, last, count = set[str](), "", 0
        for file, _ in self.functions:
            count += file != last and file in known
            known.add(file)
            last = file
        return count

    def under(self, package: str) -> Walk:
        """Return the part of the walk in the files of a package.

        Args:
            package: Its folder, such as "legged/files".
        """
        return Walk([pair for pair in self.functions if pair[0].startswith(f"{package}/")])


def entered(call: Callable[[], Any]) -> Walk:
    """Return the functions of this distribution that a call enters, without lambda functions and comprehensions.

    Args:
        call: The call.
    """
    return Walk(list(dict.fromkeys(pair for _, pair in _observed(call))))


def entered_by_stage(call: Callable[[], Any]) -> dict[str, Walk]:
    """Return the functions that a `simulate` enters in each of its stages, see `STAGES`.

    Args:
        call: The call.
    """
    functions = defaultdict[str, list[tuple[str, str]]](list)
    for stage, pair in _observed(call):
        functions[stage].append(pair)
    return {stage: Walk(own) for stage, own in functions.items()}


def _observed(call: Callable[[], Any]) -> list[tuple[str, tuple[str, str]]]:
    """Return (stage, (file, function)) of all functions that a call enters, once each, in the order of first calls."""
    entries: dict[tuple[str, tuple[str, str]], None] = {}
    stages: list[tuple[Any, str]] = []  # (frame, stage) of the functions of `STAGES` that have not returned

    def observe(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "return" and stages and stages[-1][0] is frame:
            stages.pop()
        if event != "call" or code.co_name.startswith("<") or not Path(code.co_filename).is_relative_to(ROOT):
            return
        path, name = Path(code.co_filename).relative_to(ROOT), code.co_qualname
        if path.parts[0] in PACKAGES:
            if name in STAGES:
                stages.append((frame, STAGES[name]))
            known = [stage for _, stage in stages] or [START]
            entries[TRACE if TRACE in known else known[0], (str(path), name)] = None

    sys.setprofile(observe)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(entries)


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


def _evaluation(robot: legged.Robot) -> None:
    """Start a law that follows a command, and evaluate it once."""
    law, wrenches = controllers.Locomotion("trot", controllers.Command(vx=0.3)), np.zeros((len(robot.links), 6))
    q, v = law.initial_state(robot)
    started, memory = law.start(robot, None, q, v)
    memory = started.update(0.0, 0, q, v, wrenches, memory)
    started.torque(0.0, 0, q, v, wrenches, memory)


def walks() -> list[tuple[str, str, Walk]]:
    """Return (description, package, files and functions entered there) of the three calls that the pages follow."""
    robot = robots.spatial_quadruped()
    with tempfile.TemporaryDirectory() as folder:
        path = legged.save_mjcf(robot, Path(folder) / "robot.xml")
        followed = (
            ("a path through `load`", "legged/files", partial(legged.load, path, fuse=True)),
            ("a controller through `simulate`", "legged/simulation", calls()["simulate, two steps"]),
            ("a command through `Locomotion`", "controllers/locomotion", partial(_evaluation, robot)),
        )
        results = []
        for name, package, call in followed:
            call()
            results.append((name, package, entered(call).under(package)))
    return results


def main() -> None:
    """Print the table, with `--list` also the files."""
    rows = []
    for name, call in calls().items():
        call()
        walk = entered(call)
        rows.append((name, str(len(walk.files)), str(len(walk.functions))))
        if "--list" in sys.argv:
            print(*(f"{file}: {function}" for file, function in walk.functions), sep="\n")
    print(Table("Files and functions entered by a call", ("call", "files", "functions"), tuple(rows)).text())


if __name__ == "__main__":
    main()
