"""The loop on a robot: its interface, a runner at a fixed rate with a safe stop, logs, live commands, and UDP."""

from legged.deployment.interface import JointCommand, Measurement, RobotInterface
from legged.deployment.live import LiveVelocity
from legged.deployment.log import LoopLog
from legged.deployment.packets import Network
from legged.deployment.plants import MujocoPlant, SimulatedRobot
from legged.deployment.runner import Operation, Runner
from legged.deployment.safety import SafetyLimits
from legged.deployment.udp import UdpRobot, serve

__all__ = [
    "JointCommand",
    "LiveVelocity",
    "LoopLog",
    "Measurement",
    "MujocoPlant",
    "Network",
    "Operation",
    "RobotInterface",
    "Runner",
    "SafetyLimits",
    "SimulatedRobot",
    "UdpRobot",
    "serve",
]
