# ruff: noqa: E501  (tables of values)
"""Call every public function with one invalid argument, and report wrong results.

`python tests/project/argument_fuzz.py [--seed N] [--most N] [NAME ...]` prints a table of defects. For every public
callable a valid call is built from the names of its parameters (`_values`, `_special`); then each argument in turn is
replaced by each of the values of `bad_values`. A call may return, or raise a `LeggedError`. Defects are: another
exception, a message without words, an answer that holds NaN or infinity, an argument that was changed, and a call of
more than `SECONDS`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import datetime
import importlib
import inspect
import io
import os
import random
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import controllers
import legged
import robots
from legged import arguments
from legged.errors import LeggedError

SECONDS = 10.0
"""Longest time that one call may take, [s]."""

MODULES = (
    "legged",
    "controllers",
    "robots",
    "legged.ground",
    "legged.contact",
    "legged.loops",
    "legged.sensors",
    "legged.conversions",
    "legged.denoc",
    "legged.simulation",
)

FOLDER = Path(tempfile.mkdtemp())
URDF, MJCF = FOLDER / "robot.urdf", FOLDER / "robot.xml"

RESULTS = {
    "Counts", "Kernel", "Robot", "Rollouts", "Run", "Impact", "Solution", "Mobility", "Readings", "ArticulatedModule",
    "Conversion", "RosConversion", "Candidate", "ContactGeometry", "Scene", "ClosedRobot", "Home", "Gait", "GaitLaw", "Posture",
    "Reference", "FrictionLaw", "NormalLaw", "Terrain", "Base", "Leg", "NumericalGait", "JointState", "Odometry", "Loop",
    "Pendulum", "Pose",
}  # fmt: skip
"""Classes whose objects the toolkit makes, or that users derive from."""


def _robot() -> Any:
    return robots.planar_biped()


def _values() -> dict[str, Any]:
    """Return a valid argument for each usual name of a parameter."""
    robot = _robot()
    q, v = robot.neutral(), np.zeros(robot.nv)
    gait = controllers.paper_walk()
    closed = robots.four_bar()
    run = legged.simulate(robot, until=0.01, ground=legged.ground.paper_ground(robot))
    return {
        "run": run,
        "robot": robot, "q": q, "v": v, "vdot": v, "tau": v, "dq": v, "start": q, "end": q, "wrenches": None,
        "joint_accelerations": np.zeros(robot.nj), "frame": "trunk", "axes": None, "relative_to": None, "link": "trunk",
        "point": (0.0, 0.0, 0.0), "points": [(0, (0.0, 0.0, 0.0))], "wrench": np.ones(6), "origin": (0.0, 0.0, 0.0),
        "normal": (0.0, 0.0, 1.0), "foot": robot.contacts[0].name if hasattr(robot.contacts[0], "name") else 0,
        "gait": gait, "kp": 100.0, "kd": 10.0, "ki": 1.0, "kv": 10.0, "law": controllers.ComputedTorque(gait),
        "mass": 1.0, "size": (1.0, 1.0, 1.0), "radius": 0.1, "center": (0.0, 0.0, 0.0), "at": (0.0, 0.0, 0.0),
        "name": "a", "first": "x", "second": "y", "axis": "z", "sequence": "xyz", "roll": 0.1, "pitch": 0.1, "yaw": 0.1,
        "rng": np.random.default_rng(1), "seed": 1, "links": 4, "n": 3, "pairs": 2, "stiffness": 1e4, "damping": 10.0,
        "coefficient": 0.5, "viscosity": 10.0, "friction": 0.5, "restitution": 0.1, "angle": 0.1, "heading": 0.0,
        "elevation": 0.0, "dissipation": 1.0, "step": 1e-3, "inertia": legged.sphere_inertia(1.0, 0.1), "length": 0.3,
        "shapes": [legged.contact.Sphere(0.1)], "contacts": {"tip": (0.0, 0.0, 0.0)}, "condition": True, "a": 1.0, "b": 2.0,
        "density": 0.1, "height": 0.3, "tilt": 1.0, "impulse": (0.0, 1.0, 0.0), "duration": 0.0, "closed": closed,
        "forces": np.ones((2, 3)), "hold": None, "multipliers": None, "feet": np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]),
        "loads": np.ones((4, 2)), "on": 1.0, "off": 0.5, "imu": "trunk", "threshold": 1.0, "edges": (1.0, 2.0),
        "rises": (0.1, 0.1), "i": 1, "k": 1, "j": 0, "beta": 0, "r": np.ones(3), "form": "skew", "kind": controllers.Trot,
        "rate": 100.0, "torques": 10.0, "t": 0.1, "period": 1.0, "stride": 0.1, "clearance": 0.05, "time_constant": 0.1,
        "until": 0.01, "base": None, "gravity": (0.0, 0.0, -9.81), "axes_": None,
    }  # fmt: skip


def path_of_a_point(t: float) -> tuple[Any, Any, Any]:
    """Return position, velocity and acceleration of a point that rests."""
    return np.zeros(3), np.zeros(3), np.zeros(3)


def _special(values: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], Any]:
    """Return the arguments of callables for which those of the usual names are not right, by qualified name."""
    closed = values["closed"]
    q = legged.loops.assemble(closed, [1.0, -0.5, 1.6])
    v = np.zeros(closed.robot.nv)
    loop_state = {"q": q, "v": v, "vdot": v, "tau": v}
    quadruped = robots.spatial_quadruped()
    legged.save_urdf(quadruped, URDF)
    legged.save_mjcf(quadruped, MJCF)
    loop_run = legged.simulate(closed, until=0.01, q=q)
    trot = controllers.suited(controllers.Trot, quadruped)
    special = {
        "legged.FreeBody": {"position": (0.0, 0.0, 1.0), "quaternion": (1.0, 0, 0, 0), "velocity": (0.0, 0, 0), "spin": (0.0, 0, 0)},
        "legged.Push": {"at": 0.001},
        "legged.Frame": {"on": "trunk"},
        "legged.State": {},
        "legged.Link": {},
        "legged.simulate": {"controller": values["law"], "ground": legged.ground.paper_ground(values["robot"])},
        "legged.rollout": {"controller": values["law"], "ground": legged.ground.paper_ground(values["robot"]), "vary": {}},
        "legged.compile": {"function": legged.inertia_matrix, "robot": values["robot"]},
        "legged.count": {"function": legged.inertia_matrix, "robot": values["robot"]},
        "legged.random_tree": {"links": 4},
        "legged.Rotor": {"inertia": 1e-4, "gear": 10.0},
        "legged.cylinder_inertia": {"start": (0.0, 0, 0), "end": (0.0, 0, 1)},
        "legged.rod_inertia": {"start": (0.0, 0, 0), "end": (0.0, 0, 1)},
        "legged.RobotBuilder": {"base_link": legged.Link("base", legged.sphere_inertia(1.0, 0.1))},
        "legged.verify": {"states": 1},
        "legged.point_jacobian": {"link": 0},
        "legged.save_urdf": {"path": FOLDER / "saved.urdf"},
        "legged.save_mjcf": {"path": FOLDER / "saved.xml"},
        "legged.load": {"path": URDF},
        "legged.audit": {"path": URDF},
        "legged.Inertia": {"mass": 1.0, "tensor": np.eye(3) * 0.1},
        "controllers.FootKinematics": {"robot": quadruped, "points": ["leg1_foot"]},
        "controllers.PointTask": {"path": path_of_a_point},
        "controllers.PoseTask": {"path": path_of_a_point},
        "controllers.servo_gains": {"robot": quadruped, "home": controllers.home_of(quadruped).angles, "hip_height": 0.5},
        "controllers.swing_foot": {"path": "cycloid"},
        "legged.ground.center_of_pressure": {"points": np.eye(2, 3)},
        "legged.loops.close": {"joint": legged.Revolute("pin", "y"), "parent": "a_shank", "child": "b_shank"},
        "legged.loops.load": {"path": MJCF},
        "legged.loops.loop_errors": {"run": loop_run},
        "legged.loops.ranks": {"run": loop_run},
        "legged.loops.standing": {"q": values["q"], "contacts": ["a_heel"]},
        "legged.loops.LoopBuilder": {"name": "a", "base_link": legged.Link("base", legged.sphere_inertia(1.0, 0.1))},
        "legged.loops.active_forces": {"forces": {}},
        "legged.loops.loop_wrenches": {"multipliers": np.zeros(len(closed.rows))},
        "legged.sensors.capture_point": {"origin": (0.0, 0.0, -2.0)},
        "legged.sensors.zero_moment_point": {"origin": (0.0, 0.0, -2.0)},
        "legged.sensors.contact_force": {"wrenches": np.zeros((len(values["robot"].links), 6)), "foot": "a_heel"},
        "legged.sensors.measure": {"run": values["run"], "imu": None},
        "legged.sensors.sliding_per_stance": {"run": values["run"]},
        "legged.conversions.legged": {"other": values["robot"]},
        "legged.sensors.pressure_point": {"wrench": np.array([0.0, 0, 0, 0, 0, 10])},
        "legged.sensors.support_margin": {"point": np.array([0.2, 0.2, 0.0])},
        "controllers.suited": {"robot": quadruped},
        "controllers.suited_law": {"kind": controllers.Balanced, "gait": trot},
        "controllers.legs_of": {"robot": quadruped},
        "controllers.home_of": {"robot": quadruped},
        "controllers.Balanced": {"gait": trot},
        "robots.tree": {"n": 5, "branching": 2.0},
        "robots.spatial_biped": {"mass": 65.0},
        "robots.four_bar": {"ground": 1.0, "crank": 0.4, "coupler": 0.9, "rocker": 0.7},
    }  # fmt: skip
    return special, loop_state


class Case(NamedTuple):
    """A public callable and a valid call of it."""

    name: str
    function: Any
    arguments: dict[str, Any]


def cases() -> tuple[list[Case], list[str]]:
    """Return the callables with valid calls, and the names of those for which no valid call could be built."""
    values = _values()
    special, loop_state = _special(values)
    found, missing, seen = [], [], set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", [k for k in vars(module) if not k.startswith("_")]):
            function = getattr(module, name)
            if not callable(function) or name in RESULTS or id(function) in seen:
                continue
            seen.add(id(function))
            full = f"{module_name}.{name}"
            try:
                parameters = inspect.signature(function).parameters.values()
            except (ValueError, TypeError):
                continue
            given = dict(special.get(full, {}))
            for p in parameters:
                if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name in given:
                    continue
                usual = loop_state if module_name == "legged.loops" and p.name in loop_state else values
                if p.default is not p.empty:
                    given[p.name] = p.default
                elif p.name in usual:
                    given[p.name] = usual[p.name]
            case = Case(full, function, given)
            outcome = attempt(case, {})
            (found.append(case) if outcome.error is None else missing.append(f"{full}: {outcome.error}"))
    return found, missing


def bad_values(valid: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield (description, value) of values to put in the place of a valid argument."""
    yield from {
        "None": None, "a text": "no such thing", "an empty text": "", "bytes": b"\x00", "True": True, "-1": -1, "0": 0,
        "1e300": 1e300, "-1e300": -1e300, "10**400": 10**400, "nan": float("nan"), "inf": float("inf"), "1j": 1 + 1j,
        "a list": [1, 2], "a ragged list": [[1, 2], [3]], "a dict": {"a": 1}, "a set": {1}, "a class": int,
        "a function": len, "an object": object(), "a date": datetime.datetime(2020, 1, 1),
        "a NumPy date": np.datetime64("2020-01-01"), "a list of None": [None], "an empty array": np.zeros(0),
        "NaN (3,)": np.full(3, np.nan), "a complex (3,)": np.ones(3) * 1j, "texts": np.array(["a", "b"]),
        "a huge array": np.zeros((3, 3, 3)), "a generator": (i for i in range(2)), "3.5": 3.5, "(1, 2, 3, 4, 5)": (1, 2, 3, 4, 5),
    }.items()  # fmt: skip
    if isinstance(valid, (np.ndarray, tuple, list)) and np.asarray(valid, object).size:
        try:
            array = np.asarray(valid, float)
        except (ValueError, TypeError):
            return
        for words, entry in (("a NaN entry", np.nan), ("an infinite entry", np.inf), ("an entry of 1e300", 1e300)):
            changed = array.copy()
            changed.flat[-1] = entry
            yield words, changed
        yield "one entry more", np.append(array, 0.0)
        yield "one axis more", array[None]
        yield "complex entries", array + 0.5j
        yield "object entries with a text", np.array([*array.ravel().tolist()[:-1], "x"], object)
        yield "single precision", array.astype(np.float32)


class Outcome(NamedTuple):
    """What came of a call: the answer, or the error, and a defect in words, "" for none."""

    answer: Any
    error: BaseException | None
    defect: str


class _Late(BaseException):
    pass


@contextmanager
def descriptors_kept() -> Iterator[list[str]]:
    """Restore the standard streams if the block closed their descriptors; say so in the list that is yielded."""
    copies, words = {n: os.dup(n) for n in range(3)}, []
    try:
        yield words
    finally:
        for n, duplicate in copies.items():
            try:
                os.fstat(n)
            except OSError:
                words.append(f"closed the file descriptor {n}")
                os.dup2(duplicate, n)
            os.close(duplicate)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `_Late` in the block after some seconds."""

    def late(*_: Any) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(case: Case, changed: dict[str, Any]) -> Outcome:
    """Call a function with some arguments changed."""
    given = {**case.arguments, **changed}
    given = {name: copy.deepcopy(x) if isinstance(x, (np.ndarray, list, dict)) else x for name, x in given.items()}
    before = {name: x.copy() for name, x in given.items() if isinstance(x, np.ndarray) and x.dtype != object}
    try:
        with limited(SECONDS), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            answer = case.function(**given)
            text = repr(answer)
    except LeggedError as error:
        words = str(error)
        return Outcome(None, error, "" if len(words.split()) > 2 else f"message {words!r}")
    except _Late:
        return Outcome(None, _Late(), f"took more than {SECONDS:g} s")
    except RecursionError as error:
        return Outcome(None, error, "RecursionError")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(
            None,
            error,
            f"{type(error).__name__}: {arguments.shown(str(error), 70)} ({Path(where.filename).name}:{where.lineno})",
        )
    for name, x in before.items():
        if not np.array_equal(given[name], x, equal_nan=x.dtype.kind in "fc"):
            return Outcome(answer, None, f"changed the argument {name}")
    del text
    return Outcome(answer, None, "an answer with NaN" if changed and holds_nan(answer) else "")


def holds_nan(x: Any, depth: int = 0) -> bool:
    """Tell whether an answer holds a number that is NaN, or a returned array an entry that is not finite."""
    if isinstance(x, (float, np.floating)):
        return bool(np.isnan(x))
    if isinstance(x, np.ndarray):
        return x.dtype.kind == "f" and bool((np.isnan(x) if depth else ~np.isfinite(x)).any())
    if depth > 4 or isinstance(x, (str, bytes, type, legged.Robot)):
        return False
    if isinstance(x, dict):
        return any(holds_nan(y, depth + 1) for y in x.values())
    if isinstance(x, (list, tuple)):
        return any(holds_nan(y, depth + 1) for y in x)
    if dataclasses.is_dataclass(x):
        return any(holds_nan(getattr(x, f.name, None), depth + 1) for f in dataclasses.fields(x))
    return False


class Report(NamedTuple):
    """Figures of a fuzz: calls, and defects as (function, argument, value, defect)."""

    calls: int
    callables: int
    missing: list[str]
    defects: list[tuple[str, str, str, str]]


def fuzz(names: list[str] | None = None, seed: int = 0, most: int | None = None) -> Report:
    """Call the functions whose name contains one of `names` (all for none), at most `most` calls, drawn by a seed."""
    found, missing = cases()
    todo = [
        (case, argument, words, value)
        for case in found
        if not names or any(name in case.name for name in names)
        for argument, valid in case.arguments.items()
        for words, value in bad_values(valid, argument)
    ]
    if most is not None and most < len(todo):
        todo = random.Random(seed).sample(todo, most)
    defects = []
    for case, argument, words, value in todo:
        with descriptors_kept() as words_of_files:
            outcome = attempt(case, {argument: value})
        if words_of_files:
            outcome = outcome._replace(defect=", ".join(words_of_files))
        if outcome.defect:
            defects.append((case.name, argument, words, outcome.defect))
    return Report(len(todo), len(found), missing, defects)


def main() -> None:
    """Print the defects of a fuzz, those of one function and cause in one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of functions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=None, help="number of calls")
    options = parser.parse_args()
    os.chdir(FOLDER)  # functions that write files may be called with relative paths
    report = fuzz(options.names, options.seed, options.most)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for function, argument, words, defect in report.defects:
        groups.setdefault((function, argument, defect), []).append(words)
    for (function, argument, defect), words in groups.items():
        print(f"{function}({argument}=...): {defect}: for {', '.join(words)}")
    for line in report.missing:
        print(f"no valid call: {line}")
    print(f"{report.calls} calls of {report.callables} callables, {len(report.defects)} defects")
    print(Counter(function for function, *_ in report.defects).most_common(15))
    sys.exit(bool(report.defects))


if __name__ == "__main__":
    main()
