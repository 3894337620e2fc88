"""The page on the modular framework names every equation of the paper once, and code that exists."""

import re
from importlib import import_module

from project.documentation.snippets import ROOT

PAGE = (ROOT / "docs" / "explanation" / "framework.md").read_text(encoding="utf-8")
TABLE = PAGE[PAGE.index("## Equations and code") :]


def _numbers(words):
    """Return the numbers of the equations in a cell, with ranges such as "(4) to (7)" expanded."""
    equations = []
    for prefix, first, last in re.findall(r"\((A\.|)(\d+)\)(?: to \(A?\.?(\d+)\))?", words):
        equations += [f"{prefix}{k}" for k in range(int(first), int(last or first) + 1)]
    return equations


def test_table_has_every_numbered_equation_of_sections_2_to_4_and_of_appendix_a_once():
    rows = re.findall(r"^\| (\(.*?) \|", TABLE, flags=re.MULTILINE)
    equations = [number for row in rows for number in _numbers(row)]
    assert sorted(equations) == sorted([*(str(k) for k in range(1, 38)), *(f"A.{k}" for k in range(1, 10))])


def test_names_of_the_table_exist_in_six_files():
    files = set()
    for name in re.findall(r"`((?:legged|controllers)\.[\w.]+)`", TABLE):
        parts, module = name.split("."), None
        for k in range(len(parts), 0, -1):
            try:
                module = import_module(".".join(parts[:k]))
            except ModuleNotFoundError:
                continue
            break
        thing = module
        for part in parts[k:]:
            thing = getattr(thing, part)
        files.add(module.__name__)
    assert len(files) == 6, files
