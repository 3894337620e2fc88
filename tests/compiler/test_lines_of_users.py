"""Errors of tracing name the line of the user's function."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import legged
import robots
from legged.compiler import compile as compile_function
from legged.errors import SimulationWarning, TraceError


def branches(x):
    y = 2.0 * x[0]
    if y > 0.0:  # branch
        return y
    return -y


def converts(x):
    return math.sin(x[0])  # conversion


def assigns(x):
    rows = np.zeros(2)
    rows[0] = x[1]  # assignment
    return rows


def calls(x):
    return [branches(x), x[1]]


def selects(x):
    return x[x > 0.0]  # selection


@pytest.mark.parametrize(
    ("function", "mark"),
    [
        (branches, "branch"),
        (converts, "conversion"),
        (assigns, "assignment"),
        (calls, "branch"),
        (selects, "selection"),
    ],
)
def test_an_error_of_tracing_names_the_innermost_line_of_the_user(function, mark):
    lines = Path(__file__).read_text().splitlines()
    source = next(k for k, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))
    with pytest.raises(TraceError, match=rf"\(line {source} of test_lines_of_users.py, in \w+: .*# {mark}\)$"):
        compile_function(function, None, x=(3,))


def test_an_error_inside_of_the_toolkit_names_the_line_that_calls_it():
    robot = robots.planar_hopper()

    def reads(robot, q):
        return legged.frame_pose(robot, q, int(q[0])).position  # frame

    with pytest.raises(TraceError, match=r", in reads: .*# frame\)$"):
        legged.compile(reads, robot)


def test_functions_to_observe_that_are_made_anew_are_warned_about_once():
    sim = legged.Simulation(robots.planar_hopper())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(25):
            sim.observe(lambda q: 2.0 * q)
    texts = [str(warning.message) for warning in caught if warning.category is SimulationWarning]
    assert len(texts) == 1 and "of test_lines_of_users.py" in texts[0] and "make the function once" in texts[0]
    functions = [lambda q, i=i: q[i] for i in range(5)]  # a list of different functions is no loop
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in functions * 10:
            sim.observe(function)
