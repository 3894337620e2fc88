"""Locomotion by a commanded velocity: predictive control of the body, whole-body control, schedules and footsteps."""
