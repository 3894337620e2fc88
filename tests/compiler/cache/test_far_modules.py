"""Modules of one kernel whose memory lies more than 2 GB apart, as in processes with large arrays."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
import numpy as np
from llvmlite.binding import ExecutionEngine
import legged
from legged.compiler.ir import repeat_while

library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
PRIVATE, ANONYMOUS, NO_RESERVE = 0x2, 0x20, 0x4000
PAGE, FAR = 4096, 3 << 30

def reserve(size):
    address = library.mmap(None, size, 0, PRIVATE | ANONYMOUS | NO_RESERVE, -1, 0)
    assert address != ctypes.c_void_p(-1).value
    return address

add, files = ExecutionEngine.add_object_file, {}

def add_far(engine, file):
    files[engine] = files.get(engine, 0) + 1
    if files[engine] > 1:  # fill all gaps near the file before
        is_above = reserve(PAGE) > (far := reserve(FAR))
        while (reserve(4 * PAGE) > far) == is_above:
            pass
    add(engine, file)

ExecutionEngine.add_object_file = add_far

def halved(x):
    return repeat_while(lambda state: np.array([state[0] * 0.5, state[1] - 1.0]), x, 20)

kernel = legged.compile(halved, x=2)
x = np.random.default_rng(1).uniform(1.0, 4.0, (40, 2))
assert np.array_equal(kernel(x[0]), halved(x[0]))
assert np.array_equal(kernel(x), [halved(row) for row in x])
print(sorted(files.values()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reserves memory by a call of Linux")
def test_modules_may_lie_far_apart(tmp_path):
    """The kernel calls its loop, and in a batch also the loop over the states. LLVM would abort the process."""
    variables = {**os.environ, "LEGGED_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, env=variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("[")[1] == "1, 2, 3]\n"  # of the entry point, the kernel for one state, that for a batch
