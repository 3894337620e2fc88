"""Outlining of large graphs, so that code size does not grow with the robot: regions, templates and the memory plan."""
