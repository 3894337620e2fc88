"""Machine code kept between runs: compile a graph once, load it ever after.

Files lie in the user's cache folder, or in the folder that the environment variable LEGGED_CACHE names. A file's name
is a hash of everything that its content depends on: the graph, the code generator, the processor and the versions. It
is written under another name first and then moved, so that two processes never see half a file; its content carries a
checksum, and a file that is truncated or not ours is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from legged.trace import backend
from legged.trace.builtin import suits
from legged.trace.graph import Graph
from legged.version import __version__

_MAGIC = b"legged machine code 1\n"
_loaded: dict[str, backend.Code] = {}
_lock = threading.Lock()


def folder() -> Path:
    """Return the folder that compiled code is kept in; it need not exist yet."""
    if chosen := os.environ.get("LEGGED_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "legged"


def load(graph: Graph, program: Callable[[Graph], str]) -> backend.Code:
    """Return the graph's machine code: from memory, else from the cache folder, else compiled and put there.

    Args:
        graph: What to compute.
        program: One of `programs`, which writes the assembly if it is needed.
    """
    key = _key(graph, program.__name__)
    with _lock:
        code = _loaded.get(key)
        if code is None:
            code = _loaded[key] = backend.Code(_machine_code(graph, program, folder() / f"{key}.o"))
    return code


class Contents(NamedTuple):
    """What is kept.

    Attributes:
        folder: Where.
        files: How many pieces of compiled code.
        size: Of all of them, [bytes].
        current: How many of them were written for this version, this processor and this code generator.
    """

    folder: Path
    files: int
    size: int
    current: int

    def __str__(self) -> str:
        if not self.files:
            return f"{self.folder}: no compiled code"
        return f"{self.folder}: {self.files} pieces of compiled code ({self.current} current), {self.size / 1e6:.1f} MB"


def describe() -> Contents:
    """Return what the cache folder holds."""
    sizes = {}
    for path in folder().glob("*.o") if folder().is_dir() else ():
        with contextlib.suppress(OSError):  # another process has just cleared it
            sizes[path.name] = path.stat().st_size
    current = sum(name.startswith(_generation()) for name in sizes)
    return Contents(folder(), len(sizes), sum(sizes.values()), current)


def clear() -> int:
    """Delete all compiled code of the cache folder and forget what is loaded; return how many files there were."""
    with _lock:
        _loaded.clear()
        files = list(folder().glob("*.o")) if folder().is_dir() else []
        for path in files:
            path.unlink(missing_ok=True)
    return len(files)


@cache
def _surroundings() -> str:
    """Return what machine code depends on besides the graph: the code generator, versions and the processor."""
    sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    generator = f"legged {__version__} {hashlib.sha256(sources).hexdigest()}, object header {object.__basicsize__}"
    return f"{generator}, llvmlite {metadata.version('llvmlite')}, {backend.target_name()}"


def _generation() -> str:
    """Return what the names of all files begin with that these surroundings write."""
    return hashlib.sha256(_surroundings().encode()).hexdigest()[:8]


def _key(graph: Graph, program: str) -> str:
    nodes = [(node.operation, node.arguments) for node in graph.nodes]
    whole = [shape for _, shape in graph.inputs], nodes, graph.outputs, graph.results, suits(graph)
    digest = hashlib.sha256(f"{_surroundings()}\n{program}\n{whole!r}".encode()).hexdigest()
    return f"{_generation()}-{digest[:40]}"


def _machine_code(graph: Graph, program: Callable[[Graph], str], path: Path) -> bytes:
    content = _read(path)
    if content is None:
        content = backend.machine_code(program(graph))
        _write(path, content)
    return content


def _read(path: Path) -> bytes | None:
    """Return the machine code in a file, None if the file is missing, truncated or not ours."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    magic, checksum, content = stored[: len(_MAGIC)], stored[len(_MAGIC) : len(_MAGIC) + 32], stored[len(_MAGIC) + 32 :]
    return content if magic == _MAGIC and checksum == hashlib.sha256(content).digest() else None


def _write(path: Path, content: bytes) -> None:
    """Put machine code into a file, all at once."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".draft")
    except OSError as error:
        warnings.warn(f"compiled code cannot be kept in {path.parent}: {error}; set LEGGED_CACHE", stacklevel=2)
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(content).digest() + content)
        os.replace(draft, path)
    except OSError:  # full disk, or Windows while another process reads the same file, which is as good as ours
        Path(draft).unlink(missing_ok=True)
