"""Heights from files: gray images and tables of comma-separated values, seen from above."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from legged.arguments import number
from legged.errors import ArgumentError, FileError
from legged.output import visible

Array = np.ndarray
MOST_HEIGHTS = 4_000_000
"""Number of heights above which a file is refused."""
_IMAGES = (".png", ".tif", ".tiff", ".bmp", ".pgm", ".jpg", ".jpeg")
MAPS = (*_IMAGES, ".csv")
"""Endings of the names of files with heights."""


def read_heights(path: str | Path, rise: float | None) -> Array:
    """Return the heights of a file as (nx, ny), [m]; see `HeightMap.from_file`.

    Args:
        path: The file. rise: Height of white above black, [m], of an image; None for a table.

    Raises:
        ArgumentError: An image without a rise, or a table with one.
        FileError: The file is missing, damaged, too large, colored, or of another format.
    """
    source, suffix = Path(path), Path(path).suffix.lower()
    if suffix not in MAPS:
        raise FileError(visible(path), f"is no height map; give a file {', '.join(MAPS)}")
    if not source.is_file():
        raise FileError(visible(path), "does not exist")
    if suffix == ".csv":
        if rise is not None:
            raise ArgumentError("rise must be None for a table, whose numbers are heights in meters")
        seen = _read_table(source)
    elif rise is None:
        raise ArgumentError("rise must be given for an image: the height of white above black in meters")
    else:
        seen = number("rise", rise, "m") * _read_image(source)
    return np.ascontiguousarray(seen[::-1].T)  # rows go down in the file, and y goes up


def _read_image(path: Path) -> Array:
    """Return the brightness of an image, (rows, columns), from 0, black, to 1, white."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            if image.width * image.height > MOST_HEIGHTS:
                raise FileError(visible(path), f"has {image.width} x {image.height} pixels, more than {MOST_HEIGHTS}")
            palette = image.convert("RGBA") if image.mode in ("P", "PA") else image
            pixels = np.asarray(palette)
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(visible(path), f"is no image that can be read: {visible(error)}") from error
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    white = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind in "ui" else 1.0
    if pixels.dtype == np.int32:
        white = 65535.0  # Pillow reads some images of 16 bits as those of 32
    if pixels.ndim == 3:
        opaque = pixels.shape[2] in (1, 3) or (pixels[..., -1] == white).all()
        gray = pixels[..., : pixels.shape[2] - (pixels.shape[2] in (2, 4))]
        if not opaque or (gray != gray[..., :1]).any():
            raise FileError(visible(path), "has colors or transparent pixels; convert it to an image in gray")
        pixels = gray[..., 0]
    heights = pixels.astype(float) / white
    if not np.isfinite(heights).all() or heights.min() < 0.0 or heights.max() > 1.0:
        raise FileError(visible(path), "has a brightness that is not between black and white")
    return heights


def _read_table(path: Path) -> Array:
    """Return the numbers of a table, (rows, columns), [m]."""
    try:
        if path.stat().st_size > 30 * MOST_HEIGHTS:
            raise FileError(visible(path), f"is too large for a height map of at most {MOST_HEIGHTS} heights")
        rows = [line.split(",") for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeError) as error:
        raise FileError(visible(path), f"cannot be read: {visible(error)}") from error
    if not rows or len({len(row) for row in rows}) > 1:
        raise FileError(visible(path), "must have rows of equally many heights, separated by commas")
    values = []
    for k, row in enumerate(rows):
        for j, cell in enumerate(row):
            try:
                values.append(float(cell))
            except ValueError:
                words = f"row {k + 1}, column {j + 1} must be a height in meters, got '{visible(cell, 40)}'"
                raise FileError(visible(path), words) from None
    heights = np.array(values).reshape(len(rows), -1)
    if heights.size > MOST_HEIGHTS or not np.isfinite(heights).all():
        raise FileError(visible(path), f"must have finite heights, at most {MOST_HEIGHTS}")
    return heights
