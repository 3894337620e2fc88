"""What scenes need before their first step: the operations of their code, and which parts of it are compiled when.

The compilation takes 0.1 to 0.2 ms for each operation.

`python -m benchmarks.contact --starts` measures times and memory of the same scenes.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import legged
from benchmarks.contact.growth import SCENES
from legged.compiler import BatchKernel, CompilationReport
from legged.compiler.cache import machine_code
from legged.contact import Box, FreeBody, Rigid, Scene, Sphere
from legged.contact.pair_tables import PairTable
from legged.simulation.equal_robots import EqualRobots
from legged.simulation.many_contacts import MANY_CONTACTS
from legged.simulation.stepping.batch import MemberTemplate

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


def solid_box():
    """Return the inertia and the shapes of a box."""
    return legged.box_inertia(1.0, (0.2, 0.2, 0.2)), [Box((0.2, 0.2, 0.2))]


def two_boxes():
    """Return a group of two boxes with lids of different sizes, which overlap at neutral, and q with them apart."""
    ones = {}
    for name, size in (("low", 0.2), ("high", 0.3)):
        box = legged.box_inertia(1.0, (size, size, size)), [Box((size, size, size))]
        trunk, lid = (legged.Link(link, box[0], shapes=box[1]) for link in ("trunk", "lid"))
        builder = legged.RobotBuilder("box", trunk)
        ones[name] = builder.add(legged.Revolute("hinge", "y"), lid, to="trunk", at=(0.0, 0.0, size)).build()
    group = legged.combine(ones)
    apart = {
        name: one.neutral() + size * np.eye(8)[6] for (name, one), size in zip(ones.items(), (9.0, 1.0), strict=True)
    }
    return group, group.join_states(apart)[0]


STEPS = legged.TimeStepping(1e-3)


def test_parts_of_a_scene_are_compiled_while_the_next_ones_are_traced(tmp_path, monkeypatch):
    """All kernels of robots are begun ahead of their use, those of a step before one of them is used."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    monkeypatch.setattr(machine_code, "_has_free_processor", lambda: True)
    machine_code.unload()
    kernels, calls = [], []
    made, load = BatchKernel.__init__, machine_code.load

    def named(self, function, *arguments, **options):
        made(self, function, *arguments, **options)
        kernels.append((self.graph, function.__name__))

    def loaded(graph, *arguments):
        name = next((name for own, name in kernels if own is graph), "")
        calls.append((name, machine_code._key(graph, *arguments[:2]) in machine_code._ahead, len(kernels)))
        return load(graph, *arguments)

    monkeypatch.setattr(BatchKernel, "__init__", named)
    monkeypatch.setattr(machine_code, "load", loaded)
    group, q = two_boxes()
    run = legged.simulate(group, ground=Rigid(0.5), q=q, until=2e-3, integrator=STEPS)
    assert "parts" in run.backend and not machine_code._ahead
    names = ["_end", "_energies", "_poses", "_start"]
    assert sorted((name, ahead) for name, ahead, _ in calls if name in names) == [
        (name, True) for name in names for _ in "ab"
    ]
    traced = next(count for name, _, count in calls if name == "_start")
    before = [name for _, name in kernels[:traced]]
    assert [before.count(name) for name in names] == [2, 2, 2, 2]


def test_detection_of_contacts_at_the_start_is_compiled_while_the_robots_are_traced(tmp_path, monkeypatch):
    """Of two boxes on the terrain that are near each other, and not of pairs that are apart."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    monkeypatch.setattr(machine_code, "_has_free_processor", lambda: True)
    machine_code.unload()
    begun, before, begin, start = [], [], PairTable.compile_ahead, EqualRobots.record
    monkeypatch.setattr(PairTable, "compile_ahead", lambda self: (begin(self), begun.append(self))[0])
    monkeypatch.setattr(EqualRobots, "record", lambda *x: (before.append(len(begun)), start(*x))[1])
    load, ahead = machine_code.load, {}

    def loaded(graph, *arguments):
        ahead[id(graph)] = machine_code._key(graph, *arguments[:2]) in machine_code._ahead
        return load(graph, *arguments)

    monkeypatch.setattr(machine_code, "load", loaded)
    low, high, far = (FreeBody(name, *solid_box(), (x, 0.0, 0.1)) for name, x in (("a", 0.0), ("b", 0.3), ("c", 9.0)))
    pairs = ("a", "b"), ("a", "terrain"), ("b", "terrain"), ("c", "ball")
    ball = FreeBody("ball", solid_box()[0], [Sphere(0.1)], (5.0, 0.0, 0.1))
    run = legged.simulate(
        low.robot(), ground=Rigid(0.5, pairs=pairs), bodies=[high, far, ball], q=low.state()[0], until=2e-3
    )
    assert "parts" in run.backend and set(before) == {2} and len({id(table) for table in begun}) == 2
    assert all(ahead[id(table._kernel.graph)] for table in begun)


def test_parts_compute_energies_of_rollouts_and_no_contacts_of_robots_that_are_apart(monkeypatch):
    """The robots start apart, and overlap in the neutral configuration."""
    recorded, kernels, record, kernel = [], [], PairTable.record, MemberTemplate.kernel
    monkeypatch.setattr(PairTable, "record", lambda self, *rest: (recorded.append(self), record(self, *rest))[1])
    monkeypatch.setattr(
        MemberTemplate, "kernel", lambda self, *rest, **x: (kernels.append(rest), kernel(self, *rest, **x))[1]
    )
    group, q = two_boxes()
    runs = legged.rollout(group, ground=Rigid(0.5), q=q, until=0.01, integrator=STEPS)
    assert "parts" in runs.backend and not recorded and not kernels
    simulation = legged.Simulation(group, ground=Rigid(0.5), q=q, v=np.ones(group.nv), integrator=STEPS)
    simulation.step()
    stepper, states = simulation._robots, simulation._robots.members.state
    whole = stepper.template.energies(stepper.starts.numbers[:, stepper.template.varying], states)
    assert kernels and stepper.energies(states) == pytest.approx(whole, rel=1e-12)
