"""Dynamics and kinematics by O(n) recursions over the bodies, for floats and traced scalars."""
