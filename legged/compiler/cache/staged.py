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
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from legged.compiler import mechanisms
from legged.compiler.cache import disk
from legged.compiler.codegen import llvm

LONG = 300_000
"""Length of a module, in characters of LLVM IR, above which it is compiled in two stages."""
_NICENESS = 10  # of the other process, which leaves the processors to this one
_PROGRAM = "from legged.compiler.cache import staged; staged.main()"


def is_possible() -> bool:
    """Return whether this process can start another one that optimizes code: a program of its own cannot, for one."""
    has_folder = mechanisms.is_on(mechanisms.STAGES) and disk.folder() is not None
    return has_folder and Path(sys.executable or "").name.startswith("python")


def is_staged(ir: str) -> bool:
    """Return whether a module is long and has the same bits with and without optimization.

    Where operations may be contracted LLVM rounds products that it fuses into sums, when it optimizes, once less.
    """
    return len(ir) > LONG and " contract " not in ir


def optimize(modules: Mapping[str, str], target: llvm.Target, finished: Callable[[], None]) -> None:
    """Start to optimize modules, and write their code into the cache folder.

    Args:
        modules: The modules in LLVM IR by the names of their files.
        target: The processor and the type of the numbers.
        finished: Called by a thread when the files have been written.

    Raises:
        OSError: No other process can be started.
    """
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LEGGED_CACHE": str(disk.parent_folder())}
    with tempfile.TemporaryFile() as file:
        pickle.dump((target, dict(modules)), file)
        file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=variables,
            start_new_session=True,  # Ctrl-C does not reach it
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )

    def wait() -> None:
        if process.wait() == 0:
            with _finishing:
                if not _ending.is_set():
                    finished()

    with suppress(RuntimeError):  # no thread can be started while the interpreter ends
        threading.Thread(target=wait, name="legged-stages", daemon=True).start()


_finishing, _ending = threading.Lock(), threading.Event()
"""Held while a thread replaces code; set when the process ends."""


@atexit.register
def _end() -> None:
    """Let no thread replace code while the process ends."""
    with _finishing:
        _ending.set()


def _renew_lock() -> None:
    """Give a forked process a lock that no thread of its parent holds."""
    global _finishing
    _finishing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def main() -> None:
    """Optimize the modules that the standard input holds, in the process that `optimize` starts."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    target, modules = pickle.load(sys.stdin.buffer)
    with llvm.target_context(target):
        for file, ir in modules.items():
            code = llvm.machine_code(ir)
            if (folder := disk.folder()) is not None and folder.is_dir():  # a temporary one may have been deleted
                disk.write(file, code)
