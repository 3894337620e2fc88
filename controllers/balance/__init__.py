"""Balance on a floor that does not give: feedback of trunk and feet, added to a gait."""

from controllers.balance.balanced import Balanced

__all__ = ["Balanced"]
