"""Files of runs: saving and loading, damaged and forged files, tables."""

import csv
import dataclasses
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from legged.errors import (
    FileError,
    MissingError,
)
from legged.simulation import Run
from legged.simulation.results import run_files


def leaves(record, prefix=""):
    """Yield (name, value) of the fields of a run and of its groups."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name == "model":
            yield "model", value and value.to_json()
        elif field.name == "picture":
            yield from (*leaves(value.figure, "figure."), *leaves(value.ground, "ground."))
        elif field.name == "accelerations":
            yield "vdot", value.vdot
        elif dataclasses.is_dataclass(value):
            yield from leaves(value, f"{field.name}.")
        else:
            yield prefix + field.name, value


def test_saved_run_comes_back_the_same(run, tmp_path):
    again = Run.load(run.save(tmp_path / "run"))
    for (name, one), (_, two) in zip(leaves(run), leaves(again), strict=True):
        assert type(one) is type(two), name
        np.testing.assert_array_equal(one, two, err_msg=name)
    assert again.energy_drift == run.energy_drift
    assert repr(again) == repr(run)


def test_files_are_written_to_folders_that_are_missing(run, tmp_path):
    assert run.save(tmp_path / "a" / "b" / "run").is_file()
    assert run.to_csv(str(tmp_path / "c" / "run.csv")).is_file()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be created"):
        run.save(tmp_path / "file" / "run.npz")
    with pytest.raises(FileError, match="no name of a file"):
        run.to_csv("")


def test_files_of_the_previous_format_are_read():
    """The file holds 0.02 s of free fall of the planar biped, written before the arrays of a run were grouped."""
    run = Run.load(Path(__file__).parent / "data" / "run_format_1.npz")
    assert repr(run) == "<Run of 'planar biped': 0.02 s, 3 samples, compiled closed loop>"
    assert run.joints.names == ("a_hip", "a_knee", "a_ankle", "b_hip", "b_knee", "b_ankle")
    assert run.base.position[-1, 2] == pytest.approx(-0.5 * 9.81 * 0.02**2, rel=1e-4)  # [m], the base barely rotates
    assert run.contacts.points.shape == run.contacts.forces.shape == (3, len(run.contacts.names), 3)
    assert run.energy.drift < 1e-5  # [J]
    assert run.figure.robot_nodes.shape == run.figure.nodes.shape


def changed(run, folder, **arrays):
    """Return the path of a saved run with some arrays replaced, or removed for None."""
    path = run.save(folder / "run")
    with np.load(path) as file:
        stored = {name: file[name] for name in file.files} | arrays
    np.savez(path, **{name: array for name, array in stored.items() if array is not None})
    return path


def test_files_contain_the_fields_of_a_run_and_a_version(run, tmp_path):
    assert sorted(run_files.FIELDS) == sorted(name for name, _ in leaves(run))
    with np.load(run.save(tmp_path / "run")) as file:
        assert int(file["version"]) == run_files.VERSION
    assert repr(Run.load(changed(run, tmp_path, version=None))) == repr(run)  # before versions were written
    with pytest.raises(FileError, match="is a run of layout version 99; this version of the toolkit reads 1 to 9"):
        Run.load(changed(run, tmp_path, version=np.array(99)))


def test_files_of_version_1_are_read(run, tmp_path):
    """Written by hand with the names of version 1, which had no version."""
    with np.load(run.save(tmp_path / "run")) as file:
        stored = {old: file[new] for old, new in zip(run_files._VERSION_1.split(), run_files.FIELDS, strict=False)}
    assert {"engine", "steps", "body_q", "skeleton"} < set(stored)
    np.savez(tmp_path / "old.npz", **stored)
    again = Run.load(tmp_path / "old.npz")
    later = set(run_files._CONTACTS)
    assert again.model is None and again.ground.surface.shape == (0, 0, 3)
    for (name, one), (_, two) in zip(leaves(run), leaves(again), strict=True):
        if name in ("model", "ground.surface"):
            continue
        np.testing.assert_array_equal(np.full_like(one, np.nan) if name in later else one, two, err_msg=name)


def test_damaged_model_is_named(run, tmp_path):
    with pytest.raises(FileError, match="is a damaged run: its model cannot be read"):
        Run.load(changed(run, tmp_path, model=np.array('{"robot": {}}')))


def test_tables_are_named_as_such(run, tmp_path):
    with pytest.raises(FileError, match=r"run\.csv: is a table .* load the \.npz file that run\.save wrote"):
        Run.load(run.to_csv(tmp_path / "run.csv"))


def test_loading_something_else_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=1)
    (tmp_path / "text.npz").write_text("no archive")
    np.save(tmp_path / "one.npy", np.zeros(3))
    for name, words in {
        "other.npz": "no saved run: it has no robot",
        "text.npz": "not a zip",
        "one.npy": "zip",
    }.items():
        with pytest.raises(FileError, match=words):
            Run.load(tmp_path / name)
    with pytest.raises(FileError, match="cannot be read"):
        Run.load(tmp_path / "missing.npz")


BAD = (
    ({"q": np.full((3, 18), np.nan)}, "'q' must have the shape"),
    ({"tau": None}, "it has no tau"),
    ({"robot": np.array(3)}, "'robot' must hold text entries"),
    ({"times": np.array(["a", "b"])}, "'times' must hold real entries"),
    ({"times": np.array([object()])}, "damaged run|more than the file has"),
    ({"figure.edges": np.full((12, 2), 99)}, "indices from 0 to"),
    ({"joints.q_range": np.full((8, 2), -1)}, "indices from 0 to"),
    ({"version": np.array([1.5])}, "its version is not a whole number"),
)


@pytest.mark.parametrize(("arrays", "words"), BAD)
def test_wrong_arrays_are_refused_by_name(arrays, words, run, tmp_path):
    path = changed(run, tmp_path, **arrays)
    with pytest.raises(FileError, match=words):
        Run.load(path)


def test_numbers_that_are_not_finite_are_refused_except_missing_accelerations(run, tmp_path):
    vdot = run.vdot.copy()
    vdot[0] = np.nan
    assert np.isnan(Run.load(changed(run, tmp_path, vdot=vdot)).vdot[0]).all()
    q = run.q.copy()
    q[0, 0] = np.nan
    with pytest.raises(FileError, match="'q' holds a number that is not finite"):
        Run.load(changed(run, tmp_path, q=q))


@pytest.mark.parametrize("shape", [(10**12,), (10**9, 10**9), (3,)])
def test_forged_headers_allocate_nothing(shape, run, tmp_path):
    path = run.save(tmp_path / "run")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["times.npy"] = header.getvalue() + bytes(16)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(FileError, match=r"announces|does not have"):
        Run.load(path)


def test_csv_holds_the_numbers_in_full(run, tmp_path):
    with run.to_csv(tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(run)
    assert float(rows[7]["t"]) == run.times[7]
    assert float(rows[7]["base_q[3]"]) == run.q[7, 3]
    assert float(rows[7]["leg2_knee_tau"]) == run.joint("leg2_knee").torque[7]
    assert float(rows[7]["leg3_hip_v[1]"]) == run.joint("leg3_hip").velocity[7, 1]
    assert float(rows[7]["leg2_knee_reference"]) == run.joint("leg2_knee").reference[7]
    assert float(rows[7]["base_angle_y"]) == run.base.angles()[7, 1]
    assert float(rows[7]["leg2_foot_fz"]) == run.contacts.forces[7, 1, 2]
    assert float(rows[7]["contact_work"]) == run.energy.contact_work[7]


def test_a_data_frame_has_the_columns_of_the_csv_file(run, tmp_path, monkeypatch):
    class Pandas:
        DataFrame = dict

    monkeypatch.setitem(sys.modules, "pandas", Pandas)
    frame = run.to_pandas()
    with run.to_csv(tmp_path / "run.csv").open() as file:
        assert list(frame) == next(csv.reader(file))
    assert np.array_equal(frame["leg1_knee_q"], run.joint("leg1_knee").position)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingError, match="pip install pandas"):
        run.to_pandas()


def test_pandas_reads_the_csv_file_as_the_data_frame(run, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = run.to_pandas()
    assert len(frame) == len(run) and (frame["t"] == run.times).all()
    read = pandas.read_csv(run.to_csv(tmp_path / "run.csv"))
    pandas.testing.assert_frame_equal(read, frame, rtol=1e-15, check_dtype=False)  # fast parsers round the last bit
