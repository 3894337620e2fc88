"""Runs of tests with one changed line, in processes that share the imported modules.

To import the libraries and the project takes longer than the shortest tests. A worker therefore imports them once for
each copy of the checkout and forks for each run; the forked process replaces the code of the changed functions. Changes
outside functions, as of constants and default values, need another import.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from executed_lines import mark_modules
from mutations import Mutant

FORKS = multiprocessing.get_context("forkserver")
LIBRARIES = (
    "numpy",
    "scipy.integrate",
    "scipy.optimize",
    "networkx",
    "llvmlite.binding",
    "matplotlib.pyplot",
    "hypothesis",
    "pinocchio",
    "mujoco",
    "typer",
    "rich.progress",
)
"""Modules that the tests import, and that the processes of the tests share."""

NEEDS_IMPORT = 99
"""Exit status of a run whose change lies outside functions; those of pytest are below 10."""


def run_pytest(
    copy: Path, arguments: Sequence[str], seconds: float, variables: dict[str, str], mutant: Mutant | None = None
) -> None:
    """Run tests in a copy of the checkout and end the process with the exit status of pytest.

    Args:
        copy: The copy.
        arguments: Arguments of pytest.
        seconds: Computing time after which SIGXCPU ends the process [s].
        variables: Environment variables.
        mutant: The change of the file, if the modules have been imported without it.
    """
    _enter(copy, variables)
    if mutant is not None and not replace_code(copy, mutant):
        sys.exit(NEEDS_IMPORT)
    sys.dont_write_bytecode = "MUTANTS_RECORD" not in variables  # of changed modules
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    with open(copy.with_suffix(".log"), "w", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    # Modules of pytest's plugins are imported before it starts, so it cannot rewrite their assertions.
    ignored = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    sys.exit(pytest.main(["-p", "mutants", "-p", "no:cacheprovider", *ignored, *arguments]))


def _enter(copy: Path, variables: dict[str, str]) -> None:
    os.chdir(copy)
    os.environ |= variables
    sys.path[:0] = [path for path in (str(copy), str(copy / "tests")) if path not in sys.path]


def replace_code(copy: Path, mutant: Mutant) -> bool:
    """Replace the code of the changed functions, and return False if code outside functions has changed."""
    path = str(copy / mutant.path)
    lines = (copy / mutant.path).read_text(encoding="utf-8").splitlines(keepends=True)
    new = compile("".join(lines), path, "exec", dont_inherit=True)
    lines[mutant.line - 1] = mutant.before + "\n"
    old = compile("".join(lines), path, "exec", dont_inherit=True)
    pairs = list(zip(_parts(old), _parts(new), strict=False))
    if any(_outside_functions(one) != _outside_functions(other) for one, other in pairs):
        return False
    codes = {code: changed for code, changed in pairs if code.co_flags & 1 and code != changed}
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__ in codes:
            changed = codes[function.__code__]
            if changed.co_freevars != function.__code__.co_freevars:
                return False
            function.__code__ = changed
    return True


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _parts(part)


def _outside_functions(code: CodeType) -> Any:
    """Return what a module or class body executes, the name alone of a function, which has the flag CO_OPTIMIZED."""
    if code.co_flags & 1:
        return code.co_qualname
    constants = [part for part in code.co_consts if not isinstance(part, CodeType)]
    return code.co_code, code.co_names, repr(constants)


def _serve(copy: Path, variables: dict[str, str], marks: Path | None, requests: Any) -> None:
    """Import the project, and fork a process for each run that is asked for."""
    _enter(copy, variables)
    if marks is not None:
        mark_modules(marks)
    for module in ("legged", "controllers", "robots"):
        importlib.import_module(module)
    while True:
        try:
            request = requests.recv()
        except EOFError:
            return
        process = multiprocessing.get_context("fork").Process(target=run_pytest, args=(copy, *request))
        process.start()
        process.join()
        requests.send(process.exitcode)


class Worker:
    """A process that has imported the project from a copy of the checkout and runs tests in forks of itself.

    Args:
        copy: The copy.
        variables: Environment variables of all runs.
        marks: Folder of compiled modules that record which blocks are executed, if they are to.
    """

    def __init__(self, copy: Path, variables: dict[str, str], marks: Path | None = None):
        self.copy, self.variables = copy, variables
        self.requests, other = FORKS.Pipe()
        self.process = FORKS.Process(target=_serve, args=(copy, variables, marks, other))
        self.process.start()
        other.close()

    def run(self, arguments: Sequence[str], seconds: float, mutant: Mutant | None = None, **variables: str) -> int:
        """Run tests, and return the exit status, that of the signal SIGXCPU if they exceed a computing time.

        Args:
            arguments: Arguments of pytest.
            seconds: Computing time [s].
            mutant: The change, which the copy already contains.
            variables: Further environment variables.
        """
        self.requests.send((arguments, seconds, variables, mutant))
        status = self.requests.recv()
        return self.run_imported(arguments, seconds, **variables) if status == NEEDS_IMPORT else status

    def run_imported(self, arguments: Sequence[str], seconds: float, **variables: str) -> int:
        """Run tests in a process that imports the project anew, and return the exit status."""
        process = FORKS.Process(target=run_pytest, args=(self.copy, arguments, seconds, self.variables | variables))
        process.start()
        process.join()
        assert process.exitcode is not None
        return process.exitcode

    def close(self) -> None:
        """End the process."""
        self.requests.close()
        self.process.join()
