"""`CompilationReport`: the processor times of the passes of the compiler.

Each pass of `legged.compiler.passes`, and each step before and after them, is a function with the decorator
`compiler_pass`. It is measured while the thread that calls it has a report open:

    with CompilationReport() as report:
        legged.simulate(robot, until=0.01)
    print(report)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from legged.table import Table

P = ParamSpec("P")
R = TypeVar("R")

PASSES = (
    *("cache folder", "tracing"),
    *("differentiation", "dropping of terms", "simplification", "counting"),
    *("checks of quaternions", "batching of calls", "packing into vectors", "outlining", "memory plan"),
    *("fusion of multiply-adds", "plan of registers", "depth-first order", "sections of the schedule"),
    *("writing of LLVM IR", "parsing of LLVM IR", "code generation by LLVM", "loading"),
)
"""Names of all passes, the rows of the table of a report, in their order. `passes.pipeline.run_passes` calls those from
differentiation on, up to the sections of the schedule, inside the writing of LLVM IR from the checks of quaternions
on."""


class PassTime(NamedTuple):
    """Calls, operations and processor time of a compiler pass.

    Attributes:
        calls: Number of calls.
        operations: Number of operations in the graphs that it returned, or received if it returns no graph; 0 for a
            pass that handles no graph.
        seconds: Processor time without that of other passes that it called, [s].
    """

    calls: int
    operations: int
    seconds: float


class CompilationReport:
    """The processor times of the passes that this thread runs while the report is open; its text is a table.

    Passes of threads that compile loops for this one are among them; `elapsed` may be shorter than the sum.

    Attributes:
        passes: The passes that have run by name, in the order in which each has ended for the first time.
        total: Processor time while the report was open, of this thread and of those that compile for it, [s].
        elapsed: Time while the report was open, [s].
    """

    def __init__(self) -> None:
        self.passes: dict[str, PassTime] = {}
        self.total = self.elapsed = 0.0
        self._inner = [0.0]  # for each pass that is running, the time of the passes that it called

    def __enter__(self) -> CompilationReport:
        self._outer, _current.report = _current.report, self
        self._start = time.thread_time(), time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.total += time.thread_time() - self._start[0]
        self.elapsed += time.perf_counter() - self._start[1]
        _current.report = self._outer

    def __str__(self) -> str:
        return self.table().text()

    def table(self) -> Table:
        """Return a row for each pass, in their order: name, calls, operations and seconds; without calls, the name."""
        rows = [(name, *self._cells(name)) for name in dict.fromkeys([*PASSES, *self.passes])]
        rest = self.total - sum(measured.seconds for measured in self.passes.values())
        rows += [("everything else", "", "", f"{rest:.4f}"), ("total", "", "", f"{self.total:.4f}")]
        rows.append(("elapsed time", "", "", f"{self.elapsed:.4f}"))
        header = ("pass", "calls", "operations", "processor time [s]")
        return Table("Compilation", header, tuple(rows))

    def _cells(self, name: str) -> tuple[str, str, str]:
        if name not in self.passes:
            return "", "", ""
        calls, operations, seconds = self.passes[name]
        return str(calls), str(operations) if operations else "", f"{seconds:.4f}"

    def add(self, other: CompilationReport) -> None:
        """Add the times of another report, that of a thread."""
        self.total += other.total
        for name, more in other.passes.items():
            before = self.passes.get(name, PassTime(0, 0, 0.0))
            sums = before.calls + more.calls, before.operations + more.operations, before.seconds + more.seconds
            self.passes[name] = PassTime(*sums)

    def measure(self, name: str, run: Callable[[], R], graph: Any) -> R:
        """Return the result of a pass and add its time; `graph` is the graph that it receives, or anything else."""
        self._inner.append(0.0)
        start = time.thread_time()
        try:
            result = run()
        finally:
            seconds = time.thread_time() - start
            inner = self._inner.pop()
            self._inner[-1] += seconds
        nodes = getattr(result, "nodes", None) or getattr(graph, "nodes", ())
        calls, operations, before = self.passes.get(name, PassTime(0, 0, 0.0))
        self.passes[name] = PassTime(calls + 1, operations + len(nodes), before + seconds - inner)
        return result


class _Current(threading.local):
    """The report that is open in a thread; None if there is none."""

    report: CompilationReport | None = None


_current = _Current()


def add_times(times: CompilationReport) -> None:
    """Add the times of a thread that works for this one to the report that is open, if any."""
    if _current.report is not None:
        _current.report.add(times)


def compiler_pass(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function that is one pass, measured under this name while a report is open."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def measured(*args: P.args, **kwargs: P.kwargs) -> R:
            report = _current.report
            if report is None:
                return function(*args, **kwargs)
            return report.measure(name, lambda: function(*args, **kwargs), args[0] if args else None)

        return measured

    return decorate
