# ruff: noqa: E501  (tables of values)
"""Call every public function with one invalid argument, and report wrong results.

`python tests/project/arguments/argument_fuzz.py [--seed N] [--most N] [NAME ...]` prints a table of defects. For every public
callable a valid call is built from the names of its parameters (`argument_cases`); then each argument in turn is
replaced by each of the values of `bad_values`. A call may return, or raise a `LeggedError`. Defects are: another
exception, a message without words or without the name of the argument, a refused call that has changed the object of a
method, an answer that holds NaN or infinity, an argument that was changed, and a call of more than `SECONDS`.
"""

import argparse
import contextlib
import copy
import dataclasses
import datetime
import functools
import io
import os
import random
import re
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from argument_cases import Case, cases
from argument_values import FOLDER, resolved

import legged
from legged import arguments
from legged.errors import ArgumentError, LeggedError, NotFiniteError, ShapeError
from legged.simulation.stepping.simulated_robots import SimulationState

SECONDS = 10.0
"""Longest computing time that one call may take, [s]."""

EXPECTED = {
    ("StepCommand.sum_of", "response", "a function"),
    ("legged.compile", "function", "a function"),
    ("legged.count", "function", "a function"),
    ("legged.count_growth", "functions", "a function"),
    ("legged.simulate", "ground", "None"),
    ("Sampling.improve", "q", "an entry of 1e300"),
    ("Sampling.improve", "v", "an entry of 1e300"),
}
"""Calls whose error comes from the value itself, such as the built-in function `len` called with a robot; without a ground
the times of the first touch are NaN, and simulations from a huge state diverge, after they have moved the robots of the plan."""

DERIVED = {
    ("legged.where", "condition"), ("RobotGroup.locked", "values"),
    ("controllers.SampledCommand", "times"), ("Ground.forces", "points"), ("controllers.home_of", "hip_height"),
    *((f"{kind}.support", "t") for kind in ("Walk", "Stand", "Tripod", "Trot", "NumericalGait")),
    ("legged.box_inertia", "size"), ("Inertia.moved", "rotation"), ("optimization.Problem", "actuated"),
    ("identification.Log", "times"), ("identification.Log", "joints"), ("estimation.instrument_readings", "times"),
    *((f"legged.{kind}_inertia", end) for kind in ("cylinder", "rod") for end in ("start", "end")),
}  # fmt: skip
"""Arguments, some of whose wrong values show in a number that is computed from them or another argument that must fit,
which the message then names."""

ANY_ANSWER = {
    "legged.ground.center_of_pressure", "legged.conditioning", "legged.where", "Readings.margin", "Robot.joint_rates",
    "Robot.joint_values", "RobotGroup.joint_rates", "RobotGroup.joint_values",
}  # fmt: skip
"""Functions whose answer may hold NaN or infinity, as documented."""


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
    if isinstance(valid, (np.ndarray, tuple, list)) and len(valid):
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
    if isinstance(valid, dict) and valid:
        yield "one entry of another name more", {**valid, "no such name": next(iter(valid.values()))}
        yield "one entry None", {**valid, next(reversed(valid)): None}
    if isinstance(valid, SimulationState):
        for field in ("q", "v", "rest", "outcome"):
            for words, value in bad_values(getattr(valid, field), field):
                yield f"{words} for {field}", dataclasses.replace(valid, **{field: value})


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
    """Raise `_Late` in the block after some seconds of computation, or ten times as long in all."""

    def late(*_: Any) -> None:
        raise _Late

    clocks = (signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, 10.0 * seconds)
    before = [signal.signal(sign, late) for _, sign, _ in clocks]
    for clock, _, limit in clocks:
        signal.setitimer(clock, limit)
    try:
        yield
    finally:
        for (clock, sign, _), handler in zip(clocks, before, strict=True):
            signal.setitimer(clock, 0)
            signal.signal(sign, handler)


def attempt(case: Case, changed: dict[str, Any]) -> Outcome:
    """Call a function with some arguments changed."""
    given = {name: resolved(x) for name, x in {**case.arguments, **changed}.items()}
    given = {name: copy.deepcopy(x) if isinstance(x, (np.ndarray, list, dict)) else x for name, x in given.items()}
    before = {name: x.copy() for name, x in given.items() if isinstance(x, np.ndarray) and x.dtype != object}
    try:
        with limited(SECONDS), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            answer = case.function(**given)
            text = repr(answer)
    except LeggedError as error:
        words = str(error)
        wrong = [
            f"changed the argument {name} of a refused call" for name, x in before.items() if not same(given[name], x)
        ]
        if len(words.split()) <= 2 or not is_named(case.name, changed, error):
            wrong.append(f"message {arguments.shown(words, 100)}")
        return Outcome(None, error, ", ".join(wrong))
    except OSError as error:  # a file that cannot be written
        return Outcome(None, error, "" if error.filename is not None else f"OSError {error}")
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
        if not same(given[name], x):
            return Outcome(answer, None, f"changed the argument {name}")
    del text
    wrong = changed and case.name not in ANY_ANSWER and holds_nan(answer) and not holds_nan(attempt(case, {}).answer)
    return Outcome(answer, None, "an answer with NaN" if wrong else "")


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays are equal, NaN being equal to NaN."""
    return np.array_equal(a, b, equal_nan=b.dtype.kind in "fc")


def is_named(function: str, changed: dict[str, Any], error: LeggedError) -> bool:
    """Return whether the message of a call with a wrong argument names it as the user has written it, or says what it
    names."""
    if not isinstance(error, (ArgumentError, ShapeError, NotFiniteError)):
        return True
    if "no finite answer" in str(error) or str(error).startswith("the name of a"):
        return True
    for name, value in changed.items():
        keys = map(str, value) if isinstance(value, dict) else ()
        if (function, name) not in DERIVED and not any(
            re.search(rf"(?<![A-Za-z]){re.escape(word)}(?![a-z])", str(error)) for word in (name, *keys)
        ):
            return False
    return True


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
    longest: float
    """Computing time of the longest call, [s]."""


@functools.cache
def valid_cases() -> tuple[list[Case], list[str]]:
    """Return `cases`, made once."""
    return cases(partial(attempt, changed={}))


def fuzz(
    names: list[str] | None = None, seed: int = 0, most: int | None = None, only: Callable[[Case], bool] = bool
) -> Report:
    """Call the functions whose name contains one of `names` (all for none).

    Args:
        names: Parts of names of functions.
        seed: Seed of the sample.
        most: Number of calls of a sample; None for all calls.
        only: Chooses functions.
    """
    callables, missing = valid_cases()
    todo = [
        (case, argument, words, value)
        for case in callables
        if only(case) and (not names or any(name in case.name for name in names))
        for argument, valid in case.arguments.items()
        for words, value in bad_values(valid, argument)
        if (case.name, argument, words) not in EXPECTED
    ]
    if most is not None and most < len(todo):
        todo = random.Random(seed).sample(todo, most)
    defects, longest = [], 0.0
    for case, argument, words, value in todo:
        start = time.process_time()
        with descriptors_kept() as words_of_files:
            outcome = attempt(case, {argument: value})
        longest = max(longest, time.process_time() - start)
        if words_of_files:
            outcome = outcome._replace(defect=", ".join(words_of_files))
        if outcome.defect:
            defects.append((case.name, argument, words, outcome.defect))
    return Report(len(todo), len(callables), missing, defects, longest)


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
    print(
        f"{report.calls} calls of {report.callables} callables, {len(report.defects)} defects, longest {report.longest:.1f} s"
    )
    print(Counter(function for function, *_ in report.defects).most_common(15))
    sys.exit(bool(report.defects))


if __name__ == "__main__":
    main()
