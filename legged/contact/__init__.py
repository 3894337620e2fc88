"""Rigid contact: impacts, resting contact and friction between robots, free bodies and a terrain.

ground = contact.Rigid(friction=0.3, restitution=0.2)
block = contact.FreeBody("block", legged.box_inertia(1.8, (0.1, 0.1, 0.1)), [contact.Box((0.1, 0.1, 0.1))])
scene = contact.Scene.of(robot, ground, bodies=[block])
"""

from legged.contact.free_body import FreeBody
from legged.contact.impact import Impact
from legged.contact.rigid import Rigid
from legged.contact.scene import Candidate, Scene, Touches
from legged.robot.link import Box, Sphere

__all__ = ["Box", "Candidate", "FreeBody", "Impact", "Rigid", "Scene", "Sphere", "Touches"]
