"""Files have at most 400 lines, folders a dozen files beside their `__init__.py`, and the command line 1500 lines."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("legged", "controllers", "robots", "benchmarks", "examples", "tests")
MOST_LINES, MOST_FILES = 400, 13


def test_files_that_name_their_quick_test_have_it():
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r'^QUICK = "(\w+)"', text, re.MULTILINE):
            assert f"def {name}(" in text, path


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_and_folders_are_small(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    lines = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    counts = Counter(str(file.parent.relative_to(ROOT)) for file in files)
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}
    assert {name: n for name, n in counts.items() if n > MOST_FILES} == {}


def test_the_command_line_is_small():
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (ROOT / "legged" / "app").rglob("*.py"))
    assert lines <= 1500
