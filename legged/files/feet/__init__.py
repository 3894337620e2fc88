"""Feet of robots in files: detection, contact points, and soles measured from shapes."""
