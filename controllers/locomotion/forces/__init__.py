"""Predictive control: the contact forces with which a rigid body follows its desired motion over a horizon."""
