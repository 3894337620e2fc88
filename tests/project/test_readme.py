"""The README's commands and snippets run and print the stated output; names in the documentation exist.

`make` commands are not run, since they would run these tests or install packages; their targets are looked up.
"""

import importlib
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import legged
from legged.app.cli import main
from legged.files.audit import Audit

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
SNIPPETS = [
    (code, BLOCKS[k + 1][1] if k + 1 < len(BLOCKS) and BLOCKS[k + 1][0] == "text" else None)
    for k, (language, code) in enumerate(BLOCKS)
    if language == "python"
]
LINES = [line.partition("#") for language, code in BLOCKS if language == "sh" for line in code.splitlines() if line]
LONG = ("legged balance", "legged count --algorithms all")  # the daily tests of tests/app run parts of them
COMMANDS = [
    pytest.param(command.strip(), marks=[pytest.mark.slow] if command.startswith(LONG) else []) for command, *_ in LINES
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


@pytest.mark.parametrize("name", ["docs/howto/robots.md", "docs/explanation/spatial_vectors.md"])
def test_snippets_of_a_page_run_in_order(name, capsys, monkeypatch, tmp_path):
    """The snippets of a page share their names; a line `print(...)  # text` prints this text."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / name).read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
    with np.printoptions():
        exec(compile(code, name, "exec"), {"__name__": "__main__"})
    wanted = re.findall(r"^ *print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    assert wanted and capsys.readouterr().out.split("\n")[:-1] == wanted


def test_the_snippet_of_the_page_on_stepping_prints_what_it_says(capsys):
    page = ROOT / "docs" / "explanation" / "simulation.md"
    code, wanted = re.findall(r"^```(?:python|text)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    exec(compile(code, str(page), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == wanted


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


PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]

OBJECTS = {"robot.audit": Audit, "robot": legged.Robot, "run": legged.Run}
"""What the documentation calls objects of these classes."""


def is_attribute(value: Any, names: list[str]) -> bool:
    """Tell whether a dotted name leads to an attribute of an object, or to an annotated attribute of a class."""
    if not names:
        return True
    if hasattr(value, names[0]):
        return is_attribute(getattr(value, names[0]), names[1:])
    if isinstance(value, property):
        value = get_type_hints(value.fget).get("return")
        return is_attribute(value, names)
    hints = get_type_hints(value) if isinstance(value, type) else {}
    return names[0] in hints and is_attribute(hints[names[0]], names[1:])


def is_defined(name: str) -> bool:
    """Tell whether a dotted name is a module, or an attribute in a module, of a robot or of a run."""
    first, *rest = name.split(".")
    for prefix, of in OBJECTS.items():
        if name.startswith(f"{prefix}."):
            return is_attribute(of, name.removeprefix(f"{prefix}.").split("."))
    for count in range(len(rest), -1, -1):
        try:
            module = importlib.import_module(".".join([first, *rest[:count]]))
        except ModuleNotFoundError:
            continue
        return is_attribute(module, rest[count:])
    return False


def dotted_names(text: str) -> set[str]:
    """Return the names of Python objects in a page, without the first column of tables of old and new names."""
    text = re.sub(
        r"^\| old \| new \|\n(\|.*\n)+", lambda t: re.sub(r"^\|.*? \| ", "", t[0], flags=re.M), text, flags=re.M
    )
    text = re.sub(r'"robot\.[\w.]+"', "", text)  # names of parameters of rollouts
    code = " ".join(re.findall(r"```python.*?```|(?<!`)`[^`\n]+`(?!`)", text, flags=re.DOTALL))
    return set(
        re.findall(
            r"(?<![\w./-])(?:legged|controllers|robots|benchmarks|robot|run)(?:\.(?!xml|urdf|py\b)[a-zA-Z]\w*)+", code
        )
    )


def test_unknown_names_are_found():
    page = (
        "`legged.Robot`, `run.energy.drift`, `robot.base.nv`, `legged.nothing`, `run.energy.nothing`, `robot.nothing`"
    )
    assert {name for name in dotted_names(page) if not is_defined(name)} == {
        "legged.nothing", "run.energy.nothing", "robot.nothing",
    }  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_in_the_documentation_exist(page):
    assert [name for name in sorted(dotted_names(page.read_text(encoding="utf-8"))) if not is_defined(name)] == []


@pytest.mark.parametrize("folder", ["legged", "controllers", "robots", "benchmarks", "examples"])
def test_names_in_docstrings_and_comments_exist(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    names = {name for file in files for name in dotted_names(file.read_text(encoding="utf-8"))}
    assert [name for name in sorted(names) if not is_defined(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_the_docs_name_are_there(page):
    named = re.findall(r"`((?:legged|controllers|robots|docs|examples)/[\w/.]+)`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []
