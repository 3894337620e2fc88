"""The wheel and the source distribution: their content, and their installation into an empty environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from legged.version import __version__

ROOT = Path(__file__).parents[2]
PARTS = ("legged", "controllers", "robots", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
PROGRAM = """
import sys, legged, robots, controllers
assert {paths!r} == [module.__path__[0] for module in (legged, controllers, robots)]
robot = robots.planar_biped()
forward = legged.compile(legged.forward_dynamics, robot)
q, v = robot.neutral(), 0.0 * robot.state().v
assert abs(forward(q, v, v) - legged.forward_dynamics(robot, q, v, v)).max() < 1e-9
"""


def run(*command: str | Path, folder: Path) -> str:
    """Run a program in a folder, without the settings of this Python, and return its output."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, env=settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> Path:
    """Build both distributions from a copy of the sources; the wheel is built from the source distribution."""
    sources, found = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("distributions")
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__", "replay.*"))
        else:
            shutil.copy(ROOT / name, sources / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", found, ".", folder=sources)
    return found


@pytest.mark.slow
def test_the_distributions_hold_all_modules_the_types_and_no_large_file(distributions):
    (wheel,), (source,) = distributions.glob("*.whl"), distributions.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    modules = {str(path.relative_to(ROOT)) for name in PARTS[:3] for path in (ROOT / name).rglob("*.py")}
    wanted = modules | {f"{name}/py.typed" for name in PARTS[:3]}
    assert wanted <= set(sizes) and wanted <= packed
    assert {"legged/__init__.pyi", "legged/viewer/web/replay.js", "legged/viewer/web/LICENSE-three.txt"} <= set(sizes)
    assert {name.partition("/")[0] for name in sizes} == {*PARTS[:3], f"legged-{__version__}.dist-info"}
    assert max(sizes.values()) < 1e6 and wheel.stat().st_size < 2e6  # bytes


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_an_empty_environment_gets_a_toolkit_that_runs(distributions, kind, tmp_path):
    (distribution,) = distributions.glob(kind)
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    scripts = environment / ("Scripts" if sys.platform == "win32" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", distribution, folder=tmp_path)
    assert run(scripts / "legged", "--version", folder=tmp_path) == f"legged {__version__}\n"
    assert "planar biped" in run(scripts / "legged", "walk", "--duration", "0.05", "--output", "walk", folder=tmp_path)
    assert (tmp_path / "walk" / "run.npz").exists()
    (packages,) = environment.rglob("site-packages")
    paths = [str(packages / name) for name in PARTS[:3]]
    assert all((Path(path) / "py.typed").exists() for path in paths)
    run(scripts / "python", "-c", PROGRAM.format(paths=paths), folder=tmp_path)


def test_the_changelog_begins_with_the_version_of_the_package():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert re.fullmatch(rf"{re.escape(__version__)} \((unreleased|\d{{4}}-\d\d-\d\d)\)", headings[0])
