"""Algorithms over numbers of any type: long doubles, numbers of mpmath, intervals, fractions and decimals."""

from decimal import Decimal, localcontext
from fractions import Fraction
from importlib import import_module
from inspect import isfunction, signature
from pkgutil import walk_packages

import numpy as np
import pytest
from mpmath import iv, mp, mpf
from oracles.looped import JOINTS, looped

import legged
import robots
from benchmarks.studies.any_element import (
    ALGORITHMS,
    CORE,
    HYBRID,
    MOVING,
    OPERATORS,
    PARALLEL,
    SAME,
    array_of,
    case_of,
    numbers_of,
)
from legged import algorithms, loops, taylor
from legged.algorithms import articulated, composite
from legged.elements import accepts_any_element
from legged.errors import ArgumentError

ROBOTS = {
    "floating": legged.random_tree(0, 3),
    "with physics": legged.random_tree(1, 3, bases=("planar",), physics=True),
    "coupled": legged.random_tree(4, 4, coupled=True),
    "chain": robots.chain(3, twist=0.7),
}
TABLES = {
    "floating": {**CORE, **ALGORITHMS, **OPERATORS, **HYBRID, **MOVING},
    "with physics": {**CORE, **ALGORITHMS},
    "coupled": CORE,
    "chain": PARALLEL,
}
CASES = [(robot, name) for robot, table in TABLES.items() for name in table]


@pytest.fixture(autouse=True)
def _precision_of_intervals():
    """Restore the precision of intervals, which is one for the whole process."""
    before = iv.dps
    yield
    iv.dps = before


def results(robot: str, name: str, kind, digits: int = 30):
    """Return the numbers of a function's result for arguments of a type."""
    with mp.workdps(digits):
        iv.dps = digits
        return numbers_of(TABLES[robot][name](case_of(ROBOTS[robot], 3, kind)))


def exact_number(x):
    """Return a number as one of mpmath, of all digits of a long double."""
    return mpf(x) if isinstance(x, (float, int, mpf)) else mpf(x.as_integer_ratio()[0]) / x.as_integer_ratio()[1]


def size_of(numbers):
    return max([mpf(1), *(abs(x) for x in numbers if isinstance(x, mpf))])


@pytest.mark.parametrize(("robot", "name"), CASES)
def test_results_have_the_type_of_the_arguments_and_errors_fall_with_its_precision(robot, name):
    """At 30 digits the error against 50 digits is below 1e-24 of the result; that of floats is not below 1e-20."""
    exact = results(robot, name, mpf, 50)
    assert {type(x) for x in exact} <= {mpf, int, str}
    with mp.workdps(50):
        size = size_of(exact)
        for kind, digits, bound in ((mpf, 30, 1e-24), (np.longdouble, 30, 1e-14), (float, 30, 1e-10)):
            actual = results(robot, name, kind, digits)
            if kind is not float:
                assert {type(x) for x in actual} <= {kind, int, str}
            pairs = [(exact_number(x), y) for x, y in zip(actual, exact, strict=True) if isinstance(y, mpf)]
            assert max((abs(x - y) for x, y in pairs), default=0) <= bound * size, kind


@pytest.mark.parametrize(("robot", "name"), CASES)
def test_intervals_contain_the_results_of_more_digits(robot, name):
    """Of robots without quaternions, whose norm is known to rounding only; an interval may be wide, never wrong."""
    if robot == "floating":
        pytest.skip("the quaternion of the base has a rounded norm")
    exact, actual = results(robot, name, mpf, 60), results(robot, name, iv.mpf, 40)
    assert {type(x) for x in actual} <= {iv.mpf, int, str}
    with mp.workdps(60):
        for x, y in zip(actual, exact, strict=True):
            if isinstance(y, mpf):
                low, high = (mp.make_mpf(end) for end in x._mpi_)
                assert low <= y + mpf(10) ** -50 and y - mpf(10) ** -50 <= high  # rounding of the 60 digits


@pytest.mark.parametrize("task", SAME)
@pytest.mark.parametrize("robot", ROBOTS)
def test_algorithms_of_one_task_agree_to_all_digits(robot, task):
    """Constants of a robot are exact in the numbers' type, so that different algorithms solve the same equations."""
    names = [name for name in SAME[task] if name in TABLES[robot]]
    entries = {
        name: results(robot, name, mpf, 40)[: ROBOTS[robot].nv ** (2 if task == "inertia matrix" else 1)]
        for name in names
    }
    if not entries:
        pytest.skip("no algorithm of this task")
    first = next(iter(entries.values()))
    for name, other in entries.items():
        assert max(abs(x - y) for x, y in zip(first, other, strict=True)) <= 1e-33 * size_of(first), name


def gantry() -> legged.Robot:
    """Slides, one of them oblique, with springs and friction: dynamics without roots and trigonometry."""
    body = legged.box_inertia(3.0, (0.3, 0.2, 0.1), (0.01, 0.03, -0.02))
    physics = legged.JointPhysics(damping=0.3, stiffness=3.3, armature=0.1, rest=0.1)
    builder = legged.RobotBuilder("gantry", legged.Link("base", body), base=legged.FixedBase())
    builder.add(legged.Prismatic("x", "x"), legged.Link("bridge", body), to="base", at=(0.1, 0.2, 0.3))
    builder.add(legged.Prismatic("y", "y", physics=physics), legged.Link("trolley", body), to="bridge")
    builder.add(legged.Prismatic("oblique", (0.6, 0.0, 0.8)), legged.Link("hoist", body), to="trolley", at=(0.1, 0, 0))
    return builder.add(legged.Prismatic("z", "z"), legged.Link("other", body), to="bridge").build()


def fraction(x: float) -> Fraction:
    return Fraction(x).limit_denominator(1000)


def test_dynamics_of_fractions_are_exact():
    robot = gantry()
    x = case_of(robot, 0, fraction)
    tau = legged.inverse_dynamics(robot, x.q, x.v, x.vdot, x.wrenches)
    assert {type(entry) for entry in tau} == {Fraction}
    for forward in (legged.forward_dynamics, articulated.forward_dynamics):
        assert list(forward(robot, x.q, x.v, tau, x.wrenches)) == list(x.vdot)
    M = legged.inertia_matrix(robot, x.q)
    assert M[0, 0] == 12 and M[1, 1] == 6 + Fraction(0.1) and M[3, 3] == 3  # of 3 kg each
    assert list(M @ x.vdot + legged.bias_forces(robot, x.q, x.v, x.wrenches)) == list(tau)
    assert np.array_equal(composite.inertia_matrix(robot, x.q), M)


def test_fractions_compute_rotations_by_zero_and_refuse_irrational_ones():
    robot = robots.chain(2)
    q = array_of(robot.neutral(), Fraction)
    v, tau = (array_of(x, fraction) for x in np.random.default_rng(0).normal(size=(2, robot.nv)))
    assert {type(entry) for entry in legged.forward_dynamics(robot, q, v, tau)} == {Fraction}
    q[7] = Fraction(1, 3)
    with pytest.raises(ArgumentError, match=r"is not rational.*mpmath"):
        legged.forward_dynamics(robot, q, v, tau)


def test_dynamics_of_decimals_have_their_digits():
    robot = gantry()
    with localcontext(prec=40):
        x = case_of(robot, 0, Decimal)
        tau = legged.inverse_dynamics(robot, x.q, x.v, x.vdot)
        assert max(abs(legged.forward_dynamics(robot, x.q, x.v, tau) - x.vdot)) < Decimal("1e-36")


def test_a_pendulum_of_thirty_digits():
    """Gravity's torque on a point mass of 2 kg at 0.5 m, by hand: 9.81 sin q."""
    builder = legged.RobotBuilder("pendulum", legged.Link("ground", legged.point_mass(1.0)), base=legged.FixedBase())
    link = legged.Link("bob", legged.point_mass(2.0, (0, 0, -0.5)))
    robot = builder.add(legged.Revolute("hinge", "y"), link, to="ground").build()
    with mp.workdps(30):
        q, zero = array_of(np.array([0.7]), mpf), array_of(np.zeros(1), mpf)
        tau = legged.inverse_dynamics(robot, q, zero, zero)
        assert abs(tau[0] - mpf(9.81) * mp.sin(q[0])) < mpf(10) ** -28


@pytest.mark.parametrize("joint", ["revolute", "ball", "rod", "constant velocity"])
def test_loops_close_to_all_digits_and_their_methods_agree(joint):
    closed, q, rng = looped(3, JOINTS[joint][0], bases=("fixed",), joints=("revolute", "prismatic"))
    with mp.workdps(30):
        q = loops.assemble(closed, array_of(q, mpf), tolerance=1e-27)
        v, tau = (array_of(x, mpf) for x in rng.normal(size=(2, closed.robot.nv)))
        v = loops.consistent_velocity(closed, q, v, tolerance=1e-26)
        solutions = [
            loops.solve(closed, q, v, tau, method=method) for method in ("elimination", "direct", "projection")
        ]
        plain = loops.solve(closed, *(x.astype(float) for x in (q, v, tau)))
        scale = size_of(solutions[0].vdot)
        assert max(abs(loops.acceleration(closed, q, v, solutions[0].vdot))) < 1e-24 * scale
        for other in solutions[1:]:
            assert max(abs(other.vdot - solutions[0].vdot)) < 1e-21 * scale  # of 30 digits, nine for conditioning
            assert max(abs(other.multipliers - solutions[0].multipliers)) < 1e-21 * size_of(solutions[0].multipliers)
        divided = loops.divide_and_conquer.forward_dynamics(closed, q, v, tau)
        assert max(abs(divided - solutions[0].vdot)) < 1e-21 * scale
        assert max(abs(plain.vdot - solutions[0].vdot)) < 1e-8 * scale
        assert plain.rank == solutions[0].rank


def test_contact_dynamics_with_redundant_contacts_have_the_multipliers_of_floats():
    robot = robots.spatial_quadruped()
    feet = [point.name for point in robot.contacts] + [robot.contacts[0].name]
    with mp.workdps(30):
        x = case_of(robot, 0, mpf)
        dynamics = legged.contact_dynamics(robot, x.q, x.v, x.tau, feet)
        plain = legged.contact_dynamics(robot, *(part.astype(float) for part in (x.q, x.v, x.tau)), feet)
        assert {type(entry) for entry in dynamics.forces.ravel()} == {mpf}
        assert dynamics.forces.astype(float) == pytest.approx(plain.forces, abs=1e-9 * np.abs(plain.forces).max())


def test_series_and_traced_scalars_are_elements():
    """Arrays of series pass every function, and `where` selects among their entries."""
    for robot, table in ((ROBOTS["floating"], {**CORE, **ALGORITHMS, **OPERATORS}), (ROBOTS["chain"], PARALLEL)):
        plain = case_of(robot, 3, float)
        floats = plain._replace(**{name: getattr(plain, name).astype(float) for name in plain._fields[1:]})
        for name, function in table.items():
            x = case_of(robot, 3, lambda value: taylor.Taylor(value, 0.0, 0.0))
            values = [taylor.lift(entry).value for entry in numbers_of(function(x)) if not isinstance(entry, str)]
            expected = [entry for entry in numbers_of(function(floats)) if not isinstance(entry, str)]
            assert np.array(values, float) == pytest.approx(np.array(expected, float), rel=1e-9, abs=1e-9), name
    series = np.array([taylor.Taylor(1.0, 2.0, 3.0), taylor.Taylor(4.0, 5.0, 6.0)])
    chosen = legged.where(np.array([True, False]), series, 0.0)
    assert (chosen[0].first, chosen[1].value) == (2.0, 0.0)


INTERNAL = {
    "exact_derivatives",
    "check",
    "massive_bodies",
    "generalized_accelerations",
    "resting_joints",
    "joint_constraints",
    "links_at",
    "knee_ranges",
    *("direct", "elimination", "projection", "mass_inverse"),  # of `algorithms.constrained.methods`
}
"""Functions that others call with arguments that are read already."""


def test_every_public_function_of_a_robot_and_its_state_accepts_any_element():
    functions = {
        name: getattr(legged, name) for name in legged.__all__ if getattr(legged, name).__class__ is type(case_of)
    }
    functions |= {f"loops.{name}": value for name in loops.__all__ if isfunction(value := getattr(loops, name))}
    for item in walk_packages(algorithms.__path__, "legged.algorithms."):
        module = import_module(item.name)
        own = {name: x for name, x in vars(module).items() if isfunction(x) and x.__module__ == item.name}
        functions |= {f"{item.name}.{name}": x for name, x in own.items() if name[0] != "_" and name not in INTERNAL}
    missing = []
    for name, function in functions.items():
        first, *others = [*signature(function).parameters, ""]
        is_algorithm = first in ("robot", "closed", "operators") and {"q", "v", "tau"} & set(others)
        if is_algorithm and not accepts_any_element(function):
            missing.append(name)
    assert len(functions) > 100 and not missing
