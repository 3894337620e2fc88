"""The cost of `import legged`, and the graph of imports between packages."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import legged

ROOT = Path(__file__).parents[2]
SLOW = (
    "importlib.metadata",
    "matplotlib",
    "mujoco",
    "networkx",
    "rich",
    "scipy",
    "trimesh",
    "typer",
    "viser",
    "yourdfpy",
)
"""Libraries that take long to load and that only some uses need."""
DISTRIBUTION = ("legged", "controllers", "robots")


def test_importing_loads_no_library_before_it_is_needed():
    program = f"import legged, controllers, robots, sys; print([m for m in {SLOW} if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(Path(legged.__file__).parents[1])}
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"]
    assert subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("parent", ["legged", "legged.compiler"])
def test_imports_between_packages_have_no_cycle(parent):
    cycles = [sorted(group) for group in nx.strongly_connected_components(package_graph(parent)) if len(group) > 1]
    assert not cycles


def test_every_module_of_the_framework_has_a_layer():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {name.strip("() ") for layer in contracts[0]["layers"] for name in layer.split("|")}
    assert {name for name in children("legged") if name != "legged.__init__"} <= layers


def children(package: str) -> set[str]:
    """Return the names of the modules and sub-packages of a package, such as "legged.robot"."""
    folder = ROOT / package.replace(".", "/")
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    return {f"{package}.{name}" for name in modules}


def package_graph(parent: str) -> nx.DiGraph:
    """Return the graph of imports between the children of a package, and for "legged" the other two packages as well.

    The public names in `legged/__init__.py` are left out: they import the whole framework, and no part of it imports
    them.
    """
    nodes = children(parent) | ({"controllers", "robots"} if parent == "legged" else set())
    graph: nx.DiGraph = nx.DiGraph()
    for package in DISTRIBUTION:
        for path in (ROOT / package).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            importer = owner(module, nodes)
            if importer:
                imported = {owner(name, nodes) for name in imports(path)} - {None, importer}
                graph.add_edges_from((importer, name) for name in imported)
    return graph


def owner(module: str, nodes: set[str]) -> str | None:
    """Return the node that a module is or belongs to, None for a module outside of all nodes."""
    parts = module.split(".")
    return next((name for k in range(len(parts), 0, -1) if (name := ".".join(parts[:k])) in nodes), None)


def imports(path: Path) -> Iterator[str]:
    """Yield the names that a file imports, inside functions as well, such as "legged.robot.robot.Robot"."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
