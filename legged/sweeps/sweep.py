"""`sweep`: studies of many trials in chunks, on threads or a Dask cluster, whose results no interruption loses.

The function `sweep` checks its arguments and returns a `Sweep`. Its `table` computes what is missing in the store:

1. `_bounds` divides the samples into chunks, which should take the wanted time (`cost.ChunkSizes`).
2. `_prepared` writes the description of the study and returns a `Job` and its chunks that the store does not hold.
3. `_outcomes` computes these by `Job.compute`, here or on a cluster; each writes its results to the store.

A *trial* is a `Setup`, which simulates the samples of a chunk together, or a function, called for one sample after the
other. The cost of a trial follows from short batches for a setup (`Pilot`), from the first trial for a function.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import as_completed as local_completed
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import number, shown, whole
from legged.checked import checked
from legged.errors import ArgumentError, FileError, SimulationInterrupt, SimulationWarning, warn_caller
from legged.sweeps.cluster import on_cluster
from legged.sweeps.content import chunk_keys, content_key, versions
from legged.sweeps.cost import ChunkSizes, Cost, Pilot, pilot_of
from legged.sweeps.jobs import Job, Outcome, Task, Trial, run_of
from legged.sweeps.progress import Bar
from legged.sweeps.samples import Samples
from legged.sweeps.setup import Setup
from legged.sweeps.store import Description, Store, Study, row_order, samples_file

Array = np.ndarray


@checked
def sweep(
    trial: Any,
    samples: Samples | Mapping[str, Any],
    store: str | Path,
    client: Any = None,
    *,
    chunk: int | None = None,
    seconds: float = 10.0,
    units: Mapping[str, str] | None = None,
    progress: bool | None = None,
    mix_versions: bool = False,
    retry: bool = False,
    worker_timeout: float | None = 300.0,
) -> Sweep:
    """Return the study of a function or of a simulation at many samples, which is computed when its table is wanted.

        study = legged.sweep(setup, samples, store=folder)
        print(study.cost())
        table = study.table()  # pandas; call it again after any interruption

    Args:
        trial: A `sweeps.Setup`, a function that is called with the samples of a trial as keywords and returns a number
            or a mapping from names to numbers, or a mapping from names to these, all of which get all samples.
        samples: `sweeps.Samples`, or a mapping from names to values, (n,).
        store: Folder of the results. It is created, and holds what earlier calls have computed: a chunk whose trial,
            samples and metrics are the same is not computed again.
        client: A `dask.distributed.Client`; by default the threads of this process compute.
        chunk: Number of trials of a chunk, the part that an interruption can lose; by default it takes `seconds`.
        seconds: Wanted duration of a chunk on one core, [s].
        units: Units of the results of a function, name -> unit.
        progress: Whether a bar shows progress and remaining time; by default on a terminal.
        mix_versions: Whether chunks that another version of the toolkit, Python or NumPy has computed are kept.
        retry: Whether chunks with failed trials are computed again.
        worker_timeout: Longest time that the cluster of `client` may have no worker, [s], before the computation ends
            with a `SimulationError`; None waits without end, such as for jobs in the queue of Slurm.

    Raises:
        MissingError: A library of the extra `sweep` is not installed.
        ArgumentError, ShapeError, NotFiniteError: The trial or a sample is invalid.
    """
    named = dict(trial) if isinstance(trial, Mapping) else {"": trial}
    for name, x in named.items():
        if not isinstance(x, Setup) and not (callable(x) and not isinstance(x, type)):
            raise ArgumentError(f"trial {name!r} must be a sweeps.Setup or a function, got {shown(x)}")
    if not named or (len(named) > 1 and "" in named):
        raise ArgumentError("a mapping of trials needs a name for each, at least one")
    samples = samples if isinstance(samples, Samples) else Samples(samples)
    if client is not None and not hasattr(client, "submit"):
        raise ArgumentError(f"client must be a dask.distributed.Client, got {shown(client)}")
    size = None if chunk is None else whole("chunk", chunk, 1)
    settings = {"units": dict(units or {}), "progress": progress, "mix_versions": mix_versions, "retry": retry}
    patience = None if worker_timeout is None else number("worker_timeout", worker_timeout, "s", above=0.0)
    settings["worker_timeout"] = patience
    return Sweep(named, samples, Store(store), client, size, number("seconds", seconds, "s", above=0.0), **settings)


@checked
class Sweep:
    """A study; see `sweep`, which makes it.

    Attributes:
        samples: The samples. store: The store.
    """

    def __init__(
        self,
        trials: dict[str, Trial],
        samples: Samples,
        store: Store,
        client: Any,
        chunk: int | None,
        seconds: float,
        *,
        units: dict[str, str],
        progress: bool | None,
        mix_versions: bool,
        retry: bool,
        worker_timeout: float | None,
    ):
        self.samples, self.store = samples, store
        self._trials, self._client, self._sizes = trials, client, ChunkSizes(len(samples), chunk, seconds)
        self._units, self._progress, self._mix, self._retry = units, progress, mix_versions, retry
        self._worker_timeout = worker_timeout
        self._contents = {name: content_key(x.content if isinstance(x, Setup) else x) for name, x in trials.items()}
        self._known_bounds: list[int] | None = None
        self._pilots: list[Pilot] = []
        self._problems: dict[str, str] = {}  # name of a chunk that is missing -> why

    def __repr__(self) -> str:
        return f"<Sweep of {len(self.samples)} samples in {str(self.store.path)!r}>"

    # Results

    def table(self, partial: bool = False) -> Any:
        """Return one row per trial as a pandas DataFrame, after computing the unfinished chunks.

        The columns are the samples, the results, `ended`, why a simulation ended early, and `error`, the message of a
        trial that failed; `attrs["units"]` maps columns to units.

        Args:
            partial: Return only the trials that are finished, and compute nothing.

        Raises:
            FileError: The store cannot be written, is in use, or is of another version.
            SimulationError, SimulationInterrupt: The cluster was lost, or had no worker for too long; Ctrl-C. In both,
                all finished chunks are kept.
        """
        if not partial:
            self.compute()
        return self.study().table()

    def study(self) -> Study:
        """Return the finished chunks of this study in the store, as `Study`."""
        return Study(self.store.path)

    def save(self, path: str | Path) -> Path:
        """Write the table as a Parquet file, with the units in the metadata of its columns, and return the path.

        Args:
            path: The file; the suffix .parquet is appended where it is missing.
        """
        import pyarrow.parquet as pq

        from legged.output import output_file, replaced

        target = output_file(path, ".parquet")
        self.compute()
        with replaced(target) as draft:
            pq.write_table(self.study().arrow(), draft)
        return target

    def run(self, row: int) -> Any:
        """Simulate the trial of a row again and return its `legged.Run`, equal bit for bit; call a function again.

        Args:
            row: Number of the row in the table.
        """
        n = len(self.samples)
        row = whole("row", row, 0, n * len(self._trials) - 1)
        trial = list(self._trials.values())[row // n]
        if not isinstance(trial, Setup):
            return trial(**{name: x[row % n].item() for name, x in self.samples.columns.items()})
        order, bounds = self._order, np.array(self._bounds())
        place = int(np.flatnonzero(order == row % n)[0])
        k = int(np.searchsorted(bounds, place, side="right")) - 1
        return run_of(trial, self.samples.rows(order[bounds[k] : bounds[k + 1]]), place - int(bounds[k]))

    def cost(self) -> Cost:
        """Return the cost of the study on one core, in processor time.

        Before the first chunk it follows from the counted samples of a trial, and from the times of a start and of the
        steps between samples in short batches, which compute in vectors as chunks do (`sweeps.cost.Pilot`): within a
        third of what the chunks take, if trials reach their end times and the machine is as busy as then. Later it is
        the mean of the finished chunks. The time of a function is not known before its first trial, which this computes
        and stores.

        Raises:
            LeggedError, or an error of a law: None of the trials that were tried can be simulated.
        """
        trials = len(self.samples) * len(self._trials)
        facts = self.study().status() if self._is_current() else {"finished": 0}
        if facts["finished"]:
            seconds, missing = facts["core hours"] * 3600.0 / facts["finished"], trials - facts["finished"]
            return Cost(seconds * trials / 3600.0, seconds * missing / 3600.0, seconds, "finished chunks")
        if not self._has_setups_only:
            self._bounds()  # computes the first trial
            return self.cost()
        pilots, chunks = self._measured(), len(self._bounds()) - 1
        hours = sum(chunks * own.start + len(self.samples) * own.trial for own in pilots) / 3600.0
        return Cost(hours, hours, 3600.0 * hours / trials, "short batches")

    # Computation

    def fix_bounds(self, bounds: Sequence[int]) -> None:
        """Set the chunks.

        Args:
            bounds: Rows of the chunks: chunk k has those from bounds[k] to bounds[k + 1], in the order of computation.
        """
        self._known_bounds = list(bounds)

    def compute(self) -> Sweep:
        """Compute all chunks that are missing, and return the sweep; see `table`."""
        if self._is_complete():
            return self  # also of a store that cannot be written
        self.store.create()
        with self.store.locked():
            job, missing = self._prepared(self._bounds(locked=True))
            if missing:
                self._compute(job, missing)
        for name, words in self._problems.items():
            warn_caller(f"chunk {name} is missing: {words}; call again to try again", SimulationWarning)
        return self

    @property
    def _order(self) -> Array:
        """Numbers of the samples in the order of computation, (n,)."""
        return row_order(len(self.samples), self.samples.order is not None)

    @property
    def _has_setups_only(self) -> bool:
        """Whether all trials are simulations, not functions."""
        return all(isinstance(x, Setup) for x in self._trials.values())

    def _is_current(self) -> bool:
        """Return whether the store describes this study."""
        known = self.store.description() if self.store.path.is_dir() else None
        return known is not None and known.setups == self._contents and known.rows == len(self.samples)

    def _measured(self) -> list[Pilot]:
        """Return the pilot of each setup; errors are those of `pilot_of`."""
        if not self._pilots:
            setups = [x for x in self._trials.values() if isinstance(x, Setup)]
            self._pilots = [pilot_of(x, self.samples, self._order) for x in setups]
        return self._pilots

    def _bounds(self, locked: bool = False) -> list[int]:
        """Return the bounds of the chunks, as in `fix_bounds`: given ones, those in the store, or others sized by cost.

        Args:
            locked: Whether the store is locked for this sweep, which the first trial of a function needs.
        """
        if self._known_bounds is not None:
            return self._known_bounds
        sizes, (stored, seconds_of_trial) = self._sizes, self._chunks_in_store()
        if sizes.chunk is not None:
            self._known_bounds = sizes.equal()
        elif stored[-1] == sizes.rows or seconds_of_trial:
            self._known_bounds = sizes.after(stored, seconds_of_trial)
        elif self._has_setups_only:
            try:
                pilots = self._measured()
            except Exception:  # these samples fail, and so may all
                pilots = []
            self._known_bounds = sizes.after_pilots(stored, pilots)
        else:
            self.store.create()
            if not locked:
                with self.store.locked():
                    return self._bounds(locked=True)
            self._known_bounds = sizes.after([0, 1], self._first_trial())
        return self._known_bounds

    def _chunks_in_store(self) -> tuple[list[int], float]:
        """Return the bounds of chunks in the store that may serve this study, and the time of a trial in them, [s].

        A study of more samples goes on after the chunks of a study of fewer ones, unless the samples are computed in
        a shuffled order, which depends on their number. The time is 0.0 if it is not needed or no chunk is finished.
        """
        n, known = len(self.samples), self.store.description() if self.store.path.is_dir() else None
        if known is None or known.bounds[-1] < known.rows or known.shuffled != (self.samples.order is not None):
            return [0], 0.0
        bounds = [b for b in known.bounds if b <= n]
        if known.rows == n or known.shuffled:
            return (bounds if known.rows == n else [0]), 0.0
        facts = self.study().status()
        return bounds, 3600.0 * facts["core hours"] / max(facts["finished"], 1)

    def _first_trial(self) -> float:
        """Compute a first chunk of one trial of each function, and return its largest time, [s]."""
        job, missing = self._prepared([0, 1])
        if missing:
            self._compute(job, missing)
        files = self.store.chunk_files()
        wanted = [files[keys[0]][0] for keys in job.keys.values() if keys[0] in files]
        return max((self.store.facts(path)["seconds"] for path in wanted), default=1.0)

    def _is_complete(self) -> bool:
        """Return whether the store describes this study and holds all of its chunks."""
        known = self.store.description() if self._is_current() else None
        if known is None or known.bounds[-1] < known.rows:
            return False
        bounds = self._bounds()
        return self._described(bounds) == known and not self._job(bounds).missing(self._retry)

    def _described(self, bounds: Sequence[int]) -> Description:
        """Return the description of the study for the store."""
        units = dict(self.samples.units) | self._units
        for trial in self._trials.values():
            units |= trial.units if isinstance(trial, Setup) else {}
        units, order = {k: u for k, u in units.items() if u}, self.samples.order
        name, _ = samples_file(self.samples)
        return Description(
            versions(), self._contents, units, name, len(self.samples), order is not None, list(map(int, bounds))
        )

    def _job(self, bounds: Sequence[int]) -> Job:
        """Return the work of the study; the key of a chunk follows from its trial, samples and metrics."""
        order, columns = self._order, dict(self.samples.columns)
        keys = {name: chunk_keys(x, columns, order, bounds) for name, x in self._contents.items()}
        rows = [order[a:b] for a, b in itertools.pairwise(bounds)]
        return Job(self._trials, columns, rows, keys, self.store, versions())

    def _prepared(self, bounds: Sequence[int]) -> tuple[Job, list[Task]]:
        """Write the description of the study, and return its job and the chunks that are missing."""
        self._check_versions()
        self.store.write_samples(self.samples)
        self.store.write_description(self._described(bounds))
        job = self._job(bounds)
        return job, job.missing(self._retry)

    def _check_versions(self) -> None:
        """Raise an error if the study in the store was computed by other versions."""
        known = self.store.description()
        if known is None or known.versions == versions() or self._mix:
            return
        changed = [f"{k} {v}, not {versions().get(k)}" for k, v in known.versions.items() if v != versions().get(k)]
        words = (
            f"was computed with {'; '.join(changed)}, whose results may differ. Nothing was changed. Use these "
            f"versions, give another folder, or keep its chunks beside new ones by mix_versions=True"
        )
        raise FileError(str(self.store.path), words)

    def _compute(self, job: Job, missing: list[Task]) -> None:
        """Compute chunks, and wait until all of them are in the store."""
        total = sum(map(len, job.rows)) * len(job.keys)
        finished = total - sum(len(job.rows[k]) for _, k in missing)
        with Bar(total, finished, self._progress) as bar:
            try:
                for (_name, k), outcome in self._outcomes(job, missing):
                    if outcome.problem:
                        raise FileError(str(self.store.path), outcome.problem.partition(": ")[2] or outcome.problem)
                    finished += len(job.rows[k])
                    bar.update(finished)
            except KeyboardInterrupt:
                words = f"interrupted after {finished} of {total} trials, which are stored; call again to go on"
                raise SimulationInterrupt(words, self) from None

    def _outcomes(self, job: Job, missing: list[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Compute chunks, and yield each with its outcome as soon as it is finished."""
        if self._client is not None:
            yield from on_cluster(self._client, job, missing, self._problems, self._worker_timeout)
        elif self._has_setups_only:
            for name, k in missing:  # each chunk on all threads
                yield (name, k), job.compute(name, k, os.cpu_count())
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                futures = {pool.submit(job.compute, name, k): (name, k) for name, k in missing}
                try:
                    for future in local_completed(futures):
                        yield futures[future], future.result()
                finally:
                    job.stop.set()
                    pool.shutdown(cancel_futures=True)
