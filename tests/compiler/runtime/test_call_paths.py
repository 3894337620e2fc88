"""The choice between the built-in entry point and ctypes: environment, self-test of layouts, end of a process."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import sysconfig
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from legged.compiler import compile
from legged.compiler.codegen.cpython import layout
from legged.compiler.codegen.element_type import ELEMENT_TYPES


def run_python(*lines: str, **environment: str) -> str:
    """Return the output of a new Python process."""
    given = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], env=given, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize("choice", ["", "auto", "ctypes"])
def test_an_environment_variable_forces_calls_through_ctypes(choice):
    """Both call paths use the same cached machine code."""
    lines = (
        "from legged.compiler import compile",
        "kernel = compile(lambda x: (x + 1.5, x @ x), x=2)",
        "print([float(x.sum()) for x in kernel([1.0, 2.0])], type(kernel.__call__) is type(len))",
    )
    result, entry = run_python(*lines, LEGGED_CALLS=choice).rsplit(maxsplit=1)
    assert result == "[6.0, 5.0]"
    assert (entry == "True") == (choice != "ctypes" and layout.is_confirmed())


def test_an_unknown_call_path_is_refused(monkeypatch):
    monkeypatch.setenv("LEGGED_CALLS", "fast")
    with pytest.raises(ValueError, match="LEGGED_CALLS must be 'auto' or 'ctypes', got 'fast'"):
        compile(lambda x: x + 1.0, x=2)


def is_confirmed() -> bool:
    """Run the self-test and return its result."""
    return layout.is_confirmed.__wrapped__()


def test_the_layout_of_supported_interpreters_is_confirmed():
    known = sys.implementation.name == "cpython" and sys.maxsize > 2**32 and sys.byteorder == "little"
    is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert is_confirmed() == (known and not is_free_threaded and sys.version_info[:2] <= layout._PYTHON_VERSIONS[1])


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (sys, "implementation", SimpleNamespace(name="pypy")),
        (sys, "version_info", (3, 99, 0)),
        (sys, "byteorder", "big"),
        (sys, "_is_gil_enabled", lambda: False),
        (layout, "HEADER", 32),  # free-threaded builds
        (ctypes, "sizeof", lambda kind: 4),
    ],
)
def test_other_builds_are_refused_before_any_memory_is_read(monkeypatch, owner, name, value):
    reads: list[tuple[Any, ...]] = []
    monkeypatch.setattr(layout, "_read", lambda *arguments: reads.append(arguments))
    monkeypatch.setattr(owner, name, value, raising=False)
    assert not is_confirmed() and not reads


def test_other_versions_of_numpy_are_refused(monkeypatch):
    monkeypatch.setattr(layout, "_NUMPY_ABI_VERSIONS", ())
    monkeypatch.setattr(layout, "_numbers_match", None)  # what follows is not reached
    assert not layout._is_known_build() and not is_confirmed()


OFFSETS = ("TYPE", "LENGTH", "ITEMS", "NUMBER", "DATA", "NDIM", "DIMENSIONS", "STRIDES", "BASE", "DESCR", "FLAGS")


@pytest.mark.skipif(not layout.is_confirmed(), reason="the layout of this interpreter is not confirmed")
@pytest.mark.parametrize("name", OFFSETS)
@pytest.mark.parametrize("shift", [-8, 8])
def test_the_self_test_detects_every_wrong_offset(monkeypatch, name, shift):
    """The check of the build passes, and the fields of sample objects differ."""
    monkeypatch.setattr(layout, "_is_known_build", lambda: True)
    monkeypatch.setattr(layout, name, getattr(layout, name) + shift)
    assert not is_confirmed()


@pytest.mark.skipif(not layout.is_confirmed(), reason="the layout of this interpreter is not confirmed")
@pytest.mark.parametrize("name", ["C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "ALIGNED", "WRITEABLE"])
def test_the_self_test_detects_wrong_flags(monkeypatch, name):
    monkeypatch.setattr(layout, name, 0x200)  # NumPy's NOTSWAPPED
    assert not is_confirmed()


@pytest.mark.skipif(not layout.is_confirmed(), reason="the layout of this interpreter is not confirmed")
@pytest.mark.parametrize("element", ELEMENT_TYPES.values(), ids=str)
def test_the_self_test_detects_wrong_types(monkeypatch, element):
    monkeypatch.setitem(layout.ELEMENT_TYPES, element.name, replace(element, type_number=23 - element.type_number))
    assert not is_confirmed()


def test_a_process_with_kernels_alive_exits_normally():
    """Where the C library supports it, freed memory is overwritten, so that a read of freed memory is detected."""
    lines = (
        "import builtins, legged",
        "builtins.kept = legged.compile(lambda x: 2.0 * x, None, x=3)",  # outlives the modules
        "builtins.kept([1.0, 2.0, 3.0])",
    )
    run_python(*lines, MALLOC_PERTURB_="255", PYTHONMALLOC="malloc")
