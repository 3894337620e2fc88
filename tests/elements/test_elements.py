"""Numbers of other types as arguments: what is kept, what is rounded, what is refused; intervals and their branches."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import iv, mp, mpc, mpf

import legged
import robots
from legged import arguments, elements, rotations
from legged.elements.element import FUNCTIONS
from legged.errors import ArgumentError, IntervalError, NotFiniteError, ShapeError, SingularError

THIRD = Fraction(1, 3)


@pytest.mark.parametrize("kind", [Fraction, Decimal, mpf, np.longdouble, lambda x: iv.mpf(x)])
def test_arrays_of_objects_keep_the_numbers_that_floats_do_not_hold(kind):
    number = kind(1) / kind(3)
    for value in ([number, 2.0, 1], np.array([number, 2.0, 1], object)):
        entries = arguments.array("q", value, (3,))
        assert [type(entry) for entry in entries] == [elements.Element] * 3
        assert [entry.value for entry in entries] == [number, kind(2), kind(1)]


def test_arrays_of_plain_numbers_become_floats_whatever_their_type():
    for value in ([1, 2.0], np.array([1, 2.0], object), np.array([1, 2], np.int8), np.array([1, 2], np.float32)):
        assert arguments.array("q", value).dtype == float


@pytest.mark.parametrize("value", [[mpc(1, 1)], [1j, THIRD], [True, THIRD], ["1", THIRD]])
def test_other_entries_are_refused_beside_fractions(value):
    with pytest.raises(ArgumentError, match="q must hold real numbers"):
        arguments.array("q", np.array(value, object))


@pytest.mark.parametrize("value", [mpf("nan"), mpf("inf"), np.longdouble("nan"), Decimal("inf"), iv.mpf([0, "inf"])])
def test_numbers_of_any_type_must_be_finite(value):
    with pytest.raises(NotFiniteError, match="q must be finite"):
        arguments.array("q", [value])
    with pytest.raises(NotFiniteError):
        legged.inertia_matrix(robots.chain(2), np.array([value] * 9, object))


def test_wrong_shapes_and_quaternions_are_refused_in_any_type():
    robot = robots.chain(2)
    with pytest.raises(ShapeError, match=r"q must be \(9,\)"):
        legged.inertia_matrix(robot, [THIRD] * 8)
    with pytest.raises(ShapeError, match="the quaternion of the base, must have norm 1"):
        legged.inertia_matrix(robot, [mpf(1) / 3] * 9)


def test_definitions_of_robots_round_numbers_of_any_type_to_floats():
    body = legged.Inertia(mpf(1) / 3, [THIRD, 0, 0], np.eye(3, dtype=np.longdouble) / 3)
    assert (body.mass, body.center[0], body.tensor[0, 0]) == (1 / 3, 1 / 3, 1 / 3)
    builder = legged.RobotBuilder("one", legged.Link("base", body))
    robot = builder.build().edit().change_link("base", center=[THIRD, 0, Decimal("0.5")]).build()
    assert np.asarray(robot.links[0].inertia.center).dtype == float


def test_kernels_round_numbers_of_any_type_to_doubles():
    robot = robots.chain(2)
    kernel = legged.compile(legged.center_of_mass, robot)
    q = robot.neutral()
    assert kernel(np.array([mpf(x) for x in q], object)) == pytest.approx(kernel(q), abs=0)
    assert kernel(q.astype(np.longdouble)).dtype == float


def test_functions_that_need_floats_say_so():
    robot = robots.chain(2)
    q = np.array([mpf(x) for x in robot.neutral()], object)
    with pytest.raises(ArgumentError, match="computes with 64-bit floats and cannot use numbers of type mpf"):
        legged.conditioning(robot, q)


def test_two_types_cannot_be_mixed():
    robot = robots.chain(2)
    with pytest.raises(ArgumentError, match="are combined; give all arguments in one type"):
        legged.kinetic_energy(robot, [mpf(1), *[mpf(0)] * 8], [THIRD] * robot.nv)


def test_a_singular_inertia_is_an_error_in_any_type():
    """Gimbal lock of an Euler base: a quarter turn of the middle angle."""
    body = legged.Link("body", legged.box_inertia(1, (0.1, 0.2, 0.3)))
    robot = legged.RobotBuilder("locked", body, base=legged.EulerBase()).build()
    with mp.workdps(30):
        for quarter in (mp.pi / 2, np.longdouble(np.pi) / 2 + np.longdouble(6.123233995736766e-17)):
            q = np.array([type(quarter)(0)] * 6, object)
            q[1] = quarter
            with pytest.raises((SingularError, NotFiniteError)):
                legged.forward_dynamics(robot, q, np.zeros(6), np.ones(6))


def test_elements_that_were_lifted_by_hand_stay_elements():
    q = elements.lift(np.array([mpf(x) for x in robots.chain(2).neutral()], object))
    center = legged.center_of_mass(robots.chain(2), q)
    assert type(center[0]) is elements.Element and type(elements.drop(center)[0]) is mpf
    assert type(rotations.quaternion_exp(np.array([mpf(1), mpf(0), mpf(0)], object))[0]) is mpf


@pytest.mark.parametrize("name", FUNCTIONS)
@given(data=st.data())
def test_functions_of_intervals_contain_those_of_their_numbers(name, data):
    limits = {"arcsin": (-1, 1), "arccos": (-1, 1), "log": (1e-3, 9), "sqrt": (0, 9), "tan": (-1.5, 1.5)}
    low, high = limits.get(name, (-9, 9))
    count = 2 if name == "arctan2" else 1
    ends = [sorted(data.draw(st.tuples(*[st.floats(low, high)] * 2))) for _ in range(count)]
    parts = [data.draw(st.floats(0, 1)) for _ in ends]
    intervals = [elements.lift(iv.mpf(list(pair))) for pair in ends]
    enclosure = getattr(np, name)(*intervals).value
    points = [min(max(a + part * (b - a), a), b) for (a, b), part in zip(ends, parts, strict=True)]
    word = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"}.get(name, name)
    with mp.workdps(100):  # more than the intervals have
        value = getattr(mp, word)(*points)
        a, b = (mp.make_mpf(end) for end in enclosure._mpi_)
        assert a <= value <= b


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tan", "sinh", "tanh", "arctan"])
def test_intervals_of_small_numbers_and_of_numbers_near_one_contain_the_value(name):
    """Where the value is near the argument or near 1, a wrong direction of rounding excludes it."""
    for k in range(1, 60):
        for x in (2.0**-k, 1.0 + 2.0**-k, 1.0 - 2.0**-k, *(() if name == "log" else (-(2.0**-k),))):
            low, high = getattr(np, name)(elements.lift(iv.mpf([x, x]))).value._mpi_
            with mp.workdps(100):
                assert mp.make_mpf(low) <= getattr(mp, {"arctan": "atan"}.get(name, name))(x) <= mp.make_mpf(high), x


def test_where_of_intervals_that_overlap_is_the_hull_and_a_branch_an_error():
    x, y = elements.lift(np.array([iv.mpf([0, 2]), iv.mpf([1, 3])], object))
    hull = legged.where(x < y, x, 10.0)
    assert [float(mp.make_mpf(end)) for end in hull.value._mpi_] == [0.0, 10.0]
    assert legged.where(x < 5.0, -1.0, 1.0) == -1.0
    signs = elements.drop(legged.where((x < y) & (x < 5.0), np.array([-1.0]), np.array([1.0])))
    assert [float(mp.make_mpf(end)) for end in signs[0]._mpi_] == [-1.0, 1.0]
    with pytest.raises(IntervalError, match="narrower intervals, or more digits"):
        bool(x < y)
    assert not (x < -1.0) and bool(x <= 2.0) and bool(x != 3.0)


def test_an_interval_that_contains_a_singular_state_is_an_error():
    body = legged.Link("body", legged.box_inertia(1, (0.1, 0.2, 0.3)))
    robot = legged.RobotBuilder("locked", body, base=legged.EulerBase()).build()
    q = np.array([iv.mpf(0)] * 6, object)
    q[1] = iv.mpf([1.5, 1.6])
    with pytest.raises((IntervalError, NotFiniteError)):
        legged.forward_dynamics(robot, q, np.zeros(6), np.ones(6))
