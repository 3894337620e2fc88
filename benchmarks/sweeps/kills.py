"""Test of sweeps whose workers, scheduler and client are killed (SIGKILL) at random times: lost and damaged chunks.

The processes are forked from one that has imported what they need, so that most of the time passes in trials.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import legged
from legged import sweeps
from legged.errors import SimulationError
from legged.table import Table

SAMPLES = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
_ROWS, _CHUNK, _WORK = 2000, 10, 0.004  # trials, trials of a chunk, [s] of a trial
_TARGETS = ("worker", "other worker", "scheduler", "client")
_MODULES = ["distributed", "distributed.cli.dask_worker", "legged.sweeps", __name__]
_FIRST = 120.0  # [s], longest time until the first new chunk on a busy machine


def trial(a: float, b: float) -> dict[str, float]:
    """Return some numbers after a short time."""
    time.sleep(_WORK)
    if b > 0.99:
        raise ValueError("b is too large")
    return {"product": a * b, "sine": float(np.sin(10.0 * a))}


def _scheduler(file: str) -> None:
    from distributed import Scheduler

    logging.disable(logging.CRITICAL)
    given = {"dashboard": False, "dashboard_address": ":0", "scheduler_file": file}

    async def serve() -> None:
        async with Scheduler(host="127.0.0.1", port=0, **given) as scheduler:
            await scheduler.finished()

    asyncio.run(serve())


def _worker(file: str) -> None:
    from distributed import Worker

    logging.disable(logging.CRITICAL)

    async def serve() -> None:
        async with Worker(scheduler_file=file, nthreads=1, dashboard=False, death_timeout=60) as worker:
            await worker.finished()

    asyncio.run(serve())


def _client(file: str, store: str) -> None:
    from distributed import Client

    logging.disable(logging.CRITICAL)
    with Client(scheduler_file=file, timeout=60) as connected:
        samples = sweeps.random(_ROWS, SAMPLES)
        try:
            legged.sweep(trial, samples, store, connected, chunk=_CHUNK, progress=False).table()
        except SimulationError as error:  # the scheduler was killed
            raise SystemExit(1) from error


class _Cluster:
    """A client with a scheduler and two workers, each in a process of its own.

    Args:
        folder: Folder of the file with the address. store: The store.
    """

    def __init__(self, folder: str, store: Path):
        file = Path(folder, "scheduler.json")
        file.unlink(missing_ok=True)
        context = multiprocessing.get_context("forkserver")
        given: dict[str, tuple[Any, tuple[str, ...]]] = dict.fromkeys(_TARGETS, (_worker, (str(file),)))
        given |= {"scheduler": (_scheduler, (str(file),)), "client": (_client, (str(file), str(store)))}
        self.processes = {name: context.Process(target=f, args=args) for name, (f, args) in given.items()}
        for name in reversed(_TARGETS[:3]):
            self.processes[name].start()
        while not file.exists():
            time.sleep(0.01)
        self.client.start()

    @property
    def client(self) -> Any:
        return self.processes["client"]

    def end(self) -> bool:
        """Wait for the client, end the others, and return whether the client has computed the table."""
        self.client.join()
        for name in _TARGETS[:3]:
            self.processes[name].kill()
            self.processes[name].join()
        return self.client.exitcode == 0


def kills(count: int, seed: int = 0) -> Table:
    """Return how many finished chunks were lost or changed by kills.

    Args:
        count: Number of kills. seed: Of the moments and processes; runs with different seeds can be added up.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload(_MODULES)
    rng = np.random.default_rng(seed)
    given: dict[str, int] = dict.fromkeys(_TARGETS, 0)
    lost = corrupt = 0
    with tempfile.TemporaryDirectory() as folder:
        samples = sweeps.random(_ROWS, SAMPLES)
        wanted = legged.sweep(trial, samples, f"{folder}/whole", chunk=_CHUNK, progress=False).table()
        equal, studies = True, 0
        while sum(given.values()) < count:
            store, studies = Path(folder, f"study{studies}"), studies + 1
            before: dict[str, bytes] = {}
            finished = False
            while not finished and sum(given.values()) < count:
                cluster = _Cluster(folder, store)
                target = str(rng.choice(_TARGETS))
                _wait(cluster.client, store, float(rng.uniform(0.1, 1.5)), len(before))
                if cluster.client.is_alive():
                    given[target] += 1
                    cluster.processes[target].kill()
                finished = cluster.end()
                now = _chunks(store)
                lost += len(before.keys() - now.keys())
                corrupt += sum(not _intact(name, content) for name, content in now.items())
                before = now
            table = legged.sweep(trial, samples, store, chunk=_CHUNK, progress=False).table()
            equal = equal and table.equals(wanted)
            by_name = ", ".join(f"{n} of the {name}" for name, n in given.items())
            words = f"{studies} studies, {lost} chunks lost, {corrupt} damaged, equal: {equal}"
            print(f"[kills: {by_name}; {words}]", flush=True)
    rows = [*((f"kills of the {name}", str(n)) for name, n in given.items()), ("studies", str(studies))]
    rows += [("finished chunks lost", str(lost)), ("damaged chunks", str(corrupt)), ("tables equal", str(equal))]
    return Table("Kills (-9) at random moments", ("", ""), tuple(rows))


def _wait(client: Any, store: Path, seconds: float, known: int) -> None:
    """Wait some seconds after the first new chunk."""
    end = time.monotonic() + _FIRST
    while client.is_alive() and len(_names(store)) <= known and time.monotonic() < end:
        time.sleep(0.02)
    client.join(seconds)


def _names(store: Path) -> list[str]:
    folder = store / "chunks"
    names = os.listdir(folder) if folder.is_dir() else []
    return [name for name in names if name.endswith(".parquet") and not name.startswith(".")]


def _chunks(store: Path) -> dict[str, bytes]:
    return {name: (store / "chunks" / name).read_bytes() for name in _names(store)}


def _intact(name: str, content: bytes) -> bool:
    return name.partition("-")[2] == f"{hashlib.blake2b(content, digest_size=8).hexdigest()}.parquet"
