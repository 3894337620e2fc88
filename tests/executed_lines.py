"""Record which lines of the project each test executes.

Modules are compiled with one more call at the beginning of each block of statements inside functions; it adds the name
of the block, "legged/spatial.py:12-20", to a set. Blocks end behind statements that contain others, which may return.
This costs far less time than to trace lines.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

FOLDERS = ("legged", "controllers", "robots", "benchmarks", "examples")
EXECUTED: set[str] = set()
"""Names of the blocks executed since the beginning of a test."""
builtins.__executed__ = EXECUTED.add  # type: ignore[attr-defined]


class _Marked(ast.NodeTransformer):
    """Insert the call that adds a block to the set of executed ones."""

    def __init__(self, path: str):
        self.path, self.depth = path, 0

    def visit_FunctionDef(self, node: Any) -> Any:
        """Mark the blocks of a function."""
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def generic_visit(self, node: Any) -> Any:
        """Mark the blocks of a statement inside a function."""
        super().generic_visit(node)
        if self.depth and isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            for name in ("body", "orelse", "finalbody"):
                if block := getattr(node, name, None):
                    setattr(node, name, self._marked(block, isinstance(node, ast.FunctionDef)))
        return node

    def _marked(self, body: list[ast.stmt], has_docstring: bool) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        if has_docstring and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            statements, body = body[:1], body[1:]
        groups: list[list[ast.stmt]] = [[]]
        for statement in body:
            groups[-1].append(statement)
            if hasattr(statement, "body"):
                groups.append([])
        for group in groups:
            if group:
                name = f"{self.path}:{group[0].lineno}-{group[-1].end_lineno}"
                call = ast.parse(f"__executed__({name!r})").body[0]
                for part in ast.walk(call):
                    part.__dict__ |= {
                        key: group[0].lineno for key in ("lineno", "end_lineno") if key in part._attributes
                    }
                statements += [call, *group]
        return statements


def mark_blocks(tree: ast.Module, path: str) -> ast.Module:
    """Insert a call of `__executed__` with the name of the block into each block inside functions.

    Args:
        tree: The syntax tree of a module, which is changed.
        path: Path of the module in the names of its blocks.
    """
    return _Marked(path).visit(tree)


class _Loader(SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, **_: Any) -> Any:  # type: ignore[override]
        """Return the code of a module with its marks."""
        return compile(mark_blocks(ast.parse(data), os.path.relpath(path)), path, "exec", dont_inherit=True)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the specification of a module of the project, None for another one."""
        spec = PathFinder.find_spec(name, path, target) if name.partition(".")[0] in FOLDERS else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def mark_modules(bytecode: Path) -> None:
    """Mark the blocks of all modules of the project that are imported from now on.

    Args:
        bytecode: Folder of compiled modules.
    """
    if _Finder not in sys.meta_path:
        sys.pycache_prefix = str(bytecode)
        sys.meta_path.insert(0, _Finder)


class LineRecorder:
    """A pytest plugin that records the blocks that each test executes, and the durations of the tests that pass.

    Args:
        file: The record, `Record` reads it.
        longest: Computing time after which a test is ended [s], 0 for no limit.
    """

    def __init__(self, file: Path, longest: float = 0.0):
        mark_modules(file.parent / "bytecode")
        self.file, self.longest = file, longest
        self.durations: dict[str, float | None] = {}
        self.blocks: dict[str, list[int]] = {}

    def _stop(self, *_: Any) -> None:
        """End a test that takes too long, with an exception that no `except Exception` catches."""
        pytest.fail("the test takes too long for the study", pytrace=False)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember a test that fails with the unchanged code."""
        if report.failed:
            self.durations[report.nodeid] = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Record the blocks of one test with its fixtures."""
        EXECUTED.clear()
        start = time.process_time()
        signal.signal(signal.SIGPROF, self._stop)
        signal.setitimer(signal.ITIMER_PROF, self.longest)
        answer = yield
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        self.durations.setdefault(item.nodeid, time.process_time() - start)
        number = list(self.durations).index(item.nodeid)
        for block in EXECUTED:
            self.blocks.setdefault(block, []).append(number)
        return answer

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        self.file.write_text(json.dumps([self.durations, self.blocks]), encoding="utf-8")


class Record:
    """The blocks that the tests execute.

    Attributes:
        durations: Computing time of each test that passes in the time of the record [s].
        tests: Names of the tests that execute each block, by file, then by first and last line.
    """

    def __init__(self, files: list[Path]):
        self.durations: dict[str, float] = {}
        self.tests: dict[str, dict[tuple[int, int], set[str]]] = {}
        for file in files:
            durations, blocks = json.loads(file.read_text(encoding="utf-8"))
            names = list(durations)
            self.durations |= {name: duration for name, duration in durations.items() if duration is not None}
            for block, numbers in blocks.items():
                path, first, last = re.split("[:-]", block)
                of_file = self.tests.setdefault(path, {})
                of_file.setdefault((int(first), int(last)), set()).update(names[i] for i in numbers)

    def tests_of_line(self, path: str, line: int) -> set[str]:
        """Return the names of the tests that execute the smallest block around a line, none outside functions."""
        around = [block for block in self.tests.get(path, {}) if block[0] <= line <= block[1]]
        return self.tests[path][min(around, key=lambda block: block[1] - block[0])] if around else set()

    def tests_of_lines(self, path: str, lines: range) -> set[str]:
        """Return the names of the tests that execute a block inside of some lines."""
        inside = [
            tests for (first, last), tests in self.tests.get(path, {}).items() if first in lines and last in lines
        ]
        return set().union(*inside)

    def tests_of_file(self, path: str) -> set[str]:
        """Return the names of the tests that execute any block of a file."""
        return set().union(*self.tests.get(path, {}).values())
