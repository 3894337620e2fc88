"""The page on the compiler lists its packages and passes."""

from __future__ import annotations

from pathlib import Path

import legged.compiler

FOLDER = Path(legged.compiler.__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "explanation" / "compiler.md"


def test_every_package_and_pass_is_listed():
    text = PAGE.read_text(encoding="utf-8")
    for package in FOLDER.glob("*/__init__.py"):
        assert f"| `{package.parent.name}` |" in text
    for path in (FOLDER / "passes").iterdir():
        if path.stem not in ("__init__", "__pycache__"):
            assert f"| `{path.stem}` |" in text
