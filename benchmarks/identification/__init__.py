"""Identification of real and simulated robots."""
