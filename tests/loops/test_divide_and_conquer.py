"""Divide and conquer with closed loops: equal to elimination, imposed in the right assemblies, of logarithmic depth."""

from functools import partial

import numpy as np
import pytest
from oracles.looped import JOINTS, looped, parallelogram, two_arms

import legged
import robots
from benchmarks.studies.parallel_forms import four_bars
from legged import loops
from legged.algorithms.divide_and_conquer import VERSIONS
from legged.algorithms.divide_and_conquer.assemblies import Assembly, assembly_tree
from legged.algorithms.operators import closed_chain
from legged.compiler import depth
from legged.errors import DefinitionError
from legged.loops import divide_and_conquer
from legged.loops.assembly import closed_configuration


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("base", [legged.FixedBase(), legged.FloatingBase()])
def test_two_welded_arms_equal_the_operators_closed_chain(base, version):
    robot, rng = two_arms(base), np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    R, o = legged.frame_pose(robot, q, legged.Frame("left_link6", (0, 0, 0.3)), "right_link6")
    grip = {"at": (0, 0, 0.3), "child_at": o, "child_rotation": R}
    closed = loops.close(robot, legged.Fixed("grip"), parent="left_link6", child="right_link6", **grip)
    v = loops.consistent_velocity(closed, q, v)
    ours = divide_and_conquer.forward_dynamics(closed, q, v, tau, version=version)
    theirs, _ = closed_chain(robot, q, v, tau, ("left_link6", np.array([0, 0, 0.3])), ("right_link6", o))
    assert np.abs(ours - theirs).max() < 1e-9 * np.abs(theirs).max()
    assert np.abs(ours - legged.forward_dynamics(robot, q, v, tau)).max() > 1e-2 * np.abs(theirs).max()


def apart(closed, q, rng, version) -> tuple[float, float]:
    """Return the relative difference of divide and conquer to `legged.loops`, in accelerations and in forces.

    To the accelerations and forces with the loops or, since these may leave no motion at all, without them.
    """
    robot = closed.robot
    v, tau = rng.normal(size=(2, robot.nv))
    v, wrenches = loops.consistent_velocity(closed, q, v), {robot.links[-1].name: rng.normal(size=6)}
    ours = divide_and_conquer.forward_dynamics(closed, q, v, tau, wrenches, version=version)
    theirs = loops.forward_dynamics(closed, q, v, tau, wrenches)
    free, M = legged.forward_dynamics(robot, q, v, tau, wrenches), legged.inertia_matrix(robot, q)
    scale = max(np.abs(theirs).max(), np.abs(free).max())
    return np.abs(ours - theirs).max() / scale, np.abs(M @ (ours - theirs)).max() / np.abs(M @ free).max()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 40))])
@pytest.mark.parametrize("name", JOINTS)
def test_divide_and_conquer_closes_loops_by_any_joint(name, seed, version):
    """To the 1e-9 of all forward dynamics."""
    closed, q, rng = looped(seed, JOINTS[name][0])
    assert max(apart(closed, q, rng, version)) < 1e-9


def standing_biped(feet: str):
    robot, q = robots.planar_biped(), np.array([0, 0, 0.5, 0.6, -0.7, 0.1, 0.1, -0.7, 0.6])
    return loops.pin_contacts(robot, q, [f"{foot}_{end}" for foot in feet for end in ("heel", "toe")]), q


def five_bar_leg():
    closed = robots.five_bar_leg()
    return closed, closed_configuration(closed)[0]


def delta():
    closed = robots.delta()
    return closed, closed_configuration(closed)[0]


def four_bar():
    closed = robots.four_bar()
    return closed, loops.assemble(closed, np.array([1.0, -0.7, 1.5]), hold=["crank joint"])


def bars(third: bool, angle: float):
    return parallelogram(third), angle * np.array([1, -1, *[1] * (1 + third)])


MECHANISMS = {  # how many rows there are, and how many are independent
    "four-bar": (four_bar, 5, 2),
    "parallelogram": (partial(bars, False, 0.7), 5, 2),
    "parallelogram with an extra bar": (partial(bars, True, 0.7), 10, 3),
    "flat parallelogram with an extra bar": (partial(bars, True, 0.0), 10, 2),
    "five-bar leg": (five_bar_leg, 5, 2),
    "delta": (delta, 15, 15),
    "biped on a foot": (partial(standing_biped, "a"), 6, 3),
    "biped on both feet": (partial(standing_biped, "ab"), 12, 6),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_divide_and_conquer_handles_loops_that_share_joints_and_redundant_constraints(name):
    """Mechanisms of thin rods, which the pivoted version accepts; in flat postures the constraints are inconsistent."""
    make, rows, rank = MECHANISMS[name]
    closed, q = make()
    mobility = loops.mobility(closed, q)
    assert (mobility.rows, mobility.rank) == (rows, rank)
    assert max(apart(closed, q, np.random.default_rng(0), "pivoted")) < 1e-9


@pytest.mark.parametrize("version", VERSIONS)
def test_loops_are_imposed_in_the_first_assembly_that_has_their_bodies(version):
    closed = four_bars(3)
    q = np.array([0.7, -0.7, 0.7, 0.3, 1.0, -1.0, 1.0, -0.5, 0.4, -0.4, 0.4, 0.2])
    assert max(apart(closed, loops.assemble(closed, q), np.random.default_rng(0), version)) < 1e-9
    whole = assembly_tree(
        [-1, 0, 1, 1, 2, 4, 5, 5], {0: frozenset({2, 3}), 1: frozenset({6, 7}), 2: frozenset({-1, 3})}
    )
    where, waiting = {}, [(whole, 0)]
    while waiting:
        part, level = waiting.pop()
        if isinstance(part, Assembly):
            where |= dict.fromkeys(part.groups, level)
            waiting += [(part.inner, level + 1), (part.outer, level + 1)]
    assert where[2] == 0 and where[0] >= 2 <= where[1]  # the ground, and within either half of the rest


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_depth_of_divide_and_conquer_with_loops_is_logarithmic(version):
    """Each doubling of the stacked four-bars adds a constant depth; the depth of elimination doubles."""
    depths = [looped_depth(partial(divide_and_conquer.forward_dynamics, version=version), n) for n in (2, 4, 8)]
    assert depths[1] - depths[0] == pytest.approx(depths[2] - depths[1], rel=0.1)
    serial = [looped_depth(loops.forward_dynamics, n) for n in (2, 4)]
    assert serial[1] > 2 * serial[0]


def test_constraints_on_immobile_points_change_nothing():
    """A base fixed twice, and a rod's end on the axis of the arm that it holds."""
    robot = two_arms(legged.FixedBase())
    closed = loops.close(robot, legged.Fixed("weld"), parent=None, child="base")
    closed = closed.close(loops.Rod("rod", 0.4), parent=None, child="left_link0")
    q, v, tau = np.random.default_rng(0).normal(size=(3, robot.nv))
    assert loops.mobility(closed, q).rank == 0
    assert divide_and_conquer.forward_dynamics(closed, q, v, tau) == pytest.approx(
        loops.forward_dynamics(closed, q, v, tau), rel=1e-9
    )


def looped_depth(method, cells: int) -> int:
    closed = four_bars(cells)
    robot = closed.robot
    return depth(partial(method, closed), None, q=robot.nq, v=robot.nv, tau=robot.nv)


def test_compiled_divide_and_conquer_handles_redundant_constraints():
    for closed, q in (four_bar(), bars(True, 0.7)):
        robot, rng = closed.robot, np.random.default_rng(0)
        v, tau = rng.normal(size=(2, robot.nv))
        v = loops.consistent_velocity(closed, q, v)
        method = partial(divide_and_conquer.forward_dynamics, closed)
        kernel = legged.compile(method, None, q=robot.nq, v=robot.nv, tau=robot.nv)
        theirs = loops.forward_dynamics(closed, q, v, tau)
        assert kernel(q, v, tau) == pytest.approx(theirs, abs=1e-9 * np.abs(theirs).max())


def test_loops_at_massless_bodies_are_refused():
    builder = legged.RobotBuilder("bare", legged.Link("base", legged.box_inertia(2, (0.3, 0.2, 0.1))))
    builder.add(legged.Revolute("bare joint", "x"), legged.Link("massless"), to="base")
    builder.add(
        legged.Revolute("joint", "y"), legged.Link("arm", legged.box_inertia(1, (0.3, 0.2, 0.1))), to="massless"
    )
    bare = loops.close(builder.build(), legged.Spherical("pin"), parent=None, child="massless")
    with pytest.raises(DefinitionError, match="'pin' closes a loop at 'massless', which has no mass"):
        divide_and_conquer.forward_dynamics(bare, bare.robot.neutral(), np.zeros(8), np.zeros(8))
