"""Workspace control of a standing robot's trunk, by recursions over its limbs: Wendlandt 1997, algorithms 1 to 6.

1, 2 `passes`: outward, twists and bias forces. 3 `dynamics`: inward, what the trunk feels like; `exact`, without the
big base. 4 `wrench`: what takes it to its set point. 5, 6 `distribution`: which foot gives what, and the torques for
it; `limits`, what ground and motors can give. `plan` has all of them in a row, `law` the settings.
"""

from controllers.balance.workspace.law import WorkspaceBalance
from controllers.balance.workspace.limits import Limits
from controllers.balance.workspace.plan import Plan

__all__ = ["Limits", "Plan", "WorkspaceBalance"]
