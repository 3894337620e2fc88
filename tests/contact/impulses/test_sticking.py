"""The direct solution for contacts that stick: compared with velocities from dense matrices, and in motion."""

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.contact import Rigid
from legged.contact.detection.pairs import Side
from legged.contact.impulses import impact, solver, sticking
from legged.contact.impulses.delassus import Contacts
from legged.contact.impulses.solver import ContactProblem, residual, velocities

CORNERS = np.array([[0.1, 0.05, 0.0], [0.1, -0.05, 0.0], [-0.08, -0.04, 0.0], [-0.08, 0.04, 0.0]])  # [m]


def feet(seed: int, counts: tuple[int, ...]) -> tuple[ContactProblem, np.random.Generator]:
    """Return contacts of feet with the terrain, `counts` of them on each foot, in one random frame.

    The robot has legs of six joints for two feet, so that their twists are independent, otherwise of three.
    """
    rng, robot = np.random.default_rng(seed), robots.spatial_biped() if len(counts) == 2 else robots.hexapod()
    q = legged.random_configuration(robot, rng)
    R, origins = legged.link_poses(robot, q)
    ends = list(dict.fromkeys(contact.link for contact in robot.contacts))[: len(counts)]
    frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    sides, points = [], []
    for end, count in zip(ends, counts, strict=True):
        link = robot.links[end]
        at = origins[end] + R[end] @ rng.uniform(-0.1, 0.1, 3)
        sides += [(Side(0, link.index, link.body), None)] * count
        points += [at + frame.T @ corner[[2, 0, 1]] for corner in CORNERS[:count]]
    m = len(points)
    contacts = Contacts.of([robot], sides, [q], [np.zeros(robot.nv)], np.array([frame] * m), np.array(points))
    blocks, groups = contacts.delassus()
    free = contacts.velocities([rng.normal(size=robot.nv)])
    return ContactProblem(blocks, free, [1.0] * m, groups, contacts.places()), rng


@pytest.mark.parametrize("counts", [(1,), (1, 1, 1), (4,), (4, 3), (3, 1, 4), (4, 1, 1, 1, 1, 1)])
def test_groups_that_press_take_their_target_velocities_and_the_others_have_no_impulse(counts):
    for seed in range(5):
        problem, rng = feet(seed, counts)
        assert sticking.is_direct(problem)
        guess = rng.uniform(0.1, 1.0, (sum(counts), 3))
        lifted = problem.groups.members[-1] if len(counts) > 2 else []
        guess[lifted[:1], 0] = 0.0
        p = sticking.sticking_impulses(problem, np.full(len(guess), 0.2), guess)
        pressing = [i for i in range(len(guess)) if i not in lifted]
        scale = np.abs(problem.u_free).max()
        assert np.abs(velocities(problem, p)[pressing] - [0.2, 0.0, 0.0]).max() < 1e-9 * scale
        assert not p[lifted].any()


@pytest.mark.parametrize("counts", [(1, 1), (4, 1), (3, 4), (1, 4)])
def test_groups_between_two_bodies_take_their_target_velocities(counts):
    """A block on the trunk of a quadruped and on the ground, with `counts` contacts: all bodies are coupled."""
    for seed in range(5):
        rng, robot = np.random.default_rng(seed), robots.spatial_quadruped()
        block = legged.contact.FreeBody("block", legged.box_inertia(1.8, (0.1, 0.2, 0.3)), []).robot()
        qs = [legged.random_configuration(each, rng) for each in (robot, block)]
        frames, trunk = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in counts], robot.links[0]
        foot = robot.links[robot.contacts[0].link]
        between, below = (Side(0, trunk.index, trunk.body), Side(1, 0, 0)), (Side(1, 0, 0), None)
        sides = [between] * counts[0] + [below] * counts[1] + [(Side(0, foot.index, foot.body), None)]
        points, axes = [], [frame for frame, count in zip(frames, counts, strict=True) for _ in range(count)]
        for frame, count in zip(frames, counts, strict=True):
            points += [rng.normal(size=3) + frame.T @ corner[[2, 0, 1]] for corner in CORNERS[:count]]
        extra = [np.zeros(each.nv) for each in (robot, block)]
        places = np.array([*points, rng.normal(size=3)])
        contacts = Contacts.of([robot, block], sides, qs, extra, np.array([*axes, frames[0]]), places)
        blocks, groups = contacts.delassus()
        free = contacts.velocities([rng.normal(size=each.nv) for each in (robot, block)])
        problem = ContactProblem(blocks, free, [1.0] * len(places), groups, contacts.places())
        assert sticking.is_direct(problem)
        p = sticking.sticking_impulses(problem, np.full(len(places), 0.2), rng.uniform(0.1, 1.0, (len(places), 3)))
        assert np.abs(velocities(problem, p) - [0.2, 0.0, 0.0]).max() < 1e-8 * np.abs(free).max()


def test_targets_of_a_foot_may_differ_as_those_of_a_plane():
    problem, rng = feet(0, (4, 4))
    target = np.array([0.1 * x - 0.3 * y for x, y, _ in [*CORNERS, *CORNERS]])
    p = sticking.sticking_impulses(problem, target, rng.uniform(0.1, 1.0, (8, 3)))
    assert np.abs(velocities(problem, p)[:, 0] - target).max() < 1e-9 * np.abs(problem.u_free).max()


def test_indeterminate_impulses_stay_those_of_the_guess():
    """The change of the impulses of a foot has no part that changes neither their force nor their moment."""
    problem, rng = feet(1, (4,))
    guess = rng.uniform(0.1, 1.0, (4, 3))
    change = sticking.sticking_impulses(problem, np.zeros(4), guess) - guess
    C = np.vstack([maps[0][1] for maps in problem.groups.maps])
    internal = np.linalg.svd(C)[0][:, 6:]
    assert np.abs(internal.T @ change.ravel()).max() < 1e-11 * np.abs(change).max()


def test_two_contacts_on_a_foot_and_many_feet_are_left_to_sweeps():
    assert not sticking.is_direct(feet(0, (2, 4))[0])
    assert not sticking.is_direct(feet(0, (4, 4, 4, 4, 4))[0])
    assert sticking.is_direct(feet(0, (4, 4, 4, 4))[0])


@pytest.mark.parametrize("name", ["spatial_quadruped", "spatial_biped"])
def test_a_standing_robot_needs_no_sweeps(name):
    """One sweep, which is far from converged, leaves the exact impulses once the robot stands."""
    robot = getattr(robots, name)()
    home = controllers.home_of(robot)
    law = controllers.JointPD(controllers.Posture(tuple(home.angles), home.base_height), kp=300.0, kd=15.0)
    run = legged.simulate(robot, law, ground=Rigid(0.8, sweeps=1, iterations=0), until=0.5, sample=0.01)
    assert run.contacts.residual[-10:].max() < 1e-11


def test_sweeps_follow_where_contacts_slide():
    problem = feet(2, (1, 1, 1))[0]._replace(mu=[0.05] * 3)
    guess = np.tile([1.0, 0.0, 0.0], (3, 1))
    solution = impact.solve_impulses(
        Rigid(0.05, sweeps=2000, iterations=0), problem, [0.0] * 3, problem.u_free, 1e-3, np.zeros(3), guess
    )
    assert residual(problem, [0.0] * 3, sticking.sticking_impulses(problem, [0.0] * 3, guess)) > 1e-3
    assert solution.residual < 1e-9


def test_the_direct_solution_is_that_of_the_step_where_the_contact_law_holds():
    """Impulses p of contacts that stick, from a guess that is 1 % larger: u_free is -A p, and the targets are zero."""
    problem, rng = feet(3, (4, 4))
    p = np.column_stack([rng.uniform(1.0, 2.0, 8), rng.uniform(-0.2, 0.2, (8, 2))])
    problem = problem._replace(u_free=-velocities(problem._replace(u_free=0.0 * p), p))
    law, target = Rigid(1.0, sweeps=1, iterations=0), [0.0] * 8
    solution = impact.solve_impulses(law, problem, target, problem.u_free, 1e-3, np.zeros(8), 1.01 * p)
    assert solution.residual < 1e-11
    assert residual(problem, target, solution.p) < 1e-11
    assert np.abs(solution.p.sum(axis=0) - p.sum(axis=0)).max() < 1e-6 * p.sum()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_direct_solution_is_accepted_up_to_rounding(dtype):
    """One sweep from impulses that are 10 % too large leaves a residual of 1 % of the velocities or more."""
    problem, rng = feet(3, (4, 4))
    p = np.column_stack([rng.uniform(1.0, 2.0, 8), rng.uniform(-0.2, 0.2, (8, 2))])
    free, law = -velocities(problem._replace(u_free=0.0 * p), p), Rigid(1.0, sweeps=1, iterations=0)

    def step(free, guess):
        own = problem._replace(u_free=free)
        return impact.solve_impulses(law, own, [0.0] * 8, free, 1e-3, np.zeros(8), guess).p

    kernel = legged.compile(step, None, free=free.shape, guess=p.shape, dtype=dtype)
    impulses = kernel(free, 1.1 * p).astype(float)
    allowed = 1e-11 if dtype == "float64" else 1e-4 * np.abs(free).max()
    assert residual(problem._replace(u_free=free), [0.0] * 8, impulses) < allowed
    left = solver.gauss_seidel(problem._replace(u_free=free), [0.0] * 8, 1.1 * p, 1)
    assert residual(problem._replace(u_free=free), [0.0] * 8, left) > 0.01 * np.abs(free).max()


@pytest.mark.parametrize("angle", [0.0, 0.3, 0.8])
def test_impulses_across_the_plane_of_a_planar_robot_stay_as_in_the_guess(angle):
    """The mobility across the plane is zero up to rounding, whose quotients would be arbitrary.

    What remains is the rounding of velocities of 1 m/s over the regularization.
    """
    robot, rng = robots.planar_hopper(), np.random.default_rng(1)
    contact, q = robot.contacts[0], legged.random_configuration(robot, rng)
    side = Side(0, robot.links[contact.link].index, robot.links[contact.link].body), None
    frame = np.array([[0.0, 0.0, 1.0], [np.cos(angle), np.sin(angle), 0.0], [-np.sin(angle), np.cos(angle), 0.0]])
    point = legged.point_positions(robot, q, [(contact.link, contact.position)])[0]
    guess = np.array([[0.3, 0.0, 0.0]])

    def impulses(v, guess):
        contacts = Contacts.of([robot], [side], [q], [np.zeros(robot.nv)], np.array([frame]), np.array([point]))
        blocks, groups = contacts.delassus()
        problem = ContactProblem(blocks, contacts.velocities([v]), [1.0], groups, contacts.places())
        return sticking.sticking_impulses(problem, [0.0], guess)

    v = rng.normal(size=robot.nv)
    p, traced = impulses(v, guess), legged.compile(impulses, None, v=robot.nv, guess=guess.shape)(v, guess)
    np.testing.assert_allclose(traced, p, atol=1e-7)
    assert abs((p @ frame)[0, 1]) < 1e-7  # [N s]
