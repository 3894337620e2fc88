"""Parameters that controllers declare: of every rank, in nested objects, and in classes that declare none."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import legged
import robots
from legged.errors import DefinitionError, SimulationWarning, TraceError, UnknownNameError
from legged.ground import realistic_ground

ROUNDING = 1e-12  # relative: sums of a few products in another order, over ten steps without contact
OPTIONS = {"until": 0.01, "sample": 0.01, "integrator": legged.SemiImplicitEuler(1e-3)}
RANKS = {"scale": (), "bias": (2,), "weights": (2, 4), "mixed": (2, 3, 4)}


@dataclass(frozen=True, eq=False)
class Policy:
    """Torques tanh(scale (weights x + bias) + sum of mixed x), with parameters of rank 0 to 3."""

    scale: float
    bias: np.ndarray
    weights: np.ndarray
    mixed: np.ndarray

    def torque(self, t, phase, q, v, wrenches, memory):
        x = np.concatenate([q[3:], v[3:]])
        return np.tanh(self.scale * (self.weights @ x + self.bias) + (self.mixed @ x).sum(axis=1))


class PlainPolicy:
    """The same law in a class that names its parameters."""

    parameter_names = tuple(RANKS)

    def __init__(self, **numbers):
        vars(self).update(numbers)

    torque = Policy.torque


def numbers(seed):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) if shape else float(rng.normal()) for name, shape in RANKS.items()}


def moving(robot):
    return robot.neutral(), np.linspace(0.1, 0.5, robot.nv)


@pytest.mark.parametrize("name", RANKS)
@pytest.mark.parametrize("kind", [Policy, PlainPolicy])
def test_parameters_of_every_rank_vary_in_rollout_and_simulation(kind, name):
    robot, own = robots.planar_hopper(), numbers(0)
    q, v = moving(robot)
    values = [numbers(seed)[name] for seed in (1, 2, 3)]
    runs = legged.rollout(
        robot, kind(**own), q=q, v=v, vary={f"controller.{name}": np.array(values)}, compiled=True, **OPTIONS
    )
    sim = legged.Simulation(
        robot, kind(**own), q=q, v=v, num=3, integrator=legged.SemiImplicitEuler(1e-3), compiled=True
    )
    sim.change({f"controller.{name}": np.array(values)})
    sim.step(n=10)
    for i, value in enumerate(values):
        plain = legged.simulate(robot, kind(**{**own, name: value}), q=q, v=v, compiled=False, **OPTIONS)
        assert runs.v[i, -1] == pytest.approx(plain.v[-1], rel=ROUNDING, abs=ROUNDING)
        assert sim.v[i] == pytest.approx(plain.v[-1], rel=ROUNDING, abs=ROUNDING)
    assert np.ptp(runs.v[:, -1], axis=0).max() > 1e-6
    assert np.array_equal(sim.parameters[f"controller.{name}"], values[0])


@dataclass(frozen=True)
class Term:
    gain: float

    def force(self, v):
        return -self.gain * v[3:]


@dataclass(frozen=True)
class Sum:
    """A law with tuples, lists and dictionaries of terms."""

    terms: tuple
    named: dict

    def torque(self, t, phase, q, v, wrenches, memory):
        return sum(term.force(v) for term in (*self.terms, *self.named.values()))


def test_parameters_of_objects_in_tuples_and_dictionaries_vary():
    robot = robots.planar_hopper()
    q, v = moving(robot)
    law = Sum((Term(1.0), [Term(2.0)][0]), {"more": Term(0.5)})
    known = legged.rollout_parameters(robot, law)
    assert {n: x for n, x in known.items() if n.startswith("controller.")} == {
        "controller.terms.0.gain": 1.0,
        "controller.terms.1.gain": 2.0,
        "controller.named.more.gain": 0.5,
    }
    vary = {"controller.terms.1.gain": [3.0, 4.0], "controller.named.more.gain": [0.1, 0.2]}
    runs = legged.rollout(robot, law, q=q, v=v, vary=vary, compiled=True, **OPTIONS)
    other = Sum((Term(1.0), Term(4.0)), {"more": Term(0.2)})
    plain = legged.simulate(robot, other, q=q, v=v, compiled=False, **OPTIONS)
    assert runs.v[1, -1] == pytest.approx(plain.v[-1], rel=ROUNDING, abs=ROUNDING)


class Undeclared:
    """A plain class whose `start` makes a new object, which holds numbers of robot and state."""

    def __init__(self, kp, target=None):
        self.kp, self.target = kp, target

    def start(self, robot, ground, q, v):
        return Undeclared(self.kp, np.array(q[3:])), np.zeros(0)

    def torque(self, t, phase, q, v, wrenches, memory):
        return self.kp * (self.target - q[3:])


def test_a_class_without_declaration_is_a_constant_and_the_error_explains_how_to_declare():
    robot = robots.planar_hopper()
    q, v = moving(robot)
    vary = {"robot.trunk.mass": [4.0, 5.0]}
    runs = legged.rollout(robot, Undeclared(30.0), q=q, v=v, vary=vary, compiled=True, **OPTIONS)
    heavy = robot.with_parameters({"trunk.mass": 5.0})
    plain = legged.simulate(heavy, Undeclared(30.0), q=q, v=v, compiled=False, **OPTIONS)
    assert runs.v[1, -1] == pytest.approx(plain.v[-1], rel=ROUNDING, abs=ROUNDING)
    with pytest.raises(UnknownNameError, match=r"Undeclared, which declares no parameters: make it a dataclass, or"):
        legged.rollout(robot, Undeclared(30.0), q=q, v=v, vary={"controller.kp": [1.0, 2.0]}, **OPTIONS)
    with pytest.raises(UnknownNameError, match=r"a function, which has no parameters: write a dataclass"):
        legged.rollout(robot, lambda t, q, v, w: 0.0 * v, vary={"controller.kp": [1.0, 2.0]}, **OPTIONS)
    assert not any(n.startswith("controller") for n in legged.rollout_parameters(robot, Undeclared(30.0)))
    sim = legged.Simulation(robot, Undeclared(30.0), q=q, v=v, compiled=True)
    sim.step(n=2)
    sim.reset()
    sim.step(n=2)


def test_numbers_that_a_class_does_not_declare_are_never_taken_from_another_member():
    """Members that start in different states hold different targets in an object that declares no parameters."""
    robot = robots.planar_hopper()
    q = np.tile(robot.neutral(), (2, 1))
    q[1, 3] = 0.2
    with pytest.raises(TraceError, match=r"Undeclared, which declares no parameters"):
        legged.rollout(robot, Undeclared(30.0), q=q, compiled=True, **OPTIONS)
    runs = legged.rollout(robot, Undeclared(30.0), q=q, **OPTIONS)
    assert "Undeclared, which declares no parameters" in runs.backend
    for i in range(2):
        plain = legged.simulate(robot, Undeclared(30.0), q=q[i], compiled=False, **OPTIONS)
        assert runs.v[i, -1] == pytest.approx(plain.v[-1], rel=ROUNDING, abs=ROUNDING)


def test_robots_of_a_simulation_that_numbers_do_not_tell_apart_run_in_python():
    """Two robots, of which the second one starts again elsewhere, and both get other masses."""
    robot, steps = robots.planar_hopper(), legged.SemiImplicitEuler(1e-3)
    q, other = robot.neutral(), robot.neutral()
    other[3] = 0.2
    sim = legged.Simulation(robot, Undeclared(30.0), q=q, num=2, integrator=steps)
    sim.step(n=5)
    assert sim.backend.startswith("compiled") and not sim.warnings
    with pytest.warns(SimulationWarning, match="Undeclared, which declares no parameters"):
        sim.reset(other, where=[1])
    sim.step(n=5)
    assert "Undeclared" in sim.backend and len(sim.warnings) == 1
    expected = []
    for start, n in ((q, 10), (other, 5)):
        alone = legged.Simulation(robot, Undeclared(30.0), q=start, integrator=steps, compiled=False)
        alone.step(n=n)
        expected.append(alone.q)
    assert sim.q == pytest.approx(np.array(expected), rel=ROUNDING, abs=ROUNDING)
    assert sim.observe(lambda q: q[3]) == pytest.approx(sim.q[:, 3])
    state = sim.state
    sim.change({"robot.trunk.mass": [4.0, 5.0]})
    sim.step(n=5)
    heavy = legged.Simulation(robot.with_parameters({"trunk.mass": 5.0}), Undeclared(30.0), q=other, integrator=steps)
    heavy.state = replace(heavy.state, q=state.q[1], v=state.v[1], rest=state.rest[1])
    heavy.step(n=5)
    assert sim.q[1] == pytest.approx(heavy.q, rel=ROUNDING, abs=ROUNDING)
    strict = legged.Simulation(robot, Undeclared(30.0), q=q, integrator=steps, compiled=True)
    strict.step(n=5)
    before = strict.q
    with pytest.raises(TraceError, match="Undeclared, which declares no parameters"):
        strict.reset(other)
    assert np.array_equal(strict.q, before) and strict.t > 0.0  # the refused call has no effect


@dataclass(frozen=True, eq=False)
class Fitted:
    """A dataclass with an attribute that is no field."""

    kp: float

    def start(self, robot, ground, q, v):
        started = replace(self)
        object.__setattr__(started, "target", np.array(q[3:]))
        return started, np.zeros(0)

    torque = Undeclared.torque


def test_attributes_of_a_dataclass_that_are_no_fields_are_constants():
    robot = robots.planar_hopper()
    q = np.tile(robot.neutral(), (2, 1))
    q[1, 3] = 0.2
    with pytest.raises(TraceError, match=r"member 1 differs from member 0 in more than numbers: \S*target"):
        legged.rollout(robot, Fitted(30.0), q=q, compiled=True, **OPTIONS)


class Incomparable:
    """An object whose comparison raises an error."""

    __slots__ = ("height",)

    def __init__(self, height):
        self.height = height

    def __eq__(self, other):
        raise RuntimeError("two objects of this class cannot be compared")


@dataclass(frozen=True, eq=False)
class Labeled:
    """A law that keeps an object made from the initial height of the base."""

    make: object

    def start(self, robot, ground, q, v):
        started = replace(self)
        object.__setattr__(started, "label", self.make(float(q[1])))
        return started, np.zeros(0)

    def torque(self, t, phase, q, v, wrenches, memory):
        return -30.0 * q[3:]


@pytest.mark.parametrize("make", [str, Fraction, np.float64, lambda z: [str(z)], lambda z: {"side": Fraction(z)}])
def test_constants_made_at_the_start_of_each_member_are_compared_by_their_own_equality(make):
    """Equal objects of two members, which are not the same, make no difference; others do."""
    robot = robots.planar_hopper()
    q = np.tile(robot.neutral(), (2, 1))
    q[:, 1], q[1, 3] = 0.75, 0.2
    runs = legged.rollout(robot, Labeled(make), q=q, compiled=True, **OPTIONS)
    plain = legged.simulate(robot, Labeled(make), q=q[1], compiled=False, **OPTIONS)
    assert runs.v[1, -1] == pytest.approx(plain.v[-1], rel=ROUNDING, abs=ROUNDING)
    q[1, 1] = 0.5
    with pytest.raises(TraceError, match=r"member 1 differs from member 0 in more than numbers: \S*label"):
        legged.rollout(robot, Labeled(make), q=q, compiled=True, **OPTIONS)


def test_constants_that_cannot_be_compared_are_taken_as_different():
    robot = robots.planar_hopper()
    q = np.tile(robot.neutral(), (2, 1))
    q[1, 3] = 0.2
    with pytest.raises(TraceError, match=r"member 1 differs from member 0 in more than numbers: \S*label"):
        legged.rollout(robot, Labeled(Incomparable), q=q, compiled=True, **OPTIONS)


@dataclass(frozen=True)
class Commanded:
    gain: float = 2.0

    def torque(self, t, phase, q, v, wrenches, memory, command):
        return command - self.gain * v[3:]


def with_default(t, q, v, wrenches, command=0.0):
    return command - 2.0 * v[3:]


@pytest.mark.filterwarnings("ignore:a step of")
@pytest.mark.parametrize("integrator", [legged.SemiImplicitEuler, legged.RungeKutta4, legged.LinearlyImplicitEuler])
def test_laws_of_every_signature_run_or_are_refused_by_every_door(integrator):
    robot, law = robots.planar_hopper(), Commanded()
    q = robot.neutral()
    q[2] = 0.8  # [m], above the ground
    for each in (law, lambda t, q, v, w, command: command - 2.0 * v[3:], with_default):
        for step in (integrator(1e-4), integrator(1e-3)):  # the reaction of the law judges the longer one
            sim = legged.Simulation(robot, each, ground=realistic_ground(robot), q=q, integrator=step)
            sim.step(np.zeros(2))
            assert sim.t == step.step
    options = {"ground": realistic_ground(robot), "q": q, "integrator": integrator(1e-4), "until": 0.001}
    for door in (legged.simulate, legged.rollout):
        with pytest.raises(DefinitionError, match=r"takes a command, which Simulation\.step gives"):
            door(robot, law, **options)
        door(robot, with_default, **options)
