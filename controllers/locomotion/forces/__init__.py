"""Predictive control: the contact forces of the next steps that move a rigid body as wanted."""
