"""Random robots: reproducible, with the requested options; random configurations lie on the manifold."""

import numpy as np
import pytest

import legged
import robots
from legged.errors import LeggedError

SEEDS = range(30)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_seed_gives_the_same_robot(seed):
    a, b, c = legged.random_tree(seed), legged.random_tree(seed), legged.random_tree(seed + 1000)
    q = legged.random_configuration(a, np.random.default_rng(0))
    assert np.array_equal(q, legged.random_configuration(b, np.random.default_rng(0)))
    assert np.array_equal(legged.inertia_matrix(a, q), legged.inertia_matrix(b, q))
    assert a.mass != c.mass


@pytest.mark.parametrize("seed", SEEDS)
def test_options_are_respected(seed):
    robot = legged.random_tree(seed, 9, joints=("revolute", "prismatic"), bases=("planar",), gravity=(0, 0, -1.6))
    assert len(robot.links) == 10
    assert {joint.kind for joint in robot.joints} <= {"revolute", "prismatic"}
    assert robot.base.kind == "planar"
    assert np.array_equal(robot.gravity, [0, 0, -1.6])


@pytest.mark.parametrize("seed", SEEDS)
def test_branching_ranges_from_chains_to_trees(seed):
    chain = legged.random_tree(seed, 12, branching=0.0)
    bush = legged.random_tree(seed, 12, branching=1.0)
    assert max(dict(chain.graph.out_degree()).values()) == 1
    assert max(dict(bush.graph.out_degree()).values()) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_parallel_axes_are_parallel_and_perpendicular_ones_perpendicular(seed):
    for axes in ("parallel", "perpendicular"):
        robot = legged.random_tree(seed, 8, joints=("revolute",), axes=axes, bases=("fixed",))
        q = legged.random_configuration(robot, np.random.default_rng(seed))
        J = {joint.child: legged.point_jacobian(robot, q, joint.child)[:3, joint.v][:, 0] for joint in robot.joints}
        for parent, child in robot.graph.edges:
            if parent in J:
                wanted = 1.0 if axes == "parallel" else 0.0
                assert abs(J[parent] @ J[child]) == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_configurations_have_unit_quaternions_and_avoid_gimbal_lock(seed):
    robot = legged.random_tree(seed)
    q = legged.random_configuration(robot, np.random.default_rng(seed))
    for state in (q, robot.neutral()):
        assert state.shape == (robot.nq,)
        where = [body.q for body in robot.bodies if body.kind == "ball"]
        where += [slice(0, 4)] if robot.base.kind == "floating" else []
        assert [np.linalg.norm(state[part]) for part in where] == pytest.approx([1.0] * len(where), abs=1e-14)
    assert legged.conditioning(robot, q).max() < 1e9


TURN, LOCK = (-np.pi, np.pi), 0.2  # [rad]


@pytest.mark.parametrize(
    ("base", "angles"),
    [
        (legged.PlanarBase(), [TURN]),
        (legged.EulerBase("zxy"), [TURN, (LOCK - np.pi / 2, np.pi / 2 - LOCK), TURN]),
        (legged.EulerBase("zxz"), [TURN, (LOCK, np.pi - LOCK), TURN]),
    ],
)
def test_random_angles_and_displacements_fill_their_ranges(base, angles):
    robot, rng = robots.chain(1, base=base), np.random.default_rng(0)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(300)])
    displacements = [(-1.0, 1.0)] * (robot.base.nq - len(angles))  # [m]
    for column, (low, high) in zip(q.T, [*angles, *displacements, TURN], strict=True):
        assert low <= column.min() < low + 0.05 * (high - low)
        assert high >= column.max() > high - 0.05 * (high - low)


def test_neutral_puts_the_base_at_the_origin_and_every_joint_at_zero():
    robot = legged.random_tree(12, 5, joints=("ball", "fixed"), bases=("floating",))
    R, o = legged.link_poses(robot, robot.neutral())
    assert R[0] == pytest.approx(np.eye(3), abs=0)
    assert o[0] == pytest.approx(np.zeros(3), abs=0)
    for parent, child, edge in robot.graph.edges(data=True):
        p, c = robot.link(parent).index, robot.link(child).index
        assert R[c] == pytest.approx(R[p] @ edge["rotation"], abs=1e-14)
        assert o[c] == pytest.approx(o[p] + R[p] @ edge["at"], abs=1e-14)


def test_links_of_a_tapered_tree_shrink_with_their_distance_from_the_base():
    """Lengths by the ratio, masses by its cube, inertias by its fifth power; each link begins at its parent's end."""
    ratio, n = 0.7, 7
    robot = robots.tree(n, branching=2, taper=ratio, twist=0.4)
    first = robot.links[0].inertia
    depths = [0, 1, 1, 2, 2, 2, 2, 3]
    for k, depth in enumerate(depths):
        link, size = robot.link(f"link{k}"), ratio**depth
        assert link.inertia.mass == pytest.approx(size**3, rel=1e-12)
        assert link.inertia.center == pytest.approx([0, 0, 0.5 * size], abs=1e-12)
        assert link.inertia.tensor == pytest.approx(size**5 * first.tensor, abs=1e-12)
    R, origins = legged.link_poses(robot, robot.neutral())
    for k in range(1, n + 1):
        parent, own = robot.link(f"link{(k - 1) // 2}").index, robot.link(f"link{k}").index
        end = origins[parent] + R[parent] @ (0, 0, ratio ** depths[(k - 1) // 2])
        assert origins[own] == pytest.approx(end, abs=1e-12)
        assert R[parent].T @ R[own] == pytest.approx(legged.rpy(0.0, 0.0, 0.4), abs=1e-12)
    assert first.mass == 1.0 and first.tensor[2, 2] == pytest.approx(0.5 * 0.05**2)
    assert first.tensor[0, 0] == pytest.approx(1 / 12 + 0.25 * 0.05**2)  # about the center of mass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": "parralel"}, "no choice of axes named 'parralel'; did you mean 'parallel'"),
        ({"branching": 1.5}, "branching must be at most 1"),
        ({"joints": ()}, "at least one type"),
        ({"bases": ()}, "at least one type"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(LeggedError, match=message):
        legged.random_tree(0, 3, **options)
