"""The page that follows one step names code that exists, and the files and calls of a warm step and `simulate`."""

import re
import sys
from importlib import import_module

import numpy as np
import pytest
from project.documentation.snippets import ROOT

import legged
import robots
from benchmarks.studies.entered_files import calls, entered
from legged.ground import realistic_ground

PAGE = (ROOT / "docs" / "explanation" / "one_step.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(legged(?:\.\w+)+)`", PAGE)))


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_page_exist(name):
    parts, thing, at = name.split("."), legged, 1
    while at < len(parts):
        try:
            thing = import_module(".".join(parts[: at + 1]))
        except ModuleNotFoundError:
            break
        at += 1
    for part in parts[at:]:
        thing = getattr(thing, part)


@pytest.mark.parametrize("ground", ["compliant", "rigid"])
def test_a_warm_step_enters_the_files_and_functions_of_the_table(ground):
    rows = re.findall(r"^\| `(legged/\S+\.py)` \| (.*?) \|", PAGE, flags=re.MULTILINE)
    table = {path: set(re.findall(r"`([\w.]+)`", functions)) for path, functions in rows}
    robot = robots.spatial_quadruped()
    q = robot.neutral()
    q[6] = 1.0  # [m], above the ground
    surface, steps = realistic_ground(robot), legged.SemiImplicitEuler(1e-4)
    if ground == "rigid":
        surface, steps = legged.Rigid(), legged.TimeStepping(1e-3)
    sim = legged.Simulation(robot, lambda t, q, v, wrenches: -1.0 * v[6:], ground=surface, q=q, integrator=steps)
    for _ in range(2):
        sim.step()
    walk = entered(sim.step)
    assert {file: {name for path, name in walk.functions if path == file} for file in walk.files} == table
    assert np.isfinite(sim.q).all()


def test_a_warm_simulate_makes_the_calls_of_the_tree():
    """Each function of the tree is called in the order of the tree, directly or indirectly by the one above it."""
    block = re.search(r"```text\n(simulate .*?)```", PAGE, flags=re.DOTALL)[1]
    lines = [re.fullmatch(r"( *)([\w.]+)(?: \*)? +(legged/\S+)", line).groups() for line in block.splitlines()]
    named = {(path, name) for _, name, path in lines}
    callers, order = dict[tuple[str, str], set[tuple[str, str]]](), list[tuple[str, str]]()

    def of(frame):
        code = frame.f_code
        return code.co_filename.removeprefix(f"{ROOT}/"), code.co_qualname

    def observe(frame, event, argument):
        if event == "call" and of(frame) in named:
            order.append(of(frame))
            above = callers.setdefault(of(frame), set())
            while (frame := frame.f_back) is not None:
                above.add(of(frame))

    call = calls()["simulate, two steps"]
    call()
    sys.setprofile(observe)
    try:
        call()
    finally:
        sys.setprofile(None)
    path, at = [], -1
    for indent, name, file in lines:
        path[len(indent) // 4 :] = [(file, name)]
        assert set(path[:-1]) <= callers[file, name], name
        at = order.index((file, name), at + 1)
