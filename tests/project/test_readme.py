"""Every command and snippet of the README runs, and prints what the README says.

`make` commands are not run, since they would run these tests or install packages; their targets are looked up.
"""

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from oracles.urdfs import all_urdfs

from legged.app.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
SNIPPETS = [
    (code, BLOCKS[k + 1][1] if k + 1 < len(BLOCKS) and BLOCKS[k + 1][0] == "text" else None)
    for k, (language, code) in enumerate(BLOCKS)
    if language == "python"
]
LINES = [line.partition("#") for language, code in BLOCKS if language == "sh" for line in code.splitlines() if line]
COMMANDS = [
    pytest.param(command.strip(), marks=[pytest.mark.slow] if "some minutes" in words else [])
    for command, _, words in LINES
]


def test_every_block_is_of_a_kind_that_is_run():
    assert {language for language, _ in BLOCKS} == {"python", "text", "sh"}
    assert SNIPPETS and COMMANDS


@pytest.mark.parametrize("code, wanted", SNIPPETS)
def test_snippet_prints_what_the_readme_says(code, wanted, capsys):
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    if wanted is not None:
        assert printed.split() == wanted.split()


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command, monkeypatch, tmp_path, capsys):
    program, *arguments = shlex.split(command)
    if program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        return
    monkeypatch.chdir(tmp_path)
    for name in (word for word in arguments if word.endswith(".urdf")):
        (tmp_path / name).symlink_to(next(path for path in all_urdfs().values() if path.name == name))
    if program == "python":
        monkeypatch.setattr(sys, "argv", [arguments[0], *arguments[1:]])
        runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
    else:
        assert program == "legged"
        monkeypatch.setattr(sys, "argv", ["legged", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", re.findall(r"\]\(([^)#:]+)\)", README))
def test_linked_file_is_there(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_files_that_the_docs_name_are_there(page):
    named = re.findall(r"`((?:legged|controllers|robots|docs|examples)/[\w/.]+)`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []
