"""The dense theory traced: compiled, the matrices are those of the same text evaluated with floats."""

import numpy as np
import pytest
from oracles.cases import random_case

import legged
import robots
from legged import denoc
from legged.errors import TraceError

FUNCTIONS = {
    "denoc_matrices": "q",
    "complement_rate": "qv",
    "generalized_inertia_matrix": "q",
    "generalized_inertia_closed_form": "q",
    "convective_inertia_matrix": "qv",
    "bias_forces": "qv",
    "inverse_dynamics": "qva",
    "forward_dynamics": "qva",
    "floating_inverse_dynamics": "qvj",
    "udu": "q",
}
ROUNDING = 1e-9  # the compiled sums are ordered otherwise; forward dynamics loses the digits of the condition number


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("base", ["floating", "euler"])
def test_compiled_matrices_are_those_of_floats(base, name):
    case = random_case(1, links=3, bases=(base,), physics=True)
    robot, function = case.robot, getattr(denoc, name)
    values = {"q": case.q, "v": case.v, "a": np.linspace(-1.0, 1.0, robot.nv), "j": np.linspace(-1.0, 1.0, robot.nj)}
    arguments = [values[letter] for letter in FUNCTIONS[name]]
    ours, wanted = legged.compile(function, robot)(*arguments), function(robot, *arguments)
    pairs = zip(ours, wanted, strict=True) if isinstance(wanted, tuple) else [(ours, wanted)]
    for one, other in pairs:
        assert one == pytest.approx(other, abs=ROUNDING * np.abs(other).max(initial=1.0))


def test_the_factors_of_the_paper_are_counted_beside_the_recursion():
    robot = robots.planar_biped()
    dense = legged.count(denoc.udu, robot)
    assert dense.multiplications > legged.count(legged.forward_dynamics, robot).multiplications


def test_the_condition_number_says_that_it_has_no_graph():
    with pytest.raises(TraceError, match="eigvalsh"):
        legged.count(denoc.conditioning, robots.planar_biped())
