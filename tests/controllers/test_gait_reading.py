"""Reading legs from a robot: geometry, signs and joint order as defined, and a refusal where they do not fit."""

from __future__ import annotations

import numpy as np
import pytest

import legged
import robots
from controllers import Stand, Trot, legs_of
from controllers.gaits.leg import paper_biped, paper_hexapod, paper_quadruped
from legged import FloatingBase, Limb, Link, Prismatic, Revolute, RobotBuilder, Universal, rod_inertia
from legged.errors import DefinitionError


def bare(leg):
    """Return what a leg is, without the robot's joint places and signs."""
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
    for found, expected in zip(legs_of(robot), legs, strict=True):
        assert bare(found) == bare(expected)
        assert set(found.signs) == {1}


def one_leg(first, *others, foot=None, at=(0.3, -0.1, -0.05)):
    """Return a robot with a leg of the given joints, each (joint, place of its frame), and a foot."""
    limb = Limb()
    for k, (joint, place) in enumerate((first, *others)):
        last = k == len(others)
        contacts = {"tip": (0, 0, -0.25)} if last and foot is None else {}
        limb = limb.add(joint, Link(f"part{k}", rod_inertia(1, (0, 0, 0), (0.01, 0.0, -0.25)), contacts), at=place)
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
    assert [bare(a) for a in legs_of(robot)] == [bare(b) for b in leg]
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
