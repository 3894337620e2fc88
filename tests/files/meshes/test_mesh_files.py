"""Files of meshes and archives from strangers: bounded when decompressed, regular, with names of any length."""

import io
import json
import os
import struct
import tracemalloc
import zipfile

import pytest

import legged
from legged.errors import FileError
from legged.files import meshes
from legged.files.visuals import opened_mesh

trimesh = pytest.importorskip("trimesh")
ROBOT = """<robot name="r"><link name="base"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<collision><geometry><mesh filename="{0}"/></geometry></collision>
<visual><geometry><mesh filename="{0}"/></geometry></visual></link></robot>"""
TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n"
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")


def archive(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def refused(path, words):
    """Check that a mesh is refused as a collision shape and as a visual shape."""
    robot = path.parent / "robot.urdf"
    robot.write_text(ROBOT.format(path.name))
    with pytest.raises(FileError, match=words):
        legged.load(robot, shapes=True)
    with pytest.raises(FileError, match=words):
        opened_mesh(str(path))
    assert legged.load(robot).mass == 1.0  # meshes are not opened without being asked for


@pytest.mark.parametrize("kind", ["zip", "zae", "3mf"])
def test_archives_are_bounded_by_their_decompressed_size(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(meshes, "MAX_BYTES", 2**22)
    path = archive(tmp_path / f"part.{kind}", {"part.obj": TRIANGLE + "#" * 2**26})
    assert path.stat().st_size < 2**17
    tracemalloc.start()
    refused(path, "is larger than 4 MiB when it is decompressed")
    assert tracemalloc.get_traced_memory()[1] < 2**24  # [byte]; it expands to 2^26
    tracemalloc.stop()


def test_wrong_sizes_in_archives_are_found_out(tmp_path, monkeypatch):
    """The size that an archive declares for a member is four bytes, which anybody can change."""
    monkeypatch.setattr(meshes, "MAX_BYTES", 2**22)
    path = archive(tmp_path / "part.zip", {"part.obj": b"#" * 2**25})
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", 2**25), struct.pack("<I", 100)))
    tracemalloc.start()
    refused(path, "cannot be read: BadZipFile")
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_without_bounds_and_archives_in_archives_are_refused(method, tmp_path):
    refused(archive(tmp_path / "part.zip", {"part.obj": TRIANGLE}, method), "by another method than deflate")
    inner = archive(tmp_path / "inner.zip", {"part.obj": TRIANGLE}).read_bytes()
    refused(archive(tmp_path / "outer.zip", {"inner.zip": inner}), "contains the archive 'inner.zip'; unpack it")
    assert len(opened_mesh(str(archive(tmp_path / "good.zip", {"part.obj": TRIANGLE})))) == 1


def test_formats_without_a_reader_are_named(tmp_path):
    for name in ("part.tar.gz", "part.bz2", "part.fbx", "part"):
        (tmp_path / name).write_bytes(b"x")
        refused(tmp_path / name, "is no mesh of a known format; these are stl, obj")


def scene_file(path, accessors, nodes=()):
    tree = {"asset": {"version": "2.0"}, "accessors": accessors, "nodes": list(nodes)}
    tree |= {"meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "scenes": [{"nodes": [0]}], "scene": 0}
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    head = struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A)
    path.write_bytes(text if path.suffix == ".gltf" else head + text)
    return path


@pytest.mark.parametrize("suffix", ["gltf", "glb"])
def test_arrays_that_are_only_declared_allocate_nothing(suffix, tmp_path):
    big = [{"componentType": 5126, "count": 10**10, "type": "VEC3"}]
    path = scene_file(tmp_path / f"part.{suffix}", big, [{"mesh": 0}])
    tracemalloc.start()
    refused(path, "declares arrays of 10000000000 entries")
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_copies_of_a_mesh_are_counted(tmp_path, monkeypatch):
    scene = trimesh.Scene()
    for k in range(20):
        scene.add_geometry(trimesh.creation.icosphere(2), geom_name="ball", node_name=str(k))
    scene.export(tmp_path / "part.glb")
    assert opened_mesh(str(tmp_path / "part.glb"))
    monkeypatch.setattr(meshes, "MAX_TRIANGLES", 1000)
    with pytest.raises(FileError, match="has 6400 triangles, copies included; the limit is 1000"):
        meshes.open_mesh(str(tmp_path / "part.glb"))


@needs_pipes
@pytest.mark.parametrize("kind", ["itself", "material", "buffer"])
def test_pipes_in_place_of_files_are_refused(kind, tmp_path):
    """Opening a pipe waits for a writer: without the check this test does not end."""
    path = tmp_path / {"itself": "part.stl", "material": "part.obj", "buffer": "part.gltf"}[kind]
    if kind == "itself":
        os.mkfifo(path)
        refused(path, "was not found|it is a pipe")
        return
    os.mkfifo(tmp_path / "other")
    if kind == "material":
        path.write_text("mtllib other\nusemtl a\n" + TRIANGLE)
    else:
        view = {"buffer": 0, "byteOffset": 0, "byteLength": 36}
        scene_file(path, [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}], [{"mesh": 0}])
        tree = json.loads(path.read_bytes()) | {"buffers": [{"uri": "other", "byteLength": 36}], "bufferViews": [view]}
        path.write_text(json.dumps(tree))
    refused(path, "other: cannot be read: it is a pipe")


def test_materials_beside_a_mesh_are_read_and_others_are_not(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    material = "newmtl a\nKd 1 0 0\n"
    (folder / "own.mtl").write_text(material)
    (tmp_path / "outside.mtl").write_text(material)
    for name, is_read in (("own.mtl", True), ("../outside.mtl", False)):
        path = folder / "part.obj"
        path.write_text(f"mtllib {name}\nusemtl a\n{TRIANGLE}")
        (part,) = opened_mesh(str(path))
        assert (part[2] == pytest.approx((1.0, 0.0, 0.0), abs=0.01)) == is_read


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="the files of Linux about processes")
@pytest.mark.parametrize("name", ["/proc/self/mem", "file:///proc/self/mem", "/dev/zero", "/proc/self/pagemap"])
def test_files_of_the_system_are_no_meshes(name, tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT.format(name))
    with pytest.raises(FileError):
        legged.load(path, shapes=True)
    with pytest.raises(FileError):
        legged.Run.load(name)
    with pytest.raises(FileError):
        legged.load(name)
    assert legged.load(path).mass == 1.0


@pytest.mark.parametrize("name", ["x" * 5000, "x/" * 3000 + "part.stl", "package://" + "x" * 5000 + "/part.stl"])
def test_long_names_of_meshes_are_missing_files(name, tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT.format(name))
    with pytest.raises(FileError, match="was not found") as caught:
        legged.load(path, shapes=True)
    assert len(str(caught.value)) < 1000
    model = tmp_path / "model.xml"
    geom = '<body><geom type="mesh" mesh="m" mass="1"/></body>'
    model.write_text(f'<mujoco><asset><mesh name="m" file="{name}"/></asset><worldbody>{geom}</worldbody></mujoco>')
    with pytest.raises(FileError):
        legged.load(model)
    with pytest.raises(FileError):
        legged.load(name)
    with pytest.raises(FileError):
        legged.Run.load(name)


def test_stored_meshes_hold_numbers_alone(tmp_path, monkeypatch):
    from legged.compiler.cache import disk

    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "part.obj").write_text(TRIANGLE)
    first = opened_mesh(str(tmp_path / "part.obj"))
    (stored,) = disk.folder().glob("*.mesh")
    assert b"pickle" not in stored.read_bytes()
    (again,) = opened_mesh(str(tmp_path / "part.obj"))
    assert all((a == b).all() for a, b in zip(first[0][:2], again[:2], strict=True)) and first[0][2] == again[2]


def expanded(path, size, declared=None, method=zipfile.ZIP_DEFLATED):
    """Return the path of a run whose times are `size` zeros."""
    header = io.BytesIO()
    import numpy as np

    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (size,)})
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["times.npy"] = header.getvalue() + bytes(8 * size)
    return archive(path, members, method)


def test_runs_are_bounded_by_their_decompressed_size(tmp_path):
    import robots

    run = legged.simulate(robots.chain(1), until=2.0)
    path = expanded(run.save(tmp_path / "run"), 2**25 + 10**4)  # 256 MiB in 0.3 MiB
    tracemalloc.start()
    with pytest.raises(FileError, match="its arrays are larger than 256 MiB; load it with most=, in bytes"):
        legged.Run.load(path)
    with pytest.raises(FileError, match=r"its arrays are larger than 0\.0191 MiB"):
        legged.Run.load(run.save(tmp_path / "small"), most=20_000)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()
    with pytest.raises(FileError, match="'phases' must have the shape"):
        legged.Run.load(path, most=2**30)
    with pytest.raises(FileError, match="another method than deflate"):
        legged.Run.load(expanded(run.save(tmp_path / "lzma"), 100, method=zipfile.ZIP_LZMA))
