"""Rollouts: many simulations of one robot at once, from different states and with different parameters."""

from legged.simulation.rollouts.result import Rollouts
from legged.simulation.rollouts.rollout import rollout

__all__ = ["Rollouts", "rollout"]
