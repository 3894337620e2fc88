"""The disk cache: reuse of machine code, damaged files, several processes, and what stays in memory."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import legged
import robots
from legged.compiler import compile
from legged.compiler.cache import disk, machine_code
from legged.compiler.codegen import llvm
from legged.compiler.codegen.kernels import scalar
from legged.compiler.ir import repeat_while

CHILD = """
import numpy as np
import legged, robots
from legged.compiler import compile
assert compile(lambda x: np.sin(x) @ x, x=(5,))(np.ones(5)) == 5 * np.sin(1.0)
legged.compile(legged.inertia_matrix, robots.planar_hopper())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty cache folder, and no code in memory."""
    compile(lambda x: x, x=())  # loads the entry point of all kernels
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    machine_code.unload()
    return tmp_path / "cache" / "legged"


def files(folder: Path) -> list[Path]:
    """Return the files of a cache folder without its marker."""
    return sorted(path for path in folder.iterdir() if path.name != disk.MARKER)


@pytest.fixture
def compiled(monkeypatch) -> list[str]:
    """The programs that LLVM compiles."""
    texts: list[str] = []
    inner = llvm.machine_code
    monkeypatch.setattr(llvm, "machine_code", lambda text, *level: (texts.append(text), inner(text, *level))[1])
    return texts


def use(forget: bool = True) -> None:
    """Compile a function and check that it works, at first without any code in memory."""
    if forget:
        machine_code.unload()
    assert compile(lambda x: 2.0 * x + np.cos(x[0]), x=(3,))(np.ones(3)) == pytest.approx(2.0 + np.cos(1.0))


def use_robot() -> None:
    """Compile a function of the project, without any code in memory."""
    machine_code.unload()
    robot = robots.planar_hopper()
    q = robot.neutral()
    # the same operations in another order, of numbers of the order of ten
    assert legged.compile(legged.inertia_matrix, robot)(q) == pytest.approx(legged.inertia_matrix(robot, q), abs=1e-12)


def elsewhere(monkeypatch) -> None:
    """Pretend to be on another computer."""
    monkeypatch.setattr(disk, "_environment", lambda: "another computer")


def test_the_second_compilation_does_no_llvm_work(folder, compiled):
    use()
    use()
    assert len(compiled) == 1 and len(list(folder.glob("*.o"))) == 1


def test_code_in_memory_is_shared(folder, compiled):
    use()
    for path in files(folder):
        path.unlink()
    use(forget=False)
    assert len(compiled) == 1


def halved(x, scale):
    """Return scale x, halved until it is at most 1: a loop that takes no value from outside."""
    start = np.stack([scale * x, scale * x - 1.0])
    return repeat_while(lambda s: np.stack([0.5 * s[0], 0.5 * s[0] - 1.0]), start, 99)[0]


@pytest.mark.parametrize("is_free", [False, True])
def test_functions_with_the_same_loop_share_its_code(folder, compiled, monkeypatch, is_free):
    """The loop is a module of its own, which is compiled once for single states and once for batches."""
    monkeypatch.setattr(machine_code, "_has_free_processor", lambda: is_free)
    for number, modules in ((8.0, 2), (20.0, 3)):
        kernel = compile(lambda x, number=number: halved(x, number), x=())
        assert kernel(3.0) == 0.75 if number == 8.0 else kernel(3.0) == 0.9375
        assert len(compiled) == modules
    machine_code.unload()
    assert compile(lambda x: halved(x, 8.0), x=())(np.full(200, 3.0)).tolist() == [0.75] * 200
    assert len(compiled) == 6  # with the loop over the states of a batch


@pytest.mark.parametrize("is_free", [False, True])
@pytest.mark.parametrize("of_loop", [False, True])
def test_an_error_in_the_compilation_of_a_loop_or_a_program_is_raised(folder, monkeypatch, is_free, of_loop):
    """A second thread compiles the program."""
    monkeypatch.setattr(machine_code, "_has_free_processor", lambda: is_free)
    inner = llvm.machine_code

    def fails(text, *level):
        if ("define void @legged_while" in text) == of_loop:
            raise RuntimeError("no code")
        return inner(text, *level)

    monkeypatch.setattr(llvm, "machine_code", fails)
    with pytest.raises(RuntimeError, match="no code"):
        compile(lambda x: halved(x, 3.0), x=())


def test_code_without_a_kernel_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(machine_code, "_MAX_UNUSED", 3)
    kernels = [compile(lambda x, k=k: k * x + 1.0, x=()) for k in range(2, 8)]
    gc.collect()
    assert len(machine_code._loaded) == 6  # all of them are in use
    last = kernels.pop()
    del kernels
    gc.collect()  # a kernel and its class refer to each other
    assert len(machine_code._loaded) == 3
    assert last(2.0) == 15.0


def test_a_kernel_keeps_its_code(folder):
    """After the code is released everywhere else, in single calls, batches and through ctypes."""
    kernel = compile(lambda x: np.sin(x) + 1.25, x=3)
    machine_code.unload()
    gc.collect()
    assert kernel(np.zeros(3)).tolist() == [1.25] * 3 == kernel.general(np.zeros(3)).tolist()
    batch = kernel(np.zeros((50, 3)))
    machine_code.unload()
    gc.collect()
    assert np.array_equal(kernel(np.zeros((50, 3))), batch)
    call = kernel.__call__
    del kernel
    gc.collect()
    assert call(np.zeros(3)).tolist() == [1.25] * 3


def test_functions_that_differ_have_code_of_their_own(folder, compiled):
    for k in (1.0, 2.0):
        assert compile(lambda x, k=k: k * x + 1.0, x=())(3.0) == 3.0 * k + 1.0
    assert len(compiled) == 2


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"ELF" + b, lambda b: b[:-1] + b"?"]
)
def test_a_damaged_file_is_replaced(folder, compiled, damage):
    use_robot()
    (path,) = files(folder)
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    use_robot()
    assert len(compiled) == 2 and path.read_bytes() == sound


def test_files_that_have_changed_places_are_replaced(folder):
    """Each is sound, but not the content of its name."""

    def answers() -> list[float]:
        machine_code.unload()
        chains = [robots.chain(n) for n in (2, 3)]
        return [float(legged.compile(legged.inertia_matrix, robot)(robot.neutral())[0, 0]) for robot in chains]

    wanted = answers()
    first, second = files(folder)
    a, b = first.read_bytes(), second.read_bytes()
    first.write_bytes(b)
    second.write_bytes(a)
    assert answers() == wanted
    assert (first.read_bytes(), second.read_bytes()) == (a, b)


def test_another_processor_or_version_has_files_of_its_own(folder, compiled, monkeypatch):
    use_robot()
    elsewhere(monkeypatch)
    use_robot()
    assert len(compiled) == len(files(folder)) == 2


def test_sources_changed_after_the_import_disable_the_cache(folder, compiled, monkeypatch):
    """The running code may not be the one in the files."""
    monkeypatch.setattr(disk, "_IMPORT_TIME", 0)
    for cached in (disk._source_digest, disk._environment):
        cached.cache_clear()
        monkeypatch.setattr(disk, cached.__name__, cached.__wrapped__)
    use_robot()
    use_robot()
    assert len(compiled) == 2 and not folder.exists()


def test_processes_at_once_leave_sound_files(folder, compiled):
    environment = {**os.environ, "PYTHONPATH": str(Path(legged.__file__).parents[1])}
    children = [subprocess.Popen([sys.executable, "-c", CHILD], env=environment) for _ in range(4)]
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    assert sorted(path.suffix for path in files(folder)) == [disk.CODE] * 3
    assert compile(lambda x: np.sin(x) @ x, x=(5,))(np.ones(5)) == 5 * np.sin(1.0)
    assert not compiled


def test_a_folder_that_cannot_be_written_gives_a_warning(folder, monkeypatch):
    blocked = folder.parents[1] / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("LEGGED_CACHE", str(blocked / "cache"))
    with pytest.warns(UserWarning, match="cannot be stored in .*; set LEGGED_CACHE"):
        use()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="access rights of POSIX")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o722])
def test_a_folder_that_others_can_write_to_is_not_used(folder, compiled, mode):
    use()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    folder.chmod(mode)
    disk._warn_not_private.cache_clear()
    with pytest.warns(UserWarning, match="other users can write to it: make it your own .*, or set LEGGED_CACHE"):
        use()
    use()  # warns once
    assert len(compiled) == 3 and {path: path.read_bytes() for path in folder.iterdir()} == before
    folder.chmod(0o755)
    use()
    assert len(compiled) == 3


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="access rights of POSIX")
def test_a_folder_of_another_user_is_not_used(folder, compiled, monkeypatch):
    use()
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    disk._warn_not_private.cache_clear()
    with pytest.warns(UserWarning, match="other users can write to it"):
        use()
    assert len(compiled) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="access rights of POSIX")
def test_a_new_folder_is_private_whatever_the_umask(folder):
    before = os.umask(0o002)
    try:
        use()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_drafts_of_killed_processes_are_deleted(folder):
    folder.mkdir(mode=0o700, parents=True)
    old, new, foreign = (folder / f"{name}{disk.DRAFT}" for name in ("tmpold", "tmpnew", "own"))
    yesterday = time.time() - 25 * 3600
    for path in (old, new, foreign):
        path.write_bytes(b"half of a file")
        if path != new:
            os.utime(path, (yesterday, yesterday))
    use()
    assert not old.exists() and new.exists() and foreign.exists()


def test_clearing_removes_the_files(folder):
    use_robot()
    assert disk.clear() == 1 and not files(folder)
    assert disk.clear() == 0


def test_clearing_leaves_the_files_of_others(folder):
    use_robot()
    own, name = files(folder), f"{'0' * 8}-{'1' * 40}"
    foreign = [folder / "thesis.o", folder / "scene.mesh", folder / f"{name}.txt", folder.parent / own[0].name]
    for path in foreign:
        path.write_text("not of the cache")
    (folder / f"{name}.o").symlink_to(foreign[0])
    assert disk.describe().code == 1
    (folder / disk.MARKER).rename(folder / "hidden")
    assert disk.clear() == 0
    (folder / "hidden").rename(folder / disk.MARKER)
    assert disk.clear() == 1
    assert all(path.read_text() == "not of the cache" for path in foreign) and (folder / f"{name}.o").is_symlink()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="access rights of POSIX")
def test_files_that_others_may_have_written_are_not_used(folder, compiled, monkeypatch):
    use_robot()
    (path,) = files(folder)
    path.chmod(0o666)
    disk._warn_not_private.cache_clear()
    with pytest.warns(UserWarning, match=rf"{path.name} of the cache is not used, since other users can write to it"):
        use_robot()
    assert len(compiled) == 2
    assert not path.stat().st_mode & 0o022  # replaced by a file of this user
    use_robot()
    assert len(compiled) == 2
    inner = os.fstat
    monkeypatch.setattr(os, "fstat", lambda handle: _of_another_user(inner(handle)))
    disk._warn_not_private.cache_clear()
    with pytest.warns(UserWarning, match="other users can write to it"):
        use_robot()
    assert len(compiled) == 3


def _of_another_user(status: os.stat_result) -> os.stat_result:
    return os.stat_result((*status[:4], status.st_uid + 1, *status[5:]))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_pipes_and_links_in_place_of_files_are_not_read(folder, compiled):
    use()
    (path,) = folder.glob("*.o")
    content, _ = path.read_bytes(), path.unlink()
    os.mkfifo(path)
    use()
    assert path.read_bytes() == content
    path.rename(folder.parent / "other")
    path.symlink_to(folder.parent / "other")
    use()
    assert len(compiled) == 3


def test_a_user_without_a_home_folder_has_a_temporary_cache_with_one_warning(monkeypatch, compiled):
    monkeypatch.delenv("LEGGED_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    disk._temporary_folder.cache_clear()
    with pytest.warns(UserWarning, match="no home folder: compiled code is stored until the process ends") as caught:
        use()
        use()
    assert len(caught) == 1 and len(compiled) == 1
    assert disk.folder().name == "legged" and disk.folder().parent.name.startswith("legged-cache-")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="uids of POSIX")
def test_the_temporary_cache_ends_with_its_process(tmp_path):
    code = """
import os, pathlib
pathlib.Path.home = lambda: exec("raise RuntimeError")
from legged.compiler import compile
from legged.compiler.cache import disk
compile(lambda x: 3.0 * x, x=())(2.0)
os.wait() if os.fork() else exit()
print(disk.folder(), disk.folder().is_dir())"""
    kept = {name: value for name, value in os.environ.items() if name not in ("LEGGED_CACHE", "XDG_CACHE_HOME")}
    environment = {**kept, "PYTHONPATH": str(Path(legged.__file__).parents[1]), "TMPDIR": str(tmp_path)}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert process.stderr.count("no home folder") == 1
    assert process.stdout.startswith(str(tmp_path)) and "True" in process.stdout and not list(tmp_path.iterdir())


def test_the_cache_is_described(folder, monkeypatch):
    assert disk.describe() == (folder, 0, 0, 0, 0, 0) and str(disk.describe()) == f"{folder}: no compiled code"
    use_robot()
    size = sum(path.stat().st_size for path in files(folder))
    assert disk.describe() == (folder, 1, size, 1, 0, 0)
    elsewhere(monkeypatch)
    use_robot()
    assert disk.describe().code == 2 and disk.describe().current == 1
    assert "2 pieces of compiled code (1 of 2 files current), 0.0 MB" in str(disk.describe())


def test_a_warm_start_writes_no_llvm_ir(folder, monkeypatch):
    use_robot()
    monkeypatch.setattr(scalar.KernelWriter, "module_lines", None)
    use_robot()


def test_the_folder_is_the_systems_unless_chosen(monkeypatch):
    monkeypatch.delenv("LEGGED_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.home() / "elsewhere"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert disk.folder() == Path.home() / "elsewhere" / "legged"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert disk.folder() == Path.home() / "Library" / "Caches" / "legged"


def test_the_cache_folder_is_that_of_each_system(monkeypatch):
    for name in ("LEGGED_CACHE", "LOCALAPPDATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(disk.Path, "home", lambda: disk.Path("/users/a"))
    for system, folder in (("win32", "AppData/Local"), ("darwin", "Library/Caches"), ("linux", ".cache")):
        monkeypatch.setattr(disk.sys, "platform", system)
        assert disk.folder() == disk.Path("/users/a") / folder / "legged"
    monkeypatch.setattr(disk.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/data")
    assert disk.folder() == disk.Path("/data/legged")
