"""The worked example in the page on the compiler runs and prints what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import legged.compiler

FOLDER = Path(legged.compiler.__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "explanation" / "compiler.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_the_worked_example_prints_what_the_page_shows():
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 6 and sum(bool(output) for _, output in blocks) == 5
    names: dict[str, object] = {}
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == output


def test_every_package_and_pass_is_listed():
    text = PAGE.read_text(encoding="utf-8")
    for package in FOLDER.glob("*/__init__.py"):
        assert f"| `{package.parent.name}` |" in text
    for path in (FOLDER / "passes").iterdir():
        if path.stem not in ("__init__", "__pycache__"):
            assert f"| `{path.stem}` |" in text
