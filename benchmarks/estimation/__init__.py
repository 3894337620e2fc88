"""Errors of the filters along walks of simulated robots."""
