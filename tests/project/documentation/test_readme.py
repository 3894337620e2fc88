"""Links of the README and names in the documentation lead to files, objects and attributes that exist."""

import importlib
import re
import warnings
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import legged
from legged.files.audit import Audit

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the documentation also names what has moved
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
    text = re.sub(r'"robot\.[\w./ ]+"', "", text)  # names of parameters of rollouts
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
