"""`legged.arguments`: accepted numbers, arrays and names, and error messages."""

import datetime
import inspect
import pickle
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import controllers
import legged
import robots
from legged import arguments
from legged.checked import checked
from legged.errors import ArgumentError, LeggedError, NotFiniteError, ShapeError, SimulationWarning, UnknownNameError

sys.path.insert(0, str(Path(__file__).parent))
import argument_fuzz
import argument_values

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
        ({"either": [1]}, "either must be a number, a text or None"),
        ({"extra": 1}, "unexpected keyword argument 'extra'; its arguments are robot, q, "),
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


BIPED = robots.planar_biped()
GROUND = legged.ground.paper_ground(BIPED)
REST = BIPED.neutral(), np.zeros(BIPED.nv)
RAGGED = [[1.0, 2.0], [3.0]]


def dynamics(q=REST[0], v=REST[1], vdot=REST[1]):
    """Return the inverse dynamics of the planar biped with one argument changed."""
    return legged.inverse_dynamics(BIPED, q, v, vdot)


REFUSED = {
    "a robot that is none": (lambda: legged.inertia_matrix(None, REST[0]), "robot must be a legged.Robot, got None"),
    "the class of robots": (lambda: legged.inertia_matrix(legged.Robot, REST[0]), "the class Robot itself"),
    "a name that is no text": (lambda: BIPED.link(3), "the name of a link must be a text, got 3"),
    "a list for a name": (lambda: BIPED.joint(["a_hip"]), "the name of a joint must be a text"),
    "complex entries": (lambda: dynamics(v=REST[1] + 1j), "v must hold real numbers, got complex numbers"),
    "texts for numbers": (lambda: dynamics(v=["1"] * BIPED.nv), "v must hold real numbers, got text"),
    "dates": (lambda: dynamics(v=np.full(BIPED.nv, np.datetime64("2020-01-01"))), "got dates"),
    "an array of objects": (lambda: dynamics(v=np.array([None] * BIPED.nv)), "v must hold real numbers"),
    "lists of different lengths": (lambda: dynamics(v=RAGGED), "its lists have different lengths"),
    "an answer beyond floats": (lambda: dynamics(v=np.full(BIPED.nv, 1e300)), "no finite answer.*1e[+]300"),
    "the index -1 of a point": (
        lambda: legged.point_positions(BIPED, REST[0], [(-1, (0.0, 0.0, 0.0))]),
        "the index of a link must be at least 0",
    ),
    "a push at NaN": (lambda: legged.Push("trunk", (0.0, 1.0, 0.0), at=np.nan), "at must be finite, got nan"),
    "a push without end": (
        lambda: legged.Push("trunk", (0.0, 1.0, 0.0), at=0.0, duration=np.inf),
        "duration must be finite, got inf",
    ),
    "an impulse of two numbers": (lambda: legged.Push("trunk", (0.0, 1.0), at=0.0), r"impulse must be \(3,\)"),
    "an impulse that is a number": (lambda: legged.Push("base", 5.0), "missing a required argument: 'at'"),
    "a ground at NaN": (lambda: legged.ground.Flat(np.nan), "must be finite, got nan"),
    "a negative radius": (lambda: legged.sphere_inertia(1.0, -1.0), "radius"),
    "an angle of NaN": (lambda: legged.rpy(np.nan, 0.0, 0.0), "roll must be finite, got nan"),
    "a chain of -1 links": (lambda: robots.chain(-1), "n must be at least 1"),
    "a chain of -3 links": (lambda: robots.chain(-3), "n must be at least 1"),
    "a chain of 2.5 links": (lambda: robots.chain(2.5), "n must be a whole number, got 2.5"),
    "a gain of NaN": (lambda: controllers.Balanced(controllers.Trot(), gain=np.nan), "gain must be finite, got nan"),
    "one entry too many": (
        lambda: legged.difference(BIPED, REST[0], np.append(REST[0], 0.0)),
        rf"end must be \({BIPED.nq},\)",
    ),
    "axes that do not exist": (lambda: legged.EulerBase("zzz"), "zzz"),
    "an impossible inertia": (
        lambda: legged.Link("shank", legged.Inertia(1.0, (0, 0, 0), (1.0, 1.0, 3.0))),
        "inertia",
    ),
    "a name of a ground": (
        lambda: legged.simulate(BIPED, until=0.01, ground="flat"),
        "ground must be a legged.ground.Ground, a legged.Rigid or None",
    ),
    "a stride of two numbers": (lambda: controllers.Trot(stride=(0.05, 0.05)), "stride must be a number"),
    "a gait that is not fitted": (
        lambda: controllers.suited_law(controllers.Balanced, controllers.Trot()),
        "gait must be a controllers.NumericalGait",
    ),
    "an inertia that is a number": (lambda: legged.Link("a", 5.0), "inertia must be a legged.Inertia, got 5.0"),
    "a seed for a generator": (
        lambda: legged.random_configuration(BIPED, 0),
        "rng must be a numpy.random.Generator, got 0",
    ),
    "a body that does not exist": (lambda: BIPED.ancestors(-1), "the index of a body must be at least 0"),
    "texts for joint positions": (lambda: BIPED.joint_values(["1"] * BIPED.nq), "q must hold real numbers, got text"),
    "a text for the position of a joint": (
        lambda: BIPED.state(joints={"a_hip": "1"}),
        "the value of joint 'a_hip' must hold real numbers",
    ),
    "a list of locked joints": (lambda: BIPED.locked(["a_hip"]), "values must be a mapping"),
    "a law that is a number": (lambda: controllers.ActuatorLag(np.nan, 0.1), "law must be an object with torque"),
    "a time that is a text": (lambda: controllers.Trot().reference("1"), "t must hold real numbers"),
    "a pendulum of no period": (
        lambda: controllers.InvertedPendulum.forward(period=None, stride=0.1, height=0.5),
        "period must be a number, got None",
    ),
    "a text for the variation": (
        lambda: legged.Simulation(BIPED, ground=GROUND, vary="gait.stride"),
        "vary must be a mapping",
    ),
    "a coordinate that is a text": (lambda: legged.ground.Flat().height("1", 0.0), "x must hold real numbers"),
    "a coordinate of a height map": (
        lambda: legged.ground.HeightMap(np.zeros((4, 4)), 0.1).height(0.0, "1"),
        "y must hold real numbers",
    ),
    "a mapping that is none": (lambda: BIPED.with_parameters(None), "values must be a mapping"),
    "names that are no sequence": (lambda: BIPED.parameter_vector(3), "names must be a sequence"),
    "names of a closed robot": (lambda: robots.four_bar().parameter_vector(3), "names must be a sequence"),
    "a seed below 0": (
        lambda: legged.InverseKinematics(BIPED, {"trunk": "position"}).solve(
            BIPED.neutral(), {"trunk": np.zeros(3)}, seed=-1
        ),
        "seed must be at least 0",
    ),
    "a controller that is NaN": (lambda: legged.rollout_parameters(BIPED, np.nan), "controller must be"),
    "a time that is none": (
        lambda: controllers.AngularMomentumControl(argument_values.planar_balance()).momentum(None),
        "t must be a number",
    ),
    "a run without end": (lambda: legged.simulate(BIPED, until=1e300), "at most 1e[+]07 samples"),
    "a function of one argument as a controller": (
        lambda: legged.simulate(BIPED, len, until=0.01, ground=GROUND),
        r"controller must be an object with torque[(]...[)], an object with start[(]...[)], a function of 4 arguments",
    ),
    "a function of a robot without a robot": (
        lambda: legged.count(legged.forward_dynamics),
        "the function takes a robot; give it as the argument after the function",
    ),
    "states of more robots than num": (
        lambda: legged.Simulation(BIPED, ground=GROUND, q=np.tile(REST[0], (4, 1))),
        "num 1, q 4; num is the number of robots",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_arguments_are_refused_in_words(case):
    call, words = REFUSED[case]
    with pytest.raises(LeggedError, match=words):
        call()


def test_known_names_with_commas_are_quoted():
    error = UnknownNameError("algorithm", "x", ("regressor", "articulated bodies, absolute"))
    assert str(error).endswith("there are: 'regressor', 'articulated bodies, absolute'")


def test_a_sample_of_bad_calls_of_public_functions_classes_and_methods_ends_in_words(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # some functions write files
    report = argument_fuzz.fuzz(seed=1, most=400)
    assert report.calls == 400 and report.missing == [] and report.defects == []


def test_no_refused_call_of_a_method_or_setter_changes_its_object(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    report = argument_fuzz.fuzz(only=lambda case: getattr(case.function, "is_of_mutable", False))
    assert report.defects == [] and report.calls > 4000


def test_a_builder_is_as_before_after_a_refused_call_and_the_message_names_the_argument_as_written():
    builder = legged.RobotBuilder("a", legged.Link("base", legged.sphere_inertia(1.0, 0.1)))
    joint, link = legged.Revolute("knee", "y"), legged.Link("shank", legged.sphere_inertia(1.0, 0.1))
    written = {"to": 5}, r"^RobotBuilder.add\('knee'\): to must be a text, got 5$"
    for wrong, words in (written, ({"rotation": 2.0 * np.eye(3)}, "rotation of joint 'knee'")):
        with pytest.raises(LeggedError, match=words):
            builder.add(joint, link, **{"to": "base", **wrong})
    assert builder.add(joint, link, to="base").build().nj == 1
    editor = legged.RobotEditor(BIPED)
    with pytest.raises(ArgumentError, match=r"^RobotEditor.change_link\('trunk'\): mass must be a number or None"):
        editor.change_link("trunk", mass="heavy")


def test_a_state_that_does_not_fit_leaves_a_simulation_as_it_was():
    sim = legged.Simulation(BIPED, ground=GROUND, num=2)
    before = sim.state
    for wrong in ({"q": before.q + np.nan}, {"outcome": np.zeros(3)}, {"rest": before.rest[:, 1:]}):
        with pytest.raises(LeggedError, match="state"):
            sim.state = replace(before, **wrong)
        assert (sim.q == before.q).all() and not sim.ended.any()


def test_a_warning_that_is_raised_as_an_error_leaves_a_simulation_whole():
    integrator = legged.SemiImplicitEuler(step=0.005)  # too long for the ground, [s]
    q, v = controllers.paper_walk().initial_state(BIPED)
    sim = legged.Simulation(BIPED, ground=GROUND, num=2, q=q, v=v, integrator=integrator)
    sim.step(n=3)
    with warnings.catch_warnings(), pytest.raises(SimulationWarning, match="too long"):
        warnings.simplefilter("error")
        sim.change_controller(None)
    assert np.allclose(sim.t, 3 * sim.time_step, rtol=1e-15)  # one rounding


@pytest.mark.slow
def test_no_bad_argument_of_a_public_function_class_or_method_gives_an_internal_error_or_nan(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    report = argument_fuzz.fuzz()
    print(f"{report.calls} calls of {report.callables} callables, longest {report.longest:.2f} s")
    assert report.missing == [] and report.defects == []
