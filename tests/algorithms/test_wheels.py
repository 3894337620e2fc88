"""Round feet that joints without limits turn about their axes are wheels: robots walk on them with locked joints."""

import numpy as np
import pytest

import controllers
import legged
from legged import Limb, Link, Revolute, RobotBuilder, box_inertia, rod_inertia
from legged.algorithms.legs.leg_chains import leg_chains, legs_text
from legged.errors import DefinitionError

RADIUS = 0.08
ACROSS = legged.rpy(np.pi / 2, 0.0, 0.0)
RIM = {"rim": (0.0, 0.0, -RADIUS)}
OFF = np.array([0.0, 0.0, 0.05])  # [m], from the origin of a link to its wheel
TIRE = legged.Cylinder(RADIUS, 0.04, rotation=ACROSS)


def prism(corners: int) -> legged.Hull:
    """Return a wheel of 4 cm with a regular polygon as its outline, one corner downward."""
    angles = 2 * np.pi * np.arange(corners) / corners
    rim = RADIUS * np.column_stack([np.sin(angles), np.zeros(corners), -np.cos(angles)])
    return legged.Hull(np.concatenate([rim + np.array([0.0, y, 0.0]) for y in (-0.02, 0.02)]))


def on_wheels(shape=TIRE, contacts=RIM, axis="y", lower=-np.inf, upper=np.inf):
    """Return a robot with four legs whose last joints turn feet of a shape."""
    leg = Limb()
    leg.add(Revolute("roll", "x"), Link("hip", box_inertia(0.5, (0.1, 0.05, 0.05))))
    leg.add(Revolute("hip", "y"), Link("thigh", rod_inertia(0.8, (0, 0, 0), (0, 0, -0.2))))
    shin = {"shin": (0.0, 0.0, -0.15)}
    shank = Link("shank", rod_inertia(0.5, (0, 0, 0), (0, 0, -0.2)), shin, [legged.Box((0.03, 0.03, 0.3))])
    leg.add(Revolute("knee", "y"), shank, at=(0, 0, -0.2))
    foot = Link("foot", box_inertia(0.3, (0.1, 0.04, 0.1)), contacts, () if shape is None else [shape])
    physics = legged.JointPhysics(lower=lower, upper=upper)
    leg.add(Revolute("wheel", axis, physics=physics), foot, at=(0, 0, -0.2))
    builder = RobotBuilder("rover", Link("trunk", box_inertia(12.0, (0.4, 0.3, 0.1))))
    for name, x, y in (("fl", 0.2, 0.15), ("fr", 0.2, -0.15), ("hl", -0.2, 0.15), ("hr", -0.2, -0.15)):
        builder.attach(leg, to="trunk", at=(x, y, 0.0), prefix=f"{name}_")
    return builder.build()


WHEELS = ["fl_wheel", "fr_wheel", "hl_wheel", "hr_wheel"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"shape": None, "contacts": {"ball": legged.Sphere(RADIUS)}},
        {"shape": legged.Sphere(RADIUS)},
        {"shape": prism(12)},
        {"shape": legged.Cylinder(RADIUS, 0.2, rotation=ACROSS), "contacts": {"side": (0.0, 0.1, -RADIUS)}},
        {"lower": -10.0, "upper": 10.0},
    ],
    ids=["cylinder", "round contact", "sphere", "mesh", "contact beside the hub", "several turns"],
)
def test_a_round_foot_on_a_joint_through_its_center_is_a_wheel(given):
    assert [leg.wheel for leg in leg_chains(on_wheels(**given))] == WHEELS


def test_the_tire_of_a_wheel_may_be_a_link_of_its_own():
    leg = Limb()
    leg.add(Revolute("hip", "y"), Link("thigh", rod_inertia(0.8, (0, 0, 0), (0, 0, -0.3))))
    leg.add(Revolute("wheel", "y"), Link("motor", box_inertia(0.3, (0.1, 0.1, 0.1))), at=(0, 0, -0.3))
    tire = Link(
        "tire", box_inertia(0.3, (0.1, 0.1, 0.1)), {"rim": OFF - [0.0, 0.0, RADIUS]}, [TIRE.moved(np.eye(3), OFF)]
    )
    leg.add(legged.Fixed("rivets"), tire, at=-OFF)
    builder = RobotBuilder("cart", Link("trunk", box_inertia(12.0, (0.4, 0.3, 0.1))))
    for name, y in (("left", 0.15), ("right", -0.15)):
        builder.attach(leg, to="trunk", at=(0.0, y, 0.0), prefix=f"{name}_")
    assert [leg.wheel for leg in leg_chains(builder.build())] == ["left_wheel", "right_wheel"]


@pytest.mark.parametrize(
    "given",
    [
        {"lower": -1.5, "upper": 1.5},
        {"shape": legged.Cylinder(RADIUS, 0.04, (0.0, 0.0, -0.02), ACROSS), "contacts": {"rim": (0.0, 0.0, -0.1)}},
        {"shape": None, "contacts": {"ball": legged.Sphere(0.02, (0.0, 0.0, -0.06))}},
        {"shape": None},
        {"shape": prism(6)},
        {"axis": "z"},
        {"contacts": {"tip": (0.0, 0.0, -2 * RADIUS)}},
        {"contacts": {"hub": (0.0, 0.0, -RADIUS / 2)}},
    ],
    ids=["limits", "beside the center", "ball below", "point", "hexagon", "steering", "point below", "point inside"],
)
def test_other_feet_are_no_wheels(given):
    assert [leg.wheel for leg in leg_chains(on_wheels(**given))] == [""] * 4


def test_locomotion_refuses_wheels_until_their_joints_are_locked():
    robot, law = on_wheels(), controllers.Locomotion("trot")
    assert "rolls on a wheel turned by joint 'hr_wheel'" in legs_text(robot).splitlines()[-1]
    with pytest.raises(
        DefinitionError, match=r"'rover' cannot walk: .* joints 'fl_wheel', .*robot\.locked\(\{'fl_wheel'"
    ):
        law.initial_state(robot)
    locked = robot.locked(dict.fromkeys(WHEELS, 0.0))
    assert "wheel" not in legs_text(locked)
    q, v = law.initial_state(locked)
    run = legged.simulate(locked, law, ground=legged.Rigid(), until=0.2, q=q, v=v, integrator=legged.TimeStepping(2e-3))
    assert abs(run.q[-1, 6] - q[6]) < 0.01  # [m], height of the trunk
