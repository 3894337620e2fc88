"""Operational space: three algorithms for the inverse inertia of several points, and the consistent inverse."""

from functools import partial

import numpy as np
import pytest

import legged
import robots
from benchmarks.studies.sparsity import asimo_like, task_costs
from legged.algorithms import divide_and_conquer, operational
from legged.algorithms.operational import OperationalSpace
from legged.compiler import depth
from legged.errors import ArgumentError, DefinitionError, ShapeError, SingularError, UnknownNameError

SEEDS = range(300)


def case(seed: int, ends: int | None = None):
    """Return a random robot at a configuration, and ends anywhere on it, several on one link among them."""
    rng = np.random.default_rng(seed)
    links = int(rng.integers(2, 12)) if seed < 10 else None
    robot = legged.random_tree(seed, links, physics=seed % 2 == 1, shuffled=seed % 3 == 0)
    ends = int(rng.integers(1, 5)) if ends is None else ends
    points = [(int(link), rng.normal(size=3)) for link in rng.choice(len(robot.links), size=ends)]
    return robot, legged.random_configuration(robot, rng), points, rng


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_operational_inertias_agree(seed):
    robot, q, points, _ = case(seed)
    spins = any(body.rotor_momentum.any() for body in robot.bodies)
    by_propagators = operational.by_propagators(robot, q, points)
    scale = np.abs(by_propagators).max()
    for method in (operational.by_factors, *(() if spins else (operational.by_operators,))):
        assert np.abs(method(robot, q, points) - by_propagators).max() <= 1e-9 * scale
    J = np.concatenate([legged.point_jacobian(robot, q, *point) for point in points])
    M = legged.inertia_matrix(robot, q)
    rounding = 1e-15 * np.linalg.cond(M) * robot.nv if robot.nv else 0.0  # of a dense solution
    assert np.abs(J @ np.linalg.solve(M, J.T) - by_propagators).max() <= max(rounding, 1e-12) * max(scale, 1.0)


PARALLEL = {
    "constraint forces": operational.by_constraint_forces,
    **{version: partial(operational.by_division, version=version) for version in divide_and_conquer.VERSIONS},
}


@pytest.mark.parametrize("method", PARALLEL)
@pytest.mark.parametrize("seed", SEEDS)
def test_parallel_forms_give_the_inverse_operational_inertia(seed, method):
    """Lambda^-1 = C - B^T A^-1 B, and the inverse inertia between handles, for several points of a tree."""
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, int(rng.integers(2, 12)) if seed < 10 else None, shuffled=seed % 3 == 0)
    q = legged.random_configuration(robot, rng)
    points = [(int(link), rng.normal(size=3)) for link in rng.choice(len(robot.links), size=int(rng.integers(1, 5)))]
    ours, known = PARALLEL[method](robot, q, points), operational.by_propagators(robot, q, points)
    assert np.array_equal(ours, ours.T)
    assert np.abs(ours - known).max() <= 1e-9 * np.abs(known).max()


@pytest.mark.parametrize("method", PARALLEL)
def test_parallel_forms_take_logarithmic_depth(method):
    """Each doubling of the links adds a constant depth; that of the serial recursion doubles."""

    def depths(form, sizes):
        chains = [robots.chain(n, twist=0.7) for n in sizes]
        ends = [[(chain.links[-1].name, np.zeros(3))] for chain in chains]
        return [depth(partial(_of, form, end), chain, q=True) for chain, end in zip(chains, ends, strict=True)]

    ours, serial = depths(PARALLEL[method], (3, 7, 15)), depths(operational.by_propagators, (3, 7, 15))
    assert ours[2] - ours[1] == pytest.approx(ours[1] - ours[0], rel=0.2)
    assert serial[2] - serial[1] == pytest.approx(2 * (serial[1] - serial[0]), rel=0.05)


@pytest.mark.parametrize("base", [legged.FloatingBase(), legged.FixedBase(), legged.PlanarBase()], ids=lambda b: b.kind)
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_halves_give_the_inverse_operational_inertia(n, base):
    """At any cut, also where the inner half has fewer freedoms than six; 1e-12: rounding times conditioning."""
    robot, rng = robots.chain(n, twist=0.7, base=base), np.random.default_rng(n)
    q, link, point = legged.random_configuration(robot, rng), robot.links[-1].name, rng.normal(size=3)
    expected = operational.by_propagators(robot, q, [(link, point)])
    for cut in (None, *range(1, n + 1)):
        inverse_inertia = operational.by_halves(robot, q, link, point, cut)
        assert np.abs(inverse_inertia - expected).max() < 1e-12 * np.abs(expected).max()
    kernel = legged.compile(lambda robot, q: operational.by_halves(robot, q, link, point), robot)
    assert np.abs(kernel(q) - expected).max() < 1e-12 * np.abs(expected).max()


def test_two_halves_cost_hardly_more_than_the_serial_algorithm():
    """The halves are equal within a third of a body each, and joining them costs as much as three and a half bodies."""
    robot = robots.chain(31, twist=0.7)
    link, cut = robot.links[-1].name, operational.halves.middle(robot)

    def operations(function):
        counts = legged.count(function, None, q=robot.nq)
        return counts.M + counts.A

    serial = operations(lambda q: operational.by_propagators(robot, q, [(link, np.zeros(3))]))
    whole = operations(lambda q: operational.by_halves(robot, q, link, np.zeros(3)))
    inner = operations(lambda q: np.concatenate([x.ravel() for x in operational.halves.inner_half(robot, q, cut)]))
    assert whole < 1.07 * serial
    assert inner == pytest.approx(serial / 2, rel=0.02)


def test_halves_refuse_branches_and_other_bodies():
    robot = robots.chain(4, twist=0.7)
    q = robot.neutral()
    with pytest.raises(DefinitionError, match="must be on the last body of '4-link chain', 'link4'"):
        operational.by_halves(robot, q, "link2", np.zeros(3))
    with pytest.raises(ArgumentError, match="cut must be"):
        operational.by_halves(robot, q, "link4", np.zeros(3), 5)
    quadruped = robots.spatial_quadruped()
    with pytest.raises(DefinitionError, match=r"needs a serial robot; .* has branches"):
        operational.by_halves(quadruped, quadruped.neutral(), quadruped.links[-1].name, np.zeros(3))


def test_parallel_forms_refuse_points_without_inertia_and_other_versions():
    builder = legged.RobotBuilder("hinged", legged.Link("base", legged.box_inertia(2, (0.3, 0.2, 0.1))))
    builder.add(legged.Revolute("first", "x"), legged.Link("massless"), to="base")
    builder.add(
        legged.Revolute("second", "y"), legged.Link("end", legged.box_inertia(1, (0.3, 0.2, 0.1))), to="massless"
    )
    robot = builder.build()
    for form in PARALLEL.values():
        with pytest.raises(DefinitionError, match="need inertia in 'massless', which carries a point"):
            form(robot, robot.neutral(), [("massless", np.zeros(3))])
    with pytest.raises(UnknownNameError, match="version"):
        operational.by_division(robot, robot.neutral(), [("end", np.zeros(3))], version="exact")


def test_points_on_the_base_on_one_body_and_on_a_common_path():
    robot = robots.humanoid()
    q = legged.random_configuration(robot, np.random.default_rng(0))
    leg = [link.name for link in robot.links if link.body in robot.ancestors(robot.links[-1].body)]
    points = [(leg[0], np.ones(3)), (leg[-1], np.zeros(3)), (leg[-1], np.ones(3)), (leg[len(leg) // 2], np.ones(3))]
    ours, others = (f(robot, q, points) for f in (operational.by_propagators, operational.by_factors))
    assert np.abs(ours - others).max() < 1e-9 * np.abs(others).max()


def test_propagators_cost_less_for_points_with_a_common_path():
    """Each pair of ends costs one product, not a path: from 2 to 4 ends the cost of the recursion grows faster."""
    trunk = legged.RobotBuilder("fork", legged.Link("base", legged.box_inertia(2, (0.1, 0.2, 0.3))))
    at = "base"
    for k in range(8):
        link = legged.Link(f"spine{k}", legged.box_inertia(1.0, (0.1, 0.1, 0.2)))
        at = trunk.add(legged.Revolute(f"spine{k}", "xyz"[k % 3]), link, to=at, at=(0, 0.1, 0.2)) and f"spine{k}"
    for side in range(4):
        last = at
        for k in range(3):
            name = f"arm{side}{k}"
            link = legged.Link(name, legged.box_inertia(1.0, (0.1, 0.1, 0.2)))
            trunk.add(legged.Revolute(name, "xyz"[k % 3]), link, to=last, at=(0.1 * side, 0, 0.2))
            last = name
    robot = trunk.build()
    ends = [(f"arm{side}2", np.array([0, 0, 0.2])) for side in range(4)]

    def cost(method, count):
        return legged.count(partial(_of, method, ends[:count]), robot, q=True).total

    ours, recursion = ([cost(m, n) for n in (2, 4)] for m in (operational.by_propagators, operational.by_operators))
    assert ours[0] < recursion[0] and ours[1] < recursion[1]
    assert ours[1] - ours[0] < recursion[1] - recursion[0]


def _of(method, points, robot, q):
    return method(robot, q, points)


@pytest.mark.parametrize("seed", range(6))
def test_operational_forces_produce_the_desired_acceleration(seed):
    robot, q, points, rng = moving_end(seed)
    space = OperationalSpace(robot, q, points, rows=_free_rows(robot, q, points))
    v, rest = rng.normal(size=(2, robot.nv))
    xdd, w = rng.normal(size=len(space.rows)), {robot.links[-1].name: rng.normal(size=6)}
    vdot = legged.forward_dynamics(robot, q, v, space.forces(v, xdd, rest, w), w)
    got = legged.point_twist_rates(robot, q, v, vdot, points).reshape(-1)[list(space.rows)]
    assert got == pytest.approx(xdd, abs=1e-9 * np.linalg.cond(space.mobility) ** 0.5 * max(1.0, np.abs(vdot).max()))


def moving_end(seed: int):
    """Return `case`, with one end, on the last link; links turn or slide, so that the end moves."""
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, 7, joints=("revolute", "prismatic", "ball"), physics=True, shuffled=seed % 2 == 0)
    end: list[tuple[str | int, np.ndarray]] = [(len(robot.links) - 1, rng.normal(size=3))]
    return robot, legged.random_configuration(robot, rng), end, rng


def _free_rows(robot, q, points):
    """Return rows of the points' Jacobian that are independent, as many as there are."""
    rows: tuple[int, ...] = ()
    J = np.concatenate([legged.point_jacobian(robot, q, *point) for point in points])
    for row in range(len(J)):
        if np.linalg.matrix_rank(J[[*rows, row]], tol=0.05) > len(rows):
            rows = (*rows, row)
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_consistent_inverse_and_its_null_space(seed):
    """J J_bar = 1; forces N^T tau at the joints do not accelerate the ends, with or without loads."""
    robot, q, points, rng = moving_end(seed)
    space = OperationalSpace(robot, q, points, rows=_free_rows(robot, q, points))
    size = len(space.rows)
    cond = np.linalg.cond(space.mobility)
    assert np.abs(space.J @ space.consistent_inverse - np.eye(size)).max() < 1e-13 * cond
    M, N = legged.inertia_matrix(robot, q), space.null_space_projector
    assert np.abs(space.J @ np.linalg.solve(M, N.T @ rng.normal(size=robot.nv))).max() < 1e-11 * cond
    dense = np.linalg.solve(M, space.J.T) @ space.inertia
    assert np.abs(space.consistent_inverse - dense).max() < 1e-13 * np.linalg.cond(M) * np.abs(dense).max()
    assert np.abs(N @ N - N).max() < 1e-13 * cond * np.abs(N).max() and np.abs(space.J @ N).max() < 1e-12 * cond
    assert np.trace(N) == pytest.approx(robot.nv - size, abs=1e-12 * cond)
    assert np.abs(M @ N - (M @ N).T).max() < 1e-12 * cond * np.abs(M).max()  # M-orthogonal


@pytest.mark.slow
def test_the_sparse_pseudoinverse_saves_fifty_thousand_operations():
    """Featherstone 2010, for a robot like ASIMO with several end effectors; the projector saves more."""
    robot = asimo_like()
    assert robot.nv == 40
    ((sparse, dense),) = task_costs(robot, ["inertia-weighted pseudoinverse"]).values()
    assert sparse + 50_000 < dense


def loaded(load: legged.Inertia | None):
    """Return an arm of seven joints, which may carry a load in its hand."""
    arm = legged.Limb()
    for k, axis in enumerate("zyzyzyx"):
        arm.add(
            legged.Revolute(f"j{k}", axis),
            legged.Link(f"l{k}", legged.box_inertia(1, (0.1, 0.12, 0.3))),
            at=(0, 0, 0.3),
        )
    base = legged.Link("base", legged.box_inertia(5, (1, 0.3, 0.2)))
    builder = legged.RobotBuilder("arm", base, base=legged.FixedBase()).attach(arm, to="base")
    if load is not None:
        builder.add(legged.Fixed("grip"), legged.Link("load", load), to="l6", at=(0, 0, 0.2))
    return builder.build()


def test_consistent_inverse_is_independent_of_the_load():
    """Featherstone and Khatib 1997: for a task of all six directions a load in the hand changes Lambda alone."""
    light, heavy = loaded(None), loaded(legged.box_inertia(7.0, (0.2, 0.5, 0.1), (0.05, 0.1, 0.2)))
    q = np.random.default_rng(1).normal(size=7)
    hand = [("l6", np.array([0.0, 0.02, 0.2]))]
    free, carrying = OperationalSpace(light, q, hand), OperationalSpace(heavy, q, hand)
    change = carrying.inertia - free.inertia
    assert np.linalg.eigvalsh(change)[-1] > 7.0  # the load's own inertia at the hand, to the last digits
    assert np.abs(change[3:, 3:] - 7.0 * np.eye(3)).max() < 1e-9 * np.abs(carrying.inertia).max()
    assert np.abs(carrying.consistent_inverse - free.consistent_inverse).max() < 1e-11
    part = {"rows": (3, 4, 5)}  # the load turns with the hand: it is not held in these rows alone
    free, carrying = OperationalSpace(light, q, hand, **part), OperationalSpace(heavy, q, hand, **part)
    assert np.abs(carrying.consistent_inverse - free.consistent_inverse).max() > 1e-3


def test_the_inertia_of_no_points_is_empty():
    robot = robots.spatial_quadruped()
    for method in (operational.by_propagators, operational.by_factors, operational.by_operators):
        assert method(robot, robot.neutral(), []).shape == (0, 0)


def test_operational_space_compiles_and_refuses_invalid_arguments():
    robot = robots.spatial_quadruped()
    q = legged.random_configuration(robot, np.random.default_rng(0))
    feet = [(contact.link, contact.position) for contact in robot.contacts]
    kernel = legged.compile(partial(_of, operational.by_propagators, feet), robot, q=True)
    plain = operational.by_propagators(robot, q, feet)
    assert np.abs(kernel(q) - plain).max() < 1e-12 * np.abs(plain).max()
    with pytest.raises(ShapeError, match="different numbers from 0 to 5"):
        OperationalSpace(robot, q, feet[:1], rows=(3, 6))
    with pytest.raises(ArgumentError, match="a row must be a whole number"):
        OperationalSpace(robot, q, feet[:1], rows=(0.5,))
    with pytest.raises(SingularError):
        OperationalSpace(loaded(None), np.zeros(7), [("l6", np.zeros(3))]).inertia  # noqa: B018
    with pytest.raises(UnknownNameError):
        operational.by_propagators(robot, q, [("hand", np.zeros(3))])
    coupled = next(r for r in (legged.random_tree(s, coupled=True) for s in range(99)) if r.followers)
    for method in (operational.by_propagators, operational.by_factors, operational.by_operators):
        with pytest.raises(DefinitionError, match="joints that follow others"):
            method(coupled, coupled.neutral(), [(0, np.zeros(3))])
