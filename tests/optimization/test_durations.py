"""Free durations, Runge-Kutta steps and second derivatives: closed forms, orders of convergence, finite differences."""

import numpy as np
import pytest

import legged
import robots
from legged import optimization as oc
from legged.errors import ArgumentError, UnknownNameError
from legged.optimization.linearization import costates
from legged.optimization.model import LinearQuadraticModel

NODES = 40
END = oc.Constraint(oc.terms.state, q=np.ones(1), v=np.zeros(1))
FAST = oc.Cost(oc.terms.duration, 2.0)


def slider() -> legged.Robot:
    """Return a mass of 1 kg on a slide, a double integrator."""
    rail = legged.Link("rail", legged.point_mass(1.0, (0.0, 0.0, 0.0)))
    builder = legged.RobotBuilder("slider", rail, base=legged.FixedBase(), gravity=np.zeros(3))
    mass = legged.Link("mass", legged.box_inertia(1.0, (0.1, 0.1, 0.1)))
    return builder.add(legged.Prismatic("slide", "x"), mass, to="rail").build()


def arm() -> legged.Robot:
    """Return a pendulum of two rods."""
    builder = legged.RobotBuilder("arm", legged.Link("base"), base=legged.FixedBase())
    rod = legged.rod_inertia(1.0, (0, 0, 0), (0, 0, -0.5))
    builder.add(legged.Revolute("first", "y"), legged.Link("upper", rod), to="base")
    builder.add(legged.Revolute("second", "y"), legged.Link("lower", rod), to="upper", at=(0, 0, -0.5))
    return builder.build()


def test_the_duration_of_least_effort_and_time_is_that_of_the_closed_form():
    weight = 0.1
    stage = oc.Stage(0.02, terms=[FAST, oc.Cost(oc.terms.control, weight)], phase="move")
    problem = oc.Problem(slider(), [stage] * NODES, [END], q=[0.0], integrator="RK4")
    solution = oc.solve(problem, constraint_tolerance=1e-7, iterations=300)
    # A move by 1 m from rest to rest has the least effort sum h u^2 = 12 / (T^3 (1 - 1/N^2)) with controls that are
    # constant in N steps, so that T + weight / 2 sum h u^2 is least at the following T.
    expected = (18.0 * weight / (1.0 - 1.0 / NODES**2)) ** 0.25
    assert solution.converged
    np.testing.assert_allclose(solution.t[-1], expected, rtol=1e-6)  # constraint tolerance 1e-7
    np.testing.assert_allclose(solution.duration_factors["move"], expected / (0.02 * NODES), rtol=1e-6)


def test_the_least_time_with_bounded_force_is_that_of_full_force_in_both_directions():
    stage = oc.Stage(0.04, terms=[FAST, oc.Cost(oc.terms.control, 1e-3)], phase="move")
    problem = oc.Problem(slider(), [stage] * NODES, [END], q=[0.0], lower=-1.0, upper=1.0, integrator="RK4")
    solution = oc.solve(problem, iterations=300)
    assert solution.converged
    np.testing.assert_allclose(solution.t[-1], 2.0, rtol=2e-3)  # 2 sqrt(distance / acceleration); effort costs 1e-3
    np.testing.assert_allclose(solution.u[:18, 0], 1.0)
    np.testing.assert_allclose(solution.u[-18:, 0], -1.0)


def test_durations_keep_their_bounds_and_each_phase_has_its_own():
    terms = [FAST, oc.Cost(oc.terms.control, 0.1)]
    nodes = [oc.Stage(0.05, terms=terms, phase="slow")] * 20 + [oc.Stage(0.05, terms=terms, phase="fast")] * 20
    bounds = {"slow": (1.0, 2.0), "fast": (0.4, 1.0)}
    problem = oc.Problem(slider(), nodes, [END], q=[0.0], integrator="midpoint", duration_factors=bounds)
    solution = oc.solve(problem, constraint_tolerance=1e-6, iterations=300)
    assert solution.converged and solution.duration_factors["slow"] == pytest.approx(1.0)
    assert solution.t[20] == pytest.approx(1.0) and 1.4 < solution.t[-1] < 2.0
    with pytest.raises(UnknownNameError, match="'fats'; did you mean 'fast'"):
        oc.Problem(slider(), nodes, q=[0.0], duration_factors={"fats": (0.5, 1.0)})
    with pytest.raises(ArgumentError, match="must include 1"):
        oc.Problem(slider(), nodes, q=[0.0], duration_factors=(1.5, 2.0))


@pytest.mark.parametrize(("integrator", "order"), [("semi-implicit Euler", 1), ("midpoint", 2), ("RK4", 4)])
def test_the_error_of_a_step_falls_with_the_order_of_the_integrator(integrator, order):
    robot, rng = legged.random_tree(1, 1, joints=("ball",), bases=("floating",)), np.random.default_rng(0)
    q, v = legged.random_configuration(robot, rng), rng.normal(size=robot.nv)
    ends = []
    for count in (8, 16, 128):
        stage = oc.Stage(0.2 / count, [], [oc.Cost(oc.terms.control, 1.0)])
        solution = oc.solve(oc.Problem(robot, [stage] * count, q=q, v=v, integrator=integrator), iterations=3)
        ends.append((solution.q[-1], solution.v[-1]))
    exact = ends[-1]
    errors = [np.abs(np.concatenate([legged.difference(robot, exact[0], a), b - exact[1]])).max() for a, b in ends[:-1]]
    assert errors[0] / errors[1] > 0.8 * 2.0**order  # the fine solution has an error, and higher orders contribute


def late(robot, at, speed):
    return np.array([at.t * speed + at.q[1] - 0.4])


def hop(**options) -> oc.Problem:
    """Return a hop with phases of free duration, an impact, and costs of forces and of time."""
    robot, rest = robots.planar_hopper(), np.array([0.0, 0.0, 0.6, 0.0, 0.0])
    common = [oc.Cost(oc.terms.state, 0.1, q=rest, v=np.zeros(5)), oc.Cost(oc.terms.control, 1e-3)]
    common.append(oc.Cost(oc.terms.duration, 0.02))
    force = oc.Cost(oc.terms.contact_force, 1e-4, contact="toe", force=np.zeros(3))
    high = oc.Cost(oc.terms.center_of_mass, 1e3, position=np.array([0.0, 0.0, 0.75]))
    push, fly = oc.Stage(0.02, ["toe"], [*common, force], "push"), oc.Stage(0.02, [], common, "fly")
    time = oc.Cost(late, 100.0, speed=0.5)
    nodes = [*[push] * 10, *[fly] * 7, oc.Stage(0.02, [], [high]), *[fly] * 7, oc.Impact(["toe"], [time]), *[push] * 10]
    return oc.Problem(robot, nodes, [oc.Cost(oc.terms.state, 10.0, q=rest, v=np.zeros(5)), time], q=rest, **options)


@pytest.mark.parametrize("integrator", ["semi-implicit Euler", "RK4"])
def test_derivatives_of_a_motion_by_controls_and_durations_are_finite_differences(integrator):
    problem = hop(integrator=integrator, velocity_gain=5.0)
    delta = 1e-5
    at = LinearQuadraticModel(problem, np.array([delta, -delta]))
    at.u[:, :-1] = np.random.default_rng(1).normal((0.0, -60.0), 1.0, size=(len(problem.nodes), 2))
    at.rollout()
    at.accept(0)
    at.evaluate_motion()
    at.evaluate_model()
    assert np.abs(at.gap).max() < 1e-12
    adjoint = costates(at.F, at.gradient)

    def slope() -> float:
        up, down = at.rollout()
        return (up - down) / (2 * delta)

    for phase in range(2):
        at.durations.step[...] = np.eye(2)[phase]
        np.testing.assert_allclose(slope(), adjoint[0, 0, 10 + phase], rtol=1e-6)  # third derivatives times 1e-10
    at.durations.step[...] = 0.0
    for k in (2, 12, 30):
        at.riccati.feedforward[...] = 0.0
        at.riccati.feedforward[0, k] = [1.0, 0.5]
        by_control = at.gradient[0, k, 12:] + adjoint[0, k + 1] @ at.F[0, k][:, 12:]
        np.testing.assert_allclose(slope(), by_control @ [1.0, 0.5], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("free", [False, True])
def test_second_derivatives_make_the_iterations_converge_quadratically(free):
    if free:
        problem = hop()
    else:
        reach = oc.Cost(oc.terms.frame_translation, 1.0, frame="lower", position=np.array([0.4, 0.0, 0.2]))
        final = [oc.Cost(oc.terms.state, 30.0, q=np.array([2.0, 0.5]), v=np.zeros(2))]
        stage = oc.Stage(0.05, terms=[oc.Cost(oc.terms.control, 0.01), reach])
        problem = oc.Problem(arm(), [stage] * 30, final, q=[0.3, 0.2])
    near = oc.solve(problem, tolerance=1e-8, iterations=300)
    assert near.converged
    counts = {}
    for second_order in (False, True):
        solver = oc.Solver(problem, second_order=second_order)
        solver.set_guess(near.q, near.v, near.u)
        solver._stored["factors"][...] = list(near.duration_factors.values())
        solution = solver.solve(tolerance=1e-15)[0]
        assert solution.cost == pytest.approx(near.cost, rel=1e-6)
        counts[second_order] = len(solution.log)
        if second_order:
            before, last = solution.log.improvement[-2:]
            assert solution.converged and last < 1e-4 * before + 1e-15  # rounding of a cost of 0.3 to 2
    assert counts[True] <= 5 < counts[False]


def test_second_order_with_a_runge_kutta_method_is_refused():
    stage = oc.Stage(0.1, terms=[oc.Cost(oc.terms.control, 1.0)])
    with pytest.raises(ArgumentError, match="second_order needs"):
        oc.Solver(oc.Problem(slider(), [stage], q=[0.0], integrator="RK4"), second_order=True)
    with pytest.raises(ArgumentError, match="integrator must be one of"):
        oc.Problem(slider(), [stage], q=[0.0], integrator="RK5")
