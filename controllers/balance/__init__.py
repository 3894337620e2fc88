"""Balance: feedback of trunk and feet on top of a gait, and workspace control of a trunk over feet that stand."""

from controllers.balance.balanced import Balanced
from controllers.balance.workspace import Limits, Plan, WorkspaceBalance

__all__ = ["Balanced", "Limits", "Plan", "WorkspaceBalance"]
