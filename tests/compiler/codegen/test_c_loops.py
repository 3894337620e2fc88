"""Loops that end by a condition as loops in C: compiled with warnings as errors, equal to Python."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from legged.compiler import compile
from legged.compiler.ir import LookupTable, repeat_while, where
from legged.compiler.ir.operations import nested_loops

COMPILERS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
    for name in ("gcc", "clang")
]
FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
TABLE = LookupTable([1.0, 2.0, 4.0, 8.0])


def square_root(x, scale, *, most=60):
    """Return (scale sqrt(x) plus entries of a table, iterations): Newton's method, with a condition from outside."""
    b, positive = np.sin(scale) * x, x > 0.0

    def step(s):
        y = 0.5 * (s[0] + b / np.sin(scale) / s[0])
        goes_on = (np.abs(y - s[0]) > 1e-6 * y) & positive
        return np.stack([y, s[1] + 1.0, s[2] + TABLE(s[1]), where(goes_on, 1.0, 0.0)])

    result = repeat_while(step, np.stack([x, 0.0 * x, 0.0 * x, where(positive, 1.0, 0.0)]), most)
    return scale * result[0] + result[2], result[1]


def twice(x, scale):
    """Return the result of two different loops, the second of which has the result of the first."""
    root, first = square_root(x, scale)
    again, second = square_root(root, scale + 1.0, most=3)
    return again, np.stack([first, second])


def nested(x, scale):
    """Return (scale times the sum of the square roots of x + 1 and a half of it, steps left): a loop within a loop."""

    def step(s):
        root = repeat_while(
            lambda r: np.stack([0.5 * (r[0] + s[1] / r[0]), r[1] - 1.0]), np.stack([s[1], 20.0 + 0.0 * x]), 20
        )
        return np.stack([s[0] + scale * root[0], 0.5 * s[1], s[2] - 1.0])

    result = repeat_while(step, np.stack([0.0 * x, x + 1.0, 2.0 + 0.0 * x]), 5)
    return result[0], result[2]


def in_c(kernel, folder, compiler, precision):
    """Return the kernel's C function."""
    source, _ = kernel.to_c(folder / f"{kernel.name}_{compiler}_{precision}", precision, "function")
    text = source.read_text()
    assert len(text) < 10_000 and text.count("for (int i = 0; i < ") == len(nested_loops(kernel.graph))
    library = source.with_suffix(".so")
    subprocess.run([compiler, *FLAGS, "-o", library, source, "-lm"], check=True)
    kind = np.dtype("float64" if precision == "double" else "float32")
    function = ctypes.CDLL(str(library)).function

    def call(*numbers):
        arrays = [np.array(x, kind) for x in numbers] + [np.zeros(shape, kind) for shape in kernel.graph.outputs]
        assert function(*(ctypes.c_void_p(a.ctypes.data) for a in arrays)) == 0
        return np.concatenate([a.ravel() for a in arrays[len(numbers) :]])

    return call


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_loops_in_c_equal_those_in_python(tmp_path, compiler, precision):
    tolerance = 1e-13 if precision == "double" else 1e-5
    for function in (square_root, twice, nested):
        call = in_c(compile(function, None, x=(), scale=()), tmp_path, compiler, precision)
        for x in (0.0, 1e-3, 1.0, 2.0, 1e4):
            expected = np.concatenate([np.ravel(part) for part in function(np.float64(x), 3.0)])
            if precision == "double":
                assert call(x, 3.0) == pytest.approx(expected, rel=tolerance)
            else:  # the last iterations depend on rounding
                assert call(x, 3.0)[0] == pytest.approx(expected[0], rel=0.5)
                assert abs(call(x, 3.0)[-1] - expected[-1]) <= 2.0


def test_a_state_that_is_not_a_number_ends_a_loop_in_c(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")

    def divided(x):
        last = repeat_while(lambda s: np.stack([s[0] + 1.0, s[1] * np.sqrt(2.5 - s[0])]), np.stack([x, 1.0 + x]), 99)
        return last[0]

    kernel = compile(divided, None, x=())
    assert in_c(kernel, tmp_path, "gcc", "double")(0.0)[0] == kernel(0.0) == 4.0
