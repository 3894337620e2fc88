"""The public names of `controllers`: for type checkers, and the table by which `__init__.py` imports each name."""

from controllers.balance import Balanced, Limits, WorkspaceBalance
from controllers.balance.gyroscopic import GyroscopicBalance
from controllers.balance.planar import (
    AngularMomentumControl,
    LinearQuadraticBalance,
    PartialLinearizationBalance,
    PlanarBalance,
    PlanarBalanceControl,
    SmoothCommand,
    StepCommand,
    UnactuatedMomentumBalance,
)
from controllers.balance.spatial import BendSwivelBalance, BendSwivelControl
from controllers.commands import CommandedLaw, CommandedPosture, LiveCommand, SampledCommand
from controllers.estimated import Estimated
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
from controllers.hybrid_control import FaceContact, HybridControl
from controllers.law import GaitLaw
from controllers.locomotion import Command, ContactSchedule, Locomotion
from controllers.locomotion.falls.recovery import Recovery
from controllers.locomotion.follow import Follow
from controllers.locomotion.seeing import Seeing
from controllers.lyapunov import LyapunovTracking
from controllers.networks import Network
from controllers.operational_space import OperationalSpaceControl, PointTask, PoseTask
from controllers.policy import Policy
from controllers.running_law import RunningLaw
from controllers.suited_laws import servo_gains, suited_law
from controllers.tracking import ComputedTorque, FeedForward, JointPD, JointPID, OpenLoop
from controllers.wrappers import (
    ActuatorLag,
    ActuatorLimits,
    Delay,
    NominalModel,
    OnSerialEquivalent,
    SensorNoise,
    SwitchedLaw,
    Wrapper,
)
from controllers.zero_order_hold import ZeroOrderHold

__all__ = [
    "ActuatorLag",
    "ActuatorLimits",
    "Alternating",
    "AngularMomentumControl",
    "Balanced",
    "BendSwivelBalance",
    "BendSwivelControl",
    "Command",
    "CommandedLaw",
    "CommandedPosture",
    "ComputedTorque",
    "ContactSchedule",
    "Crawl",
    "Delay",
    "Estimated",
    "FaceContact",
    "FeedForward",
    "Follow",
    "FootKinematics",
    "Gait",
    "GaitLaw",
    "GyroscopicBalance",
    "Home",
    "HybridControl",
    "InvertedPendulum",
    "JointPD",
    "JointPID",
    "Leg",
    "Limits",
    "LinearQuadraticBalance",
    "LiveCommand",
    "Locomotion",
    "LyapunovTracking",
    "Network",
    "NominalModel",
    "NumericalGait",
    "OnSerialEquivalent",
    "OpenLoop",
    "OperationalSpaceControl",
    "PartialLinearizationBalance",
    "PlanarBalance",
    "PlanarBalanceControl",
    "PointTask",
    "Policy",
    "PoseTask",
    "Posture",
    "Recovery",
    "Reference",
    "RunningLaw",
    "SampledCommand",
    "Seeing",
    "SensorNoise",
    "SmoothCommand",
    "Stand",
    "StepCommand",
    "SwitchedLaw",
    "Tripod",
    "Trot",
    "UnactuatedMomentumBalance",
    "Walk",
    "WorkspaceBalance",
    "Wrapper",
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
