"""Names in CONTRIBUTING.md exist: files, targets of make, public names, and definitions in the files beside them."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PARAGRAPHS = [" ".join(text.split()) for text in re.split(r"\n\n|\n(?=\|)", PAGE)]
PUBLIC = re.compile(r"(legged|controllers|robots)((?:\.\w+)*)(\(.*\))?")


def names(paragraph: str) -> list[str]:
    """Return the texts in code marks."""
    return re.findall(r"`([^`]+)`", paragraph)


def is_path(name: str) -> bool:
    """Return whether a name is that of a file or folder, from the root of the repository."""
    return " " not in name and ("/" in name or name.endswith((".md", ".toml")) or (ROOT / name).is_dir())


def resolve(name: str) -> object:
    """Return the object of a dotted name of a package."""
    package, *rest = name.split(".")
    value: object = importlib.import_module(package)
    for part in rest:
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("paragraph", PARAGRAPHS)
def test_names_exist(paragraph):
    import legged

    files = [name for name in names(paragraph) if is_path(name)]
    assert [name for name in files if not (ROOT / name).exists()] == []
    python = [
        path for name in files for path in ((ROOT / name,) if name.endswith(".py") else (ROOT / name).glob("*.py"))
    ]
    texts = [path.read_text(encoding="utf-8") for path in python]
    for name in names(paragraph):
        if name.startswith("make "):
            assert re.search(rf"^{name.split()[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), (
                name
            )
        elif name.startswith("pytest "):
            assert [part for part in name.split()[1:] if is_path(part) and not (ROOT / part).exists()] == []
        elif public := PUBLIC.fullmatch(re.sub(r"\(.*\)$", "()", name)):
            assert resolve(public[1] + public[2]) is not None
        elif re.fullmatch(r"\w+", name) and name not in ("test", "vary"):
            defined = any(re.search(rf"^\s*(def|class) {name}\b|^{name}\b.*=", text, re.MULTILINE) for text in texts)
            assert defined or hasattr(legged.Simulation, name), name


def test_the_recipes_and_the_length():
    recipes = re.findall(r"^\*\*(?:A|An) ([\w ]+)\.\*\*", PAGE, re.MULTILINE)
    kinds = ["joint type", "collision shape", "compiler pass", "ground", "controller", "robot", "learning task"]
    assert recipes == kinds
    assert len(PAGE.split()) < 1200  # two pages
