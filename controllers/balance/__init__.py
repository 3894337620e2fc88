"""Balance control: a gait with feedback of trunk and foot placement, and workspace control of a standing robot."""

from controllers.balance.balanced import Balanced
from controllers.balance.workspace import Limits, Plan, WorkspaceBalance

__all__ = ["Balanced", "Limits", "Plan", "WorkspaceBalance"]
