"""Locomotion of many robots: velocities, largest speeds, disturbances, stops, imperfections, MuJoCo, throughput."""
