"""Feet that stand as loops through the world: a robot's equations in the phase of its gait that it is in.

The approach is the configuration-dependent one, which Shah, Saha and Dutt 2012 set beside their own: feet on the ground
are joints, and constraints come and go with the phases of the gait. The compliant ground of `legged.ground` needs no
phases; the two agree where motions are slow for its springs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.dynamics.frames import frame_pose
from legged.loops.loop import ClosedRobot
from legged.robot.joint import Spherical
from legged.robot.robot import Robot
from legged.spatial import Array


def standing(robot: Robot, q: Array, contacts: Sequence[str]) -> ClosedRobot:
    """Return the robot with contact points held where they are at q, by ball joints to the world.

    Several points of one foot, or points of a planar robot, bind more than there is: forces that only strain the robot
    are then as small as can be.

    Args:
        robot: The robot. q: Configuration, (nq,). contacts: Names of contact points on the ground.

    Raises:
        UnknownNameError: for a point that is not there.
    """
    closed = ClosedRobot(robot, (), ())
    for name in contacts:
        robot.contact(name)
        place = frame_pose(robot, np.asarray(q, float), name).position
        closed = closed.close(Spherical(f"{name} stands"), parent=None, child=name, at=place)
    return closed
