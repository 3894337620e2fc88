"""Files of the cache folder: their names, and reading, writing and removing them.

The folder is `legged` in the user's cache folder, or in the folder that the environment variable LEGGED_CACHE names. A
user without a home folder gets a temporary one, which is deleted when the process ends. Machine code lies in files
`.o`, meshes of robot files in files `.mesh`, motions that a search has found in files `.motion`. The name of a file is
a hash of its key, which includes the environment: the sources of the compiler, the processor, and the versions of
Python, NumPy and LLVM.
A file contains its own name and a checksum; a file that is truncated, renamed or not written by this module is ignored
and replaced. Files are written under a temporary name and then renamed, so that several processes can share the folder.

Machine code is executed, so a folder or file that belongs to another user, or that others can write to, is not used.
The marker `CACHEDIR.TAG` states that the folder is a cache of this toolkit; without it nothing is deleted.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite
import numpy as np

from legged.compiler.codegen import llvm
from legged.compiler.ir.pass_times import compiler_pass
from legged.errors import ArgumentError, FileError
from legged.version import __version__

CODE, MESH, MOTION, DRAFT = ".o", ".mesh", ".motion", ".draft"
"""Suffixes of machine code, of meshes for pictures, of motions, and of files that are being written."""
MARKER = "CACHEDIR.TAG"
"""Name of the file that marks the folder, by which programs for backups recognize caches as well."""
_MARKER_TEXT = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n"
    b"# Machine code, traced graphs and meshes of the Python package legged; `legged cache --clear` deletes them.\n"
)
_OWN_NAME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{40}\.(o|graph|mesh|motion)")
OFF = "off"
"""Value of LEGGED_CACHE for no cache on disk."""
_DRAFT_NAME = f"tmp[!.]*{DRAFT}"
_MAGIC = b"legged cache 3\n"
_BINARY = getattr(os, "O_BINARY", 0)  # of Windows
_DRAFT_AGE = 24 * 3600.0
"""Age above which a draft is deleted, [s]: the process that wrote it is assumed to have ended."""


_COMPILER, _IMPORT_TIME = Path(__file__).parents[1], time.time_ns()


def folder() -> Path | None:
    """Return the cache folder, which need not exist yet; None if LEGGED_CACHE is "off".

    Raises:
        ArgumentError: LEGGED_CACHE is a relative path, which would be another folder in each working directory.
    """
    if chosen := os.environ.get("LEGGED_CACHE"):
        if chosen == OFF:
            return None
        if not os.path.isabs(chosen):
            raise ArgumentError(f"LEGGED_CACHE must be the absolute path of a folder, or {OFF!r}, got {chosen!r}")
        return Path(chosen) / "legged"
    try:
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # the user has no home folder
        base = _temporary_folder()
    return Path(base) / "legged"


def parent_folder() -> Path | None:
    """Return the value of LEGGED_CACHE with which another process has the same folder."""
    return None if (target := folder()) is None else target.parent


@cache
def _temporary_folder() -> Path:
    """Return a new folder, which is deleted when this process ends, and warn that code is compiled in each process."""
    path, owner = Path(tempfile.mkdtemp(prefix="legged-cache-")), os.getpid()

    @atexit.register
    def _() -> None:
        if os.getpid() == owner:  # not at the end of a forked process
            shutil.rmtree(path, ignore_errors=True)

    warnings.warn(
        "this user has no home folder: compiled code is stored until the process ends, and compiled again by the next "
        "one; set LEGGED_CACHE to a folder that keeps it",
        stacklevel=5,
    )
    return path


@cache
def _source_digest(folder: str) -> str | None:
    """Return a hash of the Python files in a folder and its sub-folders, "" without files.

    Returns:
        The hash, None if a file has changed since this module was imported: then the running code may differ from the
        files.
    """
    digest, count = hashlib.blake2b(digest_size=20), 0
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name) if os.path.isdir(folder) else ():
        if entry.is_dir() and entry.name != "__pycache__":
            inside = _source_digest(entry.path)
            if inside is None:
                return None
            if not inside:
                continue
            content = inside.encode()
        elif entry.name.endswith(".py"):
            with open(entry.path, "rb", buffering=0) as file:
                status, content = os.fstat(file.fileno()), file.read()
            if max(status.st_mtime_ns, status.st_ctime_ns) > _IMPORT_TIME:
                return None
        else:
            continue
        digest.update(f"{entry.name} {len(content)}\n".encode())
        digest.update(content)
        count += 1
    return digest.hexdigest() if count else ""


@cache
def _environment() -> str | None:
    """Return the part of the key that all files share, None if the sources of the running code are not known."""
    source = _source_digest(str(_COMPILER))
    if not source:
        return None
    compiler = f"legged {__version__} {source}, object header {object.__basicsize__}, Python {sys.version}"
    processor = llvm.target_description(llvm.target_named(llvm.NATIVE))
    return f"{compiler}, NumPy {np.__version__}, llvmlite {llvmlite.__version__}, {processor}"


def _generation() -> str:
    """Return the beginning of the names of all files of this environment."""
    return hashlib.sha256((_environment() or "").encode()).hexdigest()[:8]


@compiler_pass("cache folder")
def file_name(suffix: str, *key: str) -> str | None:
    """Return the name of the file for a key, None if the sources of the running code are not known."""
    environment = _environment()
    if environment is None:
        return None
    digest = hashlib.sha256("\n".join((environment, *key)).encode()).hexdigest()
    return f"{_generation()}-{digest[:40]}{suffix}"


def cached_bytes(compute: Callable[[], bytes], *key: str, suffix: str = MESH, packages: Sequence[str] = ()) -> bytes:
    """Return the content of the file with this key; where it is missing, compute and write it.

    Args:
        compute: Function that returns the content.
        key: Texts on which the content depends.
        suffix: Of the file.
        packages: Folders of Python files on which it depends as well; if one has changed since the import, nothing is
            stored.
    """
    digests = [_source_digest(folder) for folder in packages]
    sources = [digest for digest in digests if digest is not None]
    file = file_name(suffix, *key, *sources) if len(sources) == len(digests) else None
    content = read(file)
    if content is None:
        content = compute()
        write(file, content)
    return content


@compiler_pass("cache folder")
def read(file: str | None) -> bytes | None:
    """Return the content of a file, None if it is missing, damaged or not safe to use."""
    if file is None or (target := folder()) is None or not is_private(target):
        return None
    stored = _read_own(target / file)
    header = _header(file)
    content = stored[len(header) + 32 :]
    return content if stored[: len(header) + 32] == header + _checksum(header, content) else None


@compiler_pass("cache folder")
def write(file: str | None, content: bytes) -> None:
    """Write the content of a file; other processes see the whole file or none."""
    if file is None or (target := folder()) is None:
        return
    try:
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not is_private(target):
            return
        _mark(target)
        handle, draft = tempfile.mkstemp(dir=target, suffix=DRAFT)
    except OSError as error:
        warnings.warn(f"compiled code cannot be stored in {target}: {error}; set LEGGED_CACHE", stacklevel=2)
        return
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(_header(file) + _checksum(_header(file), content) + content)
        os.replace(draft, target / file)
    except OSError:  # the disk is full, or on Windows another process reads the same file, which is as good as this one
        Path(draft).unlink(missing_ok=True)
    _remove_old_drafts(target)


def _read_own(path: Path) -> bytes:
    """Return the content of a regular file that only this user can write to; nothing for any other or missing file."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    except OSError:
        return b""
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if not _is_own(status):
            _warn_not_private(path)
            return b""
        return os.read(handle, status.st_size)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _is_own(status: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user, and no other user can write to it."""
    if not hasattr(os, "geteuid"):  # Windows: the folder inherits the access rights of the user's profile
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _mark(target: Path) -> None:
    """Write the marker of the folder, unless it is there."""
    marker = target / MARKER
    if not marker.exists():
        with contextlib.suppress(FileExistsError), marker.open("xb") as file:
            file.write(_MARKER_TEXT)


def _header(file: str) -> bytes:
    return _MAGIC + file.encode() + b"\n"


def _checksum(header: bytes, content: bytes) -> bytes:
    return hashlib.sha256(header + content).digest()


def is_private(path: Path) -> bool:
    """Return whether only this user can write to a folder, with a warning if not; True if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return True
    if not _is_own(status):
        _warn_not_private(path)
        return False
    return True


@cache
def _warn_not_private(path: Path) -> None:
    warnings.warn(
        f"{path} of the cache is not used, since other users can write to it: make it your own with chown and chmod "
        f"go-w, delete it, or set LEGGED_CACHE to another folder",
        stacklevel=5,
    )


@cache
def _remove_old_drafts(path: Path) -> None:
    """Delete the drafts of processes that were killed while they wrote; once per process."""
    for draft in path.glob(_DRAFT_NAME):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _DRAFT_AGE:
                draft.unlink()


class Contents(NamedTuple):
    """Contents of the cache folder.

    Attributes:
        folder: Path of the folder; None without a cache on disk.
        code: Number of files of machine code.
        size: Total size, [bytes].
        current: Number of files that belong to this version, processor and compiler.
        meshes: Number of meshes of robot files.
        motions: Number of motions that searches have found.
    """

    folder: Path | None
    code: int
    size: int
    current: int
    meshes: int = 0
    motions: int = 0

    def __str__(self) -> str:
        if self.folder is None:
            return "LEGGED_CACHE is off: compiled code is not stored on disk"
        count = self.code + self.meshes + self.motions
        if not count:
            return f"{self.folder}: no compiled code"
        kinds = f"{self.code} pieces of compiled code"
        kinds += f", {self.meshes} meshes" if self.meshes else ""
        kinds += f", {self.motions} motions" if self.motions else ""
        current = f"{self.current} of {count} files current"
        return f"{self.folder}: {kinds} ({current}), {self.size / 1e6:.1f} MB"


def describe() -> Contents:
    """Return the contents of the cache folder."""
    sizes = {}
    for path in _files():
        with contextlib.suppress(OSError):  # another process has just deleted it
            sizes[path.name] = path.stat().st_size
    current = sum(name.startswith(_generation()) for name in sizes)
    code, meshes, motions = (sum(name.endswith(suffix) for name in sizes) for suffix in (CODE, MESH, MOTION))
    return Contents(folder(), code, sum(sizes.values()), current, meshes, motions)


def clear() -> int:
    """Delete the files that this module has written, and return how many there were; the folder must have its marker.

    Raises:
        FileError: A file cannot be deleted.
    """
    files = list(_files())
    for path in files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise FileError(str(path), f"cannot be deleted: {error.strerror}") from error
    return len(files)


def _files() -> Iterator[Path]:
    if (target := folder()) is None:
        return
    try:
        if (target / MARKER).read_bytes() != _MARKER_TEXT:
            return
        entries = list(os.scandir(target))
    except OSError:
        return
    for entry in entries:
        if _OWN_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
