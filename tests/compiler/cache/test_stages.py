"""Code in two stages: the same bits without optimization, replacement while it is in use, and the other process."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import subprocess
import sys
import threading
import time
from typing import Any, NamedTuple

import numpy as np
import pytest

import legged
import robots
from legged.compiler import BatchKernel, ChangingTable, Members, Schedule, TimeLoop, element_type, mechanisms, module
from legged.compiler.cache import disk, machine_code, staged
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.kernels import planned, streamed
from legged.compiler.codegen.kernels.planned import WITHOUT_PLAN
from legged.compiler.ir.loops_and_tables import repeat_while
from legged.compiler.passes.pipeline import trace
from tests.compiler.codegen.test_planned import random_function
from tests.compiler.codegen.test_targets import AVAILABLE

DAILY_SEEDS = 1  # of random functions of 200 operations, each on all targets, in both precisions
N = 9
"""Length of the state."""
DEADLINE = 60.0
"""Longest time that another process takes on a busy computer, [s]."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder, no code in memory, and long modules from the first character on, with register plans."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    monkeypatch.setenv("LEGGED_WITHOUT", "")
    monkeypatch.setattr(staged, "LONG", 0)
    monkeypatch.setattr(selection, "PLANNED_NODES", 0)
    staged._modules.clear()
    machine_code.unload()
    yield tmp_path / "legged"
    machine_code.unload()


def time_loop(seed=1, dtype=None, rate=0.1):
    """Return the time loop of a random function of the state, which has a loop of its own."""
    function = random_function(seed)

    def step(clock, parameters, state):
        return 0.5 * state + rate * function(state)[:N] + clock[1] * parameters[0], 0.0

    graph = trace(step, {"clock": (3,), "parameters": (1,), "state": (N,)})
    assert graph.loops
    return TimeLoop(graph, element_type(dtype))


def advanced(loop, count=1, steps=50):
    """Return the states of members after steps, (count, N)."""
    states = np.random.default_rng(0).normal(size=(count, N))
    members = Members.at(states, 0, loop.element.dtype)
    loop.run(members, np.full((count, 1), 0.3), Schedule(np.array([[[0.0, 0.01, steps, 0.0]]]), np.array([-1])), 1)
    assert np.isfinite(members.state).all()
    return members.state


def wait_until(condition):
    """Wait until a condition holds."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def requests(monkeypatch):
    """What another process would optimize: the modules of each request, and the function that replaces code."""
    made = []

    def request(modules, target, finished):
        file = io.BytesIO()
        staged._Pickler(file).dump({name: module.source for name, module in modules.items()})
        with llvm.target_context(target), selection.stage(selection.Stage.SECOND):
            sources = pickle.loads(file.getvalue()).items()
            texts = {name: source if isinstance(source, str) else source() for name, source in sources}
        made.append((texts, target, finished))

    monkeypatch.setattr(staged, "optimize", request)
    return made


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", AVAILABLE)
@pytest.mark.parametrize("seed", range(3))
def test_code_has_the_same_bits_without_optimization(folder, requests, monkeypatch, seed, name, dtype):
    """Random functions with plans of registers and outlined, for one state and in batches, on each target.

    Multiplications and additions that LLVM contracts, when it optimizes, would give other last digits.
    """
    monkeypatch.setattr(llvm, "default_target", lambda: llvm.target_named(name))
    for outlined in (False, True):
        for limit in ("OUTLINE_NODES", "OUTLINE_ALWAYS_NODES", "OUTLINE_BATCH_NODES"):
            monkeypatch.setattr(selection, limit, 0 if outlined else 10**9)
        for count in (1, 5):
            first = advanced(time_loop(seed, dtype), count)
            ((modules, _, _),) = requests
            assert len(modules) >= 2  # the step and its loop
            assert outlined == all("ptr %rows, ptr %constants" in ir for ir in modules.values())
            machine_code.unload()
            with mechanisms.without(mechanisms.STAGES):
                optimized = advanced(time_loop(seed, dtype), count)
            assert first.tobytes() == optimized.tobytes()
            requests.clear()
            machine_code.unload()
            for path in folder.glob("*.o"):
                path.unlink()


def test_packed_kernels_are_optimized_at_once(folder, requests, monkeypatch):
    """LLVM fuses products of packed operations into sums only when it optimizes."""
    monkeypatch.setattr(selection, "PLANNED_NODES", 10**9)
    advanced(time_loop())
    assert not requests
    assert not staged.is_staged("%x = fadd contract double %a, %b")


def test_code_is_replaced_while_it_is_in_use(folder):
    """Another process writes the files of the cache folder; a second time nothing is compiled."""
    loop = time_loop()
    wanted = [advanced(loop, count, 2000) for count in (1, 5)]
    codes = [loop._run_single.code, loop._run_batch.code]
    results, is_done = [], threading.Event()

    def use():
        while not is_done.is_set():
            results.append(all(np.array_equal(advanced(loop, n, 2000), x) for n, x in zip((1, 5), wanted, strict=True)))

    thread = threading.Thread(target=use)
    thread.start()
    wait_until(lambda: all(len(code._targets) == 2 for code in codes))
    is_done.set()
    thread.join()
    assert results and all(results)
    assert all(np.array_equal(advanced(loop, n, 2000), x) for n, x in zip((1, 5), wanted, strict=True))
    first, second = codes[0]._targets
    for name in ("legged_time_loop", "legged_time_loop_part"):
        target = ctypes.c_int64.from_address(codes[0].address(selection.code_variable(name))).value
        assert target == second.address(name) != first.address(name)


def test_a_loop_of_two_graphs_is_compiled_and_optimized_once(folder, monkeypatch):
    """The second graph uses its code without optimization, and is replaced when the process of the first has ended."""
    compiled, optimized, compile_module, start = [], [], llvm.machine_code, staged._started
    monkeypatch.setattr(llvm, "machine_code", lambda ir, level: (compiled.append(ir), compile_module(ir, level))[1])
    monkeypatch.setattr(
        staged, "_started", lambda target, modules: (optimized.append(modules), start(target, modules))[1]
    )
    monkeypatch.setattr(staged, "_PROGRAM", f"import time; time.sleep(1); {staged._PROGRAM}")
    loops = [time_loop(rate=rate) for rate in (0.1, 0.2)]
    first = [advanced(loop) for loop in loops]
    assert len(compiled) == len({*compiled}) and [len(modules) > 1 for modules in optimized] == [True, False]
    assert not optimized[0].keys() & optimized[1].keys() and all(ir for modules in optimized for ir in modules.values())
    codes = [loop._run_single.code for loop in loops]
    wait_until(lambda: all(len(code._targets) == 2 for code in codes))
    assert [advanced(loop).tobytes() for loop in loops] == [x.tobytes() for x in first] and not staged._modules


def test_optimized_code_of_the_cache_is_used_at_once(folder, requests, monkeypatch):
    """The other process writes what this one would write without stages."""
    wanted = advanced(time_loop())
    (modules, target, finished), levels = requests.pop(), []
    assert not any((folder / file).exists() for file in modules)
    inner = llvm.machine_code
    monkeypatch.setattr(llvm, "machine_code", lambda ir, *level: (levels.append(level), inner(ir, *level))[1])
    with llvm.target_context(target):
        for file, ir in modules.items():
            disk.write(file, llvm.machine_code(ir))
    stored = {file: (folder / file).read_bytes() for file in modules}
    levels.clear()
    machine_code.unload()
    assert np.array_equal(advanced(time_loop()), wanted) and not levels and not requests
    finished()  # the code that it would replace is not in use any more
    for file in modules:
        (folder / file).unlink()
    machine_code.unload()
    with mechanisms.without(mechanisms.STAGES):
        advanced(time_loop())
    assert {file: (folder / file).read_bytes() for file in modules} == stored and set(levels) == {(2,)}


def test_code_stays_in_use_where_the_other_process_fails(folder, monkeypatch):
    monkeypatch.setattr(staged, "_PROGRAM", "raise SystemExit(1)")
    loop = time_loop()
    wanted = advanced(loop)
    wait_until(lambda: not any(thread.name == "legged-stages" for thread in threading.enumerate()))
    assert np.array_equal(advanced(loop), wanted) and len(loop._run_single.code._targets) == 1


def test_code_is_optimized_at_once_where_no_other_process_can_start(folder, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError("no processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    loop = time_loop()
    advanced(loop)
    assert not loop._run_single.code._targets and len(list(folder.glob("*.o"))) >= 3


@pytest.mark.parametrize("way", ["no folder", "a program of its own", "switched off"])
def test_code_is_optimized_at_once_without_a_folder_or_an_interpreter(folder, requests, monkeypatch, way):
    if way == "no folder":
        monkeypatch.setenv("LEGGED_CACHE", disk.OFF)
    elif way == "a program of its own":
        monkeypatch.setattr(sys, "executable", "/usr/bin/robot-studio")  # would start it once more
    else:
        monkeypatch.setenv("LEGGED_WITHOUT", mechanisms.STAGES)
    advanced(time_loop())
    assert not requests


@pytest.mark.parametrize("name", AVAILABLE)
def test_kernels_have_the_same_bits_without_optimization(folder, requests, monkeypatch, name):
    """Forward dynamics for one state and in batches: straight-line code, in sections, with a plan, and outlined."""
    robot, rng = robots.chain(14, twist=0.7), np.random.default_rng(2)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(37)])
    v, tau = rng.normal(size=(2, 37, robot.nv))
    for limits in (
        {},
        {"PLANNED_BATCH_NODES": 10**9, "PLANNED_NODES": 10**9},
        {"OUTLINE_BATCH_NODES": 0, "OUTLINE_NODES": 0},
    ):
        with monkeypatch.context() as context:
            for limit, number in limits.items():
                context.setattr(selection, limit, number)
            kernel = legged.compile(legged.forward_dynamics, robot, target=name)
            first = kernel(q[0], v[0], tau[0]), kernel(q, v, tau), kernel(q, v, tau, threads=2)
            assert requests
            machine_code.unload()
            with mechanisms.without(mechanisms.STAGES):
                kernel = legged.compile(legged.forward_dynamics, robot, target=name)
                optimized = kernel(q[0], v[0], tau[0]), kernel(q, v, tau), kernel(q, v, tau)
            assert all(a.tobytes() == b.tobytes() for a, b in zip(first, optimized, strict=True))
        requests.clear()
        machine_code.unload()
        for path in folder.glob("*.o"):
            path.unlink()


PROGRAM = """
import os, sys
from legged.compiler.cache import staged
from legged.compiler.codegen import selection
from tests.compiler.cache.test_stages import advanced, time_loop
staged.LONG = selection.PLANNED_NODES = 0
staged._PROGRAM = "import time; time.sleep(2); " + staged._PROGRAM
loop = time_loop()
wanted = advanced(loop)
pid = os.fork()
if pid == 0:
    advanced(time_loop(2))  # compiled here
    sys.exit(advanced(loop).tobytes() != wanted.tobytes())
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_process_that_ends_leaves_optimized_code(tmp_path):
    """Neither it nor a forked process, which has no thread that waits, is held up by the other process."""
    variables = {**os.environ, "LEGGED_CACHE": str(tmp_path), "LEGGED_WITHOUT": ""}
    variables["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, env=variables)
    assert (done.stdout, done.stderr) == ("0\n", "")
    before = len(list(tmp_path.glob("legged/*.o")))
    wait_until(lambda: len(list(tmp_path.glob("legged/*.o"))) >= before + 4)  # two steps, each with a loop


def test_long_modules_follow_each_other_and_short_loops_come_first(monkeypatch):
    """LLVM then needs no memory for two long modules at once."""

    def function(x):
        for n in (2, 9, 5, 14):  # of this number of operations
            x = repeat_while(lambda y, n=n: sum((np.sin(k) * y * y for k in range(1, n)), -y), x, 3)
        return x

    graph = trace(function, {"x": (2,)})
    sizes = {loop: len(loop.body.nodes) for loop in graph.loops}
    least, less, longer, longest = sorted(sizes.values())
    monkeypatch.setattr(selection, "OUTLINE_NODES", less)
    program = selection.time_loop_module
    order = machine_code._modules_of(graph, (program.__name__, ""), program, 1)
    assert [sizes.get(key[0], key[0]) for key in order] == [least, less, "time_loop_module", longest, longer]


def test_the_first_stage_has_no_plan_of_registers(folder, requests, monkeypatch):
    """The second stage plans the registers of a graph with a changing table and a label that cannot be pickled."""
    table, label, inner = ChangingTable(np.arange(9.0)), threading.Lock(), llvm.machine_code
    compiled = []
    monkeypatch.setattr(llvm, "machine_code", lambda ir, level: (compiled.append((ir, level)), inner(ir, level))[1])
    monkeypatch.setattr(planned, "BLOCK", 40)
    function = random_function(3)

    class Pair(NamedTuple):
        first: Any
        second: Any

    def read(x):
        with module(label):
            return Pair(table(3.0 * abs(x[0])), function(x))

    x = np.linspace(-0.5, 0.5, N)
    kernel = legged.compile(read, x=N)
    first = kernel(x)
    ((sources, _, _),) = requests
    long = [ir for ir, level in compiled if level == 0]
    assert long and all(WITHOUT_PLAN in ir and "%m0 =" not in ir for ir in long)
    assert any("\nblock5:\n" in ir for ir in long)
    assert len(sources) == len(long) and not any(WITHOUT_PLAN in ir for ir in sources.values())
    assert any("%m0 =" in ir for ir in sources.values())  # that of the graph; its loops need no stack slots
    machine_code.unload()
    with mechanisms.without(mechanisms.STAGES):
        optimized = legged.compile(read, x=N)(x)
    assert [a.tobytes() for a in first] == [a.tobytes() for a in optimized]
    assert {ir for ir, level in compiled if level == 2} > {*sources.values()}


@pytest.mark.parametrize("states", [1, 3, None])
def test_kernels_of_few_states_have_no_plan_in_the_first_stage(folder, requests, monkeypatch, states):
    """Neither do they run in sections for several vectors, of which a batch of few states has one."""
    monkeypatch.setattr(selection, "PLANNED_BATCH_NODES", 40)
    monkeypatch.setattr(streamed, "most_vectors", lambda *_: 4)
    monkeypatch.setattr(selection, "most_vectors", lambda *_: 4)
    monkeypatch.setattr(llvm, "default_target", lambda: llvm.target_named("native"))
    native, inner, compiled = llvm.default_target().width, llvm.machine_code, []
    monkeypatch.setattr(llvm, "machine_code", lambda ir, level: (compiled.append((ir, level)), inner(ir, level))[1])
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (states or 9, N))
    first = BatchKernel(random_function(3), {"x": (N,)}, states=states)(x)
    is_narrow = states is not None and {1: 2, 3: 4}[states] < native
    kernels = [ir for ir, level in compiled if level == 0 and "@legged_batch_loop(" in ir]
    assert kernels and all(("legged_row_kernel_0" in ir) == (not is_narrow) for ir in kernels)
    assert all((WITHOUT_PLAN in ir) == is_narrow and "%m0 =" not in ir for ir in kernels)
    ((sources, _, _),) = requests
    assert is_narrow == any("%m0 =" in ir for ir in sources.values())
    machine_code.unload()
    with mechanisms.without(mechanisms.STAGES):
        optimized = BatchKernel(random_function(3), {"x": (N,)}, states=states)(x)
    assert [a.tobytes() for a in first] == [a.tobytes() for a in optimized]


def test_the_other_process_plans_registers_as_this_one_would(folder):
    """It receives a graph that has a plan in this process alone, where shorter graphs have one, too."""
    loop = time_loop()
    advanced(loop)
    wait_until(lambda: len(loop._run_single.code._targets) == 2)
    stored = {path.name: path.read_bytes() for path in folder.glob("*.o")}
    machine_code.unload()
    for name in stored:
        (folder / name).unlink()
    with mechanisms.without(mechanisms.STAGES):
        advanced(time_loop())
    planned = {path.name: path.read_bytes() for path in folder.glob("*.o")}
    assert len(planned) >= 2 and planned.items() <= stored.items()
