"""Legs: closed-form inverse kinematics, and the geometry that is detected from a robot's links and joints."""

from __future__ import annotations

import numpy as np
import pytest

import legged
import robots
from controllers import Stand, Trot, legs_of
from controllers.gaits.leg import Leg, paper_biped, paper_hexapod, paper_quadruped, two_link_angles
from legged import FloatingBase, Limb, Link, Prismatic, Revolute, RobotBuilder, Universal, rod_inertia, taylor
from legged.errors import DefinitionError, ReachError, ShapeError

LEGS = {
    "equal links": Leg("leg", (0.1, 0.2, -0.3), 0.5, 0.5),
    "knee backward": Leg("leg", (0.1, 0.2, -0.3), 0.4, 0.5, knee="backward"),
    "long thigh": Leg("leg", (0.1, 0.2, -0.3), 0.6, 0.35),
    "flat foot": Leg("leg", (0.1, 0.2, -0.3), 0.4, 0.5, flat_foot=True, sole=0.06),
    "abduction": Leg("leg", (0.1, 0.2, -0.3), 0.4, 0.5, abducts=True),
    "offset": Leg("leg", (0.1, 0.2, -0.3), 0.5, 0.4, abducts=True, offset=0.08, knee="backward"),
    "mirrored joints": Leg("leg", (0.1, 0.2, -0.3), 0.5, 0.4, abducts=True, offset=-0.08, signs=(-1, 1, -1)),
}


def random_feet(leg, n, seed):
    """Return soles within reach, (n, 3), [m]: 0.35 to 0.7 m below the hip and up to 0.3 m beside it."""
    rng = np.random.default_rng(seed)
    below = rng.uniform([-0.3, -0.25, -0.7], [0.3, 0.25, -0.35], (n, 3)) - [0, 0, leg.sole]
    below[:, 1] *= leg.abducts
    return np.array(leg.hip) + below


@pytest.mark.parametrize("leg", LEGS.values(), ids=LEGS)
def test_the_angles_put_the_foot_where_it_was_wanted(leg):
    for foot in random_feet(leg, 50, seed=1):
        np.testing.assert_allclose(leg.foot(leg.angles(foot)), foot, atol=1e-14)


@pytest.mark.parametrize("leg", LEGS.values(), ids=LEGS)
def test_many_feet_at_once_give_the_angles_of_each(leg):
    feet = random_feet(leg, 20, seed=2)
    together = np.stack(leg.angles(feet.T), axis=1)
    np.testing.assert_allclose(together, [leg.angles(foot) for foot in feet], atol=1e-14)


@pytest.mark.parametrize("leg", LEGS.values(), ids=LEGS)
def test_joint_rates_move_the_foot_as_wanted(leg):
    start, end = random_feet(leg, 2, seed=3)
    foot = lambda t: start + (end - start) * np.sin(t) ** 2  # noqa: E731
    moving = foot(taylor.time(0.7))
    back = taylor.derivatives(leg.foot(leg.angles(moving)))
    for actual, wanted in zip(back, taylor.derivatives(moving), strict=True):
        np.testing.assert_allclose(actual, wanted, atol=1e-12)


@pytest.mark.parametrize("knee, sign", [("forward", 1), ("backward", -1)])
@pytest.mark.parametrize("thigh, shank", [(0.5, 0.5), (0.4, 0.55)])
def test_the_knee_points_where_it_should(knee, sign, thigh, shank):
    hip, bend = two_link_angles(0.0, 0.7, thigh, shank, knee)
    assert sign * thigh * np.sin(hip) > 0.05  # the knee's place ahead of the hip [m]
    assert sign * bend < 0


def test_a_straight_leg_of_equal_links_halves_its_bend():
    hip, knee = two_link_angles(0.0, 0.96, 0.5, 0.5)  # cos alpha = 0.96^2 / 0.5 - 1
    assert hip == pytest.approx(-knee / 2, rel=1e-15)
    assert knee == pytest.approx(-np.arccos(0.96**2 / 0.5 - 1), rel=1e-14)


def test_a_flat_foot_stays_level():
    leg = LEGS["flat foot"]
    for foot in random_feet(leg, 10, seed=4):
        assert sum(leg.angles(foot)) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("down", [1.0, 1.2])
def test_out_of_reach_is_an_error_that_carries_the_distances(down):
    leg = LEGS["long thigh"]
    with pytest.raises(
        ReachError, match=rf"leg 'leg' cannot reach {down:g} m from its hip: .* between 0.25 m and 0.95 m"
    ):
        leg.angles(np.array(leg.hip) - [0, 0, down])
    with pytest.raises(ReachError) as caught:
        leg.angles(np.array(leg.hip) - [0, 0, down])
    assert caught.value.distance == pytest.approx(down)
    assert caught.value.shortest == pytest.approx(0.25)
    assert caught.value.longest == pytest.approx(0.95)


def test_too_near_is_out_of_reach_too_and_so_is_nan():
    with pytest.raises(ReachError, match=r"cannot reach 0.2 m"):
        two_link_angles(0.0, 0.2, 0.6, 0.35)
    with pytest.raises(ReachError):
        two_link_angles(np.nan, 0.5, 0.6, 0.35)
    with pytest.raises(ReachError, match=r"from its abduction axis: its offset is 0.08 m"):
        LEGS["offset"].hip_angles(0.3, 0.05, 0.02)


def test_one_instant_of_many_out_of_reach_is_found():
    with pytest.raises(ReachError, match=r"cannot reach 1.01 m"):
        two_link_angles(0.0, taylor.time(np.linspace(0.9, 1.01, 12)), 0.5, 0.5)


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"thigh": 0.0}, "links of positive length"),
        ({"knee": "sideways"}, "knee must be 'forward' or 'backward', got 'sideways'"),
        ({"signs": (1, 1, 1)}, "has 2 joints, but 3 signs"),
        ({"signs": (2, 1)}, r"must be 1 or -1, got \(2, 1\)"),
        ({"offset": 0.1}, "has an offset but no abduction"),
    ],
)
def test_legs_that_cannot_be_are_refused(wrong, words):
    with pytest.raises(DefinitionError, match=words):
        Leg(**({"name": "leg", "hip": (0, 0, 0), "thigh": 0.5, "shank": 0.5} | wrong))


# Detection of legs.


def geometry(leg):
    """Return the attributes of a leg without signs and columns."""
    return (leg.name, leg.hip, leg.thigh, leg.shank, leg.abducts, leg.flat_foot, leg.sole, leg.offset)


@pytest.mark.parametrize(
    "robot, legs",
    [
        (robots.planar_biped(), paper_biped()),
        (robots.spatial_quadruped(), paper_quadruped()),
        (robots.hexapod(), paper_hexapod()),
    ],
)
def test_the_papers_robots_have_the_papers_legs(robot, legs):
    for leg, expected in zip(legs_of(robot), legs, strict=True):
        assert geometry(leg) == geometry(expected)
        assert set(leg.signs) == {1}


def one_leg(first, *others, foot=None, at=(0.3, -0.1, -0.05)):
    """Return a robot with a leg of the given joints, each (joint, position of its frame), and a foot."""
    limb = Limb()
    for k, (joint, position) in enumerate((first, *others)):
        last = k == len(others)
        contacts = {"tip": (0, 0, -0.25)} if last and foot is None else {}
        limb = limb.add(joint, Link(f"part{k}", rod_inertia(1, (0, 0, 0), (0.01, 0.0, -0.25)), contacts), at=position)
    if foot is not None:
        plate = Link("foot", rod_inertia(0.1, (-0.1, 0, 0), (0.1, 0.01, 0)), foot)
        limb = limb.add(Revolute("ankle", "y"), plate, at=(0, 0, -0.25))
    robot = RobotBuilder("one", Link("trunk", legged.box_inertia(3.0, (0.4, 0.3, 0.1))), base=FloatingBase())
    return robot.attach(limb, to="trunk", at=at).build()


def test_signs_offsets_and_soles_are_read():
    robot = one_leg(
        (Revolute("abduction", "-x"), (0.0, 0.0, 0.0)),
        (Revolute("hip", "y"), (0.05, 0.08, 0.0)),
        (Revolute("knee", "-y"), (0.0, -0.01, -0.3)),
        foot={"heel": (-0.05, 0, -0.04), "toe": (0.1, 0, -0.04)},
    )
    (leg,) = legs_of(robot, knee="backward")
    assert leg.name == "foot"  # the joints' names have nothing in common
    np.testing.assert_allclose(leg.hip, (0.35, -0.1, -0.05))
    np.testing.assert_allclose((leg.thigh, leg.shank, leg.offset, leg.sole), (0.3, 0.25, 0.07, 0.04))
    assert leg.signs == (-1, -1, 1, -1)
    assert leg.columns == (0, 1, 2, 3)
    assert leg.knee == "backward"
    x, y, z = leg.hip
    angles = leg.angles((x + 0.1, y + 0.1, z - 0.5))
    ankle = legged.point_positions(robot, np.concatenate([robot.base.neutral(), angles]), [("foot", np.zeros(3))])[0]
    np.testing.assert_allclose(ankle, (x + 0.1, y + 0.1, z - 0.46), atol=1e-14)  # over the sole


def test_joints_that_are_in_no_leg_stay_at_zero():
    quadruped = robots.spatial_quadruped()
    leg = legs_of(quadruped)
    builder = RobotBuilder("with arm", Link("trunk", legged.box_inertia(4.0, (1.0, 0.5, 0.1))))
    arm = Limb().add(Revolute("shoulder", "-y"), Link("arm", rod_inertia(0.5, (0, 0, 0), (0.3, 0.01, 0))))
    down = (0, 0, -0.3)
    limb = (
        Limb()
        .add(Universal("hip", "x", "-y"), Link("thigh", rod_inertia(1.0, (0, 0, 0), down)))
        .add(Revolute("knee", "-y"), Link("shank", rod_inertia(1.0, (0, 0, 0), down), {"foot": down}), at=down)
    )
    builder.attach(arm, to="trunk", at=(0.5, 0, 0))
    for k, (x, y) in enumerate([(-0.5, -0.25), (-0.5, 0.25), (0.5, -0.25), (0.5, 0.25)]):
        builder.attach(limb, to="trunk", at=(x, y, 0), prefix=f"leg{k + 1}_")
    robot = builder.build()
    assert [geometry(a) for a in legs_of(robot)] == [geometry(b) for b in leg]
    with_arm, without = (Trot().on(r).reference(0.3) for r in (robot, quadruped))
    column = robot.joint("shoulder").v.start - robot.base.nv
    for a, b in zip(with_arm, without, strict=True):
        assert a[column] == 0
        np.testing.assert_allclose(np.delete(a, column), b, atol=1e-12)


HIP, KNEE = (Revolute("hip", "-y"), (0, 0, 0)), (Revolute("knee", "-y"), (0, 0, -0.3))


@pytest.mark.parametrize(
    "robot, words",
    [
        (one_leg(HIP, (Prismatic("slide", "-z"), (0, 0, -0.3))), "a joint that is not revolute"),
        (one_leg(HIP, (Revolute("knee", "x"), (0, 0, -0.3))), "its axes run along y, x"),
        (one_leg((Revolute("hip", (0, -0.6, 0.8)), (0, 0, 0)), KNEE), r"its axes run along \?, y"),
        (one_leg(HIP, (Revolute("knee", "-y"), (0.05, 0, -0.3))), "is not straight down"),
        (one_leg(HIP, KNEE, foot={"heel": (-0.1, 0, -0.02), "toe": (0.1, 0, 0)}), "contact points are not level"),
    ],
)
def test_legs_that_do_not_fit_are_refused_with_what_to_do(robot, words):
    with pytest.raises(DefinitionError, match=rf"{words}.*pass `legs` explicitly or use NumericalGait"):
        legs_of(robot)


def test_a_robot_without_feet_has_no_legs():
    with pytest.raises(DefinitionError, match="no link beyond the base has contact points"):
        Stand().on(robots.chain(3))


def test_positions_and_angles_of_a_leg_have_their_shapes():
    leg = Leg("a", (0.0, 0.0, 0.0), 0.3, 0.3)
    with pytest.raises(ShapeError, match="got 1 numbers"):
        leg.angles([0.1])
    with pytest.raises(ShapeError, match="leg 'a' has 2 joints, got 1 angles"):
        leg.foot([0.1])
