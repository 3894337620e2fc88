"""Computed parts of `docs/explanation/architecture.md` and `one_step.md`: files and functions that calls enter."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.pages.parts import Part, table
from benchmarks.studies import entered_files


def walks() -> str:
    """Return the table of the walks that the documentation follows."""
    rows = [
        (name, f"`{package}`", str(len(walk.files)), str(walk.returns), str(len(walk.functions)))
        for name, package, walk in entered_files.walks()
    ]
    return table(("walk", "package", "files", "returns", "functions"), rows)


REASONS = {
    "legged/simulation": "entry point, backend, interface of controllers, integrators",
    "legged/simulation/stepping": "batch of one robot, its stepper and engine",
    "legged/simulation/loop": "closed loop: outputs and time step, traced and with numbers",
    "legged/simulation/checks": "controller, start, divergence, falls, warnings about the motion",
    "legged/simulation/results": "the run",
    "controllers": "start of the law: gait at the first time, gains; torques",
    "legged/dynamics": "accelerations, energies and poses, traced; Jacobian and inertia matrix for the stable step",
    "legged/robot": "bodies and joints, configurations, check of small inertias",
    "legged/ground": "contact forces; stiffness near rest for the stable step",
    "legged/compiler/ir": "recording of operations with constant folding",
    "legged/compiler": "passes, machine code from the cache, its calls",
    "legged": "checks of arguments, numbers of other types, vectors and matrices",
}
"""Folder -> what a warm `simulate` does there. A file counts for the innermost of these folders that contains it."""


def _warm_simulate() -> Callable[[], object]:
    """Return a `simulate` of two steps whose code is compiled."""
    call = entered_files.calls()["simulate, two steps"]
    call()
    return call


def folders() -> str:
    """Return the table of the folders that a warm `simulate` of two steps enters."""
    walk, rows = entered_files.entered(_warm_simulate()), []
    folder = {file: max((name for name in REASONS if file.startswith(f"{name}/")), key=len) for file in walk.files}
    for name, reason in REASONS.items():
        functions = sum(folder[file] == name for file, _ in walk.functions)
        rows.append((f"`{name}`", str(list(folder.values()).count(name)), str(functions), reason))
    rows.append(("total", str(len(walk.files)), str(len(walk.functions)), ""))
    return table(("folder", "files", "functions", "for"), rows)


STAGES = {
    "start": "arguments, parameters, initial state, start of the controller, checks of step, range and overlap",
    "comparison": "outputs at four states and time steps from three, in Python and in machine code",
    "trace": "outputs and time step recorded, simplified, and looked up in the cache",
    "time steps": "samples, calls of machine code, divergence and falls",
    "record": "outputs at the samples, the run, warnings about the motion",
}
"""Stage of a warm `simulate` -> what it does."""


def stages() -> str:
    """Return the table of the stages of a warm `simulate` of two steps."""
    walks, rows = entered_files.entered_by_stage(_warm_simulate()), []
    for name, task in STAGES.items():
        others = {file for other, walk in walks.items() if other != name for file in walk.files}
        own = len(set(walks[name].files) - others)
        rows.append((name, str(len(walks[name].files)), str(own), str(len(walks[name].functions)), task))
    return table(("stage", "files", "of these in no other stage", "functions", "task"), rows)


PARTS = {
    "stages": Part("explanation/one_step.md", stages, relative=0.1, absolute=3.0),
    "walks": Part("explanation/architecture.md", walks, relative=0.1, absolute=3.0),
    "folders": Part("explanation/one_step.md", folders, relative=0.1, absolute=3.0),
}
