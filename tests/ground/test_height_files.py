"""Height maps from images and tables."""

import numpy as np
import pytest
from PIL import Image

from legged.app.selection import parse_terrain
from legged.errors import ArgumentError, DefinitionError, FileError
from legged.ground import HeightMap

SEEN = np.array([[0, 51, 102], [0, 0, 255]], dtype=np.uint8)
"""An image of two rows and three columns: its upper row is the side of the larger y."""


def saved(folder, pixels, name="map.png", **options):
    Image.fromarray(pixels).save(folder / name, **options)
    return folder / name


def test_an_image_is_the_terrain_seen_from_above(tmp_path):
    terrain = HeightMap.from_file(saved(tmp_path, SEEN), width=4.0, rise=0.5)
    assert terrain.spacing == 2.0 and terrain.origin == (-2.0, -1.0)
    assert terrain.height(2.0, -1.0) == 0.5  # lower right
    assert terrain.height(0.0, 1.0) == pytest.approx(0.1) and terrain.height(2.0, 1.0) == pytest.approx(0.2)
    assert terrain.height(-2.0, 1.0) == terrain.height(0.0, -1.0) == 0.0
    moved = HeightMap.from_file(tmp_path / "map.png", 4.0, 0.5, center=(10.0, 20.0))
    assert moved.height(12.0, 19.0) == 0.5


@pytest.mark.parametrize(
    "pixels",
    [
        SEEN.astype(np.uint16) * np.uint16(257),
        np.repeat(SEEN[..., None], 3, axis=2),
        np.concatenate([np.repeat(SEEN[..., None], 3, axis=2), np.full((2, 3, 1), 255, np.uint8)], axis=2),
        SEEN.astype(np.float32) / np.float32(255),
    ],
    ids=["16 bits", "RGB", "RGBA", "float"],
)
def test_all_kinds_of_gray_images_are_read(pixels, tmp_path):
    name = "map.tiff" if pixels.dtype == np.float32 else "map.png"
    terrain = HeightMap.from_file(saved(tmp_path, pixels, name), 2.0, 1.0)
    np.testing.assert_allclose(terrain.heights, SEEN[::-1].T / 255.0, atol=1e-7)  # rounding of 32-bit numbers


def test_a_palette_and_two_colors_are_read(tmp_path):
    Image.fromarray(SEEN).convert("P").save(tmp_path / "p.png")
    np.testing.assert_allclose(HeightMap.from_file(tmp_path / "p.png", 2.0, 1.0).heights, SEEN[::-1].T / 255.0)
    Image.fromarray(SEEN > 100).save(tmp_path / "one.png")
    np.testing.assert_array_equal(HeightMap.from_file(tmp_path / "one.png", 2.0, 1.0).heights, (SEEN > 100)[::-1].T)


def test_a_table_has_heights_in_meters(tmp_path):
    (tmp_path / "map.csv").write_text("\ufeff0, 0.1,-0.2\n\n1e-1,0,0.5\n", encoding="utf-8")
    terrain = HeightMap.from_file(tmp_path / "map.csv", width=2.0)
    np.testing.assert_array_equal(terrain.heights, np.array([[0.1, 0.0, 0.5], [0.0, 0.1, -0.2]]).T)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "rows of equally many heights"),
        ("1,2\n3\n", "rows of equally many heights"),
        ("1,2\n3,x\n", "row 2, column 2 must be a height in meters, got 'x'"),
        ("1,2\n3,nan\n", "finite"),
        ("1,2\n3,\n", "row 2, column 2"),
        ("1\n2\n", "two columns"),
        ("\x1b[31m,2\n3,4\n", r"got '\\x1b\[31m'"),
    ],
)
def test_tables_that_are_no_height_maps_are_refused(text, words, tmp_path):
    (tmp_path / "map.csv").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=words):
        HeightMap.from_file(tmp_path / "map.csv", 1.0)


def test_images_that_are_no_height_maps_are_refused(tmp_path):
    colored = np.zeros((2, 2, 3), np.uint8)
    colored[0, 0, 1] = 9
    with pytest.raises(FileError, match="colors"):
        HeightMap.from_file(saved(tmp_path, colored), 1.0, 1.0)
    (tmp_path / "bad.png").write_bytes((tmp_path / "map.png").read_bytes()[:40])
    for name, words in (("bad.png", "no image"), ("none.png", "does not exist"), ("map.txt", "is no height map")):
        with pytest.raises(FileError, match=words):
            HeightMap.from_file(tmp_path / name, 1.0, 1.0)
    Image.new("1", (4000, 4000)).save(tmp_path / "large.png")
    with pytest.raises(FileError, match="4000 x 4000 pixels"):
        HeightMap.from_file(tmp_path / "large.png", 1.0, 1.0)
    gray = saved(tmp_path, SEEN, "gray.png")
    with pytest.raises(ArgumentError, match="rise must be given"):
        HeightMap.from_file(gray, 1.0)
    with pytest.raises(ArgumentError, match="width must be positive"):
        HeightMap.from_file(gray, 0.0, 1.0)


def test_the_command_line_takes_a_map_with_its_size(tmp_path):
    path = str(saved(tmp_path, SEEN))
    assert parse_terrain(path, (4.0, 0.5)).height(2.0, -1.0) == 0.5
    with pytest.raises(DefinitionError, match="needs --size"):
        parse_terrain(path)
    with pytest.raises(DefinitionError, match="--size belongs to"):
        parse_terrain("slope:3", (4.0, 0.5))
