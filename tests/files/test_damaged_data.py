"""Saved runs, rollouts, tables and meshes with changed, missing and repeated bytes end in the toolkit's errors."""

import random

import numpy as np
import pytest

import legged
import robots
from legged.errors import LeggedError
from legged.files.visuals import opened_mesh
from legged.simulation import Rollouts

trimesh = pytest.importorskip("trimesh")
COUNT = 60
"""Number of damaged copies of each file; `COUNT` copies of all files take some seconds."""
KINDS = ("run", "rollouts", "table", "stl", "obj", "ply", "off", "glb", "gltf", "dae", "zip")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Kind -> (path of a sound file, function that reads one)."""
    folder, robot = tmp_path_factory.mktemp("sound"), robots.chain(2)
    run = legged.simulate(robot, until=0.03)
    runs = legged.rollout(robot, until=0.02, vary={"robot.gravity": np.zeros((2, 3))})
    ball = trimesh.creation.icosphere(1, 0.1)
    sound = {
        "run": (run.save(folder / "run"), legged.Run.load),
        "rollouts": (runs.save(folder / "runs"), Rollouts.load),
        "table": (run.to_csv(folder / "table"), lambda path: legged.Run.from_csv(robot, path)),
    }
    for kind in KINDS[3:]:
        path = folder / f"mesh.{kind}"
        if kind == "gltf":
            for name, content in trimesh.Scene(ball).export(file_type="gltf").items():
                (folder / (path.name if name == "model.gltf" else name)).write_bytes(content)
        elif kind == "zip":
            import zipfile

            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("mesh.obj", ball.export(file_type="obj"))
        else:
            ball.export(path)
        sound[kind] = path, lambda path: opened_mesh(str(path))
    return sound


def damaged(content, rng):
    """Return bytes with some of them changed, removed, repeated or replaced by large numbers."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 10))):
        at = rng.randrange(len(changed) or 1)
        match rng.randrange(6):
            case 0:
                changed[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del changed[at : at + rng.randrange(1, 40)]
            case 2:
                changed[at:at] = changed[at : at + rng.randrange(1, 40)]
            case 3:
                changed[at : at + 4] = b"\xff\xff\xff\x7f"
            case 4:
                changed[at : at + 1] = rng.choice((b"9e999", b"nan", b"-", b"", b"\x00", b"<", b'"', b"{", b"\n"))
            case _:
                del changed[at:]
        changed = changed or bytearray(b" ")
    return bytes(changed)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused(kind, files, tmp_path, monkeypatch):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    path, read = files[kind]
    content, rng, refused = path.read_bytes(), random.Random(7), 0
    read(path)
    for number in range(COUNT):
        copy = tmp_path / f"{number}{path.suffix}"
        copy.write_bytes(damaged(content, rng))
        try:
            read(copy)
        except LeggedError as error:
            assert str(copy) in str(error) and "\n" not in str(error)
            refused += 1
    assert refused > COUNT // 20
