"""`legged.sweep`: chunks, keys, failures, stores, clusters, interruptions."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import distributed
import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest
from sweeps.studied import PUSHES, product, samples, setup

import legged
from legged import sweeps
from legged.errors import ArgumentError, FileError, LeggedError, SimulationError, SimulationInterrupt, SimulationWarning
from legged.sweeps import content


def files(store):
    return sorted(path.name for path in (Path(store) / "chunks").iterdir())


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_the_table_has_the_function_of_each_row_and_the_units(tmp_path):
    given = samples()
    table = legged.sweep(product, given, tmp_path / "s", chunk=7, units={"product": "m^2"}).table()
    assert np.array_equal(table["product"], given.columns["a"] * given.columns["b"])
    assert np.array_equal(table["above"].astype(bool), given.columns["a"] > given.columns["b"])
    assert table.attrs["units"] == {"a": "m", "product": "m^2"}
    path = legged.sweep(product, given, tmp_path / "s", chunk=7, units={"product": "m^2"}).save(tmp_path / "t")
    assert pq.read_schema(path).field("product").metadata[b"unit"] == b"m^2"


def test_a_second_call_computes_nothing(tmp_path):
    first = legged.sweep(product, samples(), tmp_path, chunk=7).table()
    before = {name: (tmp_path / "chunks" / name).stat().st_mtime_ns for name in files(tmp_path)}
    assert legged.sweep(product, samples(), tmp_path).table().equals(first)
    assert {name: (tmp_path / "chunks" / name).stat().st_mtime_ns for name in files(tmp_path)} == before


def test_more_samples_compute_only_the_new_chunks(tmp_path):
    legged.sweep(product, samples(40), tmp_path, chunk=10).table()
    before = set(files(tmp_path))
    assert len(legged.sweep(product, samples(60), tmp_path, chunk=10).table()) == 60
    assert len(set(files(tmp_path)) - before) == 2 and before <= set(files(tmp_path))


@pytest.mark.parametrize("trial", [product, setup()])
def test_more_samples_keep_all_chunks_whose_size_was_chosen(trial, tmp_path):
    make = samples if trial is product else lambda n: sweeps.random(n, PUSHES)
    legged.sweep(trial, make(30), tmp_path, seconds=0.02).table()
    before = set(files(tmp_path))
    table = legged.sweep(trial, make(50), tmp_path, seconds=0.02).table()
    assert before < set(files(tmp_path)) and len(table) == 50
    after = set(files(tmp_path))
    assert len(legged.sweep(trial, make(30), tmp_path, seconds=0.02).table()) == 30 and set(files(tmp_path)) == after


def test_a_changed_law_computes_its_own_chunks_and_no_others(tmp_path):
    def other(factor):
        return lambda a, b: factor * a * b

    first = legged.sweep({"one": other(1.0), "two": other(2.0)}, samples(20), tmp_path, chunk=5).table()
    before = set(files(tmp_path))
    second = legged.sweep({"one": other(1.0), "two": other(3.0)}, samples(20), tmp_path, chunk=5).table()
    assert len(set(files(tmp_path)) - before) == 4
    assert first[first.setup == "one"].equals(second[second.setup == "one"])
    assert np.allclose(second[second.setup == "two"]["value"], 1.5 * first[first.setup == "two"]["value"], rtol=1e-15)
    legged.sweep({"one": other(1.0), "two": other(2.0)}, samples(20), tmp_path, chunk=5).table()
    assert len(set(files(tmp_path)) - before) == 4  # the first ones are still there


def test_failures_are_kept_with_their_message_and_the_rest_goes_on(tmp_path):
    def function(a, b):
        if b > 1.0:
            raise ValueError(f"b = {b:.1f} is too large\x1b[2J")
        return a

    table = legged.sweep(function, samples(), tmp_path, chunk=7).table()
    failed = table["b"] > 1.0
    assert np.array_equal(table["value"].isna(), failed) and 0 < failed.sum() < 60
    assert table["error"][failed].str.match(r"ValueError: b = [\d.]+ is too large\\x1b").all()
    assert (table["error"][~failed] == "").all()


def test_failed_trials_are_computed_again_on_request(tmp_path):
    flag = tmp_path / "flag"

    def function(a, b):
        if b > 1.0 and not os.path.exists(str(flag)):
            raise OSError("not yet")
        return a

    legged.sweep(function, samples(), tmp_path / "s", chunk=7).table()
    flag.touch()
    assert (legged.sweep(function, samples(), tmp_path / "s").table()["error"] != "").any()
    assert (legged.sweep(function, samples(), tmp_path / "s", retry=True).table()["error"] == "").all()


@pytest.mark.parametrize("result", [[1.0], {"x": [1]}, object(), {"error": 1}, {1: 2}, np.zeros(3), 1j])
def test_a_result_that_is_no_number_is_a_failure_of_its_trial(result, tmp_path):
    table = legged.sweep(lambda a, b: result, samples(4), tmp_path, chunk=2).table()
    assert table["error"].str.startswith("TypeError: the function must").all()


def test_a_damaged_chunk_is_named_and_computed_again(tmp_path):
    first = legged.sweep(product, samples(), tmp_path, chunk=20).table()
    path = tmp_path / "chunks" / files(tmp_path)[1]
    content_ = bytearray(path.read_bytes())
    content_[len(content_) // 2] ^= 1
    path.write_bytes(content_)
    with pytest.warns(SimulationWarning, match="is damaged"):
        assert len(legged.sweep(product, samples(), tmp_path).table(partial=True)) == 40
    with pytest.warns(SimulationWarning, match="is damaged"):
        assert legged.sweep(product, samples(), tmp_path).table().equals(first)
    assert legged.sweep(product, samples(), tmp_path).table().equals(first)  # the damaged file is gone
    assert len(files(tmp_path)) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no valid study"),
        ("[]", "no valid study"),
        ('{"kind": "other"}', "another kind"),
        ('{"kind": "legged sweep", "layout": 2}', "has layout 2, this version reads 1"),
        (
            '{"kind": "legged sweep", "layout": 1, "versions": {}, "setups": {"": "0"}, "units": {}, '
            '"samples": "../../etc/passwd", "rows": 1, "shuffled": false, "bounds": [0, 1]}',
            "samples must name",
        ),
    ],
)
def test_a_foreign_description_is_refused_in_words(text, words, tmp_path):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(FileError, match=words):
        sweeps.Study(tmp_path)
    with pytest.raises(FileError, match=words):
        legged.sweep(product, samples(), tmp_path, chunk=7).table()
    assert (tmp_path / "study.json").read_text() == text


def test_a_store_of_another_version_is_refused_and_kept(tmp_path, monkeypatch):
    first = legged.sweep(product, samples(), tmp_path, chunk=7).table()
    before = files(tmp_path), (tmp_path / "study.json").read_bytes()
    other = content.versions() | {"legged": "0.0.1 abc"}
    for module in ("legged.sweeps.sweep", "legged.sweeps.jobs"):
        monkeypatch.setattr(sys.modules[module], "versions", lambda: other)
    with pytest.raises(FileError, match=r"legged .*, not 0\.0\.1 abc.*Nothing was changed.*mix_versions"):
        legged.sweep(product, samples(), tmp_path, chunk=7).table()
    assert (files(tmp_path), (tmp_path / "study.json").read_bytes()) == before
    assert legged.sweep(product, samples(), tmp_path, chunk=7, mix_versions=True).table().equals(first)
    assert files(tmp_path) == before[0]


def test_a_store_that_cannot_be_created_is_an_error_before_anything_runs(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="cannot be created"):
        legged.sweep(lambda a, b: pytest.fail(), samples(), tmp_path / "file" / "store", chunk=7).table()


def test_a_protected_store_is_an_error_before_anything_runs(tmp_path, monkeypatch):
    legged.sweep(product, samples(20), tmp_path, chunk=10).table()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write everywhere
    with pytest.raises(FileError, match="protected"):
        legged.sweep(product, samples(30), tmp_path, chunk=10).table()
    assert len(legged.sweep(product, samples(20), tmp_path).table(partial=True)) == 20


def test_a_finished_study_is_read_from_a_store_that_cannot_be_written(tmp_path, monkeypatch):
    first = legged.sweep(product, samples(20), tmp_path / "s", chunk=10).table()
    names = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))}

    opened = Path.open

    def read_only(path, mode="r", *given, **more):
        if mode not in ("r", "rb"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, mode, *given, **more)

    monkeypatch.setattr(Path, "open", read_only)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    sweep = legged.sweep(product, samples(20), tmp_path / "s")
    assert sweep.table().equals(first) and sweep.cost().remaining == 0.0
    with pytest.raises(FileError, match="cannot be"):
        legged.sweep(product, samples(30), tmp_path / "s", chunk=10).table()
    monkeypatch.undo()
    assert {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))} == names


@pytest.mark.parametrize("retry", [False, True])
def test_a_disk_that_is_full_at_any_write_loses_nothing(retry, tmp_path, monkeypatch):
    """Each file is flushed once and its folder once, so that an error of the n-th flush is one of any write."""
    flag = tmp_path / "flag"

    def function(a, b):
        if b > 1.5 and not os.path.exists(str(flag)):
            raise ValueError("not yet")
        return a

    wanted = legged.sweep(function, samples(20), tmp_path / "s", chunk=5).table()
    flag.touch()
    given = {"chunk": 5, "retry": retry, "units": {"value": "m"}}
    failures = 0
    for n in range(100):
        flushes, flush = itertools.count(), os.fsync

        def full(file, n=n, flushes=flushes, flush=flush):
            if next(flushes) >= n:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            flush(file)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            try:
                table = legged.sweep(function, samples(20 if retry else 30), tmp_path / "s", **given).table()
                break
            except FileError as error:
                assert "No space left" in str(error) and "are kept" in str(error)
                failures += 1
        kept = legged.sweep(function, samples(20), tmp_path / "s").table()
        assert (kept["error"] == "").sum() >= (wanted["error"] == "").sum() and kept["a"].equals(wanted["a"])
        assert not list((tmp_path / "s").rglob(".legged-*"))
    assert failures > 2
    assert (table["error"] == "").all() if retry else len(table) == 30


SCRIPT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores the signal
sys.path.insert(0, {tests!r})
import legged
from studied import product, samples
{before}
try:
    print(len(legged.sweep(product, samples({rows}), {store!r}, chunk=5{given}).table()))
except (legged.errors.LeggedError, KeyboardInterrupt) as error:
    print(type(error).__name__, error)
"""


def process(store, before="", given="", rows=600):
    text = SCRIPT.format(rows=rows, tests=str(Path(__file__).parent), store=str(store), before=before, given=given)
    command = [sys.executable, "-c", textwrap.dedent(text)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path.cwd())


def wait_for_chunks(store, n, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (Path(store) / "chunks").is_dir() and len(files(store)) >= n:
            return
        time.sleep(0.01)
    pytest.fail("no chunks were written")


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_client_leaves_a_store_that_goes_on(sent, tmp_path):
    client = process(tmp_path, rows=1500)  # more than a busy machine computes before the signal arrives
    wait_for_chunks(tmp_path, 10)
    client.send_signal(sent)
    printed, errors = client.communicate(timeout=30)
    kept = set(files(tmp_path))
    if sent == signal.SIGINT:
        assert "SimulationInterrupt interrupted after" in printed and "call again to go on" in printed, errors
        assert len(kept) < 300
    table = legged.sweep(product, samples(1500), tmp_path, chunk=5).table()
    assert kept <= {*files(tmp_path), *(name for name in kept if name.startswith("."))}
    assert table.equals(legged.sweep(product, samples(1500), tmp_path / "other", chunk=500).table())


def test_two_clients_on_one_store_are_told(tmp_path):
    client = process(tmp_path)
    try:
        wait_for_chunks(tmp_path, 1)
        with pytest.raises(FileError, match="in use by another process"):
            legged.sweep(product, samples(600), tmp_path, chunk=5).table()
    finally:
        assert client.communicate(timeout=60)[0].strip() == "600"


def test_a_full_disk_is_told_and_loses_nothing(tmp_path):
    legged.sweep(product, samples(40), tmp_path, chunk=5).table()
    before = set(files(tmp_path))
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))"  # [byte], less than a chunk
    samples_ = (
        "import legged.sweeps.store as s; s.Store.write_samples = lambda self, x: 'samples-' + 16 * '0' + '.parquet'"
    )
    description = "s.Store.write_description = lambda self, x: None"
    printed, errors = process(tmp_path, "\n".join((limit, samples_, description))).communicate(timeout=60)
    assert "FileError" in printed and "File too large" in printed and "are kept" in printed, errors
    assert set(files(tmp_path)) == before
    assert len(legged.sweep(product, samples(40), tmp_path).table()) == 40


def test_workers_in_processes_give_the_table_of_threads(cluster, tmp_path):
    given = samples(100)
    here = legged.sweep(product, given, tmp_path / "a", chunk=9).table()
    there = legged.sweep(product, given, tmp_path / "b", cluster, chunk=9).table()
    assert here.equals(there)
    assert [x.split("-")[0] for x in files(tmp_path / "a")] == [x.split("-")[0] for x in files(tmp_path / "b")]


def test_simulations_in_processes_give_the_table_of_threads(cluster, tmp_path):
    given = sweeps.random(12, PUSHES)
    here = legged.sweep(setup(), given, tmp_path / "a", chunk=6).table()
    there = legged.sweep(setup(), given, tmp_path / "b", cluster, chunk=6).table()
    pandas.testing.assert_frame_equal(here, there, check_exact=True)


def test_killed_workers_lose_nothing(cluster, tmp_path):
    given = samples(400)
    wanted = legged.sweep(product, given, tmp_path / "a", chunk=5).table()
    sweep = legged.sweep(product, given, tmp_path / "b", cluster, chunk=5)
    workers = list(cluster.run(os.getpid).values())
    killer = threading.Timer(0.3, lambda: [os.kill(pid, signal.SIGKILL) for pid in workers])
    killer.start()
    assert sweep.table().equals(wanted)
    killer.join()


def test_a_cluster_without_workers_is_an_error_after_the_stated_time(tmp_path):
    cluster = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        client.retire_workers()
        cluster.scale(0)
        sweep = legged.sweep(product, samples(20), tmp_path, client, chunk=5, worker_timeout=1.0)
        start = time.monotonic()
        with pytest.raises(SimulationError, match=r"no worker for 1 s \(worker_timeout\)"):
            sweep.table()
        assert 1.0 < time.monotonic() - start < 10.0  # [s], on a busy machine
        cluster.scale(1)
        assert len(sweep.table()) == 20


# Arguments


@pytest.mark.parametrize(
    ("trial", "given"),
    [
        *[(trial, {"a": [1.0]}) for trial in (3, None, {}, {"": product, "b": product}, int)],
        *[(product, given) for given in ({}, {"a": [[1.0]]}, {"a": [np.nan]}, {"a": []}, {"a": [None]})],
        *[(product, {name: [1.0]}) for name in ("", "a\n", 201 * "a")],
    ],
)
def test_bad_studies_are_refused_and_leave_no_folder(trial, given, tmp_path):
    with pytest.raises(LeggedError):
        legged.sweep(trial, given, tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "given", [{"chunk": 0}, {"chunk": 1.5}, {"seconds": 0.0}, {"client": 3}, {"worker_timeout": -1.0}]
)
def test_bad_options_are_refused(given, tmp_path):
    with pytest.raises(ArgumentError):
        legged.sweep(product, samples(), tmp_path, **given)


def test_an_interrupt_keeps_what_is_finished(tmp_path):
    calls = tmp_path / "calls"

    def function(a, b):
        with open(calls, "a") as file:
            file.write(".")
        return a

    sweep = legged.sweep(function, samples(40), tmp_path, chunk=10)
    sweep._outcomes = _interrupted
    with pytest.raises(SimulationInterrupt, match="interrupted after 20 of 40 trials"):
        sweep.table()
    legged.sweep(function, samples(40), tmp_path, chunk=10).table()
    assert len(calls.read_text()) == 40


def _interrupted(job, missing):
    for task in missing[:2]:
        yield task, job.compute(*task)
    raise KeyboardInterrupt
