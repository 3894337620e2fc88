"""Export to C99: the code, compiled by the system's C compiler if there is one, computes the same as the kernel."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import legged
import robots
from legged.compiler import Kernel, LookupTable, compile
from legged.compiler.codegen import c99
from legged.compiler.codegen.element_type import ElementType
from legged.compiler.ir import where

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
FLAGS = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler found")


def run(kernel: Kernel, folder: Path, *arrays: np.ndarray, precision: str = "double") -> tuple[int, list[np.ndarray]]:
    """Return the return value of the kernel's C function, and the results."""
    source, header = kernel.to_c(folder / "code", precision, name="function")
    assert (source, header) == (folder / "code.c", folder / "code.h")
    library = folder / f"{len(list(folder.iterdir()))}.so"  # a new name, because a loaded library is not loaded again
    subprocess.run([str(COMPILER), *FLAGS, "-o", str(library), str(source), "-lm"], check=True, timeout=120)
    kind = np.dtype(precision if precision == "double" else "float32")
    given = [np.ascontiguousarray(a, dtype=kind) for a in arrays]
    results = [np.full(shape, np.nan, dtype=kind) for shape in kernel.graph.outputs]
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*given, *results)]
    return ctypes.CDLL(str(library)).function(*pointers), results


@needs_compiler
@pytest.mark.parametrize(("precision", "tolerance"), [("double", 1e-12), ("float", 1e-3)])
def test_dynamics_in_c_equal_the_kernels(tmp_path, precision, tolerance):
    rng = np.random.default_rng(4)
    robot = legged.random_tree(seed=3, links=7)
    state = robot.neutral(), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    for function in (legged.inverse_dynamics, legged.forward_dynamics):
        kernel = legged.compile(function, robot)
        answer, (got,) = run(kernel, tmp_path, *state, precision=precision)
        wanted = kernel(*state)
        # rounding errors of a few hundred operations, amplified by the condition of the inertia matrix
        assert answer == 0 and np.max(np.abs(got - wanted)) < tolerance * np.max(np.abs(wanted))


MAIN = """
#include <stdio.h>
#include "code.h"
static REAL numbers[TOTAL];
int main(void) {
    if (fread(numbers, sizeof(REAL), INPUTS, stdin) != INPUTS) return 2;
    int answer = (int)function(POINTERS);
    fwrite(numbers + INPUTS, sizeof(REAL), TOTAL - INPUTS, stdout);
    return answer;
}
"""
PROCESSORS = {
    "x86": ({"gcc": ("gcc",), "clang": ("clang",)}, ()),
    "arm": (
        {"gcc": ("aarch64-linux-gnu-gcc",), "clang": ("clang", "--target=aarch64-linux-gnu")},
        ("qemu-aarch64",),
    ),
}
"""Commands of the compilers, and the emulator."""


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_programs_of_both_compilers_at_level_2_equal_the_kernels(tmp_path, processor, compiler, precision):
    """Each is a program of its own, so that an emulator can run it."""
    commands, emulator = PROCESSORS[processor]
    needed = [commands[compiler][0], *emulator, *(["aarch64-linux-gnu-gcc"] if processor == "arm" else [])]
    if missing := [name for name in needed if not shutil.which(name)]:
        pytest.skip(f"needs {', '.join(missing)}")
    if processor == "x86" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("needs an x86-64 processor")
    rng, kind = np.random.default_rng(7), np.dtype(precision if precision == "double" else "float32")
    for seed in (2, 5):
        robot = legged.random_tree(seed=seed, links=6)
        state = legged.random_configuration(robot, rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        kernel = legged.compile(legged.forward_dynamics, robot)
        source, _ = kernel.to_c(tmp_path / "code", precision, name="function")
        sizes = np.cumsum([0, *(a.size for a in state), robot.nv])
        numbers = {"TOTAL": sizes[-1], "INPUTS": sizes[-2], "REAL": precision}
        main = MAIN.replace("POINTERS", ", ".join(f"numbers + {at}" for at in sizes[:-1]))
        for name, value in numbers.items():
            main = main.replace(name, str(value))
        (tmp_path / "main.c").write_text(main)
        options = ["-std=c99", "-O2", "-static", "-o", str(tmp_path / "main")]
        command = [*commands[compiler], *options, str(tmp_path / "main.c"), str(source), "-lm"]
        subprocess.run(command, check=True, timeout=120)
        given = np.concatenate(state).astype(kind).tobytes()
        done = subprocess.run([*emulator, str(tmp_path / "main")], input=given, capture_output=True, check=True)
        wanted = kernel(*state)
        tolerance = (1e-11 if precision == "double" else 1e-3) * abs(wanted).max()
        np.testing.assert_allclose(np.frombuffer(done.stdout, kind), wanted, rtol=0.0, atol=tolerance)


def everything(x, y, int, sin):
    """Every operation, with arguments whose names are keywords or functions in C."""
    a, b = x
    return (
        np.array([a + b, a - b, a * b, a / b, -a, abs(a), np.sqrt(b), np.floor(a), a**2.5, 1e-30 - b]),
        np.stack([np.sin(a), np.cos(a), np.tan(a), np.arcsin(a), np.arccos(a), np.arctan(a), np.arctan2(a, -b)]),
        {"more": (np.exp(a), np.log(b), np.sinh(a), np.cosh(a), np.tanh(a), np.zeros((0, 2)), 3.0)},
        where((a < b) & ~(a <= 0.2) | (a == b), np.maximum(a, y), np.minimum(a, y)),
        where(a != b, int[0, 1], sin),
    )


@needs_compiler
def test_every_operation_is_exported(tmp_path):
    kernel = compile(everything, x=2, y=2, int=(2, 2), sin=())
    for a, b in ((0.3, 0.7), (0.9, 0.1), (0.5, 0.5)):
        arrays = np.array([a, b]), np.array([0.4, 0.6]), np.eye(2) + 1.0, np.float64(2.0)
        answer, got = run(kernel, tmp_path, *arrays)
        numbers = np.concatenate([np.ravel(x) for x in got])
        flat = kernel.graph.evaluate(*arrays)
        wanted = np.concatenate(
            [np.ravel(x) for x in (*flat[:2], *flat[2]["more"], *flat[3:])]  # in the order of the outputs
        )
        assert answer == 0 and numbers == pytest.approx(wanted, rel=1e-14)


@needs_compiler
@pytest.mark.parametrize("precision", ["double", "float"])
def test_tables_are_exported_as_constant_arrays(tmp_path, precision):
    """Indices below, in and beyond two tables; an argument has the name that a table would have."""
    first, second = LookupTable([3.0, -1.0, 4.5, 0.25]), LookupTable(np.arange(19.0) ** 2)

    def law(x, function_table0):
        return np.stack([first(x), second(3.0 * x) * x, first(second(function_table0))])

    kernel = compile(law, x=(), function_table0=())
    for x in (-(2.0**30), -0.5, 0.0, 0.75, 2.5, 5.5, 2.0**30):
        answer, (got,) = run(kernel, tmp_path, np.float64(x), np.float64(1.5), precision=precision)
        assert answer == 0 and got.tolist() == law(np.float64(x), 1.5).tolist()
    assert run(kernel, tmp_path, np.float64(np.nan), np.float64(0.0), precision=precision)[0] == 1


def test_a_float_cannot_index_a_long_table(tmp_path, monkeypatch):
    lengths = property(lambda element: 4 if element.name == "float32" else 5)
    monkeypatch.setattr(ElementType, "most_indices", lengths)
    kernel = compile(LookupTable(np.zeros(5)), x=())
    kernel.to_c(tmp_path / "code", "double")
    with pytest.raises(c99.PrecisionError, match="double"):
        kernel.to_c(tmp_path / "code", "float")


@needs_compiler
def test_results_that_are_not_finite_are_reported(tmp_path):
    kernel = compile(lambda x: 1.0 / x, x=2)
    assert run(kernel, tmp_path, np.array([1.0, 2.0]))[0] == 0
    assert run(kernel, tmp_path, np.array([1.0, 0.0]))[0] == 1


@needs_compiler
@pytest.mark.parametrize("precision", ["double", "float"])
def test_quaternions_of_another_norm_are_reported(tmp_path, precision):
    robot = robots.spatial_quadruped()
    kernel = legged.compile(legged.potential_energy, robot)
    q = legged.random_configuration(robot, np.random.default_rng(8))
    for factor in (1.0, 1.1, 0.0, 2.0, np.nan):
        answer, _ = run(kernel, tmp_path, np.concatenate([factor * q[:4], q[4:]]), precision=precision)
        assert answer == (factor != 1.0)
    assert "or a quaternion does not have norm 1." in (tmp_path / "code.h").read_text()


def test_the_header_describes_the_arguments(tmp_path):
    robot = legged.random_tree(seed=3, links=7)
    kernel = legged.compile(legged.forward_dynamics, robot)
    header = kernel.to_c(tmp_path / "forward.c").header.read_text()
    assert f"int forward_dynamics(const double q[{robot.nq}], const double v[{robot.nv}]," in header
    assert "FORWARD_H" in header
    for name, words in (("q", "configuration"), ("v", "velocity"), ("tau", "generalized forces"), ("result", "accel")):
        assert re.search(rf"   {name}: \(\d+,\),( output,)? {words}", header)
    joint = robot.joints[-1]
    last = f"[{joint.q.stop - 1}] joint {joint.name}" if joint.nv == 1 else f"joint {joint.name}, coordinate"
    assert last in header and re.search(r"rad/s\^2|m/s\^2", header) and re.search(r", (N m|N)\n", header)
    assert "const float q[" in kernel.to_c(tmp_path / "single", "float").header.read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["forward.c", "forward.h", "single.c", "single.h"]


def test_names_of_arguments_are_distinct_identifiers(tmp_path):
    """Argument names follow the function's parameters; keyword arguments may be any words."""

    def total(**arrays):
        return sum(arrays.values())

    kernel = compile(total, **{"a b": (), "a_b": (), "a_b_": (), "total": ()})
    header = kernel.to_c(tmp_path / "code").header.read_text()
    signature = header[header.index("int total(") :].split(";")[0]
    assert re.findall(r"(\w+)\[", signature) == ["a_b", "a_b_", "a_b__", "total_", "result"]


def test_another_precision_is_refused(tmp_path):
    kernel = compile(lambda x: x + 1.0, x=2)
    with pytest.raises(ValueError, match="precision must be 'double' or 'float', got 'half'"):
        kernel.to_c(tmp_path / "code", "half")
    assert not list(tmp_path.iterdir())
