"""Stages: the elementary joints of which all joints consist, and their motions."""
