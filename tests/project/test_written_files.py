"""Files that the toolkit writes: their names, full disks, locales, links, and that one module writes all of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import legged
import robots
from legged.errors import FileError, LeggedError
from legged.ground import paper_ground
from legged.output import output_file, write_file, write_table
from legged.simulation import Rollouts, plots
from legged.simulation.plots import pages

ROOT = Path(legged.__file__).parents[1]


@pytest.fixture(scope="module")
def run():
    robot = robots.planar_hopper()
    q = robot.neutral()
    q[2] = 0.7  # above the ground
    return legged.simulate(robot, q=q, ground=paper_ground(robot), until=0.02, fall=False)


@pytest.fixture(scope="module")
def writers(run):
    """Name -> (function of a path that writes a file and returns its path, suffix)."""
    robot = robots.planar_hopper()
    kernel = legged.compile(legged.inertia_matrix, robot)
    runs = legged.rollout(robot, until=0.02, vary={"robot.trunk.mass": [4.0, 5.0]})
    return {
        "run": (run.save, ".npz"),
        "rollouts": (runs.save, ".npz"),
        "table": (run.to_csv, ".csv"),
        "page": (run.save_html, ".html"),
        "pages": (lambda path: legged.save_html([run, run], path), ".html"),
        "urdf": (lambda path: legged.save_urdf(robot, path), ".urdf"),
        "mjcf": (lambda path: legged.save_mjcf(robot, path), ".xml"),
        "c": (lambda path: kernel.to_c(path).source, ".c"),
        "figure": (lambda path: pages.save(run.plot()["trunk"], path), ".png"),
        "rows": (lambda path: write_table(path, ["a"], [[1.0]]), ".csv"),
    }


KINDS = ("run", "rollouts", "table", "page", "pages", "urdf", "mjcf", "c", "figure", "rows")


@pytest.mark.parametrize("kind", KINDS)
def test_suffixes_are_appended_and_never_replaced(kind, writers, tmp_path):
    write, suffix = writers[kind]
    names = ("kp_0.5", "kp_0.7", "v1.2.3", "plain", "walk.final", "1e-3", f"own{suffix}", f"UPPER{suffix.upper()}")
    written = [write(tmp_path / "new" / "folder" / name) for name in names]
    wanted = [name if name.lower().endswith(suffix) else name + suffix for name in names]
    if kind == "c":
        wanted[-1] = f"UPPER{suffix}"
    assert [path.name for path in written] == wanted
    assert len(set(written)) == len(names) and all(path.stat().st_size for path in written)
    assert write(str(tmp_path / "text")).name == f"text{suffix}"


@pytest.mark.parametrize("kind", KINDS)
def test_suffixes_of_other_formats_are_refused_without_effect(kind, writers, tmp_path):
    write, suffix = writers[kind]
    allowed = {".xml": {".xml", ".mjcf"}, ".urdf": {".xml", ".urdf"}, ".html": {".htm", ".html"}, ".c": {".c", ".h"}}
    others = {".csv", ".npz", ".png", ".html", ".urdf", ".xml", ".json", ".pkl", ".txt", ".mp4", ".zip", ".c", ".CSV"}
    for other in others - allowed.get(suffix, {suffix}) - {suffix.upper()}:
        with pytest.raises(FileError, match=r"has the suffix of another format; this is written to .* name it 'data"):
            write(tmp_path / f"data{other}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_no_file_are_refused(kind, writers, tmp_path):
    write, suffix = writers[kind]
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("", ".", "..", f"{tmp_path}/", f"a\0{suffix}", tmp_path / f"folder{suffix}", tmp_path / "file" / "x"):
        with pytest.raises(FileError):
            write(name)
    for name in ("x" * 5000, "\ud800", "x/" * 3000 + "x"):
        with pytest.raises(FileError, match=r"cannot be (written|created)"):
            write(tmp_path / name)
    for value in (3, None, b"name"):
        with pytest.raises(LeggedError, match="path must be a text or a path"):
            write(value)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
        with pytest.raises(FileError, match="a folder, pipe or device has this name"):
            write(tmp_path / f"pipe{suffix}")
    if os.geteuid():  # to root all files are open
        (tmp_path / f"protected{suffix}").touch(0o444)
        with pytest.raises(FileError, match="protected"):
            write(tmp_path / f"protected{suffix}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_the_file_that_was_there(kind, writers, tmp_path):
    """A limit on the size of files stops writing in the middle, as a full disk does."""
    resource = pytest.importorskip("resource")
    write, suffix = writers[kind]
    paths = [tmp_path / f"data{each}" for each in ((".c", ".h") if kind == "c" else (suffix,))]
    for path in paths:
        path.write_bytes(b"important")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in (0, 2) if kind == "rows" else (0, 20, 300, 1000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            with pytest.raises(FileError, match=r"cannot be written: .*; the file that was there is unchanged"):
                write(paths[0])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert all(path.read_bytes() == b"important" for path in paths) and sorted(tmp_path.iterdir()) == paths
    assert write(paths[0]).stat().st_size > most


def test_other_errors_leave_the_file_that_was_there(run, tmp_path, monkeypatch):
    path = run.save(tmp_path / "run")
    before = path.read_bytes()

    def fails(*arguments, **named):
        arguments[0].write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", fails)
    with pytest.raises(KeyboardInterrupt):
        run.save(path)
    monkeypatch.undo()
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    with pytest.raises(FileError, match="cannot be written: Permission denied; the file that was there is unchanged"):
        run.save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_animations_and_figures_are_written_beside(run, tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    for name in ("run.gif", "run.html", "run.HTML"):
        path = plots.animate(run, tmp_path / name, fps=100.0)
        before = path.read_bytes()
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
        try:
            with pytest.raises(FileError, match="cannot be written"):
                plots.animate(run, path, fps=100.0)
            with pytest.raises(FileError, match="cannot be written"):
                plots.save_figures(run, tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert path.read_bytes() == before
    assert {path.suffix.lower() for path in tmp_path.iterdir()} == {".gif", ".html"}


@pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="links and rights of POSIX")
def test_links_rights_and_masks_are_those_of_plain_writing(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "data.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert write_file(link, "new", ".csv") == link
    assert link.is_symlink() and target.read_text() == "new" and target.stat().st_mode & 0o777 == 0o640
    before = os.umask(0o027)
    try:
        assert write_file(tmp_path / "fresh", "x", ".csv").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)
    assert output_file(tmp_path / "any.thing") == tmp_path / "any.thing"  # without a format


@pytest.mark.parametrize("locale", ["C", "POSIX", "de_DE.ISO-8859-1"])
def test_texts_are_utf8_under_every_locale(locale, tmp_path):
    pytest.importorskip("lxml", reason="lxml, of the extra urdf, is not installed")
    code = f"""
import legged
rod = legged.sphere_inertia(1.0, 0.1)
builder = legged.RobotBuilder("\\u673a\\u5668\\u4eba", legged.Link("base", rod))
builder.add(legged.Revolute("\\u819d", "y"), legged.Link("tip", rod), to="base")
robot = builder.build()
run = legged.simulate(robot, until=0.02)
run.to_csv(r"{tmp_path}/run"); run.save_html(r"{tmp_path}/run"); legged.save_urdf(robot, r"{tmp_path}/run")
assert legged.Run.from_csv(robot, r"{tmp_path}/run.csv").q.tolist() == run.q.tolist()
assert legged.load(r"{tmp_path}/run.urdf").joints[0].name == "\\u819d"
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": locale, "LANG": locale, "PYTHONUTF8": "0"}
    environment["PYTHONCOERCECLOCALE"] = "0"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert "\u819d_q" in (tmp_path / "run.csv").read_text(encoding="utf-8")


ALLOWED = {"legged/output.py", "legged/compiler/cache/disk.py"}
WRITING = re.compile(
    r"""write_text\(|write_bytes\(|savefig\(|savez\w*\((?!buffer)|\.open\(["'](w|x|a)|open\([^)]*["'](w|x|a)b?["']"""
)


def test_one_module_writes_all_files():
    """Others write into the draft that `replaced` gives them."""
    for package in ("legged", "controllers", "robots"):
        for path in (ROOT / package).rglob("*.py"):
            name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            lines = [line for line in text.splitlines() if WRITING.search(line) and "(buffer" not in line]
            assert name in ALLOWED or not lines or "replaced(" in text, (name, lines)
            assert name in ALLOWED or "mkdir(" not in text or name == "legged/app/options.py", name


def test_what_was_written_is_read(run, writers, tmp_path):
    for name in ("kp_0.5", "kp_0.7"):
        assert np.array_equal(legged.Run.load(run.save(tmp_path / name)).q, run.q)
        assert len(Rollouts.load(writers["rollouts"][0](tmp_path / f"{name}.all"))) == 2
