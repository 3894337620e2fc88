"""`legged.arguments`: accepted numbers, arrays and names, and error messages."""

import datetime
import inspect
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

import legged
from legged import arguments
from legged.checked import checked
from legged.errors import ArgumentError, LeggedError, NotFiniteError, ShapeError, UnknownNameError

NO_NUMBERS = [
    None,
    "1.0",
    b"1",
    True,
    np.True_,
    1j,
    np.complex128(1),
    object(),
    {"a": 1},
    {1, 2},
    lambda: 1,
    int,
    np.datetime64("2020-01-01"),
    np.timedelta64(1, "s"),
    datetime.datetime(2020, 1, 1),
]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_a_value_that_is_no_number_is_refused_by_name(value):
    with pytest.raises(ArgumentError, match="mass must be a number in kg"):
        arguments.number("mass", value, "kg")
    with pytest.raises(LeggedError, match="points must"):
        arguments.array("points", [value, value])


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.int8(1), np.array(1.0), Fraction(1)])
def test_every_kind_of_real_number_is_read_as_a_float(value):
    assert arguments.number("mass", value) == 1.0
    assert type(arguments.number("mass", value)) is float
    assert arguments.array("x", [value, 2]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 10**400])
def test_numbers_that_are_not_finite_are_refused(value):
    with pytest.raises(NotFiniteError, match="mass must be finite"):
        arguments.number("mass", value)
    with pytest.raises(NotFiniteError, match="x must"):
        arguments.array("x", [0.0, value])


def test_bounds_are_told_apart():
    assert arguments.number("a", 0, least=0, most=0) == 0
    for bounds, words in (
        ({"above": 0}, "positive"),
        ({"least": 1}, "at least 1"),
        ({"most": -1}, "at most -1"),
        ({"below": 0}, "below 0"),
    ):
        with pytest.raises(ArgumentError, match=words):
            arguments.number("a", 0, **bounds)


def test_shapes_are_compared_axis_by_axis():
    assert arguments.array("points", [[1, 2, 3]], (None, 3)).shape == (1, 3)
    with pytest.raises(ShapeError, match=r"points must be \(n, 3\), one row a point, got shape \(3,\)"):
        arguments.array("points", [1, 2, 3], (None, 3), "one row a point")
    with pytest.raises(ShapeError, match="different lengths"):
        arguments.array("points", [[1, 2], [3]])
    with pytest.raises(ShapeError, match="different lengths"):
        arguments.array("points", np.array([np.zeros(2), np.zeros(3)], dtype=object))


def test_traced_scalars_pass():
    def f(x):
        arguments.number("x[0]", x[0], above=0)
        return arguments.array("x", [x[0], 1.0, x[1]], (3,)) * 2.0

    assert legged.compile(f, x=(2,))(np.array([1.0, 3.0])).tolist() == [2.0, 2.0, 6.0]


def test_a_result_shares_no_memory_with_the_argument():
    x = np.ones(3)
    assert not np.shares_memory(arguments.array("x", x), x)


@pytest.mark.parametrize("value", [1.0, True, "3", None, np.float64(2)])
def test_whole_numbers_are_not_floats(value):
    with pytest.raises(ArgumentError, match="n must be a whole number"):
        arguments.whole("n", value)
    assert arguments.whole("n", np.int64(3), least=3, most=3) == 3
    with pytest.raises(ArgumentError, match="at least 4"):
        arguments.whole("n", 3, least=4)


def test_names_and_objects():
    with pytest.raises(UnknownNameError, match="did you mean 'knee'"):
        arguments.known_name("joint", "kne", ["knee"])
    with pytest.raises(ArgumentError, match="the name of a joint must be a text, got 3"):
        arguments.known_name("joint", 3, ["knee"])
    with pytest.raises(ArgumentError, match=r"robot must be a legged\.Robot, got None"):
        arguments.instance("robot", None, legged.Robot, "a legged.Robot")
    with pytest.raises(ArgumentError, match="the class Robot itself"):
        arguments.instance("robot", legged.Robot, legged.Robot)


def test_a_value_whose_repr_fails_is_still_reported():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    with pytest.raises(ArgumentError, match="<Broken>"):
        arguments.number("x", Broken())


@checked
def example(
    robot: legged.Robot,
    q: np.ndarray,
    mass: float = 1.0,
    names: Sequence[str] = (),
    limit: float = np.inf,
    table: Mapping[str, float] | None = None,
    mode: Literal["a", "b"] = "a",
    either: float | str | None = None,
):
    """Return the sum of q times the mass."""
    return mass * q[0] + mass * q[1] if len(q) > 1 else mass * q[0]


@checked
@dataclass(frozen=True)
class Example:
    """A dataclass whose fields are checked."""

    mass: float
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mass > 10.0:
            raise ArgumentError("too heavy")


ROBOT = legged.random_tree(1, links=2)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"robot": None}, r"robot must be a legged\.Robot, got None"),
        ({"q": ["a"]}, "q must hold real numbers"),
        ({"q": [np.nan]}, "q must be finite"),
        ({"q": [1e308, 1e308]}, "no finite answer.*1e[+]308"),
        ({"mass": "1"}, "mass must be a number"),
        ({"names": "abc"}, "names must be a sequence"),
        ({"names": ["a", 1]}, "entry 1 of names must be a text"),
        ({"limit": np.nan}, "limit must be finite"),
        ({"table": {"a": "b"}}, r"table must be a mapping, each value a number or None"),
        ({"table": 3}, "table must be a mapping"),
        ({"mode": "c"}, "mode must be one of 'a', 'b'"),
        ({"either": [1]}, "either must be a number or a text or None"),
        ({"extra": 1}, "unexpected keyword argument 'extra'"),
    ],
)
def test_decorated_functions_check_their_arguments_by_annotation(changed, words):
    assert example(ROBOT, [1.0, 2.0], limit=np.inf, table={"a": 1}, either="x") == 3.0
    with pytest.raises(LeggedError, match=words):
        example(**{"robot": ROBOT, "q": np.ones(2), **changed})


def test_decorated_dataclasses_check_their_fields_before_their_own_checks():
    assert Example(1.0, ("a",)).mass == 1.0
    for given, words in (((None,), "mass must be a number"), ((1.0, (1,)), "entry 0 of names"), ((11.0,), "too heavy")):
        with pytest.raises(ArgumentError, match=words):
            Example(*given)


def test_checked_functions_keep_their_name_signature_and_place():
    assert example.__name__ == "example" and "mass" in inspect.signature(example).parameters
    assert pickle.loads(pickle.dumps(example)) is example
