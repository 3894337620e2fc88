"""Mutation study: change one line of the numerical code at a time, and list the changes that no test detects.

`make mutants` (or `python tests/mutants.py --number 300 --seed 1`) draws single-line changes of the numerical code
(`mutations`) and applies each to a copy of the checkout. A run of each test file in a process of its own first records
which lines each test executes. For each change the tests that execute the changed line are run, shortest first, until
one fails, and then the other tests of their files, which may use what an earlier test left in memory. With
`--no-record`, which saves the hour of the record, the test files are run that mention the changed function or module. A
change is

- killed if a test fails, or takes far longer than with the unchanged code;
- a survivor if none does: a hole in the tests, or a change that leaves the function the same;
- undecided if no test failed and not all could be run in the time for one change.

The study is kept in `--folder`: the copy, the record and the outcomes. A second call with the same folder goes on where
the first ended, with the code as it was; delete the folder to study the code as it is now.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import coverage
import pytest
from mutations import Mutant, changed, drawn, names_around

ROOT = Path(__file__).parents[1]

FEW_FILES = 4
"""Number of test files that are run first; collecting many files takes longer than their shortest tests."""

WITHOUT = ("tests/app", "tests/project", "tests/compiler", "tests/files", "tests/verification", "tests/viewer")
"""Folders of tests that are not run: they test other parts than the numerical code, most of which they execute."""

LONGEST = 1.0
"""Longest computing time of a recorded test, [s]; longer ones are run with the other tests of their files."""
LONGEST_UNRECORDED = 5.0
"""Longest computing time of a test without a record, [s]; longer ones are skipped."""
MOST_RELEVANT, MORE_RELEVANT = 2, 8
"""Numbers of test files that are run without a record: the most relevant ones first, then more of them."""


def _stop(*_: Any) -> None:
    raise TimeoutError("the test takes too long for the study")


class LineRecorder:
    """A pytest plugin that records which lines each test executes, and how long each test takes that passes."""

    def __init__(self, name: Path):
        self.durations = name.with_suffix(".jsonl")
        folders = [str(Path.cwd() / folder) for folder in ("legged", "controllers", "benchmarks", "examples")]
        options: dict[str, Any] = {"config_file": False, "source": folders, "messages": False}
        options["omit"] = ["*/legged/compiler/*"]  # tracing it would take most of the time
        self.coverage = coverage.Coverage(data_file=str(name.with_suffix(".coverage")), **options)
        self.failed: set[str] = set()
        self.coverage.start()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember a test that fails with the unchanged code."""
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Record the lines of one test with its fixtures."""
        self.coverage.switch_context(item.nodeid)
        start = time.process_time()
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, float(os.environ.get("MUTANTS_LONGEST", 0.0)))
        answer = yield
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        if item.nodeid not in self.failed:
            with self.durations.open("a", encoding="utf-8") as file:
                file.write(json.dumps([item.nodeid, time.process_time() - start]) + "\n")
        return answer

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        self.coverage.stop()
        self.coverage.save()


class TimeLimit:
    """A pytest plugin that skips tests that take long."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Skip a test that exceeds the computing time."""
        signal.signal(signal.SIGPROF, lambda *_: pytest.skip("the test takes too long for the study"))
        signal.setitimer(signal.ITIMER_PROF, LONGEST_UNRECORDED)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)


def pytest_configure(config: Any) -> None:
    """Register the recorder or the limit of time; `pytest -p mutants` loads this file as a plugin."""
    if name := os.environ.get("MUTANTS_RECORD"):
        config.pluginmanager.register(LineRecorder(Path(name)))
    if "MUTANTS_LIMIT" in os.environ:
        config.pluginmanager.register(TimeLimit())


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep the tests whose names the file $MUTANTS_TESTS lists, in its order; for a record, one of each kind."""
    if "MUTANTS_RECORD" in os.environ:
        seen: set[Any] = set()
        items[:] = [item for item in items if not seen.issuperset(new := _kinds(item)) and not seen.update(new)]
    if name := os.environ.get("MUTANTS_TESTS"):
        place = {test: i for i, test in enumerate(Path(name).read_text(encoding="utf-8").splitlines())}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


def _kinds(item: Any) -> set[Any]:
    """Return what a test has that tests of the same function may not have: its parameters, all numbers being alike."""
    function = item.nodeid.partition("[")[0]
    parameters = item.callspec.params.items() if hasattr(item, "callspec") else ()
    kinds = {(function, name, 0 if type(value) in (int, float) else id(value)) for name, value in parameters}
    return {(function,), *kinds}


def run_pytest(copy: Path, arguments: Sequence[str], seconds: float, variables: dict[str, str]) -> None:
    """Run tests in a process of their own, which ends with the exit status of pytest."""
    os.chdir(copy)
    os.environ |= variables
    sys.path[:0] = [str(copy), str(copy / "tests")]
    sys.dont_write_bytecode = "MUTANTS_RECORD" not in variables  # of changed modules
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    with open(copy.with_suffix(".log"), "w", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    # Modules of pytest's plugins are imported before it starts, so it cannot rewrite their assertions.
    ignored = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    sys.exit(pytest.main(["-p", "mutants", "-p", "no:cacheprovider", *ignored, *arguments]))


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


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """Return the files and folders of a folder that are not part of the source."""
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache")(folder, names)
    return ignored | ({"results"} if Path(folder) == ROOT else set())


class Study:
    """A copy of the checkout, the record of its tests, and the outcomes of the changes tried so far.

    Args:
        folder: Folder of the study.
        processes: Number of processes that run tests.
    """

    def __init__(self, folder: Path, processes: int):
        self.folder = folder.resolve()
        self.copies = [self.folder / f"copy-{i}" for i in range(processes)]
        self.record = self.folder / "record"
        self.record.mkdir(parents=True, exist_ok=True)
        for copy in self.copies:
            if not copy.exists():
                source = self.copies[0] if copy != self.copies[0] else ROOT
                shutil.copytree(source, copy.with_suffix(".draft"), ignore=_not_copied)
                copy.with_suffix(".draft").rename(copy)

    def run(self, copy: Path, *arguments: str, seconds: float = 1e5, **variables: str) -> int:
        """Run tests in a copy of the checkout, and return the exit status; SIGXCPU ends them after a computing time."""
        variables |= {"LEGGED_CACHE": str(self.folder / "cache"), "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'tests'}"}
        process = FORKS.Process(target=run_pytest, args=(copy, arguments, seconds, variables))
        process.start()
        process.join()
        assert process.exitcode is not None
        return process.exitcode

    def parallel(self, work: Any, tasks: list[Any]) -> Iterator[Any]:
        """Yield `work(copy, task)` of each task as it ends; a copy is used by one task at a time."""
        free: SimpleQueue[Path] = SimpleQueue()
        for copy in self.copies:
            free.put(copy)

        def one(task: Any) -> Any:
            copy = free.get()
            try:
                return work(copy, task)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(len(self.copies)) as pool:
            for done in as_completed([pool.submit(one, task) for task in tasks]):
                yield done.result()

    def record_tests(self) -> None:
        """Record the lines that each test executes, one test file at a time."""
        copy = self.copies[0]
        files = sorted(str(path.relative_to(copy)) for path in (copy / "tests").rglob("test_*.py"))
        files = [file for file in files if not file.startswith(WITHOUT)]
        missing = [file for file in files if not self._name(file).with_suffix(".done").exists()]
        for file, code in self.parallel(self._record_file, missing):
            if code not in (0, 5):
                print(f"tests of the unchanged code fail in {file}", flush=True)
            self._name(file).with_suffix(".done").touch()

    def _name(self, file: str) -> Path:
        return self.record / file.removesuffix(".py").replace("/", "-")

    def _record_file(self, copy: Path, file: str) -> tuple[str, int]:
        name = self._name(file)
        for rest in (name.with_suffix(".jsonl"), name.with_suffix(".coverage")):
            rest.unlink(missing_ok=True)
        return file, self.run(copy, file, MUTANTS_RECORD=str(name), MUTANTS_LONGEST=str(LONGEST))

    @cached_property
    def durations(self) -> dict[str, float]:
        """Duration of each test that passes [s]."""
        lines = [line for path in self.record.glob("*.jsonl") for line in path.read_text(encoding="utf-8").splitlines()]
        return dict(json.loads(line) for line in lines)

    @cached_property
    def data(self) -> list[coverage.CoverageData]:
        """The lines that the tests of each test file execute."""
        found = []
        for path in sorted(self.record.glob("*.coverage")):
            data = coverage.CoverageData(str(path))
            data.read()
            found.append(data)
        return found

    def tests(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """Return the recorded tests that execute the changed line, shortest first, and all test files that execute it;
        for a line that is executed at import, the tests and test files that execute any line of its file."""
        found: set[str] = set()
        of_file: set[str] = set()
        for copy in self.copies:
            for data in self.data:
                lines = data.contexts_by_lineno(str(copy / mutant.path))
                found |= set(lines.get(mutant.line, ()))
                of_file |= {test for names in lines.values() for test in names}
        tests = of_file if found == {""} else found
        recorded = sorted(tests & self.durations.keys(), key=self.durations.__getitem__)
        others = sorted(tests - self.durations.keys() - {""})  # that fail or take too long
        return recorded, list(dict.fromkeys(test.partition("::")[0] for test in [*recorded, *others]))

    @cached_property
    def texts(self) -> dict[str, str]:
        """Text of each test file."""
        paths = sorted((self.copies[0] / "tests").rglob("test_*.py"))
        names = [str(path.relative_to(self.copies[0])) for path in paths]
        texts = [path.read_text(encoding="utf-8") for path in paths]
        return {name: text for name, text in zip(names, texts, strict=True) if not name.startswith(WITHOUT)}

    def relevant_files(self, mutant: Mutant) -> list[str]:
        """Return the test files that mention the changed function, its module or its package, the most relevant first.

        A file in the folder of the package's tests, or named as the module, counts as relevant too.
        """
        inside, others = names_around(self.copies[0] / mutant.path, mutant.line)
        module, package = mutant.path.stem, mutant.path.parts[1]

        def relevance(file: str) -> float:
            text, folders = self.texts[file], Path(file).parts
            score = sum(8.0 / len(inside) for name in inside if name in text)
            score += sum(4.0 / len(others) for name in others if name in text)
            return score + 3.0 * (module in text) + 4.0 * (module in folders[-1]) + 3.0 * (package in folders[:-1])

        scores = {file: relevance(file) for file in self.texts}
        return sorted((file for file in scores if scores[file] > 0.0), key=lambda file: -scores[file])

    def verdict_by_files(self, copy: Path, mutant: Mutant, seconds: float) -> str:
        """Return "killed", "survived" or "undecided" for one change, from the most relevant test files."""
        files = self.relevant_files(mutant)
        with changed(copy, mutant):
            for part in (files[:MOST_RELEVANT], files[MOST_RELEVANT:MORE_RELEVANT]):
                code = self.run(copy, "-x", *part, seconds=3.0 * seconds, MUTANTS_LIMIT="") if part else 0
                if code not in (0, 5, -signal.SIGXCPU):
                    return "killed"
        return "survived" if code in (0, 5) else "undecided"

    def verdict(self, copy: Path, mutant: Mutant, seconds: float) -> str:
        """Return "killed", "survived" or "undecided" for one change."""
        tests, files = self.tests(mutant)
        totals = list(accumulate(self.durations[test] for test in tests))
        within = tests[: bisect(totals, seconds)]
        few = [test for test in within if test.partition("::")[0] in files[:FEW_FILES]]
        if not files:
            return "survived"
        with changed(copy, mutant):
            if self._fails(copy, few) or (within != few and self._fails(copy, within)):
                return "killed"
            code = self.run(copy, "-x", *files, seconds=5.0 * seconds)
        return {0: "survived", -signal.SIGXCPU: "undecided"}.get(code, "killed")

    def _fails(self, copy: Path, tests: list[str]) -> bool:
        """Return whether one of some recorded tests fails, or takes far longer than with the unchanged code."""
        selection = copy / "tests-to-run.txt"
        selection.write_text("\n".join(tests), encoding="utf-8")
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        limit = 30.0 + 5.0 * sum(self.durations[test] for test in tests)
        return bool(tests) and self.run(copy, "-x", *files, seconds=limit, MUTANTS_TESTS=str(selection)) not in (0, 5)

    def outcomes(self, changes: list[Mutant], seconds: float) -> dict[str, list[Mutant]]:
        """Return the changes by their outcomes; known ones are read from a file, new ones added."""
        file = self.folder / "outcomes.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        known = {str(mutant): word for word, mutant in map(json.loads, lines)}
        found: dict[str, list[Mutant]] = {}
        missing = [mutant for mutant in changes if str(mutant) not in known]
        verdict = self.verdict if any(self.record.glob("*.done")) else self.verdict_by_files
        words = self.parallel(lambda copy, mutant: (mutant, verdict(copy, mutant, seconds)), missing)
        for mutant, word in words:
            known[str(mutant)] = word
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps([word, str(mutant)]) + "\n")
            print(f"{word:9} {mutant}", flush=True)
        for mutant in changes:
            found.setdefault(known[str(mutant)], []).append(mutant)
        return found


def main() -> None:
    """Draw changes, run the tests on each, and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=300, help="number of changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the paths of files to change")
    parser.add_argument("--seconds", type=float, default=20.0, help="time for the first tests of one change [s]")
    parser.add_argument(
        "--record", action=argparse.BooleanOptionalAction, default=True, help="record the tests; else guess by names"
    )
    parser.add_argument("--processes", type=int, default=2, help="number of processes that run tests")
    parser.add_argument("--folder", type=Path, default=ROOT / "results" / "mutants", help="folder of the study")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    FORKS.set_forkserver_preload(["__main__", *LIBRARIES])
    study = Study(options.folder, options.processes)
    if options.record:
        study.record_tests()
    changes = drawn(study.copies[0], options.number, options.seed, options.only)
    found = study.outcomes(changes, options.seconds)
    killed, undecided = len(found.pop("killed", [])), found.pop("undecided", [])
    survivors = [mutant for mutants in found.values() for mutant in mutants]
    lines = [f"{killed} of {killed + len(survivors)} decided changes killed, {len(undecided)} undecided"]
    for word, mutants in (("survived", survivors), ("undecided", undecided)):
        lines += [f"{word}: {mutant}" for mutant in mutants]
    print("\n".join(lines))
    (options.folder / "survivors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
