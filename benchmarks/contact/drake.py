"""Motions of scenes in Drake, if it is installed: discrete steps, SAP solver, stiff compliant hydroelastic contact.

Drake has no restitution. Pairs of contacts cannot be chosen.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.contact.scenes import Motion, World
from legged.contact import Box, Sphere

MODULUS = 1e9
"""Hydroelastic modulus of all bodies, [Pa]."""
RESOLUTION = 0.02
"""Length of the elements of spheres and cylinders, [m]."""


def is_installed() -> bool:
    """Return whether Drake is installed."""
    return find_spec("pydrake") is not None


def drake(world: World, until: float, step: float = 1e-3, sample: float = 0.01) -> Motion:
    """Return the motion in Drake.

    Args:
        world: The world, without restitution. until: End time, [s]. step: Time step, [s]. sample: Interval, [s].
    """
    names = ("multibody.plant", "multibody.tree", "geometry", "math", "systems.framework", "systems.analysis")
    plants, tree, geometry, mathematics, framework, analysis = (import_module(f"pydrake.{name}") for name in names)
    builder = framework.DiagramBuilder()
    plant, _ = plants.AddMultibodyPlantSceneGraph(builder, step)
    plant.set_discrete_contact_approximation(plants.DiscreteContactApproximation.kSap)
    plant.set_contact_model(plants.ContactModel.kHydroelasticWithFallback)
    plant.mutable_gravity_field().set_gravity_vector(np.asarray(world.gravity, float))
    friction = plants.CoulombFriction(world.friction, world.friction)

    def properties(rigid: bool) -> Any:
        surface = geometry.ProximityProperties()
        geometry.AddContactMaterial(0.0 if rigid else 10.0, 1e7, friction, surface)
        if rigid:
            geometry.AddRigidHydroelasticProperties(surface)
        else:
            geometry.AddCompliantHydroelasticProperties(RESOLUTION, MODULUS, surface)
        return surface

    still = mathematics.RigidTransform()
    plant.RegisterCollisionGeometry(plant.world_body(), still, geometry.HalfSpace(), "ground", properties(True))
    bodies = []
    for solid in world.solids:
        moments = np.diag(np.asarray(solid.inertia.tensor)) / solid.mass
        inertia = tree.SpatialInertia(solid.mass, np.zeros(3), tree.UnitInertia(*moments))
        body = plant.AddRigidBody(solid.name, inertia)
        shape = solid.shape
        if isinstance(shape, Sphere):
            form = geometry.Sphere(shape.radius)
        elif isinstance(shape, Box):
            form = geometry.Box(*np.asarray(shape.size))
        else:
            form = geometry.Cylinder(shape.radius, shape.length)
        plant.RegisterCollisionGeometry(body, still, form, f"{solid.name} surface", properties(False))
        bodies.append(body)
    plant.Finalize()
    diagram = builder.Build()
    simulator = analysis.Simulator(diagram)
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    for solid, body in zip(world.solids, bodies, strict=True):
        quaternion = import_module("pydrake.common.eigen_geometry").Quaternion(np.asarray(solid.quaternion, float))
        pose = mathematics.RigidTransform(quaternion, np.asarray(solid.position, float))
        plant.SetFreeBodyPose(context, body, pose)
        velocity = import_module("pydrake.multibody.math").SpatialVelocity(solid.spin, solid.velocity)
        plant.SetFreeBodySpatialVelocity(context, body, velocity)
    simulator.Initialize()
    times = np.arange(round(until / sample) + 1) * sample
    motion = Motion(times)
    samples: dict[str, list[Any]] = {solid.name: [] for solid in world.solids}
    for t in times:
        simulator.AdvanceTo(t)
        for solid, body in zip(world.solids, bodies, strict=True):
            pose, twist = plant.EvalBodyPoseInWorld(context, body), plant.EvalBodySpatialVelocityInWorld(context, body)
            now = pose.translation(), pose.rotation().matrix(), twist.translational(), twist.rotational()
            samples[solid.name].append(tuple(np.array(part) for part in now))
    for name, rows in samples.items():
        place, R, velocity, spin = (np.array(part) for part in zip(*rows, strict=True))
        motion.position[name], motion.rotation[name] = place, R
        motion.velocity[name], motion.spin[name] = velocity, spin
    return motion
