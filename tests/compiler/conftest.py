"""Fixtures of the compiler's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legged.compiler.codegen.cpython import layout


@pytest.fixture(scope="module", params=["entry point", "ctypes"])
def call_path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the call path of the kernels that are compiled in a test: the built-in entry point, or ctypes."""
    if request.param == "ctypes":
        with layout._ctypes_calls():
            yield request.param
    elif layout.is_enabled():
        yield request.param
    else:
        pytest.skip("the layout of this interpreter is not confirmed, or LEGGED_CALLS=ctypes is set")
