"""Machine code in two stages: without optimization at first, replaced by optimized code of the same bits.

LLVM takes a fifth of the time for long modules without optimization. Another process optimizes them meanwhile and
writes them into the cache folder, also if this process has ended; it shares neither locks nor memory with this one. A
thread waits for it and replaces the code that is in use.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from legged.compiler import mechanisms
from legged.compiler.cache import disk
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.kernels.planned import WITHOUT_PLAN
from legged.compiler.ir.graph import Graph, Node, Shape
from legged.compiler.ir.operations import ChangingGather

LONG = 300_000
"""Length of a module, in characters of LLVM IR, above which it is compiled in two stages."""
_NICENESS = 10  # of the other process, which leaves the processors to this one
_PROGRAM = "from legged.compiler.cache import staged; staged.main()"
_Writer = Callable[[], str]


def is_possible() -> bool:
    """Return whether this process can start another one that optimizes code: a program of its own cannot, for one."""
    has_folder = mechanisms.is_on(mechanisms.STAGES) and disk.folder() is not None and disk.file_name(disk.CODE)
    return bool(has_folder) and Path(sys.executable or "").name.startswith("python")


def is_staged(ir: str) -> bool:
    """Return whether a module is compiled in two stages: it is long or has no plan of registers, with the same bits.

    Where operations may be contracted, LLVM rounds products that it fuses into sums, when it optimizes, once less.
    """
    return (len(ir) > LONG or WITHOUT_PLAN in ir) and " contract " not in ir


class Module:
    """A module that is compiled without optimization at first, for all graphs with it that are compiled meanwhile.

    Args:
        ir: The module in LLVM IR. write: Writes it; the other process calls it if the module has no plan of registers.

    Attributes:
        source: What the other process receives: the module, or `write`; None when it has received it.
        code: Its object file without optimization. is_optimized: Set when the other process has ended.
    """

    def __init__(self, ir: str, write: _Writer):
        self.source: str | _Writer | None = write if WITHOUT_PLAN in ir else ir
        self.code, self.is_optimized = b"", threading.Event()


_modules: dict[str, Module] = {}
"""The modules that other processes optimize, by the names of their files."""


def in_work(file: str | None) -> Module | None:
    """Return the module that another process optimizes into a file; None if there is none."""
    return _modules.get(file or "")


def optimize(modules: Mapping[str, Module], target: llvm.Target, finished: Callable[[], None]) -> None:
    """Start to optimize modules, except those in work, and write their code into the cache folder.

    Args:
        modules: The modules by the names of their files.
        target: The processor and the type of the numbers.
        finished: Called by a thread when no module is in work any more; the files exist unless a process has failed.

    Raises:
        OSError: No other process can be started.
    """
    new = {file: module for file, module in modules.items() if module.source}
    sources = {file: module.source for file, module in new.items() if module.source}
    process = _started(target, sources) if new else None
    _modules.update(new)
    for module in new.values():
        module.source = None

    def wait() -> None:
        if process is not None:
            process.wait()
        for file, module in new.items():
            _modules.pop(file, None)
            module.is_optimized.set()
        for module in modules.values():
            module.is_optimized.wait()
        with _finishing:
            if not _ending.is_set():
                finished()

    with suppress(RuntimeError):  # no thread can be started while the interpreter ends
        threading.Thread(target=wait, name="legged-stages", daemon=True).start()


def _started(target: llvm.Target, sources: dict[str, str | _Writer]) -> subprocess.Popen[bytes]:
    """Return a new process that optimizes modules, which are given by the names of their files, see `Module.source`."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LEGGED_CACHE": str(disk.parent_folder())}
    with tempfile.TemporaryFile() as file:
        _Pickler(file).dump((target, mechanisms.switched_off(), sources))
        file.seek(0)
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=variables,
            start_new_session=True,  # Ctrl-C does not reach it
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )


class _Pickler(pickle.Pickler):
    """Pickles graphs without the labels and names of this process, on which their code does not depend."""

    def reducer_override(self, x: Any) -> Any:
        if isinstance(x, Graph):
            operations, arguments, _ = zip(*x.nodes, strict=True) if x.nodes else ((), (), ())
            shapes = [shape for _, shape in x.inputs]
            return _graph, (shapes, operations, arguments, x.outputs, x.results, x.unit_quaternions)
        if isinstance(x, ChangingGather):
            return _changing_gather, (str(x), len(x.table))
        return NotImplemented


def _graph(shapes: Sequence[Shape], operations: Any, arguments: Any, *rest: Any) -> Graph:
    outputs, results, checked = rest
    inputs = tuple((str(k), shape) for k, shape in enumerate(shapes))
    return Graph(inputs, tuple(map(Node, operations, arguments)), outputs, results, tuple, checked)


def _changing_gather(name: str, count: int) -> ChangingGather:
    gather = str.__new__(ChangingGather, name)
    gather.table = np.zeros(count)
    return gather


_finishing, _ending = threading.Lock(), threading.Event()
"""Held while a thread replaces code; set when the process ends."""


@atexit.register
def _end() -> None:
    """Let no thread replace code while the process ends."""
    with _finishing:
        _ending.set()


def _renew() -> None:
    """Give a forked process a lock that no thread of its parent holds, and no modules, for which no thread waits."""
    global _finishing
    _finishing = threading.Lock()
    _modules.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def main() -> None:
    """Optimize the modules that the standard input holds, in the process that `optimize` starts."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    target, off, sources = pickle.load(sys.stdin.buffer)
    with llvm.target_context(target), mechanisms.without(*off), selection.stage(selection.Stage.SECOND):
        for file, source in sources.items():
            code = llvm.machine_code(source if isinstance(source, str) else source())
            if (folder := disk.folder()) is not None and folder.is_dir():  # a temporary one may have been deleted
                disk.write(file, code)
