"""Estimator and law as one C99 file: it walks a robot in MuJoCo, is equal to Python, and has a worst time.

    python -m benchmarks.deployment.c_step [ROBOT] [--seconds 60] [--steps 100000] [--output FOLDER]

The file is compiled by gcc and clang with warnings as errors. At 500 Hz the first library closes the loop around the
plant; every other library and the kernel of Python evaluate the same memory and readings, and the differences are
those of one step, for each result: compilers order and contract operations differently, so that results differ by
rounding errors. Those of the memory are relative to the largest magnitude in their part, such as the unknowns and
multipliers of a program, since the rounding errors of a solver are proportional to the size of the whole solution. A
chain of steps in Python has its own memory, and shows how differences accumulate. Times are those of a step called from
Python; processor time leaves out the time for which the computer runs other programs.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import controllers
from benchmarks.deployment.walk import command_at
from benchmarks.locomotion.walkers import Walker, walkers
from legged import deployment, estimation
from legged.compiler import Kernel
from legged.spatial import Array

_FLAGS = ("-O2", "-Wall", "-Werror", "-std=c99", "-shared", "-fPIC")
_PERIOD = 2e-3  # [s]
RESULTS = ("memory", "generalized forces", "estimated q", "estimated v")
EQUAL = 1e-9
"""Difference of results that count as equal, in their units, and of the memory relative to its parts."""
Step = Callable[..., list[Array]]


def c_step(kernel: Kernel, compiler: str, folder: Path) -> Step:
    """Return the function of a kernel's C file, compiled by a compiler: arrays -> results."""
    source, _ = kernel.to_c(folder / "walk", "double", "walk_step")
    library = folder / f"walk_{compiler}.so"
    subprocess.run([compiler, *_FLAGS, "-o", str(library), str(source), "-lm"], check=True)
    function, pointer = ctypes.CDLL(str(library.resolve())).walk_step, ctypes.POINTER(ctypes.c_double)

    def step(*arrays: Any) -> list[Array]:
        given = [np.ascontiguousarray(np.atleast_1d(x), dtype=float) for x in arrays]
        results = [np.zeros(shape) for shape in kernel.graph.outputs]
        if function(*(x.ctypes.data_as(pointer) for x in (*given, *results))):
            raise ArithmeticError("a result of the C function is not finite")
        return results

    return step


def memory_parts(walker: Walker, size: int) -> list[slice]:
    """Return the entries of the memory that belong together: those of the estimator, and those of each part of the law.

    Args:
        walker: The robot. size: Number of entries of the memory, of which the last one is a time.
    """
    law = controllers.Locomotion(walker.gait, command=None)
    started, memory = law.start(walker.robot, None, *law.initial_state(walker.robot))
    sizes = [size - 1 - len(memory), *(np.size(part) for part in started.memory(memory))]
    return [slice(a, b) for a, b in itertools.pairwise([0, *np.cumsum(sizes).tolist()])]


def differences(one: Any, other: Any, parts: Sequence[slice]) -> Array:
    """Return the largest difference of each result, (n,): of the first, the memory, relative to the size of its part.

    Args:
        one, other: Results of a step, mixed units. parts: Entries of the parts of the memory.
    """
    pairs = [(np.asarray(one[0])[part], np.asarray(other[0])[part]) for part in parts]
    memory = max(_largest(a - b) / max(_largest(b), 1.0) for a, b in pairs)
    return np.array([memory, *(_largest(a - b) for a, b in zip(one[1:], other[1:], strict=True))])


def _largest(x: Array) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def installed_compilers() -> list[str]:
    """Return the names of the compilers that are installed, of gcc and clang."""
    return [name for name in ("gcc", "clang") if shutil.which(name)]


def walk_in_c(walker: Walker, seconds: float, folder: Path, compilers: Sequence[str]) -> dict[str, Any]:
    """Return the differences of a walk whose loop is closed by the C file, and whether the robot stands at its end.

    Args:
        walker: The robot. seconds: Duration of the walk, [s]. folder: Folder of the C file and the libraries.
        compilers: The library of the first one closes the loop; those of the others are compared with it.
    """
    robot = walker.robot
    law = controllers.Estimated(controllers.Locomotion(walker.gait, command=None), estimation.InvariantFilter())
    q, v = law.initial_state(robot)
    kernel, memory = law.kernel(robot, q, v, command=5)
    steps = {name: c_step(kernel, name, folder) for name in compilers}
    plant = deployment.MujocoPlant(robot, q, instruments=estimation.Instruments(seed=1))
    chain, accumulated, parts = memory, 0.0, memory_parts(walker, len(memory))
    errors: dict[str, list[Array]] = {name: [] for name in ("Python", *compilers[1:])}
    count, inner = round(seconds / _PERIOD), round(_PERIOD / plant.step)
    inputs: tuple[Any, ...] = ()
    for k in range(count):
        measured, command = plant.measured(), command_at(k * _PERIOD, seconds)
        inputs = (k * _PERIOD, memory, *measured.reading, command)
        results = steps[compilers[0]](*inputs)
        for name, rows in errors.items():
            others = kernel(*inputs) if name == "Python" else steps[name](*inputs)
            rows.append(differences(results, others, parts))
        chain = kernel(k * _PERIOD, chain, *measured.reading, command)[0]
        memory = results[0]
        accumulated = max(accumulated, float(differences([memory], [chain], parts)[0]))
        for _ in range(inner):
            plant.advance(deployment.JointCommand.of_torques(results[1][robot.base.nv :]))
    height = float(plant.state[0][6])
    return {
        "steps": count,
        "differences": {name: np.array(rows) for name, rows in errors.items()},
        "accumulated": accumulated,
        "upright": height > 0.5 * float(law.initial_state(robot)[0][6]),
        "step": steps[compilers[0]],
        "inputs": inputs,
    }


def times(step: Step, inputs: tuple[Any, ...], count: int) -> dict[str, float]:
    """Return the median and the longest time of steps, [us], on the clock and of the processor."""
    wall, processor = np.zeros(count), np.zeros(count)
    for k in range(count):
        a, b = time.perf_counter_ns(), time.thread_time_ns()
        step(*inputs)
        processor[k], wall[k] = time.thread_time_ns() - b, time.perf_counter_ns() - a
    return {
        "median": float(np.median(wall)) / 1e3,
        "longest": wall.max() / 1e3,
        "median of the processor": float(np.median(processor)) / 1e3,
        "longest of the processor": processor.max() / 1e3,
    }


def main() -> None:
    """Walk, and print differences and times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deployment.c_step", description=__doc__.splitlines()[0])
    parser.add_argument("robot", nargs="?", default="Go2")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--output", type=Path, default=Path("results/deployment"), metavar="FOLDER")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    compilers = installed_compilers()
    comparison = walk_in_c(walkers([options.robot])[0], options.seconds, options.output, compilers)
    state = "upright" if comparison["upright"] else "on the ground"
    print(f"{options.robot}: {comparison['steps']} steps at 500 Hz, compiled by {compilers[0]}; {state} at the end")
    for name, rows in comparison["differences"].items():
        for result, values in zip(RESULTS, rows.T, strict=True):
            print(
                f"{result} beside {name}: difference of one step at most {values.max():.1e}, median "
                f"{np.median(values):.1e}, above {EQUAL:g} in {np.count_nonzero(values > EQUAL)} steps"
            )
    print(f"largest difference of the memory from a chain of steps in Python: {comparison['accumulated']:.1e}")
    for name, value in times(comparison["step"], comparison["inputs"], options.steps).items():
        print(f"{name} time of {options.steps} steps: {value:.0f} us")


if __name__ == "__main__":
    main()
