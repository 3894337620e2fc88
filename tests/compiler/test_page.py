"""The page on the compiler lists its packages and passes, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import legged.compiler

FOLDER = Path(legged.compiler.__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "explanation" / "compiler.md"


def test_the_packages_and_passes_are_listed_once():
    packages = [path.parent.name for path in FOLDER.glob("*/__init__.py")]
    passes = [path.stem for path in (FOLDER / "passes").iterdir() if not path.stem.startswith("__")]
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(packages + passes)
