"""Checks during a simulation: falls, divergence, chatter, and steps that are too long for the contacts."""
