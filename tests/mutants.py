"""Mutation study: change one line of the numerical code at a time, and list the changes that no test detects.

`make mutants` (or `python tests/mutants.py --number 300 --seed 1`) draws single-line changes of the numerical code
(`mutations`) and applies each to a copy of the checkout. A run of each test file first records which lines each test
executes (`executed_lines`). For each change the tests that execute the changed line are run, those of its package
first, then those of its function, until one fails, and then all tests of their files, which may take longer, have other
numbers, or use what an earlier test left in memory. The first runs share imported modules (`forked_runs`), the last one
imports them with the change. Tests outside of `--tests` are not run. A change is

- killed if a test fails, or takes far longer than with the unchanged code;
- a survivor if none does: a hole in the tests, or a change that leaves the function the same;
- undecided if no test failed and not all could be run in the time for one change.

A test that fails with the unchanged code, too, is left out of this and all later runs.

The study is kept in `--folder`: the copy, the record and the outcomes. A second call with the same folder goes on where
the first ended, with the code as it was; delete the folder to study the code as it is now.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
from bisect import bisect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from executed_lines import LineRecorder, Record
from forked_runs import FORKS, LIBRARIES, Worker
from mutations import Mutant, changed, drawn, function_around, mentions, restore

ROOT = Path(__file__).parents[1]

WITHOUT = ("tests/app", "tests/project", "tests/compiler", "tests/verification", "tests/viewer")
"""Folders of tests that are not run: they test other parts than the numerical code, most of which they execute."""

LONGEST = 1.0
"""Longest computing time of a recorded test, [s]; longer ones are run with the other tests of their files."""
FEW_FILES = 4
"""Number of test files that are run first; collecting many files takes longer than their shortest tests."""
FIRST = 2.0
"""Computing time of the first tests of a change, as recorded, [s]."""


def pytest_configure(config: Any) -> None:
    """Register the recorder; `pytest -p mutants` loads this file as a plugin."""
    if name := os.environ.get("MUTANTS_RECORD"):
        config.pluginmanager.register(LineRecorder(Path(name), float(os.environ.get("MUTANTS_LONGEST", 0.0))))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep the tests whose names the file $MUTANTS_TESTS lists, in its order; for a record, one of each kind.

    Leave out those that the file $MUTANTS_WITHOUT lists.
    """
    if "MUTANTS_RECORD" in os.environ:
        seen: set[Any] = set()
        items[:] = [item for item in items if not seen.issuperset(new := _kinds(item)) and not seen.update(new)]
    if name := os.environ.get("MUTANTS_TESTS"):
        place = {test: i for i, test in enumerate(Path(name).read_text(encoding="utf-8").splitlines())}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])
    if name := os.environ.get("MUTANTS_WITHOUT"):
        without = Path(name).read_text(encoding="utf-8").splitlines()
        items[:] = [item for item in items if item.nodeid not in without]


def pytest_runtest_logreport(report: Any) -> None:
    """Write the name of a test that fails to the file $MUTANTS_FAILED."""
    if report.failed and (name := os.environ.get("MUTANTS_FAILED")):
        Path(name).write_text(report.nodeid, encoding="utf-8")


def _kinds(item: Any) -> set[Any]:
    """Return what a test has that tests of the same function may not have: its parameters, all numbers being alike."""
    function = item.nodeid.partition("[")[0]
    parameters = item.callspec.params.items() if hasattr(item, "callspec") else ()
    kinds = {(function, name, 0 if type(value) in (int, float) else id(value)) for name, value in parameters}
    return {(function,), *kinds}


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
        self.failing = self.folder / "failing.txt"  # names of tests that fail with the unchanged code
        self.failing.touch()
        for copy in self.copies:
            if not copy.exists():
                source = self.copies[0] if copy != self.copies[0] else ROOT
                shutil.copytree(source, copy.with_suffix(".draft"), ignore=_not_copied)
                copy.with_suffix(".draft").rename(copy)
            restore(copy)

    def worker(self, copy: Path, marks: Path | None = None) -> Worker:
        """Return the worker of a copy, which `parallel` starts and ends.

        Args:
            copy: The copy.
            marks: As in `Worker`.
        """
        variables = {"LEGGED_CACHE": str(self.folder / "cache"), "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'tests'}"}
        return Worker(copy, variables, marks)

    def parallel(self, work: Any, tasks: list[Any], marks: Path | None = None) -> Iterator[Any]:
        """Yield `work(worker, task)` of each task as it ends; the worker of a copy does one task at a time."""
        free: SimpleQueue[Worker] = SimpleQueue()
        workers = [self.worker(copy, marks) for copy in self.copies]
        for worker in workers:
            free.put(worker)

        def one(task: Any) -> Any:
            worker = free.get()
            try:
                return work(worker, task)
            finally:
                free.put(worker)

        with ThreadPoolExecutor(len(workers)) as pool:
            for done in as_completed([pool.submit(one, task) for task in tasks]):
                yield done.result()
        for worker in workers:
            worker.close()

    def record_tests(self, folders: tuple[str, ...]) -> None:
        """Record the lines that each test of some folders executes, one test file at a time."""
        copy = self.copies[0]
        files = sorted(str(path.relative_to(copy)) for path in (copy / "tests").rglob("test_*.py"))
        records = {file: self.record / (file.replace("/", "-") + ".json") for file in files}
        chosen = [file for file in files if file.startswith(folders) and not file.startswith(WITHOUT)]
        missing = [file for file in chosen if not records[file].exists()]

        def record(worker: Worker, file: str) -> None:
            variables = {"MUTANTS_RECORD": str(records[file]), "MUTANTS_LONGEST": str(LONGEST)}
            worker.run(["--tb=no", file], 1e5, **variables)

        for _ in self.parallel(record, missing, self.record / "bytecode") if missing else ():
            pass

    @cached_property
    def lines(self) -> Record:
        """The lines that the tests execute."""
        return Record(sorted(self.record.glob("*.json")))

    def tests(self, copy: Path, mutant: Mutant) -> tuple[list[str], list[str]]:
        """Return the recorded tests that execute the changed line or its function, and all test files of such tests.

        Tests of the function follow those of the line: of tests that differ in a number alone one is recorded, and
        another may execute the line. The tests of its package come first, and the shortest of them.
        A line outside functions is executed at import; its tests are those of the lines that mention its name, and then
        those of any line of its file.
        """
        path, durations = str(mutant.path), self.lines.durations
        first = self.lines.tests_of_line(path, mutant.line)
        rest = self.lines.tests_of_lines(path, function_around(copy / path, mutant.line)) - first
        if not first:
            for line in mentions(copy / path, mutant.line):
                first |= self.lines.tests_of_line(path, line)
            rest |= self.lines.tests_of_file(path) - first
        package = "/".join(mutant.path.parent.parts).removeprefix("legged/")

        def order(test: str) -> tuple[bool, float]:
            return not test.startswith(f"tests/{package}"), durations[test]

        recorded = [test for tests in (first, rest) for test in sorted(tests & durations.keys(), key=order)]
        others = sorted((first | rest) - durations.keys())  # that fail or take too long
        return recorded, list(dict.fromkeys(test.partition("::")[0] for test in [*recorded, *others]))

    def verdict(self, worker: Worker, mutant: Mutant, seconds: float) -> str:
        """Return "killed", "survived" or "undecided" for one change."""
        tests, files = self.tests(worker.copy, mutant)
        totals = list(accumulate(self.lines.durations[test] for test in tests))
        if not files:
            return "survived"
        with changed(worker.copy, mutant):
            within = tests[: bisect(totals, seconds)]
            few = [test for test in tests[: bisect(totals, FIRST)] if test.partition("::")[0] in files[:FEW_FILES]]
            if self._fails(worker, mutant, few) or (within != few and self._fails(worker, mutant, within)):
                return "killed"
        return self._verdict_of_files(worker, mutant, files, 3.0 * seconds)

    def _verdict_of_files(self, worker: Worker, mutant: Mutant, files: list[str], seconds: float) -> str:
        """Return the verdict of all tests of some files except those that fail with the unchanged code, too."""
        failed = worker.copy / "failed-test.txt"
        failed.write_text("", encoding="utf-8")
        without = self.failing.read_text(encoding="utf-8").splitlines()
        with changed(worker.copy, mutant):
            variables = {"MUTANTS_FAILED": str(failed), "MUTANTS_WITHOUT": str(self.failing)}
            code = worker.run_imported(["-x", *files], seconds, **variables)
        test = failed.read_text(encoding="utf-8")
        if test and test not in without and worker.run([test], seconds) == 1:
            with self.failing.open("a", encoding="utf-8") as stream:
                stream.write(test + "\n")
            return self._verdict_of_files(worker, mutant, files, seconds)
        return {0: "survived", 5: "survived", -signal.SIGXCPU: "undecided"}.get(code, "killed")

    def _fails(self, worker: Worker, mutant: Mutant, tests: list[str]) -> bool:
        """Return whether one of some recorded tests fails, or takes far longer than with the unchanged code."""
        selection = worker.copy / "tests-to-run.txt"
        selection.write_text("\n".join(tests), encoding="utf-8")
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        limit = 15.0 + 5.0 * sum(self.lines.durations[test] for test in tests)
        return bool(tests) and worker.run(["-x", *files], limit, mutant, MUTANTS_TESTS=str(selection)) not in (0, 5)

    def outcomes(self, changes: list[Mutant], seconds: float) -> dict[str, list[Mutant]]:
        """Return the changes by their outcomes; known ones are read from a file, new ones added."""
        file = self.folder / "outcomes.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        known = {str(mutant): word for word, mutant in map(json.loads, lines)}
        groups: dict[str, list[Mutant]] = {}
        missing = [mutant for mutant in changes if str(mutant) not in known]
        words = self.parallel(lambda worker, mutant: (mutant, self.verdict(worker, mutant, seconds)), missing)
        for mutant, word in words:
            known[str(mutant)] = word
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps([word, str(mutant)]) + "\n")
            print(f"{word:9} {mutant}", flush=True)
        for mutant in changes:
            groups.setdefault(known[str(mutant)], []).append(mutant)
        return groups


def main() -> None:
    """Draw changes, run the tests on each, and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=300, help="number of changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the paths of files to change")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="folders of the tests that are run")
    parser.add_argument("--seconds", type=float, default=20.0, help="time for the first tests of one change [s]")
    parser.add_argument("--processes", type=int, default=2, help="number of processes that run tests")
    parser.add_argument("--folder", type=Path, default=ROOT / "results" / "mutants", help="folder of the study")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    FORKS.set_forkserver_preload(["__main__", *LIBRARIES])
    study = Study(options.folder, options.processes)
    study.record_tests(tuple(options.tests))
    changes = drawn(study.copies[0], options.number, options.seed, options.only)
    outcome = study.outcomes(changes, options.seconds)
    killed, undecided = len(outcome.pop("killed", [])), outcome.pop("undecided", [])
    survivors = [mutant for mutants in outcome.values() for mutant in mutants]
    lines = [f"{killed} of {killed + len(survivors)} decided changes killed, {len(undecided)} undecided"]
    for word, mutants in (("survived", survivors), ("undecided", undecided)):
        lines += [f"{word}: {mutant}" for mutant in mutants]
    print("\n".join(lines))
    (options.folder / "survivors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
