"""Optimal control beside Crocoddyl: its own gait problems, with the same nodes, costs, contact model and start."""
