"""What is kept between runs, in two steps: traced functions, and machine code.

Files lie in the user's cache folder, or in the folder that the environment variable LEGGED_CACHE names. Machine code
(`.o`) has the name of the graph that it computes; a graph (`.graph`, see `recall`) that of everything that the traced
function depends on, if that can be told, see `fingerprint`. So a function that is known costs neither tracing nor
compiling, and one that has to be traced only that.

A file's name is a hash that counts in the code generator, the processor and the versions. A file is written under
another name first and then moved, so that two processes never see half of it; its content carries a checksum, and a
file that is truncated or not ours is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite
import numpy as np

from legged.compiler.codegen import llvm
from legged.compiler.ir.graph import Graph
from legged.version import __version__

CODE, GRAPH = ".o", ".graph"
"""Endings of the files."""
_MAGIC = b"legged cache 2\n"
_loaded: dict[str, llvm.LoadedCode] = {}
_lock = threading.Lock()


def folder() -> Path:
    """Return the folder that files are kept in; it need not exist yet."""
    if chosen := os.environ.get("LEGGED_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "legged"


def load(graph: Graph, program: Callable[[Graph], str]) -> llvm.LoadedCode:
    """Return the graph's machine code: from memory, else from the cache folder, else compiled and put there.

    Args:
        graph: What to compute.
        program: One of `programs`, which writes the assembly if it is needed.
    """
    file = name(program.__name__, f"bare: {graph.is_bare}", graph.digest) + CODE
    with _lock:
        code = _loaded.get(file)
        if code is None:
            content = read(file)
            if content is None:
                content = llvm.machine_code(program(graph))
                write(file, content)
            code = _loaded[file] = llvm.LoadedCode(content)
    return code


class Contents(NamedTuple):
    """What is kept.

    Attributes:
        folder: Where.
        code: How many pieces of compiled code.
        graphs: How many traced functions.
        size: Of all of them, [bytes].
        current: How many of them were written for this version, this processor and this code generator.
    """

    folder: Path
    code: int
    graphs: int
    size: int
    current: int

    def __str__(self) -> str:
        if not self.code + self.graphs:
            return f"{self.folder}: no compiled code"
        kinds = f"{self.code} pieces of compiled code, {self.graphs} traced functions"
        current = f"{self.current} of {self.code + self.graphs} files current"
        return f"{self.folder}: {kinds} ({current}), {self.size / 1e6:.1f} MB"


def describe() -> Contents:
    """Return what the cache folder holds."""
    sizes = {}
    for path in _files():
        with contextlib.suppress(OSError):  # another process has just cleared it
            sizes[path.name] = path.stat().st_size
    current = sum(name.startswith(_generation()) for name in sizes)
    code = sum(name.endswith(CODE) for name in sizes)
    return Contents(folder(), code, len(sizes) - code, sum(sizes.values()), current)


def clear() -> int:
    """Delete all files of the cache folder and forget what is loaded; return how many files there were."""
    with _lock:
        _loaded.clear()
        files = list(_files())
        for path in files:
            path.unlink(missing_ok=True)
    return len(files)


def _files() -> Iterator[Path]:
    """Yield the files that are ours."""
    if folder().is_dir():
        yield from (path for path in folder().iterdir() if path.suffix in (CODE, GRAPH))


def _sources() -> str:
    """Return a digest of what traces functions and generates code."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_SOURCES = _sources()  # while it is what was imported


@cache
def _surroundings() -> str:
    """Return what all files depend on besides what they are of: this package, versions and the processor."""
    generator = f"legged {__version__} {_SOURCES}, object header {object.__basicsize__}, Python {sys.version}"
    return f"{generator}, NumPy {np.__version__}, llvmlite {llvmlite.__version__}, {llvm.target_description()}"


def _generation() -> str:
    """Return what the names of all files begin with that these surroundings write."""
    return hashlib.sha256(_surroundings().encode()).hexdigest()[:8]


def name(*parts: str) -> str:
    """Return the name, without ending, of a file whose content depends on these words and on the surroundings."""
    digest = hashlib.sha256("\n".join((_surroundings(), *parts)).encode()).hexdigest()
    return f"{_generation()}-{digest[:40]}"


def read(file: str) -> bytes | None:
    """Return the content of a file, None if the file is missing, truncated or not ours."""
    try:
        stored = (folder() / file).read_bytes()
    except OSError:
        return None
    magic, checksum, content = stored[: len(_MAGIC)], stored[len(_MAGIC) : len(_MAGIC) + 32], stored[len(_MAGIC) + 32 :]
    return content if magic == _MAGIC and checksum == hashlib.sha256(content).digest() else None


def write(file: str, content: bytes) -> None:
    """Put content into a file, all at once."""
    place = folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=place, suffix=".draft")
    except OSError as error:
        warnings.warn(f"compiled code cannot be kept in {place}: {error}; set LEGGED_CACHE", stacklevel=2)
        return
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_MAGIC + hashlib.sha256(content).digest() + content)
        os.replace(draft, place / file)
    except OSError:  # full disk, or Windows while another process reads the same file, which is as good as ours
        Path(draft).unlink(missing_ok=True)
