"""Chunks on a cluster of Dask: a job arrives once in each worker, by a plugin, and the tasks hold only keys."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from typing import Any

from legged.errors import SimulationError
from legged.sweeps.jobs import Job, Outcome, Task

_ATTEMPTS = 5  # of a chunk whose workers die, beside those that Dask makes itself
_POLL, _CHECK = 0.02, 0.5  # [s] between two looks for finished chunks, and for workers
_JOBS: dict[str, Job] = {}


def on_cluster(
    client: Any, job: Job, missing: list[Task], problems: dict[str, str], worker_timeout: float | None = None
) -> Iterator[tuple[Task, Outcome]]:
    """Yield the outcomes of chunks that the workers of Dask compute; those of workers that die are repeated.

    Args:
        client: A `dask.distributed.Client`. job: The job. missing: The chunks.
        problems: Receives the key of a chunk whose workers died at each attempt -> what happened.
        worker_timeout: Longest time without any worker, [s]; None waits for workers without end.

    Raises:
        SimulationError: The cluster was lost, or had no worker for too long. Finished chunks are stored.
    """
    import cloudpickle
    from distributed import CancelledError, KilledWorker
    from distributed.client import FutureCancelledError

    identity, futures = secrets.token_hex(8), dict[Any, Task]()
    attempts = dict.fromkeys(missing, 0)
    try:
        _register(client, _plugin(identity, cloudpickle.dumps(job)))
        while attempts:
            futures = {_submitted(client, identity, task, attempts[task]): task for task in attempts}
            for future in _completed(client, futures, worker_timeout):
                task = futures[future]
                try:
                    outcome = Outcome(*future.result())
                except (KilledWorker, CancelledError, FutureCancelledError) as error:
                    if client.status != "running":
                        raise
                    attempts[task] += 1
                    if attempts[task] >= _ATTEMPTS:
                        problems[job.keys[task[0]][task[1]]] = f"its workers died ({type(error).__name__})"
                        del attempts[task]
                    continue
                del attempts[task]
                yield task, outcome
    except (OSError, CancelledError, FutureCancelledError, TimeoutError) as error:
        words = f"the cluster was lost ({type(error).__name__}: {error}); finished chunks are stored: call again"
        raise SimulationError(words) from error
    finally:
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):  # the cluster may be gone
            if client.status == "running":
                client.cancel(list(futures))
                client.unregister_worker_plugin(_name(identity))


def _register(client: Any, plugin: Any) -> None:
    """Bring a plugin to all workers, again if one dies meanwhile, which is no loss of the cluster."""
    for attempt in range(_ATTEMPTS):
        try:
            client.register_plugin(plugin)
            return
        except OSError:
            if client.status != "running" or attempt == _ATTEMPTS - 1:
                raise


def _completed(client: Any, futures: dict[Any, Task], worker_timeout: float | None) -> Iterator[Any]:
    """Yield futures when they end.

    Raises:
        SimulationError: The cluster had no worker for too long.
    """
    from distributed import as_completed

    running = as_completed(futures)
    seen = checked = time.monotonic()  # when there was a worker, and when the workers were counted
    while running.count():
        batch = running.next_batch(block=False)
        yield from batch
        now = time.monotonic()
        if now - checked > _CHECK:
            checked, seen = now, now if client.nthreads() else seen
            if worker_timeout is not None and now - seen > worker_timeout:
                raise SimulationError(
                    f"the cluster has had no worker for {worker_timeout:g} s (worker_timeout); finished chunks are "
                    f"stored: start workers and call again"
                )
        if not batch:
            time.sleep(_POLL)


def _submitted(client: Any, identity: str, task: Task, attempt: int) -> Any:
    key = f"{_name(identity)}-{'-'.join(map(str, task))}-{attempt}"
    return client.submit(_compute, identity, *task, pure=False, key=key)


def _name(identity: str) -> str:
    return f"legged-{identity}"


def _plugin(identity: str, pickled: bytes) -> Any:
    """Return the plugin that brings a job to all workers of a cluster, also to those that start later."""
    from distributed import WorkerPlugin

    class JobPlugin(WorkerPlugin):
        name = _name(identity)

        def setup(self, worker: Any) -> None:
            import cloudpickle

            from legged.sweeps import cluster

            cluster._JOBS[identity] = cloudpickle.loads(pickled)

        def teardown(self, worker: Any) -> None:
            from legged.sweeps import cluster

            cluster._JOBS.pop(identity, None)

    return JobPlugin()


def _compute(identity: str, name: str, k: int) -> tuple[str, str]:
    """Compute a chunk on a worker and return its `Outcome` as plain texts."""
    from distributed import get_worker

    key, problem = _JOBS[identity].compute(name, k, get_worker().state.nthreads)
    return key, problem
