"""What type checkers see: exported names, types of kernels and laws, and the first script of a new user."""

import ast
import importlib
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [
    stub if (stub := path.with_suffix(".pyi")).exists() else path
    for root in ("legged", "controllers", "robots")
    for path in sorted((ROOT / root).rglob("__init__.py"))
]
MISTAKES = """
import legged, robots
from legged.dynamics.inertia import checked

robot = robots.planar_biped()
q = robot.neutral()
vdot: str = legged.compile(legged.forward_dynamics, robot)(q, q, q)
legged.compile(legged.forward_dynamics, robot)(q)
legged.jacobian(legged.forward_dynamics, "q")(robot)
legged.simulate(robot, lambda t: 0.0, until=1.0)
"""


def imported_names(path: Path) -> set[str]:
    """Return the names that the top level of a file imports from the packages of this project."""
    statements = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {
        name.asname or name.name
        for node in statements
        if (node.module or "").partition(".")[0] in ("legged", "controllers", "robots")
        for name in node.names
    }


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: ".".join(path.relative_to(ROOT).parts[:-1]))
def test_packages_export_what_they_import(path):
    names = imported_names(path)
    package = importlib.import_module(".".join(path.relative_to(ROOT).parts[:-1]))
    assert names == set(getattr(package, "__all__", ()))


@pytest.mark.slow
def test_the_script_of_a_new_user_runs(capsys):
    runpy.run_path(str(ROOT / "tests/project/data/newcomer.py"))
    printed = capsys.readouterr().out
    assert "biped [('trunk',), ('left_thigh'" in printed and "21 True True True" in printed


@pytest.mark.slow
def test_the_strict_check_reports_mistakes_and_names_that_are_not_exported(tmp_path):
    pytest.importorskip("pyright", reason="installed by `make lint`")
    script = tmp_path / "mistakes.py"
    script.write_text(MISTAKES)
    folder = tmp_path / "checked"
    folder.mkdir()
    check = runpy.run_path(str(ROOT / "tests/project/strict_types.py"))["check"]
    report = check([script], folder)
    lines = {int(line.split(":")[1]) for line in report.stdout.splitlines() if " - error: " in line}
    assert report.returncode == 1 and lines == {3, 7, 8, 9, 10}, report.stdout
