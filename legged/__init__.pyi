"""The public names of `legged`: what type checkers read, and the table by which `__init__.py` imports each name."""

from legged import contact, conversions, ground, loops, rotations, simulation, taylor
from legged.algorithms.constrained.contacts import contact_dynamics, contact_inverse_dynamics
from legged.algorithms.inverse_kinematics import IKSolution, IKSolutions, InverseKinematics, center_of_mass_jacobian
from legged.algorithms.reduced_model import reduced_model
from legged.algorithms.velocity_gains import VelocityGains, velocity_gains
from legged.compiler import Counts, Kernel, compile, count, jacobian
from legged.compiler.ir import where
from legged.contact import FreeBody, Rigid
from legged.counting.growth import count_growth
from legged.denoc import condition_report, conditioning, module_inverse
from legged.dynamics.forward import HybridDynamics, forward_dynamics, hybrid_dynamics
from legged.dynamics.frames import Frame, Pose, frame_acceleration, frame_jacobian, frame_pose, frame_twist
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces, floating_inverse_dynamics, inverse_dynamics
from legged.dynamics.joint_wrenches import JointWrenches, joint_wrenches
from legged.dynamics.kinematics import (
    center_of_mass,
    kinetic_energy,
    link_poses,
    link_twists,
    momentum,
    momentum_rate,
    point_accelerations,
    point_jacobian,
    point_motion,
    point_positions,
    point_twist_rates,
    potential_energy,
    required_wrench,
)
from legged.files.collision import hull_of
from legged.files.load import audit, load
from legged.files.mjcf.export import save_mjcf
from legged.files.urdf.export import save_urdf
from legged.ground.linearization import Linearization, linearize
from legged.moving_coordinates import (
    conventional_acceleration,
    force_derivative,
    motion_derivative,
    spatial_acceleration,
)
from legged.robot.base import Base, EulerBase, FixedBase, FloatingBase, PlanarBase
from legged.robot.configuration import configuration_rate, difference, integrate, random_configuration
from legged.robot.construction.builder import Limb, RobotBuilder, rpy
from legged.robot.construction.edit import RobotEditor
from legged.robot.construction.group import RobotGroup, combine
from legged.robot.construction.partition import partition
from legged.robot.construction.random_tree import random_tree
from legged.robot.inertia import Inertia, box_inertia, cylinder_inertia, point_mass, rod_inertia, sphere_inertia
from legged.robot.joint import (
    ConstantVelocity,
    Cylindrical,
    Fixed,
    Free,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)
from legged.robot.link import Link
from legged.robot.physics import JointPhysics, Rotor
from legged.robot.robot import Robot
from legged.robot.shapes import Box, Capsule, Cylinder, Ellipsoid, Hull, Sphere
from legged.robot.state import State
from legged.simulation import (
    ExternalWrench,
    Fall,
    LinearlyImplicitEuler,
    Push,
    Rollouts,
    Run,
    RungeKutta4,
    SemiImplicitEuler,
    Simulation,
    Stiff,
    TimeStepping,
    rollout,
    rollout_parameters,
    simulate,
)
from legged.sweeps import sweep
from legged.table import Table
from legged.verification import verify
from legged.version import __version__
from legged.viewer import save_html, view

__all__ = [
    "Base",
    "Box",
    "Capsule",
    "ConstantVelocity",
    "Counts",
    "Cylinder",
    "Cylindrical",
    "Ellipsoid",
    "EulerBase",
    "ExternalWrench",
    "Fall",
    "Fixed",
    "FixedBase",
    "FloatingBase",
    "Frame",
    "Free",
    "FreeBody",
    "Hull",
    "HybridDynamics",
    "IKSolution",
    "IKSolutions",
    "Inertia",
    "InverseKinematics",
    "Joint",
    "JointPhysics",
    "JointWrenches",
    "Kernel",
    "Limb",
    "Linearization",
    "LinearlyImplicitEuler",
    "Link",
    "Planar",
    "PlanarBase",
    "Pose",
    "Prismatic",
    "Push",
    "Revolute",
    "Rigid",
    "Robot",
    "RobotBuilder",
    "RobotEditor",
    "RobotGroup",
    "Rollouts",
    "Rotor",
    "Run",
    "RungeKutta4",
    "Screw",
    "SemiImplicitEuler",
    "Simulation",
    "Sphere",
    "Spherical",
    "State",
    "Stiff",
    "Table",
    "TimeStepping",
    "Universal",
    "VelocityGains",
    "__version__",
    "audit",
    "bias_forces",
    "box_inertia",
    "center_of_mass",
    "center_of_mass_jacobian",
    "combine",
    "compile",
    "condition_report",
    "conditioning",
    "configuration_rate",
    "contact",
    "contact_dynamics",
    "contact_inverse_dynamics",
    "conventional_acceleration",
    "conversions",
    "count",
    "count_growth",
    "cylinder_inertia",
    "difference",
    "floating_inverse_dynamics",
    "force_derivative",
    "forward_dynamics",
    "frame_acceleration",
    "frame_jacobian",
    "frame_pose",
    "frame_twist",
    "ground",
    "hull_of",
    "hybrid_dynamics",
    "inertia_matrix",
    "integrate",
    "inverse_dynamics",
    "jacobian",
    "joint_wrenches",
    "kinetic_energy",
    "linearize",
    "link_poses",
    "link_twists",
    "load",
    "loops",
    "module_inverse",
    "momentum",
    "momentum_rate",
    "motion_derivative",
    "partition",
    "point_accelerations",
    "point_jacobian",
    "point_mass",
    "point_motion",
    "point_positions",
    "point_twist_rates",
    "potential_energy",
    "random_configuration",
    "random_tree",
    "reduced_model",
    "required_wrench",
    "rod_inertia",
    "rollout",
    "rollout_parameters",
    "rotations",
    "rpy",
    "save_html",
    "save_mjcf",
    "save_urdf",
    "simulate",
    "simulation",
    "spatial_acceleration",
    "sphere_inertia",
    "sweep",
    "taylor",
    "velocity_gains",
    "verify",
    "view",
    "where",
]
