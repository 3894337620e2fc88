"""Balance of a planar robot on a point: model, commands and controllers."""

from controllers.balance.planar.commands import SmoothCommand, StepCommand
from controllers.balance.planar.control import (
    AngularMomentumControl,
    BalanceGains,
    PlanarBalanceControl,
)
from controllers.balance.planar.hopping import HoppingControl, HopPlan
from controllers.balance.planar.literature import (
    LinearQuadraticBalance,
    PartialLinearizationBalance,
    UnactuatedMomentumBalance,
)
from controllers.balance.planar.model import PlanarBalance, PlanarState

__all__ = [
    "AngularMomentumControl",
    "BalanceGains",
    "HopPlan",
    "HoppingControl",
    "LinearQuadraticBalance",
    "PartialLinearizationBalance",
    "PlanarBalance",
    "PlanarBalanceControl",
    "PlanarState",
    "SmoothCommand",
    "StepCommand",
    "UnactuatedMomentumBalance",
]
