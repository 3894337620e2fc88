"""Open the files of meshes: regular files of limited size, also after decompression, and the files that they name."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import shown
from legged.compiler import cached_bytes
from legged.errors import FileError
from legged.files import reading

MAX_BYTES = 2**28
"""Largest size of a mesh with the files that it names, decompressed, [byte]."""
MAX_TRIANGLES = 10**7
"""Largest number of triangles of a mesh, copies included."""
MAX_ENTRIES = 10**8
"""Largest number of entries of the arrays that a glTF file declares."""
ARCHIVES = ("zip", "zae", "3mf")
FORMATS = ("stl", "obj", "dae", "ply", "off", "gltf", "glb", *ARCHIVES)
"""Formats of meshes, by the suffix of their files."""
_CHUNK = 2**20
_HEADER, _TRIANGLE = 84, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("color", "<u2")])
"""Length of the header of a binary STL file, [byte], which ends with the number of triangles; one triangle of it."""


def binary_triangles(path: str) -> Any:
    """Return the corners of the triangles of a binary STL file, (n, 3, 3), in its unit of length; None for other files.

    This format, the usual one of collision meshes, is read without trimesh, whose import takes 60 MB of memory.

    Args:
        path: The file.

    Raises:
        FileError: The file is no regular file, or a limit of this module is exceeded.
    """
    if Path(path).suffix.lower() != ".stl":
        return None
    content = reading.read_regular(path, MAX_BYTES, "meshes")
    count = int.from_bytes(content[_HEADER - 4 : _HEADER], "little")
    if len(content) < _HEADER or len(content) != _HEADER + count * _TRIANGLE.itemsize:
        return None  # STL in text
    _check_triangles(path, count)
    return np.frombuffer(content, _TRIANGLE, offset=_HEADER)["corners"].astype(float)


def open_mesh(path: str) -> Any:
    """Return the `trimesh.Scene` of a mesh.

    Args:
        path: The file.

    Raises:
        FileError: trimesh is not installed, the format is not one of `FORMATS`, the file or a file that it names is no
            regular file or is damaged, or one of the limits of this module is exceeded.
    """
    try:
        import trimesh
    except ImportError as error:
        raise FileError(path, "opening meshes needs trimesh: pip install 'legged[urdf]'") from error
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise FileError(path, f"is no mesh of a known format; these are {', '.join(FORMATS)}")
    content = reading.read_regular(path, MAX_BYTES, "meshes")
    companions = _Companions(path, MAX_BYTES - len(content))
    try:
        if suffix in ARCHIVES:
            _check_archive(content, path)
        if suffix in ("gltf", "glb"):
            _check_arrays(content, path)
        scene: Any = trimesh.load_scene(io.BytesIO(content), file_type=suffix, resolver=companions)  # type: ignore[arg-type]
        copies = (scene.graph[node][1] for node in scene.graph.nodes_geometry)
        triangles = sum(len(getattr(scene.geometry[name], "faces", ())) for name in copies)
    except FileError:
        raise
    except Exception as error:  # readers of a dozen formats raise errors of as many classes
        if companions.refused is None:
            words = f"the mesh cannot be read: {type(error).__name__}: {shown(str(error), 200)}"
            raise FileError(path, words) from error
    if companions.refused is not None:
        raise companions.refused
    _check_triangles(path, triangles)
    return scene


def _check_triangles(path: str, count: int) -> None:
    if count > MAX_TRIANGLES:
        raise FileError(path, f"has {count} triangles, copies included; the limit is {MAX_TRIANGLES}")


def stored_arrays(path: str, layout: str, read: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arrays that a function reads from a mesh, from the cache folder if they are there.

    This saves the import of trimesh and the reading of the mesh. The arrays are stored under the hash of the content of
    the file. Those of glTF in text (.gltf) are not stored, since such a file refers to other files.

    Args:
        path: The file. layout: Name of what `read` returns and version of its layout, part of the key in the cache.
        read: Function that returns arrays of numbers or text by name.

    Raises:
        FileError: The file is no regular file or is too large; besides, the errors of `read`.
    """
    key = hashlib.sha256(reading.read_regular(path, MAX_BYTES, "meshes")).hexdigest()
    suffix = Path(path).suffix.lower()

    def packed() -> bytes:
        buffer, arrays = io.BytesIO(), {name: np.asarray(array) for name, array in read().items()}
        np.savez(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()

    content = packed() if suffix == ".gltf" else cached_bytes(packed, key, suffix, layout)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)


class _Companions:
    """The files beside a mesh that it may name: materials, pictures and arrays, in its folder and those inside it.

    Attributes:
        refused: Error about the first file that is no regular file, or with which the limit is exceeded; None if there
            is none. Readers of meshes catch errors about missing materials.
    """

    def __init__(self, path: str, left: int):
        self._folder, self._left = os.path.dirname(os.path.realpath(path)), left
        self.refused: FileError | None = None

    def get(self, name: str) -> bytes:
        """Return the content of a file.

        Args:
            name: Its path relative to the folder of the mesh.
        """
        for candidate in (name.strip(), name.strip().lstrip("/\\"), os.path.basename(name)):
            place = os.path.realpath(os.path.join(self._folder, candidate))
            if os.path.commonpath([self._folder, place]) == self._folder and os.path.lexists(place):
                try:
                    content = reading.read_regular(place, self._left, "meshes and the files that they name")
                except FileError as error:
                    self.refused = self.refused or error
                    raise
                self._left -= len(content)
                return content
        raise FileNotFoundError(shown(name, 200))

    __getitem__ = get

    def keys(self) -> list[str]:
        """Return the names of the files in the folder."""
        return [entry.name for entry in os.scandir(self._folder) if entry.is_file()]

    def namespaced(self, namespace: str) -> _Companions:
        """Return the files of a folder inside this one; of this one, since `get` takes paths."""
        return self


def check_members(archive: zipfile.ZipFile, path: str) -> None:
    """Raise a FileError if a member is compressed by a method that expands without bound before it can be measured.

    Args:
        archive: The archive. path: Its path, for messages.
    """
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            words = "is compressed by another method than deflate; write the archive again with it"
            raise FileError(path, f"{shown(member.filename)} {words}")


def _check_archive(content: bytes, path: str) -> None:
    """Raise a FileError if the members of an archive are larger than `MAX_BYTES` together, or archives themselves."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        check_members(archive, path)
        left = MAX_BYTES
        for member in archive.infolist():
            if Path(member.filename).suffix.lower().removeprefix(".") in (*ARCHIVES, "gz", "bz2", "xz", "tar", "7z"):
                raise FileError(path, f"contains the archive {shown(member.filename)}; unpack it first")
            with archive.open(member) as file:  # the declared sizes may be wrong
                while size := len(file.read(min(_CHUNK, left + 1))):
                    left -= size
                    if left < 0:
                        words = f"is larger than {MAX_BYTES // 2**20} MiB when it is decompressed, the limit for meshes"
                        raise FileError(path, words)


def _check_arrays(content: bytes, path: str) -> None:
    """Raise a FileError if a glTF file declares arrays with more than `MAX_ENTRIES`, which need not be in any file."""
    if content[:4] == b"glTF":
        length = struct.unpack("<I", content[12:16])[0]
        content = content[20 : 20 + length]
    tree = json.loads(content)
    counts = [abs(int(one.get("count", 0))) for one in tree.get("accessors", ())]
    if sum(counts) > MAX_ENTRIES:
        raise FileError(path, f"declares arrays of {sum(counts)} entries; the limit is {MAX_ENTRIES}")
