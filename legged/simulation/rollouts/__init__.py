"""Rollouts: many simulations of one robot at once, from different states and with different parameters."""

from legged.simulation.rollouts.rollout import Rollouts, rollout

__all__ = ["Rollouts", "rollout"]
