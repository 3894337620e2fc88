"""Code that another thread compiles ahead of its use."""

import gc
import os
import signal
import threading

import numpy as np
import pytest

import legged
from legged.compiler import CompilationReport, Kernel, compile_ahead, trace
from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm, selection
from legged.compiler.ir import repeat_while


def law(x):
    return np.sin(x) @ x


@pytest.fixture
def threads(tmp_path, monkeypatch):
    """The threads in which LLVM compiles, the event for which it waits outside of the main thread, with a processor."""
    legged.compile(law, x=2)  # loads the entry point of all kernels
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    monkeypatch.setattr(machine_code, "_has_free_processor", lambda: True)
    machine_code.unload()
    names, may_go, inner = [], threading.Event(), llvm.machine_code

    def compiled(text, *level):
        names.append(threading.current_thread().name)
        if threading.current_thread() is not threading.main_thread():
            assert may_go.wait(60.0)
        return inner(text, *level)

    monkeypatch.setattr(llvm, "machine_code", compiled)
    yield names, may_go
    may_go.set()


def test_the_caller_goes_on_while_a_thread_compiles_and_its_call_waits_for_the_code(threads):
    names, may_go = threads
    with CompilationReport() as report:
        kernel = compile_ahead(law, x=3)  # returns, although the thread waits
        threading.Timer(0.05, may_go.set).start()
        assert kernel(np.ones(3)) == 3 * np.sin(1.0)
    assert names == ["legged_compiler_0"]
    assert report.passes["code generation by LLVM"].calls == 1
    assert compile_ahead(law, x=3)(np.zeros(3)) == 0.0 and len(names) == 1  # in memory


def test_code_is_written_ahead_without_garbage_collection(threads, monkeypatch):
    """Collections took a tenth of the time of a start."""
    enabled, inner = [], selection.kernel_writer
    monkeypatch.setattr(selection, "kernel_writer", lambda *x: (enabled.append(gc.isenabled()), inner(*x))[1])
    Kernel(trace(law, {"x": (5,)})).load_ahead()
    assert enabled == [False] and gc.isenabled()


def test_an_error_of_the_thread_is_raised_by_the_call(threads, monkeypatch):
    def fails(text, *level):
        raise RuntimeError("LLVM cannot compile the module")

    monkeypatch.setattr(llvm, "machine_code", fails)
    kernel = compile_ahead(law, x=4)
    with pytest.raises(RuntimeError, match="LLVM cannot compile the module"):
        kernel(np.ones(4))


def test_without_a_free_processor_the_first_call_compiles(threads, monkeypatch):
    monkeypatch.setattr(machine_code, "_has_free_processor", lambda: False)
    assert compile_ahead(law, x=5)(np.ones(5)) == 5 * np.sin(1.0)
    assert threads[0] == ["MainThread"]


def three_powers(x):
    """Return three loops of different lengths on x, two entries each."""
    power = [
        repeat_while(lambda s, n=n: np.stack([s[0] * x**n, s[1] - 1.0]), np.stack([x, 2.0 * x]), 9) for n in (1, 2, 3)
    ]
    return power[0][0] + power[1][0] + power[2][0]


def test_the_caller_compiles_the_modules_that_the_thread_has_not_begun(threads, monkeypatch):
    """The thread waits in its first module, the program, until the caller has compiled the three loops."""
    names, may_go = threads
    inner = llvm.machine_code

    def compiled(text, *level):
        result = inner(text, *level)
        if names.count("MainThread") == 3:
            may_go.set()
        return result

    monkeypatch.setattr(llvm, "machine_code", compiled)
    kernel = legged.compile(three_powers, x=())
    assert kernel(1.0) == 3.0 and kernel(1.0) == three_powers(1.0)
    assert len(names) == 4 and names.count("MainThread") == 3


def test_code_that_is_begun_shares_the_modules_in_work(threads):
    """Two functions with the same three loops need five modules."""
    names, may_go = threads
    kernels = [compile_ahead(lambda x, n=n: n * three_powers(x), x=()) for n in (2.0, 3.0)]
    may_go.set()
    assert [kernel(1.0) for kernel in kernels] == [6.0, 9.0] and len(names) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_compiles_what_a_thread_of_its_parent_has_begun(threads):
    _, may_go = threads
    kernel = compile_ahead(law, x=6)  # in a thread that the new process does not have
    process = os.fork()
    if not process:
        signal.alarm(60)  # [s], ends a process that waits for the thread
        may_go.set()
        os._exit(int(abs(kernel(np.ones(6)) - 6 * np.sin(1.0)) > 1e-14))
    assert os.waitpid(process, 0)[1] == 0
