"""Settings for all tests: one BLAS thread per process, and few random cases a day.

One BLAS thread is fastest for small matrices and tests in parallel. Of a test with the parameter `seed`, the first
`DAILY_SEEDS` seeds run every day, or as many as a file of short tests states in its own `DAILY_SEEDS`; the others are
marked slow.
"""

import os

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

DAILY_SEEDS = 6


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        seed = item.callspec.params.get("seed") if hasattr(item, "callspec") else None
        if isinstance(seed, int) and seed >= getattr(item.module, "DAILY_SEEDS", DAILY_SEEDS):
            item.add_marker(pytest.mark.slow)
