"""Studies that the tests of sweeps share; processes import them from here, too."""

import time

import controllers
import legged
import robots
from legged import sweeps

ROBOT = robots.planar_biped()
AXES = {"a": (0.0, 1.0), "b": (0.0, 2.0)}


def product(a, b):
    """Return a product, slowly enough to be interrupted."""
    time.sleep(0.002)
    return {"product": a * b, "above": a > b}


def samples(n=60):
    return sweeps.random(n, AXES, units={"a": "m"})


def setup(until=0.05, **options):
    ground = legged.ground.paper_ground(ROBOT)
    push = legged.Push("trunk", (0.0, 0.0, 0.0), at=0.01)
    law = controllers.ComputedTorque(controllers.paper_walk())
    return sweeps.Setup(ROBOT, law, until, options={"ground": ground, "pushes": [push]}, **options)


PUSHES = {"pushes.0.impulse[0]": (-1.0, 1.0), "robot.trunk.mass": (4.0, 6.0)}
