"""Workspace control of a standing robot's trunk, by recursions over its limbs: Wendlandt 1997, algorithms 1 to 6.

`dynamics` has algorithms 1 to 3, `set_point` algorithm 4, `distribution` algorithms 5 and 6. `controller` evaluates
them in sequence, and `law` is the definition with its settings.
"""

from controllers.balance.workspace.controller import Plan, WorkspaceController
from controllers.balance.workspace.distribution import Limits
from controllers.balance.workspace.law import WorkspaceBalance

__all__ = ["Limits", "Plan", "WorkspaceBalance", "WorkspaceController"]
