"""The report on the processor times of the compiler's passes."""

import time

import numpy as np
import pytest

import legged
from legged.compiler import CompilationReport, Kernel, record
from legged.compiler.cache import machine_code
from legged.compiler.ir import repeat_while
from legged.compiler.ir.pass_times import compiler_pass
from legged.compiler.passes.simplify import simplify


def law(k, x):
    return k * x[0] + k * x[1]


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    machine_code.unload()


def test_report_of_compile_prints_each_pass_with_its_operations(capsys):
    legged.compile(lambda x: x + 1.5, x=2)  # loads the entry point of all kernels
    kernel = legged.compile(law, k=(), x=(2,), report=True)
    printed = {line[:24].strip(): line[24:].split() for line in capsys.readouterr().out.splitlines()}
    assert printed["tracing"][:2] == ["1", "3"]
    assert printed["simplification"][:2] == ["1", "2"]
    for name in ("writing of LLVM IR", "parsing of LLVM IR", "code generation by LLVM", "loading"):
        assert printed[name][0] == "1"
    assert kernel(2.0, np.array([3.0, 4.0])) == 14.0
    legged.compile(law, k=(), x=(3,))
    assert not capsys.readouterr().out


def test_times_of_passes_exclude_the_passes_they_call_and_sum_to_the_total():
    def burn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    inner = compiler_pass("inner")(burn)

    @compiler_pass("outer")
    def outer():
        burn(0.01)
        inner(0.03)
        inner(0.03)

    with CompilationReport() as report:
        outer()
    passes = report.passes
    assert list(passes) == ["inner", "outer"] and passes["inner"].calls == 2
    assert passes["inner"].seconds >= 0.06 and 0.01 <= passes["outer"].seconds < 0.03
    assert passes["inner"].seconds + passes["outer"].seconds <= report.total
    outer()  # the report is closed
    assert report.passes is passes and passes["inner"].calls == 2


def test_report_contains_the_passes_of_the_thread_that_compiles_loops(monkeypatch):
    monkeypatch.setattr(machine_code, "_has_free_processor", lambda: True)

    def root(x):
        start = np.stack([x, 5.0 + 0.0 * x])
        return repeat_while(lambda s: np.stack([0.5 * (s[0] + x / s[0]), s[1] - 1.0]), start, 9)[0]

    with CompilationReport() as report:
        compiled = Kernel(record(root, {"x": ()}))
        _ = compiled.code
    assert compiled(2.0) == pytest.approx(np.sqrt(2.0))
    generation = report.passes["code generation by LLVM"]
    assert generation.calls == 2 and report.passes["parsing of LLVM IR"].calls == 2
    assert 0.0 < sum(passes.seconds for passes in report.passes.values()) <= report.total
    assert report.elapsed > 0.0 and "elapsed time" in str(report)


def test_report_counts_operations_of_all_graphs():
    with CompilationReport() as report:
        graph = simplify(record(law, {"k": (), "x": (2,)}))
        _ = Kernel(graph).code
        _ = Kernel(graph).code  # its machine code is in memory
    assert report.passes["tracing"].operations == 3 and report.passes["simplification"].operations == 2
    assert report.passes["code generation by LLVM"].calls == 1
