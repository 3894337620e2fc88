"""The tables of docs/reference/algorithms.md list all equations of the papers, and code and tests that exist."""

import importlib
import inspect
import os
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from executed_lines import Record

HERE = Path(__file__).parents[2]
PAGE = (HERE.parent / "docs" / "reference" / "algorithms.md").read_text(encoding="utf-8")
SCOPES = ("", ".algorithms", ".algorithms.operational", ".algorithms.derivatives")
"""Packages of `legged` within which the page names code."""
PAPERS = {"Featherstone and Orin 2000": (29, 0), "Rodriguez, Jain and Kreutz-Delgado 1991": (26, 5)}
"""How many numbered equations and lemmas each has."""


def rows() -> list[tuple[str, str, str, str]]:
    """Return (heading, first cell, code, test) of every row of the tables whose last columns are code and test."""
    table, heading, inside = [], "", False
    for line in PAGE.splitlines():
        heading = line[3:] if line.startswith("## ") else heading
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if not line.startswith("|"):
            inside = False
        elif cells[-2:] == ["code", "test"]:
            inside = True
        elif inside and not cells[0].startswith("---"):
            table.append((heading, cells[0], *cells[-2:]))
    return table


ROWS = rows()
CODE = sorted({name for *_, code, _ in ROWS for name in re.findall(r"`([^`]+)`", code)})
TESTS = sorted({name for *_, test in ROWS for name in re.findall(r"`([^`]+)`", test)})
DEFINED = {name for file in HERE.rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)}


def named(name: str) -> object:
    """Return the file, module, function, class or attribute that has a name, or None."""
    if "/" in name:
        path = HERE.parent / name
        return path if path.is_file() else None
    parts = name.split(".")
    for scope in SCOPES:
        for cut in range(len(parts), -1, -1):
            try:
                module = importlib.import_module(".".join([f"legged{scope}", *parts[:cut]]))
                return reduce(getattr, parts[cut:], module)
            except (ImportError, AttributeError):
                continue
    return None


def place(name: str) -> tuple[str, range]:
    """Return the file and the lines of the body of a file, module, function, class or attribute."""
    thing: Any = named(name)
    if isinstance(thing, Path):
        return str(thing), range(1, 10**6)
    if isinstance(thing, ModuleType):
        return str(thing.__file__), range(1, 10**6)
    thing = inspect.unwrap(getattr(thing, "fget", None) or getattr(thing, "func", None) or thing)
    text, start = inspect.getsourcelines(thing)
    return str(inspect.getsourcefile(thing)), range(start + 1, start + len(text))


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
    assert [name for name in CODE if named(name) is None] == []


def test_tests_that_the_tables_name_exist():
    files = {name for name in TESTS if "/" in name}
    assert [name for name in TESTS if name not in DEFINED and not (name in files and named(name))] == []


def executed(folder: Path) -> dict[tuple[str, int], set[str]]:
    """Run the tests of the tables, and return the tests and test files that execute each line of the project."""
    where = {
        name: file
        for file in HERE.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    }
    names = [HERE.parent / name if "/" in name else f"{where[name]}::{name}" for name in TESTS]
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "mutants", "-p", "no:cacheprovider", "-m", "", *map(str, names)],
        cwd=HERE.parent,
        env={**os.environ, "PYTHONPATH": paths, "MUTANTS_RECORD": str(folder / "lines.json")},
        check=True,
    )
    lines_of_tests: dict[tuple[str, int], set[str]] = {}
    for path, blocks in Record([folder / "lines.json"]).tests.items():
        for (first, last), tests in blocks.items():
            nodes = [test.split("[")[0].split("::") for test in tests]
            for line in range(first, last + 1):
                lines_of_tests.setdefault((str(HERE.parent / path), line), set()).update(
                    x for node in nodes for x in (node[0], node[-1])
                )
    return lines_of_tests


@pytest.mark.slow
def test_each_test_executes_code_of_its_row_and_all_code_is_executed(tmp_path):
    lines_of_tests, tests, wrong = executed(tmp_path), [], []
    for _, first, code, test in ROWS:
        tests = [*(tests if test.startswith("same") else []), *re.findall(r"`([^`]+)`", test)]
        of_row = set()
        for name in re.findall(r"`([^`]+)`", code):
            file, body = place(name)
            by = set().union(
                *(names for (path, line), names in lines_of_tests.items() if path == file and line in body)
            )
            of_row |= by
            wrong += [f"{first}: no test executes {name}"] if not by.intersection(tests) else []
        wrong += [f"{first}: {name} executes none of the code" for name in tests if name not in of_row]
    assert wrong == [], "\n".join(wrong)
