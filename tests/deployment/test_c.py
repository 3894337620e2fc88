"""Estimator and law as one C99 file: compiled with warnings as errors, without a heap, equal to Python."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from deployment.test_loops import FEET, SENSORS

import controllers
import legged
import robots
from benchmarks.deployment.c_step import EQUAL, RESULTS, walk_in_c
from benchmarks.locomotion.walkers import walkers
from legged import deployment, estimation

COMPILERS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
    for name in ("gcc", "clang")
]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_file_of_estimator_and_law_is_equal_to_python(compiler, tmp_path):
    robot = robots.spatial_quadruped()
    law = controllers.JointPD(controllers.suited(controllers.Stand, robot), kp=300.0, kd=10.0)
    loop = controllers.Estimated(law, estimation.InvariantFilter(feet=FEET), SENSORS)
    kernel, memory = loop.kernel(robot)
    source, header = kernel.to_c(tmp_path / "stand", "double", "stand_step")
    text = source.read_text()
    stated = " ".join(header.read_text().split())
    for words in (
        "leg1_foot",
        "[0] joint leg1_hip, coordinate 0, N m",
        "probability of contact",
        "[4..6] base: position x y z, m",
    ):
        assert words in stated, words
    assert "memory: (" in stated
    assert [line for line in text.splitlines() if "#include" in line] == ['#include "stand.h"', "#include <math.h>"]
    assert not any(word in text for word in ("alloc", "free("))
    library = tmp_path / "stand.so"
    flags = ["-O2", "-Wall", "-Werror", "-std=c99", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", library, source, "-lm"], check=True)
    step = ctypes.CDLL(str(library)).stand_step
    simulated = deployment.SimulatedRobot(robot, loop.initial_state(robot)[0], instruments=SENSORS)
    ours, theirs = memory, memory.copy()
    for k in range(25):
        simulated.sleep_until(0.002 * k)
        reading = simulated.read().reading
        ours, force, q, v = kernel(0.002 * k, ours, *reading)
        results = [np.zeros(np.shape(part)) for part in (ours, force, q, v)]
        arrays = [np.array([0.002 * k]), theirs, *(np.ascontiguousarray(part, dtype=float) for part in reading)]
        assert step(*(a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*arrays, *results))) == 0
        theirs = results[0]
        for one, other in zip((ours, force, q, v), results, strict=True):
            assert np.allclose(one, other, rtol=1e-9, atol=1e-9)
        simulated.write(deployment.JointCommand.of_torques(force[6:]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::legged.errors.FileWarning")
@pytest.mark.parametrize("compiler, seconds", [("gcc", 60.0), ("clang", 10.0)])
def test_a_walk_in_mujoco_by_the_c_file_is_equal_to_python(compiler, seconds, tmp_path):
    pytest.importorskip("mujoco")
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if not (chosen := walkers(["Go2"])):
        pytest.skip("example_robot_data, of the extra test, is not installed")
    walk = walk_in_c(chosen[0], seconds, tmp_path, [compiler])
    assert walk["upright"] and walk["steps"] == round(500.0 * seconds)
    largest = dict(zip(RESULTS, walk["differences"]["Python"].max(axis=0), strict=True))
    assert max(largest.values()) < EQUAL, largest
    assert walk["accumulated"] < EQUAL


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_the_cmake_snippet_of_the_how_to_builds_a_library(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "howto" / "deploy.md"
    (snippet,) = re.findall(r"```cmake\n(.*?)```", page.read_text(), re.DOTALL)
    legged.compile(lambda x: 2.0 * x, x=(3,)).to_c(tmp_path / "stand", "double", "stand_step")
    main = "int main(void) { double x[3] = {1, 2, 3}, y[3]; return stand_step(x, y) || y[2] != 6.0; }"
    (tmp_path / "main.c").write_text(f'#include "stand.h"\n{main}\n')
    whole = f"cmake_minimum_required(VERSION 3.10)\nproject(robot C)\n{snippet}"
    whole += "add_executable(main main.c)\ntarget_link_libraries(main stand)\n"
    (tmp_path / "CMakeLists.txt").write_text(whole)
    build = str(tmp_path / "build")
    for command in (["cmake", "-S", str(tmp_path), "-B", build], ["cmake", "--build", build], [f"{build}/main"]):
        subprocess.run(command, check=True, capture_output=True)
