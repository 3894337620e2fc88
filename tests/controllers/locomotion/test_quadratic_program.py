"""Quadratic programs with cones and bounds, against clarabel and daqp."""

import clarabel
import daqp
import numpy as np
import pytest
import scipy.sparse
from oracles.urdfs import all_urdfs

import controllers
import legged
from controllers.locomotion.torques.quadratic_program import TOLERANCE, QuadraticProgram, solve
from controllers.locomotion.torques.tasks import Tracking, WholeBodyModel, link_pose, posture
from controllers.locomotion.torques.whole_body import FORCE_WEIGHT, Contact, JointLimits, whole_body_program

FILES = all_urdfs()
ITERATIONS = 25  # enough for random problems far from their start


def random_program(seed: int, cones: int, soft: int = 0) -> QuadraticProgram:
    """Return a feasible program: its bounds and equations contain a random point inside the cones."""
    rng = np.random.default_rng(seed)
    n, m, k = 8 + 3 * cones, 3, 6
    root = rng.normal(size=(n, n))
    x = rng.normal(size=n)
    triples = [(8 + 3 * i, 9 + 3 * i, 10 + 3 * i) for i in range(cones)]
    for one, two, normal in triples:
        x[normal] = 2.0 * np.hypot(x[one], x[two]) / 0.5
    E, B = rng.normal(size=(m + soft, n)), rng.normal(size=(k, n))
    B[3] = np.eye(n)[1]  # a bound of one unknown
    lower, upper = B @ x - rng.uniform(0, 1, k), B @ x + rng.uniform(0, 1, k)
    lower[0], upper[1], lower[2], upper[2] = -np.inf, np.inf, -np.inf, np.inf
    compliance = [*rng.uniform(0.1, 1.0, soft), *([0.0] * m)]
    H = root @ root.T + 0.1 * np.eye(n)
    g = 10.0 * rng.normal(size=n)
    return QuadraticProgram(H, g, E, E @ x, compliance, B, lower, upper, [0.0] * k, triples, [0.5] * cones)


def objective(problem: QuadraticProgram, x: np.ndarray) -> float:
    soft = [i for i, c in enumerate(problem.compliance) if c > 0.0]
    rows = (problem.E @ x - problem.e)[soft]
    return float(0.5 * x @ problem.H @ x + problem.g @ x + 0.5 * np.sum(rows**2 / np.array(problem.compliance)[soft]))


def by_clarabel(problem: QuadraticProgram) -> np.ndarray:
    """Return the solution of clarabel, with soft rows in the objective."""
    n = len(problem.g)
    soft = [i for i, c in enumerate(problem.compliance) if c > 0.0]
    hard = problem.hard
    weights = 1.0 / np.array(problem.compliance)[soft] if soft else np.zeros(0)
    A, b = problem.E[soft], problem.e[soft]
    H, g = problem.H + A.T @ (weights[:, None] * A), problem.g - A.T @ (weights * b)
    up, low = np.isfinite(problem.upper), np.isfinite(problem.lower)
    rows = [problem.E[hard], problem.B[up], -problem.B[low]]
    right = [problem.e[hard], np.array(problem.upper)[up], -np.array(problem.lower)[low]]
    cones: list = [clarabel.ZeroConeT(len(hard)), clarabel.NonnegativeConeT(int(up.sum() + low.sum()))]
    for (one, two, normal), mu in zip(problem.cones, problem.friction, strict=True):
        rows.append(-np.array([mu, 1.0, 1.0])[:, None] * np.eye(n)[[normal, one, two]])
        right.append(np.zeros(3))
        cones.append(clarabel.SecondOrderConeT(3))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    upper = scipy.sparse.csc_matrix(np.triu(H))
    matrix = scipy.sparse.csc_matrix(np.vstack(rows))
    return np.array(clarabel.DefaultSolver(upper, g, matrix, np.concatenate(right), cones, settings).solve().x)


@pytest.mark.parametrize("cones", [0, 1, 4])
@pytest.mark.parametrize("soft", [0, 2])
def test_objective_and_feasibility_are_those_of_clarabel(cones, soft):
    for seed in range(5):
        problem = random_program(seed, cones, soft)
        solution = solve(problem, np.zeros(problem.iterate_size), ITERATIONS)
        reference = objective(problem, by_clarabel(problem))
        # the iterations end at a gap and violations of TOLERANCE, and multipliers of violations are of order 10
        assert objective(problem, solution.x) == pytest.approx(reference, rel=20 * TOLERANCE, abs=20 * TOLERANCE)
        assert solution.residual < 2 * TOLERANCE
        assert 0.0 <= solution.gap < 20 * TOLERANCE * max(1.0, abs(reference))


def by_daqp(problem: QuadraticProgram) -> np.ndarray:
    """Return the solution of daqp of a program without cones."""
    rows = np.vstack([problem.B, problem.E])
    upper, lower = (np.concatenate([bounds, problem.e]) for bounds in (problem.upper, problem.lower))
    sense = np.array([0] * len(problem.B) + [5] * len(problem.E), dtype=np.int32)
    return daqp.solve(problem.H, problem.g, rows, upper, lower, sense, primal_tol=1e-9)[0]


def test_objective_and_feasibility_are_those_of_daqp():
    for seed in range(10):
        problem = random_program(seed, 0)
        solution = solve(problem, np.zeros(problem.iterate_size), ITERATIONS)
        assert objective(problem, solution.x) == pytest.approx(objective(problem, by_daqp(problem)), rel=20 * TOLERANCE)
        assert solution.residual < 2 * TOLERANCE


def whole_body_problem(word: str, seed: int) -> QuadraticProgram:
    """Return the program of a robot from a file that stands and moves, with desired accelerations out of reach."""
    robot = legged.load(next(path for name, path in FILES.items() if word in name))
    rng = np.random.default_rng(seed)
    home = controllers.home_of(robot)
    q, _ = controllers.Posture(tuple(home.angles), home.base_height).initial_state(robot)
    model = WholeBodyModel(robot, q, 0.2 * rng.normal(size=robot.nv))
    contacts = [Contact(c.link, c.position, 1.0, 0.4, most=20.0 * robot.mass) for c in robot.contacts]
    base = model.point(0)
    pose = link_pose(model, 0, base.position, base.rotation, Tracking(base.twist, 5.0 * rng.normal(size=6)))
    limits = JointLimits.of(robot, acceleration=300.0)
    tasks = [pose, posture(model, q[robot.base.nq :])]
    problem, _ = whole_body_program(model, contacts, tasks, limits, FORCE_WEIGHT)
    mirrored = np.triu(problem.H) + np.triu(problem.H, 1).T
    return problem._replace(H=mirrored, softness=[0.0] * len(problem.softness))


def with_pyramids(problem: QuadraticProgram) -> QuadraticProgram:
    """Return the program with |f_1|, |f_2| <= mu f_n / sqrt(2), f_n >= 0 for each cone."""
    rows = []
    for (one, two, normal), mu in zip(problem.cones, problem.friction, strict=True):
        x, y, z = np.eye(len(problem.g))[[one, two, normal]]
        rows += [mu / np.sqrt(2.0) * z + sign * t for t in (x, y) for sign in (1.0, -1.0)] + [z]
    count = len(rows)
    return problem._replace(
        B=np.vstack([problem.B, rows]), lower=[*problem.lower, *([0.0] * count)], friction=(), cones=(),
        upper=[*problem.upper, *([np.inf] * count)], softness=[*problem.softness, *([0.0] * count)],
    )  # fmt: skip


@pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")
@pytest.mark.parametrize(
    "word",
    ["go2/", *(pytest.param(word, marks=pytest.mark.slow) for word in ("anymal_c", "g1/g1_29", "talos_reduced"))],
)
def test_whole_body_programs_have_the_objective_of_clarabel_and_daqp(word):
    for seed in range(2):
        problem = whole_body_problem(word, seed)
        for program, reference in ((problem, by_clarabel), (with_pyramids(problem), by_daqp)):
            solution = solve(program, np.zeros(program.iterate_size), ITERATIONS)
            expected = objective(program, reference(program))
            # relative to 1 + |objective|: the iterations end at a gap of TOLERANCE of it
            assert abs(objective(program, solution.x) - expected) < 5 * TOLERANCE * (1.0 + abs(expected))
            assert solution.residual < 2 * TOLERANCE


def test_a_start_from_the_solution_of_a_similar_problem_takes_fewer_iterations():
    problem = random_program(0, 4)
    first = solve(problem, np.zeros(problem.iterate_size), ITERATIONS)
    near = problem._replace(g=problem.g + 0.01)
    exact = solve(near, np.zeros(problem.iterate_size), ITERATIONS)
    warm, cold = (solve(near, start, 4) for start in (first.iterate, np.zeros(problem.iterate_size)))
    assert objective(near, warm.x) == pytest.approx(objective(near, exact.x), rel=1e-5)
    assert abs(objective(near, cold.x) - objective(near, exact.x)) > 1e-3 * abs(objective(near, exact.x))


@pytest.mark.parametrize("seed", range(4))
def test_rounding_errors_of_the_data_change_the_solution_by_little(seed):
    """Forces at the boundaries of their cones have a small cost, beside which the weights of the cones are 1e9."""
    problem = random_program(seed, 4)
    forces = np.ix_(range(8, len(problem.g)), range(8, len(problem.g)))
    H = 1e3 * problem.H
    H[8:], H[:, 8:] = 0.0, 0.0
    H[forces] = 1e-2 * np.eye(len(problem.g) - 8)
    problem = problem._replace(H=H)
    start = solve(problem._replace(g=problem.g + 1.0), np.zeros(problem.iterate_size), ITERATIONS).iterate
    expected, rng = solve(problem, start, ITERATIONS).x, np.random.default_rng(seed)
    for _ in range(4):
        g = problem.g * (1.0 + 1e-15 * rng.choice([-1.0, 1.0], len(problem.g)))
        # 1e-11 here; 1e-8 to 2e-4 if the weights of a cone are added in the axes of the force
        np.testing.assert_allclose(solve(problem._replace(g=g), start, ITERATIONS).x, expected, rtol=1e-9, atol=1e-9)


def test_contradictory_soft_bounds_share_the_violation():
    """x <= -1 and x >= 1 with equal softness: x lies in the middle, whatever the objective's small pull."""
    problem = QuadraticProgram(
        np.eye(2), np.zeros(2), np.zeros((0, 2)), np.zeros(0), [], np.eye(2)[[0, 0]], [1.0, -np.inf], [np.inf, -1.0],
        [1e-6, 1e-6],
    )  # fmt: skip
    solution = solve(problem, np.zeros(problem.iterate_size), ITERATIONS)
    assert solution.x[0] == pytest.approx(0.0, abs=1e-3)
    assert solution.residual == pytest.approx(1.0, abs=1e-3)


def test_contradictory_hard_bounds_give_finite_numbers_and_a_residual():
    problem = QuadraticProgram(
        np.eye(2), np.zeros(2), np.zeros((0, 2)), np.zeros(0), [], np.eye(2)[[0, 0]], [1.0, -np.inf], [np.inf, -1.0],
        [0.0, 0.0],
    )  # fmt: skip
    solution = solve(problem, np.zeros(problem.iterate_size), ITERATIONS)
    assert np.isfinite(solution.x).all()
    assert solution.residual > 0.9


def test_traced_and_batched_results_are_those_of_python():
    problems = [random_program(seed, 2) for seed in range(3)]
    shape = problems[0]

    def minimizer(H, g, E, e, start):
        return solve(shape._replace(H=H, g=g, E=E, e=e), start, ITERATIONS).x

    n, m = len(shape.g), len(shape.e)
    kernel = legged.compile(minimizer, H=(n, n), g=(n,), E=(m, n), e=(m,), start=(shape.iterate_size,))
    start = np.zeros(shape.iterate_size)
    expected = [solve(shape._replace(g=p.g), start, ITERATIONS).x for p in problems]
    for p, x in zip(problems, expected, strict=True):
        np.testing.assert_allclose(kernel(shape.H, p.g, shape.E, shape.e, start), x, atol=1e-9)
    batch = kernel(shape.H, np.array([p.g for p in problems]), shape.E, shape.e, start)
    np.testing.assert_allclose(batch, expected, atol=1e-9)
