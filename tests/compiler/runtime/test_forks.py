"""Processes forked while another thread compiles: they compile, call kernels with several threads, and end."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")

FORKS = 12
PROGRAM = f"""
import gc, os, sys, threading
import numpy as np
import legged
from legged.compiler.runtime.threads import thread_limit

def compiled(number):
    '''Compile a function that is in no cache, with a loop, whose code is a module of its own.'''
    def function(x):
        for k in range(6):
            x = np.sin(x + number) * x[::-1] + k
        return x
    return legged.compile(function, None, x=8)

def work():
    number = 1.0
    while True:
        compiled(number)
        number += 1.0

def check(number):
    kernel, x = compiled(number), np.ones((20_000, 8))
    with thread_limit(1):
        expected = kernel(x)
    with thread_limit(2):
        assert np.array_equal(kernel(x), expected)
    assert gc.isenabled()

threading.Thread(target=work, daemon=True).start()
for k in range({FORKS}):
    pid = os.fork()
    if pid == 0:
        check(-1.0 - k)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print("done")
sys.stdout.flush()
os._exit(0)
"""


def test_processes_forked_while_another_thread_compiles_work(tmp_path):
    """A child waits forever for a lock that a thread of its parent holds, unless the fork replaces it."""
    variables = {**os.environ, "LEGGED_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, env=variables)
    assert done.stdout == "done\n", done.stderr


INSIDE = """
import os, sys, threading, time
from legged.compiler.codegen import llvm

inside, left = threading.Event(), threading.Event()

def use():
    with {context}:
        inside.set()
        time.sleep(0.2)
        left.set()

thread = threading.Thread(target=use)
thread.start()
inside.wait()
pid = os.fork()
if pid == 0:
    with {context}:
        os._exit(0 if left.is_set() else 1)
thread.join()
with {context}:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.parametrize("context", ["llvm._emission()", "llvm.llvm.ffi.lib._lock"])
def test_a_fork_waits_until_no_thread_is_inside_llvm(context):
    """A forked process inherits the locks inside LLVM, and waits forever for one that another thread held."""
    program = INSIDE.format(context=context)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
