"""Whole-body control: the joint torques of several tasks within friction cones and limits."""
