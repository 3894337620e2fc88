"""Joints about axes through point masses: refused at the start of a simulation, or warned about, before it runs."""

import numpy as np
import pytest

import legged
from legged.errors import ArgumentError, DefinitionError, SimulationWarning

MASSLESS = legged.Inertia(0.0, (0.0, 0.0, 0.0), np.zeros((3, 3)))


def gimbal(radius):
    """Return two hinges with a massless link between, and a sphere of 1 kg on the first axis at q = 0."""
    inertia = 0.4 * radius**2 * np.eye(3)  # [kg m^2], 2/5 m r^2
    builder = legged.RobotBuilder("gimbal", legged.Link("base", legged.box_inertia(5.0, (0.2, 0.2, 0.2))))
    builder.add(legged.Revolute("yaw", axis=(0, 0, 1)), legged.Link("ring", MASSLESS), to="base")
    ball = legged.Link("ball", legged.Inertia(1.0, (0, 0, 0.3), inertia))
    builder.add(legged.Revolute("tilt", axis=(0, 1, 0)), ball, to="ring")
    return builder.build()


def doors(robot, q):
    options = {"q": q, "integrator": legged.SemiImplicitEuler(1e-3)}
    return [
        lambda: legged.simulate(robot, until=0.002, **options),
        lambda: legged.rollout(robot, until=0.002, vary={"robot.base.mass": [5.0, 6.0]}, **options),
        lambda: legged.Simulation(robot, **options),
    ]


def test_a_start_with_an_axis_through_a_point_mass_is_refused():
    robot = gimbal(0.0)
    q = robot.neutral()  # the mass is on the axis of yaw
    for door in doors(robot, q):
        with pytest.raises(
            DefinitionError, match=r"joint 'yaw' moves .* give link 'ring' rotational inertia .*legged i"
        ):
            door()
    q[robot.joint("tilt").q] = 0.5
    for door in doors(robot, q):
        door()


def test_a_nearly_vanishing_inertia_is_warned_about():
    """A ball of 5 um has 1e-11 kg m^2, 5e-11 of the inertia about the base's origin; one of 2 cm has 9e-4 of it."""
    tiny, small = gimbal(5e-6), gimbal(0.02)
    for door in doors(tiny, tiny.neutral()):
        with pytest.warns(SimulationWarning, match="very short steps: joint 'yaw'"):
            door()
    for door in doors(small, small.neutral()):
        door()


def test_a_text_in_place_of_a_path_is_named():
    with pytest.raises(ArgumentError, match=r"got the text of one, '<robot name=.*write it to a file"):
        legged.load('<robot name="p">\n<link name="base"/></robot>')
