"""Mutation study: change one line of the numerical code at a time, and list the changes that no test detects.

`make mutants` (or `python tests/mutants.py --number 300 --seed 1`) draws single-line changes of the packages in
`PACKAGES` and applies each to a copy of the checkout. One run of all tests first records which lines each test
executes; the tests that execute the changed line are then run, shortest first, until one fails. A change that some test
fails on is killed; one that no test fails on is a survivor, and either stands for a hole in the tests or leaves the
function the same. The table of survivors goes to the terminal and, with `--output`, into a file.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

ROOT = Path(__file__).parents[1]

PACKAGES = {
    "legged/spatial.py": ("dynamics", "robot"),
    "legged/rotations.py": ("robot", "dynamics"),
    "legged/taylor.py": ("robot", "controllers"),
    "legged/robot": ("robot", "dynamics", "files"),
    "legged/dynamics": ("dynamics", "robot", "algorithms"),
    "legged/denoc": ("dynamics",),
    "legged/algorithms": ("algorithms",),
    "legged/loops": ("loops",),
    "legged/ground": ("ground", "simulation"),
    "legged/contact": ("contact", "simulation"),
    "legged/simulation": ("simulation", "contact", "controllers"),
    "legged/sensors": ("sensors",),
    "legged/conversions": ("conversions",),
    "controllers": ("controllers", "app"),
}
"""Files and folders that are changed, and the folders of tests for changes outside of functions."""

SWAPS: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.MatMult: (),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
NAMES = {
    "sin": "cos",
    "cos": "sin",
    "maximum": "minimum",
    "minimum": "maximum",
    "max": "min",
    "min": "max",
    "zeros": "ones",
}
SKIPPED = ("raise ", "warn", "f'", 'f"', "__repr__", "import ", "assert ")


class Mutant(NamedTuple):
    """One change: where, the line before and after."""

    path: Path
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}\n    - {self.before.strip()}\n    + {self.after.strip()}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every change of one file: operators, comparisons, numbers, function names, signs, and dropped terms."""
    source = (ROOT / path).read_text(encoding="utf-8")
    lines = source.splitlines()
    tree = ast.parse(source)
    strings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or node.lineno != node.end_lineno or node.lineno in strings:
            continue
        text = lines[node.lineno - 1]
        heading = text.lstrip().startswith(("def ", "class ", "@")) or "->" in text
        if heading or any(word in text for word in SKIPPED):
            continue
        old = text.encode()[node.col_offset : node.end_col_offset].decode()
        for new in _variants(node):
            if new != old:
                before, after = text.encode()[: node.col_offset].decode(), text.encode()[node.end_col_offset :].decode()
                yield Mutant(path, node.lineno, text, before + new + after)


def _variants(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        for other in SWAPS.get(type(node.op), ()):
            yield f"({ast.unparse(ast.BinOp(node.left, other(), node.right))})"
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield f"({left})"
        if isinstance(node.op, ast.MatMult):
            yield f"(({left}) @ ({right}) * 1.001)"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in SWAPS.get(type(node.ops[0]), ()):
            yield f"({ast.unparse(ast.Compare(node.left, [other()], node.comparators))})"
    elif isinstance(node, ast.BoolOp):
        for other in SWAPS.get(type(node.op), ()):
            yield f"({ast.unparse(ast.BoolOp(other(), node.values))})"
    elif (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield repr(node.value + 1)
        if isinstance(node.value, float) and node.value:
            yield repr(node.value * 1.01)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield f"{ast.unparse(node.value)}.{NAMES[node.attr]}"
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield NAMES[node.id]


def drawn(number: int, seed: int, only: str) -> list[Mutant]:
    """Return changes drawn evenly over the packages by their numbers of lines."""
    found = []
    for place in PACKAGES:
        files = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
        for file in files:
            path = file.relative_to(ROOT)
            if only in str(path):
                by_line: dict[int, list[Mutant]] = {}
                for mutant in mutants(path):
                    by_line.setdefault(mutant.line, []).append(mutant)
                found += by_line.values()
    rng = random.Random(seed)
    return [rng.choice(choices) for choices in rng.sample(found, min(number, len(found)))]


class LineRecorder:
    """A pytest plugin that records which lines of the checkout each test executes, and its duration."""

    def __init__(self, folder: Path):
        name = folder / f"lines-{os.getpid()}"
        self.durations = name.with_suffix(".jsonl")
        self.coverage = coverage.Coverage(
            data_file=str(name.with_suffix(".coverage")),
            config_file=False,
            source=["legged", "controllers"],
            messages=False,
        )
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Record the lines of one test with its fixtures."""
        self.coverage.switch_context(item.nodeid)
        start = time.monotonic()
        answer = yield
        with self.durations.open("a", encoding="utf-8") as file:
            file.write(json.dumps([item.nodeid, time.monotonic() - start]) + "\n")
        return answer

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        self.coverage.stop()
        self.coverage.save()


def pytest_configure(config: Any) -> None:
    """Register the recorder in the processes that run tests; `pytest -p mutants` loads this file as a plugin."""
    if config.getoption("numprocesses", None) is None or hasattr(config, "workerinput"):
        config.pluginmanager.register(LineRecorder(Path(os.environ["MUTANTS_FOLDER"])))


class Record:
    """The tests that execute each line of a checkout.

    Args:
        copy: The checkout.
        folder: Folder for files of the record.
        environment: Environment of the tests.
    """

    def __init__(self, copy: Path, folder: Path, environment: dict[str, str]):
        environment = {**environment, "MUTANTS_FOLDER": str(folder), "PYTHONPATH": str(copy / "tests")}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "mutants", "-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"the tests of the unchanged code fail:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        self.durations: dict[str, float] = {}
        for path in folder.glob("lines-*.jsonl"):
            self.durations.update(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
        self.data = [coverage.CoverageData(str(path)) for path in folder.glob("lines-*.coverage")]
        for data in self.data:
            data.read()
        self.copy = copy

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute the changed line, shortest first; for lines run at import, folders of tests."""
        path = str((self.copy / mutant.path).resolve())
        found = {test for data in self.data for test in data.contexts_by_lineno(path).get(mutant.line, ())}
        if found == {""}:
            place = next(place for place in PACKAGES if str(mutant.path).startswith(place))
            return [f"tests/{folder}" for folder in PACKAGES[place]]
        return sorted(found - {""}, key=lambda test: self.durations.get(test, 0.0))


def verdict(copy: Path, mutant: Mutant, tests: list[str], seconds: float, environment: dict[str, str]) -> str:
    """Return "killed", "survived" or "undecided" (the tests took too long) for one change."""
    if not tests:
        return "survived"
    target = copy / mutant.path
    source = target.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    lines[mutant.line - 1] = mutant.after + "\n"
    target.write_text("".join(lines), encoding="utf-8")
    arguments = copy / "tests-to-run.txt"
    arguments.write_text("\n".join(tests), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"@{arguments}"]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "undecided"
    finally:
        target.write_text(source, encoding="utf-8")
    return "survived" if done.returncode in (0, 5) else "killed"


def main() -> None:
    """Draw changes, run the tests on each, and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=300, help="number of changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the paths of files to change")
    parser.add_argument("--seconds", type=float, default=300.0, help="time for the tests of one change [s]")
    parser.add_argument("--output", type=Path, help="file for the table of survivors")
    options = parser.parse_args()
    outcomes: dict[str, list[Mutant]] = {"killed": [], "survived": [], "undecided": []}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "results", ".*_cache")
        shutil.copytree(ROOT, copy, ignore=ignored)
        environment = {**os.environ, "LEGGED_CACHE": str(Path(folder) / "cache")}
        record = Record(copy, Path(folder), environment)
        for mutant in drawn(options.number, options.seed, options.only):
            word = verdict(copy, mutant, record.tests(mutant), options.seconds, environment)
            outcomes[word].append(mutant)
            print(f"{word:9} {mutant}", flush=True)
    decided = len(outcomes["killed"]) + len(outcomes["survived"])
    lines = [f"{len(outcomes['killed'])} of {decided} decided changes killed, {len(outcomes['undecided'])} undecided"]
    lines += [str(mutant) for mutant in outcomes["survived"]]
    print("\n".join(lines))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
