"""Balance of a spatial robot on a point with a constant-velocity joint: decoupled bending and swivelling."""

from controllers.balance.spatial.control import BendSwivelControl
from controllers.balance.spatial.model import BendSwivelBalance, BendSwivelState

__all__ = ["BendSwivelBalance", "BendSwivelControl", "BendSwivelState"]
