"""Kernels for other processors: they agree with those for this one, and wrong targets are named."""

import ctypes
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import legged
import robots
from legged.compiler.codegen import llvm, selection
from legged.compiler.codegen.element_type import ELEMENT_TYPES, element_type
from legged.compiler.codegen.elementary import library_symbol
from legged.compiler.codegen.llvm import TargetError
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS
from legged.compiler.runtime.kernel import Kernel


def available(name):
    try:
        llvm.target_named(name)
    except TargetError:
        return False
    return True


AVAILABLE = [name for name in llvm.TARGETS if available(name)]


def functions(x):
    """Elementary functions, divisions and square roots of (3,) numbers."""
    a, b, c = x
    d = 1.0 + a * a
    return np.array([np.sin(a), np.cos(b), np.arctan2(a, c), np.exp(c), np.log(d), np.sqrt(d), a / d, np.tanh(b)])


def states(robot, count, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(count)])
    return q, rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))


@pytest.mark.parametrize("name", AVAILABLE)
def test_targets_agree_with_the_native_one(name):
    """Also batches whose length is no multiple of the lanes."""
    robot = legged.random_tree(seed=1, links=4)
    for count in (1, 13):
        arguments = states(robot, count)
        native = legged.compile(legged.forward_dynamics, robot, target="native")(*arguments)
        vdot = legged.compile(legged.forward_dynamics, robot, target=name)(*arguments)
        # the condition of the inertia matrix amplifies rounding errors, which fused operations change
        np.testing.assert_allclose(vdot, native, rtol=0, atol=1e-9 * abs(native).max())
    x = np.random.default_rng(1).normal(size=(101, 3)) * (1.0, 30.0, 3.0)
    native = legged.compile(functions, x=3, target="native")(x)
    np.testing.assert_allclose(legged.compile(functions, x=3, target=name)(x), native, rtol=4e-15, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", AVAILABLE)
@pytest.mark.parametrize("seed", range(12))
def test_all_targets_and_types_agree_with_plain_dynamics_of_random_robots(seed, name, dtype):
    """One state, and a batch whose length is no multiple of the lanes."""
    robot = legged.random_tree(seed=seed, links=2 + seed % 7)
    q, v, tau = states(robot, 11, seed)
    limit = 1e-9 if dtype == "float64" else 1e-3
    for function, accuracy in ((legged.inverse_dynamics, 1e-3 * limit), (legged.forward_dynamics, limit)):
        accuracy = max(accuracy, 3e-6) if dtype == "float32" else accuracy
        kernel = legged.compile(function, robot, target=name, dtype=dtype)
        plain = np.array([function(robot, *state) for state in zip(q, v, tau, strict=True)])
        for values in (kernel(q, v, tau), np.array([kernel(*state) for state in zip(q, v, tau, strict=True)])):
            np.testing.assert_allclose(values, plain, rtol=0, atol=accuracy * abs(plain).max())


def test_kernels_of_targets_are_distinct_and_survive_pickling():
    robot = robots.chain(1)
    for name in (*AVAILABLE, "native"):
        kernel = legged.compile(legged.inverse_dynamics, robot, target=name)
        assert kernel.target == name == pickle.loads(pickle.dumps(kernel)).target
    if len(AVAILABLE) > 1:
        first, second = (legged.compile(legged.inverse_dynamics, robot, target=name).code for name in AVAILABLE[:2])
        assert first is not second
    masses = legged.compile(legged.inverse_dynamics, robot, parameters=["link1.mass"], target=AVAILABLE[0])
    assert pickle.loads(pickle.dumps(masses)).target == AVAILABLE[0]


def test_unknown_and_missing_targets_are_named(monkeypatch):
    robot = robots.chain(1)
    with pytest.raises(TargetError, match="target must be one of native, sse2, avx2, avx512, neon, got 'avx'"):
        legged.compile(legged.inverse_dynamics, robot, target="avx")
    other = "neon" if AVAILABLE != ["neon"] else "avx2"
    with pytest.raises(TargetError, match=f"target '{other}' needs a"):
        legged.compile(legged.inverse_dynamics, robot, target=other)
    if "sse2" in AVAILABLE:
        monkeypatch.setattr(llvm.llvm, "get_host_cpu_features", lambda: {"sse2": True})
        with pytest.raises(TargetError, match="needs the features avx2, fma, bmi2, which this processor lacks"):
            llvm.target_named("avx2")


def test_a_function_can_have_an_argument_named_target():
    kernel = legged.compile(lambda target, gain: gain * target, target=(3,), gain=())
    np.testing.assert_array_equal(kernel(np.array([1.0, 2.0, 3.0]), 2.0), [2.0, 4.0, 6.0])


def test_environment_names_the_default():
    """Time loops use it, too."""
    program = """
import legged, numpy as np
from legged.compiler.runtime.time_loop import Members, Schedule, TimeLoop
print(legged.compile(lambda x: np.sin(x), x=3).target)
loop = TimeLoop.of(lambda clock, parameters, state: (state + clock[1] * parameters * np.sin(state), 0.0), 1, 1)
members = Members.at(np.ones((5, 1)), 1)
loop.run(members, np.ones((1, 1)), Schedule(np.array([[[0.0, 1e-3, 1000.0, 0.0]]]), np.array([0])))
print(*members.state[:, 0].tolist())
"""

    def run(target):
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env={**os.environ, "LEGGED_TARGET": target}, capture_output=True, text=True)

    named, native = run(AVAILABLE[0]).stdout.split(), run("").stdout.split()
    assert (named[0], native[0]) == (AVAILABLE[0], "native")
    np.testing.assert_allclose(np.array(named[1:], float), np.array(native[1:], float), rtol=1e-13)
    assert "LEGGED_TARGET: target must be one of" in run("none").stderr


MAIN = """
#include <stdio.h>
#include <stdint.h>
int64_t legged_single_state(REAL *const *arrays);
int64_t legged_batch_loop(int64_t first, int64_t end, const int64_t *arrays, REAL *work);
extern const int64_t legged_batch_work_size;
static const int64_t sizes[] = {SIZES};
static REAL numbers[TOTAL], work[WORK] __attribute__((aligned(64)));
int main(void) {
    REAL *arrays[ARRAYS];
    int64_t rows[3 * ARRAYS], at = 0, single = 0, bad;
    if (fread(numbers, sizeof(REAL), INPUTS, stdin) != INPUTS) return 2;
    for (int k = 0; k < ARRAYS; k++) {
        rows[3 * k] = (int64_t)(numbers + at); rows[3 * k + 1] = sizeof(REAL) * sizes[k]; rows[3 * k + 2] = 0;
        arrays[k] = numbers + at; at += COUNT * sizes[k];
    }
    for (int i = 0; i < COUNT; i++) {
        single |= legged_single_state(arrays);
        for (int k = 0; k < ARRAYS; k++) arrays[k] += sizes[k];
    }
    fwrite(numbers + INPUTS, sizeof(REAL), TOTAL - INPUTS, stdout);
    bad = legged_batch_loop(0, COUNT, rows, work);
    fwrite(numbers + INPUTS, sizeof(REAL), TOTAL - INPUTS, stdout);
    return single != 0 || bad >= 0 || legged_batch_work_size > WORK;
}
"""


def run_on_arm(kernel: Kernel, arguments, count, folder):
    """Return the results of the kernel for single states and for a batch, computed by an emulated ARM processor."""
    element = element_type(kernel.dtype)
    target, triple = llvm.TARGETS["neon"][0].with_element(element), "aarch64-linux-gnu"
    objects = []
    with llvm.target_context(target):
        graph = kernel.graph
        modules = selection.single_state_module(graph), selection.batch_module(graph), selection.batch_loop_module()
        for number, ir in enumerate(modules):
            objects.append(folder / f"{number}.o")
            objects[-1].write_bytes(llvm.foreign_machine_code(ir, target, triple))
        work = selection.batch_work_size(kernel.graph)
    sizes = [int(np.prod(shape)) for shape in (*kernel.shapes, *kernel.graph.outputs)]
    inputs = count * kernel.graph.input_size
    numbers = {"SIZES": ", ".join(map(str, sizes)), "TOTAL": count * sum(sizes), "WORK": work + 8, "REAL": element.llvm}
    numbers |= {"ARRAYS": len(sizes), "INPUTS": inputs, "COUNT": count}
    source, binary, main = folder / "main.c", folder / "main", MAIN
    for name, value in numbers.items():
        main = main.replace(name, str(value))
    source.write_text(main)
    # of the functions in both objects, the calls of Python take the first; the others have the same code
    link = ["-static", "-Wl,--allow-multiple-definition", "-o", str(binary)]
    library = [name + element.library_suffix for name in LIBRARY_FUNCTIONS.values()]
    link += [f"-Wl,-u,{name},--defsym={library_symbol(name)}={name}" for name in library]
    subprocess.run(["aarch64-linux-gnu-gcc", *link, str(source), *map(str, objects), "-lm"], check=True)
    given = np.concatenate([np.ravel(a) for a in arguments]).astype(kernel.dtype).tobytes()
    done = subprocess.run(["qemu-aarch64", str(binary)], input=given, capture_output=True, check=True)
    return np.frombuffer(done.stdout, kernel.dtype).reshape(2, -1)


@pytest.mark.skipif(
    not (shutil.which("qemu-aarch64") and shutil.which("aarch64-linux-gnu-gcc")),
    reason="needs an emulator and a linker of ARM programs (Debian: qemu-user, gcc-aarch64-linux-gnu)",
)
@pytest.mark.parametrize(("dtype", "dynamics", "accuracy"), [("float64", 1e-9, 4e-15), ("float32", 1e-4, 1e-6)])
@pytest.mark.parametrize("seed", [1, 4, 7])
def test_neon_kernels_agree_on_an_emulated_processor(tmp_path, seed, dtype, dynamics, accuracy):
    robot = legged.random_tree(seed=seed, links=6)
    kernel, arguments = legged.compile(legged.forward_dynamics, robot, dtype=dtype), states(robot, 7)
    native = kernel(*arguments).ravel()
    for actual in run_on_arm(kernel, arguments, 7, tmp_path):
        np.testing.assert_allclose(actual, native, rtol=0, atol=dynamics * abs(native).max())
    x = np.random.default_rng(1).normal(size=(9, 3))
    kernel = legged.compile(functions, x=3, dtype=dtype)
    for actual in run_on_arm(kernel, [x], 9, tmp_path):
        np.testing.assert_allclose(actual, kernel(x).ravel(), rtol=accuracy, atol=0.25 * accuracy)


@pytest.mark.skipif(llvm.processor_family() != "x86", reason="counts registers of x86-64 processors")
def test_number_of_vector_registers():
    for name, count in {"sse2": 16, "avx2": 16, "avx512": 32, "neon": 32}.items():
        for element in ELEMENT_TYPES.values():
            assert llvm.TARGETS[name][0].with_element(element).vector_registers == count


def test_modules_without_variables_call_functions_outside_of_them():
    """The linker needs memory for the addresses of such functions; without it LLVM aborts the process."""
    names = [name for name in LIBRARY_FUNCTIONS.values() if name not in ("atan2", "pow")]
    declarations = [f"declare double @{library_symbol(name)}(double)" for name in names]
    calls = [f"  %{name} = call double @{library_symbol(name)}(double %number)" for name in names]
    body = ["  %number = load double, ptr %x", *calls, "  store double %cos, ptr %x", "  ret i64 0"]
    ir = "\n".join([*declarations, "define i64 @replace_by_cosine(ptr %x) {", *body, "}"])
    code, x = llvm.LoadedCode(llvm.machine_code(ir)), np.array([0.75])
    code.function("replace_by_cosine", ctypes.c_void_p)(x.ctypes.data)
    assert x[0] == np.cos(0.75)
