"""What `import legged` loads, its public names, and the graph of imports between packages."""

from __future__ import annotations

import ast
import os
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import networkx as nx
import pytest

import controllers
import legged
import robots
from legged import output
from legged.errors import deprecated_names

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
)
"""Libraries that take long to load and that only some uses need."""
DISTRIBUTION = ("legged", "controllers", "robots")
PICTURES = (
    "legged.viewer",
    "legged.simulation.plots",
    "legged.simulation.results.run_table",
    "legged.robot.diagram",
    "legged.counting.module_figures",
    "legged.learning.report",
)
"""Modules that draw or list what other modules compute; they import what they draw."""
BY_NAME = {
    "legged/lazy_names/__init__.py": "the tables of public names, above all other modules",
    "legged/output.py": "the table of functions from packages above, the only way to them",
    "legged/verification/external.py": "Pinocchio or MuJoCo, by the name that the user gives",
    "legged/app/selection.py": "a file with the user's robot",
    "legged/errors.py": "successors of deprecated names, which modules above name",
    "legged/argument_checks.py": "the public names, in which annotations are looked up",
}
"""Files that import modules whose names they compute, and what these are."""
_CONSTRUCTION = "legged.robot.construction"
CLOSING = {
    **{
        ("legged.robot.robot", f"{_CONSTRUCTION}.{name}"): "methods of `Robot` build another robot or edit this one"
        for name in ("assemble", "description", "edit", "parameters", "reduced")
    },
    ("legged.simulation.controller", "legged.simulation.robot_controllers"): "`adapt` accepts one controller per robot",
}
"""Imports inside functions that close a circle, (importer, imported), and their purpose; without them there is none."""


def loaded_by(program: str) -> set[str]:
    """Return the names of the modules that a program loads in a new process."""
    environment = {**os.environ, "PYTHONPATH": str(Path(legged.__file__).parents[1])}
    program = f"import sys; sys.path[:0] = {sys.path!r}; {program}; print(*sys.modules)"
    command = [sys.executable, "-S", "-c", program]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_importing_the_packages_loads_no_library_before_it_is_needed():
    assert not loaded_by("import legged, controllers, robots") & {*SLOW, "numpy", "llvmlite"}
    use = "import legged, controllers, robots; robots.chain, controllers.Trot, legged.Robot, legged.simulate"
    assert not loaded_by(use) & set(SLOW)


def test_reading_a_urdf_loads_no_library_for_meshes(tmp_path):
    """Importing trimesh takes about 1 s of processor time and 70 MB of memory in each process."""
    pytest.importorskip("lxml")
    path = tmp_path / "robot.urdf"
    legged.save_urdf(robots.spatial_biped(), path)
    embedded = re.compile("<legged.*?(/>|</legged>)", re.DOTALL)
    path.write_text(embedded.sub("", path.read_text()))
    assert not loaded_by(f"import legged; legged.load({str(path)!r})") & set(SLOW)


@pytest.mark.parametrize("package", [controllers, robots])
def test_public_names_are_the_objects_of_their_modules_whatever_is_imported_before(package):
    """The attribute of a module with the name of a function in it would hide the function."""
    folder = Path(package.__file__).parent
    assert not {path.stem for path in folder.iterdir()} & set(package.__all__)
    assert all(getattr(package, name).__name__ == name for name in package.__all__)
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec(f"from {package.__name__} import nothing")


def test_importing_legged_loads_its_modules_when_their_names_are_used(tmp_path):
    loaded = loaded_by("import legged")
    assert {name for name in loaded if name.startswith("legged.")} == {"legged.version", "legged.lazy_names"}
    assert not loaded & {*SLOW, "numpy", "llvmlite", "inspect", "dataclasses"}
    assert "legged.robot.robot" in loaded_by("import legged; legged.Robot")
    assert "legged.errors" in loaded_by("import legged; legged.errors.ArgumentError")
    page = "import legged, robots; legged.simulate(robots.chain(1), until=0.01).save_html('{}')"
    loaded = loaded_by(page.format(tmp_path / "run.html"))
    assert "legged.viewer.page" in loaded and "networkx" not in loaded


def test_arguments_are_checked_before_their_types_have_been_imported():
    loaded = loaded_by("from legged.robot.construction.random_tree import random_tree; random_tree(0, 3)")
    assert "legged.robot.robot" in loaded and "legged.simulation" not in loaded


def test_public_names_are_found_listed_and_pickled():
    assert set(legged.__all__) <= set(dir(legged)) and legged.__all__ == sorted(legged.__all__)
    for name in legged.__all__:
        value = getattr(legged, name)
        assert pickle.loads(pickle.dumps(value)) is value if isinstance(value, type) else value is not None
    names: dict[str, object] = {}
    exec("from legged import *", names)
    assert set(legged.__all__) <= set(names)
    with pytest.raises(AttributeError, match="module 'legged' has no attribute 'simulat'"):
        getattr(legged, "simulat")  # noqa: B009
    with pytest.raises(ImportError, match="cannot import name 'viwer'"):
        exec("from legged import viwer")


@pytest.mark.parametrize("parent", ["legged", "legged.compiler"])
def test_imports_between_packages_have_no_cycle(parent):
    cycles = [sorted(group) for group in nx.strongly_connected_components(package_graph(parent)) if len(group) > 1]
    assert not cycles


def test_examples_benchmarks_and_tests_use_the_front_of_the_compiler():
    """import-linter checks the packages of the distribution; parts of the compiler are tested and measured by name."""
    allowed = {
        *("tests/compiler", "benchmarks/compilation.py", "benchmarks/precision.py", "benchmarks/threads.py"),
        *(f"benchmarks/harness/{name}.py" for name in ("machine_code", "record", "targets")),
        "benchmarks/studies/modules.py",
        "benchmarks/pages/mechanisms.py",
        *("tests/algorithms/test_reduced_model.py", "tests/controllers/locomotion/test_predictive.py"),
        *(f"tests/robot/construction/test_{name}.py" for name in ("edit", "graph")),
        *("tests/app/test_cli_commands.py", "tests/files/meshes/test_mesh_files.py"),
        *("tests/simulation/test_backend.py", "tests/simulation/test_scene_starts.py"),
    }
    submodules = children("legged.compiler") | children("legged.compiler.ir")
    for folder in ("examples", "benchmarks", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            if not any(path.is_relative_to(ROOT / name) for name in allowed):
                inner = {owner(name, submodules) for name in imports(path)} - {None, "legged.compiler.ir"}
                assert not inner, f"{path} imports {inner}"


def test_every_module_of_the_framework_has_a_layer():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {name.strip("() ") for layer in contracts[0]["layers"] for name in layer.split("|")}
    assert {name for name in children("legged") if name != "legged.__init__"} <= layers


def test_modules_of_the_distribution_are_not_imported_by_their_names():
    files = {str(path.relative_to(ROOT)): path for package in DISTRIBUTION for path in (ROOT / package).rglob("*.py")}
    hidden = {name: imports_by_name(path.read_text(encoding="utf-8")) for name, path in files.items()}
    assert {name for name, calls in hidden.items() if calls} == set(BY_NAME)


@pytest.mark.parametrize(
    "text",
    [
        "from importlib import import_module\nimport_module('legged.viewer.show')",
        "from importlib import import_module as load\nload('controllers')",
        "import importlib\nimportlib.import_module(name)",
        "import importlib as i\ni.import_module(name='legged.' + name)",
        "def f():\n    return __import__('legged.viewer')",
        "import sys\nsys.modules['legged.viewer.show'].save_html(run)",
        "import pkgutil\npkgutil.resolve_name('legged.viewer:view')",
        "import runpy\nrunpy.run_module('legged.viewer')",
        "import importlib.util\nimportlib.util.find_spec('robots')",
        "exec('from legged.viewer import view')",
    ],
)
def test_imports_by_name_are_detected(text):
    assert imports_by_name(text)


def test_imports_of_other_programs_by_name_are_no_way_up():
    assert not imports_by_name("from importlib import import_module\nimport_module('mujoco').mj_step")
    assert not imports_by_name("import sys\nsys.modules.get(__name__)")


def test_pictures_import_what_they_show_never_the_reverse():
    graph = module_graph()
    upward = {
        (importer, imported)
        for importer, imported in graph.edges
        if imported.startswith(PICTURES) and not importer.startswith((*PICTURES, "legged.app", "legged.__main__"))
    }
    assert not upward
    for name, module in output.FROM_ABOVE.items():
        assert module.startswith(PICTURES) and callable(output.from_above(name)), name


def test_no_module_below_the_command_line_uses_the_public_names():
    """The root package imports everything, so that `from legged import view` is a way up that no contract sees."""
    graph = module_graph()
    assert all(
        name.startswith(("legged.app", "legged.__main__", "controllers", "robots")) for name in graph.pred["legged"]
    )


def test_imports_inside_functions_close_no_circle_of_files_but_those_that_are_explained():
    graph = module_graph()
    circles = {name: group for group in nx.strongly_connected_components(graph) if len(group) > 1 for name in group}
    unused = [edge for edge in CLOSING if edge[1] not in circles.get(edge[0], ())]
    graph.remove_edges_from(CLOSING)
    assert [group for group in nx.strongly_connected_components(graph) if len(group) > 1] == [] == unused


def module_graph() -> nx.DiGraph:
    """Return the graph of imports between the modules of the distribution, inside functions as well, not of types."""
    modules = {name for package in DISTRIBUTION for name in below(package)}
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(modules)
    for name in modules:
        path = ROOT / name.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        imported = {owner(other, modules) for other in imports(path, types=False)} - {None, name}
        graph.add_edges_from((name, other) for other in imported)
    return graph


def below(package: str) -> list[str]:
    """Return the names of all modules of a package, such as "legged.robot.robot"."""
    paths = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / package.replace(".", "/")).rglob("*.py"))
    return [".".join(path.parts).removesuffix(".__init__") for path in paths]


def imports_by_name(text: str) -> list[str]:
    """Return the calls in a program that import a module of the distribution, or one whose name is computed."""
    tree = ast.parse(text)
    aliases = {
        name.asname or name.name: name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    functions = {"import_module", "__import__", "find_spec", "resolve_name", "run_module", "spec_from_file_location"}
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
            is_own = isinstance(node.slice, ast.Constant) and str(node.slice.value).split(".")[0] in DISTRIBUTION
            calls += [ast.unparse(node)] if is_own else []
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).split(".")[-1]
        name = aliases.get(name, name)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        known = [x.value for x in arguments if isinstance(x, ast.Constant) and isinstance(x.value, str)]
        is_import = name in functions and (not known or known[0].split(".")[0] in DISTRIBUTION)
        if is_import or (name in ("exec", "eval") and any("import" in text for text in known)):
            calls.append(ast.unparse(node))
    return calls


def children(package: str) -> set[str]:
    """Return the names of the modules and sub-packages of a package, such as "legged.robot"."""
    folder = ROOT / package.replace(".", "/")
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    return {f"{package}.{name}" for name in modules}


def package_graph(parent: str) -> nx.DiGraph:
    """Return the graph of imports between the children of a package, and for "legged" the other two packages as well.

    The public names of `legged` are left out: they import the whole framework, and no part of it imports them.
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


def imports(path: Path, types: bool = True) -> Iterator[str]:
    """Yield the names that a file imports, inside functions as well, such as "legged.robot.robot.Robot".

    `types` states whether imports under `if TYPE_CHECKING` count.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guards = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    skipped = set() if types else {inner for guard in guards for inner in ast.walk(guard)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_a_deprecated_name_serves_its_successor_and_warns_at_the_line_of_its_use(monkeypatch):
    monkeypatch.setitem(vars(legged)["_MOVED"], "Steps", "legged.ground.Stairs")
    with pytest.warns(DeprecationWarning, match=r"legged\.Steps disappears .* use legged\.ground\.Stairs") as caught:
        old = getattr(legged, "Steps")  # noqa: B009 (a type checker knows the public names)
    assert old is legged.ground.Stairs and caught[0].filename == __file__
    assert "Steps" not in legged.__all__ and "Steps" not in vars(legged)
    module = ModuleType("old_names")
    monkeypatch.setitem(vars(module), "__getattr__", deprecated_names("old_names", {"box": "legged.box_inertia"}))
    with pytest.warns(DeprecationWarning, match=r"old_names\.box .* use legged\.box_inertia"):
        box = getattr(module, "box")  # noqa: B009
    assert box is legged.box_inertia
    with pytest.raises(AttributeError, match="module 'old_names' has no attribute 'ball'"):
        _ = module.ball
    with pytest.raises(AttributeError, match="module 'legged' has no attribute 'Stpes'"):
        _ = getattr(legged, "Stpes")  # noqa: B009


@pytest.mark.parametrize(
    ("elsewhere", "here"), [("Ball", "Spherical"), ("Hinge", "Revolute"), ("FreeJoint", "FloatingBase")]
)
def test_names_of_other_programs_lead_to_ours(elsewhere, here):
    with pytest.raises(AttributeError, match=f"'{elsewhere}': its name here is legged.{here}") as refusal:
        getattr(legged, elsewhere)
    assert refusal.value.obj is None  # otherwise Python adds the most similar name, such as Fall for Ball
    assert hasattr(legged, here)


@pytest.mark.parametrize("name", ["controllers.Balanced", "legged.ground.HeightMap", "legged.environments.make"])
def test_a_name_of_another_package_is_named(name):
    with pytest.raises(AttributeError, match=rf"its name here is {re.escape(name)}$"):
        getattr(legged, name.rpartition(".")[2])
