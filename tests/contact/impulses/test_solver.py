"""The contact solver: convergence to Coulomb's law and complementarity, without a gain of energy."""

from functools import partial

import numpy as np
import pytest

from legged.compiler import compile as compile_function
from legged.contact import Rigid
from legged.contact.impulses.impact import solve_impulses
from legged.contact.impulses.solver import ContactProblem, gauss_seidel, project_to_disc, residual, velocities


def problem(seed: int, m: int | None = None, n: int | None = None, mu: float | None = None):
    """Return random contacts of a system with n degrees of freedom that approaches most of them, and targets.

    Where n is less than 3 m they are redundant.
    """
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 6)) if m is None else m
    n = int(rng.integers(3, 3 * m + 4)) if n is None else n
    mu = rng.uniform(0.0, 1.5) if mu is None else mu
    J, v = rng.normal(size=(3 * m, n)), rng.normal(size=n)
    J[::3, 0], v[0] = rng.uniform(0.5, 1.5, m), -3.0
    A = (J * rng.uniform(0.1, 3.0, n)) @ J.T
    blocks = [[A[3 * i : 3 * i + 3, 3 * j : 3 * j + 3] for j in range(m)] for i in range(m)]
    return ContactProblem(blocks, (J @ v).reshape(m, 3), np.full(m, mu)), np.zeros(m), rng


def solution(contacts, target, sweeps=2000):
    """Return the impulses after many sweeps."""
    return gauss_seidel(contacts, target, np.zeros((len(target), 3)), sweeps, change=0.0)


@pytest.mark.parametrize("seed", range(15))
def test_solution_satisfies_coulombs_law_and_complementarity(seed):
    """Complementarity, cone and greatest dissipation, each checked by its definition and not by the natural map."""
    contacts, target, _ = problem(seed)
    p = solution(contacts, target)
    u, tiny = velocities(contacts, p), 1e-8 * np.abs(contacts.u_free).max()
    scale = tiny / np.abs(np.array(contacts.A)).max()
    assert (p[:, 0] >= 0.0).all()
    assert (u[:, 0] >= -tiny).all()
    assert np.abs(p[:, 0] * u[:, 0]).max() <= tiny * np.abs(p).max() + scale
    size, speed = np.hypot(p[:, 1], p[:, 2]), np.hypot(u[:, 1], u[:, 2])
    assert (size <= contacts.mu * p[:, 0] * (1 + 1e-12)).all()
    assert np.allclose((p[:, 1:] * u[:, 1:]).sum(axis=1), -contacts.mu * p[:, 0] * speed, atol=tiny * np.abs(p).max())


@pytest.mark.parametrize("seed", range(10))
def test_frictionless_solution_minimizes_the_energy(seed):
    """min p A p / 2 + p u_free over p >= 0, by enumeration of the active contacts, without iteration."""
    contacts, target, _ = problem(seed, mu=0.0)
    m = len(target)
    N = np.array([[contacts.A[i][j][0, 0] for j in range(m)] for i in range(m)])
    free, best = contacts.u_free[:, 0], 0.0
    for pressing in range(1, 2**m):
        on = [i for i in range(m) if pressing >> i & 1]
        p, *_ = np.linalg.lstsq(N[np.ix_(on, on)], -free[on], rcond=None)
        if (p >= 0).all():
            best = min(best, 0.5 * p @ N[np.ix_(on, on)] @ p + p @ free[on])
    x = solution(contacts, target)[:, 0]
    assert abs(0.5 * x @ N @ x + x @ free - best) < 1e-9 * max(abs(best), 1.0)


def test_one_contact_by_hand():
    """A ball, u = p / m: it sticks if mu p_n suffices, otherwise it slides with the remaining velocity."""
    mass, free = 2.0, np.array([[-3.0, 1.0, 0.0]])
    for mu, slide in ((0.5, 0.0), (0.2, 1.0 - 0.2 * 3.0)):
        contacts = ContactProblem([[np.eye(3) / mass]], free, [mu])
        p = gauss_seidel(contacts, [0.0], np.zeros((1, 3)), 1)
        assert np.allclose(velocities(contacts, p), [[0.0, slide, 0.0]], atol=1e-15)
        assert abs(p[0, 0] - 6.0) < 1e-15
        assert residual(contacts, [0.0], p) < 1e-15


def test_redundant_corners_carry_the_load_and_its_moment():
    """The distribution of load between the corners of a table is not unique, but its sum and moment are."""
    corners = np.array([(x, y) for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
    load = np.array([0.3, -0.2])
    J = np.vstack([np.hstack([np.zeros((3, 2)), np.eye(3)]) for _ in corners])
    J[::3, :2] = corners
    J = J[:, [2, 0, 1, 3, 4]]  # normal velocity of the middle, two tilts, two slides
    A = J @ J.T
    blocks = [[A[3 * i : 3 * i + 3, 3 * j : 3 * j + 3] for j in range(4)] for i in range(4)]
    free = (J @ np.array([-1.0, -load[0], -load[1], 0.0, 0.0])).reshape(4, 3)
    p = solution(ContactProblem(blocks, free, [0.5] * 4), np.zeros(4), 200)
    assert abs(p[:, 0].sum() - 1.0) < 1e-10
    assert np.abs(p[:, 0] @ corners - load).max() < 1e-10
    assert (p[:, 0] >= 0.0).all()  # corners push, they do not pull
    assert np.abs(p[:, 1:]).max() < 1e-10  # nothing slides


@pytest.mark.parametrize("seed", range(10))
def test_residual_falls_with_the_sweeps_and_with_a_warm_start(seed):
    contacts, target, rng = problem(seed, m=4)
    before = residual(contacts, target, np.zeros((4, 3)))
    few, many = (residual(contacts, target, solution(contacts, target, n)) for n in (10, 1000))
    assert many < 1e-9 * before
    assert few < 0.5 * before
    known = solution(contacts, target)
    near = contacts._replace(u_free=contacts.u_free + 1e-6 * rng.normal(size=(4, 3)))
    warm = residual(near, target, gauss_seidel(near, target, known, 10))
    assert warm < 1e-4


def test_anderson_mixing_reduces_the_sweeps_of_redundant_problems(monkeypatch):
    """Six contacts on ten degrees of freedom, 40 sweeps: ten times nearer in the middle of twenty problems."""
    left = []
    for reach in (2.0, 0.0):
        monkeypatch.setattr("legged.contact.impulses.solver.MAX_EXTRAPOLATION", reach)
        problems = [problem(seed, m=6, n=10, mu=0.6)[:2] for seed in range(20)]
        left.append([residual(*known, solution(*known, 40)) + 1e-15 for known in problems])
    assert np.median(np.log10(left[0])) < np.median(np.log10(left[1])) - 1.0


def change_of_energy(contacts, p):
    """Return the change of kinetic energy by impulses, from the velocity u_free."""
    return 0.5 * (p * (contacts.u_free + velocities(contacts, p))).sum()


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(60))
def test_impacts_never_add_energy(seed, restitution):
    """Random impacts with friction and restitution, from zero and from a wrong initial guess, ten sweeps."""
    contacts, _, rng = problem(seed)
    m = len(contacts.A)
    guess = np.abs(rng.normal(size=(m, 3))) * rng.integers(2) / np.abs(np.array(contacts.A)).max()
    ground, contacts = Rigid(threshold=0.0), contacts._replace(restitution=[restitution] * m)
    p, u, _ = solve_impulses(ground, contacts, [0.0] * m, contacts.u_free, 1e-3, np.zeros(m), guess)
    assert np.abs(u - velocities(contacts, p)).max() < 1e-12 * np.abs(contacts.u_free).max()
    assert change_of_energy(contacts, p) <= 1e-13 * np.abs(p * contacts.u_free).sum()
    assert (np.hypot(p[:, 1], p[:, 2]) <= contacts.mu * p[:, 0] + 1e-12 * np.abs(p).max()).all()


def test_newtons_restitution_alone_adds_energy():
    """Kane's paradox is among the problems above: with all of Newton's restitution some gain energy."""
    gains = []
    for seed in range(60):
        contacts, _, _ = problem(seed, m=3)
        target = np.maximum(-contacts.u_free[:, 0], 0.0)
        p = solution(contacts, target, 100)
        gains.append(change_of_energy(contacts, p) / np.abs(p * contacts.u_free).sum())
    assert max(gains) > 1e-3


@pytest.mark.parametrize("restitution", [0.0, 0.3, 1.0])
def test_one_frictionless_contact_bounces_by_its_restitution(restitution):
    contacts, _, _ = problem(3, m=1, n=3, mu=0.0)
    free = np.array([[-2.0, 0.4, 0.1]])
    contacts = contacts._replace(u_free=free, restitution=[restitution])
    solve = partial(solve_impulses, before=free, h=1e-3, gap=[0.0], guess=np.zeros((1, 3)))
    p, _, _ = solve(Rigid(), contacts, [0.0])
    assert abs(velocities(contacts, p)[0, 0] - restitution * 2.0) < 1e-14
    p, _, _ = solve(Rigid(threshold=3.0), contacts, [0.0])
    assert abs(velocities(contacts, p)[0, 0]) < 1e-14  # slower than the threshold: no bounce


@pytest.mark.parametrize("seed", range(30))
def test_projection_to_a_disc_is_the_nearest_point(seed):
    x, y, limit = np.random.default_rng(seed).normal(size=3) * [1.0, 1.0, 0.5]
    a, b = project_to_disc(x, y, abs(limit))
    angle = np.linspace(0.0, 2.0 * np.pi, 2001)
    rim = np.hypot(abs(limit) * np.cos(angle) - x, abs(limit) * np.sin(angle) - y).min()
    assert np.hypot(a, b) <= abs(limit) * (1 + 1e-15)
    if np.hypot(x, y) > abs(limit):
        assert np.hypot(a - x, b - y) <= rim + 1e-9
    else:
        assert (a, b) == (x, y)
    assert project_to_disc(0.0, 0.0, 0.0) == (0.0, 0.0)


def test_traced_impulses_equal_plain_ones():
    contacts, _, rng = problem(5, m=3)
    A = np.block(contacts.A)

    def solve(A, free, guess):
        blocks = [[A[3 * i : 3 * i + 3, 3 * j : 3 * j + 3] for j in range(3)] for i in range(3)]
        problem = ContactProblem(blocks, free, [0.6] * 3, restitution=[0.5] * 3)
        p, _, left = solve_impulses(Rigid(), problem, [0.0] * 3, free, 1e-3, np.zeros(3), guess)
        return p, left

    kernel = compile_function(solve, None, A=(9, 9), free=(3, 3), guess=(3, 3))
    for _ in range(5):
        free, guess = rng.normal(size=(3, 3)), np.zeros((3, 3))
        for ours, plain in zip(kernel(A, free, guess), solve(A, free, guess), strict=True):
            assert np.abs(ours - plain).max() < 1e-12
