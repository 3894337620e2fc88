"""The cache of machine code: reuse, damage, and several processes at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from legged.compiler import compile
from legged.compiler.cache import disk
from legged.compiler.codegen import llvm, scalar

CHILD = """
import numpy as np
from legged.compiler import compile
assert compile(lambda x: np.sin(x) @ x, x=(5,))(np.ones(5)) == 5 * np.sin(1.0)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty cache folder, and nothing in memory."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "_loaded", {})
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch) -> list[str]:
    """What LLVM was asked to compile."""
    texts: list[str] = []
    inner = llvm.machine_code
    monkeypatch.setattr(llvm, "machine_code", lambda text: (texts.append(text), inner(text))[1])
    return texts


@pytest.fixture
def traced(monkeypatch) -> list[object]:
    """What was traced."""
    functions: list[object] = []
    module = sys.modules["legged.compiler.compile"]
    inner = module._traced
    monkeypatch.setattr(module, "_traced", lambda *a: (functions.append(a[0]), inner(*a))[1])
    return functions


def use(forget: bool = True) -> None:
    """Compile a function and check that it works, with nothing in memory to begin with."""
    if forget:
        disk._loaded.clear()
    assert compile(lambda x: 2.0 * x + np.cos(x[0]), x=(3,))(np.ones(3)) == pytest.approx(2.0 + np.cos(1.0))


def test_the_second_compilation_does_no_llvm_work(folder, compiled):
    use()
    use()
    assert len(compiled) == 1 and len(list(folder.glob("*.o"))) == 1


def test_code_in_memory_is_shared(folder, compiled):
    use()
    for path in folder.iterdir():
        path.unlink()
    use(forget=False)
    assert len(compiled) == 1


def test_functions_that_differ_have_code_of_their_own(folder, compiled):
    for k in (1.0, 2.0):
        assert compile(lambda x, k=k: k * x + 1.0, x=())(3.0) == 3.0 * k + 1.0
    assert len(compiled) == 2


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"ELF" + b, lambda b: b[:-1] + b"?"]
)
@pytest.mark.parametrize("ending", [disk.CODE, disk.GRAPH])
def test_a_damaged_file_is_made_again(folder, compiled, traced, damage, ending):
    use()
    (path,) = folder.glob(f"*{ending}")
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    use()
    assert (len(compiled), len(traced)) == ((2, 1) if ending == disk.CODE else (1, 2))
    assert path.read_bytes() == sound


def test_another_processor_or_version_has_files_of_its_own(folder, compiled, traced, monkeypatch):
    use()
    monkeypatch.setattr(disk, "_surroundings", lambda: "another computer")
    use()
    assert len(compiled) == len(traced) == 2 and len(list(folder.iterdir())) == 4


def test_processes_at_once_leave_sound_files(folder, compiled):
    environment = {**os.environ, "PYTHONPATH": str(Path(disk.__file__).parents[2])}
    children = [subprocess.Popen([sys.executable, "-c", CHILD], env=environment) for _ in range(4)]
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    assert sorted(path.suffix for path in folder.iterdir()) == [disk.GRAPH, disk.CODE]
    assert compile(lambda x: np.sin(x) @ x, x=(5,))(np.ones(5)) == 5 * np.sin(1.0)
    assert not compiled


def test_a_folder_that_cannot_be_written_is_warned_about(folder, monkeypatch):
    blocked = folder.parent / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("LEGGED_CACHE", str(blocked / "cache"))
    with pytest.warns(UserWarning, match="cannot be kept in .*; set LEGGED_CACHE"):
        use()


def test_clearing_removes_the_files(folder):
    use()
    assert disk.clear() == 2 and not list(folder.iterdir())
    assert disk.clear() == 0


def test_the_cache_is_described(folder, monkeypatch):
    assert disk.describe() == (folder, 0, 0, 0, 0) and str(disk.describe()) == f"{folder}: no compiled code"
    use()
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert disk.describe() == (folder, 1, 1, size, 2)
    monkeypatch.setattr(disk, "_surroundings", lambda: "another computer")
    use()
    assert disk.describe()[1:3] == (2, 2) and disk.describe().current == 2
    assert "2 pieces of compiled code, 2 traced functions (2 of 4 files current), 0.0 MB" in str(disk.describe())


def test_a_warm_start_neither_traces_nor_writes_assembly(folder, traced, monkeypatch):
    use()
    monkeypatch.setattr(scalar.KernelWriter, "assembly", None)
    use()
    assert len(traced) == 1


def test_the_folder_is_the_systems_unless_chosen(monkeypatch):
    monkeypatch.delenv("LEGGED_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.home() / "elsewhere"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert disk.folder() == Path.home() / "elsewhere" / "legged"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert disk.folder() == Path.home() / "Library" / "Caches" / "legged"
