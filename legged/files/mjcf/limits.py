"""Limits on the size of MJCF models, checked before MuJoCo's compiler allocates memory for them.

A short file can request gigabytes of memory: with textures and height fields of a given size, nested `<replicate>` and
arrays of a given length. Pipes and devices in place of the files of a model would block the compiler.

`reader` calls `check_limits` first. It goes through the XML elements of all files of a model, adds up what each of them
requests, and compares the amounts with `LIMITS`. It reads nothing else of the model: errors of its structure are those
of MuJoCo's compiler.
"""

from __future__ import annotations

import math
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from legged.arguments import shown
from legged.errors import FileError
from legged.files import reading

MOST_FILES = 100
"""Largest number of included and attached MJCF files."""
_ELEMENTS = "XML elements, copies of <replicate>, <composite> and <flexcomp> included"
_BODIES = "bodies, copies included"
_PIXELS = "pixels of textures"
_SAMPLES = "samples of height fields"
_ENTRIES = "entries of keyframes, user data and custom arrays"
_FACES_OF_MESHES = "faces of built-in meshes"
LIMITS = {
    _ELEMENTS: reading.MOST_ELEMENTS,
    _BODIES: 10_000,
    _PIXELS: 2**26,
    _SAMPLES: 2**24,
    _ENTRIES: 10**6,
    _FACES_OF_MESHES: 10**5,
}
"""Largest amounts in a model. Pixels and samples take some 6 bytes each while MuJoCo compiles them."""
_SIZES = ("nkey", "nuserdata", "nuser_body", "nuser_jnt", "nuser_geom", "nuser_site", "nuser_cam", "nuser_tendon",
          "nuser_actuator", "nuser_sensor")  # fmt: skip
"""Attributes of <size> that are lengths of arrays."""
_COPIES = ("replicate", "composite", "flexcomp")
"""Elements whose content occurs as many times as their attribute `count` says."""
_CUBES = ("cube", "skybox")
"""Types of textures with six square faces, whose width is that of one face."""
_NAMES = frozenset((
    "name", "class", "childclass", "file", "target", "site", "tendon", "actuator", "mesh", "material", "texture",
    "data", "key", "prefix", "body", "body1", "body2", "joint", "joint1", "joint2", "jointinparent", "geom", "geom1",
    "geom2", "objname", "refname", "bodyname",
))  # fmt: skip
"""Attributes that hold names, for which "nan" and "inf" are allowed."""
_NOT_FINITE = frozenset(("nan", "inf", "infinity"))
_HUGE = 1e30
"""Replaces larger numbers, and those that are not finite: products of a few of them stay finite."""
_PNG = b"\x89PNG\r\n\x1a\n"


def check_limits(content: bytes, source: str) -> None:
    """Raise FileError if an MJCF model exceeds one of the `LIMITS`, or if a file that it needs is no regular file.

    Args:
        content: Content of the main file.
        source: Path of the main file; included files, meshes and textures are searched for in its folder.
    """
    amounts: dict[str, float] = dict.fromkeys(LIMITS, 0.0)
    for root in _documents(content, source):
        folders = _folders(root, Path(source).parent)
        _check_numbers(root, source)
        _count(root, amounts, source)
        for element in root.iter("texture", "hfield", "mesh", "skin", "flexcomp"):
            amounts[_unit_of(element)] += _requested(element) + _pixels_of_files(element, folders, source)
        too_large = next((what for what, most in LIMITS.items() if not amounts[what] <= most), None)  # also for NaN
        if too_large:
            words = f"requests {amounts[too_large]:.3g} {too_large}; the limit is {LIMITS[too_large]}"
            raise FileError(source, f"{words}: reduce the model")


def _check_numbers(root: Any, source: str) -> None:
    """Raise FileError for an attribute that holds a number which is not finite; names may be any words."""
    for element in root.iter():
        for name, value in element.attrib.items():
            words = value.split()
            if name in _NAMES or not any(word.lower().lstrip("+-") in _NOT_FINITE for word in words):
                continue
            what = f" {element.get('name')!r}" if element.get("name") else ""
            raise FileError(
                source,
                f"attribute {name!r} of <{element.tag}>{what} (line {element.sourceline}) holds {shown(value)}: give "
                "finite numbers",
            )


def _documents(content: bytes, source: str) -> Iterator[Any]:
    """Yield the root elements of the main file and of the files that it includes or attaches, each file once."""
    folder, seen = Path(source).parent, {Path(source).resolve()}
    waiting = [reading.parse(content, source, lenient=True)]
    while waiting:
        root = waiting.pop()
        if root is None:
            continue
        yield root
        for element in root.iter("include", "model"):
            path = folder / (element.get("file") or "")
            if not element.get("file") or not os.path.exists(path) or path.resolve() in seen:
                continue  # MuJoCo's compiler reports a missing file, also one whose name no file can have
            seen.add(path.resolve())
            if len(seen) > MOST_FILES:
                raise FileError(source, f"includes more than {MOST_FILES} files")
            waiting.append(reading.parse(reading.read_bytes(path), str(path), lenient=True))


def _folders(root: Any, folder: Path) -> list[Path]:
    """Return the folders in which MuJoCo looks for the files of a model."""
    given = {compiler.get(name) for compiler in root.iter("compiler") for name in ("assetdir", "meshdir", "texturedir")}
    return [folder, *(folder / name for name in given if name)]


def _count(root: Any, amounts: dict[str, float], source: str) -> None:
    """Add the elements, bodies and entries of a document, copies included."""
    waiting = [(root, 1.0)]
    while waiting:
        element, copies = waiting.pop()
        amounts[_ELEMENTS] += copies
        if element.tag in _COPIES:
            copies *= math.prod(_numbers(element, "count"))
            amounts[_ELEMENTS] += copies
        amounts[_BODIES] += copies * (element.tag in ("body", "composite", "flexcomp"))
        if element.tag == "size":
            amounts[_ENTRIES] += sum(math.prod(_numbers(element, name)) for name in _SIZES if element.get(name))
        if element.tag == "numeric" and element.get("size"):
            amounts[_ENTRIES] += math.prod(_numbers(element, "size"))
        waiting += [(child, copies) for child in element]


def _unit_of(element: Any) -> str:
    """Return the key of `LIMITS` by which the size of an asset is counted."""
    return {"texture": _PIXELS, "hfield": _SAMPLES}.get(element.tag, _FACES_OF_MESHES)


def _requested(element: Any) -> float:
    """Return the number of pixels, samples or faces that the attributes of an asset request."""
    is_builtin = element.get("builtin", "none") != "none"
    if element.tag == "texture" and is_builtin:
        width, height = ([*_numbers(element, name), 1.0][0] for name in ("width", "height"))
        return 6.0 * width * width if element.get("type", "cube") in _CUBES else width * height
    if element.tag == "hfield":
        return math.prod([*_numbers(element, "nrow"), *_numbers(element, "ncol")])
    if element.tag == "mesh" and is_builtin:  # at most a grid of its largest resolution in both directions
        return max(_numbers(element, "params"), default=0.0) ** 2
    return 0.0


def _pixels_of_files(element: Any, folders: list[Path], source: str) -> float:
    """Return the number of pixels in the PNG files of an asset; raise FileError if a file is a pipe or a device."""
    pixels = 0.0
    files = [text for name, text in element.attrib.items() if name.startswith("file")]
    for path in {folder / name for name in files for folder in folders}:
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError):
            continue  # MuJoCo's compiler reports a missing file
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise FileError(source, f"its file {path} is a pipe or a device; give the path of a regular file")
        if path.suffix.lower() == ".png" and element.tag in ("texture", "hfield"):
            pixels += math.prod(_png_size(path))
    return pixels


def _png_size(path: Path) -> list[float]:
    """Return width and height in the header of a PNG file, [pixel]; zero if it is none."""
    with path.open("rb") as file:
        head = file.read(24)
    return list(struct.unpack(">II", head[16:])) if len(head) == 24 and head.startswith(_PNG) else [0.0]


def _numbers(element: Any, name: str) -> list[float]:
    """Return the magnitudes of the numbers in an attribute, up to the first word that is no number."""
    numbers = []
    for word in (element.get(name) or "").split():
        try:
            size = abs(float(word))
        except ValueError:
            break
        numbers.append(size if size < _HUGE else _HUGE)  # the comparison is false for NaN
    return numbers
