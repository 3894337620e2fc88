"""The code that scenes need before their first step: its compilation takes 0.1 to 0.2 ms for each operation.

`python -m benchmarks.contact --starts` measures times and memory of the same scenes.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import legged
from benchmarks.contact.growth import SCENES
from legged.compiler import CompilationReport
from legged.contact import Scene
from legged.simulation.many_contacts import MANY_CONTACTS

ROOT = Path(__file__).parents[2]
MOST_OPERATIONS = 30_000
"""Of all kernels of a start, as traced: a Go2 whose links collide has 27 000, three boxes in one kernel 34 000."""


def operations(name):
    arguments = SCENES[name]()
    with CompilationReport() as report:
        run = legged.simulate(**arguments, until=2e-3, integrator=legged.TimeStepping(1e-3), fall=False)
    feet = len(arguments["robot"].contacts)
    candidates = len(Scene.of(arguments["robot"], arguments["ground"], arguments["bodies"]).candidates)
    assert ("parts" in run.backend) == (candidates - feet > MANY_CONTACTS), (name, candidates)
    return report.passes["tracing"].operations


if __name__ == "__main__":
    print(operations(sys.argv[1]))


def in_a_new_process(name, folder):
    """Return the operations of a scene in a process that has no kernels of other scenes."""
    environment = {**os.environ, "LEGGED_CACHE": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", __file__, name]
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name", ["3 boxes", "quadruped with dry friction beside 3 boxes"])
def test_scenes_that_one_kernel_would_start_slowly_have_little_code(name, tmp_path):
    assert in_a_new_process(name, tmp_path) < MOST_OPERATIONS


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SCENES if not re.search("G1|Talos|Go2 and", name)])
def test_no_scene_has_much_code(name, tmp_path):
    """But those of humanoids and of two different robots have up to 56 000 operations."""
    assert in_a_new_process(name, tmp_path) < MOST_OPERATIONS
