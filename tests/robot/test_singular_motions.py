"""Robots with a motion without inertia are refused with an error that names it; other massless links are allowed."""

import re

import numpy as np
import pytest

import legged
import robots
from legged import Fixed, Inertia, Limb, Link, Prismatic, Revolute, RobotBuilder, Spherical, Universal
from legged.errors import DefinitionError

BODY = legged.box_inertia(1.0, (0.1, 0.2, 0.3), (0.05, 0.0, -0.1))


def link(name="leg"):
    return Link(name, BODY)


def start(**options):
    return RobotBuilder("dog", link("trunk"), **options)


def refuses(error, *words):
    """Expect an error of this class whose message contains all the words."""
    return pytest.raises(error, match="".join(f"(?=.*{re.escape(word)})" for word in words))


def test_a_massless_last_link_raises_an_error():
    with refuses(DefinitionError, "link 'tip' is the last of its limb and has no mass", "give it a mass, or fix it"):
        start().add(Revolute("hip", "y"), Link("tip"), to="trunk").build()
    with refuses(DefinitionError, "link 'arm' is the last of its limb and has no mass"):
        start().add(Revolute("hip", "y"), Link("arm"), to="trunk").add(Fixed("weld"), Link("hand"), to="arm").build()


def test_a_massless_link_fixed_to_one_with_mass_is_allowed():
    robot = start().add(Revolute("hip", "y"), link(), to="trunk").add(Fixed("mount"), Link("camera"), to="leg").build()
    assert robot.link("camera").body == robot.link("leg").body


def test_massless_links_between_are_allowed_where_axes_differ():
    robot = (
        start()
        .add(Revolute("first", "x"), Link("none"), to="trunk")
        .add(Revolute("second", "y"), link(), to="none")
        .build()
    )
    assert robot.nv == 8


def test_a_thin_rod_that_turns_about_itself_raises_an_error():
    rod = Link("rod", legged.rod_inertia(1.0, (0, 0, 0), (0, 0, -0.5)))
    with refuses(DefinitionError, "joint 'spin' of link 'rod'", "without inertia", "or fix the joint"):
        start().add(Revolute("spin", "z"), rod, to="trunk").build()
    tilted = Link("rod", legged.rod_inertia(1.0, (0, 0, 0), (0.3, -0.4, 1.2)))
    with refuses(DefinitionError, "joint 'spin' of link 'rod'"):
        start().add(Revolute("spin", np.array([3.0, -4.0, 12.0]) / 13), tilted, to="trunk").build()
    for ball in (Spherical("spin"), Spherical("spin", "zxy")):
        with refuses(DefinitionError, "joint 'spin' of link 'rod'"):
            start().add(ball, rod, to="trunk").build()


def test_a_point_mass_on_its_own_axis_raises_an_error():
    with refuses(DefinitionError, "joint 'spin' of link 'bob'"):
        start().add(Revolute("spin", "x"), Link("bob", legged.point_mass(2.0, (0.7, 0, 0))), to="trunk").build()


@pytest.mark.parametrize(
    ("first", "second", "at"),
    [
        (Revolute("inner", "y"), Revolute("outer", "y"), (0.0, 0.3, 0.0)),
        (Prismatic("inner", "x"), Prismatic("outer", "-x"), (0.1, 0.3, -0.2)),
    ],
)
def test_two_joints_in_line_with_a_massless_link_between_raise_errors(first, second, at):
    robot = start().add(first, Link("none"), to="trunk", rotation=legged.rpy(0.1, 0.2, 0.3))
    with refuses(DefinitionError, "joint 'inner' of link 'none'", "aligned with that of a joint outward of it"):
        robot.add(second, link(), to="none", at=at).build()


def test_a_universal_joint_with_parallel_axes_raises_an_error():
    with refuses(DefinitionError, "joint 'cardan' of link 'leg'"):
        start().add(Universal("cardan", "x", "-x"), link(), to="trunk").build()


def test_four_axes_through_one_point_with_massless_links_between_raise_errors():
    """A ball joint after a hinge through the same point: some of their joint rates leave the leg at rest."""
    with refuses(DefinitionError, "joint 'extra' of link 'none'", "without inertia"):
        start().add(Revolute("extra", "x"), Link("none"), to="trunk").add(Spherical("ball"), link(), to="none").build()


@pytest.mark.parametrize("base", [legged.FloatingBase(), legged.EulerBase("zyx"), legged.PlanarBase()])
def test_a_free_base_without_inertia_raises_an_error(base):
    with refuses(DefinitionError, "the base 'trunk' can move without inertia"):
        RobotBuilder("point", Link("trunk", legged.point_mass(1.0)), base=base).build()
    leg = Link("leg", legged.box_inertia(1.0, (0.1, 0.2, 0.3), (0, 0, -0.2)))
    one_leg = RobotBuilder("one leg", Link("trunk"), base=base).add(Revolute("hip", "y"), leg, to="trunk")
    with refuses(DefinitionError, "the base 'trunk' can move without inertia", "give it mass and inertia"):
        one_leg.build()


def test_a_massless_base_held_by_two_legs_is_allowed():
    leg = Limb().add(Revolute("hip", "y"), link("leg"))
    two = RobotBuilder("two legs", Link("trunk")).attach(leg, to="trunk", at=(0.3, 0, 0), prefix="a_")
    assert two.attach(leg, to="trunk", at=(-0.3, 0, 0), rotation=legged.rpy(0.4, 0, 1.2), prefix="b_").build().nv == 8


def test_a_massless_base_alone_raises_an_error():
    with refuses(DefinitionError, "the base 'trunk' has no mass and carries nothing"):
        RobotBuilder("nothing", Link("trunk"), base=legged.FixedBase()).build()


def test_a_small_gear_on_a_heavy_load_is_allowed():
    """A gear of 1e-8 kg m^2 between coaxial joints, with 10 kg at 1 m outward: 1e-9 of the inertia that it carries."""
    gear = Link("gear", Inertia(1e-3, (0, 0, 0), (0.6e-8, 0.6e-8, 1e-8)))
    load = Link("load", Inertia(10.0, (1.0, 0, 0), (0.1, 0.1, 0.1)))
    robot = start().add(Revolute("inner", "z"), gear, to="trunk").add(Revolute("outer", "z"), load, to="gear").build()
    assert robot.nj == 2


@pytest.mark.parametrize("axes", ["any", "parallel", "perpendicular"])
def test_random_trees_with_any_axes_pass_the_checks_and_have_positive_definite_inertia(axes):
    for seed in range(20):
        robot = legged.random_tree(seed, 10, axes=axes)
        assert len(robot.links) == 11
        inertia = legged.inertia_matrix(robot, legged.random_configuration(robot, np.random.default_rng(seed)))
        assert inertia.shape == (robot.nv, robot.nv)
        assert np.linalg.eigvalsh(inertia).min(initial=np.inf) > 0.0  # no eigenvalue for a fixed base with fixed joints


def test_ready_made_robots_have_the_documented_degrees_of_freedom():
    makes = (robots.hexapod, robots.humanoid, robots.planar_biped, robots.planar_hopper, robots.spatial_quadruped)
    assert [make().nv for make in makes] == [18, 36, 9, 5, 18]


def test_a_free_base_without_mass_is_moved_by_massive_limbs():
    """The inertia of the base is that of the limbs without their motions along x, y and z, which is not singular."""
    builder = legged.RobotBuilder("frame with limbs", legged.Link("frame"))
    for i, axis in enumerate("xyz"):
        limb = legged.Link(f"limb {i}", legged.box_inertia(1.0, (0.2, 0.1, 0.3), (0.1, 0.2, 0.05)))
        builder.add(legged.Prismatic(f"joint {i}", axis), limb, to="frame", at=(0.3 * i, 0.2 * i * i, 0.1))
    robot = builder.build()
    q, v, vdot = robot.neutral(), np.linspace(-1.0, 1.0, robot.nv), np.linspace(2.0, -3.0, robot.nv)
    tau = legged.inverse_dynamics(robot, q, v, vdot)
    np.testing.assert_allclose(legged.forward_dynamics(robot, q, v, tau), vdot, atol=1e-10)  # rounding of 9 unknowns
