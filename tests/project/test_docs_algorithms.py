"""The tables of docs/algorithms.md list all equations of the papers, and code and tests that exist."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

HERE = Path(__file__).parents[1]
PAGE = (HERE.parent / "docs" / "algorithms.md").read_text(encoding="utf-8")
SCOPES = ("", ".algorithms", ".algorithms.operational", ".algorithms.derivatives")
"""Packages of `legged` within which the page names code."""
PAPERS = {"Featherstone and Orin 2000": (29, 0), "Rodriguez, Jain and Kreutz-Delgado 1991": (26, 5)}
"""How many numbered equations and lemmas each has."""


def rows() -> list[tuple[str, str, str, str]]:
    """Return (heading, first cell, code, test) of every row of the tables whose last columns are code and test."""
    found, heading, inside = [], "", False
    for line in PAGE.splitlines():
        heading = line[3:] if line.startswith("## ") else heading
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if not line.startswith("|"):
            inside = False
        elif cells[-2:] == ["code", "test"]:
            inside = True
        elif inside and not cells[0].startswith("---"):
            found.append((heading, cells[0], *cells[-2:]))
    return found


ROWS = rows()
CODE = sorted({name for *_, code, _ in ROWS for name in re.findall(r"`([^`]+)`", code)})
TESTS = sorted({name for *_, test in ROWS for name in re.findall(r"`([^`]+)`", test)})
DEFINED = {name for file in HERE.rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)}


def exists(name: str) -> bool:
    """Tell whether a file, or a module, function, class or attribute of the framework has a name."""
    if "/" in name:
        return (HERE.parent / name).is_file()
    parts = name.split(".")
    for scope in SCOPES:
        for cut in range(len(parts), -1, -1):
            try:
                module = importlib.import_module(".".join([f"legged{scope}", *parts[:cut]]))
                reduce(getattr, parts[cut:], module)
            except (ImportError, AttributeError):
                continue
            return True
    return False


@pytest.mark.parametrize("paper", PAPERS)
def test_every_equation_and_lemma_has_a_row_with_code_and_a_test(paper):
    own = [(first, code, test) for heading, first, code, test in ROWS if heading.startswith(paper)]
    told = " ".join(first for first, *_ in own)
    equations, lemmas = PAPERS[paper]
    assert {int(n) for n in re.findall(r"\((\d+)\)", told)} == set(range(1, equations + 1))
    assert {int(n) for n in re.findall(r"lemma (\d+)", told)} == set(range(1, lemmas + 1))
    assert own[0][2] != "same" and all("`" in code and ("`" in test or test == "same") for _, code, test in own)


def test_code_that_the_tables_name_exists():
    assert len(CODE) > 60
    assert [name for name in CODE if not exists(name)] == []


def test_tests_that_the_tables_name_exist():
    files = {name for name in TESTS if "/" in name}
    assert [name for name in TESTS if name not in DEFINED and not (name in files and exists(name))] == []


# Each row's tests execute the row's code. This file, run as a program, executes the tests and prints what they miss.


def checks() -> dict[tuple[str, str], set[str]]:
    """Return (heading, name of code) -> names of the tests that may check it; a row "same" has the previous row's."""
    found: dict[tuple[str, str], set[str]] = {}
    last: set[str] = set()
    for heading, _, code, test in ROWS:
        named = set(re.findall(r"`([^`]+)`", test))
        last = named | (last if test.startswith("same") else set())
        for name in re.findall(r"`([^`]+)`", code):
            found.setdefault((heading, name), set()).update(last)
    return found


def named_object(name: str) -> Any:
    """Return the module, class, function or attribute of the framework that the page names."""
    parts = name.split(".")
    for scope in reversed(SCOPES):
        for cut in range(len(parts), -1, -1):
            try:
                module = importlib.import_module(".".join([f"legged{scope}", *parts[:cut]]))
                return reduce(inspect.getattr_static, parts[cut:], module)
            except (ImportError, AttributeError):
                continue
    raise AttributeError(name)


def code_objects(named: Any) -> set[CodeType]:
    """Return the code of a function, or of all functions and methods of a class or module."""
    if inspect.ismodule(named) or inspect.isclass(named):
        own = [each for each in vars(named).values() if not inspect.ismodule(each)]
        inside = named.__name__ if inspect.ismodule(named) else named.__module__
        return set().union(*(code_objects(each) for each in own if getattr(each, "__module__", inside) == inside))
    for attribute in ("fget", "func", "__func__"):
        named = getattr(named, attribute, named)
    named = inspect.unwrap(named) if callable(named) else named
    return {named.__code__} if inspect.isfunction(named) else set()


class CallRecorder:
    """A pytest plugin that records which of the code that the page names each test executes."""

    def __init__(self) -> None:
        self.wanted: dict[str, set[tuple[str, str]]] = {}
        self.code: dict[CodeType, set[tuple[str, str]]] = {}
        self.files: dict[str, set[tuple[str, str]]] = {}
        self.missed = set()
        for row, tests in checks().items():
            codes = set() if "/" in row[1] else code_objects(named_object(row[1]))
            if not codes and "/" not in row[1]:
                continue  # data
            self.missed.add(row)
            for test in tests:
                self.wanted.setdefault(test, set()).add(row)
            for code in codes:
                self.code.setdefault(code, set()).add(row)
            if "/" in row[1]:
                self.files.setdefault(str(HERE.parent / row[1]), set()).add(row)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Execute a test if one of its rows still waits for a call."""
        rows = self.wanted.get(item.originalname, set()) | self.wanted.get(
            str(item.path.relative_to(HERE.parent)), set()
        )
        open_rows = self.missed & rows
        if not open_rows:
            item.add_marker(pytest.mark.skip)
            return (yield)

        def called(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                code = frame.f_code
                found = self.code.get(code) or self.files.get(code.co_filename)
                if found:
                    self.missed -= found & open_rows

        sys.setprofile(called)
        try:
            return (yield)
        finally:
            sys.setprofile(None)

    def pytest_sessionfinish(self) -> None:
        """Print the rows whose code no test executed."""
        print(json.dumps(sorted(self.missed)))


@pytest.mark.slow
def test_tests_that_the_tables_name_execute_the_code_of_their_rows():
    done = subprocess.run([sys.executable, __file__], cwd=HERE.parent, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("[[") or line == "[]"]
    assert found, done.stdout + done.stderr
    assert json.loads(found[-1]) == []


if __name__ == "__main__":
    recorder, files = CallRecorder(), []
    for file in sorted(HERE.rglob("test_*.py")):
        own = set(re.findall(r"^def (test_\w+)", file.read_text(), re.M)) & set(recorder.wanted)
        whole = str(file.relative_to(HERE.parent)) in recorder.wanted
        files += [str(file)] if whole else [f"{file}::{name}" for name in sorted(own)]
    pytest.main([*files, "-q", "-p", "no:cacheprovider", "-p", "no:xdist"], plugins=[recorder])
