"""Dynamics under linear constraints on the acceleration: of closed loops, or of contact points that stand."""
