"""The mutation study: which changes are drawn, how they are applied, and which lines a test executes."""

import ast
import importlib.util
import json
import multiprocessing
from pathlib import Path

import pytest
from executed_lines import EXECUTED, Record, mark_blocks
from forked_runs import replace_code, run_pytest
from mutants import Study
from mutations import Mutant, changed, mentions, mutants

TEXT = '''"""A module."""
TOLERANCE = 1e-9
AXES = (0, 2)


def shifted(x: float, by: float = 3.0, scale: float = 1.0) -> float:
    """Return x + by."""
    if x < 0.0:
        return 0.5
    return scale * x + by + TOLERANCE
'''


@pytest.fixture
def module(tmp_path):
    (tmp_path / "module.py").write_text(TEXT)
    specification = importlib.util.spec_from_file_location("module", tmp_path / "module.py")
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


def change(line: int, before: str, after: str) -> Mutant:
    text = TEXT.splitlines()[line - 1]
    return Mutant(Path("module.py"), line, text, text.replace(before, after))


def test_operators_and_numbers_change_but_not_tolerances_defaults_and_texts(module, tmp_path):
    changes = {(mutant.line, mutant.after.strip()) for mutant in mutants(tmp_path, Path("module.py"))}
    assert {line for line, _ in changes} == {3, 8, 9, 10}
    assert {(8, "if (x <= 0.0):"), (10, "return (scale * x + by - TOLERANCE)"), (3, "AXES = (0, 3)")} <= changes


def test_a_change_inside_a_function_replaces_its_code_and_another_asks_for_an_import(module, tmp_path):
    for mutant, result in ((change(9, "0.5", "0.7"), True), (change(3, "2", "3"), False)):
        with changed(tmp_path, mutant):
            assert replace_code(tmp_path, mutant) is result
    assert (module.shifted(-1.0), module.AXES, (tmp_path / "module.py").read_text()) == (0.7, (0, 2), TEXT)


def test_a_change_that_a_signal_has_left_is_undone_before_the_next_one(tmp_path):
    copy = tmp_path / "copy-0"
    copy.mkdir()
    (copy / "module.py").write_text(TEXT)
    interrupted, last = change(9, "0.5", "0.7"), change(3, "2", "3")
    left = [changed(copy, interrupted) for _ in range(2)]
    left[0].__enter__()
    with changed(copy, last):
        assert (copy / "module.py").read_text() == TEXT.replace("(0, 2)", "(0, 3)")
    left[1].__enter__()
    Study(tmp_path, 1)
    assert (copy / "module.py").read_text() == TEXT


class ForkedWorker:
    """Runs tests in forks of this process, which takes less time than to import the project from the copy."""

    def __init__(self, copy: Path):
        self.copy = copy

    def run(self, arguments, seconds, **variables):
        process = multiprocessing.get_context("fork").Process(
            target=run_pytest, args=(self.copy, arguments, seconds, variables)
        )
        process.start()
        process.join()
        return process.exitcode

    run_imported = run


def test_a_test_that_fails_with_the_unchanged_code_kills_no_change(tmp_path):
    study = Study(tmp_path, 0)
    blocks = {"module.py:8-9": [0], "module.py:10-10": [1]}
    record = [{"tests/test_m.py::test_0": None, "tests/test_m.py::test_1": None}, blocks]
    (tmp_path / "record" / "a.json").write_text(json.dumps(record))
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "module.py").write_text(TEXT)
    (tmp_path / "tests" / "test_m.py").write_text(
        "from module import shifted\ndef test_0(): assert False\ndef test_1(): assert shifted(-1.0) == 0.5\n"
    )
    worker = ForkedWorker(tmp_path)
    assert study.verdict(worker, change(10, "* x", "/ x"), 5.0) == "survived"
    assert study.verdict(worker, change(9, "0.5", "0.7"), 5.0) == "killed"
    assert study.failing.read_text() == "tests/test_m.py::test_0\n"


def test_other_numbers_of_a_recorded_test_may_kill_a_change_that_only_weak_tests_execute(tmp_path):
    """Of tests that differ in a number alone one is recorded; here it does not execute the changed line."""
    study = Study(tmp_path, 0)
    blocks = {"module.py:8-10": [0, 1], "module.py:9-9": [1]}
    record = [{"tests/test_law.py::test_0[1.0]": None, "tests/test_weak.py::test_1": None}, blocks]
    (tmp_path / "record" / "a.json").write_text(json.dumps(record))
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "module.py").write_text(TEXT)
    start = "import pytest\nfrom module import shifted\n"
    law = '@pytest.mark.parametrize("x", [1.0, -1.0])\ndef test_0(x): assert shifted(x) in (0.5, 4.0 + 1e-9)\n'
    (tmp_path / "tests" / "test_law.py").write_text(start + law)
    (tmp_path / "tests" / "test_weak.py").write_text(start + "def test_1(): assert shifted(-1.0) > 0.0\n")
    assert study.verdict(ForkedWorker(tmp_path), change(9, "0.5", "0.7"), 5.0) == "killed"


def test_the_blocks_that_are_executed_are_recorded(tmp_path):
    space = {}
    exec(compile(mark_blocks(ast.parse(TEXT), "module.py"), "module.py", "exec"), space)
    EXECUTED.clear()
    assert space["shifted"](1.0) == 4.0 + 1e-9
    assert set(EXECUTED) == {"module.py:8-9", "module.py:10-10"}


def test_the_tests_of_a_line_are_those_that_execute_the_smallest_block_around_it(tmp_path):
    (tmp_path / "a.json").write_text('[{"one": 0.1, "two": null}, {"m.py:8-12": [0, 1], "m.py:9-9": [1]}]')
    record = Record([tmp_path / "a.json"])
    assert record.durations == {"one": 0.1}
    assert [record.tests_of_line("m.py", line) for line in (8, 9, 20)] == [{"one", "two"}, {"two"}, set()]


def test_a_constant_is_executed_where_it_is_mentioned_and_a_default_in_the_body(module, tmp_path):
    assert mentions(tmp_path / "module.py", 2) == [10]
    assert 8 in mentions(tmp_path / "module.py", 6)


def test_what_numpy_does_not_distinguish_stays(tmp_path):
    (tmp_path / "m.py").write_text(
        "a = np.zeros((0, 3))\nb = x.reshape(-1, 3)\nc = np.random.default_rng(5)\nd = f(seed=3)\n"
    )
    assert {mutant.after for mutant in mutants(tmp_path, Path("m.py"))} == {
        "a = np.zeros((1, 3))",
        "a = np.zeros((0, 4))",
        "b = x.reshape(-1, 4)",
    }
