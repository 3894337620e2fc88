"""The work of one process on a sweep: a chunk is computed, its failures are isolated, and it is written."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import shown
from legged.errors import FileError, SimulationWarning
from legged.output import visible
from legged.sweeps.content import versions
from legged.sweeps.setup import Setup
from legged.sweeps.store import ENDED, FAILED, Store

Array = np.ndarray
Trial = Setup | Callable[..., Any]
Task = tuple[str, int]
"""Name of a setup, and index of a chunk."""
VALUE = "value"
"""Column of the result of a function that returns one number."""
_SIMULATING = threading.Lock()
"""Held by the one thread that simulates: `warnings.catch_warnings` changes the filters of the whole process."""


def _renew_lock() -> None:
    """Give a forked process a lock that no thread of its parent holds."""
    global _SIMULATING
    _SIMULATING = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Outcome(NamedTuple):
    """The result of computing a chunk, as workers return it.

    Attributes:
        key: Key of the chunk. problem: Why it could not be written; "" if it is in the store.
    """

    key: str
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that the chunks of a sweep need.

    Attributes:
        trials: Name -> setup or function. columns: Samples, name -> (n,), any unit. rows: Rows of each chunk.
        keys: Name of a setup -> keys of its chunks. store: The folder. versions: Those of the process that asks.
        old: Key -> files that the chunk replaces: those of `missing` that are damaged or hold failed trials.
        stop: Set when a chunk in this process has to end early; it is not written then.
    """

    trials: dict[str, Trial]
    columns: dict[str, Array]
    rows: list[Array]
    keys: dict[str, list[str]]
    store: Store
    versions: dict[str, str]
    old: dict[str, list[Path]] = field(default_factory=dict)
    stop: Any = field(default_factory=threading.Event)

    def missing(self, retry: bool = False) -> list[Task]:
        """Return the chunks that the store does not hold, or holds damaged.

        Args:
            retry: Whether chunks with failed trials are among them.
        """
        files, missing = self.store.chunk_files(), list[Task]()
        for name, keys in self.keys.items():
            for k, key in enumerate(keys):
                path = self.store.intact(files.get(key, ()))
                if path is None or (retry and self.store.facts(path)["failed"]):
                    missing.append((name, k))
                    self.old[key] = files.get(key, [])
        return missing

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "stop"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "stop": threading.Event()}.items():
            object.__setattr__(self, name, value)

    def compute(self, name: str, k: int, threads: int | None = None) -> Outcome:
        """Compute chunk k of a setup and write it.

        Args:
            name: Name of the setup. k: Index of the chunk. threads: Number of threads of a simulation.
        """
        key, trial = self.keys[name][k], self.trials[name]
        if versions() != self.versions:
            return Outcome(key, f"a worker has other versions than the client: {versions()} and {self.versions}")
        columns = {n: x[self.rows[k]] for n, x in self.columns.items()}
        begin, used, texts = time.perf_counter(), time.process_time(), list[str]()
        if isinstance(trial, Setup):
            with _SIMULATING, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", SimulationWarning)
                rows = evaluated(trial, columns, threads)
            texts = list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, SimulationWarning)))
            seconds = time.process_time() - used
        else:
            rows = called(trial, columns, self.stop)
            seconds = time.perf_counter() - begin
        if self.stop.is_set():
            return Outcome(key, "interrupted")
        failed = sum(bool(row.get(FAILED)) for row in rows)
        facts = {"rows": len(rows), "failed": failed, "seconds": seconds, "warnings": texts, "versions": self.versions}
        try:
            self.store.write_chunk(key, _as_columns(rows), facts, self.old.get(key, ()))
        except FileError as error:
            return Outcome(key, str(error))
        return Outcome(key)


def evaluated(setup: Setup, columns: Mapping[str, Array], threads: int | None) -> list[dict[str, Any]]:
    """Return the results of each trial; a batch with a trial that fails is halved until that trial is alone.

    Args:
        setup: The setup. columns: Samples, name -> (B,), any unit. threads: Number of threads.
    """
    count = len(next(iter(columns.values())))
    try:
        results = setup.evaluate(columns, threads)
        return [{name: values[i] for name, values in results.items()} for i in range(count)]
    except Exception as error:  # the laws of users raise anything
        if count == 1:
            return [{ENDED: "", FAILED: _message(error)}]
    return [
        row
        for half in (slice(0, count // 2), slice(count // 2, None))
        for row in evaluated(setup, {name: x[half] for name, x in columns.items()}, threads)
    ]


def run_of(setup: Setup, columns: Mapping[str, Array], i: int) -> Any:
    """Return the `legged.Run` of sample i of a batch; where the batch fails, of the half in which it was computed.

    Args:
        setup: The setup. columns: Samples, name -> (B,), any unit. i: Index of the sample.
    """
    count = len(next(iter(columns.values())))
    try:
        return setup.run(columns, i)
    except Exception:  # as in `evaluated`
        if count == 1:
            raise
    middle = count // 2
    half, inside = (slice(0, middle), i) if i < middle else (slice(middle, None), i - middle)
    return run_of(setup, {name: x[half] for name, x in columns.items()}, inside)


def called(function: Callable[..., Any], columns: Mapping[str, Array], stop: Any = None) -> list[dict[str, Any]]:
    """Return the results of a function for each row, called with the samples as keywords.

    Args:
        function: Returns a number, truth value or text, or a mapping from names to these.
        columns: Samples, name -> (B,), any unit. stop: Event that ends the calls early.
    """
    rows = []
    for values in zip(*(x.tolist() for x in columns.values()), strict=True):
        if stop is not None and stop.is_set():
            break
        try:
            rows.append(_checked_result(function(**dict(zip(columns, values, strict=True)))))
        except Exception as error:  # the function is the user's
            rows.append({FAILED: _message(error)})
    return rows


def _checked_result(result: Any) -> dict[str, Any]:
    named = dict(result) if isinstance(result, Mapping) else {VALUE: result}
    for name, x in named.items():
        if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and x.shape == ()):
            x = named[name] = x.item()
        if not isinstance(name, str) or not isinstance(x, bool | int | float | str | None):
            raise TypeError(f"the function must return a number, or a mapping from names to these, got {shown(result)}")
        if name in (FAILED, "row"):
            raise TypeError(f"the function must not return the name {name!r}, which is a column of the table")
    return named


def _message(error: Exception) -> str:
    notes = " ".join(getattr(error, "__notes__", ()))
    return visible(f"{type(error).__name__}: {error} {notes}".rstrip(), 1000)


def _as_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(name for row in rows for name in row if name != FAILED))
    columns = {name: [row.get(name) for row in rows] for name in names}
    for name, values in columns.items():  # a function may return whole numbers and others
        kinds = {type(x) for x in values if x is not None}
        if kinds == {int, float}:
            columns[name] = [None if x is None else float(x) for x in values]
        elif len(kinds) > 1:
            columns[name] = [None if x is None else str(x) for x in values]
    return columns | {FAILED: [row.get(FAILED, "") for row in rows]}
