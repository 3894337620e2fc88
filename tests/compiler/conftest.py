"""Fixtures of the compiler's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legged.compiler import mechanisms
from legged.compiler.codegen.cpython import entry_point


@pytest.fixture(scope="module", params=["entry point", "ctypes"])
def call_path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the call path of the kernels that are compiled in a test: the built-in entry point, or ctypes."""
    if request.param == "ctypes":
        with mechanisms.without(mechanisms.ENTRY_POINT):
            yield request.param
    elif entry_point.is_supported():
        yield request.param
    else:
        pytest.skip("there is no entry point for this interpreter or NumPy")
