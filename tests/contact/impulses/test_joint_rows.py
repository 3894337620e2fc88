"""Stops and dry friction as rows of the contact problem: their proximal map, a convex program as oracle, and laws."""

import numpy as np
import pytest

import legged
import robots
from legged.compiler import Kernel
from legged.compiler.ir import record
from legged.contact import Rigid
from legged.contact.impulses.impact import target_velocity
from legged.contact.impulses.joint_rows import JointRows
from legged.contact.scene import Scene
from legged.dynamics.inertia import inertia_matrix

H = 2e-3  # [s]
BOUNDS = (-0.3, 0.4)  # [rad/s]


def one_row(friction, lower=BOUNDS[0], upper=BOUNDS[1]):
    numbers = (np.array([x]) for x in (friction, lower, upper, 2.0, 0.0, 0.0))
    return JointRows([0], *numbers, has_friction=friction > 0.0)


@pytest.mark.parametrize("friction", [0.0, 0.2])
@pytest.mark.parametrize("r", [0.5, 2.0])
@pytest.mark.parametrize("u", [-0.8, -0.3, -0.1, 0.0, 0.2, 0.4, 0.9])
@pytest.mark.parametrize("p_bar", [-0.5, -0.1, 0.0, 0.3])
def test_the_proximal_map_gives_the_minimum_of_a_convex_function(friction, r, u, p_bar):
    """w minimizes F |w| + (w - z)^2 / (2 r) over the admitted velocities; here by a search over a fine grid."""
    p, _ = one_row(friction).projected(np.array([p_bar]), np.array([u]), np.array([r]))
    z = u - r * p_bar
    grid = np.linspace(*BOUNDS, 70_001)
    best = grid[np.argmin(friction * np.abs(grid) + (grid - z) ** 2 / (2.0 * r))]
    assert z + r * p[0] == pytest.approx(best, abs=2e-5)  # a grid of 1e-5


@pytest.mark.parametrize(
    ("u", "p", "ok"),
    [
        (0.0, 0.15, True),
        (0.0, 0.25, False),
        (0.1, -0.2, True),
        (0.1, 0.2, False),
        (0.4, -3.0, True),
        (0.4, -0.1, False),
        (-0.3, 0.9, True),
        (-0.31, 0.9, False),
    ],
)
def test_the_violation_is_zero_exactly_where_the_law_holds(u, p, ok):
    assert (one_row(0.2).violation(np.array([p]), np.array([u]))[0] < 1e-15) == ok


class Problem:
    """A quadruped that falls onto rigid ground with friction at, and stops near, its joints, in a random state."""

    def __init__(self, seed, mu, restitution=0.0, friction=0.02, fast=1.0):
        rng = np.random.default_rng(seed)
        self.robot = robot = robots.spatial_quadruped()
        q, self.v = legged.random_configuration(robot, rng), fast * rng.normal(size=robot.nv)
        q[:4] = [1.0, *0.05 * rng.normal(size=3)]
        q[:4] /= np.linalg.norm(q[:4])
        q[7:] = 0.3 * rng.normal(size=robot.nq - 7)
        self.ground = Rigid(friction=mu, restitution=restitution)
        self.scene = Scene.of(robot, self.ground)
        q[6] -= self.scene.contact_geometry([q]).gap.min() - 1e-4
        self.q, self.geometry = q, self.scene.contact_geometry([q])
        self.v[5] = -abs(self.v[5])
        self.v_free = self.v + 0.05 * rng.normal(size=robot.nv)
        entries = list(range(6, robot.nv))
        n = len(entries)
        lower, upper = -np.where(rng.random(n) < 0.4, 0.0, 5.0), np.where(rng.random(n) < 0.4, 0.1, 5.0)
        M = inertia_matrix(robot, q)
        zero = np.zeros(n)
        self.rows = JointRows(
            entries, friction * rng.random(n), lower, upper, 1.0 / np.diag(M)[entries], zero, zero, friction > 0.0
        )
        self.M, self.entries = M, entries

    def solve(self):
        guess, none = np.zeros((len(self.geometry.gap), 3)), np.zeros(self.robot.nv)
        return self.scene.impulses([self.q], [self.v], [self.v_free], [none], H, self.geometry, guess, None, self.rows)

    def jacobian(self):
        """Return that of the contact velocities by the velocities of unit motions, (3 m, nv)."""
        from legged.contact.impulses.delassus import Contacts

        sides = [(candidate.first, candidate.second) for candidate in self.scene.candidates]
        none = [np.zeros(self.robot.nv)]
        contacts = Contacts.of((self.robot,), sides, [self.q], none, self.geometry.frame, self.geometry.point)
        return np.array([contacts.velocities([e]).ravel() for e in np.eye(self.robot.nv)]).T

    def targets(self):
        return np.array([target_velocity(self.ground.recovery, gap, H) for gap in self.geometry.gap])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("friction", [0.0, 0.02])
def test_without_friction_of_contacts_the_step_is_the_solution_of_a_convex_program(seed, friction):
    """min (v - v_free)^T M (v - v_free) / 2 + sum F |u_j| with the gap velocities and joint velocities in bounds."""
    clarabel = pytest.importorskip("clarabel")
    from scipy.sparse import csc_matrix

    problem = Problem(seed, 0.0, friction=friction)
    solution, rows, n = problem.solve(), problem.rows, problem.robot.nv
    assert solution.residual < 1e-5
    k, selected = len(problem.entries), np.eye(n)[problem.entries]
    J = problem.jacobian()[::3]
    P = np.zeros((n + k, n + k))
    P[:n, :n] = problem.M
    cost = np.concatenate([-problem.M @ problem.v_free, rows.friction])
    zero = np.zeros((len(J), k))
    A = [np.hstack([-J, zero]), np.hstack([selected, 0 * np.eye(k)]), np.hstack([-selected, 0 * np.eye(k)])]
    A += [np.hstack([selected, -np.eye(k)]), np.hstack([-selected, -np.eye(k)])]
    b = np.concatenate([-problem.targets(), rows.upper, -rows.lower, np.zeros(2 * k)])
    options = clarabel.DefaultSettings()
    options.verbose, options.tol_gap_abs, options.tol_gap_rel, options.tol_feas = False, 1e-13, 1e-13, 1e-13
    cones = [clarabel.NonnegativeConeT(len(b))]
    solver = clarabel.DefaultSolver(csc_matrix(np.triu(P)), cost, csc_matrix(np.vstack(A)), b, cones, options)
    expected = np.array(solver.solve().x)[:n]
    assert np.abs(solution.v_next[0] - expected).max() < 1e-5  # the tolerance of the solver, and that of the program


@pytest.mark.parametrize("restitution", [0.0, 0.6])
@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(8))
def test_all_rows_obey_their_laws_in_an_impact(seed, mu, restitution):
    problem = Problem(seed, mu, restitution)
    solution, rows, J = problem.solve(), problem.rows, problem.jacobian()
    assert solution.residual < 1e-5
    v, joints = solution.v_next[0], solution.joints[problem.entries]
    momentum = problem.M @ (v - problem.v_free) - J.T @ solution.p.ravel() - solution.joints
    assert np.abs(momentum).max() < 1e-9
    velocities, tolerance = (J @ v).reshape(-1, 3), 2e-5  # [m/s], twice that of the solver
    assert np.all(solution.p[:, 0] >= -1e-12)
    assert np.all(np.linalg.norm(solution.p[:, 1:], axis=1) <= mu * solution.p[:, 0] + 1e-9)
    assert np.all(velocities[:, 0] >= problem.targets() - tolerance)
    u, F = v[problem.entries], rows.friction
    assert np.all((u > rows.lower - tolerance) & (u < rows.upper + tolerance))
    inside = (u > rows.lower + tolerance) & (u < rows.upper - tolerance)
    assert np.all(np.abs(joints[inside]) <= F[inside] + 1e-6)
    assert np.all(joints[u > rows.lower + tolerance] <= F[u > rows.lower + tolerance] + 1e-6)
    assert np.all(joints[u < rows.upper - tolerance] >= -F[u < rows.upper - tolerance] - 1e-6)
    if restitution == 0.0:  # sliding joints, whose impulses a mean of two solutions mixes
        slides = inside & (np.abs(u) > tolerance)
        np.testing.assert_allclose(joints[slides], -F[slides] * np.sign(u[slides]), atol=1e-6)
        pressed = solution.p[:, 0] * 1.0 > tolerance
        assert np.all(np.abs(velocities[pressed, 0] - problem.targets()[pressed]) < tolerance)
    mean = 0.5 * (problem.v + v)
    assert solution.work + mean[problem.entries] @ joints <= 1e-6 + 0.5 * H  # corrections of penetrations aside


def test_the_violation_of_a_free_row_is_the_velocity_that_its_impulse_gives():
    """By the mobility of 2 / (kg m^2)."""
    assert one_row(0.0).violation(np.array([0.1]), np.array([0.0])) == pytest.approx([0.2], rel=1e-12)  # [rad/s]


@pytest.mark.parametrize("friction", [0.0, 0.02])
def test_newtons_methods_share_the_code_of_their_equations(monkeypatch, friction):
    """Both loops of robots with dry friction call one function; the one loop of others contains its operations."""
    monkeypatch.setattr("legged.compiler.ir.loops_and_tables.LONG", 1)
    problem = Problem(0, 0.5, friction=friction, fast=3.0)
    v_free = problem.v_free + 0.1 * np.random.default_rng(1).normal(size=(5, problem.robot.nv))

    def velocities(v_free):
        problem.v_free = v_free
        return problem.solve().v_next[0]

    graph = record(velocities, {"v_free": (problem.robot.nv,)})
    called = [loop.body.loops for loop in graph.loops if loop.body.loops]
    assert called == ([called[0]] * 2 if friction else []) and all(len(functions) == 1 for functions in called)
    kernel = Kernel(graph, "velocities")
    expected = np.array([velocities(v) for v in v_free])
    np.testing.assert_allclose(kernel(v_free), expected, atol=1e-9)  # the iterations end at residuals of 1e-8
    np.testing.assert_allclose(kernel(v_free[0]), expected[0], atol=1e-9)
