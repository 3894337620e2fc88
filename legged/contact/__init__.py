"""Rigid contact: impacts, resting contact and Coulomb friction between robots, free bodies and a terrain.

ground = contact.Rigid(friction=0.3, restitution=0.2)
block = contact.FreeBody("block", legged.box_inertia(1.8, (0.1, 0.1, 0.1)), [contact.Box((0.1, 0.1, 0.1))])
scene = contact.Scene.of(robot, ground, bodies=[block])
"""

from legged.contact.impulses.impact import Impact
from legged.contact.rigid import FreeBody, MaterialPair, Rigid
from legged.contact.scene import Candidate, ContactGeometry, Scene
from legged.contact.scenery import load_ground
from legged.robot.shapes import Box, Capsule, Cylinder, Ellipsoid, Hull, Material, Sphere

__all__ = [
    "Box",
    "Candidate",
    "Capsule",
    "ContactGeometry",
    "Cylinder",
    "Ellipsoid",
    "FreeBody",
    "Hull",
    "Impact",
    "Material",
    "MaterialPair",
    "Rigid",
    "Scene",
    "Sphere",
    "load_ground",
]
