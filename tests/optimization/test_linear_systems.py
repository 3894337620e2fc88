"""Linear systems with quadratic costs: the solution is that of the Riccati equation, in one iteration."""

import numpy as np
import pytest
import scipy.linalg

import legged
from legged import optimization as oc
from legged.errors import LeggedError
from legged.optimization.riccati import RiccatiRecursion

H, NODES = 0.05, 40


def sliders(count: int = 2) -> legged.Robot:
    """Return masses on slides along x without gravity, each on the one before: a linear system."""
    base = legged.Link("rail", legged.point_mass(1.0, (0.0, 0.0, 0.0)))
    builder = legged.RobotBuilder("sliders", base, base=legged.FixedBase(), gravity=np.zeros(3))
    for k in range(count):
        mass = legged.box_inertia(1.0 + k, (0.1, 0.1, 0.1))
        builder.add(
            legged.Prismatic(f"slide{k}", "x"), legged.Link(f"mass{k}", mass), to=f"mass{k - 1}" if k else "rail"
        )
    return builder.build()


def costs(robot: legged.Robot, weight: float, control: float) -> list[oc.Cost]:
    zero = np.zeros(robot.nv)
    state = oc.Cost(oc.terms.state, weight, q=zero, v=zero)
    return [state, oc.Cost(oc.terms.control, control)] if control else [state]


@pytest.fixture(scope="module")
def robot() -> legged.Robot:
    return sliders()


def problem_of(robot, terms=None, final=None, **options) -> oc.Problem:
    terms = costs(robot, 1.0, 0.1) if terms is None else terms
    final = costs(robot, 5.0, 0.0) if final is None else final
    return oc.Problem(robot, [oc.Stage(H, terms=terms)] * NODES, final, q=[0.5, -0.2], **options)


def system(robot) -> tuple[np.ndarray, np.ndarray]:
    """Return A, B of a semi-implicit Euler step."""
    inverse = np.linalg.inv(legged.inertia_matrix(robot, np.zeros(2)))
    A = np.block([[np.eye(2), H * np.eye(2)], [np.zeros((2, 2)), np.eye(2)]])
    return A, np.concatenate([H * H * inverse, H * inverse])


def test_one_iteration_gives_the_solution_of_the_finite_riccati_recursion(robot):
    solution = oc.solve(problem_of(robot))
    A, B = system(robot)
    Q, R, P = H * np.eye(4), H * 0.1 * np.eye(2), 5.0 * np.eye(4)
    x = np.array([0.5, -0.2, 0.0, 0.0])
    start = x.copy()
    gains = []
    for _ in range(NODES):
        K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        gains.append(K)
        P = Q + A.T @ P @ (A + B @ K)
    assert solution.converged and len(solution.log) == 2  # one step, and the check that nothing is left
    np.testing.assert_allclose(solution.cost, 0.5 * start @ P @ start, rtol=1e-9)  # regularization 1e-9
    for k, K in enumerate(reversed(gains)):
        np.testing.assert_allclose(solution.gain[k], K, atol=1e-6)
        np.testing.assert_allclose(solution.u[k], K @ x, atol=1e-6)
        x = A @ x + B @ solution.u[k]
        np.testing.assert_allclose(np.concatenate([solution.q[k + 1], solution.v[k + 1]]), x, atol=1e-12)


def test_the_feedback_far_from_the_end_is_that_of_the_discrete_algebraic_riccati_equation(robot):
    terms = costs(robot, 1.0, 0.1)
    problem = oc.Problem(robot, [oc.Stage(H, terms=terms)] * 400, costs(robot, 5.0, 0.0), q=[0.5, -0.2])
    A, B = system(robot)
    Q, R = H * np.eye(4), H * 0.1 * np.eye(2)
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    np.testing.assert_allclose(oc.solve(problem).gain[0], K, rtol=1e-6)  # regularization 1e-9 of R = 5e-3


def test_an_infeasible_start_ends_at_the_same_optimum(robot):
    rng = np.random.default_rng(0)
    best = oc.solve(problem_of(robot))
    other = oc.solve(
        problem_of(robot), q=rng.normal(size=(NODES + 1, 2)), v=rng.normal(size=(NODES + 1, 2)), u=rng.normal(size=2)
    )
    assert other.log.gap[0] > 1.0 and other.converged
    np.testing.assert_allclose(other.cost, best.cost, rtol=1e-9)


def test_bounds_of_controls_are_met_and_the_optimum_is_that_of_a_quadratic_program(robot):
    limit = 0.4
    bounded = oc.solve(problem_of(robot, lower=-limit, upper=limit))
    assert bounded.converged and np.abs(bounded.u).max() <= limit
    assert (np.abs(bounded.u) == limit).sum() > 10
    A, B = system(robot)  # condense to a problem in the controls alone
    x0 = np.array([0.5, -0.2, 0.0, 0.0])
    free, effect = [x0], [np.zeros((4, 2 * NODES))]
    for k in range(NODES):
        free.append(A @ free[-1])
        effect.append(A @ effect[-1])
        effect[-1][:, 2 * k : 2 * k + 2] += B
    weights = np.repeat([*[H] * NODES, 5.0], 4)
    root = np.sqrt(np.concatenate([weights, np.full(2 * NODES, H * 0.1)]))
    matrix = root[:, None] * np.concatenate([np.concatenate(effect), np.eye(2 * NODES)])
    right = -root * np.concatenate([np.concatenate(free), np.zeros(2 * NODES)])
    result = scipy.optimize.lsq_linear(matrix, right, (-limit, limit), tol=1e-14)
    np.testing.assert_allclose(bounded.cost, result.cost, rtol=1e-8)
    np.testing.assert_allclose(bounded.u.ravel(), result.x, atol=1e-5)


def test_constraints_are_met_and_their_optimum_is_that_of_the_bounds(robot):
    limit = 0.4
    within = oc.Constraint(oc.terms.torque_limits, "inequality", limit=limit)
    constrained = oc.solve(problem_of(robot, [*costs(robot, 1.0, 0.1), within]), constraint_tolerance=1e-8)
    bounded = oc.solve(problem_of(robot, lower=-limit, upper=limit))
    assert constrained.converged and np.abs(constrained.u).max() < limit + 1e-6
    np.testing.assert_allclose(constrained.cost, bounded.cost, rtol=1e-6)


def test_an_equality_at_the_end_is_met(robot):
    final = oc.Constraint(oc.terms.state, q=np.array([0.1, 0.3]), v=np.zeros(2))
    solution = oc.solve(problem_of(robot, final=[final]), constraint_tolerance=1e-8)
    assert solution.converged
    np.testing.assert_allclose([*solution.q[-1], *solution.v[-1]], [0.1, 0.3, 0.0, 0.0], atol=1e-7)


def test_several_starts_side_by_side_have_the_solutions_of_each_alone(robot):
    starts = np.random.default_rng(1).normal(size=(5, 2))
    problem = problem_of(robot, lower=-0.4, upper=0.4)
    problem.set_start(starts, np.zeros(2))
    together = oc.Solver(problem).solve()
    for start, solution in zip(starts, together, strict=True):
        problem.set_start(start, np.zeros(2))
        alone = oc.solve(problem)
        assert solution.converged and alone.converged
        np.testing.assert_allclose(solution.cost, alone.cost, rtol=1e-9)


def test_an_indefinite_hessian_stops_no_other_problem():
    rng = np.random.default_rng(3)
    together, alone = RiccatiRecursion(2, 4, 3, 2), RiccatiRecursion(1, 4, 3, 2)
    F, H = rng.normal(size=(5, 3, 5)), np.array([x @ x.T + np.eye(5) for x in rng.normal(size=(5, 5, 5))])
    for model in (together, alone):
        model.F[...], model.hessian[...], model.gradient[...] = F, H, rng.normal(size=5)
    together.gradient[...] = alone.gradient
    together.hessian[0, 2, 3:, 3:] = -1e3 * np.eye(2)
    bounds = np.full((2, 5, 2), -0.1), np.full((2, 5, 2), 0.1)
    for limits in (None, bounds):
        both = together.backward(np.zeros(2), limits)
        one = alone.backward(np.zeros(1), limits and (bounds[0][:1], bounds[1][:1]))
        assert both.failed_node.tolist() == [2, -1] and one.failed_node.tolist() == [-1]
        assert both.slope[0] == 0.0 and not together.feedforward[0].any() and np.isfinite(both.value_hessian).all()
        assert both.slope[1] == one.slope[0] and both.curvature[1] == one.curvature[0]
        np.testing.assert_array_equal(together.gain[1], alone.gain[0])


def test_contradicting_constraints_are_named_with_their_node(robot):
    final = [
        oc.Constraint(oc.terms.state, q=np.zeros(2), v=np.zeros(2)),
        oc.Constraint(oc.terms.joint_limits, "inequality", lower=np.ones(2), upper=2.0 * np.ones(2)),
    ]
    solution = oc.solve(problem_of(robot, final=final), iterations=60)
    assert not solution.converged and f"node {NODES}" in solution.message
    assert "state" in solution.message or "joint_limits" in solution.message
    assert np.isfinite(solution.q).all()


def test_a_term_without_a_finite_value_is_refused_with_its_node(robot):
    def root(robot, at, offset):
        return np.sqrt(at.q - offset)

    nodes = [oc.Stage(H, terms=costs(robot, 1.0, 0.1))] * 3
    nodes.append(oc.Stage(H, terms=[oc.Cost(root, 1.0, offset=np.ones(2))]))
    with np.errstate(invalid="ignore"), pytest.raises(LeggedError, match="node 3"):
        oc.solve(oc.Problem(robot, nodes, q=[0.5, -0.2]))


def test_a_receding_horizon_starts_from_the_shifted_solution(robot):
    problem = problem_of(robot, final=costs(robot, 0.3, 0.0))
    solver = oc.Solver(problem)
    solution = solver.solve()[0]
    solver.shift()
    problem.set_start(solution.q[1], solution.v[1])
    next_solution = solver.solve()[0]
    assert next_solution.converged and len(next_solution.log) == 2
    np.testing.assert_allclose(next_solution.u[0], solution.u[1], atol=0.02)


def test_an_advanced_problem_is_the_problem_of_the_later_nodes(robot):
    def stages(first, count):
        targets = np.sin(0.3 * np.arange(first, first + count))
        goal = [oc.Cost(oc.terms.state, 1.0, q=np.full(2, x), v=np.zeros(2)) for x in targets]
        return [oc.Stage(H, terms=[one, oc.Cost(oc.terms.control, 0.1)]) for one in goal]

    problem = oc.Problem(robot, stages(0, 20), q=[0.5, -0.2])
    solver = oc.Solver(problem)
    solution = solver.solve()[0]
    solver.advance(stages(20, 3), solution.q[3], solution.v[3])
    advanced = solver.solve()[0]
    later = oc.solve(oc.Problem(robot, stages(3, 20), q=solution.q[3], v=solution.v[3], start_time=3 * H))
    np.testing.assert_allclose(advanced.cost, later.cost, rtol=1e-9)
    np.testing.assert_allclose(advanced.u, later.u, atol=1e-6)  # regularization 1e-9 of 5e-3
    np.testing.assert_allclose(advanced.t, later.t)
    with pytest.raises(LeggedError, match="has the term velocity, which the problem did not have"):
        solver.advance([oc.Stage(H, terms=[oc.Cost(oc.terms.velocity, 1.0)])], solution.q[3], solution.v[3])
    np.testing.assert_allclose(solver.solve()[0].cost, later.cost, rtol=1e-9)
