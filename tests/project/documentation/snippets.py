"""The code in the documentation: the blocks of a page, how a block is executed, and what it has to print.

The blocks of a page form one program: they run in order in one folder, and Python blocks share their names. A line
`print(...)  # words` has to print these words; a block that is followed by a block `text` has to print this text. A
Python block whose first line is `# NAME.py` is also written to this file. Commands run in this process: `legged` and
`python`; of `pip install` and `make`, the extra and the target have to exist. A block after the line `<!-- slow -->`
runs only in the slow tests. The cells of notebooks, `{code-cell}`, show their last value as a notebook does.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import runpy
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from matplotlib.figure import Figure
from oracles.urdfs import all_urdfs

from examples.studies import commands
from legged.app.cli import main

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXECUTED = ("python", "sh", "{code-cell}")
OTHERS = ("cmake", "text", "xml", "json", "c", "asm", "{toctree}", "{include}", "{replay}")
"""Languages of blocks that are no program. A block of any other language is an error."""
BLOCK = re.compile(r"(<!-- slow -->\n+)?^( *)```([^\n]*)\n(.*?)^ *```$", flags=re.MULTILINE | re.DOTALL)
SHOWN = ("git", "cd", ".", "source")
"""Programs whose commands are not executed."""


class Block(NamedTuple):
    """A block of code: its language, code, line in its page, the text that it has to print or None, and its mark."""

    language: str
    code: str
    line: int
    text: str | None
    slow: bool


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page that are executed."""
    matches = list(BLOCK.finditer(page))
    for match, following in zip_longest(matches, matches[1:]):
        language, line = match[3].partition(" ")[0], page.count("\n", 0, match.end(2)) + 2
        if language not in (*EXECUTED, *OTHERS):
            raise AssertionError(f"line {line - 1}: a block of language {language!r} is not executed")
        near = following is not None and not page[match.end() : following.start()].strip()
        text = following[4] if near and following[3] == "text" else None
        if language in EXECUTED:
            code = re.sub(rf"^{match[2]}", "", match[4], flags=re.MULTILINE)
            yield Block(language, code, line, text, bool(match[1]))


def run_page(path: Path, slow: bool) -> None:
    """Run the blocks of a page in the current folder; with `slow` also those that are marked as slow."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.slow and not slow:
            continue
        place = f"{path.relative_to(ROOT)}, line {block.line}"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if block.language == "python":
                run_python(block, path, names)
            elif block.language == "{code-cell}":
                run_cell(block, path, names)
            else:
                for command in block.code.splitlines():
                    run_command(command)
        check_output(block, printed.getvalue(), place)


def run_python(block: Block, path: Path, names: dict[str, Any]) -> None:
    """Execute a Python block with the names of its page; an error shows the line of the page."""
    name = re.match(r"# ([\w/]+\.py)\n", block.code)
    if name:
        Path(name[1]).write_text(block.code, encoding="utf-8")
    if "save_urdf" not in block.code:
        link_robots(re.findall(r'load\("(\w+\.urdf)"', block.code))
    exec(compile("\n" * (block.line - 1) + block.code, str(path), "exec"), names)


def run_cell(block: Block, path: Path, names: dict[str, Any]) -> None:
    """Execute a cell of a notebook, and show the value of its last expression."""
    tree = ast.parse("\n" * (block.line - 1) + block.code, str(path))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(path), "exec"), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
        shown = getattr(value, "_repr_html_", value.__repr__)
        assert shown() or isinstance(value, Figure), f"{path.relative_to(ROOT)}, line {block.line}: nothing is shown"


def check_output(block: Block, printed: str, place: str) -> None:
    """Raise an error if a block has not printed what the page states."""
    comments = re.findall(r"^ *print\(.*\)  # (.*)$", block.code, flags=re.MULTILINE)
    if block.text is not None:
        assert printed.split() == block.text.split(), f"{place} prints\n{printed}"
    elif block.language == "python":
        assert printed.splitlines() == comments, f"{place} prints\n{printed}"


def run_command(line: str) -> None:
    """Run a line of a shell, and raise an error unless it ends with exit status 0."""
    program, *arguments = shlex.split(line, comments=True) or [""]
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), line
    elif program == "pip" or arguments[:2] == ["-m", "pip"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = [name for part in re.findall(r"\[([\w,]+)\]", line) for name in part.split(",")]
        assert "install" in arguments and set(named) <= set(extras), line
    elif program == "python" and arguments[0] != "-m":
        link_robots(arguments)
        run_script(arguments)
    elif program == "legged":
        link_robots(arguments)
        run_program(main, arguments)
    elif program == "python" and arguments[:2] == ["-m", "examples.studies"]:
        link_robots(arguments)
        run_program(commands.main, arguments[2:])
    else:
        assert program in ("", *SHOWN) or arguments[:2] == ["-m", "venv"], f"{line!r} is not executed"


def run_script(arguments: list[str]) -> None:
    """Run a Python file of the current folder or of this repository as a program."""
    script = Path(arguments[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments)
        patch.syspath_prepend(str(Path.cwd()))
        runpy.run_path(str(script if script.exists() else ROOT / script), run_name="__main__")


def link_robots(arguments: list[str]) -> None:
    """Link the URDF files of a command that are not there to those of example-robot-data."""
    for name in (word for word in arguments if word.endswith(".urdf") and not Path(word).exists()):
        Path(name).symlink_to(next(path for path in all_urdfs().values() if path.name == name))


def run_program(program: Callable[[], None], arguments: list[str]) -> None:
    """Run a command line of `legged` or of the studies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["program", *arguments])
        with pytest.raises(SystemExit) as ended:
            program()
    assert not ended.value.code, " ".join(arguments)
