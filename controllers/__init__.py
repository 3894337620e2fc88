"""Control laws and gaits."""

from controllers.balance import Balanced, Limits, WorkspaceBalance
from controllers.balance.planar import PlanarBalance, PlanarBalanceControl, StepCommand
from controllers.computed_torque import ComputedTorque, FeedForward, OpenLoop
from controllers.gaits import (
    Alternating,
    Crawl,
    FootKinematics,
    Gait,
    Home,
    InvertedPendulum,
    Leg,
    NumericalGait,
    Posture,
    Reference,
    Stand,
    Tripod,
    Trot,
    Walk,
    authors_tripod,
    authors_trot,
    home_of,
    joint_limits,
    legs_of,
    paper_trot,
    paper_walk,
    suited,
    swing_foot,
)
from controllers.joint_servo import JointPD, JointPID
from controllers.law import GaitLaw
from controllers.operational_space import OperationalSpaceControl, PointTask, PoseTask
from controllers.suited_law import servo_gains, suited_law
from controllers.zero_order_hold import ZeroOrderHold

__all__ = [
    "Alternating",
    "Balanced",
    "ComputedTorque",
    "Crawl",
    "FeedForward",
    "FootKinematics",
    "Gait",
    "GaitLaw",
    "Home",
    "InvertedPendulum",
    "JointPD",
    "JointPID",
    "Leg",
    "Limits",
    "NumericalGait",
    "OpenLoop",
    "OperationalSpaceControl",
    "PlanarBalance",
    "PlanarBalanceControl",
    "PointTask",
    "PoseTask",
    "Posture",
    "Reference",
    "Stand",
    "StepCommand",
    "Tripod",
    "Trot",
    "Walk",
    "WorkspaceBalance",
    "ZeroOrderHold",
    "authors_tripod",
    "authors_trot",
    "home_of",
    "joint_limits",
    "legs_of",
    "paper_trot",
    "paper_walk",
    "servo_gains",
    "suited",
    "suited_law",
    "swing_foot",
]
