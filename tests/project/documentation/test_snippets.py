"""Every snippet of the README, of the documentation and of docstrings runs and prints what is stated beside it."""

from __future__ import annotations

import ast
import importlib
import keyword
import re
import textwrap
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from project.documentation.snippets import BLOCK, PAGES, ROOT, blocks, run_page

import controllers
import legged
import robots

QUICK = "test_a_block_that_no_test_can_execute_is_an_error"

PROGRAMS = {str(page.relative_to(ROOT)): list(blocks(page.read_text(encoding="utf-8"))) for page in PAGES}


@pytest.mark.parametrize("name", [name for name, blocks in PROGRAMS.items() if any(not block.slow for block in blocks)])
def test_snippets_of_a_page(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if name == "docs/howto/learning.md":
        report = importlib.import_module("legged.learning.report")
        for test in ("tracking", "survival"):  # of few robots
            monkeypatch.setattr(report, test, partial(getattr(report, test), robots=2))
    with np.printoptions():
        run_page(ROOT / name, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, blocks in PROGRAMS.items() if any(block.slow for block in blocks)])
def test_all_snippets_of_a_page(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with np.printoptions():
        run_page(ROOT / name, slow=True)


WRONG = {
    "print(1)  # 2": "prints\n1",
    "print(1)": "prints\n1",
    "raise KeyError('here')": "here",
}


@pytest.mark.parametrize("code, words", WRONG.items())
def test_a_snippet_that_prints_something_else_is_an_error(code, words, monkeypatch, tmp_path):
    monkeypatch.setattr("project.documentation.snippets.ROOT", tmp_path)
    (tmp_path / "page.md").write_text(f"# Title\n\n```python\n{code}\n```\n")
    with pytest.raises((AssertionError, KeyError), match=words):
        run_page(tmp_path / "page.md", slow=False)


def test_a_block_that_no_test_can_execute_is_an_error():
    for language in ("", "py", "pycon", "bash", "console"):
        with pytest.raises(AssertionError, match="is not executed"):
            list(blocks(f"```{language}\nimport legged\n```\n"))
    for page in PAGES:  # nor is an indented one
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        matches = re.findall(r"\n\n((?:    .*\n)+)", text)
        assert [code for code in matches if is_program(textwrap.dedent(code))] == [], page


def is_program(text: str) -> bool:
    """Tell whether a text is Python that calls something, and no equation, such as a = K (v - w)."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    calls = any(isinstance(node, ast.Call | ast.ImportFrom | ast.With) for node in ast.walk(tree))
    before = re.findall(r"(\w+|\)) +\(", re.sub("#.*", "", text))  # what stands before a parenthesis, with a space
    return calls and all(keyword.iskeyword(word) for word in before)


def indented(docstring: str) -> Iterator[str]:
    """Yield the indented blocks of a docstring that follow an empty line."""
    for block in re.findall(r"(?:\n\n|^)((?:    +\S.*\n?(?:\n(?=    ))?)+)", docstring):
        yield textwrap.dedent(block)


def examples() -> dict[str, list[str]]:
    """Return the programs in the docstrings of each module: name of the module -> programs."""
    blocks_by_page: dict[str, list[str]] = {}
    for package in ("legged", "controllers", "robots"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    text = ast.get_docstring(node) or ""
                    programs = [block for block in indented(text) if is_program(block)]
                    blocks_by_page.setdefault(name, []).extend(programs)
    return {name: programs for name, programs in blocks_by_page.items() if programs}


SETTINGS = {
    "legged.ground.height_map": """
from PIL import Image
Image.fromarray(np.zeros((3, 3), np.uint8)).save("map.png")
""",
    "controllers.locomotion.falls.recovery": """
law = controllers.Locomotion("trot")
""",
    "legged.optimization.iterative_lqr": """
robot = robots.planar_hopper()
stage = [Cost(lambda robot, at: at.u, 0.1)]
final = [Cost(lambda robot, at: at.v, 0.1)]
commands, q, v = np.zeros((3, robot.nj)), robot.neutral(), np.zeros(robot.nv)
q[2] = 1.0
""",
    "legged.simulation.results.run": """
robot = robots.planar_biped()
run = legged.simulate(robot, until=0.01, q=robot.neutral(), integrator=legged.RungeKutta4(step=1e-3))
from legged.simulation import plots
""",
    "legged.simulation.plots.journal": """
robot = robots.planar_biped()
run = legged.simulate(robot, until=0.01, q=robot.neutral(), integrator=legged.RungeKutta4(step=1e-3))
from legged.simulation import plots
""",
    "legged.optimization.sampling": """
robot = robots.planar_hopper()
q, v, terms = robot.neutral(), np.zeros(robot.nv), [Cost(lambda robot, at: at.v, 0.1)]
""",
    "legged.robot.robot": "from legged import *",
    "legged.robot.construction.partition": "from legged import *",
    "legged.algorithms.inverse_kinematics": """
start = q
starts = np.tile(q, (3, 1))
points = legged.frame_pose(robot, q, "leg1_foot").position + 0.01 * np.arange(3)[:, None]
R, p = np.eye(3), q[4:7]
solver = legged.InverseKinematics(robot, {"leg1_foot": "position"}, hold=["base"])
""",
    "legged.algorithms.reduced_model": "q, v, vdot = (np.tile(x, (3, 1)) for x in (q, v, vdot))",
    "legged.algorithms.operational.contact": """
points, directions = np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]])
Phi, Nd_v = np.eye(6), np.zeros(1)
finger = tool = BodyResponse(Phi, np.zeros(6))
""",
    "legged.algorithms.operational.contact_space": """
robot = editor.add(legged.Fixed("mount"), legged.Link("tool", legged.point_mass(1.0)), to="trunk").build()
tip, normal = np.zeros(3), np.array([0.0, 0.0, 1.0])
motion_forces, contact_forces = 0.0 * v, np.zeros(1)
""",
    "legged.algorithms.velocity_gains": """
robot = robots.planar_biped()
q = robot.neutral()
""",
    "legged.differentiation.simulation": """
robot = robots.planar_hopper()
q, v, torques = robot.neutral(), np.zeros(robot.nv), np.zeros((3, robot.nj))
""",
    "controllers.policy": "network = lambda observation: 0.01 * observation[:12]",
    "legged.sweeps.sweep": """
import tempfile

setup, samples, folder = (lambda x: x), {"x": [1.0, 2.0]}, tempfile.mkdtemp()
""",
    "legged.sweeps.optimize": """
import tempfile

sweeps, setup, folder = legged.sweeps, (lambda x: (x - 0.3) ** 2), tempfile.mkdtemp()
""",
    "legged.sweeps.setup": """
from legged.sweeps import Setup

ground, push = legged.ground.paper_ground(robot), legged.Push("trunk", (0.0, 0.0, 0.0), at=0.1)
""",
    "legged.environments.task": "task = legged.environments.velocity(robot)",
    "legged.compiler.ir.annotations": "modules, bodies = [0], [0]",
    "legged.compiler.ir.loops_and_tables": "x = 1.0",
    "legged.simulation.rollouts.rollout": "impulses, strides = np.zeros((2, 3)), np.array([0.1, 0.2])",
    "legged.simulation.stepping.simulation": """
torques = np.zeros(robot.nj)
def height_of(q):
    return q[6]
""",
    "legged.taylor": "from legged import taylor",
    "controllers.commands": "robot = robots.planar_hopper()",
    "controllers.wrappers.switched_law": "stand, trot, brake = law, law, law",
}
"""Module -> program that defines what its examples use, beside the names of `namespace`."""


def namespace(module: str) -> dict[str, object]:
    """Return the names that examples in docstrings may use: packages, a robot in a state, a gait, law and ground."""
    robot = robots.spatial_quadruped()
    gait = controllers.Trot()
    q, v = gait.initial_state(robot)
    return {
        **vars(importlib.import_module(module)),
        **{"legged": legged, "controllers": controllers, "robots": robots, "np": np, "robot": robot, "q": q, "v": v},
        **{"tau": 0.0 * v, "vdot": 0.0 * v, "gait": gait, "law": controllers.ComputedTorque(gait)},
        "ground": legged.ground.paper_ground(robot),
        "editor": robot.edit(),
    }


@pytest.mark.parametrize("module, programs", examples().items())
def test_examples_in_docstrings(module, programs, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = namespace(module)
    exec(SETTINGS.get(module, ""), names)
    for program in programs:
        exec(compile(program, module, "exec"), names)


MOST_LINES = 30
TASKS = {
    "record a driven robot": "viewer#Drive a robot",
    "share a replay as one file": "viewer#A page: one file to share",
    "walk at a commanded velocity": "walk#Command velocity, turning and a stop",
    "steer a walking robot": "walk#Steer while it walks",
    "walk through waypoints": "walk#Walk through waypoints",
    "stand up after a fall": "walk#Stand up after a fall, lie and sit down",
    "try pushes and payloads": "walk#Try many pushes and payloads at once",
    "delay, lag and low control rates": "walk#Delay, lag and low control rates",
    "slopes and stairs": "terrain#Slopes and stairs",
    "terrain from an image": "terrain#Terrain from a height map",
    "an own terrain": "terrain#Write a terrain",
    "compare two laws with one command": "command_line#Use the command line",
    "LaTeX and CSV of a table": "paper#Tables as LaTeX and CSV",
    "figures for a journal": "paper#Figures in the width of a column",
    "growth of counts": "paper#Counts over links, legs and joints",
    "a report of an own robot": "paper#A report of your own robot",
    "an own motor with states": "own_parts#A motor with voltage and current",
    "an own sensor": "own_parts#A sensor",
    "an own gait": "own_parts#A gait",
    "own waves as terrain": "own_parts#A terrain",
    "own parts in C": "own_parts#The same in C",
    "an own controller": "own_controller#Write a controller",
    "vary the numbers of a law": "own_controller#Vary the numbers of a controller",
    "a law outside of the simulator": "own_controller#Outside of the simulator",
    "motors whose voltage varies": "own_controller#Motors of your own",
    "state which links are feet": "own_robot#State which links are feet",
    "choose the feet of a file": "own_robot#Choose the feet of a robot file",
    "a table of many runs": "results#Batches",
    "motions of a log": "results#Motions of a log",
    "animations and data": "results#Data, figures and animations",
    "several robots in one scene": "several_robots#Controllers",
    "cost of transport": "periodic_gaits#Cost of transport",
    "multipliers of a gait": "periodic_gaits#Multipliers of a limit cycle",
    "change a gain while robots go on": "batches#Change a gain while robots go on",
    "many pushes at once": "batches#Roll out many pushes at once",
    "a payload": "payload#Edit a robot and add a payload",
    "pushes with a given impulse": "pushes#Push with a given impulse",
    "messages of ROS": "from_pinocchio#Messages of ROS",
    "readings of sensors": "foot_forces#Readings of all sensors",
}
"""Task of a new user -> page of docs/howto, and heading of the section whose program solves it."""


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_an_executed_program_of_at_most_30_lines(task):
    page, _, heading = TASKS[task].partition("#")
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    parts = re.split(r"(?:\A#|^##) (.*)\n", text, flags=re.MULTILINE)
    section = dict(zip(parts[1::2], parts[2::2], strict=True))[heading]
    lengths = [len(block.code.splitlines()) for block in blocks(section)]
    assert lengths and min(lengths) <= MOST_LINES


def test_thirty_tasks_are_solved():
    assert len(TASKS) >= 30
