"""`legged.jacobian`: both modes against closed forms, finite differences and the analytical recursions."""

import numpy as np
import pytest

import legged
import robots
from legged.algorithms import derivatives
from legged.compiler import jacobian
from legged.compiler.ir import random_uniform
from legged.compiler.ir.operations import CONDITIONS, OPERATIONS
from legged.compiler.passes.differentiate import PARTIALS
from legged.errors import ArgumentError, SingularError, UnknownNameError

RNG = np.random.default_rng(5)
BOTH = pytest.mark.parametrize("mode", ["forward", "reverse"])


def central(f, x, h=1e-6):
    """Return the Jacobian of f by central differences; exact to about 1e-9 for functions and points of size 1."""
    x = np.asarray(x, float)
    columns = []
    for i in range(x.size):
        d = np.zeros(x.size)
        d[i] = h
        d = d.reshape(x.shape)
        columns.append((np.asarray(f(x + d)) - np.asarray(f(x - d))) / (2 * h))
    return np.stack(columns, -1).reshape(np.shape(f(x)) + x.shape)


FUNCTIONS = {
    "sin": lambda x: np.sin(x),
    "cos": lambda x: np.cos(x),
    "tan": lambda x: np.tan(x),
    "arcsin": lambda x: np.arcsin(x),
    "arccos": lambda x: np.arccos(x),
    "arctan": lambda x: np.arctan(x),
    "arctan2": lambda x: np.arctan2(x[::-1], x),
    "exp": lambda x: np.exp(x),
    "log": lambda x: np.log(x),
    "sinh": lambda x: np.sinh(x),
    "cosh": lambda x: np.cosh(x),
    "tanh": lambda x: np.tanh(x),
    "sqrt": lambda x: np.sqrt(x),
    "power": lambda x: x ** x[::-1] + x**2.5,
    "divide": lambda x: x / x[::-1] - 1.0 / x,
    "absolute": lambda x: np.abs(x - 0.4),
    "maximum": lambda x: np.maximum(x, x[::-1]),
    "minimum": lambda x: np.minimum(x, 0.4),
    "select": lambda x: legged.where(x < 0.4, x * x[0], np.sin(x)),
    "floor": lambda x: x * np.floor(10.0 * x),
    "rint": lambda x: x * np.rint(10.0 * x),
    "fmod": lambda x: np.fmod(x - 0.4, x[1]) + np.fmod(2.4, x),
    "hypot": lambda x: np.hypot(x, x[::-1]),
    "copysign": lambda x: np.copysign(x - 0.4, x[::-1] - 0.4),
    **{name: getattr(np, name) for name in ("cbrt", "exp2", "expm1", "log10", "log1p", "log2", "arcsinh", "arctanh")},
    "arccosh": lambda x: np.arccosh(1.0 + x),
    "random_uniform": lambda x: x * random_uniform(1.0, 10.0 * x, 2.0, 3.0),
    "negate": lambda x: -x,
    "add": lambda x: x + x[0],
    "subtract": lambda x: x - x[::-1] * 2.0,
    "multiply": lambda x: x * x[::-1] * x[1],
}


def test_every_operation_has_a_derivative_and_a_test():
    assert set(OPERATIONS) - CONDITIONS - {"select"} == set(PARTIALS)
    assert set(PARTIALS) | {"select"} == set(FUNCTIONS)


@BOTH
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operation_against_differences(name, mode):
    x = np.array([0.23, 0.51, 0.78])
    derivative = jacobian(FUNCTIONS[name], 0, mode)(x)
    assert np.allclose(
        derivative, central(FUNCTIONS[name], x), rtol=0, atol=2e-8
    )  # differences: 1e-6^2 and rounding / 1e-6


def test_the_side_that_is_not_chosen_may_be_infinite_in_forward_mode():
    def f(x):
        return legged.where(x > 0.0, np.sqrt(x), 2.0 * x)

    assert jacobian(f, 0, "forward")(np.array([0.0, 4.0])).tolist() == [[2.0, 0.0], [0.0, 0.25]]
    compiled = legged.compile(jacobian(f, 0, "forward"), x=(2,))
    assert compiled(np.array([-1.0, 4.0])).tolist() == [[2.0, 0.0], [0.0, 0.25]]


@BOTH
def test_inverse_dynamics_of_random_robots_against_the_analytical_recursion(mode):
    for seed in range(4):
        robot = legged.random_tree(seed, links=4, bases=("fixed",))
        rng = np.random.default_rng(seed)
        q, v, vdot = legged.random_configuration(robot, rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        if robot.nq != robot.nv:
            continue  # ball joints: entries of a quaternion are no motions
        derivative = jacobian(legged.inverse_dynamics, "v", mode)(robot, q, v, vdot)
        expected = derivatives.of_inverse_dynamics(robot, q, v, vdot).v
        assert np.allclose(derivative, expected, rtol=0, atol=1e-10 * max(1.0, np.abs(expected).max()))


@BOTH
def test_derivative_of_forward_dynamics_by_torque_is_the_inverse_inertia_matrix(mode):
    robot = robots.planar_biped()
    q, v, tau = legged.random_configuration(robot, RNG), RNG.normal(size=robot.nv), RNG.normal(size=robot.nv)
    kernel = legged.compile(jacobian(legged.forward_dynamics, "tau", mode), robot)
    expected = np.linalg.inv(legged.inertia_matrix(robot, q))
    assert np.allclose(kernel(q, v, tau), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_second_derivatives_by_applying_it_twice():
    def f(x):
        return np.sin(x[0]) * x[1] ** 3

    hessian = legged.compile(jacobian(jacobian(f, "x"), "x"), x=(2,))
    x = np.array([0.3, 0.7])
    expected = [[-np.sin(0.3) * 0.343, np.cos(0.3) * 3 * 0.49], [np.cos(0.3) * 3 * 0.49, np.sin(0.3) * 6 * 0.7]]
    assert np.allclose(hessian(x), expected, rtol=1e-14)


def test_structure_of_the_results_is_kept():
    def f(x, scale):
        return {"sum": x.sum() * scale, "all": (scale * x, x[0])}

    derivative = jacobian(f, "x")(np.array([1.0, 2.0]), 3.0)
    assert derivative["sum"].tolist() == [3.0, 3.0]
    assert derivative["all"][0].tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert derivative["all"][1].tolist() == [1.0, 0.0]
    assert jacobian(f, "scale")(np.array([1.0, 2.0]), 3.0)["sum"] == 3.0


def test_gradient_of_a_smooth_rollout_against_differences():
    robot = robots.chain(3, base=legged.FixedBase())

    def final(robot, tau):
        q, v = robot.neutral() + 0.1, np.zeros(robot.nv)
        for _ in range(5):
            v = v + 0.01 * legged.forward_dynamics(robot, q, v, tau)
            q = q + 0.01 * v
        return (q**2).sum()

    tau = np.array([0.3, -0.2, 0.1])
    gradient = legged.compile(jacobian(final, "tau"), robot)(tau)
    expected = central(lambda x: final(robot, x), tau, 1e-4)
    assert np.allclose(gradient, expected, rtol=1e-6)  # differences: h^2 times third derivatives


@BOTH
def test_constants_and_unused_arguments_have_zero_derivatives(mode):
    def f(x, y):
        return np.stack([x[0] * 0.0 + 1.0, x[1]])

    assert jacobian(f, "y", mode)(np.ones(2), np.ones(3)).tolist() == [[0.0] * 3] * 2
    assert jacobian(f, 0, mode)(np.ones(2), np.ones(3)).tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_wrong_arguments_are_named():
    with pytest.raises(UnknownNameError, match="did you mean 'tau'"):
        jacobian(legged.forward_dynamics, "taus")
    with pytest.raises(ArgumentError, match="mode must be one of"):
        jacobian(np.sin, 0, "sideways")
    with pytest.raises(ArgumentError, match="robot must be a number or an array"):
        jacobian(legged.inertia_matrix, "robot")(robots.planar_biped(), np.zeros(9))
    with pytest.raises(ArgumentError, match="callable"):
        jacobian(3)


@BOTH
def test_an_infinite_derivative_is_an_error(mode):
    with pytest.raises(SingularError, match="jacobian_of_"):
        jacobian(lambda x: np.sqrt(x), 0, mode)(np.array([0.0, 1.0]))
