"""The store of a study: a folder with its description, its samples and one Parquet file per finished chunk.

    study.json                      layout, versions, units, keys of the setups, bounds of the chunks
    samples-CHECKSUM.parquet        samples, one row per trial
    chunks/KEY-CHECKSUM.parquet     results of a chunk, under the key of its content and the checksum of the file

Each file appears whole, by a rename. A store may come from anyone: no code is read from it, names are checked, and a
file whose checksum differs counts as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from legged.arguments import instance
from legged.errors import FileError, LeggedError, MissingError, SimulationWarning, warn_caller
from legged.output import output_file, replaced, visible
from legged.sweeps.content import chunk_keys
from legged.sweeps.samples import Samples, check_name

try:
    import locket
    import pyarrow as pa
    import pyarrow.parquet as pq

    if find_spec("pandas") is None:  # which a table imports
        raise ModuleNotFoundError(name="pandas")
except ImportError as missing:
    raise MissingError(f"legged.sweep needs {missing.name}: pip install 'legged[sweep]'") from missing

_T = TypeVar("_T")
LAYOUT = 1
"""Version of the layout of the folder."""
_KIND, _STUDY, _CHUNKS, _LOCK = "legged sweep", "study.json", "chunks", "lock"
_CHUNK = re.compile(r"(?P<key>[0-9a-f]{32})-(?P<sum>[0-9a-f]{16})\.parquet")
_SAMPLES = re.compile(r"samples-(?P<sum>[0-9a-f]{16})\.parquet")
_OLD_DRAFT = 3600.0  # [s], age of temporary files that a killed process has left
_MOST_BYTES = 2**31
FAILED, ENDED, SETUP = "error", "ended", "setup"
"""Names of columns: the message of a failed trial, why it ended early, and the setup if there are several."""


@dataclass(frozen=True)
class Description:
    """The content of `study.json`: versions, setups, units, samples and bounds of the chunks.

    Attributes:
        versions: As `content.versions`. setups: Name -> key of its content. units: Name of a column -> unit.
        samples: Name of the file of the samples. rows: Number of samples, n. shuffled: Whether the rows are computed in
            a random order. bounds: Rows of the chunks in this order: chunk k has those from bounds[k] to bounds[k + 1].
    """

    versions: dict[str, str]
    setups: dict[str, str]
    units: dict[str, str]
    samples: str
    rows: int
    shuffled: bool
    bounds: list[int]

    def __post_init__(self) -> None:
        texts = (self.versions, self.setups, self.units)
        if not all(isinstance(x, dict) and all(isinstance(v, str) for v in x.values()) for x in texts):
            raise ValueError("versions, setups and units must map texts to texts")
        for name in (*self.units, *filter(None, self.setups)):
            check_name(name)
        if not (isinstance(self.samples, str) and _SAMPLES.fullmatch(self.samples)):
            raise ValueError("samples must name the file of the samples")
        if not all(type(x) is int for x in (self.rows, *self.bounds)) or type(self.shuffled) is not bool:
            raise ValueError("rows and bounds must be whole numbers")
        if self.bounds[0] != 0 or (np.diff(self.bounds) <= 0).any() or self.bounds[-1] > self.rows:
            raise ValueError("bounds must increase from 0 to the number of rows")


class Store:
    """The folder of a study.

    Args:
        path: The folder.
    """

    def __init__(self, path: str | Path):
        self.path = Path(instance("store", path, (str, Path), "the path of a folder"))

    # Writing

    def create(self) -> None:
        """Create the folder.

        Raises:
            FileError: It cannot be created or written.
        """
        output_file(self.path / _CHUNKS / "chunk")  # creates the folders
        if not os.access(self.path / _CHUNKS, os.W_OK) or not os.access(self.path, os.W_OK):
            raise FileError(str(self.path), "cannot be written: the folder is protected; give another one")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Context manager: hold the lock of the store, which the system releases when the process ends in any way.

        Raises:
            FileError: Another process holds it, or it cannot be created.
        """
        try:
            lock = locket.lock_file(str(self.path / _LOCK), timeout=0)
            lock.acquire()
        except locket.LockError:
            words = "is in use by another process that computes it; wait for its end, or give another folder"
            raise FileError(str(self.path), words) from None
        except OSError as error:
            raise FileError(str(self.path), f"cannot be locked: {error.strerror}") from error
        try:
            self._clean()
            yield
        finally:
            lock.release()

    def _clean(self) -> None:
        """Delete the temporary files that killed processes have left."""
        for path in (*self.path.glob(".legged-*"), *(self.path / _CHUNKS).glob(".legged-*")):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _OLD_DRAFT:
                    path.unlink()

    def write_description(self, description: Description) -> None:
        """Write `study.json`."""
        content = {"kind": _KIND, "layout": LAYOUT, **asdict(description)}
        self._write(self.path / _STUDY, (json.dumps(content, indent=1) + "\n").encode())

    def write_samples(self, samples: Samples) -> None:
        """Write the samples, under the name of `samples_file`."""
        name, content = samples_file(samples)
        if not (self.path / name).exists():
            self._write(self.path / name, content)

    def write_chunk(
        self, key: str, columns: Mapping[str, Sequence[Any]], facts: Mapping[str, Any], old: Sequence[Path] = ()
    ) -> None:
        """Write the results of a chunk, and then delete files that they replace.

        Args:
            key: Its key. columns: Name -> values, (B,), any unit. facts: What is known of its computation.
            old: Other files with this key, which are damaged or hold failed trials.
        """
        table = pa.table({name: _arrow(name, values) for name, values in columns.items()})
        content = _parquet(table.replace_schema_metadata({"legged": json.dumps(dict(facts))}))
        path = self.path / _CHUNKS / f"{key}-{_checksum(content)}.parquet"
        self._write(path, content)
        for other in set(old) - {path}:
            other.unlink(missing_ok=True)

    def _write(self, path: Path, content: bytes) -> None:
        try:
            with replaced(path) as draft:
                draft.write_bytes(content)
            if os.name == "posix":  # the rename survives a loss of power, too
                folder = os.open(path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except (FileError, OSError) as error:
            words = str(error).partition(": ")[2] or f"cannot be written: {error}"
            raise FileError(str(self.path), f"{words}; all chunks that are finished are kept") from error

    # Reading

    def description(self) -> Description | None:
        """Return the content of `study.json`, None if there is none.

        Raises:
            FileError: It is damaged, or of another layout.
        """
        path = self.path / _STUDY
        if not path.exists():
            return None
        try:
            content = json.loads(_read(path))
            if content.pop("kind") != _KIND:
                raise ValueError("it is of another kind")
            layout = content.pop("layout")
            if layout == LAYOUT:
                return Description(**content)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, LeggedError) as error:
            words = f"has no valid {_STUDY} ({visible(error)}); the chunks in it are intact: run the study again"
            raise FileError(str(self.path), words) from error
        raise FileError(str(self.path), f"has layout {visible(layout)}, this version reads {LAYOUT}: update it")

    def samples(self, name: str) -> dict[str, np.ndarray]:
        """Return the columns of the samples, name -> (n,), any unit.

        Raises:
            FileError: The file is missing or damaged.
        """
        path = self.path / name
        table = _verified(path, _SAMPLES)
        if table is None:
            raise FileError(str(path), "is missing or damaged; the chunks are intact: run the study again")
        columns = {check_name(n): table[n].to_numpy(zero_copy_only=False) for n in table.column_names}
        return {n: x.astype(str) if x.dtype == object else x for n, x in columns.items()}

    def chunk_files(self) -> dict[str, list[Path]]:
        """Return the files of chunks by key; several writers may have computed a chunk."""
        files: dict[str, list[Path]] = {}
        with contextlib.suppress(FileNotFoundError):
            for entry in sorted(os.scandir(self.path / _CHUNKS), key=lambda entry: entry.name):
                match = _CHUNK.fullmatch(entry.name)
                if match and entry.is_file(follow_symlinks=False):
                    files.setdefault(match["key"], []).append(Path(entry.path))
        return files

    def intact(self, paths: Sequence[Path]) -> Path | None:
        """Return the first intact file of a chunk; None if there is none. Its content is not decoded.

        Args:
            paths: Files of this chunk.
        """
        return _first(paths, lambda path: None if _content(path, _CHUNK) is None else path)

    def facts(self, path: Path) -> dict[str, Any]:
        """Return rows, failed, seconds and warnings of the computation of a chunk; zeros if they are not valid.

        Args:
            path: Its file.
        """
        try:
            facts = json.loads((pq.read_schema(path).metadata or {})[b"legged"])
            numbers = {"rows": int(facts["rows"]), "failed": int(facts["failed"]), "seconds": float(facts["seconds"])}
            return numbers | {"warnings": [visible(x) for x in facts["warnings"]]}
        except (KeyError, TypeError, ValueError, OSError):
            return {"rows": 0, "failed": 0, "seconds": 0.0, "warnings": []}

    def chunk(self, paths: Sequence[Path]) -> pa.Table | None:
        """Return the table in the first intact file of a chunk; None if there is none.

        Args:
            paths: Files of this chunk.
        """
        return _first(paths, lambda path: _verified(path, _CHUNK))


def samples_file(samples: Samples) -> tuple[str, bytes]:
    """Return name and content of the file of samples."""
    content = _parquet(pa.table(dict(samples.columns)))
    return f"samples-{_checksum(content)}.parquet", content


def row_order(n: int, shuffled: bool) -> np.ndarray:
    """Return the order in which rows are computed, (n,)."""
    return np.random.default_rng(0).permutation(n) if shuffled else np.arange(n)


class Study:
    """Reader of the study that was computed last in a store; it does not need the code of the study.

    Args:
        path: The folder.

    Raises:
        FileError: It holds no study, or a damaged one.
    """

    def __init__(self, path: str | Path):
        self.store = Store(path)
        description = self.store.description()
        if description is None:
            raise FileError(str(path), f"is no store of a sweep: it has no {_STUDY}")
        self.description = description
        self.columns = self.store.samples(description.samples)
        if any(len(x) != description.rows for x in self.columns.values()):
            raise FileError(str(path), "has samples of another length than its study; run the study again")
        self.order = row_order(description.rows, description.shuffled)

    def keys(self) -> dict[str, list[str]]:
        """Return the keys of all chunks: name of the setup -> keys."""
        names = self.description.setups.items()
        return {name: chunk_keys(key, self.columns, self.order, self.description.bounds) for name, key in names}

    def facts(self) -> list[dict[str, Any]]:
        """Return the metadata of each finished chunk: its numbers of rows and failures, its seconds and warnings."""
        files = self.store.chunk_files()
        wanted = [files[key] for keys in self.keys().values() for key in keys if key in files]
        return [self.store.facts(paths[0]) for paths in wanted]

    def status(self) -> dict[str, Any]:
        """Return numbers of trials and chunks: all, finished and failed ones, core hours spent and remaining."""
        description, facts = self.description, self.facts()
        done, seconds = sum(f["rows"] for f in facts), sum(f["seconds"] for f in facts)
        trials = description.rows * len(description.setups)
        return {
            "trials": trials,
            "finished": done,
            "failed": sum(f["failed"] for f in facts),
            "chunks": (len(description.bounds) - 1) * len(description.setups),
            "finished chunks": len(facts),
            "core hours": seconds / 3600.0,
            "remaining core hours": seconds / 3600.0 * (trials - done) / done if done else float("nan"),
            "versions": description.versions,
        }

    def arrow(self) -> pa.Table:
        """Return all finished trials as a table of pyarrow, with the units in the metadata of its columns."""
        description, files = self.description, self.store.chunk_files()
        tables, rows = [], []
        for k, keys in enumerate(self.keys().values()):
            for i, key in enumerate(keys):
                table = self.store.chunk(files.get(key, []))
                own = self.order[description.bounds[i] : description.bounds[i + 1]]
                if table is None:
                    continue
                if len(table) != len(own):
                    raise FileError(str(self.store.path), f"chunk {key} has {len(table)} rows, not {len(own)}")
                tables.append(table.replace_schema_metadata(None))
                rows.append(own + k * description.rows)
        number = np.concatenate(rows) if rows else np.zeros(0, int)
        results = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
        if (np.diff(number) < 0).any():
            ordered = np.argsort(number, kind="stable")
            results, number = results.take(ordered), number[ordered]
        columns: dict[str, Any] = {"row": number}
        if len(description.setups) > 1:
            names = np.array(list(description.setups))
            columns[SETUP] = pa.array(names[number // description.rows].tolist())
        index = slice(None) if len(number) == description.rows == len(self.order) else number % description.rows
        columns |= {name: x[index] for name, x in self.columns.items()}
        for name in results.column_names:
            columns[check_name(name) if name not in columns else f"result {name}"] = results[name]
        table = pa.table(columns)
        fields = [f.with_metadata({"unit": description.units.get(f.name, "")}) for f in table.schema]
        return table.cast(pa.schema(fields))

    def table(self) -> Any:
        """Return all finished trials as a pandas DataFrame; `attrs["units"]` maps columns to units."""
        table = self.arrow().to_pandas(split_blocks=True, self_destruct=True).set_index("row")
        table.attrs["units"] = dict(self.description.units)
        return table


def _first(paths: Sequence[Path], read: Callable[[Path], _T | None]) -> _T | None:
    """Return the content of the first intact file of a chunk, and warn about damaged ones before it."""
    for path in paths:
        content = read(path)
        if content is not None:
            return content
        words = "is damaged: its chunk counts as missing and is computed again"
        warn_caller(f"{path.name} in {path.parent.parent} {words}", SimulationWarning)
    return None


def _read(path: Path) -> bytes:
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES} bytes")
    return path.read_bytes()


def _verified(path: Path, pattern: re.Pattern[str]) -> pa.Table | None:
    """Return the table in a file whose name has its checksum, None if it is missing or damaged."""
    content = _content(path, pattern)
    with contextlib.suppress(OSError, ValueError, pa.ArrowException):
        return None if content is None else pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)


def _content(path: Path, pattern: re.Pattern[str]) -> bytes | None:
    """Return the content of a file whose name has its checksum, None if it is missing or damaged."""
    match = pattern.fullmatch(path.name)
    with contextlib.suppress(OSError, ValueError):
        content = _read(path)
        return content if match is not None and match["sum"] == _checksum(content) else None
    return None


def _checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="lz4", use_dictionary=False, write_statistics=False)
    return sink.getvalue().to_pybytes()


def _arrow(name: str, values: Sequence[Any]) -> pa.Array:
    """Return values as a column; those that are not finite are missing."""
    plain = [None if isinstance(x, float) and not np.isfinite(x) else x for x in values]
    try:
        return pa.array(plain)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"the values of {name!r} have different types: {visible(error)}") from error
